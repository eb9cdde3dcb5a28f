"""What the conformance kit does not reach in `propagation`: access, clusters, the bits."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.index.base import Statistics
from matchmill.index.predicate_codes import build_dictionary
from matchmill.papers.baselines.propagation import Propagation
from matchmill.papers.baselines.propagation_clusters import key_intervals
from matchmill.papers.common.clause_intervals import MAX_KEY
from tests.support.conformance_kit import (
    batch_of,
    brute_force,
    matched,
    random_batch,
    random_statistics,
    random_table,
    statistics_of,
    table_of,
)

pytestmark = pytest.mark.kernels

either_access = pytest.mark.parametrize("equality_only", [False, True])


def point(key: int) -> list[tuple[int, int]]:
    return [(key, key)]


def n_looked_at(
    table: ConjunctionTable,
    event: dict[int, int],
    statistics: Statistics | None = None,
    equality_only: bool = False,
) -> int:
    index = Propagation.build(table, statistics, equality_only=equality_only)
    batch = batch_of([event])
    assert matched(index.match_batch(batch)) == brute_force(table, batch)
    return index.stats().candidates


# -- access ---------------------------------------------------------------------------------------


def test_an_equality_gives_access_before_all_others() -> None:
    """However unlikely the others are, as in the paper."""
    table = table_of([{0: point(1), 1: [(5, 6), (8, 9)], 2: [(0, 0)]}] * 10)
    seen = statistics_of(batch_of([{0: 1, 1: 1}] * 50), 3)
    for statistics in (None, seen):
        assert n_looked_at(table, {0: 1, 1: 1}, statistics) == 10
        assert n_looked_at(table, {0: 2, 1: 5}, statistics) == 0


def test_statistics_choose_the_least_likely_equality() -> None:
    table = table_of([{0: point(1), 1: point(2)}] * 10)
    for often, seldom, n in (({0: 1}, {1: 2}, 0), ({1: 2}, {0: 1}, 10)):
        seen = statistics_of(batch_of([often] * 50 + [seldom]), 2)
        assert n_looked_at(table, {0: 1}, seen) == n


def test_clauses_without_equality() -> None:
    """In the papers they are looked at with every event; otherwise under a predicate they have."""
    table = table_of(
        [{0: [(1, 5)], 1: [(3, 9)]}, {2: [(1, 1), (4, 4)]}, {3: [(0, 5)]}, {}]
        + [{0: point(3), 1: point(4), 4: point(1)}] * 3
    )
    assert n_looked_at(table, {}, equality_only=True) == 4
    assert n_looked_at(table, {}) == 2
    assert n_looked_at(table, {2: 4}) == 3
    assert n_looked_at(table, {0: 2, 1: 5, 2: 2}) == 3


@either_access
def test_any_statistics(equality_only: bool) -> None:
    rng = Random(8)
    for _ in range(5):
        table, batch = random_table(rng, 80), random_batch(rng, 20)
        statistics = random_statistics(rng, 8)
        index = Propagation.build(table, statistics, equality_only=equality_only)
        assert matched(index.match_batch(batch)) == brute_force(table, batch)


# -- clusters -------------------------------------------------------------------------------------


def test_clusters_of_many_sizes_and_many_clauses() -> None:
    clauses = [{0: point(1)} | {1 + d: point(k % 5 + 1) for d in range(k % 7)} for k in range(400)]
    table = table_of(clauses)
    event = {0: 1, 1: 3, 2: 3, 3: 3, 4: 3}
    batch = batch_of([event, event | {0: 2}, event | {5: 3, 6: 3}, {0: 1}])
    assert matched(Propagation.build(table).match_batch(batch)) == brute_force(table, batch)


def test_the_least_likely_predicate_is_looked_at_first() -> None:
    table = table_of([{0: point(1), 1: [(1, 4)], 2: [(2, 3)], 3: [(0, 3)]}])
    events = [{0: 9, 1: 1, 2: 9, 3: 1}] * 8 + [{0: 9, 1: 9, 2: 2, 3: 9}] * 2
    index = Propagation.build(table, statistics_of(batch_of(events), 4))
    arrays = index.arrays()
    size, n, *rest = arrays["blocks"].tolist()
    assert (size, n, rest[-1]) == (3, 1, 0)
    # Predicates are numbered by dimension after the one that gives access.
    assert rest[:-1] == [2, 1, 3] or rest[:-1] == [2, 3, 1]


# -- bits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 128])
def test_as_many_predicates_as_fit_into_words(n: int) -> None:
    table = table_of([{0: point(1), 1: [(0, k)]} for k in range(n)])
    batch = batch_of([{0: 1}, {0: 1, 1: n // 2}, {0: 1, 1: n}, {1: 1}])
    assert matched(Propagation.build(table).match_batch(batch)) == brute_force(table, batch)


@pytest.mark.parametrize("n_ranges", [1, 100])
def test_bits_are_brought_back(n_ranges: int) -> None:
    """One by one, or all of them if an event has turned many."""
    clauses = [{0: [(1, 100 + k)], 1: [(0, k)], 2: point(k % 3 + 1)} for k in range(n_ranges)]
    clauses += [{3 + k: point(1)} for k in range(200)]
    table = table_of(clauses)
    index = Propagation.build(table)
    events = [{0: 50, 1: 200, 2: 1}, {2: 1}, {0: 50, 2: 1}, {0: 150, 1: 50, 2: 2}, {5: 1}, {}]
    batch = batch_of([*events, *reversed(events)])
    assert matched(index.match_batch(batch)) == brute_force(table, batch)


def test_predicates_go_back_from_codes_to_keys() -> None:
    for seed in range(10):
        table = random_table(Random(seed), 60, top=(12, 40, 3000)[seed % 3])
        dictionary = build_dictionary(table)
        numbers = np.arange(dictionary.n_distinct, dtype=np.int32)
        rows, dimensions, lows, highs = key_intervals(dictionary, numbers)
        got = {
            (int(q), int(d), int(low), int(high))
            for q, d, low, high in zip(rows, dimensions, lows, highs, strict=True)
        }
        owners = np.repeat(np.arange(table.n_predicates), np.diff(table.interval_offsets))
        assert got == {
            (int(dictionary.ids[p]), int(table.dimensions[p]), int(low), int(high))
            for p, low, high in zip(owners, table.lows, table.highs, strict=True)
        }
    ends = table_of([{0: [(0, 3), (5, MAX_KEY)]}, {1: [(MAX_KEY, MAX_KEY)]}, {1: [(1, 1)]}])
    _, _, lows, highs = key_intervals(build_dictionary(ends), np.arange(3, dtype=np.int32))
    assert sorted(zip(lows.tolist(), highs.tolist(), strict=True)) == [
        (0, 3),
        (1, 1),
        (5, MAX_KEY),
        (MAX_KEY, MAX_KEY),
    ]


@given(st.integers(0, 2**32), st.integers(1, 60), st.sampled_from([3, 8, 40]), st.booleans())
def test_any_table(seed: int, n_clauses: int, top: int, equality_only: bool) -> None:
    rng = Random(seed)
    table = random_table(rng, n_clauses, n_dimensions=4, top=max(9, top))
    batch = random_batch(rng, 6, n_dimensions=5, top=top)
    index = Propagation.build(table, equality_only=equality_only)
    assert matched(index.match_batch(batch)) == brute_force(table, batch)
