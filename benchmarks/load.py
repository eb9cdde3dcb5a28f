"""Load text subscriptions (flight alerts): seconds, bytes, peak memory."""

from __future__ import annotations

import argparse
import resource
import time

import matchmill as mm
from benchmarks.support.timing import print_table
from matchmill.lab.workloads.flight_alerts import flight_alerts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("-n", type=int, default=1_000_000, help="subscriptions")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the table."""
    n = arguments.n
    alerts = list(flight_alerts(n))
    before = _peak_mib()
    engine = mm.Engine()
    start = time.perf_counter()
    report = engine.subscribe_many(alerts)
    seconds = time.perf_counter() - start
    stats = engine.stats()
    parts = {
        "text": sum(len(text) for _, text in alerts),
        **stats.bytes,
        "engine in all": stats.n_bytes,
    }
    print_table(
        f"{report.n_accepted:,} subscriptions; {seconds:.1f} s, {n / seconds:,.0f} subscriptions/s",
        ("what", "bytes per subscription"),
        [(name, f"{n_bytes / n:.1f}") for name, n_bytes in parts.items()],
        [f"peak memory {_peak_mib():.0f} MiB, before the load {before:.0f} MiB"],
    )
    return int(report.n_accepted != n)


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
