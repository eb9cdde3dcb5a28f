"""`mill` on large tables of the shapes that subscriptions have: all kernels against brute force."""

from __future__ import annotations

import numpy as np
import pytest

from matchmill.encoding.conjunction_table import concatenate
from tests.support.conformance_kit import batch_of, statistics_of
from tests.support.mill_checks import (
    PRESENT,
    check,
    dense_batch,
    flat_table,
    keys_on,
    some_dimensions,
)

# -- many values ----------------------------------------------------------------------------------


def test_a_domain_of_200_000_values() -> None:
    rng = np.random.default_rng(1)
    n = 200_000
    points = rng.permutation(n) * 7 + 1
    table = flat_table(np.zeros(n), points, points)
    keys = np.concatenate((points[:20], points[:9] + 1, [1, 0, 7 * n, PRESENT]))
    n_ids = check(table, keys_on(0, keys))
    assert n_ids == 21


def test_ranges_with_100_000_bounds() -> None:
    """Overlapping ones of all widths: some hold a few bounds, some half of them."""
    rng = np.random.default_rng(2)
    n = 50_000
    lows = rng.integers(1, 1 << 40, n)
    highs = lows + (2.0 ** rng.uniform(0, 39, n)).astype(np.int64)
    keys = np.concatenate((rng.integers(1, 1 << 40, 20), lows[:10] - 1, lows[:10], highs[:10] + 1))
    n_ids = check(flat_table(np.zeros(n), lows, highs), keys_on(0, keys))
    assert n_ids > 40 * 100


def test_lists_of_5_000_values() -> None:
    """Some of them in many clauses, next to points and ranges on the same attribute."""
    rng = np.random.default_rng(3)
    lists = [np.sort(rng.choice(40_000, 5000, replace=False)) * 2 + 1 for _ in range(12)]
    values = np.concatenate([lists[k] for k in (*range(12), *([0] * 12))])
    in_lists = flat_table(np.zeros(24), values, values, n_intervals=5000)
    points = rng.integers(1, 80_000, 500)
    others = flat_table(np.zeros(500), points, points + rng.integers(0, 50, 500), first_id=24)
    keys = np.concatenate((lists[0][:20], lists[3][:20] + 1, [0, 1, 80_002]))
    n_ids = check(concatenate([in_lists, others]), keys_on(0, keys))
    assert n_ids > 20 * 13


def test_not_equal_everywhere() -> None:
    rng = np.random.default_rng(4)
    n, length = 20_000, 3
    values = rng.integers(2, 2000, n * length)
    lows = np.stack((np.ones_like(values), values + 1), axis=1).ravel()
    highs = np.stack((values - 1, np.full_like(values, PRESENT)), axis=1).ravel()
    table = flat_table(
        some_dimensions(rng, n, length, 6), lows, highs, lengths=length, n_intervals=2
    )
    keys = rng.integers(1, 2001, (12, 6))
    keys[0, :] = 0
    n_ids = check(table, dense_batch(keys))
    assert n_ids > 11 * n * 0.9


# -- many attributes ------------------------------------------------------------------------------


def test_20_000_attributes() -> None:
    rng = np.random.default_rng(5)
    n, length, n_dimensions = 40_000, 3, 20_000
    dimensions = some_dimensions(rng, n, length, n_dimensions)
    lows = rng.integers(0, 5, n * length)
    table = flat_table(dimensions, lows, lows + rng.integers(0, 3, n * length), lengths=length)
    events = [{int(d): 2 for d in dimensions[3 * k : 3 * k + 3]} for k in range(20)]
    events += [dict.fromkeys(range(n_dimensions), key) for key in range(1, 6)]
    events += [{int(d): 1 for d in rng.choice(n_dimensions, 3000)}, {}]
    n_ids = check(table, batch_of(events))
    assert n_ids > 10_000


def test_clauses_of_1_to_300_predicates() -> None:
    rng = np.random.default_rng(6)
    lengths = rng.integers(1, 301, 2000)
    dimensions = np.concatenate([np.sort(rng.choice(320, n, replace=False)) for n in lengths])
    lows = rng.integers(0, 3, len(dimensions))
    highs = lows + rng.integers(2, 5, len(dimensions))
    keys = rng.integers(2, 4, (70, 320))
    keys[:, ::40] = 0
    n_ids = check(flat_table(dimensions, lows, highs, lengths=lengths), dense_batch(keys))
    assert n_ids > 1000


@pytest.mark.parametrize("selective", [True, False])
def test_an_attribute_that_every_clause_uses(selective: bool) -> None:
    """As the only one that would lead to few clauses, and as one that leads to all."""
    rng = np.random.default_rng(7)
    n = 50_000
    common = rng.integers(1, n if selective else 3, n)
    other = rng.integers(1, 3 if selective else 5000, n)
    lows = np.stack((common, other), axis=1).ravel()
    table = flat_table(np.tile([0, 1], n), lows, lows, lengths=2)
    keys = np.stack((rng.integers(1, n if selective else 3, 70), rng.integers(1, 3, 70)), axis=1)
    check(table, dense_batch(keys))


@pytest.mark.parametrize("statistics", [False, True])
def test_few_attributes_with_few_values(statistics: bool) -> None:
    """Points, two points and ranges on six attributes that every event has: no single one of them
    leads to few clauses."""
    rng = np.random.default_rng(18)
    n, length = 40_000, 3
    first = rng.integers(1, 9, n * length)
    highs = first + np.where(rng.random(n * length) < 0.2, 2, 0)
    several = rng.random(n * length) < 0.3
    ends = np.cumsum(1 + several)
    lows, tops = np.zeros(ends[-1], np.int64), np.zeros(ends[-1], np.int64)
    lows[ends - 1 - several], tops[ends - 1 - several] = first, highs
    lows[ends[several] - 1] = tops[ends[several] - 1] = highs[several] + 2
    table = flat_table(
        some_dimensions(rng, n, length, 6), lows, tops, lengths=length, n_intervals=1 + several
    )
    keys = rng.integers(1, 12, (70, 6))
    keys[::9, 2] = 0
    batch = dense_batch(keys)
    n_ids = check(table, batch, statistics_of(batch, 6) if statistics else None)
    assert n_ids > 5000


# -- many equal ones ------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [70_000, 200_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("length", [1, 2, 5])
def test_equal_subscriptions(n: int, length: int) -> None:
    """And one event among others that satisfies them all."""
    dimensions = np.tile(np.arange(length), n)
    table = flat_table(dimensions, np.full(n * length, 3), np.full(n * length, 9), lengths=length)
    keys = np.tile([3, 4, 5, 8, 9][:length], (3, 1))
    keys[1, length // 2] = 2
    keys[2, length - 1] = 0
    n_ids = check(table, dense_batch(keys))
    assert n_ids == n


# -- few, half, all match -------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_matching_probabilities(share: float) -> None:
    rng = np.random.default_rng(9)
    n, length = 10_000, 2
    highs = rng.integers(1, 1001, n * length)
    table = flat_table(
        some_dimensions(rng, n, length, 8), np.ones(n * length), highs, lengths=length
    )
    low, high = {0.0: (1001, 2000), 0.5: (1, 600), 1.0: (1, 1)}[share]
    n_events = 65
    n_ids = check(table, dense_batch(rng.integers(low, high + 1, (n_events, 8))))
    assert n_ids / (n * n_events) == pytest.approx(share, abs=0.1)


# -- absence --------------------------------------------------------------------------------------


def test_absence_alone() -> None:
    rng = np.random.default_rng(10)
    n, length = 20_000, 2
    nothing = np.zeros(n * length, np.int64)
    table = flat_table(some_dimensions(rng, n, length, 1000), nothing, nothing, lengths=length)
    events: list[dict[int, int]] = [{}, {1: 1}, dict.fromkeys(range(1000), 1)]
    events += [{int(d): 1 for d in rng.choice(1000, 500)} for _ in range(20)]
    n_ids = check(table, batch_of(events))
    assert n_ids > n * 2


def test_absent_or_above() -> None:
    """`a is null or a > x`: one set that accepts absence."""
    rng = np.random.default_rng(11)
    n, length = 20_000, 2
    above = rng.integers(2, 5000, n * length)
    lows = np.stack((np.zeros_like(above), above), axis=1).ravel()
    highs = np.stack((np.zeros_like(above), np.full_like(above, PRESENT)), axis=1).ravel()
    table = flat_table(
        some_dimensions(rng, n, length, 20), lows, highs, lengths=length, n_intervals=2
    )
    keys = rng.integers(0, 5000, (66, 20)) * rng.integers(0, 2, (66, 20))
    n_ids = check(table, dense_batch(keys))
    assert n_ids > n


def test_nothing_that_must_be_there() -> None:
    """Every predicate accepts absence, so every event, also the empty one, satisfies many."""
    rng = np.random.default_rng(12)
    n, length = 20_000, 3
    tops = rng.integers(0, 40, n * length)
    table = flat_table(
        some_dimensions(rng, n, length, 60), np.zeros(n * length), tops, lengths=length
    )
    events = [{int(d): int(rng.integers(1, 41)) for d in rng.choice(60, 9)} for _ in range(40)]
    n_ids = check(table, batch_of([{}, *events]))
    assert n_ids > n * 10
