"""The index of nested clauses: walked, in words, woken, against the obvious evaluation."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest

from matchmill.encoding.conjunction_table import (
    DEEPEST_JOIN,
    JOIN_SHIFT,
    NONE,
    ONE_KEY,
    QUANTIFIER_BITS,
    SOME,
    ConjunctionTable,
)
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import ClauseMatches
from matchmill.index.fresh_scan import FreshScan
from matchmill.index.mixed import build_index, open_index
from matchmill.index.nested import NestedIndex
from matchmill.index.registry import index_class
from matchmill.index.segments import Segmented
from matchmill.kernels.csr import offsets_of

Leaf = tuple[int, int, list[tuple[int, int]]]  # dimension, quantifier, intervals
N_ONE, N_SEVERAL = 6, 2
N_DIMENSIONS = N_ONE + N_SEVERAL


class _Tree:
    """A random tree of `and` (even depths) and `or` (odd ones) over leaves."""

    def __init__(self, rng: Random, *, lists: bool, widest: int, most_values: int) -> None:
        self.leaves: list[Leaf] = []
        self.joins: list[int] = []
        self._rng, self._lists, self._widest, self._values = rng, lists, widest, most_values
        self._add(0, 0)

    def _add(self, depth: int, join: int) -> None:
        rng = self._rng
        for _ in range(rng.randint(1, self._widest)):
            if depth < 5 and rng.random() < (0.6 if depth < 2 else 0.3):
                self._add(depth + 1, join)
            else:
                self.leaves.append(self._leaf())
                self.joins.append(join)
            join = depth

    def _leaf(self) -> Leaf:
        rng, top = self._rng, self._values
        several = self._lists and rng.random() < 0.3
        dimension = N_ONE + rng.randrange(N_SEVERAL) if several else rng.randrange(N_ONE)
        quantifier = rng.choice((SOME, NONE)) if several else ONE_KEY
        cuts = sorted(rng.sample(range(top), min(top, 2 * rng.choice((1, 1, 1, 2, 12)))))
        return dimension, quantifier, list(zip(cuts[::2], cuts[1::2], strict=True))

    def holds(self, event: dict[int, list[int]]) -> bool:
        return self._part(event, 0, 0, len(self.leaves))

    def _part(self, event: dict[int, list[int]], depth: int, start: int, stop: int) -> bool:
        """Divide where the join is the depth: no jumps, no order of evaluation."""
        if stop == start + 1:
            return self._leaf_holds(event, self.leaves[start])
        cuts = [k for k in range(start + 1, stop) if self.joins[k] == depth]
        bounds = [start, *cuts, stop]
        parts = [self._part(event, depth + 1, a, b) for a, b in pairwise(bounds)]
        return any(parts) if depth & 1 else all(parts)

    @staticmethod
    def _leaf_holds(event: dict[int, list[int]], leaf: Leaf) -> bool:
        dimension, quantifier, intervals = leaf
        keys = event.get(dimension, [0] if quantifier == ONE_KEY else [])
        inside = any(low <= key <= high for key in keys for low, high in intervals)
        return inside != (quantifier == NONE)


def table_of(trees: list[_Tree]) -> ConjunctionTable:
    leaves = [leaf for tree in trees for leaf in tree.leaves]
    joins = [join for tree in trees for join in tree.joins]
    intervals = np.array([pair for leaf in leaves for pair in leaf[2]], np.int64)
    return ConjunctionTable(
        np.arange(len(trees)) * 3 + 1,
        offsets_of(np.array([len(tree.leaves) for tree in trees])),
        np.array([leaf[0] for leaf in leaves], np.int32),
        offsets_of(np.array([len(leaf[2]) for leaf in leaves])),
        intervals[:, 0].copy(),
        intervals[:, 1].copy(),
        np.array(
            [leaf[1] | j << JOIN_SHIFT for leaf, j in zip(leaves, joins, strict=True)], np.uint8
        ),
    )


def random_event(rng: Random, most_values: int) -> dict[int, list[int]]:
    event = {}
    for d in range(N_DIMENSIONS):
        n_keys = rng.random() < 0.8 if d < N_ONE else rng.randrange(4)
        if n_keys:
            event[d] = rng.sample(range(1, most_values), n_keys)
    event[N_DIMENSIONS + rng.randrange(3)] = [1]  # which no clause knows
    return event


def batch_of(events: list[dict[int, list[int]]]) -> EventBatch:
    pairs = [[(d, key) for d, keys in event.items() for key in keys] for event in events]
    flat = np.array([pair for event in pairs for pair in event], np.int64).reshape(-1, 2)
    offsets = offsets_of(np.array([len(event) for event in pairs]))
    return EventBatch(offsets, flat[:, 0].astype(np.int32), flat[:, 1].copy())


def pairs_of(events: EventBatch, e: int) -> bytes:
    own = slice(events.offsets[e], events.offsets[e + 1])
    pairs = np.column_stack((events.dimensions[own].astype(np.int64), events.keys[own]))
    return pairs.tobytes()


def rows(found: ClauseMatches) -> list[list[int]]:
    parts = np.split(found.clause_ids, found.offsets[1:-1])
    return [sorted(part.tolist()) for part in parts]


def check(seed: int, n_trees: int, n_events: int) -> None:
    rng = Random(seed)
    most_values = rng.choice((30, 60, 400))
    lists, widest = rng.random() < 0.5, rng.choice((2, 3, 5))
    trees = [
        _Tree(rng, lists=lists, widest=widest, most_values=most_values) for _ in range(n_trees)
    ]
    table = table_of(trees)
    events = [random_event(rng, most_values) for _ in range(n_events)]
    wanted = [[3 * i + 1 for i, tree in enumerate(trees) if tree.holds(e)] for e in events]
    batch = batch_of(events)
    index = NestedIndex.build(table)
    opened = NestedIndex.from_arrays(index.arrays())
    assert rows(index._by_walking(batch)) == wanted
    assert rows(index._in_words(batch)) == wanted
    assert rows(index.match_batch(batch)) == wanted
    assert rows(opened.match_batch(batch)) == wanted
    assert rows(opened.match_batch(batch.slice(0, 40))) == wanted[:40]
    assert rows(FreshScan(table).match_batch(batch)) == wanted
    for e in range(0, n_events, 7):
        for one in (index, opened):
            assert sorted(one.match_pairs(pairs_of(batch, e)).tolist()) == wanted[e]


@pytest.mark.kernels
def test_a_few_clauses_and_events() -> None:
    check(1, 12, 70)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_all_ways_agree_with_the_obvious_one(seed: int) -> None:
    check(seed, 300, 400)


def test_a_clause_of_one_leaf_is_a_table_with_one() -> None:
    """Not nested, but the index takes it."""
    table = ConjunctionTable(
        np.array([7]), np.array([0, 1]), np.zeros(1, np.int32), np.array([0, 1]),
        np.array([3]), np.array([5]),
    )  # fmt: skip
    index = NestedIndex.build(table)
    assert rows(index.match_batch(batch_of([{0: [4]}, {0: [6]}, {}]))) == [[7], [], []]


def test_mixed_tables_are_divided_and_saved() -> None:
    rng = Random(5)
    trees = [_Tree(rng, lists=True, widest=3, most_values=30) for _ in range(150)]
    table = table_of(trees)
    nested = np.array([max(tree.joins) > 0 for tree in trees])
    assert 0 < nested.sum() < len(trees)
    sorted_joins = table.quantifiers >> JOIN_SHIFT
    assert sorted_joins.max() <= DEEPEST_JOIN
    # Plain clauses have each dimension once, in order.
    kept = [
        i
        for i, tree in enumerate(trees)
        if nested[i] or len({leaf[0] for leaf in tree.leaves}) == len(tree.leaves) == 1
    ]
    trees = [trees[i] for i in kept]
    table = table_of(trees)
    assert (table.quantifiers & QUANTIFIER_BITS).any()
    index = build_index(index_class("mill"), table)
    again = open_index(index_class("mill"), index.arrays())
    events = [random_event(rng, 30) for _ in range(50)]
    wanted = [[3 * i + 1 for i, tree in enumerate(trees) if tree.holds(e)] for e in events]
    for one in (index, again):
        assert rows(one.match_batch(batch_of(events))) == wanted
    segments = Segmented(index_class("mill"), fresh_clauses=16)
    for start in range(0, len(trees), 10):
        some = table_of(trees[start : start + 10])
        segments.insert(some._replace(clause_ids=some.clause_ids + 3 * start))
    assert rows(segments.match_batch(batch_of(events))) == wanted
