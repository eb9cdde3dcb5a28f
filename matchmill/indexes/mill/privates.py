"""Predicates that are not shared: each is a test of 64 bits beside its clause.

    column      a dimension as its private tests see it: an event has one value in each column
    test        16 bits column, then 48 bits payload:

    mask        the payload has a bit for each of at most 48 values: exact
    hashed      a bit for each value modulo 48; if it is set, the next 64 bits tell where the
                intervals are: 40 bits place, 24 bits number
    interval    24 bits low, 24 bits high: exact
    general     column 65,535: the next 64 bits tell where dimension and intervals are

Columns are numbered by kind: masks first, then hashed, then interval. The value of a column is the
dimension's code, or for a mask the rank of the code among those that some test accepts (63 for
all others: that bit belongs to the column's number, and masks have numbers below 32,768).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill._jit import int64, kernel, uint64
from matchmill.indexes.mill.dictionary import Dictionary

__all__ = ["PrivateTests", "build_privates", "private_holds"]

GENERAL = 65_535
_MASK_BITS = 48
_CODE_BITS = 24
_NOWHERE = 63
_MOST_MASKS = 1 << 15


class PrivateTests(NamedTuple):
    n_masks: int
    n_hashed: int
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
    _count_codes(dictionary, is_private, any_codes, set_codes, n_ranges, n_sets)
    has_any = n_ranges + n_sets > 0
    one_mask = _first(has_any & (any_codes <= _MASK_BITS), _MOST_MASKS)
    set_mask = ~one_mask & (n_sets > 0) & (set_codes <= _MASK_BITS)
    set_mask = _first(set_mask, _MOST_MASKS - int(one_mask.sum()))
    set_hashed = ~one_mask & ~set_mask & (n_sets > 0)
    ranges = ~one_mask & (n_ranges > 0) & (n_codes < 1 << _CODE_BITS)

    masks = np.flatnonzero(one_mask | set_mask)
    hashed, intervals = np.flatnonzero(set_hashed), np.flatnonzero(ranges)
    of_column = np.concatenate((masks, hashed, intervals))[:GENERAL]
    n_columns = len(of_column)
    n_masks = min(len(masks), n_columns)
    n_hashed = min(len(hashed), n_columns - n_masks)
    order = np.argsort(of_column, kind="stable")
    column_offsets = np.searchsorted(of_column[order], np.arange(n_dimensions + 1))
    set_column = np.full(n_dimensions, GENERAL, np.int64)
    range_column = np.full(n_dimensions, GENERAL, np.int64)
    numbers = np.arange(n_columns)
    set_column[of_column[: n_masks + n_hashed]] = numbers[: n_masks + n_hashed]
    range_column[of_column[n_masks + n_hashed :]] = numbers[n_masks + n_hashed :]
    range_column[one_mask] = set_column[one_mask]

    sizes = n_codes[of_column[:n_masks]]
    rank_starts = np.zeros(n_columns, np.int64)
    rank_starts[:n_masks] = np.cumsum(sizes) - sizes
    ranks = np.full(int(sizes.sum()), _NOWHERE, np.uint8)
    _rank_codes(dictionary, is_private, one_mask, of_column[:n_masks], rank_starts, ranks)
    defaults = np.zeros(n_columns, np.int32)
    defaults[:n_masks] = ranks[rank_starts[:n_masks]]

    n_intervals = np.diff(dictionary.interval_offsets)
    column = np.where(
        n_intervals == 1,
        range_column[dictionary.dimensions],
        set_column[dictionary.dimensions],
    )
    is_long = (column == GENERAL) | ((column >= n_masks) & (column < n_masks + n_hashed))
    n_words = np.where(is_private, 1 + is_long, 0)
    test_offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(n_words)))
    n_pool = np.where(is_private & is_long, 2 * n_intervals + 2 * (column == GENERAL), 0)
    tests = np.empty(int(test_offsets[-1]), np.uint64)
    pool = np.empty(int(n_pool.sum()), np.int32)
    _write_tests(
        dictionary,
        is_private,
        column,
        n_masks,
        n_hashed,
        rank_starts,
        ranks,
        test_offsets,
        tests,
        pool,
    )
    return PrivateTests(
        n_masks,
        n_hashed,
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
    dictionary: Dictionary,
    is_private: np.ndarray,
    out_any: np.ndarray,
    out_sets: np.ndarray,
    out_n_ranges: np.ndarray,
    out_n_sets: np.ndarray,
) -> None:
    for d in range(len(out_any)):
        n_codes = dictionary.edge_offsets[d + 1] - dictionary.edge_offsets[d] + 1
        ranges = np.zeros(n_codes + 1, np.int32)  # where ranges start less where they end
        sets = np.zeros(n_codes + 1, np.int32)
        for q in range(dictionary.predicate_offsets[d], dictionary.predicate_offsets[d + 1]):
            if not is_private[q]:
                continue
            first, last = dictionary.interval_offsets[q], dictionary.interval_offsets[q + 1]
            if last - first == 1:
                out_n_ranges[d] += 1
                ranges[dictionary.lows[first]] += 1
                ranges[dictionary.highs[first] + 1] -= 1
            else:
                out_n_sets[d] += 1
                for k in range(first, last):
                    sets[dictionary.lows[k]] += 1
                    sets[dictionary.highs[k] + 1] -= 1
        open_ranges = open_sets = 0
        for c in range(n_codes):
            open_ranges += ranges[c]
            open_sets += sets[c]
            out_any[d] += open_ranges + open_sets > 0
            out_sets[d] += open_sets > 0


@kernel
def _rank_codes(
    dictionary: Dictionary,
    is_private: np.ndarray,
    one_mask: np.ndarray,
    dimensions: np.ndarray,
    rank_starts: np.ndarray,
    out_ranks: np.ndarray,
) -> None:
    for column in range(len(dimensions)):
        d = dimensions[column]
        start = rank_starts[column]
        n_codes = dictionary.edge_offsets[d + 1] - dictionary.edge_offsets[d] + 1
        for q in range(dictionary.predicate_offsets[d], dictionary.predicate_offsets[d + 1]):
            first, last = dictionary.interval_offsets[q], dictionary.interval_offsets[q + 1]
            if is_private[q] and (one_mask[d] or last - first > 1):
                for k in range(first, last):
                    for c in range(dictionary.lows[k], dictionary.highs[k] + 1):
                        out_ranks[start + c] = 0
        n_ranks = 0
        for c in range(n_codes):
            if out_ranks[start + c] == 0:
                out_ranks[start + c] = n_ranks
                n_ranks += 1


@kernel
def _write_tests(
    dictionary: Dictionary,
    is_private: np.ndarray,
    columns: np.ndarray,
    n_masks: int,
    n_hashed: int,
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
        first, last = dictionary.interval_offsets[q], dictionary.interval_offsets[q + 1]
        payload = uint64(0)
        if column < n_masks:
            start = rank_starts[column]
            for k in range(first, last):
                for c in range(dictionary.lows[k], dictionary.highs[k] + 1):
                    payload |= uint64(1) << uint64(ranks[start + c])
        elif column < n_masks + n_hashed:
            for k in range(first, last):
                low, high = int64(dictionary.lows[k]), int64(dictionary.highs[k])
                for c in range(low, min(high, low + _MASK_BITS - 1) + 1):
                    payload |= uint64(1) << uint64(c % _MASK_BITS)
        elif column != GENERAL:
            low, high = uint64(dictionary.lows[first]), uint64(dictionary.highs[first])
            payload = low | (high << uint64(_CODE_BITS))
        out[at] = (uint64(column) << uint64(48)) | payload
        if test_offsets[q + 1] - at == 2:
            out[at + 1] = (uint64(n_pool) << uint64(24)) | uint64(last - first)
            if column == GENERAL:
                out_pool[n_pool] = dictionary.dimensions[q]
                out_pool[n_pool + 1] = 0
                n_pool += 2
            for k in range(first, last):
                out_pool[n_pool] = dictionary.lows[k]
                out_pool[n_pool + 1] = dictionary.highs[k]
                n_pool += 2


@kernel
def _in_pool(pool: np.ndarray, start: int, n: int, code: int) -> bool:
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
def private_holds(
    n_masks: int,
    n_hashed: int,
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
    while at < int64(stop):
        test = tests[at]
        column = int64(test >> uint64(48))
        at += 1
        if column < n_masks:
            if (test >> uint64(values[column])) & uint64(1) == 0:
                return False
        elif column < n_masks + n_hashed or column == GENERAL:
            place = int64(tests[at] >> uint64(24))
            n = int64(tests[at] & uint64(0xFFFFFF))
            at += 1
            if column == GENERAL:
                code = max(int64(0), int64(codes[pool[place]]))  # -1 for absent
                if not _in_pool(pool, place + 2, n, code):
                    return False
            else:
                code = int64(values[column])
                if (test >> uint64(code % _MASK_BITS)) & uint64(1) == 0:
                    return False
                if not _in_pool(pool, place, n, code):
                    return False
        else:
            code = int64(values[column])
            low = int64(test & uint64(0xFFFFFF))
            high = int64((test >> uint64(24)) & uint64(0xFFFFFF))
            if code < low or code > high:
                return False
    return True
