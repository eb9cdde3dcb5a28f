"""Whether inline tests hold (`words.py` describes them, `build/inline_tests.py` makes them)."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchmill.index.mill.arrays import N_MASKS, N_POINTS
from matchmill.index.mill.words import (
    GENERAL,
    POINT_BITS,
    POINTS_PER_WORD,
    column_of,
    general_bit,
    general_test,
    has_more,
    high_of,
    is_exception,
    low_of,
)
from matchmill.kernels.jit import int64, kernel, uint64
from matchmill.kernels.searches import first_at_least

__all__ = [
    "has_point",
    "in_interval",
    "in_pool",
    "inline_tests_hold",
    "missing_tests",
    "word_holds",
]

_ONE, _LOW_SIX = uint64(1), uint64(63)
_LOW_LANES = uint64(sum(1 << (POINT_BITS * i) for i in range(POINTS_PER_WORD)))
_HIGH_LANES = uint64(int(_LOW_LANES) << (POINT_BITS - 1))
_TOP = uint64(1 << 63)  # so that nothing is borrowed from beyond the word


@kernel
def in_pool(pool: np.ndarray, start: int, n: int, code: int) -> bool:
    """Return whether one of n ascending intervals, low, high, low, high, …, has the code."""
    stop = start + 2 * n
    at = first_at_least(pool, code, start, stop)
    is_high = (at - start) & 1 != 0  # at the end of an interval that begins below the code
    return bool(at < stop and (is_high or pool[at] == code))


@kernel
def has_point(test: Any, code: Any) -> Any:
    """Return 1 if a word of points has a code, else 0.

    A lane that is 0 after the exclusive or is one in which subtracting 1 sets the highest bit.
    """
    lanes = (test | _TOP) ^ (uint64(code) * _LOW_LANES)
    return uint64((lanes - _LOW_LANES) & ~lanes & _HIGH_LANES != 0)


@kernel
def in_interval(test: Any, value: Any) -> Any:
    """Return 1 if the interval of a test has a value, else 0."""
    return uint64(low_of(test) <= value) & uint64(value <= high_of(test))


@kernel
def word_holds(test: Any, value: Any, found: Any, n_masks: Any, first_interval: Any) -> Any:
    """Return whether one word holds, in the lowest bit, and `found` for the next word.

    `found` says whether the value was among the points so far. The word is taken for a mask, for
    points and for an interval, and what it is decides which of the three counts: no branch that
    could be predicted wrong. It is no general test.
    """
    column = column_of(test)
    is_mask, is_interval = uint64(column < n_masks), uint64(column >= first_interval)
    is_points = (is_mask | is_interval) ^ _ONE
    by_mask = test >> (value & _LOW_SIX)
    found |= has_point(test, value)
    by_points = found ^ is_exception(test)
    more = is_points & has_more(test)
    by_interval = in_interval(test, value)
    holds = (by_mask & is_mask) | (by_interval & is_interval) | (by_points & is_points)
    return holds | more, found & more


@kernel
def inline_tests_hold(
    sizes: np.ndarray,
    words: np.ndarray,
    pool: np.ndarray,
    start: Any,
    stop: Any,
    values: np.ndarray,
    codes: np.ndarray,
) -> bool:
    """Return whether an event satisfies the inline tests words[start:stop] of any kind.

    It has `values` in the columns and `codes` on the dimensions, -1 where it has none.
    """
    n_masks = uint64(sizes[N_MASKS])
    first_interval = n_masks + uint64(sizes[N_POINTS])
    found = uint64(0)
    at = uint64(start)
    while at < uint64(stop):
        test = words[at]
        at += _ONE
        if column_of(test) == uint64(GENERAL):
            d, first, n = general_test(test, words[at])
            at += _ONE
            code = max(int64(0), int64(codes[d]))
            if (test >> general_bit(code)) & _ONE == 0 or not in_pool(pool, first, n, code):
                return False
        else:
            value = uint64(values[column_of(test)])
            holds, found = word_holds(test, value, found, n_masks, first_interval)
            if holds & _ONE == 0:
                return False
    return True


@kernel
def missing_tests(truth: np.ndarray, tests: np.ndarray, start: Any, n: Any) -> Any:
    """Return the tests of the dictionary tests[start:start + n] that do not hold, as bits.

    `truth` has 1 for each shared predicate that holds.
    """
    missing = uint64(0)
    for k in range(n):
        test = uint64(tests[uint64(start) + uint64(k)])
        missing |= uint64(truth[test] ^ 1) << uint64(k)
    return missing
