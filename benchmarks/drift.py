"""BE-Tree while its subscriptions change from one distribution to another and back, one at a time.

Figure 13 of its paper: subscriptions of workload X are deleted and those of Y inserted, one by one,
until there are only those of Y, and back again. Half of the events are drawn as X's, half as Y's.
At every step all variants match the same events, and those that adjust may do so by what they saw;
then they match them again, in turns, and must find the same. Times are CPU times, the least of
several rounds; candidates are clauses that were looked at for an event. The last column compares
the end with the start.
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from benchmarks.support.timing import print_table
from matchmill.encoding.conjunction_table import ConjunctionTable, take_clauses
from matchmill.encoding.event_batch import EventBatch
from matchmill.lab.experiments.measure import event_batch, table_of
from matchmill.lab.workloads.registry import generate
from matchmill.lab.workloads.spec import WorkloadSpec
from matchmill.papers.be_tree import BeTree

VARIANTS: dict[str, dict[str, Any]] = {
    "adjusting": {"self_adjust": True},
    "not adjusting": {"self_adjust": False},
    "adjusting, rare first": {"self_adjust": True, "first": "rare"},
    "not adjusting, rare first": {"self_adjust": False, "first": "rare"},
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("-n", type=int, default=100_000, help="subscriptions of each workload")
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=4, help="of each of the two transitions")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--from", dest="start", choices=("uniform", "zipf"), default="uniform")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the table."""
    n = arguments.n
    steps = measure_drift(
        n, arguments.events, arguments.steps, arguments.rounds, arguments.start, VARIANTS
    )
    rows = [
        (name, what, *(f"{v:.1f}" for v in figures), f"{figures[-1] / figures[0]:.2f}x")
        for name in VARIANTS
        for what, figures in (
            ("µs per event", [step[name].us for step in steps]),
            ("candidates", [step[name].n_candidates for step in steps]),
        )
    ]
    shares = (f"{100 * k // arguments.steps}%" for k in range(2 * arguments.steps + 1))
    print_table(
        f"{n:,} subscriptions, from {arguments.start} and back, after so many of them",
        ("BE-Tree", "what", *shares, "end / start"),
        rows,
    )
    return 0


class Step(NamedTuple):
    """What one tree takes at one step."""

    us: float
    n_candidates: float


def measure_drift(
    n: int,
    n_events: int,
    n_steps: int,
    rounds: int,
    start: str,
    variants: dict[str, dict[str, Any]],
) -> list[dict[str, Step]]:
    """Change the subscriptions and back; what each variant takes at each step."""
    order = (0.0, 1.0) if start == "uniform" else (1.0, 0.0)
    tables, events = zip(*(_workload(zipf, n, n_events // 2) for zipf in order), strict=True)
    second = tables[1]._replace(clause_ids=tables[1].clause_ids + n)
    both = _together(events)
    trees = {
        name: BeTree.build(tables[0], max_capacity=5, build="single", **options)
        for name, options in variants.items()
    }
    adjusting = {name for name, options in variants.items() if options["self_adjust"]}
    steps = [_measure(trees, adjusting, both, rounds)]
    edges = np.linspace(0, n, n_steps + 1).astype(int)
    for gone, come in ((tables[0], second), (second, tables[0])):
        for first, end in pairwise(edges.tolist()):
            for clause in range(first, end):
                one = take_clauses(come, np.array([clause]))
                for tree in trees.values():
                    tree.delete(gone.clause_ids[clause : clause + 1])
                    tree.insert(one)
            steps.append(_measure(trees, adjusting, both, rounds))
    return steps


def _workload(zipf: float, n: int, n_events: int) -> tuple[ConjunctionTable, EventBatch]:
    spec = WorkloadSpec(
        generator="be_gen",
        n_subscriptions=n,
        n_events=n_events,
        parameters={
            "n_dimensions": 400,
            "cardinality": 48,
            "subscription_size": 7,
            "event_size": 15,
            "equality_ratio": 0.3,
            "predicate_range": 0.12,
            "operators": "med",
            "matching_probability": 0.001,
            "zipf": zipf,
        },
    )
    workload = generate(spec)
    return table_of(workload.subscriptions), event_batch(workload.events)


def _together(events: tuple[EventBatch, ...]) -> EventBatch:
    first, second = events
    return EventBatch(
        np.concatenate((first.offsets, second.offsets[1:] + first.offsets[-1])),
        np.concatenate((first.dimensions, second.dimensions)),
        np.concatenate((first.keys, second.keys)),
    )


def _measure(
    trees: dict[str, BeTree], adjusting: set[str], events: EventBatch, rounds: int
) -> dict[str, Step]:
    for name, tree in trees.items():
        tree.match_batch(events)
        if name in adjusting:
            tree.adjust()
    before = {name: tree.stats().candidates for name, tree in trees.items()}
    found = {len(tree.match_batch(events).clause_ids) for tree in trees.values()}
    if len(found) > 1:
        raise SystemExit(f"the trees find different numbers of matches: {found}")
    seen = {name: tree.stats().candidates - before[name] for name, tree in trees.items()}
    least = dict.fromkeys(trees, float("inf"))
    for _ in range(rounds):
        for name, tree in trees.items():
            start = time.process_time()
            tree.match_batch(events)
            least[name] = min(least[name], time.process_time() - start)
    n = events.n_events
    return {name: Step(1e6 * least[name] / n, seen[name] / n) for name in trees}
