"""All indexes in an engine on flights and alerts, encoding included; all must find the same."""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

import matchmill as mm
from benchmarks.support.timing import Spread, interleaved, print_table, ratio
from matchmill.index.registry import INDEXES
from matchmill.lab.workloads.flight_alerts import flight_alerts, load_flights

_ORDER = [("event_id", "ascending"), ("subscription_id", "ascending")]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("-n", type=int, default=200_000, help="subscriptions")
    parser.add_argument("--events", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1, help="of the choice of flights")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the table."""
    flights = load_flights()
    rng = np.random.default_rng(arguments.seed)
    events = flights.take(np.sort(rng.choice(flights.num_rows, arguments.events, replace=False)))
    alerts = list(flight_alerts(arguments.n))
    engines = {name: mm.Engine(index=name) for name in sorted(INDEXES)}
    for engine in engines.values():
        engine.subscribe_many(alerts)
    answers = {
        name: engine.match_many(events, threads=1).to_arrow().sort_by(_ORDER)
        for name, engine in engines.items()
    }
    wrong = [name for name in answers if not answers[name].equals(answers["scan"])]
    if wrong:
        print(f"other matches than the scan's: {', '.join(wrong)}")
        return 1
    calls = {
        name: partial(engine.match_many, events, threads=1) for name, engine in engines.items()
    }
    seconds = interleaved(calls, arguments.rounds)
    rows = [
        (
            name,
            Spread.of(s / events.num_rows * 1e6 for s in seconds[name]),
            ratio(seconds["scan"], seconds[name]),
        )
        for name in seconds
    ]
    print_table(
        f"{arguments.n:,} alerts, {events.num_rows:,} flights, "
        f"{answers['scan'].num_rows:,} matches, all equal",
        ("index", "µs per event", "times as fast as scan"),
        rows,
    )
    return 0
