"""What the conformance kit does not reach in `k_index`: sizes, skipping, "not in" entries."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.papers.baselines.k_index import KIndex
from matchmill.papers.common.clause_intervals import MAX_KEY
from tests.support.conformance_kit import (
    Intervals,
    batch_of,
    brute_force,
    matched,
    random_batch,
    random_table,
    table_of,
)

pytestmark = pytest.mark.kernels

ONE: Intervals = [(1, 1)]
NOT_ONE: Intervals = [(0, 0), (2, MAX_KEY)]


def n_steps(table: ConjunctionTable, event: dict[int, int]) -> int:
    index = KIndex.build(table)
    batch = batch_of([event])
    assert matched(index.match_batch(batch)) == brute_force(table, batch)
    return index.stats().candidates


# -- sizes ----------------------------------------------------------------------------------------


def test_clauses_larger_than_the_event_are_not_looked_at() -> None:
    table = table_of([{0: ONE, 1: ONE, 2: ONE}] * 50 + [{0: ONE, 1: ONE}])
    assert n_steps(table, {0: 1, 1: 1}) == 1
    assert n_steps(table, {0: 1}) == 0
    assert n_steps(table, {0: 1, 1: 1, 2: 1}) == 51


def test_the_size_of_a_clause_does_not_count_what_accepts_absence() -> None:
    table = table_of([{0: ONE, 1: NOT_ONE, 2: NOT_ONE}, {1: NOT_ONE}, {}])
    batch = batch_of([{0: 1}, {}, {0: 1, 1: 1}, {0: 1, 1: 2}, {1: 1, 2: 1}, {3: 1}])
    expected = [[0, 1, 2], [1, 2], [2], [0, 1, 2], [2], [1, 2]]
    assert matched(KIndex.build(table).match_batch(batch)) == expected


def test_lists_are_by_cell_and_size_and_ascend() -> None:
    arrays = KIndex.build(random_table(Random(3), 200)).arrays()
    offsets, entries = arrays["list_offsets"], arrays["entries"]
    for start, stop in pairwise(offsets):
        assert (np.diff(entries[start:stop].astype(np.int64)) > 0).all()
    for first, last in pairwise(arrays["cell_offsets"]):
        assert (np.diff(arrays["list_sizes"][first:last]) > 0).all()
    assert offsets[-1] == len(entries)


# -- skipping -------------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [1, 2, 7, 8, 9, 10, 16, 17, 100, 1000])
def test_long_lists_are_skipped(gap: int) -> None:
    """Clauses that are in one of two lists, and every `gap` of them one that is in both."""
    n = 3 * gap + 1
    table = table_of([{0: ONE, (1 if k % gap == 0 else 2): ONE} for k in range(n)])
    assert n_steps(table, {0: 1, 1: 1}) <= 2 * 4
    assert n_steps(table, {1: 1, 0: 1}) <= 2 * 4


def test_a_list_that_is_over_ends_its_size() -> None:
    table = table_of([{0: ONE, 1: ONE}] + [{0: ONE, 2: ONE}] * 500)
    assert n_steps(table, {0: 1, 1: 1}) == 1


# -- not in ---------------------------------------------------------------------------------------


def test_what_speaks_against_a_clause_comes_first() -> None:
    """Between clauses that match, so that a list that is not moved on would be seen."""
    table = table_of(
        [
            {0: ONE, 1: ONE},
            {0: ONE, 1: ONE, 2: NOT_ONE},
            {0: ONE, 1: ONE, 2: NOT_ONE, 3: NOT_ONE},
            {0: ONE, 2: ONE, 3: NOT_ONE},
            {0: ONE, 1: ONE},
            {2: NOT_ONE, 3: NOT_ONE},
            {3: NOT_ONE},
        ]
    )
    events = [{d: key for d, key in enumerate(keys) if key} for keys in np.ndindex(3, 3, 3, 3)]
    batch = batch_of(events)
    assert matched(KIndex.build(table).match_batch(batch)) == brute_force(table, batch)


@given(st.integers(0, 2**32), st.integers(1, 60), st.sampled_from([3, 8, 40]))
def test_any_table(seed: int, n_clauses: int, top: int) -> None:
    rng = Random(seed)
    table = random_table(rng, n_clauses, n_dimensions=4, top=max(9, top))
    batch = random_batch(rng, 6, n_dimensions=5, top=top)
    assert matched(KIndex.build(table).match_batch(batch)) == brute_force(table, batch)
