"""One event through match(dict), against loops over rules of rule-engine and Python functions.

Flight alerts, and flights as dicts. The loops are what one writes without an index: a rule of the
package rule-engine, or a compiled lambda, for each alert, asked one after the other. All must find
the same alerts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np

import matchmill as mm
from benchmarks.support.rules import PYTHON, RULE_ENGINE, written
from benchmarks.support.timing import Spread, Target, interleaved, print_table, ratio
from matchmill.errors import MissingDependencyError
from matchmill.lab.workloads.flight_alerts import flight_alerts, load_flights

TARGET = Target("≤", 10, " µs")

Event = dict[str, Any]
Match = Callable[[Event], set[Any]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("-n", type=int, default=1000, help="alerts")
    parser.add_argument("--events", type=int, default=1000, help="rule-engine gets a fiftieth")
    parser.add_argument("--rounds", type=int, default=9)


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the table."""
    flights = load_flights()
    n_all = min(flights.num_rows, arguments.events * (arguments.rounds + 2))
    rows = np.random.default_rng(1).choice(flights.num_rows, n_all, replace=False)
    everything: list[Event] = flights.take(rows).to_pylist()
    events = everything[: arguments.events]
    nullable = frozenset(c for c in flights.column_names if flights[c].null_count)
    alerts = dict(flight_alerts(arguments.n))
    engine = mm.Engine()
    engine.subscribe_many(alerts)
    contenders: dict[str, tuple[Match, list[Event]]] = {
        "matchmill": (engine.match, events),
        "Python functions": (_functions(alerts, nullable), events[:: max(1, len(events) // 200)]),
        "rule-engine": (_rules(alerts, nullable), events[:: max(1, len(events) // 20)]),
    }
    for name, (match, some) in contenders.items():
        for event in some:
            if match(event) != engine.match(event):
                print(f"{name} and matchmill disagree on {event}")
                return 1
    calls: dict[str, Callable[[], object]] = {
        name: partial(_match_all, *asked) for name, asked in contenders.items()
    }
    calls["matchmill"] = partial(_match_next, engine.match, everything, len(events), count(1))
    seconds = interleaved(calls, arguments.rounds)
    per_event = {name: [s / len(contenders[name][1]) for s in seconds[name]] for name in seconds}
    table = []
    for name, values in per_event.items():
        spread = Spread.of(v * 1e6 for v in values)
        target = (
            TARGET.verdict(spread.median) if name == "matchmill" and arguments.n == 1000 else ""
        )
        times = "" if name == "matchmill" else f"{ratio(values, per_event['matchmill'])}x"
        table.append((name, spread, target, times, len(contenders[name][1])))
    n_matches = sum(len(engine.match(event)) for event in events)
    print_table(
        f"One event at {arguments.n:,} flight alerts, {n_matches / len(events):.2f} matches each",
        ("contender", "µs per event", "target", "times matchmill's", "events"),
        table,
    )
    return 0


def _match_all(match: Match, events: Sequence[Event]) -> None:
    for event in events:
        match(event)


def _match_next(match: Match, events: Sequence[Event], n: int, turns: Iterator[int]) -> None:
    """Match other events in each round: the engine keeps answers to those that it has seen."""
    start = next(turns) * n % max(1, len(events) - n + 1)
    _match_all(match, events[start : start + n])


def _functions(alerts: dict[str, str], nullable: frozenset[str]) -> Match:
    functions = [
        (name, eval(f"lambda e: {written(mm.parse(text), PYTHON, nullable)}"))
        for name, text in alerts.items()
    ]
    return lambda event: {name for name, holds in functions if holds(event)}


def _rules(alerts: dict[str, str], nullable: frozenset[str]) -> Match:
    try:
        import rule_engine
    except ImportError:
        raise MissingDependencyError(
            "compared with the package rule-engine: pip install 'matchmill[dev]'"
        ) from None
    context = rule_engine.Context(resolver=rule_engine.resolve_item)
    rules = [
        (name, rule_engine.Rule(written(mm.parse(text), RULE_ENGINE, nullable), context=context))
        for name, text in alerts.items()
    ]
    return lambda event: {name for name, rule in rules if rule.matches(event)}
