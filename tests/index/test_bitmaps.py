"""Chunked bitmaps against a scan."""

from __future__ import annotations

import numpy as np
import pytest

from matchmill.encoding.conjunction_table import ConjunctionTable, concatenate
from matchmill.encoding.event_batch import EventBatch
from matchmill.errors import InputError
from matchmill.index.bitmaps import Bitmaps
from matchmill.index.event_sample import build_statistics
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.intrinsics import ROW_WORDS, count_ones, meet_four_rows, meet_two_rows
from matchmill.kernels.jit import JIT_DISABLED, int64, kernel
from tests.index.test_mask_tree import boxes, check, some_events

LAST = (1 << 63) - 1
N = 200 if JIT_DISABLED else 2000


def thresholds(
    random: np.random.Generator, n: int, n_dimensions: int, top: int, share: float
) -> ConjunctionTable:
    """Clauses of one-sided ranges on some dimensions, each of which holds for `share` of keys."""
    n_predicates = random.integers(1, n_dimensions + 1, n)
    offsets = offsets_of(n_predicates)
    dimensions = [np.sort(random.permutation(n_dimensions)[:k]) for k in n_predicates]
    bounds = random.uniform(share, 1, offsets[-1])
    is_upper = random.random(offsets[-1]) < 0.5
    lows = np.where(is_upper, 1, ((1 - bounds) * top).astype(np.int64) + 1)
    highs = np.where(is_upper, (bounds * top).astype(np.int64) + 1, LAST)
    return ConjunctionTable(
        np.arange(n),
        offsets,
        np.concatenate(dimensions).astype(np.int32),
        np.arange(offsets[-1] + 1),
        lows,
        highs,
    )


@pytest.mark.kernels
@pytest.mark.parametrize("top", [12, 300, 1 << 40, 1 << 62])
@pytest.mark.parametrize("odd", [0.0, 0.4])
@pytest.mark.parametrize("dimensions", [[0], [0, 2, 3], list(range(12))])
def test_it_finds_what_a_scan_finds(top: int, odd: float, dimensions: list[int]) -> None:
    random = np.random.default_rng([top, int(10 * odd), len(dimensions)])
    table = boxes(random, N // len(dimensions), dimensions, top, odd=odd)
    events = some_events(random, 60, table, max(dimensions) + 3, top)
    assert check(Bitmaps.build(table), table, events) or len(dimensions) > 5
    known = build_statistics(events, max(dimensions) + 3)
    check(Bitmaps.build(table, known), table, events)


@pytest.mark.kernels
@pytest.mark.parametrize("share", [0.3, 0.9])
@pytest.mark.parametrize("top", [30, 1 << 50])
def test_thresholds(share: float, top: int) -> None:
    """Few matches are found by the bounds of clauses, many by the tails of rows."""
    random = np.random.default_rng(top)
    table = thresholds(random, N, 14, top, share)
    events = some_events(random, 90, table, 15, top)
    assert check(Bitmaps.build(table), table, events)


@pytest.mark.kernels
@pytest.mark.parametrize("n", [0, 1, 511, 512, 513])
def test_any_number_of_clauses(n: int) -> None:
    random = np.random.default_rng(n)
    table = boxes(random, n, [0, 1], 1000)
    index = Bitmaps.build(table)
    assert index.stats().n_clauses == n
    events = some_events(random, 300, boxes(random, 9, [0, 1], 1000), 2, 1000)
    check(index, table, events.slice(0, 10 if JIT_DISABLED else 300))
    empty = EventBatch(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))
    assert index.match_batch(empty).n_events == 0


@pytest.mark.kernels
def test_more_dimensions_than_slots() -> None:
    random = np.random.default_rng(7)
    parts = [boxes(random, 4, [d, d + 1, d + 2], 50, 4 * d) for d in range(140)]
    table = concatenate(parts)
    check(Bitmaps.build(table), table, some_events(random, 30, table, 143, 50))


@pytest.mark.kernels
def test_ids_beyond_32_bits() -> None:
    random = np.random.default_rng(9)
    table = boxes(random, 600, [0, 1], 100)
    table = table._replace(clause_ids=table.clause_ids + (1 << 40))
    index = Bitmaps.build(table)
    assert check(index, table, some_events(random, 20, table, 2, 100))
    assert index.stats().n_clauses == 600


@pytest.mark.skipif(JIT_DISABLED, reason="too many clauses without the JIT")
def test_more_matches_than_there_is_room_for() -> None:
    lows = np.arange(1, 70_001)
    table = ConjunctionTable(
        lows - 1, np.arange(70_001), np.zeros(70_000, np.int32), np.arange(70_001), lows,
        np.full(70_000, LAST),
    )  # fmt: skip
    keys = np.random.default_rng(1).integers(1, 80_000, 200)
    found = Bitmaps.build(table).match_batch(EventBatch(np.arange(201), np.zeros(200, int), keys))
    for e, key in enumerate(keys.tolist()):
        own = found.clause_ids[found.offsets[e] : found.offsets[e + 1]]
        assert np.array_equal(np.sort(own), np.arange(min(key, 70_000)))


@pytest.mark.kernels
def test_rows_that_meet() -> None:
    random = np.random.default_rng(1)
    rows = random.integers(0, 1 << 63, 64, dtype=np.uint64)
    words = np.zeros(ROW_WORDS, np.uint64)
    eight = rows.reshape(-1, ROW_WORDS)
    assert _two(words, rows, 8, 24)
    assert np.array_equal(words, eight[1] & eight[3])
    some = (eight[1] & eight[3] & eight[0] & eight[2] & eight[4]).any()
    assert _four(words, rows, 0, 16, 32) == some
    assert np.array_equal(words, eight[1] & eight[3] & eight[0] & eight[2] & eight[4])
    rows[:16] = 0
    rows[3] = 1
    assert not _two(words, rows, 0, 8)
    assert [_ones(np.uint64(n)) for n in (0, 1, 255, (1 << 64) - 1)] == [0, 1, 8, 64]


@kernel
def _two(words: np.ndarray, rows: np.ndarray, i: int, j: int) -> bool:
    return bool(meet_two_rows(words, rows, i, j))


@kernel
def _four(words: np.ndarray, rows: np.ndarray, i: int, j: int, k: int) -> bool:
    return bool(meet_four_rows(words, rows, i, j, k, k))


@kernel
def _ones(word: np.uint64) -> int:
    return int64(count_ones(word))


def test_arrays_that_do_not_fit_are_rejected() -> None:
    arrays = Bitmaps.build(boxes(np.random.default_rng(1), 200, [0, 1], 100_000)).arrays()
    for name in ("rows", "ids", "bounds", "edges", "tails", "chunk_starts", "sizes"):
        with pytest.raises(InputError, match="must have"):
            Bitmaps.from_arrays(arrays | {name: arrays[name][:-1]})
    with pytest.raises(InputError, match="must be a contiguous array of int32"):
        Bitmaps.from_arrays(arrays | {"tails": arrays["tails"].astype(np.int64)})
