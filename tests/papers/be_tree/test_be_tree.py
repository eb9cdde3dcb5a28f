"""BE-Tree beyond the conformance kit: its shape after every operation, its options, its example."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.encoding.conjunction_table import ConjunctionTable, empty_table, take_clauses
from matchmill.encoding.event_batch import as_intervals
from matchmill.errors import InputError
from matchmill.lab.experiments.measure import event_batch
from matchmill.lab.experiments.measure import table_of as table_of_workload
from matchmill.lab.workloads.registry import generate
from matchmill.lab.workloads.standard import standard
from matchmill.papers.be_tree import BeTree
from matchmill.papers.be_tree.capacity import DEFAULT_CAPACITY
from matchmill.papers.be_tree.tree import ABOVE, P_DIMENSION, ROOT
from matchmill.papers.common.clause_intervals import MAX_KEY
from matchmill.papers.common.pools import rows_in_use
from tests.index.mill.test_event_forms import by_definition, random_events
from tests.support.be_tree_checks import check_tree, clauses_of, shape_of
from tests.support.conformance_kit import (
    batch_of,
    brute_force,
    matched,
    random_batch,
    random_table,
    table_of,
)

pytestmark = pytest.mark.kernels

BUILDS = ["batch", "single"]
FIRST = ["popular", "rare"]


def scattered(table: ConjunctionTable, rng: Random) -> ConjunctionTable:
    """The same clauses over all of 64 bits: keys keep their order and 0 stays."""
    steps = [0, *sorted(rng.sample(range(1, MAX_KEY), int(table.highs.max(initial=0)) + 1))]
    places = np.array(steps)
    return table._replace(lows=places[table.lows], highs=places[table.highs])


# -- shape ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("max_capacity", [1, 5, 20])
@pytest.mark.parametrize("top", [12, 40, 400])
def test_built_trees(build: str, max_capacity: int, top: int) -> None:
    rng = Random(top)
    table, batch = random_table(rng, 400, top=top), random_batch(rng, 20, top=top)
    for clauses in (table, scattered(table, rng)):
        for first in FIRST:
            index = BeTree.build(clauses, build=build, max_capacity=max_capacity, first=first)
            check_tree(index, clauses_of(clauses))
            assert matched(index.match_batch(batch)) == brute_force(clauses, batch)


def test_rare_dimensions_first() -> None:
    """One dimension is in all clauses, the others in few: these are what leaves are cut by."""
    table = table_of([{0: [(k, k)], 1 + k % 10: [(1, 1)]} for k in range(1, 101)])
    for first, dimensions in (("popular", [0]), ("rare", list(range(1, 11)))):
        index = BeTree.build(table, max_capacity=5, first=first)
        partitions = index._tree.partitions
        used = partitions.cells[: rows_in_use(partitions)]
        top = used[used[:, ABOVE] == ROOT, P_DIMENSION]
        assert sorted(top.tolist()) == dimensions


@given(
    seed=st.integers(0, 10**6),
    max_capacity=st.integers(1, 8),
    min_size=st.integers(1, 5),
    self_adjust=st.booleans(),
    build=st.sampled_from(BUILDS),
    first=st.sampled_from(FIRST),
)
def test_any_sequence_of_changes(
    seed: int, max_capacity: int, min_size: int, self_adjust: bool, build: str, first: str
) -> None:
    rng = Random(seed)
    top = rng.choice((3, 12, 100))
    everything = random_table(rng, 60, rng.choice((2, 8)), top=top + 9)
    if rng.random() < 0.3:
        everything = scattered(everything, rng)
    batch = random_batch(rng, 8, top=top)
    clauses = clauses_of(everything)
    live = set(rng.sample(range(60), rng.choice((0, 30))))
    index = BeTree.build(
        take_clauses(everything, np.array(sorted(live), np.int64)),
        max_capacity=max_capacity,
        min_size=min_size,
        self_adjust=self_adjust,
        build=build,
        first=first,
    )
    for _ in range(12):
        dead = sorted(set(clauses) - live)
        if dead and rng.random() < 0.5:
            chosen = rng.sample(dead, rng.randint(1, len(dead)))
            index.insert(take_clauses(everything, np.array(chosen)))
            live |= set(chosen)
        elif live:
            chosen = rng.sample(sorted(live), rng.randint(1, len(live)))
            index.delete(np.array(chosen))
            live -= set(chosen)
        check_tree(index, {i: clauses[i] for i in live})
        expected = take_clauses(everything, np.array(sorted(live), np.int64))
        assert matched(index.match_batch(batch)) == brute_force(expected, batch)


def test_one_at_a_time_up_and_down() -> None:
    """The tree is whole after each single change, and empty in the end."""
    rng = Random(3)
    table = random_table(rng, 150, 5)
    clauses = clauses_of(table)
    index = BeTree.build(empty_table(), max_capacity=3)
    for i in range(150):
        index.insert(take_clauses(table, np.array([i])))
        check_tree(index, {k: clauses[k] for k in range(i + 1)})
    order = rng.sample(range(150), 150)
    for n, i in enumerate(order):
        index.delete(np.array([i]))
        check_tree(index, {k: clauses[k] for k in order[n + 1 :]})
    assert shape_of(index) == ([], {})


def test_the_example_of_figure_3() -> None:
    """Section 6: [a] takes S1 and S4; [d] takes S3, S5 and S6; S7 and S8 go to [a], which is
    clustered; S9 overflows the top bucket of [a], which has been split, and [b] is chosen there.
    The text names attributes, and the operators are ours."""
    a, b, c, d, e = range(5)
    wide_range = [(5, MAX_KEY)]
    subscriptions = [
        {a: wide_range},  # S1
        {c: [(1, 1)]},  # S2
        {d: [(4, 4)]},  # S3
        {a: wide_range, b: [(3, 3)]},  # S4
        {d: [(5, 9)]},  # S5
        {d: [(7, 7)], e: [(1, 1)]},  # S6
        {a: [(1, 3)], e: [(2, 2)]},  # S7
        {a: wide_range, e: [(9, 9)]},  # S8
        {a: wide_range, b: [(1, 2)]},  # S9
    ]
    table = table_of(subscriptions, first_id=1)
    index = BeTree.build(empty_table(), max_capacity=3, min_size=2)
    shapes = []
    for i in range(9):
        index.insert(take_clauses(table, np.array([i])))
        check_tree(index, {k: clauses_of(table)[k] for k in range(1, i + 2)})
        shapes.append(shape_of(index))
    everything = (0, MAX_KEY)
    assert shapes[2] == ([1, 2, 3], {})
    assert shapes[3] == ([2, 3], {a: [(everything, ([1, 4], {}))]})
    assert shapes[5] == (
        [2],
        {a: [(everything, ([1, 4], {}))], d: [(everything, ([3, 5, 6], {}))]},
    )
    clustered = [(everything, ([1, 4, 8], {})), ((0, 3), ([7], {}))]
    assert shapes[7][1][a] == clustered
    below_b = {b: [(everything, ([4, 9], {}))]}
    assert shapes[8][1][a] == [(everything, ([1, 8], below_b)), clustered[1]]


def test_merging_gives_back_the_halves() -> None:
    points = [{0: [(key, key)]} for key in range(1, 9)]
    index = BeTree.build(table_of(points), max_capacity=4)
    _, below = shape_of(index)
    assert len(below[0]) > 1
    index.delete(np.arange(4, 8))
    check_tree(index, clauses_of(table_of(points[:4])))
    index.delete(np.array([0]))
    filled = [ids for _, (ids, _) in shape_of(index)[1][0] if ids]
    assert filled == [[1, 2, 3]]


def test_extended_leaves() -> None:
    """Clauses that nothing tells apart stay together, and shrink again."""
    same = [{0: [(5, 5)]}] * 500 + [{}] * 30 + [{1: [(0, 3)]}] * 30
    index = BeTree.build(table_of(same), max_capacity=5, build="single")
    check_tree(index, clauses_of(table_of(same)))
    assert len(matched(index.match_batch(batch_of([{0: 5}])))[0]) == 560
    index.delete(np.arange(3, 560))
    check_tree(index, clauses_of(table_of(same[:3])))


def test_a_new_capacity_is_for_cuts_to_come() -> None:
    points = [{0: [(key % 50 + 1, key % 50 + 1)]} for key in range(400)]
    narrow = BeTree.build(empty_table(), max_capacity=2)
    narrow.set_capacity(1000)
    narrow.insert(table_of(points[:4]))
    assert shape_of(narrow)[1] != {}  # the root began with 2
    wide = BeTree.build(empty_table(), max_capacity=1000)
    wide.insert(table_of(points))
    assert shape_of(wide)[1] == {}


@pytest.mark.parametrize(
    ("probability", "capacity"),
    [(0, 5), (0.009, 5), (0.01, 20), (0.09, 20), (0.1, 160), (1, 160), (None, DEFAULT_CAPACITY)],
)
def test_capacity_by_table_4(probability: float | None, capacity: int) -> None:
    points = table_of([{0: [(key, key)]} for key in range(1, capacity + 2)])
    index = BeTree.build(points, matching_probability=probability)
    assert shape_of(index)[1] != {}
    index = BeTree.build(
        take_clauses(points, np.arange(capacity)), matching_probability=probability
    )
    assert shape_of(index)[1] == {}


# -- ranking --------------------------------------------------------------------------------------


def test_a_p_node_that_loses_is_recycled() -> None:
    """Clauses that one test finds and a second one discards, which cannot be a partition: a Loss
    of two tests per clause and a Gain of one. Events that do not get there cost nothing."""
    table = table_of([{0: [(1, 900)], 2: [(0, 9)]}] * 60)
    losing, winning = batch_of([{0: 5, 2: 20}] * 40), batch_of([{2: 20}] * 40)
    index = BeTree.build(table, max_capacity=10)
    assert index.adjust() == 0
    assert matched(index.match_batch(winning)) == [[]] * 40
    assert index.adjust() == 0
    assert matched(index.match_batch(losing)) == [[]] * 40
    assert index.adjust() == 1
    check_tree(index, clauses_of(table))
    assert index.adjust() == 0  # a new window has begun
    index.match_batch(losing)
    index.delete(np.arange(0, 40))  # windows are ended by changes, too
    check_tree(index, {i: clauses_of(table)[i] for i in range(40, 60)})


@pytest.mark.slow
def test_a_tree_recovers_from_another_workload() -> None:
    """Figure 13: uniform, Zipf, uniform again. Of trees with the same clauses, the one that adjusts
    looks at as few of them as in the beginning; the one that does not, at half as many again."""
    specs = [
        standard(name).changed(n_subscriptions=5000, n_events=500) for name in ("be01", "zipf")
    ]
    workloads = [generate(spec) for spec in specs]
    first, second = (table_of_workload(workload.subscriptions) for workload in workloads)
    second = second._replace(clause_ids=second.clause_ids + 5000)
    batches = [event_batch(workload.events) for workload in workloads]

    def candidates(index: BeTree) -> int:
        before = index.stats().candidates
        for batch in batches:
            index.match_batch(batch)
        return index.stats().candidates - before

    ratios: list[float] = []
    for self_adjust in (True, False):
        index = BeTree.build(first, max_capacity=5, build="single", self_adjust=self_adjust)
        start = candidates(index)
        for old, new in ((first, second), (second, first)):
            for i in range(5000):
                index.delete(old.clause_ids[i : i + 1])
                index.insert(take_clauses(new, np.array([i])))
                if i % 1000 == 999 and self_adjust:
                    candidates(index)
                    index.adjust()
        ratios.append(candidates(index) / start)
    check_tree(index, clauses_of(first))
    assert ratios[0] < 1.15
    assert ratios[1] > 1.4


@pytest.mark.parametrize("self_adjust", [True, False])
def test_workloads_that_replace_each_other(self_adjust: bool) -> None:
    """Figure 13 at small scale: from one workload to another and back, one change at a time, with
    matches between."""
    rng = Random(8)
    first = random_table(rng, 120, 8, top=60)
    second = random_table(rng, 120, 3, first_id=1000, top=9)
    batch = random_batch(rng, 40, 8, top=30)
    index = BeTree.build(first, max_capacity=5, self_adjust=self_adjust)
    live = clauses_of(first)
    for old, new in ((first, second), (second, first)):
        for i in range(120):
            index.delete(old.clause_ids[i : i + 1])
            index.insert(take_clauses(new, np.array([i])))
            del live[int(old.clause_ids[i])]
            live |= clauses_of(take_clauses(new, np.array([i])))
            if i % 10 == 0:
                check_tree(index, live)
                index.match_batch(batch)
        check_tree(index, live)
        assert matched(index.match_batch(batch)) == brute_force(new, batch)


# -- events as expressions ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("top", [12, 40, 400])
def test_events_of_intervals(seed: int, top: int) -> None:
    rng = Random(seed)
    table, events = random_table(rng, 150, 6, top=top), random_events(rng, 20, 8, top)
    index = BeTree.build(table, max_capacity=4)
    assert matched(index.match_intervals(events)) == by_definition(table, events)
    batch = random_batch(rng, 20, top=top)
    assert matched(index.match_intervals(as_intervals(batch))) == brute_force(table, batch)


# -- the edges ------------------------------------------------------------------------------------


def test_saved_and_changed_further() -> None:
    rng = Random(12)
    table, batch = random_table(rng, 200), random_batch(rng, 20)
    more = random_table(rng, 100, first_id=500)
    index = BeTree.build(table, max_capacity=4)
    index.match_batch(batch)
    again = BeTree.from_arrays({name: a.copy() for name, a in index.arrays().items()})
    again.insert(more)
    again.delete(table.clause_ids)
    check_tree(again, clauses_of(more))
    assert matched(again.match_batch(batch)) == brute_force(more, batch)
    check_tree(index, clauses_of(table))


def test_ids_of_any_kind() -> None:
    table = table_of([{0: [(1, 5)]}] * 4)
    table = table._replace(clause_ids=np.array([-1, 0, MAX_KEY, -(2**63)]))
    index = BeTree.build(table)
    assert matched(index.match_batch(batch_of([{0: 3}]))) == [[-(2**63), -1, 0, MAX_KEY]]
    index.delete(np.array([-1, MAX_KEY]))
    assert matched(index.match_batch(batch_of([{0: 3}]))) == [[-(2**63), 0]]


def test_refusals_change_nothing() -> None:
    table = random_table(Random(13), 30)
    index = BeTree.build(table)
    clauses = clauses_of(table)
    with pytest.raises(InputError, match="1 of these 2 clauses are not in the index; none was"):
        index.delete(np.array([5, 99]))
    with pytest.raises(InputError, match="30 of these 30 clauses are in the index already"):
        index.insert(table)
    twice = random_table(Random(14), 2, first_id=100)._replace(clause_ids=np.array([100, 100]))
    with pytest.raises(InputError, match="given twice; none was inserted"):
        index.insert(twice)
    far = table_of([{1 << 30: [(1, 1)]}], first_id=200)
    with pytest.raises(InputError, match="dimension 1073741824 is too large"):
        index.insert(far)
    check_tree(index, clauses)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_capacity": 0}, "max_capacity is 0; it must be at least 1"),
        ({"min_size": -1}, "min_size is -1; it must be at least 1"),
        ({"matching_probability": 2}, "matching_probability is 2; it is from 0 to 1"),
        ({"first": "best"}, "first must be popular or rare, not 'best'"),
        ({"build": "slow"}, "build must be batch or single, not 'slow'"),
        ({"windows": "time"}, "windows must be changes or operations, not 'time'"),
        ({"alpha_covered": 1.5}, "alpha_covered is 1.5; it is from 0 to 1"),
        ({"beta": -1}, "beta is -1; it is from 0 to 1"),
        ({"gamma": float("nan")}, "gamma is nan; it is from 0 to 1"),
        ({"exploration": 2}, "exploration is 2; it is from 0 to 1"),
        ({"threshold": float("nan")}, "threshold is NaN; it must be a number or None"),
        ({"histogram_buckets": -1}, "histogram_buckets is -1; 0 is none"),
        ({"histogram_buckets": 8, "first": "rare"}, "histogram_buckets estimate a rank"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        BeTree.build(empty_table(), **options)
