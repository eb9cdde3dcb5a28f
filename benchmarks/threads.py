"""A batch of events in one thread and in two: how much quicker that is.

Events as an Arrow table through `Engine.match_many`; its matches are those of a bare index, too.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import matchmill as mm
from benchmarks.support.flat_engine import save_engine
from benchmarks.support.timing import Spread, interleaved, print_table, ratio
from matchmill.index.base import ClauseMatches
from matchmill.index.registry import DEFAULT_INDEX, index_class
from matchmill.lab.experiments.match_digests import summarize
from matchmill.lab.experiments.measure import event_batch, table_of
from matchmill.lab.workloads.flat import Workload, event_dicts
from matchmill.lab.workloads.registry import generate
from matchmill.lab.workloads.standard import standard

Match = Callable[[int], ClauseMatches]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("-n", type=int, default=1_000_000, help="subscriptions")
    parser.add_argument("--workload", default="be01", choices=("be1", "be01", "dense", "zipf"))
    parser.add_argument("--events", type=int, default=4000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the table."""
    spec = standard(arguments.workload).changed(
        n_subscriptions=arguments.n, n_events=arguments.events
    )
    workload = generate(spec)
    match = _in_engine(workload)
    index = index_class(DEFAULT_INDEX).build(table_of(workload.subscriptions))
    counts = (1, arguments.threads)
    answers = [
        summarize(matches, np.arange(arguments.n), arguments.events)
        for matches in (index.match_batch(event_batch(workload.events)), *map(match, counts))
    ]
    del index
    if any(a.problem for a in answers) or len({a.total for a in answers}) > 1:
        print(f"the index, one thread and {arguments.threads} threads find different matches")
        return 1
    seconds = interleaved({str(n): partial(match, n) for n in counts}, arguments.rounds)
    rows = [
        (
            n,
            Spread.of(s / arguments.events * 1e6 for s in seconds[str(n)]),
            f"{ratio(seconds['1'], seconds[str(n)])}x",
        )
        for n in counts
    ]
    print_table(
        f"{arguments.n:,} subscriptions ({arguments.workload}), {arguments.events:,} events, "
        f"{int(answers[0].counts.sum()):,} matches",
        ("threads", "µs per event", "times as fast as one"),
        rows,
    )
    return 0


def _in_engine(workload: Workload) -> Match:
    names = map(workload.domain.name, range(workload.domain.n_attributes))
    schema = pa.schema([(name, pa.int64()) for name in names])  # from the rows: the first one's
    table = pa.Table.from_pylist(list(event_dicts(workload)), schema)
    with tempfile.TemporaryDirectory() as folder:
        save_engine(workload, Path(folder) / "engine")
        engine = mm.Engine.open(Path(folder) / "engine", read_only=True)  # stays mapped

    def match(threads: int) -> ClauseMatches:
        matches = engine.match_many(table, threads=threads)
        return ClauseMatches(matches.offsets, matches.numbers)

    return match
