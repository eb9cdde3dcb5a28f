"""OpIndex on both normal forms: conjunctions of disjunctions by bitmaps, and the reverse.

Figure 13 of the OpIndex paper. The two workloads have as many subscriptions and clauses of the same
sizes, but they are different subscriptions: see how each form grows, not which is faster. The
engine's own way with conjunctions of disjunctions, which works with every index, runs beside, on as
many as `--engine` says. A sample is compared with the oracle: some subscriptions with every event,
and some of the matches found.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.support.timing import Spread, interleaved, number, print_table
from matchmill import Engine
from matchmill.index.base import ClauseMatches
from matchmill.lab.experiments.measure import event_batch, table_of
from matchmill.lab.workloads.flat import Workload, event_dicts, subscription_texts
from matchmill.lab.workloads.op_index import CnfWorkload, cnf, cnf_texts, op_index
from matchmill.lab.workloads.spec import WorkloadSpec
from matchmill.language.evaluate import evaluate
from matchmill.language.expression import Expression
from matchmill.language.parser import parse
from matchmill.papers.op_index import OpIndex, OpIndexCnf
from matchmill.papers.op_index.cnf.cnf_table import CnfTable

_N_SAMPLE = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("-n", default="100000,300000,1000000", help="subscriptions, a row each")
    parser.add_argument("--clauses", default="5", help="clauses at most, a row each")
    parser.add_argument("--events", type=int, default=100)
    parser.add_argument("--engine", type=int, default=100_000, help="subscriptions of the engine")
    parser.add_argument("--rounds", type=int, default=5)


class _Case(NamedTuple):
    form: str
    build_seconds: float
    n_bytes: int
    match: Callable[[], object]
    pairs: set[tuple[int, int]]  # event, subscription
    text: Callable[[int], str]
    n: int
    events: list[dict[str, Any]]


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the table."""
    rows, n_wrong = [], 0
    for n in _numbers(arguments.n):
        for n_clauses in _numbers(arguments.clauses):
            more = {"max_clauses": n_clauses}
            spec = WorkloadSpec("op_index", n, arguments.events, parameters=more)
            cases = [_dnf(op_index(spec)), _cnf(cnf(spec))]
            if n <= arguments.engine:
                cases.append(_engine(cnf(spec)))
            seconds = interleaved({case.form: case.match for case in cases}, arguments.rounds)
            for case in cases:
                n_checked, n_bad = _check(case)
                n_wrong += n_bad
                spread = Spread.of(1e6 * s / arguments.events for s in seconds[case.form])
                per_event = len(case.pairs) / arguments.events
                size = number(case.n_bytes / n) if case.n_bytes else ""
                rows.append(
                    (n, n_clauses, case.form, spread, number(case.build_seconds), size,
                     number(per_event), n_checked, n_bad)
                )  # fmt: skip
                print(*map(str, rows[-1]), flush=True)
    print_table(
        "Normal forms, 20,000 attributes",
        ("subscriptions", "clauses ≤", "form", "µs per event", "build s", "bytes/sub.", "matches",
         "checked with the oracle", "wrong"),
        rows,
        ["The engine's time is with encoding the events, its build with parsing the texts."],
    )  # fmt: skip
    return 1 if n_wrong else 0


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def both_forms(n: int, n_clauses: int, n_events: int) -> dict[str, Callable[[], object]]:
    """Build both forms; the functions that match all events."""
    spec = WorkloadSpec("op_index", n, n_events, parameters={"max_clauses": n_clauses})
    return {
        "disjunctions of conjunctions": _dnf(op_index(spec)).match,
        "conjunctions of disjunctions": _cnf(cnf(spec)).match,
    }


# -- contenders -----------------------------------------------------------------------------------


def _dnf(workload: Workload) -> _Case:
    batch = event_batch(workload.events)
    started = time.perf_counter()
    index = OpIndex.build(table_of(workload.subscriptions))
    seconds = time.perf_counter() - started
    owners = workload.subscriptions.owners
    found = index.match_batch(batch)
    pairs = _pairs(found, lambda clauses: owners[clauses])

    def text(number: int) -> str:
        return next(subscription_texts(workload, number, number + 1))[1]

    n = int(owners[-1]) + 1
    n_bytes = index.stats().n_bytes
    return _Case(
        "DNF", seconds, n_bytes, lambda: index.match_batch(batch), pairs, text, n,
        list(event_dicts(workload)),
    )  # fmt: skip


def _cnf(workload: CnfWorkload) -> _Case:
    batch = event_batch(workload.events)
    table = CnfTable(
        np.arange(workload.n_subscriptions),
        workload.group_offsets,
        workload.predicate_offsets,
        workload.attributes,
        np.arange(len(workload.attributes) + 1),
        workload.lows,
        workload.highs,
    )
    started = time.perf_counter()
    index = OpIndexCnf.build(table)
    seconds = time.perf_counter() - started
    pairs = _pairs(index.match_batch(batch), lambda ids: ids)
    return _Case(
        "CNF by bitmaps", seconds, index.stats().n_bytes, lambda: index.match_batch(batch), pairs,
        _text_of(workload), workload.n_subscriptions, _events_of(workload),
    )  # fmt: skip


def _engine(workload: CnfWorkload) -> _Case:
    events = _events_of(workload)
    engine = Engine(index="mill")
    started = time.perf_counter()
    engine.subscribe_many((str(number), text) for number, text in cnf_texts(workload))
    seconds = time.perf_counter() - started
    found = engine.match_many(events)
    pairs = {(e, int(i)) for e, ids in enumerate(found) for i in ids}
    return _Case(
        "CNF in an engine", seconds, 0, lambda: engine.match_many(events, threads=1), pairs,
        _text_of(workload), workload.n_subscriptions, _events_of(workload),
    )  # fmt: skip


def _events_of(workload: CnfWorkload) -> list[dict[str, Any]]:
    return list(event_dicts(workload, workload.events))


def _text_of(workload: CnfWorkload) -> Callable[[int], str]:
    return lambda number: next(cnf_texts(workload, number, number + 1))[1]


def _pairs(
    found: ClauseMatches, subscriptions: Callable[[np.ndarray], np.ndarray]
) -> set[tuple[int, int]]:
    events = np.repeat(np.arange(len(found.offsets) - 1), np.diff(found.offsets))
    return set(zip(events.tolist(), subscriptions(found.clause_ids).tolist(), strict=True))


# -- the oracle -----------------------------------------------------------------------------------


def _check(case: _Case) -> tuple[int, int]:
    """How many pairs of an event and a subscription were compared, and how many were wrong."""
    rng = random.Random(1)
    n_checked = n_wrong = 0
    for e, which, holds in _judged(case, rng):
        n_checked += 1
        n_wrong += holds != ((e, which) in case.pairs)
    return n_checked, n_wrong


def _judged(case: _Case, rng: random.Random) -> Iterator[tuple[int, int, bool]]:
    events = case.events
    for which in rng.sample(range(case.n), min(case.n, _N_SAMPLE)):
        yield from _truths(parse(case.text(which)), which, events, range(len(events)))
    for e, which in rng.sample(sorted(case.pairs), min(len(case.pairs), _N_SAMPLE)):
        yield from _truths(parse(case.text(which)), which, events, [e])


def _truths(
    expression: Expression, number: int, events: list[dict[str, Any]], chosen: Iterable[int]
) -> Iterator[tuple[int, int, bool]]:
    for e in chosen:
        yield e, number, evaluate(expression, events[e]) is True
