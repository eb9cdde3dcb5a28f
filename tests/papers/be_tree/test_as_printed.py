"""BE-Tree's options for what the paper has and we do otherwise: each shows its effect."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import matchmill as mm
from matchmill.encoding.conjunction_table import ConjunctionTable, empty_table, take_clauses
from matchmill.encoding.event_batch import IntervalEvents, as_intervals
from matchmill.index.registry import check_index_options
from matchmill.lab.experiments.contenders import build_contender, is_there
from matchmill.lab.experiments.spec import Contender
from matchmill.papers.be_tree import BeTree
from matchmill.papers.be_tree.parameters import MAX_CAPACITY
from matchmill.papers.be_tree.tree import LOSS, ROOT, TOTAL_SIZE
from tests.index.mill.test_event_forms import random_events
from tests.support.be_tree_checks import check_tree, clauses_of, partitions_of, shape_of
from tests.support.conformance_kit import (
    batch_of,
    brute_force,
    matched,
    random_batch,
    random_table,
    table_of,
)

pytestmark = pytest.mark.kernels

# One test finds these clauses, and a second one, which cannot be a partition, discards them.
COVERED = table_of([{0: [(1, 900)], 2: [(0, 9)]}] * 60)  # two tests are made, the first is covered
SUBSUMED = table_of([{0: [(5, 5)], 2: [(0, 9)]}] * 60)  # one test is made, the other is subsumed
LOSING = {0: 5, 2: 20}


def sizes_of(index: BeTree) -> dict[int, int]:
    """The clauses below each p-node of the root."""
    rows = index._tree.partitions.cells
    return {d: int(rows[p, TOTAL_SIZE]) for d, p in partitions_of(index._tree, ROOT).items()}


# -- Rank -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "weights", "is_recycled"),
    [
        (COVERED, {}, True),  # per clause: a Gain of 1, a Loss of 2
        (COVERED, {"gamma": 0.5}, False),
        (COVERED, {"gamma": 0.5, "beta": 0.9}, True),
        (COVERED, {"gamma": 0.5, "alpha_covered": 0.9}, True),
        (COVERED, {"gamma": 0.5, "alpha_subsumed": 0.0}, False),
        (COVERED, {"gamma": 0.0, "beta": 0.0}, False),
        (COVERED, {"threshold": -60.0}, False),
        (COVERED, {"threshold": -59.0}, True),
        (SUBSUMED, {}, False),  # per clause: a Gain of 1, a Loss of 1
        (SUBSUMED, {"alpha_subsumed": 0.9}, True),
        (SUBSUMED, {"alpha_covered": 0.0}, False),
        (SUBSUMED, {"beta": 0.9}, True),
        (SUBSUMED, {"threshold": 1.0}, True),
    ],
)
def test_the_weights_of_rank(
    table: ConjunctionTable, weights: dict[str, float], is_recycled: bool
) -> None:
    index = BeTree.build(table, max_capacity=10, **{"threshold": 0.0, **weights})  # type: ignore[arg-type]
    batch = batch_of([LOSING] * 40)
    assert matched(index.match_batch(batch)) == [[]] * 40
    assert index.adjust() == int(is_recycled)
    check_tree(index, clauses_of(table))
    assert matched(index.match_batch(batch)) == [[]] * 40


# -- windows --------------------------------------------------------------------------------------


def test_windows_that_count_matches() -> None:
    """A tenth of 60 clauses is less than the shortest window, 16 operations."""
    index = BeTree.build(COVERED, max_capacity=10, windows="operations", threshold=0.0)
    index.match_batch(batch_of([LOSING] * 15 + [{2: 20}] * 100))  # only 15 come to the p-node
    assert not index.is_adjustment_due()
    assert index.adjust() == 0
    index.match_batch(batch_of([LOSING]))
    assert index.is_adjustment_due()
    assert index.adjust() == 1
    check_tree(index, clauses_of(COVERED))
    assert not index.is_adjustment_due()


def test_an_event_that_does_not_come_to_a_p_node_is_not_in_its_window() -> None:
    """40 of 800 events lose 120 tests each: 6 per event, but 120 per event that came."""
    batch = batch_of([LOSING if k % 20 == 0 else {2: 20} for k in range(800)])
    for windows, n_recycled in (("changes", 0), ("operations", 1)):
        index = BeTree.build(COVERED, max_capacity=10, windows=windows, threshold=0.0)
        index.match_batch(batch)
        assert index.adjust() == n_recycled


@pytest.mark.parametrize("is_expression", [False, True])
def test_a_window_that_matches_have_filled_ends_at_the_next_change(is_expression: bool) -> None:
    batch = batch_of([LOSING] * 20)
    one_more = table_of([{0: [(1, 900)], 2: [(0, 9)]}], first_id=100)
    roots = []
    for windows in ("changes", "operations"):
        index = BeTree.build(COVERED, max_capacity=10, windows=windows, threshold=0.0)
        if is_expression:
            index.match_intervals(as_intervals(batch))
        else:
            index.match_batch(batch)
        before = partitions_of(index._tree, ROOT)[0]
        index._tree.partitions.cells[before, LOSS] = 77
        index.insert(one_more)
        check_tree(index, clauses_of(COVERED) | clauses_of(one_more))
        roots.append(int(index._tree.partitions.cells[partitions_of(index._tree, ROOT)[0], LOSS]))
    assert roots == [77, 0]  # the p-node of the second one is new


# -- Loss by a histogram --------------------------------------------------------------------------


@pytest.mark.parametrize("base", [1, 40_000, 2**62])
def test_loss_by_a_histogram(base: int) -> None:
    """All clauses allow nearly anything on dimension 0; most ask for one key of dimension 1."""
    clauses = [{0: [(base, base + 9_000)], 1: [(base + 9 * k, base + 9 * k)]} for k in range(80)]
    clauses += [{0: [(base, base + 9_000 + k)]} for k in range(20)]
    table = table_of(clauses)
    batch = batch_of([{0: base + 70, 1: base + 9 * k} for k in range(0, 90, 7)])
    popular = BeTree.build(table, max_capacity=20)
    printed = BeTree.build(table, max_capacity=20, histogram_buckets=16)
    assert sizes_of(popular) == {0: 100}
    assert sizes_of(printed) == {1: 80}
    p_row = printed._tree.partitions.cells[partitions_of(printed._tree, ROOT)[1]]
    assert p_row[LOSS] == 1024 * 80 // 16  # five clauses per bucket
    for index in (popular, printed):
        check_tree(index, clauses_of(table))
        assert matched(index.match_batch(batch)) == brute_force(table, batch)


def test_gamma_weighs_the_histogram() -> None:
    table = table_of(
        [{0: [(1, 900)], 1: [(k + 1, k + 1)]} for k in range(50)] + [{0: [(1, 900)]}] * 10
    )
    for gamma, dimension in ((1.0, 1), (0.0, 0)):
        index = BeTree.build(table, max_capacity=10, histogram_buckets=8, gamma=gamma)
        assert next(iter(sizes_of(index))) == dimension
        check_tree(index, clauses_of(table))


# -- exploration and re-insertion -----------------------------------------------------------------


def test_exploration_of_new_partitions() -> None:
    """By rank all clauses go below dimension 0. A tree that explores tries the others too, in the
    same way each time, and goes on in the same way after it was saved."""
    table = table_of([{0: [(k, k)], 1 + k % 10: [(1, 1)]} for k in range(1, 101)])
    more = table._replace(clause_ids=table.clause_ids + 1000)
    assert set(sizes_of(BeTree.build(table, max_capacity=5))) == {0}
    first, same = (BeTree.build(table, max_capacity=5, exploration=1.0) for _ in range(2))
    check_tree(first, clauses_of(table))
    assert len(sizes_of(first)) > 1
    assert shape_of(first) == shape_of(same)
    again = BeTree.from_arrays({name: a.copy() for name, a in first.arrays().items()})
    for index in (first, again):
        index.insert(more)
        check_tree(index, clauses_of(table) | clauses_of(more))
    assert shape_of(first) == shape_of(again)
    batch = batch_of([{0: k, 1 + k % 10: 1} for k in range(1, 101, 9)])
    assert matched(again.match_batch(batch)) == [[k, k + 1000] for k in range(0, 100, 9)]


def test_exploration_of_partitions_that_are_there() -> None:
    old = table_of([{0: [(k, k)]} for k in range(1, 101)] + [{1: [(k, k)]} for k in range(1, 51)])
    new = table_of([{0: [(k, k)], 1: [(k, k)]} for k in range(1, 101)], first_id=1000)
    for exploration, fewest, most in ((0.0, 50, 50), (0.2, 51, 70), (1.0, 80, 120)):
        index = BeTree.build(old, exploration=exploration, max_capacity=5)
        for i in range(100):
            index.insert(take_clauses(new, np.array([i])))
        check_tree(index, clauses_of(old) | clauses_of(new))
        sizes = sizes_of(index)
        assert sizes[0] + sizes[1] == 250
        assert fewest <= sizes[1] <= most


@pytest.mark.parametrize("windows", ["changes", "operations"])
def test_expressions_are_inserted_again(windows: str) -> None:
    """Clauses on dimensions 0 and 1 came when most had 0; by now most have 1."""
    first = table_of([{0: [(k, k)], 1: [(k, k)]} for k in range(1, 21)] + [{0: [(9, 9)]}] * 5)
    second = table_of([{1: [(k, k)]} for k in range(1, 61)], first_id=100)
    clauses = clauses_of(first) | clauses_of(second)
    batch = batch_of([{0: k, 1: k} for k in range(1, 41)])
    for reinsert, sizes in ((False, {0: 25, 1: 60}), (True, {0: 5, 1: 80})):
        # (Nothing is recycled.)
        index = BeTree.build(
            first, max_capacity=4, reinsert=reinsert, windows=windows, threshold=-1e6
        )
        index.insert(second)
        assert sizes_of(index) == {0: 25, 1: 60}
        before = matched(index.match_batch(batch))
        index.adjust()
        assert sizes_of(index) == sizes
        check_tree(index, clauses)
        assert matched(index.match_batch(batch)) == before


# -- leaf capacity --------------------------------------------------------------------------------


def test_capacity_from_what_has_matched() -> None:
    common, rare = [{0: [(1, 9)]}] * 3, [{0: [(k, k)]} for k in range(100, 160)]
    for is_adjusted, capacity in ((False, 7), (True, 160)):
        index = BeTree.build(table_of(common), max_capacity=7, adjust_capacity=is_adjusted)
        index.match_batch(batch_of([{0: 5}] * 20))  # too few to judge by
        index.adjust()
        assert index._tree.settings[MAX_CAPACITY] == 7
        index.match_batch(batch_of([{0: 5}] * 100))
        index.insert(table_of(rare, first_id=100))
        assert index._tree.settings[MAX_CAPACITY] == capacity
        check_tree(index, clauses_of(table_of(common)) | clauses_of(table_of(rare, first_id=100)))
        n_buckets = len(shape_of(index)[1][0])
        assert n_buckets == 1 if is_adjusted else n_buckets > 1
        index.match_batch(batch_of([{0: 5000}] * 1000))
        index.delete(np.array([100]))
        assert index._tree.settings[MAX_CAPACITY] == (5 if is_adjusted else 7)


# -- events that are stored -----------------------------------------------------------------------


def meet(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> bool:
    return any(a <= d and c <= b for a, b in one for c, d in other)


def satisfying(
    table: ConjunctionTable, subscriptions: IntervalEvents, both_ways: bool
) -> list[list[int]]:
    """The definition: each predicate of the subscription meets what the stored event allows."""
    absent = [(0, 0)]
    out = []
    for e in range(subscriptions.n_events):
        asked = {}
        for p in range(subscriptions.offsets[e], subscriptions.offsets[e + 1]):
            span = slice(*subscriptions.interval_offsets[p : p + 2].tolist())
            lows, highs = subscriptions.lows[span].tolist(), subscriptions.highs[span].tolist()
            asked[int(subscriptions.dimensions[p])] = list(zip(lows, highs, strict=True))
        out.append(
            [
                i
                for i, event in clauses_of(table).items()
                if all(meet(pairs, event.get(d, absent)) for d, pairs in asked.items())
                and (
                    not both_ways
                    or all(meet(pairs, asked.get(d, absent)) for d, pairs in event.items())
                )
            ]
        )
    return out


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("top", [12, 400])
def test_stored_events(seed: int, top: int) -> None:
    rng = Random(seed)
    table, subscriptions = random_table(rng, 150, 6, top=top), random_events(rng, 30, 8, top)
    # Some subscriptions accept absence.
    lows = np.where(
        np.array([rng.random() < 0.2 for _ in subscriptions.lows]), 0, subscriptions.lows
    )
    firsts = np.zeros(len(lows), bool)
    firsts[subscriptions.interval_offsets[:-1]] = True
    subscriptions = subscriptions._replace(lows=np.where(firsts, lows, subscriptions.lows))
    for build in ("batch", "single"):
        index = BeTree.build(table, max_capacity=4, build=build)
        for both_ways in (False, True):
            expected = satisfying(table, subscriptions, both_ways)
            assert sum(map(len, expected)) > 0
            got = index.match_stored(subscriptions, both_ways=both_ways)
            assert matched(got) == expected
        only_events = matched(index.match_intervals(subscriptions))
        both = matched(index.match_stored(subscriptions, both_ways=True))
        one = matched(index.match_stored(subscriptions))
        assert both == [sorted(set(a) & set(b)) for a, b in zip(only_events, one, strict=True)]


def test_stored_events_by_example() -> None:
    price, region = 0, 3
    index = BeTree.build(table_of([{price: [(5, 5)]}, {price: [(8, 20)], region: [(3, 3)]}]))
    asks = IntervalEvents(*map(np.array, ([0, 1], [price], [0, 1], [1], [9])))
    assert matched(index.match_stored(asks)) == [[0, 1]]
    assert matched(index.match_stored(asks, both_ways=True)) == [[0]]
    unknown = asks._replace(dimensions=np.array([7]))
    assert matched(index.match_stored(unknown)) == [[]]


# -- checked and saved ----------------------------------------------------------------------------

OPTIONS: dict[str, Any] = {
    "windows": "operations",
    "threshold": 0.5,
    "alpha_subsumed": 0.75,
    "alpha_covered": 0.25,
    "beta": 0.5,
    "gamma": 0.125,
    "histogram_buckets": 16,
    "exploration": 0.25,
    "reinsert": True,
    "adjust_capacity": True,
    "ahead": False,
}


def test_options_are_saved_with_the_tree() -> None:
    table = random_table(Random(2), 60)
    index = BeTree.build(table, **OPTIONS)
    again = BeTree.from_arrays(index.arrays())
    for name in ("settings", "weights"):
        saved, opened = (getattr(tree._tree, name) for tree in (index, again))
        assert np.array_equal(saved, opened)
        default = getattr(BeTree.build(table)._tree, name)
        assert not np.array_equal(saved, default)


def test_a_tree_that_was_saved_before_there_were_weights() -> None:
    table, batch = random_table(Random(2), 60), random_batch(Random(3), 20)
    arrays = dict(BeTree.build(table, max_capacity=4).arrays())
    del arrays["weights"]
    arrays["settings"] = arrays["settings"][:5]
    index = BeTree.from_arrays(arrays)
    check_tree(index, clauses_of(table))
    assert matched(index.match_batch(batch)) == brute_force(table, batch)
    index.delete(np.array([3]))
    check_tree(index, {i: c for i, c in clauses_of(table).items() if i != 3})


def test_an_engine_checks_the_options_and_keeps_them(tmp_path: Any) -> None:
    check_index_options("be_tree", OPTIONS)
    with pytest.raises(mm.InputError, match="beta must be a number from 0 to 1, not 2"):
        mm.Engine(index="be_tree", index_options={"beta": 2})
    engine = mm.Engine(index="be_tree", index_options=OPTIONS)
    for k in range(50):
        engine.subscribe(k, f"x = {k} and y > {k % 7}")
    engine.save(tmp_path / "saved")
    again = mm.Engine.open(tmp_path / "saved", read_only=True)
    assert again.index_options == engine.index_options == OPTIONS
    for opened in (engine, again):
        assert list(opened.match({"x": 20, "y": 9})) == [20]


def test_a_contender_that_is_built_one_by_one() -> None:
    """As an experiment names it: [contenders.be_tree_printed] with these options."""
    rng = Random(4)
    table, batch = random_table(rng, 200), random_batch(rng, 30)
    options = {"build": "single", "ahead": False, "windows": "operations", "threshold": 0.0}
    contender = Contender("be_tree_printed", "be_tree", options)
    assert is_there(contender)
    built = build_contender(contender, table, None, contender.options)
    assert isinstance(built, BeTree)
    check_tree(built, clauses_of(table))
    assert matched(built.match_batch(batch)) == brute_force(table, batch)
    by_one = BeTree.build(empty_table(), **options)  # type: ignore[arg-type]
    for i in range(200):
        by_one.insert(take_clauses(table, np.array([i])))
    assert shape_of(by_one) == shape_of(built)


def test_the_defaults_are_what_they_were() -> None:
    """A tree with default options spelled out is the tree without options."""
    rng = Random(5)
    table, batch = random_table(rng, 300, top=60), random_batch(rng, 50, top=60)
    plain = BeTree.build(empty_table(), max_capacity=4)
    spelled = BeTree.build(
        empty_table(),
        max_capacity=4,
        windows="changes",
        threshold=None,
        beta=1.0,
        gamma=1.0,
        histogram_buckets=0,
        exploration=0.0,
    )
    for index in (plain, spelled):
        for i in range(0, 300, 10):
            index.insert(take_clauses(table, np.arange(i, i + 10)))
            index.match_batch(batch)
    assert shape_of(plain) == shape_of(spelled)
