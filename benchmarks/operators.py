"""How many operators are asked for an event: each order, and what no order can go below.

Three tables. The paper's largest workloads (Expensive operators, Figures 4 and 6), with a bound
that holds for any order: all predicates of subscriptions that match have to be evaluated, and of
each other one at least one that is false, be it that the most popular false predicates together
occur often enough, or that subscriptions without a false predicate in common need one each. Events
of kinds for which different operators are true, with the order knowing the kinds or not. And plain
predicates answered by the index first, or asked as operators like all others.

Naive and Sequential take the predicates of a subscription as they are written; "rare first" is the
order that serves naive worst.
"""

from __future__ import annotations

import argparse
import itertools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import matchmill as mm
from benchmarks.support.timing import print_table
from matchmill.lab.workloads.operators import OperatorWorkload, operator_workload
from matchmill.lab.workloads.spec import WorkloadSpec
from matchmill.operators.adaptive import Adaptive
from matchmill.operators.orders import Estimate, Strategy
from matchmill.papers.expensive_operators.naive import Naive
from matchmill.papers.expensive_operators.sequential import Sequential
from matchmill.papers.expensive_operators.sub_order import SubOrder

ORDERS: dict[str, Callable[[], Strategy]] = {
    "naive": Naive,
    "naive, rare first": Naive,
    "sequential": Sequential,
    "sequential, rare first": Sequential,
    "sub_order": SubOrder,
    "adaptive": Adaptive,
}
PAPERS: dict[str, tuple[int, int, str]] = {
    "Figure 4": (80_000, 40_000, "uniform"),
    "Figure 6": (20_000, 30_000, "zipf"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("--events", type=int, default=3, help="of the paper's workloads")
    parser.add_argument("--scale", type=float, default=1.0, help="of their sizes")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the table."""
    agree = [
        _papers(shows, int(n * arguments.scale), int(m * arguments.scale), law, arguments.events)
        for shows, (n, m, law) in PAPERS.items()
    ]
    agree += [_kinds(), _index_first()]
    return 0 if all(agree) else 1


# -- the paper's workloads ------------------------------------------------------------------------


def _papers(shows: str, n: int, n_predicates: int, popularity: str, n_events: int) -> bool:
    spec = WorkloadSpec("operators", n, n_events, 1)
    made = operator_workload(spec.changed(n_predicates=n_predicates, popularity=popularity))
    chains = list(shuffled_chains(made))
    n_uses = np.bincount(made.predicate_ids, minlength=n_predicates).tolist()
    rare_first = [sorted(chain, key=n_uses.__getitem__) for chain in chains]
    estimates = list(zip(made.selectivities.tolist(), made.costs.tolist(), strict=True))
    means: dict[str, float] = {}
    seconds: dict[str, float] = {}
    found = []
    for name, order in ORDERS.items():
        start = time.process_time()
        strategy = order()
        for number, chain in enumerate(rare_first if "rare first" in name else chains):
            strategy.add(number, chain)
        if isinstance(strategy, SubOrder):
            strategy.prepare(range(n), estimates.__getitem__)
        seconds[name] = time.process_time() - start
        results = [walked(strategy, n, t.tolist(), estimates.__getitem__) for t in made.truths]
        found.append([matched for matched, _ in results])
        means[name] = float(np.mean([n_evaluated for _, n_evaluated in results]))
    bounds = [fewest(chains, truths.tolist()) for truths in made.truths]
    means["no order below"] = float(np.mean(bounds))
    rows = [
        (name, round(mean), f"{mean / means['naive']:.3f}", f"{seconds.get(name, 0):.2f} s")
        for name, mean in means.items()
    ]
    title = f"{shows}: {n:,} subscriptions, {n_predicates:,} predicates, popularity {popularity}"
    print_table(title, ("order", "evaluated an event", "of naive", "to set up"), rows)
    return all(matched == found[0] for matched in found)


def shuffled_chains(made: OperatorWorkload) -> Iterator[list[int]]:
    """Return the predicates of each subscription, in any order.

    Generators have the popular ones first.
    """
    randoms = random.Random(1)
    ids, offsets = made.predicate_ids.tolist(), made.subscription_offsets.tolist()
    for a, b in itertools.pairwise(offsets):
        chain = ids[a:b]
        randoms.shuffle(chain)
        yield chain


def walked(
    strategy: Strategy, n_chains: int, truths: Sequence[bool], estimate: Estimate
) -> tuple[list[int], int]:
    """Return the chains that are true, and how many conditions were evaluated."""
    known: dict[int, bool] = {}
    found: list[int] = []

    def complete(chain: int) -> tuple[int, ...]:
        found.append(chain)
        return ()

    for condition in strategy.walk(range(n_chains), known, complete, estimate):
        known[condition] = truths[condition]
    return sorted(found), len(known)


def fewest(chains: Sequence[Sequence[int]], truths: Sequence[bool]) -> int:
    """No order evaluates fewer conditions for this event."""
    needed: set[int] = set()
    undecided: list[list[int]] = []
    for chain in chains:
        false = [c for c in chain if not truths[c]]
        if false:
            undecided.append(false)
        else:
            needed.update(chain)
    counts: dict[int, int] = {}
    for condition in itertools.chain.from_iterable(undecided):
        counts[condition] = counts.get(condition, 0) + 1
    totals = itertools.accumulate(sorted(counts.values(), reverse=True), initial=0)
    by_popularity = sum(1 for _ in itertools.takewhile(lambda n: n < len(undecided), totals))
    taken: set[int] = set()
    n_apart = 0
    for false in sorted(undecided, key=lambda false: sum(counts[c] for c in false)):
        if taken.isdisjoint(false):
            taken.update(false)
            n_apart += 1
    return len(needed) + max(by_popularity, n_apart)


# -- kinds of events ------------------------------------------------------------------------------

N_KINDS, N_THINGS, N_ALERTS, N_EVENTS = 4, 1500, 600, 600


def _kinds() -> bool:
    """Each predicate is nearly always true for some kinds of events, nearly never for others."""
    randoms = random.Random(2)
    chances = [[randoms.choice([0.05, 0.95]) for _ in range(N_THINGS)] for _ in range(N_KINDS)]
    kinds = [randoms.randrange(N_KINDS) for _ in range(N_EVENTS)]
    truths = [[randoms.random() < chance for chance in chances[kind]] for kind in kinds]
    texts = {
        n: " and ".join(f"thing({p})" for p in randoms.sample(range(N_THINGS), 4))
        for n in range(N_ALERTS)
    }
    events = [{"kind": kind} for kind in kinds]
    rows, found = [], []
    for event_class in ("", "kind"):
        matches, calls = _asked(mm.Settings(event_class=event_class), texts, events, truths)
        found.append(matches)
        late = calls[len(calls) // 2 :]
        rows.append((event_class or "not known", float(np.mean(np.diff(late)))))
    shown = [(name, f"{calls:.1f}", f"{calls / rows[0][1]:.3f}") for name, calls in rows]
    title = f"{N_KINDS} kinds of events, {N_THINGS:,} predicates, {N_ALERTS:,} subscriptions"
    print_table(title, ("event_class", "calls per event, once learned", "share"), shown)
    return found[0] == found[1]


def _asked(
    settings: mm.Settings,
    texts: dict[int, str],
    events: Sequence[dict[str, Any]],
    truths: Sequence[Sequence[bool]],
) -> tuple[list[Any], list[int]]:
    """Return what each event matches, and how many calls of `thing` there were until then."""
    truth: list[bool] = []
    mm.operator(name="thing")(lambda event, n: truth[n])
    mm.operator(name="topic_is")(lambda event, topic: event["topic"] == topic)
    engine = mm.Engine(settings=settings)
    engine.subscribe_many(texts)
    matches, n_calls = [], []
    for event, now in zip(events, truths, strict=True):
        truth[:] = now
        matches.append(engine.match(event))
        n_calls.append({s.name: s.n_calls for s in engine.stats().operators}.get("thing", 0))
    for name in ("thing", "topic_is"):
        mm.unregister_operator(name)
    return matches, n_calls


# -- the index first ------------------------------------------------------------------------------


def _index_first() -> bool:
    """Each subscription has one equality that one event in fifty satisfies, and two operators."""
    randoms = random.Random(3)
    topics = [f"t{n}" for n in range(50)]
    drawn = [(randoms.choice(topics), *randoms.sample(range(400), 2)) for _ in range(2000)]
    events = [{"topic": randoms.choice(topics)} for _ in range(100)]
    truths = [[randoms.random() < 0.3 for _ in range(400)] for _ in events]
    ways = {
        "as an operator": "topic_is('{}') and thing({}) and thing({})",
        "by the index": "topic = '{}' and thing({}) and thing({})",
    }
    _asked(mm.Settings(), {0: ways["by the index"].format(*drawn[0])}, events, truths)  # compiles
    rows, found = [], []
    for name, way in ways.items():
        texts = {n: way.format(*parts) for n, parts in enumerate(drawn)}
        start = time.process_time()
        matches, calls = _asked(mm.Settings(), texts, events, truths)
        milliseconds = (time.process_time() - start) / len(events) * 1000
        rows.append((name, f"{calls[-1] / len(events):.1f}", f"{milliseconds:.2f}"))
        found.append(matches)
    title = "2,000 subscriptions: topic = … and thing(…) and thing(…)"
    header = ("the plain condition", "calls of thing per event", "ms per event, loading included")
    print_table(title, header, rows)
    return found[0] == found[1]
