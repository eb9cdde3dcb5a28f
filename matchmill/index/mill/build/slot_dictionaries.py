"""Slots whose entries test the same few predicates over and over.

Such a slot begins with a dictionary of at most 64 tests. Each is looked up once a visit; one word
an entry then says in its bits which of them it needs, instead of a list of tests. Entries with a
test that is not among the 64 most frequent ones stay as they are, in blocks before.

It pays where subscriptions resemble each other beyond the place that they are filed under, as
those of sparse workloads do: there, half a dozen tests of each of a thousand candidates become
one. Where a slot's clauses have little in common, nothing is folded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchmill.kernels.intrinsics import prefetch
from matchmill.kernels.jit import int64, kernel, uint64
from matchmill.kernels.sorting import sort_by_key

__all__ = [
    "FOLDED_SHAPE",
    "LEAST_FOLDED",
    "MOST_DISTINCT",
    "MOST_FOLDED",
    "N_TESTS",
    "fold_slot",
    "missing_tests",
]

MOST_FOLDED = 64  # tests of a dictionary
MOST_DISTINCT = 128  # tests of a slot that is worth the trouble of choosing among them
N_TESTS = 1 << 16
FOLDED_SHAPE = 1 << 62  # flag in the shape of an entry (`entries.py`); its tests are the slot's
LEAST_FOLDED = 8  # entries
_LEAST_TESTS = 3  # of an entry, on average
_SAMPLE = 32  # entries of a slot that are looked at before all others
_AHEAD = 4


@kernel
def fold_slot(
    shapes: np.ndarray,
    clauses: np.ndarray,
    n: int,
    test_offsets: np.ndarray,
    tests: np.ndarray,
    counts: np.ndarray,
    order: np.ndarray,
    distinct: np.ndarray,
) -> None:
    """Flag those of a slot's n entries that are to be folded; the number of tests in their shapes
    becomes that of the dictionary. `counts` has N_TESTS zeros, before and after; `order` and
    `distinct` are scratch, twice as long as MOST_DISTINCT."""
    if n < LEAST_FOLDED or not _first_tests_recur(shapes, n, counts, distinct):
        return
    every = max(1, n // _SAMPLE)
    n_tests, n_distinct = _count_tests(clauses, n, every, test_offsets, tests, counts, distinct)
    for k in range(min(n_distinct, MOST_DISTINCT)):
        counts[distinct[k]] = 0
    if 2 * n_distinct > n_tests:
        return
    _, n_distinct = _count_tests(clauses, n, int64(1), test_offsets, tests, counts, distinct)
    if 0 < n_distinct <= MOST_DISTINCT:
        if n_distinct > MOST_FOLDED:
            for k in range(n_distinct):
                order[k] = -int64(counts[distinct[k]])
            sort_by_key(order, distinct, n_distinct)
        for k in range(MOST_FOLDED, n_distinct):
            counts[distinct[k]] = 0
        _flag_entries(shapes, clauses, n, test_offsets, tests, counts)
    for k in range(min(n_distinct, MOST_DISTINCT)):
        counts[distinct[k]] = 0


@kernel
def _first_tests_recur(
    shapes: np.ndarray, n: int, counts: np.ndarray, distinct: np.ndarray
) -> bool:
    """Whether few of the entries' first tests are distinct, which their shapes tell."""
    most = min(n >> 1, MOST_FOLDED)
    n_first = 0
    for k in range(n):
        test = shapes[k] & 0xFFFF
        if counts[test] == 0:
            if n_first == most:
                n_first += 1
                break
            distinct[n_first] = test
            n_first += 1
            counts[test] = 1
    for k in range(min(n_first, most)):
        counts[distinct[k]] = 0
    return n_first <= most


@kernel
def _count_tests(
    clauses: np.ndarray,
    n: int,
    every: int,
    test_offsets: np.ndarray,
    tests: np.ndarray,
    counts: np.ndarray,
    distinct: np.ndarray,
) -> tuple[int, int]:
    """How often each test occurs in every so many entries; returns (tests, distinct ones), but
    stops at MOST_DISTINCT + 1 of these."""
    n_tests, n_distinct = int64(0), 0
    for k in range(0, n, every):
        clause = clauses[k]
        if k + 2 * _AHEAD * every < n:
            prefetch(test_offsets, clauses[k + 2 * _AHEAD * every])
            prefetch(tests, test_offsets[clauses[k + _AHEAD * every]])
        n_tests += test_offsets[clause + 1] - test_offsets[clause]
        for j in range(test_offsets[clause], test_offsets[clause + 1]):
            test = tests[j]
            if counts[test] == 0:
                if n_distinct == MOST_DISTINCT:
                    return n_tests, n_distinct + 1
                distinct[n_distinct] = test
                n_distinct += 1
            counts[test] += 1
    return n_tests, n_distinct


@kernel
def _flag_entries(
    shapes: np.ndarray,
    clauses: np.ndarray,
    n: int,
    test_offsets: np.ndarray,
    tests: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Those whose tests all have a count, if they are worth a dictionary."""
    n_entries, n_tests, n_folded = 0, int64(0), 0
    for k in range(n):
        start, stop = test_offsets[clauses[k]], test_offsets[clauses[k] + 1]
        if _all_counted(tests, start, stop, counts):
            n_entries += 1
            n_tests += stop - start
            for j in range(start, stop):
                n_folded += int(counts[tests[j]] > 0)
                counts[tests[j]] = -1
    if (
        n_entries < LEAST_FOLDED
        or 2 * n_folded > 3 * n_entries
        or n_tests < _LEAST_TESTS * n_entries
    ):
        return
    for k in range(n):
        start, stop = test_offsets[clauses[k]], test_offsets[clauses[k] + 1]
        if _all_counted(tests, start, stop, counts):
            kind_and_privates = shapes[k] >> 40
            shapes[k] = FOLDED_SHAPE | (kind_and_privates << 40) | (n_folded << 16)


@kernel
def _all_counted(tests: np.ndarray, start: int, stop: int, counts: np.ndarray) -> bool:
    for j in range(start, stop):
        if counts[tests[j]] == 0:
            return False
    return True


@kernel
def missing_tests(truth: np.ndarray, tests: np.ndarray, start: Any, n: Any) -> Any:
    """The dictionary tests[start:start + n] in bits: those that do not hold. `truth` has 1 for each
    shared predicate that does."""
    missing = uint64(0)
    for k in range(n):
        test = uint64(tests[uint64(start) + uint64(k)])
        missing |= uint64(truth[test] ^ 1) << uint64(k)
    return missing
