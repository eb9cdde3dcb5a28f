"""Every predicate index against the definition, through long sequences of changes."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matchmill.errors import InputError
from matchmill.papers.predicate_index.base import PredicateIndex, Predicates, Satisfied
from matchmill.papers.predicate_index.registry import PREDICATE_INDEXES, predicate_index_class

MAX_KEY = int(np.iinfo(np.int64).max)

pytestmark = [pytest.mark.kernels, pytest.mark.parametrize("name", sorted(PREDICATE_INDEXES))]

Intervals = list[tuple[int, int]]


def predicates_of(given: Mapping[int, Intervals]) -> Predicates:
    bounds = np.array([pair for pairs in given.values() for pair in pairs], np.int64)
    bounds = bounds.reshape(-1, 2)
    return Predicates(
        np.array(list(given), np.int64),
        np.cumsum([0, *map(len, given.values())]),
        bounds[:, 0].copy(),
        bounds[:, 1].copy(),
    )


def satisfied_by(given: Mapping[int, Intervals], key: int) -> list[int]:
    return sorted(i for i, pairs in given.items() if any(a <= key <= b for a, b in pairs))


def lists_of(found: Satisfied) -> list[list[int]]:
    """The ids of each key, sorted; an id that is given twice stays twice."""
    assert found.offsets[0] == 0
    assert found.offsets[-1] == len(found.ids)
    spans = zip(found.offsets[:-1], found.offsets[1:], strict=True)
    return [sorted(found.ids[a:b].tolist()) for a, b in spans]


def check(index: PredicateIndex, given: Mapping[int, Intervals], keys: list[int]) -> None:
    found = lists_of(index.match(np.array(keys, np.int64)))
    assert found == [satisfied_by(given, key) for key in keys]


def drawn_intervals(rng: Random, top: int) -> Intervals:
    """Points, rays from both ends, ranges and several of each, with and without absence."""
    shape = rng.random()
    value = rng.randrange(1, top)
    if shape < 0.3:
        return [(value, value)]
    if shape < 0.4:
        return [(1, value)]
    if shape < 0.5:
        return [(value, top)]
    if shape < 0.6 and value > 1:
        return [(1, value - 1), (value + 1, top)]
    if shape < 0.65:
        return [(0, 0)]
    if shape < 0.7:
        return [(value, MAX_KEY)]
    if shape < 0.73:
        return []
    cuts = sorted(rng.sample(range(top), 2 * rng.choice((1, 1, 2, 4))))
    return [(cuts[k], cuts[k + 1] - 1) for k in range(0, len(cuts), 2)]


@pytest.mark.parametrize("top", [12, 300, 1 << 40])
def test_long_sequences_of_changes(name: str, top: int) -> None:
    rng = Random(f"{name} {top}")
    keys = [0, 1, 2, top, top + 1, MAX_KEY, *(rng.randrange(top) for _ in range(30))]
    live: dict[int, Intervals] = {}
    index = predicate_index_class(name).build(predicates_of(live))
    for _ in range(150):
        if not live or rng.random() < 0.6:
            free = [i for i in range(-5, 400) if i not in live]
            ids = rng.sample(free, min(len(free), rng.choice((1, 1, 1, 2, 30))))
            new = {i: drawn_intervals(rng, top) for i in ids}
            index.insert(predicates_of(new))
            live |= new
        else:
            ids = rng.sample(sorted(live), min(len(live), rng.choice((1, 1, 2, 40))))
            index.delete(np.array(ids, np.int64))
            for i in ids:
                del live[i]
        bounds = [bound for pairs in live.values() for pair in pairs for bound in pair]
        check(index, live, keys + rng.sample(bounds, min(len(bounds), 5)))


bounds = st.lists(st.sampled_from([*range(9), MAX_KEY - 1, MAX_KEY]), max_size=6, unique=True)


@st.composite
def several_intervals(draw: st.DrawFn) -> Intervals:
    found: Intervals = []
    cuts = sorted(draw(bounds))
    for low, high in zip(cuts[::2], cuts[1::2], strict=False):
        if not found or low > found[-1][1] + 1:
            found.append((low, draw(st.sampled_from((low, high)))))
    return found


changes = st.lists(
    st.dictionaries(st.integers(0, 12), several_intervals(), max_size=6), min_size=1, max_size=12
)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(rounds=changes)
def test_any_sequence_of_changes(name: str, rounds: list[dict[int, Intervals]]) -> None:
    """Each round takes out those of its ids that are there, and puts in the others."""
    keys = [*range(11), MAX_KEY - 2, MAX_KEY - 1, MAX_KEY]
    live: dict[int, Intervals] = {}
    index = predicate_index_class(name).build(predicates_of(live))
    for chosen in rounds:
        gone = [i for i in chosen if i in live]
        new = {i: pairs for i, pairs in chosen.items() if i not in live}
        index.delete(np.array(gone, np.int64))
        index.insert(predicates_of(new))
        live = {i: pairs for i, pairs in (live | new).items() if i not in gone}
        check(index, live, keys)


def test_many_at_once_and_one_by_one_are_the_same(name: str) -> None:
    rng = Random(3)
    given = {i: drawn_intervals(rng, 5000) for i in range(400)}
    one_by_one = predicate_index_class(name).build(predicates_of({}))
    for i, pairs in given.items():
        one_by_one.insert(predicates_of({i: pairs}))
    keys = [0, 1, 5000, 5001, MAX_KEY, *(rng.randrange(5000) for _ in range(60))]
    check(one_by_one, given, keys)
    check(predicate_index_class(name).build(predicates_of(given)), given, keys)


@pytest.mark.parametrize("is_ascending", [True, False])
def test_insertions_in_order(name: str, is_ascending: bool) -> None:
    """What unbalances a tree."""
    order = range(1, 600) if is_ascending else range(600, 1, -1)
    index = predicate_index_class(name).build(predicates_of({}))
    given: dict[int, Intervals] = {}
    keys = [9, 10, 15, 20, 25, 3000, 3005, 6010, 6016]
    for i in order:
        given[i] = [(10 * i, 10 * i + 15)]
        index.insert(predicates_of({i: given[i]}))
    check(index, given, keys)
    for i in list(order)[::2]:
        index.delete(np.array([i]))
        del given[i]
    check(index, given, keys)


def test_equal_predicates_with_different_ids(name: str) -> None:
    given: dict[int, Intervals] = {i: [(3, 3), (7, 20)] for i in range(300)}
    index = predicate_index_class(name).build(predicates_of(given))
    check(index, given, [2, 3, 4, 7, 20, 21])
    index.delete(np.arange(0, 300, 3))
    check(index, {i: p for i, p in given.items() if i % 3}, [2, 3, 4, 7, 20, 21])


def test_more_found_than_there_is_room_for_at_first(name: str) -> None:
    given: dict[int, Intervals] = {i: [(1, 100 + i)] for i in range(1000)}
    index = predicate_index_class(name).build(predicates_of(given))
    found = index.match(np.full(50, 40))
    assert np.diff(found.offsets).tolist() == [1000] * 50
    assert np.array_equal(np.sort(found.ids[-1000:]), np.arange(1000))


def test_wrong_calls_change_nothing(name: str) -> None:
    given: dict[int, Intervals] = {4: [(1, 5)], 7: [(2, 2), (9, 9)], 8: []}
    index = predicate_index_class(name).build(predicates_of(given))
    twice = predicates_of({1: [(1, 9)], 2: [(2, 9)]})._replace(ids=np.array([1, 1]))
    for wrong in (predicates_of({1: [(1, 1)], 7: [(3, 3)]}), predicates_of({8: []}), twice):
        with pytest.raises(InputError):
            index.insert(wrong)
    with pytest.raises(InputError):
        index.delete(np.array([4, 5]))
    check(index, given, [0, 1, 2, 5, 9])
    index.delete(np.array([4]))
    index.insert(predicates_of({4: [(6, 6)]}))
    check(index, given | {4: [(6, 6)]}, [0, 1, 2, 5, 6, 9])


def test_what_it_is(name: str) -> None:
    index = predicate_index_class(name).build(predicates_of({1: [(1, 2)]}))
    assert isinstance(index, PredicateIndex)
    assert index.name == name
    assert index.n_bytes > 0
    assert lists_of(index.match(np.empty(0, np.int64))) == []
