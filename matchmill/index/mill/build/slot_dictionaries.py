"""Slots whose entries test the same few predicates over and over.

Such a slot has a dictionary of at most 64 tests. Each is looked up once per visit; one word per
entry then says in its bits which of them it needs, instead of a list of tests. Entries with a
test that is not among the 64 most frequent ones keep their lists, in blocks before the dictionary.

It pays where subscriptions resemble each other beyond the slot that they are filed under, as
those of sparse workloads do: there, half a dozen tests of each of a thousand candidates become
one. Where a slot's clauses have little in common, there is no dictionary.
"""

from __future__ import annotations

import numpy as np

from matchmill.index.mill.words import shape_first_test, shape_with_dictionary
from matchmill.kernels.intrinsics import prefetch
from matchmill.kernels.jit import int64, kernel
from matchmill.kernels.sorting import sort_by_key

__all__ = [
    "LEAST_ENTRIES",
    "MOST_DICTIONARY_TESTS",
    "MOST_DISTINCT",
    "N_TESTS",
    "choose_dictionary",
]

MOST_DICTIONARY_TESTS = 64
MOST_DISTINCT = 128  # tests of a slot that is worth the trouble of choosing among them
N_TESTS = 1 << 16
LEAST_ENTRIES = 8  # that use a dictionary
_LEAST_TESTS = 3  # of an entry, on average
_SAMPLE = 32  # entries of a slot that are looked at before all others
_AHEAD = 4


@kernel
def choose_dictionary(
    shapes: np.ndarray,
    clauses: np.ndarray,
    n: int,
    test_offsets: np.ndarray,
    tests: np.ndarray,
    counts: np.ndarray,
    order: np.ndarray,
    distinct: np.ndarray,
) -> None:
    """Choose those of a slot's n entries that use a dictionary, if it pays.

    Their shapes get the flag and the number of tests of the dictionary. `counts` has N_TESTS zeros,
    before and after; `order` and `distinct` are scratch, twice as long as MOST_DISTINCT.
    """
    if n < LEAST_ENTRIES or not _first_tests_recur(shapes, n, counts, distinct):
        return
    every = max(1, n // _SAMPLE)
    n_tests, n_distinct = _count_tests(clauses, n, every, test_offsets, tests, counts, distinct)
    for k in range(min(n_distinct, MOST_DISTINCT)):
        counts[distinct[k]] = 0
    if 2 * n_distinct > n_tests:
        return
    _, n_distinct = _count_tests(clauses, n, int64(1), test_offsets, tests, counts, distinct)
    if 0 < n_distinct <= MOST_DISTINCT:
        if n_distinct > MOST_DICTIONARY_TESTS:
            for k in range(n_distinct):
                order[k] = -int64(counts[distinct[k]])
            sort_by_key(order, distinct, n_distinct)
        for k in range(MOST_DICTIONARY_TESTS, n_distinct):
            counts[distinct[k]] = 0
        _flag_entries(shapes, clauses, n, test_offsets, tests, counts)
    for k in range(min(n_distinct, MOST_DISTINCT)):
        counts[distinct[k]] = 0


@kernel
def _first_tests_recur(
    shapes: np.ndarray, n: int, counts: np.ndarray, distinct: np.ndarray
) -> bool:
    """Return whether few of the entries' first tests are distinct, which their shapes tell."""
    most = min(n >> 1, MOST_DICTIONARY_TESTS)
    n_first = 0
    for k in range(n):
        test = shape_first_test(shapes[k])
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
    """Count how often each test occurs in every so many entries.

    Return (tests, distinct ones), but stop at MOST_DISTINCT + 1 of these.
    """
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
    """Flag the entries whose tests all have a count, if they are worth a dictionary."""
    n_entries, n_tests, n_dictionary = 0, int64(0), 0
    for k in range(n):
        start, stop = test_offsets[clauses[k]], test_offsets[clauses[k] + 1]
        if _all_counted(tests, start, stop, counts):
            n_entries += 1
            n_tests += stop - start
            for j in range(start, stop):
                n_dictionary += int(counts[tests[j]] > 0)
                counts[tests[j]] = -1
    if (
        n_entries < LEAST_ENTRIES
        or 2 * n_dictionary > 3 * n_entries
        or n_tests < _LEAST_TESTS * n_entries
    ):
        return
    for k in range(n):
        start, stop = test_offsets[clauses[k]], test_offsets[clauses[k] + 1]
        if _all_counted(tests, start, stop, counts):
            shapes[k] = shape_with_dictionary(shapes[k], n_dictionary)


@kernel
def _all_counted(tests: np.ndarray, start: int, stop: int, counts: np.ndarray) -> bool:
    """Return whether all of tests[start:stop] have a count."""
    for j in range(start, stop):
        if counts[tests[j]] == 0:
            return False
    return True
