"""What statistics from a history of events bring to an index, against none and a sample.

Spark counts the history (`matchmill.spark.statistics`), and the same index is built without
statistics, with those of Spark, and with a sample of 1,024 events. Needs PySpark and Java.

In the workload `differing` subscribers ask for all attributes equally often, but events have some
far more often than others (Zipf). Standard workloads are the other case: there both have one
popularity.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

import numpy as np

from benchmarks.support.flat_engine import encode_workload
from benchmarks.support.timing import Spread, interleaved, number, print_table, ratio
from matchmill.encoding.event_encoder import encode_events
from matchmill.encoding.events.read import read_events
from matchmill.index.base import Index
from matchmill.index.event_sample import build_statistics
from matchmill.index.registry import index_class
from matchmill.lab.workloads.flat import event_dicts
from matchmill.lab.workloads.registry import generate
from matchmill.lab.workloads.spec import WorkloadSpec
from matchmill.lab.workloads.standard import standard

_SAMPLE = 1024
_DIFFERING = WorkloadSpec(
    "op_index",
    200_000,
    2000,
    parameters={
        "n_attributes": 1000,
        "cardinality": 100,
        "min_size": 2,
        "max_size": 6,
        "min_event_size": 10,
        "max_event_size": 40,
    },
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("-n", type=int, default=200_000, help="subscriptions")
    parser.add_argument("--history", type=int, default=200_000, help="events that Spark counts")
    parser.add_argument("--events", type=int, default=2000, help="events to match")
    parser.add_argument("--workload", default="differing", help="that, or a standard workload")
    parser.add_argument("--indexes", default="mill,op_index,be_tree", help="names, with commas")
    parser.add_argument("--rounds", type=int, default=5)


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the table."""
    spec = _DIFFERING if arguments.workload == "differing" else standard(arguments.workload)
    spec = spec.changed(
        n_subscriptions=arguments.n, n_events=arguments.events, n_training_events=_SAMPLE
    )
    workload = generate(spec)
    if arguments.workload == "differing":
        spec = spec.changed(attribute_zipf=1.0, value_zipf=1.0)
        others = generate(spec.changed(n_subscriptions=0))
        workload = workload._replace(events=others.events, training=others.training)
    dimensions, table = encode_workload(workload)
    start = time.perf_counter()
    counted = _counted(spec.changed(n_events=arguments.history))
    seconds = time.perf_counter() - start
    from matchmill.spark.event_statistics import sample_events

    def encoded_dicts(dicts: Any) -> Any:
        return encode_events(dimensions, read_events(dicts).columns())

    def encoded(events: Any) -> Any:
        return encoded_dicts(list(event_dicts(workload, events)))

    sample = build_statistics(encoded(workload.training), len(dimensions))
    statistics = {
        "none": None,
        f"a sample of {_SAMPLE:,}": sample,
        "Spark's": build_statistics(encoded_dicts(sample_events(counted, 4096)), len(dimensions)),
    }
    batch = encoded(workload.events)
    rows: list[tuple[object, ...]] = []
    differ = False
    for name in arguments.indexes.split(","):
        built: dict[str, Index] = {
            label: index_class(name).build(table, known) for label, known in statistics.items()
        }
        timed = interleaved(
            {label: lambda index=index: index.match_batch(batch) for label, index in built.items()},
            arguments.rounds,
        )
        answers = {label: _answer(index, batch) for label, index in built.items()}
        differ |= len(set(answers.values())) > 1
        for label, rounds in timed.items():
            per_event = Spread.of(s * 1e6 / batch.n_events for s in rounds)
            stats = built[label].stats()
            # Timed rounds, one to warm up, and one for the answers.
            looked_at = stats.candidates / (batch.n_events * (arguments.rounds + 2))
            rows.append((name, label, number(looked_at), per_event, ratio(timed["none"], rounds)))
    print_table(
        f"{arguments.workload}: {arguments.n:,} subscriptions, {arguments.events:,} events",
        ("index", "statistics", "clauses looked at", "µs per event", "times as fast as with none"),
        rows,
        [f"Spark took {seconds:.1f} s to make and count {arguments.history:,} events, starting it"
         " included."],
    )  # fmt: skip
    if differ:
        print("the indexes found different matches")
    return int(differ)


def _counted(spec: Any) -> Any:
    from pyspark.sql import SparkSession

    from matchmill.lab.workloads import dataframes as spark_generate
    from matchmill.spark import statistics

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", False)
        .config("spark.sql.shuffle.partitions", 4)
        .config("spark.log.level", "ERROR")
        .config("spark.ui.showConsoleProgress", False)
        .getOrCreate()
    )
    form = "json" if spec.generator == "ads" else "map"
    events = spark_generate.events(spark, spec, form=form)
    return statistics(events, layout=form)


def _answer(index: Index, batch: Any) -> bytes:
    found = index.match_batch(batch)
    events = np.repeat(np.arange(batch.n_events), np.diff(found.offsets))
    order = np.lexsort((found.clause_ids, events))
    return found.offsets.tobytes() + found.clause_ids[order].astype(np.int64).tobytes()
