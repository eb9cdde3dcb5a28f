"""What the conformance kit does not reach in `gryphon`: the tree's shape, large nodes, order."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.papers.baselines.gryphon import Gryphon
from matchmill.papers.baselines.gryphon_tree import build_tree
from matchmill.papers.common.clause_intervals import MAX_KEY
from tests.support.conformance_kit import (
    batch_of,
    brute_force,
    matched,
    random_batch,
    random_table,
    table_of,
)

pytestmark = pytest.mark.kernels

either_order = pytest.mark.parametrize("rare_first", [False, True])


def point(key: int) -> list[tuple[int, int]]:
    return [(key, key)]


def n_looked_at(table: ConjunctionTable, event: dict[int, int]) -> int:
    index = Gryphon.build(table)
    batch = batch_of([event])
    assert matched(index.match_batch(batch)) == brute_force(table, batch)
    return index.stats().candidates


# -- the tree -------------------------------------------------------------------------------------


def test_clauses_share_what_they_begin_with() -> None:
    """Below one root: a node for x = 1, below it one for y = 1 with two clauses, and two leaves."""
    clauses = [{0: point(1), 1: point(1)}] * 2
    clauses += [{0: point(1), 1: point(2), 2: point(1)}, {0: point(2), 1: point(1)}]
    tree = build_tree(table_of(clauses), rare_first=False)
    assert np.diff(tree.branch_offsets).tolist() == [2, 2, 0]
    assert np.diff(tree.row_offsets).tolist() == [0, 0, 2]
    assert tree.rows.tolist() == [0, 1]
    assert len(tree.leaves) == (2 + 4) + (2 + 4)  # each has one test of one interval left


def test_equalities_come_before_other_predicates() -> None:
    """A thousand ranges on a dimension that the event has; the equality of none holds."""
    table = table_of([{0: [(1 + k % 2, 5 + k)], 1: point(k + 1)} for k in range(1000)])
    assert n_looked_at(table, {0: 3, 1: 2000}) == 0
    assert n_looked_at(table, {0: 3, 1: 500}) == 1


def test_predicates_of_one_test_share_a_branch() -> None:
    table = table_of([{0: [(1, 5)]}, {0: [(3, 9)]}, {0: [(3, 9), (20, 30)]}, {0: point(4)}])
    tree = build_tree(table, rare_first=True)
    assert len(tree.branch_keys) == 2
    assert np.diff(tree.edge_offsets).tolist() == [1, 3]
    assert np.diff(tree.interval_offsets).tolist() == [0, 1, 1, 2]


def test_dimensions_come_in_either_order() -> None:
    """All clauses ask for one dimension, and each for another of its own."""
    table = table_of([{0: point(1), 1 + k: point(1)} for k in range(100)])
    batch = batch_of([{0: 1, 7: 1}, {0: 1}])
    for rare_first, n_branches in ((False, [1, 100]), (True, [100])):
        tree = build_tree(table, rare_first=rare_first)
        assert np.diff(tree.branch_offsets).tolist() == n_branches
        index = Gryphon.build(table, rare_first=rare_first)
        assert matched(index.match_batch(batch)) == [[6], []]


@either_order
def test_equal_clauses_that_are_long(rare_first: bool) -> None:
    long = {d: point(d % 7 + 1) for d in range(300)}
    table = table_of([long, long, long | {299: point(1)}, long | {300: [(0, 0)]}, long])
    event = {d: d % 7 + 1 for d in range(300)}
    batch = batch_of([event, event | {300: 1}, event | {299: 1}, event | {0: 2}, {}])
    index = Gryphon.build(table, rare_first=rare_first)
    assert matched(index.match_batch(batch)) == brute_force(table, batch)


# -- nodes with many branches ---------------------------------------------------------------------


@either_order
def test_large_nodes_are_searched(rare_first: bool) -> None:
    """Many values, many dimensions with ranges, and predicates that accept absence, in one node."""
    clauses = [{0: point(k)} for k in range(1, 400)]
    clauses += [{1 + k: [(5, 9)]} for k in range(60)]
    clauses += [{100 + k: [(0, 4)]} for k in range(30)]
    table = table_of(clauses)
    batch = batch_of(
        [
            {},
            {0: 1},
            {0: 399, 60: 9, 61: 9},
            {0: 400, 1: 5},
            {1: 4, 2: 10, 100: 5, 129: 4, 130: 1},
            {60: 7, 0: 200, 115: 9, 2: MAX_KEY},
        ]
    )
    index = Gryphon.build(table, rare_first=rare_first)
    assert matched(index.match_batch(batch)) == brute_force(table, batch)


@either_order
def test_an_event_leaves_nothing_behind(rare_first: bool) -> None:
    rng = Random(4)
    table = random_table(rng, 100)
    batch = random_batch(rng, 40)
    index = Gryphon.build(table, rare_first=rare_first)
    expected = brute_force(table, batch)
    for e in [*range(40), *reversed(range(40))]:
        assert matched(index.match_batch(batch.slice(e, e + 1))) == [expected[e]]


@given(st.integers(0, 2**32), st.integers(1, 60), st.sampled_from([3, 8, 40]), st.booleans())
def test_any_table(seed: int, n_clauses: int, top: int, rare_first: bool) -> None:
    rng = Random(seed)
    table = random_table(rng, n_clauses, n_dimensions=4, top=max(9, top))
    batch = random_batch(rng, 6, n_dimensions=5, top=top)
    index = Gryphon.build(table, rare_first=rare_first)
    assert matched(index.match_batch(batch)) == brute_force(table, batch)
