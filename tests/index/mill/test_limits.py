"""`mill` where its numbers end: shared predicates, columns, tests of a clause, equal entries, ids,
buffers. All kernels against brute force."""

from __future__ import annotations

import numpy as np
import pytest

from matchmill.encoding.conjunction_table import concatenate
from matchmill.index.mill.build import shared_predicates
from matchmill.index.mill.build.shared_predicates import share_predicates
from matchmill.index.predicate_codes import build_dictionary
from tests.support.conformance_kit import statistics_of
from tests.support.mill_checks import (
    PRESENT,
    check,
    dense_batch,
    flat_table,
    keys_on,
    some_dimensions,
)
from tests.support.tiers import first_cases


@pytest.mark.parametrize("n", [65_533, 65_534, 65_535, 66_500])
def test_a_clause_of_more_predicates_than_can_be_shared(n: int) -> None:
    dimensions = np.concatenate((np.arange(n), [0, n - 1]))
    lows = np.concatenate((np.arange(n) % 3 + 1, [5, 0]))
    table = flat_table(dimensions, lows, lows, lengths=[n, 1, 1])
    keys = np.tile(np.arange(n) % 3 + 1, (4, 1))
    keys[1, 0] = 5
    keys[2, n - 1] = 0
    keys[3, n // 2] = 7
    n_ids = check(table, dense_batch(keys))
    assert n_ids == 1 + 1 + 1


def test_long_clauses_that_have_nothing_in_common() -> None:
    """As two lists of 100,000 values that must all be there would give."""
    n = 100_000
    table = flat_table(np.arange(2 * n), np.ones(2 * n), np.ones(2 * n), lengths=n)
    keys = np.zeros((4, 2 * n), np.int64)
    keys[0] = 1
    keys[1, :n] = 1
    keys[2, n:] = 1
    keys[3, 1:] = 1
    n_ids = check(table, dense_batch(keys))
    assert n_ids == 2 + 1 + 1 + 1


def test_equal_predicates_that_come_first() -> None:
    """200,000 clauses under one attribute with two common tests: stretches of more than 65,535
    entries that begin with the same one, and many that end early."""
    n = 200_000
    rng = np.random.default_rng(8)
    third = np.concatenate((np.ones(n // 2, np.int64), rng.integers(2, 50, n // 2)))
    lows = np.stack((np.ones(n, np.int64), np.full(n, 4), third), axis=1).ravel()
    table = flat_table(np.tile([0, 1, 2], n), lows, lows, lengths=3)
    batch = dense_batch(np.array([[1, 4, 1], [1, 4, 7], [1, 3, 1], [2, 4, 1], [1, 4, 0]]))
    rare = statistics_of(dense_batch(np.array([[9, 4, 1]] * 99 + [[1, 4, 1]])), 3)
    n_ids = check(table, batch)
    assert n_ids > n // 2
    assert check(table, batch, rare) == n_ids


def test_matches_that_grow_from_event_to_event() -> None:
    """Every block of events has more of them than the one before, the last has most."""
    n = 200
    lows = np.tile(np.arange(1, n + 1), 20)
    table = flat_table(np.zeros(len(lows)), lows, np.full(len(lows), PRESENT))
    n_ids = check(table, keys_on(0, np.arange(n + 1)))
    assert n_ids == 20 * n * (n + 1) // 2


def test_more_candidates_than_can_be_shared() -> None:
    """90,000 distinct predicates on 40 attributes, some used often, most once or twice."""
    rng = np.random.default_rng(13)
    n = 120_000
    dimensions = some_dimensions(rng, n, 2, 40)
    lows = np.where(
        rng.random(2 * n) < 0.3, rng.integers(1, 60, 2 * n), rng.integers(1, 4000, 2 * n)
    )
    table = flat_table(dimensions, lows, lows + rng.integers(0, 2, 2 * n) * 5, lengths=2)
    dictionary = build_dictionary(table)
    shared = share_predicates(dictionary)
    per_dimension = np.bincount(dictionary.dimensions[shared.distinct[2:]])
    assert dictionary.n_distinct > 90_000
    assert shared.n_shared <= 65_536
    assert per_dimension.max() <= 2048
    check(table, dense_batch(rng.integers(1, 60, (66, 40))))


def test_more_on_one_attribute_than_can_be_shared() -> None:
    """2,600 values that are asked for 60 times each, some a little more often."""
    rng = np.random.default_rng(14)
    values = np.concatenate((np.tile(np.arange(1, 2601), 60), np.arange(1, 2600, 7)))
    n = len(values)
    lows = np.stack((values, rng.integers(1, 5, n)), axis=1).ravel()
    table = flat_table(np.tile([0, 1], n), lows, lows, lengths=2)
    dictionary = build_dictionary(table)
    shared = share_predicates(dictionary)
    assert np.bincount(dictionary.dimensions[shared.distinct[2:]]).tolist() == [2048, 4]
    keys = np.stack((rng.integers(1, 2602, 66), rng.integers(1, 6, 66)), axis=1)
    n_ids = check(table, dense_batch(keys))
    assert n_ids > 66


@pytest.mark.slow
@pytest.mark.parametrize("n", first_cases(1, [40_000, 70_000]))
def test_more_attributes_than_columns(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On each a set of 49 values and a range, none shared: more than 65,535 kinds of private
    tests, of sets alone or of sets and ranges."""
    monkeypatch.setattr(shared_predicates, "_MOST", 0)
    values = np.arange(1, 50) * 2
    sets = flat_table(np.arange(n), np.tile(values, n), np.tile(values, n), n_intervals=49)
    ranges = flat_table(np.arange(n), np.full(n, 3), np.full(n, 40), first_id=n)
    rng = np.random.default_rng(15)
    pairs = np.sort(rng.choice(n, (3000, 2)), axis=1)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    both = flat_table(
        pairs.ravel(),
        np.tile([*values, 3], len(pairs)),
        np.tile([*values, 40], len(pairs)),
        lengths=2,
        n_intervals=np.tile([49, 1], len(pairs)),
        first_id=2 * n,
    )
    table = concatenate([sets, ranges, both])
    n_ids = check(table, dense_batch(rng.integers(0, 101, (5, n))))
    assert n_ids > n


@pytest.mark.parametrize("first_id", [2**32 - 30_000, 2**32, 2**62])
def test_ids_beyond_32_bits(first_id: int) -> None:
    rng = np.random.default_rng(17)
    n = 60_000
    lows = rng.integers(1, 300, n)
    table = flat_table(rng.integers(0, 5, n), lows, lows + 3, first_id=first_id)
    n_ids = check(table, dense_batch(rng.integers(1, 300, (66, 5))))
    assert n_ids > n // 2
