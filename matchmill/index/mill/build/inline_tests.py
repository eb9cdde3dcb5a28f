"""Predicates that are not shared: each is a test of one word or a few beside its clause.

    column      a dimension as its inline tests see it: an event has one value in each column
    test        a mask, points, an interval or a general test (`words.py` shows the bits)

Columns are numbered by kind: masks first, then points, then intervals. The value of a column is the
dimension's code, or for a mask the rank of the code among those that some test accepts (63 for
all others: that bit belongs to the column's number, and masks have numbers below 32,768). Column 0
is a mask that belongs to no dimension and always has value 0: ALWAYS_HOLDS is a test of it.

The tests of a block are masks alone (MASK_KIND), also points and intervals (INLINE_KIND), or also
general ones (GENERAL_KIND); `match/single_walk.py` has a loop for each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.index.mill.words import (
    CODE_BITS,
    GENERAL,
    GENERAL_BITS,
    MASK_BITS,
    POINT_BITS,
    POINTS_PER_WORD,
    general_bit,
    general_intervals,
    general_payload,
    inline_test,
    interval_payload,
    point_payload,
    points_payload,
)
from matchmill.index.predicate_codes import Dictionary
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.jit import int64, kernel, uint64

__all__ = ["InlineTests", "build_inline_tests"]

_NOWHERE = 63
_MOST_MASKS = (1 << 15) - 1
_MOST_POINTS = 60
_POINTS, _EXCEPTIONS = 1, 2  # what a set is: some points; all codes but some


class InlineTests(NamedTuple):
    """The columns of all dimensions, and the inline test of each distinct predicate."""

    n_masks: int
    n_points: int
    n_columns: int
    column_offsets: np.ndarray  # int32, one more than there are dimensions: its columns
    columns: np.ndarray  # int32
    rank_starts: np.ndarray  # int64, one per column: of a mask, where its ranks are
    ranks: np.ndarray  # uint8, one per code
    defaults: np.ndarray  # int32, one per column: the value of an event without the dimension
    test_offsets: np.ndarray  # int64, one per distinct predicate: its words in `tests`
    tests: np.ndarray  # uint64
    pool: np.ndarray  # int32: lows and highs of intervals in turn


class _Counts(NamedTuple):
    """What the inline predicates of each dimension accept, and what kind of set each one is."""

    any_codes: np.ndarray  # int64, one per dimension: codes that some predicate accepts
    set_codes: np.ndarray  # int64, one per dimension: codes that some set accepts
    n_ranges: np.ndarray  # int64, one per dimension
    n_sets: np.ndarray  # int64, one per dimension
    kinds: np.ndarray  # uint8, one per distinct predicate: _POINTS, _EXCEPTIONS or 0
    n_points: np.ndarray  # int64, one per distinct predicate


class _Columns(NamedTuple):
    """All columns, and which of them a predicate of a dimension uses."""

    n_masks: int
    n_points: int
    dimensions: np.ndarray  # int64, one per column; column 0 has none
    set_column: np.ndarray  # int64, one per dimension: for sets, GENERAL if there is none
    range_column: np.ndarray  # int64, one per dimension: for single intervals
    one_mask: np.ndarray  # bool, one per dimension: a mask serves for both


def build_inline_tests(dictionary: Dictionary, is_inline: np.ndarray) -> InlineTests:
    """Build the inline test of each distinct predicate that is flagged."""
    counts = _count_codes(dictionary, is_inline)
    columns = _number_columns(dictionary, counts)
    n_masks, n_points, n_columns = columns.n_masks, columns.n_points, len(columns.dimensions)
    order = np.argsort(columns.dimensions, kind="stable")
    column_offsets = np.searchsorted(
        columns.dimensions[order], np.arange(dictionary.n_dimensions + 1)
    )
    rank_starts, ranks = _rank_codes(dictionary, is_inline, columns)
    defaults = np.zeros(n_columns, np.int32)
    defaults[1:n_masks] = ranks[rank_starts[1:n_masks]]

    n_intervals = np.diff(dictionary.interval_offsets)
    column = np.where(
        n_intervals == 1,
        columns.range_column[dictionary.dimensions],
        columns.set_column[dictionary.dimensions],
    )
    in_points = (column >= n_masks) & (column < n_masks + n_points)
    column[in_points & ((counts.kinds == 0) | (counts.n_points > _MOST_POINTS))] = GENERAL
    in_points &= column != GENERAL
    is_general = column == GENERAL
    n_words = np.where(in_points, -(-counts.n_points // POINTS_PER_WORD), 1 + is_general)
    test_offsets = offsets_of(is_inline * n_words)
    tests = np.empty(int(test_offsets[-1]), np.uint64)
    pool = np.empty(int((2 * n_intervals)[is_inline & is_general].sum()), np.int32)
    built = InlineTests(
        n_masks,
        n_points,
        n_columns,
        column_offsets.astype(np.int32),
        order.astype(np.int32),
        rank_starts,
        ranks,
        defaults,
        test_offsets,
        tests,
        pool,
    )
    _write_tests(dictionary, is_inline, column, counts.kinds, built)
    return built


def _number_columns(dictionary: Dictionary, counts: _Counts) -> _Columns:
    """Choose the columns of each dimension, and number them by kind."""
    n_dimensions = dictionary.n_dimensions
    n_codes = np.diff(dictionary.edge_offsets) + 1
    has_any = counts.n_ranges + counts.n_sets > 0
    one_mask = _first(has_any & (counts.any_codes <= MASK_BITS), _MOST_MASKS)
    set_mask = ~one_mask & (counts.n_sets > 0) & (counts.set_codes <= MASK_BITS)
    set_mask = _first(set_mask, _MOST_MASKS - int(one_mask.sum()))
    has_points = ~one_mask & ~set_mask & (counts.n_sets > 0) & (n_codes <= 1 << POINT_BITS)
    has_intervals = ~one_mask & (counts.n_ranges > 0) & (n_codes < 1 << CODE_BITS)

    no_dimension = np.full(1, n_dimensions)
    masks = np.concatenate((no_dimension, np.flatnonzero(one_mask | set_mask)))
    points, intervals = np.flatnonzero(has_points), np.flatnonzero(has_intervals)
    of_column = np.concatenate((masks, points, intervals))[:GENERAL]
    n_masks = len(masks)
    n_points = min(len(points), len(of_column) - n_masks)
    set_column = np.full(n_dimensions + 1, GENERAL, np.int64)
    range_column = np.full(n_dimensions + 1, GENERAL, np.int64)
    numbers = np.arange(len(of_column))
    n_sets = n_masks + n_points
    set_column[of_column[:n_sets]] = numbers[:n_sets]
    range_column[of_column[n_sets:]] = numbers[n_sets:]
    range_column[:-1][one_mask] = set_column[:-1][one_mask]
    return _Columns(n_masks, n_points, of_column, set_column, range_column, one_mask)


def _first(flags: np.ndarray, n: int) -> np.ndarray:
    """Keep the first n of the flags that are set."""
    return flags & (np.cumsum(flags) <= n)


def _count_codes(dictionary: Dictionary, is_inline: np.ndarray) -> _Counts:
    n_dimensions, n_distinct = dictionary.n_dimensions, dictionary.n_distinct
    counts = _Counts(
        any_codes=np.zeros(n_dimensions, np.int64),
        set_codes=np.zeros(n_dimensions, np.int64),
        n_ranges=np.zeros(n_dimensions, np.int64),
        n_sets=np.zeros(n_dimensions, np.int64),
        kinds=np.zeros(n_distinct, np.uint8),
        n_points=np.zeros(n_distinct, np.int64),
    )
    _fill_counts(dictionary, is_inline, counts)
    return counts


@kernel
def _fill_counts(dictionary: Dictionary, is_inline: np.ndarray, out: _Counts) -> None:
    predicate_offsets, interval_offsets = dictionary.predicate_offsets, dictionary.interval_offsets
    lows, highs, edge_offsets = dictionary.lows, dictionary.highs, dictionary.edge_offsets
    for d in range(len(edge_offsets) - 1):
        n_codes = edge_offsets[d + 1] - edge_offsets[d] + 1
        ranges = np.zeros(n_codes + 1, np.int32)  # where ranges start less where they end
        sets = np.zeros(n_codes + 1, np.int32)
        for q in range(predicate_offsets[d], predicate_offsets[d + 1]):
            if not is_inline[q]:
                continue
            first, last = interval_offsets[q], interval_offsets[q + 1]
            if last - first == 1:
                out.n_ranges[d] += 1
                ranges[lows[first]] += 1
                ranges[highs[first] + 1] -= 1
            else:
                out.n_sets[d] += 1
                n_accepted = int64(0)
                for k in range(first, last):
                    n_accepted += int64(highs[k]) - lows[k] + 1
                    sets[lows[k]] += 1
                    sets[highs[k] + 1] -= 1
                if n_accepted == last - first:
                    out.kinds[q] = _POINTS
                    out.n_points[q] = n_accepted
                elif n_accepted < n_codes:
                    out.kinds[q] = _EXCEPTIONS
                    out.n_points[q] = n_codes - n_accepted
        open_ranges = open_sets = 0
        for c in range(n_codes):
            open_ranges += ranges[c]
            open_sets += sets[c]
            out.any_codes[d] += open_ranges + open_sets > 0
            out.set_codes[d] += open_sets > 0


def _rank_codes(
    dictionary: Dictionary, is_inline: np.ndarray, columns: _Columns
) -> tuple[np.ndarray, np.ndarray]:
    """Return where the ranks of each column begin, and all ranks."""
    n_masks = columns.n_masks
    sizes = (np.diff(dictionary.edge_offsets) + 1)[columns.dimensions[1:n_masks]]
    rank_starts = np.zeros(len(columns.dimensions), np.int64)
    rank_starts[1:n_masks] = np.cumsum(sizes) - sizes
    ranks = np.full(int(sizes.sum()), _NOWHERE, np.uint8)
    _fill_ranks(dictionary, is_inline, columns, rank_starts, ranks)
    return rank_starts, ranks


@kernel
def _fill_ranks(
    dictionary: Dictionary,
    is_inline: np.ndarray,
    columns: _Columns,
    rank_starts: np.ndarray,
    out_ranks: np.ndarray,
) -> None:
    predicate_offsets, interval_offsets = dictionary.predicate_offsets, dictionary.interval_offsets
    lows, highs, edge_offsets = dictionary.lows, dictionary.highs, dictionary.edge_offsets
    for column in range(1, columns.n_masks):
        d = columns.dimensions[column]
        start = rank_starts[column]
        n_codes = edge_offsets[d + 1] - edge_offsets[d] + 1
        for q in range(predicate_offsets[d], predicate_offsets[d + 1]):
            first, last = interval_offsets[q], interval_offsets[q + 1]
            if is_inline[q] and (columns.one_mask[d] or last - first > 1):
                for k in range(first, last):
                    for c in range(lows[k], highs[k] + 1):
                        out_ranks[start + c] = 0
        n_ranks = 0
        for c in range(n_codes):
            if out_ranks[start + c] == 0:
                out_ranks[start + c] = n_ranks
                n_ranks += 1


@kernel
def _write_points(
    dictionary: Dictionary, q: int, column: int, excludes: bool, out: InlineTests
) -> None:
    """Write the words of a predicate that is some points, or all codes but some points."""
    lows, highs, edge_offsets = dictionary.lows, dictionary.highs, dictionary.edge_offsets
    d = dictionary.dimensions[q]
    n_codes = edge_offsets[d + 1] - edge_offsets[d] + 1
    k, last = dictionary.interval_offsets[q], dictionary.interval_offsets[q + 1]
    code = int64(lows[k])
    if excludes and code == 0:
        code = int64(highs[k]) + 1
        k += 1
    elif excludes:
        code = int64(0)
    at, stop = out.test_offsets[q], out.test_offsets[q + 1]
    while at < stop:
        payload = points_payload(at + 1 < stop, excludes)
        for i in range(POINTS_PER_WORD):  # behind the last point that one again
            payload |= point_payload(code, i)
            if excludes:
                following = code + 1
                while k < last and lows[k] == following:
                    following = int64(highs[k]) + 1
                    k += 1
                if following < n_codes:
                    code = following
            else:
                k = min(k + 1, last - 1)
                code = int64(lows[k])
        out.tests[at] = inline_test(column, payload)
        at += 1


@kernel
def _write_tests(
    dictionary: Dictionary,
    is_inline: np.ndarray,
    columns: np.ndarray,
    kinds: np.ndarray,
    out: InlineTests,
) -> None:
    """Write the words of all inline tests; `columns` and `kinds` are those of the predicates."""
    lows, highs = dictionary.lows, dictionary.highs
    interval_offsets, dimensions = dictionary.interval_offsets, dictionary.dimensions
    n_masks, n_points = out.n_masks, out.n_points
    rank_starts, ranks, pool, tests = out.rank_starts, out.ranks, out.pool, out.tests
    n_pool = 0
    for q in range(len(columns)):
        if not is_inline[q]:
            continue
        column = columns[q]
        at = out.test_offsets[q]
        first, last = interval_offsets[q], interval_offsets[q + 1]
        payload = uint64(0)
        if column < n_masks:
            start = rank_starts[column]
            for k in range(first, last):
                for c in range(lows[k], highs[k] + 1):
                    payload |= uint64(1) << uint64(ranks[start + c])
        elif column < n_masks + n_points:
            _write_points(dictionary, q, column, kinds[q] == _EXCEPTIONS, out)
            continue
        elif column != GENERAL:
            payload = interval_payload(lows[first], highs[first])
        else:
            payload = general_payload(dimensions[q])
            tests[at + 1] = general_intervals(n_pool, last - first)
            for k in range(first, last):
                low, high = int64(lows[k]), int64(highs[k])
                for c in range(low, min(high, low + GENERAL_BITS - 1) + 1):
                    payload |= uint64(1) << general_bit(c)
                pool[n_pool] = low
                pool[n_pool + 1] = high
                n_pool += 2
        tests[at] = inline_test(column, payload)
