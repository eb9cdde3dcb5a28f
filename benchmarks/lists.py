"""Subscriptions about lists: batches of dicts, and one dict at a time.

Each workload of `matchmill.lab.workloads.lists` is loaded, learned from events drawn apart, and
matched in turns. CPU time; `batch` is what `match_many` takes per event, `one` what `match` takes.
A part of the answers is compared with the oracle.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import matchmill as mm
from benchmarks.support.timing import Spread, Target, number, print_table
from matchmill.lab.workloads.lists import LIST_WORKLOADS, list_workload
from matchmill.language.read import read_expression

_TARGETS = {10_000: (25.0, 35.0), 100_000: (120.0, 250.0)}  # batch, one: µs per event
_N_CHECKED = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("workloads", nargs="*", default=list(LIST_WORKLOADS), metavar="WORKLOAD")
    parser.add_argument("-n", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the table; 1 if an answer is wrong."""
    rows = []
    for n in arguments.n:
        for name in arguments.workloads:
            row = _measured(name, n, arguments.events, arguments.rounds)
            if row is None:
                print(f"{name}, {n:,} subscriptions: an answer is wrong")
                return 1
            rows.append(row)
    header = ("workload", "subscriptions", "batch, µs", "", "one, µs", "", "matches", "index, B")
    print_table("µs of CPU time per event", header, rows)
    return 0


class _Turns:
    """Different events in each round: `match` keeps answers."""

    def __init__(self, events: list[dict[str, Any]], rounds: int) -> None:
        self.n_each = max(1, len(events) // rounds)
        self._starts = iter(range(0, self.n_each * rounds, self.n_each))
        self._events = events

    def __next__(self) -> list[dict[str, Any]]:
        start = next(self._starts)
        return self._events[start : start + self.n_each]


def _measured(name: str, n: int, n_events: int, rounds: int) -> tuple[str, ...] | None:
    work = list_workload(name, n, n_events)
    engine = mm.Engine(work.subscriptions, settings=mm.Settings(background=False))
    engine.learn(list_workload(name, 0, 500, seed=2).events)
    engine.compact()
    events, few = work.events, _Turns(work.events, rounds + 1)
    if not _is_right(engine, work.subscriptions, events[:_N_CHECKED]):
        return None
    calls: dict[str, tuple[Callable[[], object], int]] = {
        "batch": (lambda: engine.match_many(events, threads=1), len(events)),
        "one": (lambda: [engine.match(event) for event in next(few)], few.n_each),
    }
    spent: dict[str, list[float]] = {call: [] for call in calls}
    for turn in range(rounds + 1):
        for kind, (call, n_calls) in calls.items():
            start = time.process_time()
            call()
            if turn:  # the first one warms up
                spent[kind].append((time.process_time() - start) / n_calls * 1e6)
    n_matches = sum(map(len, engine.match_many(events))) / len(events)
    n_bytes = sum(s.built.stats().n_bytes for s in engine._store.state.snapshot.segments)
    batch, one = Spread.of(spent["batch"]), Spread.of(spent["one"])
    verdicts = ["", ""]
    if n in _TARGETS:
        pairs = zip(_TARGETS[n], (batch, one), strict=True)
        verdicts = [Target("≤", limit).verdict(found.median) for limit, found in pairs]
    return (
        name, f"{n:,}", str(batch), verdicts[0], str(one), verdicts[1],
        number(n_matches), number(n_bytes / n),
    )  # fmt: skip


def _is_right(
    engine: mm.Engine, subscriptions: dict[str, Any], events: list[dict[str, Any]]
) -> bool:
    """Compare with the oracle."""
    read = {i: read_expression(e) for i, e in subscriptions.items()}
    for event, ids in zip(events, engine.match_many(events), strict=True):
        wanted = {i for i, e in read.items() if mm.evaluate(e, event) is True}
        if set(ids) != wanted or engine.match(event) != wanted:
            return False
    return True
