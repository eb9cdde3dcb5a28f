"""Prefixes as a forest of intervals, against plain comparison."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.errors import InputError
from matchmill.papers.op_index.prefix_trie import PrefixTrie
from matchmill.papers.predicate_index.base import PredicateIndex, Predicates, Satisfied

pytestmark = pytest.mark.kernels

Intervals = list[tuple[int, int]]


def predicates_of(named: dict[int, Intervals]) -> Predicates:
    bounds = np.array([pair for pairs in named.values() for pair in pairs], np.int64)
    bounds = bounds.reshape(-1, 2)
    return Predicates(
        np.array(list(named), np.int64),
        np.cumsum([0, *map(len, named.values())]),
        bounds[:, 0].copy(),
        bounds[:, 1].copy(),
    )


def ids_of(satisfied: Satisfied) -> list[list[int]]:
    return [sorted(satisfied.ids[a:b].tolist()) for a, b in pairwise(satisfied.offsets)]


def expected(named: dict[int, Intervals], keys: list[int]) -> list[list[int]]:
    return [
        sorted(i for i, pairs in named.items() if any(low <= key <= high for low, high in pairs))
        for key in keys
    ]


def prefix_interval(prefix: str, length: int = 6) -> tuple[int, int]:
    """The texts of some length over "abc" that begin so, numbered in their order."""
    low = high = 0
    for k in range(length):
        digit = "abc".index(prefix[k]) if k < len(prefix) else None
        low = 3 * low + (0 if digit is None else digit)
        high = 3 * high + (2 if digit is None else digit)
    return low + 1, high + 1


def test_it_is_a_predicate_structure() -> None:
    trie = PrefixTrie.build(predicates_of({}))
    assert isinstance(trie, PredicateIndex)
    assert ids_of(trie.match(np.array([0, 5]))) == [[], []]
    assert trie.n_bytes == 0


def test_prefixes_of_a_word() -> None:
    prefixes = ["", "a", "ab", "abc", "abca", "b", "ba", "c", "ab"]
    trie = PrefixTrie.build(
        predicates_of({n: [prefix_interval(p)] for n, p in enumerate(prefixes)})
    )
    assert trie.is_forest
    words = ["abcabc", "abaaaa", "baaaaa", "cccccc", "acaaaa"]
    found = ids_of(trie.match(np.array([prefix_interval(word)[0] for word in words])))
    assert found == [
        [n for n, prefix in enumerate(prefixes) if word.startswith(prefix)] for word in words
    ]


@given(st.lists(st.text("abc", max_size=5), max_size=40), st.text("abc", min_size=6, max_size=6))
def test_prefixes_are_always_a_forest(prefixes: list[str], word: str) -> None:
    trie = PrefixTrie.build(
        predicates_of({n: [prefix_interval(p)] for n, p in enumerate(prefixes)})
    )
    assert trie.is_forest
    (found,) = ids_of(trie.match(np.array([prefix_interval(word)[0]])))
    assert found == [n for n, prefix in enumerate(prefixes) if word.startswith(prefix)]


@pytest.mark.parametrize("seed", range(5))
def test_any_intervals_with_insertion_and_deletion(seed: int) -> None:
    rng = Random(seed)

    def intervals() -> Intervals:
        cuts = sorted(rng.sample(range(60), 2 * rng.choice([1, 1, 2, 3])))
        return [(cuts[k], cuts[k + 1] - 1) for k in range(0, len(cuts), 2)]

    named = {n: intervals() for n in range(40)}
    trie = PrefixTrie.build(predicates_of(named))
    keys = list(range(62))
    for step in range(10):
        assert ids_of(trie.match(np.array(keys))) == expected(named, keys)
        gone = rng.sample(sorted(named), 10)
        trie.delete(np.array(gone))
        for i in gone:
            del named[i]
        more = {100 * step + n + 50: intervals() for n in range(11)} | {gone[0]: intervals()}
        trie.insert(predicates_of(more))
        named |= more
    assert not trie.is_forest


def test_a_failed_change_changes_nothing() -> None:
    trie = PrefixTrie.build(predicates_of({7: [(1, 5)]}))
    with pytest.raises(InputError, match="none was inserted"):
        trie.insert(predicates_of({8: [(2, 3)], 7: [(2, 3)]}))
    with pytest.raises(InputError, match="1 of these 2 predicates"):
        trie.delete(np.array([7, 8]))
    assert ids_of(trie.match(np.array([2]))) == [[7]]
