"""Each clause under its slots: entries, and what is left to test of each clause.

    entry e     clauses[e] under slots[e], of shape shapes[e] (`words.py`)
    clause i    tests test_offsets[i] … [i + 1], the least likely first;
                words word_offsets[i] … [i + 1] of inline tests

What the slot of a clause implies is not tested any more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.errors import InputError
from matchmill.index.mill.build.access import GROUP, MOST_NODES, AccessPlan, cover_of, node_place
from matchmill.index.mill.build.inline_tests import InlineTests
from matchmill.index.mill.words import (
    GENERAL,
    GENERAL_KIND,
    INLINE_KIND,
    MASK_KIND,
    MOST_INLINE_WORDS,
    column_of,
    fact_inline,
    fact_of,
    fact_shared,
    shape_of,
)
from matchmill.index.predicate_codes import Dictionary
from matchmill.kernels.jit import int64, kernel
from matchmill.kernels.threads import on_ranges, split_evenly

__all__ = ["Entries", "file_clauses"]


class Entries(NamedTuple):
    """All entries, and the tests of all clauses."""

    clauses: np.ndarray  # int32
    slots: np.ndarray  # int32
    shapes: np.ndarray  # int64
    test_offsets: np.ndarray  # int64
    tests: np.ndarray  # uint16
    word_offsets: np.ndarray  # int64
    words: np.ndarray  # uint64


class _Filing(NamedTuple):
    """All that is to be known to file clauses."""

    clause_offsets: np.ndarray  # int64
    facts: np.ndarray  # int64, one per distinct predicate (`words.py`)
    is_implied: np.ndarray  # uint8, one per distinct predicate: its slots imply it
    slot_offsets: np.ndarray  # int64, one per distinct predicate: its slots
    slots: np.ndarray  # int32
    entry_offsets: np.ndarray  # int64, one per clause


def file_clauses(
    table: ConjunctionTable,
    dictionary: Dictionary,
    shared: np.ndarray,
    plan: AccessPlan,
    inline: InlineTests,
    chances: np.ndarray,
) -> Entries:
    """File each clause under the slots of its plan; `shared` has the shared number or -1."""
    n_clauses = table.n_clauses
    chance_bits = chances.view(np.int32).astype(np.int64)
    implied: np.ndarray = (plan.kinds == GROUP) | (plan.levels == 0)
    filing = _Filing(
        table.clause_offsets,
        fact_of(chance_bits, np.diff(inline.test_offsets), shared.astype(np.int64)),
        implied.astype(np.uint8),
        *_slots_of_predicates(dictionary, shared, plan),
        np.zeros(n_clauses + 1, np.int64),
    )
    test_offsets = np.zeros(n_clauses + 1, np.int64)
    word_offsets = np.zeros(n_clauses + 1, np.int64)
    cuts = split_evenly(n_clauses)
    on_ranges(
        lambda start, stop: _count_clauses(
            start, stop, dictionary.ids, plan, filing, test_offsets, word_offsets
        ),
        cuts,
    )
    if word_offsets.max() > MOST_INLINE_WORDS:
        raise InputError(f"a clause takes more than {MOST_INLINE_WORDS:,} words of inline tests")
    for offsets in (filing.entry_offsets, test_offsets, word_offsets):
        np.cumsum(offsets, out=offsets)
    n_entries = filing.entry_offsets[-1]
    entries = Entries(
        np.empty(n_entries, np.int32),
        np.empty(n_entries, np.int32),
        np.empty(n_entries, np.int64),
        test_offsets,
        np.empty(test_offsets[-1], np.uint16),
        word_offsets,
        np.empty(word_offsets[-1], np.uint64),
    )

    def write(start: int, stop: int) -> None:
        _write_tests(start, stop, dictionary.ids, plan, filing, inline, entries)
        _write_entries(start, stop, dictionary, plan, filing, inline.n_masks, entries)

    on_ranges(write, cuts)
    return entries


def _slots_of_predicates(
    dictionary: Dictionary, shared: np.ndarray, plan: AccessPlan
) -> tuple[np.ndarray, np.ndarray]:
    """Return the slots of the predicates through which clauses are reached alone, as rows."""
    is_used = np.zeros(dictionary.n_distinct + 1, np.uint8)
    is_used[plan.access[(plan.second < 0) & (plan.access >= 0)]] = 1
    n_used = int(np.count_nonzero(is_used[:-1]))
    slots = np.empty(MOST_NODES * n_used, np.int32)
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
    dimensions, edge_offsets = dictionary.dimensions, dictionary.edge_offsets
    interval_offsets, lows, highs = (
        dictionary.interval_offsets, dictionary.lows, dictionary.highs,
    )  # fmt: skip
    kinds, levels, node_starts = plan.kinds, plan.levels, plan.node_starts
    nodes = np.empty(MOST_NODES, np.int64)
    n = 0
    for q in range(len(dimensions)):
        if is_used[q]:
            if kinds[q] == GROUP:
                out_slots[n] = plan.group_start + shared[q]
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
    dictionary: Dictionary,
    plan: AccessPlan,
    filing: _Filing,
    n_masks: int,
    out: Entries,
) -> None:
    """Write the slots, clauses and shapes of the entries of some clauses."""
    interval_offsets, lows, highs = (
        dictionary.interval_offsets, dictionary.lows, dictionary.highs,
    )  # fmt: skip
    access, second, of_clause = plan.access, plan.second, plan.pairs.of_clause
    pair_starts, pair_widths = plan.pairs.starts, plan.pairs.widths
    slot_offsets, slots, entry_offsets = filing.slot_offsets, filing.slots, filing.entry_offsets
    test_offsets, tests, word_offsets, words = (
        out.test_offsets, out.tests, out.word_offsets, out.words,
    )  # fmt: skip
    out_slots, out_clauses, out_shapes = out.slots, out.clauses, out.shapes
    nodes, others = np.empty(MOST_NODES, np.int64), np.empty(MOST_NODES, np.int64)
    level = int64(0)
    for i in range(first_clause, last_clause):
        q = int64(access[i])
        n = entry_offsets[i]
        if second[i] >= 0:
            start = plan.pair_start + pair_starts[of_clause[i]]
            width = pair_widths[of_clause[i]]
            r = int64(second[i])
            n_second = cover_of(interval_offsets, lows, highs, r, level, others)
            for a in range(cover_of(interval_offsets, lows, highs, q, level, nodes)):
                for b in range(n_second):
                    out_slots[n] = start + nodes[a] * width + others[b]
                    n += 1
        elif q >= 0:
            for k in range(slot_offsets[q], slot_offsets[q + 1]):
                out_slots[n] = slots[k]
                n += 1
        else:
            out_slots[n] = plan.n_slots - 1
        n_tests, n_words = (
            test_offsets[i + 1] - test_offsets[i], word_offsets[i + 1] - word_offsets[i],
        )  # fmt: skip
        first_test = int64(tests[test_offsets[i]]) if n_tests > 0 else int64(0)
        kind = int64(MASK_KIND)
        for k in range(word_offsets[i], word_offsets[i + 1]):
            column = int64(column_of(words[k]))
            if column == GENERAL:
                kind = int64(GENERAL_KIND)
                break
            if column >= n_masks:
                kind = int64(INLINE_KIND)
        shape = shape_of(kind, n_words, n_tests, first_test)
        for e in range(entry_offsets[i], entry_offsets[i + 1]):
            out_clauses[e] = i
            out_shapes[e] = shape


@kernel
def _count_clauses(
    first_clause: int,
    last_clause: int,
    ids: np.ndarray,
    plan: AccessPlan,
    filing: _Filing,
    out_tests: np.ndarray,
    out_words: np.ndarray,
) -> None:
    """Count entries, tests and inline words of some clauses, each at the place after its own."""
    clause_offsets, facts, is_implied = filing.clause_offsets, filing.facts, filing.is_implied
    slot_offsets, out_entries = filing.slot_offsets, filing.entry_offsets
    access, second, points = plan.access, plan.second, plan.pairs.points
    for i in range(first_clause, last_clause):
        q, r = int64(access[i]), int64(second[i])
        n_entries, n_tests, n_words = int64(1), int64(0), int64(0)
        for p in range(clause_offsets[i], clause_offsets[i + 1]):
            fact = facts[ids[p]]
            is_shared = int64(fact_shared(fact) != 0)
            n_tests += is_shared
            n_words += fact_inline(fact) * (1 - is_shared)
        if r >= 0:
            n_entries = int64(points[q]) * int64(points[r])
        elif q >= 0:
            n_entries = slot_offsets[q + 1] - slot_offsets[q]
            if not is_implied[q]:
                q = int64(-1)
        for implied in (q, r):
            if implied >= 0:
                fact = facts[implied]
                is_shared = int64(fact_shared(fact) != 0)
                n_tests -= is_shared
                n_words -= fact_inline(fact) * (1 - is_shared)
        out_entries[i + 1] = n_entries
        out_tests[i + 1] = n_tests
        out_words[i + 1] = n_words


@kernel
def _write_tests(
    first_clause: int,
    last_clause: int,
    ids: np.ndarray,
    plan: AccessPlan,
    filing: _Filing,
    inline: InlineTests,
    out: Entries,
) -> None:
    """Write what is left to test of some clauses, the least likely shared predicate first."""
    clause_offsets, facts, is_implied = filing.clause_offsets, filing.facts, filing.is_implied
    access, second = plan.access, plan.second
    inline_offsets, inline_tests = inline.test_offsets, inline.tests
    test_offsets, out_tests, word_offsets, out_words = (
        out.test_offsets, out.tests, out.word_offsets, out.words,
    )  # fmt: skip
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
            fact = facts[q]
            test = fact_shared(fact) - 1
            if test >= 0:
                if fact < least:
                    least = fact
                    out_tests[at] = out_tests[start]
                    out_tests[start] = test
                else:
                    out_tests[at] = test
                at += 1
            else:
                for k in range(inline_offsets[q], inline_offsets[q + 1]):
                    out_words[at_word] = inline_tests[k]
                    at_word += 1
