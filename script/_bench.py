"""Measure what we claim: contenders interleaved in one run, repeated, spread reported.

script/bench parse              our parser against sqlglot's on the same expressions
script/bench load [-n 1000000]  load text subscriptions: seconds, bytes, peak memory
script/bench match [-n 200000]  the indexes on flights; all must give the same matches
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import matchmill as mm
from matchmill.indexes.registry import INDEXES
from matchmill.workload.flights import flight_alerts, load_flights

EXPRESSIONS = (
    "origin = 'JFK'",
    "origin = 'JFK' and dep_delay > 60",
    "carrier in ('AA', 'UA', 'DL') and dest = 'SFO' and month between 3 and 5",
    "(origin = 'JFK' or origin = 'LGA') and not (arr_delay is null) and distance >= 1000.5",
    "tailnum like 'N1%' and time_hour >= timestamp '2013-01-31 10:00:00' and hour != 5",
)


def interleaved(
    contenders: dict[str, Callable[[], object]], rounds: int, seed: int = 1
) -> dict[str, list[float]]:
    """Seconds of each contender in each round; the order is shuffled between rounds."""
    rng = random.Random(seed)
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for call in contenders.values():  # warm up
        call()
    for _ in range(rounds):
        for name in rng.sample(sorted(contenders), len(contenders)):
            start = time.perf_counter()
            contenders[name]()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def show(name: str, values: list[float], unit: str) -> None:
    low, middle, high = min(values), statistics.median(values), max(values)
    print(f"  {name:<24} {middle:12.2f} {unit}   ({low:.2f} … {high:.2f})")


_REPEAT = 200


def repeated(function: Callable[[str], object], text: str) -> None:
    for _ in range(_REPEAT):
        function(text)


def bench_parse(arguments: argparse.Namespace) -> int:
    import sqlglot

    failed = False
    for text in EXPRESSIONS:
        seconds = interleaved(
            {
                "matchmill": partial(repeated, mm.parse, text),
                "sqlglot": partial(repeated, sqlglot.parse_one, text),
            },
            arguments.rounds,
        )
        print(text)
        for name, values in seconds.items():
            show(name, [v / _REPEAT * 1e6 for v in values], "µs")
        ratios = [t / o for o, t in zip(seconds["matchmill"], seconds["sqlglot"], strict=True)]
        show("sqlglot / matchmill", ratios, "x ")
        failed |= statistics.median(ratios) < 5
    return int(failed)


def bench_load(arguments: argparse.Namespace) -> int:
    rows = list(flight_alerts(arguments.n))
    text_bytes = sum(len(text) for _, text in rows)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    engine = mm.Engine()
    start = time.perf_counter()
    report = engine.subscribe_many(rows)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    stats = engine.stats()
    n = arguments.n
    print(f"{report}; {seconds:.1f} s, {n / seconds:,.0f} subscriptions/s")
    print(f"  text                  {text_bytes / n:8.1f} bytes a subscription")
    for name in ("dimensions", "tables", "indexes", "subscriptions"):
        print(f"  {name:<21} {getattr(stats, 'bytes_' + name) / n:8.1f}")
    print(f"  engine in all         {stats.n_bytes / n:8.1f}")
    print(f"  peak memory           {peak / 1024:8.0f} MiB (before the load {before / 1024:.0f})")
    return 0 if report.n_accepted == n else 1


def bench_match(arguments: argparse.Namespace) -> int:
    flights = load_flights()
    rng = np.random.default_rng(arguments.seed)
    rows = np.sort(rng.choice(flights.num_rows, arguments.events, replace=False))
    events = flights.take(rows)
    alerts = list(flight_alerts(arguments.n))
    engines = {name: mm.Engine(index=name) for name in sorted(INDEXES)}
    for engine in engines.values():
        engine.subscribe_many(alerts)
    answers = {name: engine.match_batch(events).to_arrow() for name, engine in engines.items()}
    reference = answers["scan"].sort_by([("event", "ascending"), ("subscription", "ascending")])
    for name, answer in answers.items():
        ordered = answer.sort_by([("event", "ascending"), ("subscription", "ascending")])
        if not ordered.equals(reference):
            print(f"{name} and scan disagree")
            return 1
    contenders = {
        name: (lambda engine=engine: engine.match_batch(events)) for name, engine in engines.items()
    }
    seconds = interleaved(contenders, arguments.rounds)
    n_events = events.num_rows
    print(
        f"{arguments.n:,} alerts, {n_events:,} flights, {reference.num_rows:,} matches, all equal"
    )
    for name, values in seconds.items():
        show(name, [v / n_events * 1e6 for v in values], "µs an event")
    for name in seconds:
        ratios = [s / o for s, o in zip(seconds["scan"], seconds[name], strict=True)]
        if name != "scan":
            show(f"scan / {name}", ratios, "x")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = {"parse": bench_parse, "load": bench_load, "match": bench_match}
    parser.add_argument("what", choices=what)
    parser.add_argument("-n", type=int, default=None, help="subscriptions")
    parser.add_argument("--events", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.n is None:
        arguments.n = 1_000_000 if arguments.what == "load" else 200_000
    return what[arguments.what](arguments)


if __name__ == "__main__":
    sys.exit(main())
