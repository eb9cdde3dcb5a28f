"""Subscriptions inserted one at a time, each visible to the next match, and deleted one by one.

For the indexes that change in place. After each insertion an event made of the subscription's own
values is matched and must find it. At the end nothing may be left: the pools of memory are looked
at, too, and what is still in use is printed.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.support.timing import number, print_table
from matchmill.encoding.conjunction_table import ABSENT_KEY, ConjunctionTable, take_clauses
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.registry import index_class
from matchmill.lab.experiments.measure import table_of
from matchmill.lab.workloads.registry import generate
from matchmill.lab.workloads.standard import standard
from matchmill.papers.common.pools import Rows, Spans, rows_in_use, spans_in_use


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("--indexes", default="pst_bloom,pst_hash,be_tree,op_index,counting")
    parser.add_argument("-n", type=int, default=1_000_000, help="subscriptions")
    parser.add_argument("--workload", default="be01")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the table."""
    spec = standard(arguments.workload).changed(n_subscriptions=arguments.n, n_events=1)
    table = table_of(generate(spec).subscriptions)
    rows, n_missed = [], 0
    for name in arguments.indexes.split(","):
        index: Any = index_class(name).build(take_clauses(table, np.empty(0, np.int64)))
        seconds: Counter[str] = Counter()
        missed = _insert(index, table, seconds)
        n_bytes = index.stats().n_bytes
        for clause in range(table.n_clauses):
            start = time.perf_counter()
            index.delete(table.clause_ids[clause : clause + 1])
            seconds["delete"] += time.perf_counter() - start
        event = _event(table, table.n_clauses - 1)
        missed += len(index.match_batch(event).clause_ids)  # found, though it is gone
        n_missed += missed
        each = {what: number(1e6 * total / table.n_clauses) for what, total in seconds.items()}
        rows.append((name, each["insert"], each["match"], each["delete"], n_bytes // 2**20, missed))
        print(f"{name}: in use at the end: {_in_use(index) or 'nothing is pooled'}", flush=True)
    print_table(
        f"{table.n_clauses:,} subscriptions of {arguments.workload}, one at a time",
        ("index", "insert µs", "match µs", "delete µs", "MiB when full", "wrong"),
        rows,
    )
    return 1 if n_missed else 0


def _insert(index: Any, table: ConjunctionTable, seconds: Counter[str]) -> int:
    """Insert and match; how often what was inserted was not found."""
    missed = 0
    for clause in range(table.n_clauses):
        one = take_clauses(table, np.array([clause]))
        event = _event(table, clause)
        start = time.perf_counter()
        index.insert(one)
        between = time.perf_counter()
        found = index.match_batch(event).clause_ids
        seconds["match"] += time.perf_counter() - between
        seconds["insert"] += between - start
        missed += table.clause_ids[clause] not in found
    return missed


def _event(table: ConjunctionTable, clause: int) -> EventBatch:
    """Return an event that satisfies a clause: the least value of each of its predicates."""
    first, end = table.clause_offsets[clause : clause + 2]
    keys = table.lows[table.interval_offsets[first:end]]
    present = keys != ABSENT_KEY
    dimensions = table.dimensions[first:end][present]
    return EventBatch(np.array([0, len(dimensions)]), dimensions, keys[present])


def _in_use(index: Any) -> str:
    found = (pool for value in vars(index).values() for pool in _pools(value, ""))
    return ", ".join(f"{n:,} of {what}" for what, n in found)


def _pools(value: Any, name: str) -> Iterator[tuple[str, int]]:
    if isinstance(value, Rows):
        yield name, rows_in_use(value)
    elif isinstance(value, Spans):
        yield name, spans_in_use(value)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for field in value._fields:
            yield from _pools(getattr(value, field), f"{name}.{field}".lstrip("."))
