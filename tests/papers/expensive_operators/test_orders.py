"""Orders of evaluation: all find the same; what each promises; the paper's cost model."""

from __future__ import annotations

import argparse
import itertools
import random
from collections.abc import Callable, Collection, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.operators import fewest, run
from matchmill.lab.workloads.operators import OperatorWorkload, operator_workload
from matchmill.lab.workloads.spec import WorkloadSpec
from matchmill.operators.adaptive import Adaptive
from matchmill.operators.orders import ORDERS, Strategy, order_class
from matchmill.papers.expensive_operators.greedy_path import GreedyPath, greedy_path
from matchmill.papers.expensive_operators.naive import Naive
from matchmill.papers.expensive_operators.sequential import Sequential
from matchmill.papers.expensive_operators.sub_order import SubOrder, chain_cost, cost_difference

every_order = pytest.mark.parametrize("order", [order_class(name) for name in ORDERS], ids=ORDERS)


def same(condition: int) -> tuple[float, float]:
    return 0.5, 1.0


def decide(
    strategy: Strategy,
    chains: Collection[int],
    truths: Sequence[bool],
    estimate: Callable[[int], tuple[float, float]] = same,
    siblings: Callable[[int], Collection[int]] = lambda chain: (),
) -> tuple[set[int], list[int]]:
    """The chains that are true, and the conditions that were evaluated, in order."""
    known: dict[int, bool] = {}
    found: set[int] = set()
    asked: list[int] = []

    def complete(chain: int) -> Collection[int]:
        assert chain not in found
        found.add(chain)
        return siblings(chain)

    for condition in strategy.walk(chains, known, complete, estimate):
        assert condition not in known, "evaluated twice"
        known[condition] = truths[condition]
        asked.append(condition)
    return found, asked


def filled(order: Callable[[], Strategy], chains: Sequence[Sequence[int]]) -> Strategy:
    strategy = order()
    for number, conditions in enumerate(chains):
        strategy.add(number, conditions)
    return strategy


N_CONDITIONS = 6
all_chains = st.lists(
    st.lists(st.integers(0, N_CONDITIONS - 1), max_size=4, unique=True), max_size=8
)
all_truths = st.lists(st.booleans(), min_size=N_CONDITIONS, max_size=N_CONDITIONS)


@every_order
@given(all_chains, all_truths, st.data())
def test_every_order_finds_the_true_chains(
    order: Callable[[], Strategy],
    chains: list[list[int]],
    truths: list[bool],
    data: st.DataObject,
) -> None:
    chances = data.draw(st.lists(st.floats(0.01, 0.99), min_size=6, max_size=6))
    costs = data.draw(st.lists(st.floats(0.1, 100), min_size=6, max_size=6))
    strategy = filled(order, chains)
    removed = data.draw(st.sets(st.integers(0, 7)))
    left = [n for n in range(len(chains)) if n not in removed]
    decide(strategy, range(len(chains)), truths)  # so that there is something to forget
    for chain in set(range(len(chains))) & removed:
        strategy.remove(chain)
    asked_for = data.draw(st.permutations(left))
    found, asked = decide(strategy, asked_for, truths, lambda c: (chances[c], costs[c]))
    assert found == {n for n in left if all(truths[c] for c in chains[n])}
    assert set(asked) <= {c for n in left for c in chains[n]}


@every_order
def test_chains_that_need_no_look_get_none(order: Callable[[], Strategy]) -> None:
    """p or q or r, one subscription: the first that is true will do."""
    strategy = filled(order, [[0], [1], [2]])
    found, asked = decide(strategy, [0, 1, 2], [True] * 3, siblings=lambda chain: (0, 1, 2))
    assert len(found) == len(asked) == 1


def test_naive_does_not_see_what_comes_later() -> None:
    strategy = filled(Naive, [[0], [1, 0], [2, 0]])
    assert decide(strategy, [0, 1, 2], [False, True, True])[1] == [0, 1, 2]


def test_sequential_skips_what_is_decided() -> None:
    """Figure 2 of the paper: S2 is taken first, P2 is false and P3 true, S1 needs no look."""
    chains = [[0, 1], [1, 2], [2, 3]]
    truths = [True, False, True, True]
    found, asked = decide(filled(Sequential, chains), [1, 0, 2], truths)
    assert asked == [1, 2, 3]
    assert found == {2}


def test_sequential_goes_on_with_conditions_that_others_need() -> None:
    chains = [[0, 1], [1, 2]]
    assert decide(filled(Sequential, chains), [0, 1], [False] * 3)[1] == [0, 1]
    assert decide(filled(Sequential, [[0, 1], [2]]), [0, 1], [False] * 3)[1] == [0, 2]


# -- the paper's model ----------------------------------------------------------------------------

Chances = list[tuple[float, float]]


def expected_cost(first: Sequence[int], second: Sequence[int], estimates: Chances) -> float:
    """By going through all truths: walk one chain, then the other, as section 4.2.2 says."""
    conditions = sorted({*first, *second})
    total = 0.0
    for truths in itertools.product((False, True), repeat=len(conditions)):
        truth = dict(zip(conditions, truths, strict=True))
        weight, cost = 1.0, 0.0
        for condition, is_true in truth.items():
            chance = estimates[condition][0]
            weight *= chance if is_true else 1 - chance
        known: set[int] = set()
        for chain in (first, second):
            if any(c in known and not truth[c] for c in chain):
                continue
            for condition in chain:
                if condition not in known:
                    known.add(condition)
                    cost += estimates[condition][1]
                if not truth[condition]:
                    break
        total += weight * cost
    return total


@given(st.data())
def test_the_difference_of_two_orders_is_exact_for_any_number_of_links(
    data: st.DataObject,
) -> None:
    estimates = data.draw(
        st.lists(st.tuples(st.floats(0.05, 0.95), st.floats(0.5, 9)), min_size=7, max_size=7)
    )
    picks = st.lists(st.integers(0, 6), min_size=1, max_size=5, unique=True)

    def key(condition: int) -> float:
        chance, cost = estimates[condition]
        return cost / (1 - chance)

    first, second = (sorted(data.draw(picks), key=key) for _ in range(2))
    expected = expected_cost(first, second, estimates) - expected_cost(second, first, estimates)
    found = cost_difference(first, second, estimates.__getitem__)
    assert found == pytest.approx(expected, abs=1e-9)
    assert cost_difference(second, first, estimates.__getitem__) == pytest.approx(
        -expected, abs=1e-9
    )
    alone = expected_cost(first, [], estimates)
    assert chain_cost(first, estimates.__getitem__) == pytest.approx(alone)


def walked_cost(chains: Sequence[Sequence[int]], estimates: Chances, n_events: int) -> float:
    """The cost of walking chains in this order, over drawn events."""
    randoms = random.Random(7)
    total = 0.0
    for _ in range(n_events):
        truths = [randoms.random() < chance for chance, _ in estimates]
        known: set[int] = set()
        for chain in chains:
            if any(c in known and not truths[c] for c in chain):
                continue
            for condition in chain:
                if condition not in known:
                    known.add(condition)
                    total += estimates[condition][1]
                if not truths[condition]:
                    break
    return total / n_events


def place_among_permutations(order: type[SubOrder], seed: int) -> float:
    """Where the cost of an order is between those of the best (0) and the worst permutation (1)."""
    randoms = random.Random(seed)
    estimates = [(randoms.uniform(0.05, 0.9), randoms.choice([1.0, 5.0])) for _ in range(7)]
    chains = [randoms.sample(range(7), randoms.randint(2, 4)) for _ in range(5)]
    strategy = filled(order, chains)
    decide(strategy, range(5), [True] * 7, estimates.__getitem__)
    assert isinstance(strategy, SubOrder)
    ordered = sorted(range(5), key=strategy._score.__getitem__, reverse=True)
    sorted_chains = [[p.condition for p in strategy._places[n]] for n in range(5)]
    costs = {
        path: walked_cost([sorted_chains[n] for n in path], estimates, 400)
        for path in itertools.permutations(range(5))
    }
    best, worst = min(costs.values()), max(costs.values())
    return (costs[tuple(ordered)] - best) / (worst - best)


@pytest.mark.parametrize("seed", range(6))
def test_the_order_is_near_the_best_of_all_permutations(seed: int) -> None:
    assert place_among_permutations(SubOrder, seed) <= 0.35


def test_the_greedy_path_is_better_than_a_random_order() -> None:
    places = [place_among_permutations(GreedyPath, seed) for seed in range(6)]
    assert sum(places) / 6 < 0.4


@given(st.data())
def test_the_greedy_path_takes_edges_from_the_least_weight_on(data: st.DataObject) -> None:
    """Against the rule of section 4.2.5, step by step over all edges of the complete graph."""
    estimates = data.draw(
        st.lists(st.tuples(st.floats(0.05, 0.95), st.just(1.0)), min_size=6, max_size=6)
    )
    picks = st.sets(st.integers(0, 5), min_size=1, max_size=4)
    drawn = data.draw(st.lists(picks, min_size=1, max_size=7))
    chains = {n: sorted(c, key=lambda c: (estimates[c][0], c)) for n, c in enumerate(drawn)}
    weights = {
        (u, v): cost_difference(chains[u], chains[v], estimates.__getitem__)
        for u, v in itertools.permutations(chains, 2)
    }
    taken: list[tuple[int, int]] = []
    for u, v in sorted((e for e in weights if weights[e] < 0), key=lambda e: (weights[e], e)):
        enters = {b: a for a, b in taken}
        at = u
        while at in enters:
            at = enters[at]  # the beginning of the piece that ends in u
        if u not in dict(taken) and v not in enters and at != v:
            taken.append((u, v))
    path = greedy_path(chains, estimates.__getitem__)
    assert sorted(path) == sorted(chains)
    assert set(taken) <= set(itertools.pairwise(path))


def test_the_greedy_path_starts_where_most_is_saved() -> None:
    """Two chains share their last condition: the one with the better P / C ratio goes first."""
    estimates = [(0.9, 1.0), (0.2, 1.0), (0.95, 1.0)]
    chains = {0: [1, 2], 1: [0, 2]}  # 1 reaches the shared condition with 0.9, 0 with 0.2
    assert greedy_path(chains, estimates.__getitem__) == [1, 0]
    strategy = filled(GreedyPath, [[1, 2], [0, 2]])
    assert decide(strategy, [0, 1], [True, True, False], estimates.__getitem__)[1] == [0, 2]


def test_the_greedy_path_takes_in_what_comes_later() -> None:
    made = workload(n_predicates=300, popularity="zipf")
    chains = chains_of(made)[:400]

    def estimate(condition: int) -> tuple[float, float]:
        return float(made.selectivities[condition]), 1.0

    one_by_one, at_once = GreedyPath(), GreedyPath()
    for number, chain in enumerate(chains):
        one_by_one.add(number, chain)
        at_once.add(number, chain)
        one_by_one.prepare([number], estimate)
    at_once.prepare(range(len(chains)), estimate)
    numbers = range(len(chains))
    costs = []
    for strategy in (one_by_one, at_once, filled(Sequential, chains)):
        asked = [decide(strategy, numbers, t.tolist(), estimate) for t in made.truths]
        costs.append(sum(len(one) for _, one in asked))
    assert costs[1] < costs[2]
    assert costs[0] < 1.1 * costs[1]


# -- the paper's workload -------------------------------------------------------------------------


def workload(**parameters: object) -> OperatorWorkload:
    spec = WorkloadSpec(
        "operators", n_subscriptions=3000, n_events=5, n_training_events=1, parameters=parameters
    )
    return operator_workload(spec)


def chains_of(made: OperatorWorkload) -> list[list[int]]:
    randoms = random.Random(1)
    ids, offsets = made.predicate_ids.tolist(), made.subscription_offsets.tolist()
    found = [ids[a:b] for a, b in itertools.pairwise(offsets)]
    for chain in found:
        randoms.shuffle(chain)
    return found


def spent(
    order: Callable[[], Strategy], made: OperatorWorkload, chains: list[list[int]]
) -> tuple[float, list[set[int]]]:
    """The cost of all events, and what was found for each."""
    strategy = filled(order, chains)

    def estimate(condition: int) -> tuple[float, float]:
        return float(made.selectivities[condition]), float(made.costs[condition])

    found, cost = [], 0.0
    for truths in made.truths:
        true_chains, asked = decide(strategy, range(len(chains)), truths.tolist(), estimate)
        found.append(true_chains)
        cost += sum(float(made.costs[c]) for c in asked)
    return cost, found


@pytest.mark.parametrize("popularity", ["zipf", "uniform"])
@pytest.mark.parametrize("costs", ["equal", "varied"])
def test_each_order_evaluates_less_than_the_one_before(popularity: str, costs: str) -> None:
    made = workload(n_predicates=1500, popularity=popularity, costs=costs)
    chains = chains_of(made)
    results = {
        order: spent(order, made, chains) for order in (Naive, Sequential, SubOrder, Adaptive)
    }
    assert all(found == results[Naive][1] for _, found in results.values())
    assert any(results[Naive][1])
    (naive, _), (sequential, _), (sub_order, _), (adaptive, _) = results.values()
    assert sequential < 0.75 * naive
    assert sub_order < 0.95 * sequential
    assert adaptive < 1.02 * sub_order


def test_chains_can_come_and_go_without_a_new_order() -> None:
    """What was inserted one by one is walked nearly as cheaply as what was ordered at once."""
    made = workload(n_predicates=1500, popularity="zipf")
    chains = chains_of(made)
    at_once, found = spent(SubOrder, made, chains)

    def estimate(condition: int) -> tuple[float, float]:
        return float(made.selectivities[condition]), 1.0

    strategy = SubOrder()
    n_extra = 500
    for number in range(len(chains) + n_extra):
        strategy.add(number, chains[number % len(chains)])
        strategy.prepare([number], estimate)
    for number in range(len(chains), len(chains) + n_extra):
        strategy.remove(number)
    cost = 0.0
    for truths, expected in zip(made.truths, found, strict=True):
        true_chains, asked = decide(strategy, range(len(chains)), truths.tolist(), estimate)
        assert true_chains == expected
        cost += len(asked)
    assert cost <= 1.1 * at_once


def test_the_order_follows_estimates_that_drift() -> None:
    """Two conditions, of which one is nearly always false; then the other one is."""
    strategy = filled(SubOrder, [[0, 1], [2, 1, 0]])
    chances = [0.01, 0.99, 0.5]
    truths = [False, True, True]

    def estimate(condition: int) -> tuple[float, float]:
        return chances[condition], 1.0

    assert decide(strategy, range(2), truths, estimate)[1] == [0]
    chances[0], chances[1] = 0.99, 0.01
    truths = [True, False, True]
    for _ in range(10):
        asked = decide(strategy, range(2), truths, estimate)[1]
    assert asked == [1]


@given(st.data())
def test_sums_are_those_of_a_fresh_order_after_any_changes(data: st.DataObject) -> None:
    estimates = [(0.1 * n + 0.05, 1.0 + n % 3) for n in range(N_CONDITIONS)]
    strategy = SubOrder()
    kept: dict[int, list[int]] = {}
    for number in range(data.draw(st.integers(1, 12))):
        if kept and data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(sorted(kept)))
            strategy.remove(gone)
            del kept[gone]
        kept[number] = data.draw(
            st.lists(st.integers(0, N_CONDITIONS - 1), min_size=1, max_size=4, unique=True)
        )
        strategy.add(number, kept[number])
        strategy.prepare([number], estimates.__getitem__)
    fresh = SubOrder()
    for number, conditions in kept.items():
        fresh.add(number, conditions)
    fresh.prepare(list(kept), estimates.__getitem__)
    assert strategy._n_places == fresh._n_places
    assert strategy._shared.keys() == fresh._shared.keys()
    for condition, sums in fresh._shared.items():
        own = strategy._shared[condition]
        assert own.n == sums.n
        assert (own.reach, own.above) == pytest.approx((sums.reach, sums.above))
    for number in kept:
        assert strategy._score_of(number) == pytest.approx(fresh._score[number], abs=1e-9)


# -- what no order can go below -------------------------------------------------------------------


def best_choice(
    chains: Sequence[Sequence[int]],
    truths: Sequence[bool],
    costs: Sequence[float] = (1,) * N_CONDITIONS,
) -> float:
    """The cost of the best set of conditions that decides all chains; all sets are tried."""

    def decides(chosen: set[int]) -> bool:
        return all(
            chosen.issuperset(chain) or any(c in chosen and not truths[c] for c in chain)
            for chain in chains
        )

    choices = (
        set(chosen)
        for size in range(N_CONDITIONS + 1)
        for chosen in itertools.combinations(range(N_CONDITIONS), size)
    )
    return min(sum(costs[c] for c in chosen) for chosen in choices if decides(chosen))


@given(all_chains, all_truths)
def test_the_bound_holds_for_the_best_of_all_choices(
    chains: list[list[int]], truths: list[bool]
) -> None:
    assert fewest(chains, truths) <= best_choice(chains, truths)


@given(
    st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True), max_size=8),
    all_truths,
    st.data(),
)
def test_sequential_keeps_the_bound_of_theorem_2(
    chains: list[list[int]], truths: list[bool], data: st.DataObject
) -> None:
    """At most d times as many evaluations as the best of all choices, d the longest chain."""
    order = data.draw(st.permutations(range(len(chains))))
    _, asked = decide(filled(Sequential, chains), order, truths)
    best = best_choice(chains, truths)
    assert best <= len(asked) <= max(map(len, chains), default=0) * best


@given(
    st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True), max_size=8),
    all_truths,
    st.lists(st.sampled_from([1.0, 2.0, 5.0]), min_size=6, max_size=6),
)
def test_with_costs_that_differ_the_bound_is_wider_by_their_ratio(
    chains: list[list[int]], truths: list[bool], costs: list[float]
) -> None:
    """Section 4.3: d × Cmax / Cmin."""
    numbers = range(len(chains))
    _, asked = decide(filled(Sequential, chains), numbers, truths, lambda c: (0.5, costs[c]))
    best = best_choice(chains, truths, costs)
    d = max(map(len, chains), default=0)
    assert sum(costs[c] for c in asked) <= d * max(costs) / min(costs) * best + 1e-9


def test_the_bound_of_theorem_2_is_reached() -> None:
    """d conditions before the one that decides: only d times as many as needed."""
    assert len(decide(filled(Sequential, [[0, 1, 2]]), [0], [True, True, False])[1]) == 3
    assert best_choice([[0, 1, 2]], [True, True, False]) == 1


@pytest.mark.long
def test_all_that_the_benchmark_of_operators_finds_agrees() -> None:
    assert run(argparse.Namespace(events=1, scale=0.005)) == 0
