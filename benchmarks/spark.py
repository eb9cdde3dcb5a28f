"""Matching by Spark, against joins in Spark SQL and in DuckDB; the shares of it; building.

The same subscriptions and events, in the same session, from Parquet files: matchmill with an index
that is built in advance; Spark SQL joining the events with the most selective predicate of each
subscription, then checking the rest, as `sql_pivot` does; DuckDB doing the same by `sql_pivot`. All
have their tables ready, and must find the same pairs. What they find is counted and thrown away.

With --large the same index alone has many more events to match: events and pairs per second, and
where the CPU time goes. The share of kernels and encoding is taken from the same events in this
process.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.support.spark_data import (
    PairSums,
    cpu_seconds,
    event_batch,
    event_table,
    frame_sums,
    pair_sums,
    start_spark,
    subscription_table,
    table_of,
    write_parquet,
)
from benchmarks.support.timing import Spread, Target, interleaved, number, print_table, ratio
from matchmill.index.registry import index_class
from matchmill.lab.workloads.flat import Workload
from matchmill.lab.workloads.registry import generate
from matchmill.lab.workloads.standard import standard
from matchmill.papers.two_stage.sql.forms import PIVOT
from matchmill.papers.two_stage.sql.rows import clause_rows, event_pairs
from matchmill.papers.two_stage.sql.selectivity import sample_of_clauses

_TARGETS = {
    "Spark SQL, pivot join": Target("≥", 20, "x"),
    "DuckDB, pivot join": Target("≥", 5, "x"),
}
_FILES = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("-n", type=int, default=200_000, help="subscriptions")
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--large", type=int, default=0, metavar="EVENTS", help="and then so many")
    parser.add_argument("--probability", type=float, default=0.0001, help="that one matches")
    parser.add_argument("--shards", type=int, help="of the index")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", default="4g", help="of the JVM")
    parser.add_argument("--without", default="", help="contenders to leave out: sql,duckdb")
    parser.add_argument("--folder", type=Path, help="where to write (default: a temporary folder)")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the table."""
    from matchmill import spark as ms

    spec = standard("be01").changed(
        n_subscriptions=arguments.n,
        n_events=arguments.events,
        matching_probability=arguments.probability,
    )
    with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
        folder = Path(temporary)
        workload = generate(spec)
        spark = start_spark(folder, arguments.memory)
        rows = spark.read.parquet(
            write_parquet(subscription_table(workload), folder / "subscriptions", _FILES)
        )
        start = time.perf_counter()
        index = ms.build(rows, folder / "index", shards=arguments.shards)
        report_build(index, time.perf_counter() - start)
        is_same = _race(arguments, spark, index, workload, folder)
        if arguments.large:
            _share(arguments, spark, index, workload, folder)
        spark.stop()
    return int(not is_same)


def report_build(index: Any, seconds: float) -> None:
    """Print what a build took."""
    manifest, n = index.manifest, len(index)
    encode = sum(shard.meta["encode_seconds"] for shard in manifest.shards)
    build = sum(shard.meta["build_seconds"] for shard in manifest.shards)
    peak = max(
        max(shard.meta["encode_bytes"], shard.meta["build_bytes"]) for shard in manifest.shards
    )
    print_table(
        f"Building an index of {n:,} subscriptions",
        ("what", "figure"),
        [
            ("wall clock", f"{seconds:.1f} s, {number(n / seconds)} subscriptions/s"),
            ("reading expressions, all tasks", f"{encode:.1f} s, {encode / n * 1e6:.0f} µs each"),
            ("building and writing, all tasks", f"{build:.1f} s, {build / n * 1e6:.1f} µs each"),
            ("shards", len(manifest.shards)),
            ("size", f"{manifest.n_bytes / n:.0f} bytes per subscription"),
            ("most memory of a worker", f"{number(peak / 2**20)} MiB"),
        ],
    )


# -- against SQL ----------------------------------------------------------------------------------


def _race(
    arguments: argparse.Namespace, spark: Any, index: Any, workload: Workload, folder: Path
) -> bool:
    from matchmill import spark as ms

    events = spark.read.parquet(write_parquet(event_table(workload), folder / "events", _FILES))
    without = set(filter(None, arguments.without.split(",")))
    matched = ms.match(index, events, layout="map")
    calls: dict[str, Callable[[], object]] = {"matchmill": lambda: _throw_away(matched)}
    sums: dict[str, Callable[[], PairSums]] = {"matchmill": lambda: frame_sums(matched)}
    if "sql" not in without:
        joined = _spark_sql(spark, workload, folder)
        calls["Spark SQL, pivot join"] = lambda: _throw_away(joined)
        sums["Spark SQL, pivot join"] = lambda: frame_sums(joined)
    if "duckdb" not in without:
        database = index_class("sql_pivot").build(table_of(workload))
        batch = event_batch(workload.events)

        def duckdb_sums() -> PairSums:
            found = database.match_batch(batch)
            owners = np.repeat(np.arange(found.n_events), np.diff(found.offsets))
            return pair_sums(owners, found.clause_ids.astype(np.int64))

        calls["DuckDB, pivot join"] = lambda: database.match_batch(batch)
        sums["DuckDB, pivot join"] = duckdb_sums
    answers = {name: call() for name, call in sums.items()}
    wrong = [name for name in answers if answers[name] != answers["matchmill"]]
    seconds = interleaved(calls, arguments.rounds)
    table = []
    for name, rounds in seconds.items():
        times = ratio(rounds, seconds["matchmill"])
        target = _TARGETS.get(name)
        verdict = "" if target is None else target.verdict(times.median)
        rate = number(arguments.events / Spread.of(rounds).median)
        table.append((name, Spread.of(rounds), rate, f"{times}x", verdict))
    n_pairs = answers["matchmill"].n_pairs
    verdict = f"other pairs than matchmill's: {', '.join(wrong)}" if wrong else "the same for all"
    print_table(
        f"{arguments.n:,} subscriptions × {arguments.events:,} events: {n_pairs:,} pairs",
        ("contender", "seconds", "events/s", "times matchmill's", "target"),
        table,
        [f"Pairs: {verdict}."],
    )
    return not wrong


def _throw_away(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _spark_sql(spark: Any, workload: Workload, folder: Path) -> Any:
    """Return the query of `sql_pivot` in Spark, on tables that are in Parquet files too."""
    table = table_of(workload)
    rows = clause_rows(table, sample_of_clauses(table))
    is_pivot, is_point = rows.is_pivot == 1, rows.low == rows.high
    pivots = {"sid": rows.sid, "needed": rows.cnt - 1, "n_rest": rows.n_rest}
    columns = {
        "point_pivots": ({"attr": rows.attr, "val": rows.low, **pivots}, is_pivot & is_point),
        "range_pivots": (
            {"attr": rows.attr, "low": rows.low, "high": rows.high, **pivots},
            is_pivot & ~is_point,
        ),
        "rest": ({name: getattr(rows, name) for name in PIVOT.tables["rest"]}, ~is_pivot),
    }
    tables = {
        name: pa.table({column: array[chosen] for column, array in arrays.items()})
        for name, (arrays, chosen) in columns.items()
    }
    tables["pairs"] = pa.table(dict(event_pairs(event_batch(workload.events))))
    for name, arrow in tables.items():
        path = write_parquet(arrow, folder / name, _FILES)
        spark.read.parquet(path).createOrReplaceTempView(name)
    query = PIVOT.match.format(**{name: name for name in tables})
    query = query.replace("AS MATERIALIZED", "AS").rpartition("UNION ALL")[0]  # without the count
    return spark.sql(query)


# -- where the time goes --------------------------------------------------------------------------


def _share(
    arguments: argparse.Namespace, spark: Any, index: Any, workload: Workload, folder: Path
) -> None:
    from matchmill import spark as ms
    from matchmill.spark.published.open_version import open_version

    n = arguments.large
    copies = -(-n // arguments.events)
    one = event_table(workload)
    for k in range(copies):
        part = one.set_column(0, "event_id", pa.array(np.arange(one.num_rows) + k * one.num_rows))
        target = folder / "many" / f"{k:04d}.parquet"
        target.parent.mkdir(exist_ok=True)
        pq.write_table(part.slice(0, n - k * one.num_rows), target)
    events = spark.read.parquet(str(folder / "many"))
    matched = ms.match(index, events, layout="map")
    n_pairs = matched.count()  # and all files are mapped then
    before, start = cpu_seconds(), time.perf_counter()
    _throw_away(matched)
    wall, after = time.perf_counter() - start, cpu_seconds()
    version = open_version(index.worker_files())
    cells = one.column("attributes").combine_chunks()
    kernel = encoding = 0.0
    for _ in range(2):  # the second time with everything in memory
        kernel = encoding = 0.0
        last = time.perf_counter()
        for part in version.slices(cells):
            now = time.perf_counter()
            encoding += now - last
            for _ in part.matches:
                pass
            last = time.perf_counter()
            kernel += last - now
    scale = 1e6 / one.num_rows
    java, python = (after[kind] - before[kind] for kind in ("java", "python"))
    print_table(
        f"{arguments.n:,} subscriptions × {n:,} events: {n_pairs:,} pairs",
        ("what", "figure"),
        [
            ("wall clock", f"{wall:.1f} s"),
            ("events per second", number(n / wall)),
            ("pairs per second", number(n_pairs / wall)),
            ("CPU of Java", f"{java / n * 1e6:.1f} µs per event"),
            ("CPU of Python workers", f"{python / n * 1e6:.1f} µs per event"),
            ("… of that, encoding", f"{encoding * scale:.1f} µs per event"),
            ("… of that, kernels and ids", f"{kernel * scale:.1f} µs per event"),
        ],
    )
