"""PS-Trees: the paper's examples, all types and operators, and long random sequences of changes."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from matchmill.errors import InputError
from matchmill.kernels.jit import JIT_DISABLED
from matchmill.papers.common.pools import rows_in_use, spans_in_use
from matchmill.papers.predicate_index.base import PredicateIndex, Predicates
from matchmill.papers.ps_tree.cuts import MAX_KEY
from matchmill.papers.ps_tree.forest import KEY_ELEMENTS, N_PREDICATES, leaf_of_key
from matchmill.papers.ps_tree.predicate_tree import PSTree
from matchmill.papers.ps_tree.typed_elements import KINDS, elements_of, value_of
from matchmill.papers.ps_tree.typed_tree import TypedPSTree
from tests.support.operator_meanings import MEANINGS
from tests.support.ps_tree_checks import check_forest, key_bounds

pytestmark = pytest.mark.kernels

# -- the paper's examples -------------------------------------------------------------------------


def starts(tree: TypedPSTree) -> list[Any]:
    return [space.start and tuple(space.start) for space in tree.spaces()]


def counters(tree: TypedPSTree) -> list[int]:
    return [space.n_predicates for space in tree.spaces()]


def test_figure_2() -> None:
    tree = TypedPSTree("byte")
    (first,) = tree.insert("between", -5, -1)
    (second,) = tree.insert("between", 1, 5)
    assert starts(tree) == [None, (-5, False), (-1, True), (1, False), (5, True)]
    assert counters(tree) == [0, 1, 0, 1, 0]
    assert tree.match(2) == second
    assert [tree.match(v) == first for v in (-6, -5, -1, 0)] == [False, True, True, False]
    assert elements_of("byte", -5).tolist() == [0, 7, 11]
    assert [space.n_events for space in tree.spaces()] == [1, 2, 1, 1, 0]
    check_forest(tree.forest)


def test_figure_3() -> None:
    first, second = TypedPSTree("byte"), TypedPSTree("byte")
    first.insert("<", -5)
    first.insert("between", -5, -1)
    first.insert("between", -5, -1)
    second.insert("between", 1, 5)
    second.insert("<", 1)
    second.insert(">", 5)
    assert starts(first) == [None, (-5, False), (-1, True)]
    assert counters(first) == [1, 2, 0]
    assert starts(second) == [None, (1, False), (5, True)]
    assert counters(second) == [1, 1, 1]


def test_figure_4() -> None:
    """Access predicates alone: 1 on the first, -1 on the second, 0 on the third dimension."""
    for value, event, is_inside in ((1, 1, True), (-1, -1, True), (0, 2, False)):
        tree = TypedPSTree("byte")
        (leaf,) = tree.insert("=", value)
        tree.insert("=", value)
        assert starts(tree) == [None, (value, False), (value, True)]
        assert counters(tree) == [0, 2, 0]
        assert (tree.match(event) == leaf) == is_inside


def test_spaces_are_united_when_predicates_go() -> None:
    """The ages of section 4.4."""
    tree = TypedPSTree("byte")
    tree.insert("between", 20, 60)
    tree.insert("between", 30, 80)
    assert starts(tree) == [None, (20, False), (30, False), (60, True), (80, True)]
    assert counters(tree) == [0, 1, 2, 1, 0]
    tree.delete("between", 30, 80)
    assert starts(tree) == [None, (20, False), (60, True)]
    assert counters(tree) == [0, 1, 0]
    check_forest(tree.forest)


def test_neighbours_with_equal_counters_stay_apart() -> None:
    tree = TypedPSTree("byte")
    for values in ((1, 5), (6, 10), (1, 10)):
        tree.insert("between", *values)
    tree.delete("between", 1, 10)
    assert tree.match(5) != tree.match(6)


# -- types and operators --------------------------------------------------------------------------

VALUES = {
    "byte": st.integers(-128, 127),
    "int32": st.integers(-(1 << 31), (1 << 31) - 1),
    "int64": st.integers(-(1 << 63), (1 << 63) - 1),
    "double": st.floats(allow_nan=False),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, derandomize=True)
@given(data=st.data())
def test_elements_keep_order_and_can_be_read_back(kind: str, data: st.DataObject) -> None:
    a, b = data.draw(VALUES[kind]), data.draw(VALUES[kind])
    spelled_a, spelled_b = elements_of(kind, a), elements_of(kind, b)
    assert (bytes(spelled_a) < bytes(spelled_b)) == (a < b)
    assert max(spelled_a, default=0) < 16
    assert value_of(kind, spelled_a) == a


def test_numbers_of_elements() -> None:
    assert [len(elements_of(k, 1)) for k in ("byte", "int32", "int64", "double")] == [3, 9, 17, 17]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, derandomize=True, deadline=None)
@given(data=st.data())
def test_operators(kind: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(VALUES[kind], min_size=4, max_size=8))
    some = st.sampled_from(values)
    tree = TypedPSTree(kind)
    live = []
    for name in data.draw(st.lists(st.sampled_from(list(MEANINGS)), min_size=3, max_size=8)):
        n = {"between": 2, "in": 3, "not in": 3}.get(name, 1)
        given_values = data.draw(st.lists(some, min_size=n, max_size=n))
        tree.insert(name, *given_values)
        live.append((name, given_values))
    gone = data.draw(st.integers(0, len(live)))
    for name, given_values in live[:gone]:
        tree.delete(name, *given_values)
    check_forest(tree.forest)
    for value in values:
        expected = sum(MEANINGS[name](value, given) for name, given in live[gone:])
        assert tree.forest.leaves.cells[tree.match(value), N_PREDICATES] == expected
    for name, given_values in live[gone:]:
        tree.delete(name, *given_values)
    assert check_forest(tree.forest) == [1]


@pytest.mark.parametrize(
    ("kind", "value"),
    [("byte", 128), ("int32", 1 << 31), ("int64", True), ("double", float("nan")), ("string", 1)],
)
def test_values_of_another_type(kind: str, value: Any) -> None:
    tree = TypedPSTree(kind)
    with pytest.raises(InputError, match=f"no {kind}; give"):
        tree.insert("=", value)
    assert check_forest(tree.forest) == [1]


def test_wrong_calls_change_nothing() -> None:
    with pytest.raises(InputError, match="unknown type"):
        TypedPSTree("complex")
    tree = TypedPSTree("byte")
    tree.insert("<", 3)
    for call in (
        lambda: tree.insert("like", 3),
        lambda: tree.insert("between", 3),
        lambda: tree.delete("<", 4),
        lambda: tree.delete("<=", 3),
    ):
        with pytest.raises(InputError):
            call()
    assert counters(tree) == [1, 0]


# -- keys -----------------------------------------------------------------------------------------

Intervals = list[tuple[int, int]]
TOP = 40


def predicates_of(predicates: dict[int, Intervals]) -> Predicates:
    flat = [pair for intervals in predicates.values() for pair in intervals]
    bounds = np.array(flat, np.int64).reshape(-1, 2)
    return Predicates(
        np.array(list(predicates), np.int64),
        np.cumsum([0, *map(len, predicates.values())]),
        bounds[:, 0].copy(),
        bounds[:, 1].copy(),
    )


def random_intervals(rng: Random, scale: int) -> Intervals:
    cuts = sorted(rng.sample(range(TOP), 2 * rng.choice((0, 1, 1, 1, 2, 4))))
    pairs = [(a * scale, b * scale - 1) for a, b in zip(cuts[::2], cuts[1::2], strict=True)]
    if pairs and rng.random() < 0.2:
        pairs[-1] = (pairs[-1][0], MAX_KEY)
    if pairs and rng.random() < 0.3:
        pairs[0] = (pairs[0][0], pairs[0][0])
    return pairs


class Changes(RuleBasedStateMachine):
    """Insertions, deletions and questions, against a dict."""

    @initialize(seed=st.integers(0, 1 << 16), scale=st.sampled_from([1, 3, 1 << 30, 1 << 57]))
    def start(self, seed: int, scale: int) -> None:
        self.rng, self.scale = Random(seed), scale
        self.tree = PSTree()
        self.live: dict[int, Intervals] = {}

    @rule(n=st.sampled_from([1, 1, 1, 3, 10]))
    def insert(self, n: int) -> None:
        new = self.rng.sample(sorted(set(range(60)) - set(self.live)), min(n, 60 - len(self.live)))
        predicates = {i: random_intervals(self.rng, self.scale) for i in new}
        self.tree.insert(predicates_of(predicates))
        self.live |= predicates

    @rule(n=st.sampled_from([1, 2, 5]))
    def delete(self, n: int) -> None:
        gone = self.rng.sample(sorted(self.live), min(n, len(self.live)))
        self.tree.delete(np.array(gone, np.int64))
        for i in gone:
            del self.live[i]

    @rule()
    def delete_all(self) -> None:
        self.tree.delete(np.array(sorted(self.live), np.int64))
        self.live = {}
        forest, lists, intervals, table = self.tree.arrays
        assert check_forest(forest) == [1]
        assert (spans_in_use(lists), spans_in_use(intervals), int(table.n_used[0])) == (0, 0, 0)

    @invariant()
    def agrees(self) -> None:
        bounds = [b for pairs in self.live.values() for pair in pairs for b in pair]
        keys = [0, 1, MAX_KEY, *(self.rng.randrange(TOP * self.scale) for _ in range(4))]
        keys += [b + d for b in bounds[:12] for d in (-1, 0, 1) if 0 <= b + d <= MAX_KEY]
        found = self.tree.match(np.array(keys, np.int64))
        for k, key in enumerate(keys):
            ids = found.ids[found.offsets[k] : found.offsets[k + 1]].tolist()
            expected = [i for i, pairs in self.live.items() if any(a <= key <= b for a, b in pairs)]
            assert sorted(ids) == sorted(expected), key

    @invariant()
    def is_whole(self) -> None:
        check_forest(self.tree.arrays.forest)


TestChanges = Changes.TestCase
# Without compilation a step takes a second.
TestChanges.settings = settings(
    max_examples=2 if JIT_DISABLED else 10,
    stateful_step_count=8 if JIT_DISABLED else 30,
    derandomize=True,
    deadline=None,
)


def test_leaves_of_keys_are_those_of_a_walk() -> None:
    rng = Random(1)
    tree = PSTree.build(predicates_of({i: random_intervals(rng, 7) for i in range(12)}))
    forest = tree.arrays.forest
    keys = range(TOP * 7 + 3)
    arrays = (forest.trees, forest.nodes.cells, forest.children.cells)
    for deleted in (-1, *range(12)):  # deletion changes the ways as well
        if deleted >= 0:
            tree.delete(np.array([deleted]))
        found = [leaf_of_key(*arrays, 0, key) for key in keys]
        assert found == key_bounds(forest, 0, keys).tolist()


@pytest.mark.parametrize("seed", range(4))
def test_sizes_stay_in_the_bounds_of_section_4_6(seed: int) -> None:
    """Of n ranges: at most 2 n + 1 spaces, and as many nodes for each as a value has elements."""
    rng = Random(seed)
    tree = PSTree()
    for n in range(1, 30):
        low, high = sorted(rng.randrange(1, 1 << 40) for _ in range(2))
        tree.insert(predicates_of({n: [(low, high)]}))
        forest = tree.arrays.forest
        (n_spaces,) = check_forest(forest)
        assert n_spaces <= 2 * n + 1
        assert rows_in_use(forest.nodes) <= KEY_ELEMENTS * n_spaces
    same = {n: [(low, high)] for n in range(100, 130)}
    tree.insert(predicates_of(same))
    assert check_forest(forest) == [n_spaces], "predicates that are equal share their spaces"


def test_is_a_predicate_structure() -> None:
    tree = PSTree.build(predicates_of({7: [(1, 5)], 9: [(0, 0), (3, MAX_KEY)], 11: []}))
    assert isinstance(tree, PredicateIndex)
    assert tree.n_bytes > 0
    found = tree.match(np.array([0, 1, 4, 6]))
    by_key = np.split(found.ids, found.offsets[1:-1])
    assert [sorted(ids.tolist()) for ids in by_key] == [[9], [7], [7, 9], [9]]
    with pytest.raises(InputError, match="none was inserted"):
        tree.insert(predicates_of({8: [(1, 1)], 9: [(1, 1)]}))
    with pytest.raises(InputError, match="none was deleted"):
        tree.delete(np.array([7, 8]))
    tree.delete(np.array([11, 7]))
    assert tree.match(np.array([1])).ids.tolist() == []
