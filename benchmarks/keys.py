"""What the keys of an engine cost each index, compared with the codes that experiments use.

The same clauses in three forms: in codes, as experiments give them to an index; in the keys of an
engine, which have about 62 bits; and in the segments of an engine, which turn keys into narrow
codes again. Measured is the way from encoded events to clauses, and the bytes of the index with
its codes; the clauses that an engine keeps beside each index are not counted. All three must find
the same clauses. Times are CPU times, so that neighbours of the machine disturb them less. The
targets are held against the ratio of the least of many short rounds ("at best"): what is beyond
that in a round is due to the machine.

    script/bench keys --workloads be01,dense -n 50000
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import Any

import numpy as np

from benchmarks.support.flat_engine import encode_workload
from benchmarks.support.timing import Spread, Target, interleaved, print_table, ratio
from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.encoding.event_encoder import encode_events
from matchmill.encoding.events.dicts import DictEvents
from matchmill.engine.state import new_segments
from matchmill.index.base import ClauseMatches
from matchmill.index.registry import INDEXES, index_class
from matchmill.lab.workloads.flat import Workload, event_dicts
from matchmill.lab.workloads.registry import generate
from matchmill.lab.workloads.standard import STANDARD, standard
from matchmill.settings import DEFAULT_SETTINGS

TARGET = Target("≤", 1.2, "x")
_NOT_ASKED = {"sql_grouped", "sql_pivot", "sql_sequential", "counting_bytes"}  # too slow, too large

_OPTIONS: dict[str, dict[str, Any]] = {"be_tree": {"self_adjust": False}}  # the same tree


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("-n", type=int, default=50_000, help="subscriptions")
    parser.add_argument("--workloads", default="be01,dense")
    parser.add_argument("--indexes", help="names of the registry; all if not given")
    parser.add_argument("--events", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=101)


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print a table for each workload."""
    names = sorted(set(INDEXES) - _NOT_ASKED)
    if arguments.indexes:
        names = arguments.indexes.split(",")
    for workload_name in arguments.workloads.split(","):
        share = arguments.n / STANDARD[workload_name].n_subscriptions
        spec = standard(workload_name, share).changed(n_events=arguments.events)
        workload = generate(spec)
        rows = []
        for name in names:
            row = _compare(name, workload, arguments.rounds)
            if row is None:
                print(f"{name}: the answers differ")
                return 1
            rows.append(row)
        print_table(
            f"{workload_name}: {arguments.n:,} subscriptions, CPU µs per event, bytes per clause",
            (
                *("index", "codes", "keys", "engine", "engine / codes", "at best", "target"),
                *("bytes: codes", "keys", "engine", "engine / codes", "target"),
            ),
            rows,
        )
    return 0


def _compare(name: str, workload: Workload, rounds: int) -> tuple[Any, ...] | None:
    flat = workload.subscriptions
    ids = np.arange(flat.n_clauses, dtype=np.int64)
    codes = ConjunctionTable(ids, *flat[1:])
    dimensions, keys = encode_workload(workload)
    raw_events = EventBatch(*workload.events)
    events = encode_events(dimensions, DictEvents(list(event_dicts(workload))).columns())
    kind = index_class(name)
    options = _OPTIONS.get(name, {})
    in_codes, in_keys = kind.build(codes, None, **options), kind.build(keys, None, **options)
    segments = new_segments(kind, DEFAULT_SETTINGS, options)
    segments.insert(keys)
    calls = {
        "codes": partial(in_codes.match_batch, raw_events),
        "keys": partial(in_keys.match_batch, events),
        "engine": partial(segments.match_batch, events),
    }
    answers = [_in_order(call()) for call in calls.values()]
    if not all(
        np.array_equal(a, b) for one in answers for a, b in zip(one, answers[0], strict=True)
    ):
        return None
    seconds = interleaved(calls, rounds, clock=time.process_time)
    n_events = raw_events.n_events
    micros = [Spread.of(s / n_events * 1e6 for s in seconds[which]) for which in calls]
    slower = ratio(seconds["engine"], seconds["codes"])
    at_best = min(seconds["engine"]) / min(seconds["codes"])
    n_bytes = [
        in_codes.stats().n_bytes,
        in_keys.stats().n_bytes,
        sum(one.n_bytes for one in segments.stats()),
    ]
    larger = n_bytes[2] / n_bytes[0]
    return (
        name,
        *micros,
        slower,
        f"{at_best:.2f}",
        TARGET.verdict(at_best),
        *(round(n / flat.n_clauses) for n in n_bytes),
        f"{larger:.2f}",
        TARGET.verdict(larger),
    )


def _in_order(matches: ClauseMatches) -> tuple[np.ndarray, np.ndarray]:
    events = np.repeat(np.arange(matches.n_events), np.diff(matches.offsets))
    return matches.offsets, matches.clause_ids[np.lexsort((matches.clause_ids, events))]
