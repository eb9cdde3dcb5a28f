"""Each clause under its slots: entries, and what is left to test of each clause.

    entry e     clauses[e] under slots[e]; shapes[e]:
                kind of private tests << 60 | private words << 40 | tests << 16 | first test
    clause i    tests test_offsets[i] … [i + 1], the least likely first;
                words word_offsets[i] … [i + 1] of private tests

What the place of a clause implies is not tested any more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.errors import InputError
from matchmill.index.mill.build.access import GROUP, MOST_NODES, AccessPlan, cover_of, node_place
from matchmill.index.mill.build.inline_tests import (
    GENERAL,
    INLINE,
    MASKS,
    SOME_GENERAL,
    PrivateTests,
)
from matchmill.index.predicate_codes import Dictionary
from matchmill.kernels.jit import int64, kernel, uint64
from matchmill.kernels.threads import on_ranges, split_evenly

__all__ = ["Entries", "file_clauses"]

_MOST_PRIVATES = (1 << 20) - 1


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
    # All that is to be known of a distinct predicate in one number: chance (as an integer of the
    # same order), words of its private test, shared number + 1.
    n_words = np.diff(privates.test_offsets)
    known = chances.view(np.int32).astype(np.int64) << 32
    known |= n_words << 17
    known |= shared + 1
    n_clauses = table.n_clauses
    cuts = split_evenly(n_clauses)
    is_implied = _is_implied(plan)
    entry_offsets = np.zeros(n_clauses + 1, np.int64)
    test_offsets = np.zeros(n_clauses + 1, np.int64)
    word_offsets = np.zeros(n_clauses + 1, np.int64)

    def count(start: int, stop: int) -> None:
        _count_clauses(
            table.clause_offsets[start : stop + 1],
            dictionary.ids,
            known,
            plan.access[start:stop],
            plan.second[start:stop],
            is_implied,
            slot_offsets,
            plan.pairs.points,
            entry_offsets[start + 1 : stop + 1],
            test_offsets[start + 1 : stop + 1],
            word_offsets[start + 1 : stop + 1],
        )

    on_ranges(count, cuts)
    if word_offsets.max() > _MOST_PRIVATES:
        raise InputError(f"a clause takes more than {_MOST_PRIVATES:,} private tests")
    for offsets in (entry_offsets, test_offsets, word_offsets):
        np.cumsum(offsets, out=offsets)
    entries = Entries(
        np.empty(entry_offsets[-1], np.int32),
        np.empty(entry_offsets[-1], np.int32),
        np.empty(entry_offsets[-1], np.int64),
        test_offsets,
        np.empty(test_offsets[-1], np.uint16),
        word_offsets,
        np.empty(word_offsets[-1], np.uint64),
    )

    def write(start: int, stop: int) -> None:
        _write_residuals(
            start,
            stop,
            table.clause_offsets,
            dictionary.ids,
            known,
            plan.access,
            plan.second,
            is_implied,
            privates.test_offsets,
            privates.tests,
            test_offsets,
            entries.tests,
            word_offsets,
            entries.words,
        )
        _write_entries(
            start,
            stop,
            plan.access,
            plan.second,
            slot_offsets,
            predicate_slots,
            dictionary.interval_offsets,
            dictionary.lows,
            dictionary.highs,
            plan.pairs.of_clause,
            plan.pair_start + plan.pairs.starts,
            plan.pairs.widths,
            plan.n_slots - 1,
            entry_offsets,
            test_offsets,
            word_offsets,
            entries.tests,
            entries.words,
            privates.n_masks,
            entries.clauses,
            entries.slots,
            entries.shapes,
        )

    on_ranges(write, cuts)
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
    n = _write_slots(
        dictionary.dimensions,
        dictionary.interval_offsets,
        dictionary.lows,
        dictionary.highs,
        dictionary.edge_offsets,
        shared,
        plan.kinds,
        plan.levels,
        plan.node_starts,
        plan.group_start,
        is_used,
        offsets,
        slots,
    )
    return offsets, slots[:n]


@kernel
def _write_slots(
    dimensions: np.ndarray,
    interval_offsets: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    edge_offsets: np.ndarray,
    shared: np.ndarray,
    kinds: np.ndarray,
    levels: np.ndarray,
    node_starts: np.ndarray,
    group_start: int,
    is_used: np.ndarray,
    out_offsets: np.ndarray,
    out_slots: np.ndarray,
) -> int:
    nodes = np.empty(MOST_NODES, np.int64)
    n = 0
    for q in range(len(dimensions)):
        if is_used[q]:
            if kinds[q] == GROUP:
                out_slots[n] = group_start + shared[q]
                n += 1
            else:
                d = int64(dimensions[q])
                n_codes = edge_offsets[d + 1] - edge_offsets[d] + 1
                for k in range(cover_of(interval_offsets, lows, highs, q, int64(levels[q]), nodes)):
                    out_slots[n] = node_starts[d] + node_place(n_codes, nodes[k])
                    n += 1
        out_offsets[q + 1] = n
    return n


@kernel
def _write_entries(
    first_clause: int,
    last_clause: int,
    access: np.ndarray,
    second: np.ndarray,
    slot_offsets: np.ndarray,
    predicate_slots: np.ndarray,
    interval_offsets: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    pair_of_clause: np.ndarray,
    pair_starts: np.ndarray,
    pair_widths: np.ndarray,
    last_slot: int,
    entry_offsets: np.ndarray,
    test_offsets: np.ndarray,
    word_offsets: np.ndarray,
    tests: np.ndarray,
    words: np.ndarray,
    n_masks: int,
    out_clauses: np.ndarray,
    out_slots: np.ndarray,
    out_shapes: np.ndarray,
) -> None:
    nodes, others = np.empty(MOST_NODES, np.int64), np.empty(MOST_NODES, np.int64)
    level = int64(0)
    for i in range(first_clause, last_clause):
        q = int64(access[i])
        n = entry_offsets[i]
        if second[i] >= 0:
            start, width = pair_starts[pair_of_clause[i]], pair_widths[pair_of_clause[i]]
            r = int64(second[i])
            n_second = cover_of(interval_offsets, lows, highs, r, level, others)
            for a in range(cover_of(interval_offsets, lows, highs, q, level, nodes)):
                for b in range(n_second):
                    out_slots[n] = start + nodes[a] * width + others[b]
                    n += 1
        elif q >= 0:
            for k in range(slot_offsets[q], slot_offsets[q + 1]):
                out_slots[n] = predicate_slots[k]
                n += 1
        else:
            out_slots[n] = last_slot
        n_tests = test_offsets[i + 1] - test_offsets[i]
        shape = ((word_offsets[i + 1] - word_offsets[i]) << 40) | (n_tests << 16)
        if n_tests > 0:
            shape |= int64(tests[test_offsets[i]])
        kind = MASKS
        for k in range(word_offsets[i], word_offsets[i + 1]):
            column = int64(words[k] >> uint64(48))
            if column == GENERAL:
                kind = SOME_GENERAL
                break
            if column >= n_masks:
                kind = INLINE
        shape |= int64(kind) << 60
        for e in range(entry_offsets[i], entry_offsets[i + 1]):
            out_clauses[e] = i
            out_shapes[e] = shape


# -- what is left to test -------------------------------------------------------------------------


@kernel
def _count_clauses(
    clause_offsets: np.ndarray,
    ids: np.ndarray,
    known: np.ndarray,
    access: np.ndarray,
    second: np.ndarray,
    is_implied: np.ndarray,
    slot_offsets: np.ndarray,
    points: np.ndarray,
    out_entries: np.ndarray,
    out_tests: np.ndarray,
    out_words: np.ndarray,
) -> None:
    """How many entries, tests and private words each clause has."""
    for i in range(len(access)):
        q, r = int64(access[i]), int64(second[i])
        n_entries, n_tests, n_words = int64(1), int64(0), int64(0)
        for p in range(clause_offsets[i], clause_offsets[i + 1]):
            fact = known[ids[p]]
            is_shared = int64(fact & 0x1FFFF != 0)
            n_tests += is_shared
            n_words += ((fact >> 17) & 0x7FFF) * (1 - is_shared)
        if r >= 0:
            n_entries = int64(points[q]) * int64(points[r])
        elif q >= 0:
            n_entries = slot_offsets[q + 1] - slot_offsets[q]
            if not is_implied[q]:
                q = int64(-1)
        for implied in (q, r):
            if implied >= 0:
                fact = known[implied]
                is_shared = int64(fact & 0x1FFFF != 0)
                n_tests -= is_shared
                n_words -= ((fact >> 17) & 0x7FFF) * (1 - is_shared)
        out_entries[i] = n_entries
        out_tests[i] = n_tests
        out_words[i] = n_words


@kernel
def _write_residuals(
    first_clause: int,
    last_clause: int,
    clause_offsets: np.ndarray,
    ids: np.ndarray,
    known: np.ndarray,
    access: np.ndarray,
    second: np.ndarray,
    is_implied: np.ndarray,
    private_offsets: np.ndarray,
    private_tests: np.ndarray,
    test_offsets: np.ndarray,
    out_tests: np.ndarray,
    word_offsets: np.ndarray,
    out_words: np.ndarray,
) -> None:
    for i in range(first_clause, last_clause):
        implied, also_implied = int64(access[i]), int64(second[i])
        if also_implied < 0 and implied >= 0 and not is_implied[implied]:
            implied = int64(-1)
        start, at_word = test_offsets[i], word_offsets[i]
        at = start
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
                    out_tests[at] = out_tests[start]
                    out_tests[start] = test
                else:
                    out_tests[at] = test
                at += 1
            else:
                for k in range(private_offsets[q], private_offsets[q + 1]):
                    out_words[at_word] = private_tests[k]
                    at_word += 1
