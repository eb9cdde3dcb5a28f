"""Streams as files, one file per batch, and what a plain replay of the same order says of them."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from matchmill.language.evaluate import evaluate
from matchmill.language.parser import parse
from tests.support.spark_cases import case_of

__all__ = ["StreamCase", "expected", "found", "stream_case", "write_files"]

START = 1_700_000_000  # batch N is at START + N seconds
CHANGE_TYPES = pa.schema(
    [
        ("change", pa.string()),
        ("subscription_id", pa.string()),
        ("expression", pa.string()),
        ("expires_at", pa.timestamp("us", "UTC")),
    ]
)


class StreamCase(NamedTuple):
    base: dict[str, str]
    tables: list[pa.Table]  # the events of each batch
    events: list[list[dict[str, Any]]]  # what they mean, without their ids
    changes: list[list[dict[str, Any]]]


def stream_case(
    seed: int, n_batches: int, n_base: int, n_events: int, n_changes: int
) -> StreamCase:
    draw = random.Random(seed)
    case = case_of("wide", seed, n_base + n_batches * n_changes, n_batches * n_events)
    texts = iter(map(str, case.expressions))
    base = {f"s{k}": next(texts) for k in range(n_base)}
    ids = list(base)
    changes = []
    for n in range(n_batches):
        some: list[dict[str, Any]] = []
        known = sorted({*ids, *(f"n{n}-{k}" for k in range(n_changes))})
        for subscription_id in draw.sample(
            known, n_changes
        ):  # each once: within a batch there is no order
            change = {"change": "unsubscribe", "subscription_id": subscription_id}
            if draw.random() < 0.7:
                end = None
                if draw.random() < 0.4:
                    end = datetime.fromtimestamp(START + n + draw.randint(0, 6), UTC)
                text = next(texts) if draw.random() < 0.9 else "price >"
                change |= {
                    "change": draw.choice(["subscribe", "update"]),
                    "expression": text,
                    "expires_at": end,
                }
                ids.append(subscription_id)
            some.append(change)
        changes.append(some)
    tables = [case.table.slice(n * n_events, n_events) for n in range(n_batches)]
    events = [case.events[n * n_events : (n + 1) * n_events] for n in range(n_batches)]
    return StreamCase(base, tables, events, changes)


def write_files(case: StreamCase, folder: Path, *, batches: range | None = None) -> None:
    """events/N.parquet and changes/N.parquet, in the order of their times."""
    for n in batches or range(len(case.tables)):
        rows = pa.Table.from_pylist(case.changes[n], CHANGE_TYPES)
        for kind, table in (("events", case.tables[n]), ("changes", rows)):
            target = folder / kind / f"{n:04d}.parquet"
            target.parent.mkdir(exist_ok=True)
            hidden = target.with_name(f".{target.name}")
            pq.write_table(table, hidden)
            os.utime(hidden, (START + n, START + n))
            hidden.rename(target)


def streams(spark: Any, folder: Path, case: StreamCase) -> tuple[Any, Any]:
    """Both as streaming DataFrames, a file of each a batch."""
    types = spark.createDataFrame(case.tables[0].slice(0, 1)).schema
    change_types = "change string, subscription_id string, expression string, expires_at timestamp"
    events, changes = (
        spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / kind))
        for kind, schema in (("events", types), ("changes", change_types))
    )
    return events, changes


def expected(case: StreamCase) -> tuple[Counter[tuple[int, str, str]], Counter[tuple[int, str]]]:
    """(batch, event, subscription) of all matches, and (batch, id) of all changes that are bad."""
    live: dict[str, tuple[Any, datetime | None]] = {
        k: (parse(t), None) for k, t in case.base.items()
    }
    matches: Counter[tuple[int, str, str]] = Counter()
    rejected: Counter[tuple[int, str]] = Counter()
    for n, (table, events, changes) in enumerate(
        zip(case.tables, case.events, case.changes, strict=True)
    ):
        now = datetime.fromtimestamp(START + n, UTC)
        for change in changes:
            subscription_id = change["subscription_id"]
            if change["change"] == "unsubscribe":
                live.pop(subscription_id, None)
            elif change["expression"] == "price >":
                rejected[n, subscription_id] += 1
            else:
                end = change["expires_at"]
                if end is None and change["change"] == "update" and subscription_id in live:
                    end = live[subscription_id][1]
                live[subscription_id] = (parse(change["expression"]), end)
        live = {k: v for k, v in live.items() if v[1] is None or v[1] > now}
        for name, event in zip(table.column("event_id").to_pylist(), events, strict=True):
            for subscription_id, (expression, _) in live.items():
                if evaluate(expression, event) is True:
                    matches[n, name, subscription_id] += 1
    return matches, rejected


def found(output: Path) -> tuple[Counter[tuple[int, str, str]], Counter[tuple[int, str]]]:
    """The same, read from the files that a stream has written; duplicates would be counted."""
    matches: Counter[tuple[int, str, str]] = Counter()
    rejected: Counter[tuple[int, str]] = Counter()
    for folder in output.glob("batch_id=*"):
        for file in folder.glob("*.parquet"):
            rows = pq.ParquetFile(file).read().to_pylist()
            n = int(folder.name.partition("=")[2])
            matches.update((n, row["event_id"], row["subscription_id"]) for row in rows)
    for folder in (output / "_quarantine" / "changes").glob("batch_id=*"):
        for file in folder.glob("*.json"):
            rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
            n = int(folder.name.partition("=")[2])
            rejected.update((n, row["id"]) for row in rows)
    return matches, rejected
