"""Single insertions and deletions through the engine, per second, at a million subscriptions.

For the indexes that change in place, and for the default. An engine in a folder (`sync="never"`)
gets new subscriptions by `subscribe`, one call each, and loses as many by `unsubscribe`. After that
its answers to some events are compared with those of an engine with the index `scan`. The CPU time
is that of all threads, with what is done in the background; a busy machine disturbs it less.

    script/bench changes --workload be01 -n 1000000
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import matchmill as mm
from benchmarks.support.flat_engine import save_engine, take_subscriptions, workload_texts
from benchmarks.support.timing import number, print_table
from matchmill.lab.workloads.flat import event_dicts
from matchmill.lab.workloads.registry import generate
from matchmill.lab.workloads.standard import STANDARD, standard

_INDEXES = "mill,be_tree,pst_bloom,pst_hash,op_index,op_index_cnf,counting,counting_lists"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("-n", type=int, default=1_000_000, help="subscriptions")
    parser.add_argument("--workload", default="be01")
    parser.add_argument("--indexes", default=_INDEXES, help="default: %(default)s")
    parser.add_argument("--changes", type=int, default=2000, help="insertions, and deletions")
    parser.add_argument("--events", type=int, default=100)


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print a table."""
    n, n_changes = arguments.n, arguments.changes
    share = (n + n_changes) / STANDARD[arguments.workload].n_subscriptions
    workload = generate(standard(arguments.workload, share).changed(n_events=arguments.events))
    new = take_subscriptions(workload, np.arange(n, workload.subscriptions.n_clauses))
    texts = workload_texts(new).to_pylist()
    gone = np.random.default_rng(1).choice(n, n_changes, replace=False).tolist()
    events = list(event_dicts(workload))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        save_engine(take_subscriptions(workload, np.arange(n)), Path(folder) / "e", index="scan")
        expected: list[set[Any]] | None = None
        for index in ["scan", *arguments.indexes.split(",")]:
            copy = Path(folder) / index
            shutil.copytree(Path(folder) / "e", copy)
            start = time.perf_counter()
            engine = mm.Engine.open(copy, index=index, settings=mm.Settings(sync="never"))
            opened = time.perf_counter() - start
            engine, figures = _changed(engine, texts, gone, n)
            answers = _answers(engine, events)
            expected = answers if expected is None else expected
            if answers != expected:
                print(f"{index}: the answers differ")
                return 1
            n_segments = len(engine.stats().index)
            engine.close()
            shutil.rmtree(copy)
            rows.append((index, *figures, number(opened), n_segments))
    print_table(
        f"{arguments.workload}: single changes at {n:,} subscriptions, per second",
        (
            *("index", "insertions", "CPU µs", "median µs", "longest ms"),
            *("deletions", "CPU µs", "median µs", "longest ms", "s to build", "segments"),
        ),
        rows,
    )
    return 0


def _changed(
    engine: mm.Engine, texts: list[str], gone: list[int], first: int
) -> tuple[mm.Engine, tuple[Any, ...]]:
    """Make all changes; return also what they took."""
    insertions = _figures(lambda k: engine.subscribe(first + k, texts[k]), len(texts))
    deletions = _figures(lambda k: engine.unsubscribe(gone[k]), len(gone))
    return engine, (*insertions, *deletions)


def _figures(call: Callable[[int], None], n: int) -> tuple[str, ...]:
    """Return how many calls there are per second, and what one takes."""
    call(0)  # compiles kernels
    seconds = np.empty(n - 1)
    cpu = time.process_time()
    for k in range(1, n):
        start = time.perf_counter()
        call(k)
        seconds[k - 1] = time.perf_counter() - start
    cpu = time.process_time() - cpu
    return (
        number(len(seconds) / seconds.sum()),
        number(cpu / len(seconds) * 1e6),
        number(float(np.median(seconds)) * 1e6),
        number(seconds.max() * 1e3),
    )


def _answers(engine: mm.Engine, events: list[dict[str, Any]]) -> list[set[Any]]:
    return list(engine.match_many(events))
