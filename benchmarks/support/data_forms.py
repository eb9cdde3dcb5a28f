"""Rows of `script/bench data`: lists, arrays of objects, the same events in every form, memory."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import matchmill as mm
from benchmarks.support.data_rows import TURNS, Measured, Size, as_list, one_by_one, row
from matchmill.lab.workloads.lists import list_workload

# -- lists ----------------------------------------------------------------------------------------


def _lists(name: str, n: int, *, single: bool) -> Callable[[Size], Measured]:
    def prepare(size: Size) -> Measured:
        work = list_workload(name, size.of(n), TURNS * max(50, size.n_events // 8))
        engine = mm.Engine(work.subscriptions)
        engine.learn(list_workload(name, 0, 500, seed=2).events)
        engine.compact()
        return (one_by_one if single else as_list)(engine, work.events)

    return prepare


for _name, _what in (
    ("patterns", "JSON patterns on lists"),
    ("contains", "contains any, all, none"),
):
    for _n, _of_list, _of_one in ((10_000, 25, 35), (100_000, 120, 250)):
        row(f"{_what}, {_n:,} subscriptions: list of dicts", _of_list)(
            _lists(_name, _n, single=False)
        )
        row("the same, one by one", _of_one)(_lists(_name, _n, single=True))


# -- arrays of objects, in every form -------------------------------------------------------------

Make = Callable[[list[dict[str, Any]]], Any]


def _orders(n: int, *, odd: float = 0.0) -> list[dict[str, Any]]:
    """Return events with an array of objects; a part of them has a null inside of it."""
    draw = random.Random(9)
    events = []
    for i in range(n):
        items = [
            {
                "sku": f"s{draw.randrange(500)}",
                "price": draw.randrange(1000) / 4,
                "n": draw.randrange(5),
            }
            for _ in range(draw.randrange(1, 5))
        ]
        if draw.random() < odd:
            items[0]["n"] = None  # type: ignore[assignment]
        at = f"2024-{1 + i % 12:02}-{1 + i % 28:02}T10:00:{i % 60:02}Z"
        events.append({"order": i, "country": f"c{draw.randrange(30)}", "at": at, "items": items})
    return events


def _order_engine(size: Size) -> mm.Engine:
    draw = random.Random(10)
    texts = {}
    for i in range(size.of(10_000)):
        condition = draw.choice(
            (
                f"any(items.sku) = 's{draw.randrange(500)}'",
                f"any(items.price) > {200 + draw.random() * 50}",
            )
        )
        text = f"country = 'c{draw.randrange(30)}' and {condition}"
        texts[i] = text + (" and at >= timestamp '2024-06-01 00:00'" if i % 2 else "")
    return mm.Engine(texts)


def _in_form(make: Make, odd: float = 0.0) -> Callable[[Size], Measured]:
    """Match the orders in a form that `make` gives; reading it is part of the call."""

    def prepare(size: Size) -> Measured:
        engine, events = _order_engine(size), _orders(size.n_events, odd=odd)
        return partial(engine.match_many, make(events), threads=1), len(events)

    return prepare


def _json_lines(events: list[dict[str, Any]]) -> bytes:
    return "\n".join(map(json.dumps, events)).encode()


def _arrow(events: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    return pa.Table.from_pylist(events)


def _from_arrow(kind: str) -> Callable[[list[dict[str, Any]]], Any]:
    def make(events: list[dict[str, Any]]) -> Any:
        if kind == "polars":
            import polars as pl

            return pl.from_arrow(_arrow(events))
        if kind == "reader":
            return list(_arrow(events).to_batches(1000))
        return _arrow(events).to_pandas()

    return make


row("arrays of objects and ISO times, 10k subscriptions: list of dicts")(_in_form(list))
row("… JSON lines")(_in_form(_json_lines))
row("… JSON lines, 1 in 1,000 with a null inside")(_in_form(_json_lines, odd=0.001))
row("… JSON lines, 1 in 10 with a null inside")(_in_form(_json_lines, odd=0.1))
row("… Arrow")(_in_form(_arrow))
row("… record batches of 1,000")(_in_form(_from_arrow("reader")))
row("… polars")(_in_form(_from_arrow("polars")))
row("… pandas")(_in_form(_from_arrow("pandas")))


# -- memory ---------------------------------------------------------------------------------------


def _million(size: Size) -> tuple[mm.Engine, Any]:
    """Return a million events, if the option --events is not given, with two matches each."""
    import numpy as np
    import pyarrow as pa

    draw = np.random.default_rng(11)
    n = 500 * size.n_events
    table = pa.table({"a": draw.integers(0, 1000, n), "b": draw.random(n), "c": draw.random(n)})
    return mm.Engine({i: f"a = {i % 1000} and b < 0.2" for i in range(size.of(10_000))}), table


@row("memory that match_many takes for a million events in Arrow, 2 matches each", 200, "MB")
def million_memory(size: Size) -> Measured:
    engine, table = _million(size)

    def match() -> float:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins at what there is now
        before = _status("VmRSS")
        engine.match_many(table, threads=1)
        return (_status("VmHWM") - before) / 1024

    return match, 1


@row("time of the same")
def million_time(size: Size) -> Measured:
    engine, table = _million(size)
    return partial(engine.match_many, table, threads=1), table.num_rows


def _status(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return float(line.split()[1])
    raise LookupError(name)
