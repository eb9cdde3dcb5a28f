"""Each clause under its slots: entries, and what is left to test of each clause.

    entry e     clauses[e] under slots[e]; shapes[e]: private words << 40 | tests << 16 | first test
    clause i    tests test_offsets[i] … [i + 1], the least likely first;
                words word_offsets[i] … [i + 1] of private tests

What the place of a clause implies is not tested any more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill._jit import int64, kernel
from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.errors import InputError
from matchmill.indexes.mill.access import GROUP, MOST_NODES, AccessPlan, cover_of, node_place
from matchmill.indexes.mill.dictionary import Dictionary
from matchmill.indexes.mill.privates import PrivateTests

__all__ = ["Entries", "file_clauses"]

_MOST_PRIVATES = (1 << 22) - 1


class Entries(NamedTuple):
    clauses: np.ndarray  # int32
    slots: np.ndarray  # int32
    shapes: np.ndarray  # int64
    test_offsets: np.ndarray  # int64
    tests: np.ndarray  # uint16
    word_offsets: np.ndarray  # int64
    words: np.ndarray  # uint64


def file_clauses(
    table: ConjunctionTable,
    dictionary: Dictionary,
    shared: np.ndarray,
    plan: AccessPlan,
    privates: PrivateTests,
    chances: np.ndarray,
) -> Entries:
    slot_offsets, predicate_slots = _slots_of_predicates(dictionary, shared, plan)
    n_entries = _count_entries(dictionary, plan, slot_offsets)
    # All that is to be known of a distinct predicate in one number: chance (as an integer of the
    # same order), words of its private test, shared number + 1.
    n_words = np.diff(privates.test_offsets)
    known = chances.view(np.int32).astype(np.int64) << 32
    known |= n_words << 17
    known |= shared + 1
    n_tests, n_private = _count_residuals(dictionary.ids, known)
    n_clauses = table.n_clauses
    entries = Entries(
        np.empty(n_entries, np.int32),
        np.empty(n_entries, np.int32),
        np.empty(n_entries, np.int64),
        np.zeros(n_clauses + 1, np.int64),
        np.empty(n_tests, np.uint16),
        np.zeros(n_clauses + 1, np.int64),
        np.empty(n_private, np.uint64),
    )
    _write_residuals(
        table.clause_offsets,
        dictionary.ids,
        known,
        plan.access,
        plan.second,
        _is_implied(plan),
        privates.test_offsets,
        privates.tests,
        entries,
    )
    if n_clauses and np.diff(entries.word_offsets).max() > _MOST_PRIVATES:
        raise InputError(f"a clause takes more than {_MOST_PRIVATES:,} private tests")
    _write_entries(dictionary, plan, slot_offsets, predicate_slots, entries)
    return entries


def _is_implied(plan: AccessPlan) -> np.ndarray:
    """For each distinct predicate: whether clauses filed under it alone need not test it."""
    implied: np.ndarray = (plan.kinds == GROUP) | (plan.levels == 0)
    return implied.astype(np.uint8)


# -- slots ----------------------------------------------------------------------------------------


def _slots_of_predicates(
    dictionary: Dictionary, shared: np.ndarray, plan: AccessPlan
) -> tuple[np.ndarray, np.ndarray]:
    """The slots under which clauses are filed that are reached through one predicate alone."""
    is_used = np.zeros(dictionary.n_distinct + 1, np.uint8)
    is_used[plan.access[(plan.second < 0) & (plan.access >= 0)]] = 1
    used = np.flatnonzero(is_used[:-1])
    slots = np.empty(MOST_NODES * len(used), np.int32)
    offsets = np.zeros(dictionary.n_distinct + 1, np.int64)
    n = _write_slots(dictionary, shared, plan, is_used, offsets, slots)
    return offsets, slots[:n]


@kernel
def _write_slots(
    dictionary: Dictionary,
    shared: np.ndarray,
    plan: AccessPlan,
    is_used: np.ndarray,
    out_offsets: np.ndarray,
    out_slots: np.ndarray,
) -> int:
    nodes = np.empty(MOST_NODES, np.int64)
    n = 0
    for q in range(len(dictionary.dimensions)):
        if is_used[q]:
            if plan.kinds[q] == GROUP:
                out_slots[n] = plan.group_start + shared[q]
                n += 1
            else:
                d = int64(dictionary.dimensions[q])
                n_codes = dictionary.edge_offsets[d + 1] - dictionary.edge_offsets[d] + 1
                for k in range(cover_of(dictionary, q, plan.levels[q], nodes)):
                    out_slots[n] = plan.node_starts[d] + node_place(n_codes, nodes[k])
                    n += 1
        out_offsets[q + 1] = n
    return n


@kernel
def _count_entries(dictionary: Dictionary, plan: AccessPlan, slot_offsets: np.ndarray) -> int:
    access, second = plan.access, plan.second
    nodes = np.empty(MOST_NODES, np.int64)
    n = 0
    for i in range(len(access)):
        q = int64(access[i])
        if second[i] >= 0:
            n_first = cover_of(dictionary, q, 0, nodes)
            n += n_first * cover_of(dictionary, int64(second[i]), 0, nodes)
        elif q >= 0:
            n += slot_offsets[q + 1] - slot_offsets[q]
        else:
            n += 1
    return n


@kernel
def _write_entries(
    dictionary: Dictionary,
    plan: AccessPlan,
    slot_offsets: np.ndarray,
    predicate_slots: np.ndarray,
    entries: Entries,
) -> None:
    access, second = plan.access, plan.second
    clauses, slots, shapes = entries.clauses, entries.slots, entries.shapes
    test_offsets, word_offsets, tests = entries.test_offsets, entries.word_offsets, entries.tests
    nodes, others = np.empty(MOST_NODES, np.int64), np.empty(MOST_NODES, np.int64)
    n = 0
    for i in range(len(access)):
        q = int64(access[i])
        n_before = n
        if second[i] >= 0:
            pair = plan.pairs.of_clause[i]
            start, width = plan.pair_start + plan.pairs.starts[pair], plan.pairs.widths[pair]
            n_second = cover_of(dictionary, int64(second[i]), 0, others)
            for a in range(cover_of(dictionary, q, 0, nodes)):
                for b in range(n_second):
                    slots[n] = start + nodes[a] * width + others[b]
                    n += 1
        elif q >= 0:
            for k in range(slot_offsets[q], slot_offsets[q + 1]):
                slots[n] = predicate_slots[k]
                n += 1
        else:
            slots[n] = plan.n_slots - 1
            n += 1
        n_tests = test_offsets[i + 1] - test_offsets[i]
        shape = ((word_offsets[i + 1] - word_offsets[i]) << 40) | (n_tests << 16)
        if n_tests > 0:
            shape |= int64(tests[test_offsets[i]])
        for e in range(n_before, n):
            clauses[e] = i
            shapes[e] = shape


# -- what is left to test -------------------------------------------------------------------------


@kernel
def _count_residuals(ids: np.ndarray, known: np.ndarray) -> tuple[int, int]:
    """At most how many tests and private words there are."""
    n_tests = n_words = 0
    for q in ids:
        is_shared = known[q] & 0x1FFFF != 0
        n_tests += is_shared
        n_words += 0 if is_shared else (known[q] >> 17) & 0x7FFF
    return n_tests, n_words


@kernel
def _write_residuals(
    clause_offsets: np.ndarray,
    ids: np.ndarray,
    known: np.ndarray,
    access: np.ndarray,
    second: np.ndarray,
    is_implied: np.ndarray,
    private_offsets: np.ndarray,
    private_tests: np.ndarray,
    entries: Entries,
) -> None:
    tests, words = entries.tests, entries.words
    test_offsets, word_offsets = entries.test_offsets, entries.word_offsets
    n_tests = n_words = 0
    for i in range(len(access)):
        implied, also_implied = int64(access[i]), int64(second[i])
        if also_implied < 0 and implied >= 0 and not is_implied[implied]:
            implied = int64(-1)
        start = n_tests
        least = int64(1) << 62
        for p in range(clause_offsets[i], clause_offsets[i + 1]):
            q = int64(ids[p])
            if q in (implied, also_implied):
                continue
            fact = known[q]
            test = (fact & 0x1FFFF) - 1
            if test >= 0:
                if fact < least:
                    least = fact
                    tests[n_tests] = tests[start]
                    tests[start] = test
                else:
                    tests[n_tests] = test
                n_tests += 1
            else:
                for k in range(private_offsets[q], private_offsets[q + 1]):
                    words[n_words] = private_tests[k]
                    n_words += 1
        test_offsets[i + 1] = n_tests
        word_offsets[i + 1] = n_words
