"""Predicates that are not shared: each is a test of 64 bits or a few beside its clause.

    column      a dimension as its private tests see it: an event has one value in each column
    test        16 bits column, then 48 bits payload:

    mask        the payload has a bit for each of at most 48 values: exact
    points      1 bit: whether the next word has more of them; 1 bit: whether they are those that do
                not hold; 1 bit unused; three values of 15 bits, the last ones alike
    interval    24 bits high, 24 bits low: exact
    general     column 65,535; 24 bits dimension, 24 bits one for each code modulo 24. If that bit
                is set, the next word tells where the intervals are: 40 bits place, 24 bits number

Columns are numbered by kind: masks first, then points, then intervals. The value of a column is the
dimension's code, or for a mask the rank of the code among those that some test accepts (63 for
all others: that bit belongs to the column's number, and masks have numbers below 32,768). Column 0
is a mask that belongs to no dimension and always has value 0: PADDING always holds.

The tests of a block are MASKS alone, INLINE (also points and intervals) or SOME_GENERAL, and each
kind is matched in a way of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchmill.index.predicate_codes import Dictionary
from matchmill.kernels.jit import int64, kernel, uint64

__all__ = [
    "PADDING",
    "PrivateTests",
    "build_privates",
    "general_test",
    "has_point",
    "in_pool",
    "private_holds",
]

GENERAL = 65_535
MASKS, INLINE, SOME_GENERAL = 0, 1, 2
PADDING = 1
_MASK_BITS = 48
CODE_BITS = 24
CODE_MASK = uint64((1 << CODE_BITS) - 1)
_NOWHERE = 63
_MOST_MASKS = (1 << 15) - 1
POINT_BITS, POINTS = 15, 3  # of a word
MORE_BIT, EXCEPTION_BIT = 47, 46
_MOST_POINTS = 60
_POINTS, _EXCEPTIONS = 1, 2  # what a set is: some points; all codes but some
_GENERAL_BITS = 24
_LOW_LANES = sum(1 << (POINT_BITS * i) for i in range(POINTS))
_HIGH_LANES = _LOW_LANES << (POINT_BITS - 1)
_TOP = 1 << 63  # so that nothing is borrowed from beyond the word


class PrivateTests(NamedTuple):
    n_masks: int
    n_points: int
    n_columns: int
    column_offsets: np.ndarray  # int32, one more than there are dimensions: its columns
    columns: np.ndarray  # int32
    rank_starts: np.ndarray  # int64, one a column: of a mask, where its ranks are
    ranks: np.ndarray  # uint8, one a code
    defaults: np.ndarray  # int32, one a column: the value of an event without the dimension
    test_offsets: np.ndarray  # int64, one a distinct predicate: its words in `tests`
    tests: np.ndarray  # uint64
    pool: np.ndarray  # int32: lows and highs of intervals in turn


def build_privates(dictionary: Dictionary, is_private: np.ndarray) -> PrivateTests:
    n_dimensions = dictionary.n_dimensions
    n_codes = np.diff(dictionary.edge_offsets) + 1
    # For each dimension: how many codes some private predicate accepts; some set accepts.
    any_codes = np.zeros(n_dimensions, np.int64)
    set_codes = np.zeros(n_dimensions, np.int64)
    n_ranges = np.zeros(n_dimensions, np.int64)
    n_sets = np.zeros(n_dimensions, np.int64)
    kinds = np.zeros(dictionary.n_distinct, np.uint8)
    set_points = np.zeros(dictionary.n_distinct, np.int64)
    _count_codes(
        dictionary.predicate_offsets,
        dictionary.interval_offsets,
        dictionary.lows,
        dictionary.highs,
        dictionary.edge_offsets,
        is_private,
        any_codes,
        set_codes,
        n_ranges,
        n_sets,
        kinds,
        set_points,
    )
    has_any = n_ranges + n_sets > 0
    one_mask = _first(has_any & (any_codes <= _MASK_BITS), _MOST_MASKS)
    set_mask = ~one_mask & (n_sets > 0) & (set_codes <= _MASK_BITS)
    set_mask = _first(set_mask, _MOST_MASKS - int(one_mask.sum()))
    has_points = ~one_mask & ~set_mask & (n_sets > 0) & (n_codes <= 1 << POINT_BITS)
    ranges = ~one_mask & (n_ranges > 0) & (n_codes < 1 << CODE_BITS)

    nowhere = np.full(1, n_dimensions)
    masks = np.concatenate((nowhere, np.flatnonzero(one_mask | set_mask)))
    points, intervals = np.flatnonzero(has_points), np.flatnonzero(ranges)
    of_column = np.concatenate((masks, points, intervals))[:GENERAL]
    n_columns = len(of_column)
    n_masks = len(masks)
    n_points = min(len(points), n_columns - n_masks)
    order = np.argsort(of_column, kind="stable")
    column_offsets = np.searchsorted(of_column[order], np.arange(n_dimensions + 1))
    set_column = np.full(n_dimensions + 1, GENERAL, np.int64)
    range_column = np.full(n_dimensions + 1, GENERAL, np.int64)
    numbers = np.arange(n_columns)
    set_column[of_column[: n_masks + n_points]] = numbers[: n_masks + n_points]
    range_column[of_column[n_masks + n_points :]] = numbers[n_masks + n_points :]
    range_column[:-1][one_mask] = set_column[:-1][one_mask]

    sizes = n_codes[of_column[1:n_masks]]
    rank_starts = np.zeros(n_columns, np.int64)
    rank_starts[1:n_masks] = np.cumsum(sizes) - sizes
    ranks = np.full(int(sizes.sum()), _NOWHERE, np.uint8)
    _rank_codes(
        dictionary.predicate_offsets,
        dictionary.interval_offsets,
        dictionary.lows,
        dictionary.highs,
        dictionary.edge_offsets,
        is_private,
        one_mask,
        of_column[:n_masks],
        rank_starts,
        ranks,
    )
    defaults = np.zeros(n_columns, np.int32)
    defaults[1:n_masks] = ranks[rank_starts[1:n_masks]]

    n_intervals = np.diff(dictionary.interval_offsets)
    column = np.where(
        n_intervals == 1,
        range_column[dictionary.dimensions],
        set_column[dictionary.dimensions],
    )
    in_points = (column >= n_masks) & (column < n_masks + n_points)
    column[in_points & ((kinds == 0) | (set_points > _MOST_POINTS))] = GENERAL
    in_points &= column != GENERAL
    is_general = column == GENERAL
    n_words = np.where(in_points, -(-set_points // POINTS), 1 + is_general)
    test_offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(is_private * n_words)))
    tests = np.empty(int(test_offsets[-1]), np.uint64)
    pool = np.empty(int((2 * n_intervals)[is_private & is_general].sum()), np.int32)
    _write_tests(
        dictionary.dimensions,
        dictionary.interval_offsets,
        dictionary.lows,
        dictionary.highs,
        dictionary.edge_offsets,
        is_private,
        column,
        kinds,
        n_masks,
        n_points,
        rank_starts,
        ranks,
        test_offsets,
        tests,
        pool,
    )
    return PrivateTests(
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


def _first(flags: np.ndarray, n: int) -> np.ndarray:
    """The first n of those that are set."""
    return flags & (np.cumsum(flags) <= n)


@kernel
def _count_codes(
    predicate_offsets: np.ndarray,
    interval_offsets: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    edge_offsets: np.ndarray,
    is_private: np.ndarray,
    out_any: np.ndarray,
    out_sets: np.ndarray,
    out_n_ranges: np.ndarray,
    out_n_sets: np.ndarray,
    out_kinds: np.ndarray,
    out_n_points: np.ndarray,
) -> None:
    for d in range(len(out_any)):
        n_codes = edge_offsets[d + 1] - edge_offsets[d] + 1
        ranges = np.zeros(n_codes + 1, np.int32)  # where ranges start less where they end
        sets = np.zeros(n_codes + 1, np.int32)
        for q in range(predicate_offsets[d], predicate_offsets[d + 1]):
            if not is_private[q]:
                continue
            first, last = interval_offsets[q], interval_offsets[q + 1]
            if last - first == 1:
                out_n_ranges[d] += 1
                ranges[lows[first]] += 1
                ranges[highs[first] + 1] -= 1
            else:
                out_n_sets[d] += 1
                n_accepted = int64(0)
                for k in range(first, last):
                    n_accepted += int64(highs[k]) - lows[k] + 1
                    sets[lows[k]] += 1
                    sets[highs[k] + 1] -= 1
                if n_accepted == last - first:
                    out_kinds[q] = _POINTS
                    out_n_points[q] = n_accepted
                elif n_accepted < n_codes:
                    out_kinds[q] = _EXCEPTIONS
                    out_n_points[q] = n_codes - n_accepted
        open_ranges = open_sets = 0
        for c in range(n_codes):
            open_ranges += ranges[c]
            open_sets += sets[c]
            out_any[d] += open_ranges + open_sets > 0
            out_sets[d] += open_sets > 0


@kernel
def _rank_codes(
    predicate_offsets: np.ndarray,
    interval_offsets: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    edge_offsets: np.ndarray,
    is_private: np.ndarray,
    one_mask: np.ndarray,
    dimensions: np.ndarray,
    rank_starts: np.ndarray,
    out_ranks: np.ndarray,
) -> None:
    for column in range(1, len(dimensions)):
        d = dimensions[column]
        start = rank_starts[column]
        n_codes = edge_offsets[d + 1] - edge_offsets[d] + 1
        for q in range(predicate_offsets[d], predicate_offsets[d + 1]):
            first, last = interval_offsets[q], interval_offsets[q + 1]
            if is_private[q] and (one_mask[d] or last - first > 1):
                for k in range(first, last):
                    for c in range(lows[k], highs[k] + 1):
                        out_ranks[start + c] = 0
        n_ranks = 0
        for c in range(n_codes):
            if out_ranks[start + c] == 0:
                out_ranks[start + c] = n_ranks
                n_ranks += 1


@kernel
def _write_tests(
    dimensions: np.ndarray,
    interval_offsets: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    edge_offsets: np.ndarray,
    is_private: np.ndarray,
    columns: np.ndarray,
    kinds: np.ndarray,
    n_masks: int,
    n_points: int,
    rank_starts: np.ndarray,
    ranks: np.ndarray,
    test_offsets: np.ndarray,
    out: np.ndarray,
    out_pool: np.ndarray,
) -> None:
    n_pool = 0
    for q in range(len(columns)):
        if not is_private[q]:
            continue
        column = columns[q]
        at = test_offsets[q]
        first, last = interval_offsets[q], interval_offsets[q + 1]
        payload = uint64(0)
        if column < n_masks:
            start = rank_starts[column]
            for k in range(first, last):
                for c in range(lows[k], highs[k] + 1):
                    payload |= uint64(1) << uint64(ranks[start + c])
        elif column < n_masks + n_points:
            is_exception = kinds[q] == _EXCEPTIONS
            n_codes = edge_offsets[dimensions[q] + 1] - edge_offsets[dimensions[q]] + 1
            k = first
            code = int64(lows[first])
            if is_exception and code == 0:
                code = int64(highs[first]) + 1
                k += 1
            elif is_exception:
                code = int64(0)
            while at < test_offsets[q + 1]:
                payload = uint64(at + 1 < test_offsets[q + 1]) << uint64(MORE_BIT)
                payload |= uint64(is_exception) << uint64(EXCEPTION_BIT)
                for i in range(POINTS):  # behind the last point that one again
                    payload |= uint64(code) << uint64(POINT_BITS * i)
                    if is_exception:
                        following = code + 1
                        while k < last and lows[k] == following:
                            following = int64(highs[k]) + 1
                            k += 1
                        if following < n_codes:
                            code = following
                    else:
                        k = min(k + 1, last - 1)
                        code = int64(lows[k])
                out[at] = (uint64(column) << uint64(48)) | payload
                at += 1
            continue
        elif column != GENERAL:
            low, high = uint64(lows[first]), uint64(highs[first])
            payload = low | (high << uint64(CODE_BITS))
        else:
            payload = uint64(dimensions[q]) << uint64(_GENERAL_BITS)
            out[at + 1] = (uint64(n_pool) << uint64(24)) | uint64(last - first)
            for k in range(first, last):
                low, high = int64(lows[k]), int64(highs[k])
                for c in range(low, min(high, low + _GENERAL_BITS - 1) + 1):
                    payload |= uint64(1) << uint64(c % _GENERAL_BITS)
                out_pool[n_pool] = low
                out_pool[n_pool + 1] = high
                n_pool += 2
        out[at] = (uint64(column) << uint64(48)) | payload


@kernel
def in_pool(pool: np.ndarray, start: int, n: int, code: int) -> bool:
    """Whether one of n ascending intervals has the code."""
    low = int64(0)
    high = int64(n)
    while low < high:  # the first interval that ends at or after the code
        middle = (low + high) >> 1
        if pool[start + 2 * middle + 1] < code:
            low = middle + 1
        else:
            high = middle
    return bool(low < n and pool[start + 2 * low] <= code)


@kernel
def has_point(test: Any, code: Any) -> Any:
    """Whether a word of points has a code: not 0 if so. A lane that is 0 after the exclusive or is
    one in which subtracting 1 sets the highest bit."""
    lanes = (test | uint64(_TOP)) ^ (uint64(code) * uint64(_LOW_LANES))
    return (lanes - uint64(_LOW_LANES)) & ~lanes & uint64(_HIGH_LANES)


@kernel
def general_test(test: Any, following: Any) -> tuple[int, int, int]:
    """Of a general test and the word after it: the dimension, and where its intervals are in the
    pool, and how many."""
    d = int64((test >> uint64(_GENERAL_BITS)) & uint64(0xFFFFFF))
    return d, int64(following >> uint64(24)), int64(following & uint64(0xFFFFFF))


@kernel
def private_holds(
    n_masks: int,
    n_points: int,
    tests: np.ndarray,
    pool: np.ndarray,
    start: int,
    stop: int,
    values: np.ndarray,
    codes: np.ndarray,
) -> bool:
    """Whether an event satisfies tests[start:stop]; it has `values` in the columns, `codes` on
    the dimensions."""
    at = int64(start)
    found = False  # the value among the points of the words before
    while at < int64(stop):
        test = tests[at]
        column = int64(test >> uint64(48))
        at += 1
        if column < n_masks:
            if (test >> uint64(values[column])) & uint64(1) == 0:
                return False
        elif column < n_masks + n_points:
            found = found or has_point(test, uint64(values[column])) != uint64(0)
            if (test >> uint64(MORE_BIT)) & uint64(1) == 0:
                if found == ((test >> uint64(EXCEPTION_BIT)) & uint64(1) != 0):
                    return False
                found = False
        elif column == GENERAL:
            d, place, n = general_test(test, tests[at])
            code = max(int64(0), int64(codes[d]))  # -1 for absent
            if (test >> uint64(code % _GENERAL_BITS)) & uint64(1) == 0:
                return False
            if not in_pool(pool, place, n, code):
                return False
            at += 1
        else:
            code = int64(values[column])
            low = int64(test & uint64(0xFFFFFF))
            high = int64((test >> uint64(24)) & uint64(0xFFFFFF))
            if code < low or code > high:
                return False
    return True
