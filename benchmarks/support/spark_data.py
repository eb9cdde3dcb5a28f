"""Workloads as files that Spark reads, and sums by which sets of pairs are compared.

subscriptions    subscription_id | expression
events           event_id | attributes: map<string, bigint>
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.support.flat_engine import workload_texts
from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.lab.workloads.flat import FlatEvents, Workload

__all__ = [
    "PairSums",
    "cpu_seconds",
    "event_batch",
    "event_table",
    "frame_sums",
    "pair_sums",
    "start_spark",
    "subscription_table",
    "table_of",
    "write_parquet",
]


def start_spark(folder: Path, memory: str) -> Any:
    """Start a session of all cores whose workers find this script's modules."""
    from matchmill import spark as ms

    root = str(Path(__file__).parents[2])
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [root, os.environ.get("PYTHONPATH", "")])
    )
    return ms.session(
        **{
            "spark.ui.enabled": "false",
            "spark.driver.memory": memory,
            "spark.local.dir": str(folder / "local"),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
        }
    )


def subscription_table(workload: Workload, first_id: int = 0) -> pa.Table:
    """Return the subscriptions as a table of ids and texts."""
    texts = workload_texts(workload)
    ids = np.arange(first_id, first_id + len(texts), dtype=np.int64)
    return pa.table({"subscription_id": ids, "expression": texts.cast(pa.string())})


def event_table(workload: Workload) -> pa.Table:
    """Return the events as a table, one column per attribute."""
    events = workload.events
    names = pa.array([workload.domain.name(a) for a in range(workload.domain.n_attributes)])
    keys = names.take(pa.array(events.attributes))
    maps = pa.MapArray.from_arrays(
        pa.array(events.offsets, pa.int32()), keys, pa.array(events.codes - 1)
    )
    return pa.table({"event_id": np.arange(events.n_events), "attributes": maps})


def write_parquet(table: pa.Table, folder: Path, n_files: int) -> str:
    """Write a folder of so many files, so that Spark has as many tasks."""
    folder.mkdir(parents=True)
    bounds = np.linspace(0, table.num_rows, n_files + 1).astype(np.int64)
    for n in range(n_files):
        part = table.slice(int(bounds[n]), int(bounds[n + 1] - bounds[n]))
        pq.write_table(part, folder / f"{n:04d}.parquet")
    return str(folder)


def table_of(workload: Workload) -> ConjunctionTable:
    """Return the subscriptions in codes, which are keys: without any text or encoding."""
    flat = workload.subscriptions
    return ConjunctionTable(
        np.arange(flat.n_clauses, dtype=np.int64),
        flat.clause_offsets,
        flat.attributes,
        flat.interval_offsets,
        flat.lows,
        flat.highs,
    )


def event_batch(events: FlatEvents) -> EventBatch:
    """Return the events as indexes take them."""
    return EventBatch(events.offsets, events.attributes, events.codes)


# -- comparing ------------------------------------------------------------------------------------


class PairSums(NamedTuple):
    """A missing, an extra or an exchanged pair changes one of these, but for rare chance."""

    n_pairs: int
    events: int
    subscriptions: int
    mixed: int


_PRIME = 1_000_003


def pair_sums(events: np.ndarray, subscriptions: np.ndarray) -> PairSums:
    """Sum up pairs, so that two sets of them can be compared."""
    mixed = (events * 31 + subscriptions * 17 + events * subscriptions) % _PRIME
    return PairSums(len(events), int(events.sum()), int(subscriptions.sum()), int(mixed.sum()))


def frame_sums(pairs: Any) -> PairSums:
    """Sum up the pairs of a DataFrame (event, subscription)."""
    e, s = pairs.columns
    row = pairs.selectExpr(
        "count(*)", f"coalesce(sum({e}), 0)", f"coalesce(sum({s}), 0)",
        f"coalesce(sum(({e} * 31 + {s} * 17 + {e} * {s}) % {_PRIME}), 0)",
    ).collect()[0]  # fmt: skip
    return PairSums(*map(int, row))


def cpu_seconds() -> dict[str, float]:
    """CPU time of the processes below this one so far: Java's, and Python's."""
    found = {"java": 0.0, "python": 0.0}
    for process in psutil.Process().children(recursive=True):
        try:
            times, name = process.cpu_times(), process.name()
        except psutil.NoSuchProcess:
            continue
        kind = "java" if "java" in name else "python"
        found[kind] += times.user + times.system
    return found
