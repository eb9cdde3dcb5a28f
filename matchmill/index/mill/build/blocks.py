"""Entries into blocks: entries of one slot and one shape, all in one piece of memory.

`words.py` shows a block, `slot_dictionaries.py` chooses the entries that share a dictionary.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.index.mill.build.entries import Entries
from matchmill.index.mill.build.slot_dictionaries import (
    LEAST_ENTRIES,
    MOST_DICTIONARY_TESTS,
    MOST_DISTINCT,
    N_TESTS,
    choose_dictionary,
)
from matchmill.index.mill.words import (
    ALWAYS_HOLDS,
    DICTIONARY_SHAPE,
    MASK_KIND,
    MOST_ENTRIES,
    block_at,
    block_header,
    shape_inline,
    shape_kind,
    shape_tests,
    slot_place,
)
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.intrinsics import prefetch
from matchmill.kernels.jit import int64, kernel, uint64
from matchmill.kernels.sorting import sort_by_key
from matchmill.kernels.threads import on_ranges, split_weights

__all__ = ["build_blocks"]

_PADDING, _PADDING_SHARE = 64, 24  # bytes, and a share, that are cheaper than one more block
_INLINE_PADDING, _INLINE_SHARE = 128, 4  # the same where inline tests are of many kinds
_FIRST_WORD = 1  # place 0 says that there is nothing
_AHEAD = 12
_NOT_IN_DICTIONARY = 255

# Fields of a block while it is being built. A dictionary is a block without entries; it and the
# blocks after it that use it know the entries that it serves, -1 for none.
_PLACE, _FIRST, _TESTS, _INLINE, _KIND, _FOLLOWS, _SERVED_FIRST, _SERVED_LAST = range(8)
_N_BLOCK_FIELDS = 8


class _Sorted(NamedTuple):
    """All entries, slot by slot."""

    starts: np.ndarray  # int64, one more than there are slots: its entries
    clauses: np.ndarray  # int32
    shapes: np.ndarray  # int64


def build_blocks(
    entries: Entries, clause_ids: np.ndarray, n_slots: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return (slot_places, words)."""
    in_slots = _sort_entries(entries, n_slots)
    n_entries = len(in_slots.clauses)
    slot_places = np.zeros(n_slots, np.int64)
    most = n_entries + n_entries // LEAST_ENTRIES  # as many blocks as there can be
    blocks = np.empty((most + 1, _N_BLOCK_FIELDS), np.int64)
    n_blocks = _cut_blocks(in_slots.starts, in_slots.shapes, slot_places, blocks)
    blocks = blocks[: n_blocks + 1].copy()
    words = np.zeros(int(blocks[-1, _PLACE]), np.uint64)
    on_ranges(
        lambda start, stop: _fill_blocks(
            entries, clause_ids, in_slots.clauses, blocks[start : stop + 1], words
        ),
        split_weights(blocks[:, _FIRST]),
    )
    return slot_places, words


def _sort_entries(entries: Entries, n_slots: int) -> _Sorted:
    """Sort entries by slot, those of a slot by shape, those that use a dictionary last."""
    starts = offsets_of(np.bincount(entries.slots, minlength=n_slots))
    order = np.empty(len(entries.slots), np.int64)
    _sort_by_slot(entries.slots, starts[:-1].copy(), order)
    in_slots = _Sorted(starts, np.empty(len(order), np.int32), np.empty(len(order), np.int64))
    on_ranges(
        lambda start, stop: _sort_by_shape(start, stop, entries, order, in_slots),
        split_weights(starts),
    )
    return in_slots


@kernel
def _sort_by_slot(slots: np.ndarray, cursors: np.ndarray, out_order: np.ndarray) -> None:
    for e in range(len(slots)):
        slot = slots[e]
        out_order[cursors[slot]] = e
        cursors[slot] += 1


@kernel
def _sort_by_shape(
    first_slot: int, last_slot: int, entries: Entries, order: np.ndarray, out: _Sorted
) -> None:
    """Write the clauses and shapes of all entries of some slots."""
    clauses, shapes = entries.clauses, entries.shapes
    test_offsets, tests = entries.test_offsets, entries.tests
    starts, out_clauses, out_shapes = out.starts, out.clauses, out.shapes
    most = int64(0)
    for s in range(first_slot, last_slot):
        most = max(most, starts[s + 1] - starts[s])
    keys, values = np.empty(2 * most, np.int64), np.empty(2 * most, np.int64)
    counts = np.zeros(N_TESTS, np.int32)
    scratch, distinct = np.empty(2 * MOST_DISTINCT, np.int64), np.empty(2 * MOST_DISTINCT, np.int64)
    for s in range(first_slot, last_slot):
        first, n = starts[s], starts[s + 1] - starts[s]
        for k in range(n):
            e = first + k
            if e + _AHEAD < len(order):
                prefetch(shapes, order[e + _AHEAD])
                prefetch(clauses, order[e + _AHEAD])
            keys[k] = shapes[order[e]]
            values[k] = clauses[order[e]]
        choose_dictionary(keys, values, n, test_offsets, tests, counts, scratch, distinct)
        sort_by_key(keys, values, n)
        for k in range(n):
            out_shapes[first + k] = keys[k]
            out_clauses[first + k] = values[k]


@kernel
def _cut_blocks(
    starts: np.ndarray, shapes: np.ndarray, out_places: np.ndarray, out_blocks: np.ndarray
) -> int:
    """Cut the entries of all slots into blocks, and add one more at the end; return their number.

    An entry of another shape opens a new block unless padding is cheap.
    """
    n_blocks, place = int64(0), int64(_FIRST_WORD)
    for slot in range(len(starts) - 1):
        e, last = starts[slot], starts[slot + 1]
        slot_begin = place
        served_first = int64(-1)
        while e < last:
            first = e
            uses_dictionary = shapes[e] & DICTIONARY_SHAPE != 0
            if uses_dictionary and served_first < 0:
                served_first = e
                n_tests = shape_tests(shapes[e])
                _write_block(out_blocks, n_blocks, (place, e, n_tests, 0, 0, 1, e, last))
                n_blocks += 1
                place += 1 + ((n_tests + 3) >> 2)
            n_tests, n_inline = int64(0), int64(0)
            n_exact = 0
            while e < last and (shapes[e] & DICTIONARY_SHAPE != 0) == uses_dictionary:
                shape = shapes[e]
                entry_tests = int64(0) if uses_dictionary else shape_tests(shape)
                entry_inline = shape_inline(shape)
                tests, inline = max(n_tests, entry_tests), max(n_inline, entry_inline)
                exact = n_exact + 2 * entry_tests + 8 * entry_inline
                padding = (e - first + 1) * (2 * tests + 8 * inline) - exact
                most = _PADDING + exact // _PADDING_SHARE
                if shape_kind(shape) != MASK_KIND:
                    most = _INLINE_PADDING + exact // _INLINE_SHARE
                if padding > most or e - first == MOST_ENTRIES:
                    break
                n_tests, n_inline, n_exact = tests, inline, exact
                e += 1
            n, kind, follows = e - first, shape_kind(shapes[e - 1]), int64(e < last)
            fields = (place, first, n_tests, n_inline, kind, follows, served_first, last)
            _write_block(out_blocks, n_blocks, fields)
            n_blocks += 1
            n_halves = n + (n * n_tests + 1) // 2
            place += 1 + ((n_halves + 1) >> 1) + n * n_inline + n * int64(uses_dictionary)
        if place > slot_begin:
            out_places[slot] = slot_place(slot_begin, place - slot_begin)
    _write_block(out_blocks, n_blocks, (place, len(shapes), 0, 0, 0, 0, -1, -1))
    return int(n_blocks)


@kernel
def _write_block(
    out_blocks: np.ndarray, b: int, fields: tuple[int, int, int, int, int, int, int, int]
) -> None:
    for field in range(_N_BLOCK_FIELDS):
        out_blocks[b, field] = fields[field]


@kernel
def _find_dictionary(
    entries: Entries,
    clauses: np.ndarray,
    first: int,
    last: int,
    bits: np.ndarray,
    dictionary: np.ndarray,
    n_before: int,
) -> int:
    """Collect the tests of some entries, each once, with the bit of each; return how many.

    Those of the dictionary before have no bit any more.
    """
    test_offsets, tests = entries.test_offsets, entries.tests
    for k in range(n_before):
        bits[dictionary[k]] = _NOT_IN_DICTIONARY
    n = 0
    for e in range(first, last):
        for k in range(test_offsets[clauses[e]], test_offsets[clauses[e] + 1]):
            if bits[tests[k]] == _NOT_IN_DICTIONARY:
                bits[tests[k]] = n
                dictionary[n] = tests[k]
                n += 1
    return n


@kernel
def _fill_blocks(
    entries: Entries,
    clause_ids: np.ndarray,
    clauses: np.ndarray,
    blocks: np.ndarray,
    out_words: np.ndarray,
) -> None:
    """Write some blocks."""
    test_offsets, tests = entries.test_offsets, entries.tests
    word_offsets, words = entries.word_offsets, entries.words
    out_ids, out_tests = out_words.view(np.uint32), out_words.view(np.uint16)
    bits = np.full(N_TESTS, _NOT_IN_DICTIONARY, np.uint8)
    dictionary = np.empty(MOST_DICTIONARY_TESTS, np.uint16)
    n_dictionary, served_first = int64(0), int64(-1)
    for b in range(len(blocks) - 1):
        first, last, place = blocks[b, _FIRST], blocks[b + 1, _FIRST], blocks[b, _PLACE]
        out_words[place] = block_header(
            last - first,
            blocks[b, _SERVED_FIRST] >= 0,
            blocks[b, _TESTS],
            blocks[b, _KIND],
            blocks[b, _INLINE],
            blocks[b, _FOLLOWS],
        )
        block = block_at(out_words, place)
        if block.uses_dictionary and blocks[b, _SERVED_FIRST] != served_first:
            served_first = blocks[b, _SERVED_FIRST]
            n_dictionary = _find_dictionary(
                entries,
                clauses,
                served_first,
                blocks[b, _SERVED_LAST],
                bits,
                dictionary,
                n_dictionary,
            )
        mask_at, test_at, id_at = block.masks_at, block.tests_at, block.ids_at
        inline_at = block.inline_at
        if block.n_entries == 0:
            for k in range(n_dictionary):
                out_tests[test_at + k] = dictionary[k]
            continue
        for e in range(first, last):
            if e + 2 * _AHEAD < len(clauses):
                prefetch(test_offsets, clauses[e + 2 * _AHEAD])
                prefetch(word_offsets, clauses[e + 2 * _AHEAD])
                prefetch(tests, test_offsets[clauses[e + _AHEAD]])
                prefetch(words, word_offsets[clauses[e + _AHEAD]])
            i = clauses[e]
            out_ids[id_at] = clause_ids[i]
            id_at += 1
            start, stop = test_offsets[i], test_offsets[i + 1]
            if block.uses_dictionary:
                mask = uint64(0)
                for k in range(start, stop):
                    mask |= uint64(1) << uint64(bits[tests[k]])
                out_words[mask_at] = mask
                mask_at += 1
            else:
                for k in range(start, stop):
                    out_tests[test_at + k - start] = tests[k]
                test_at += block.n_tests
            at = inline_at
            for k in range(word_offsets[i], word_offsets[i + 1]):
                out_words[at] = words[k]
                at += 1
            inline_at += block.n_inline
            while at < inline_at:
                out_words[at] = uint64(ALWAYS_HOLDS)
                at += 1
