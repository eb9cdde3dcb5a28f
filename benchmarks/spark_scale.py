"""Tens of millions of subscriptions by Spark: made in tasks, built in shards, a sample checked.

Each task makes some hundred thousand subscriptions by the workload's generator, as texts; they are
written to Parquet files and never are in one process together. The index is built of the files.
Some events are matched, and the pairs compared with those of brute force: every task makes its
subscriptions again and scans them as numbers, without texts, parser or index.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.spark import report_build
from benchmarks.support.spark_data import (
    event_batch,
    event_table,
    frame_sums,
    start_spark,
    subscription_table,
    table_of,
)
from benchmarks.support.timing import number, print_table
from matchmill.index.registry import index_class
from matchmill.lab.workloads.flat import FlatEvents, Workload
from matchmill.lab.workloads.registry import generate
from matchmill.lab.workloads.spec import WorkloadSpec
from matchmill.lab.workloads.standard import standard


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("-n", type=int, default=50_000_000, help="subscriptions")
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--size", type=int, help="predicates of one, on average (default: 7)")
    parser.add_argument("--probability", type=float, default=1e-6, help="that one matches")
    parser.add_argument("--chunk", type=int, default=250_000, help="subscriptions made by a task")
    parser.add_argument("--checked", type=int, default=100, help="events that are checked")
    parser.add_argument("--shards", type=int, help="of the index")
    parser.add_argument("--memory", default="4g", help="of the JVM")
    parser.add_argument("--folder", type=Path, help="where to write (default: a temporary folder)")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the table."""
    from matchmill import spark as ms

    spec = standard("be01").changed(
        n_events=arguments.events, matching_probability=arguments.probability
    )
    if arguments.size is not None:
        spec = spec.changed(subscription_size=arguments.size)
    parts = _Parts(spec, arguments.n, arguments.chunk)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
        folder = Path(temporary)
        spark = start_spark(folder, arguments.memory)
        tasks = spark.range(0, parts.n_tasks, 1, parts.n_tasks)
        start = time.perf_counter()
        made = tasks.mapInArrow(_maker(parts), "subscription_id bigint, expression string")
        made.write.parquet(str(folder / "subscriptions"))
        making = time.perf_counter() - start
        start = time.perf_counter()
        rows = spark.read.parquet(str(folder / "subscriptions"))
        index = ms.build(rows, folder / "index", shards=arguments.shards)
        report_build(index, time.perf_counter() - start)

        workload = generate(parts.part(0))
        events = spark.createDataFrame(event_table(workload)).repartition(8)
        found = ms.match(index, events, layout="map")
        first = frame_sums(found.filter(f"event_id < {arguments.checked}"))  # maps all files
        start = time.perf_counter()
        n_pairs = found.count()
        seconds = time.perf_counter() - start
        some = _first_events(workload.events, arguments.checked)
        brute = frame_sums(
            tasks.mapInArrow(_scanner(parts, some), "event bigint, subscription bigint")
        )
        spark.stop()
    verdict = "the same" if first == brute else f"OTHERS: {first} instead of {brute}"
    print_table(
        f"Matching with {arguments.n:,} subscriptions",
        ("what", "figure"),
        [
            ("making the subscriptions", f"{making:.0f} s"),
            ("events", f"{arguments.events:,}, {number(arguments.events / seconds)} a second"),
            ("pairs", f"{n_pairs:,}"),
            (
                f"pairs of {arguments.checked} events by brute force",
                f"{brute.n_pairs:,}: {verdict}",
            ),
        ],
    )
    return int(first != brute)


class _Parts(NamedTuple):
    """The subscriptions of each task: a seed of its own, and as many but for the last."""

    spec: WorkloadSpec
    n: int
    chunk: int

    @property
    def n_tasks(self) -> int:
        return -(-self.n // self.chunk)

    def part(self, task: int) -> WorkloadSpec:
        n = min(self.chunk, self.n - task * self.chunk)
        return self.spec.changed(n_subscriptions=n, seed=self.spec.seed + task)

    def workload(self, task: int) -> Workload:
        return generate(self.part(task).changed(n_events=1))


def _tasks(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _maker(parts: _Parts) -> Task:
    def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for task in _tasks(batches):
            made = subscription_table(parts.workload(task), task * parts.chunk)
            yield from made.to_batches(16384)

    return make


def _first_events(events: FlatEvents, n: int) -> FlatEvents:
    stop = int(events.offsets[min(n, events.n_events)])
    return FlatEvents(events.offsets[: n + 1], events.attributes[:stop], events.codes[:stop])


def _scanner(parts: _Parts, events: FlatEvents) -> Task:
    def scan(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for task in _tasks(batches):
            index = index_class("scan").build(table_of(parts.workload(task)))
            found = index.match_batch(event_batch(events))
            owners = np.repeat(np.arange(found.n_events), np.diff(found.offsets))
            ids = found.clause_ids.astype(np.int64) + task * parts.chunk
            yield pa.RecordBatch.from_pydict({"event": owners, "subscription": ids})

    return scan
