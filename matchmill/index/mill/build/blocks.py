"""Entries into blocks: entries of one slot and one shape, all in one piece of memory.

`arrays.py` says what a block looks like, `folding.py` which entries share a dictionary of tests.
"""

from __future__ import annotations

import numpy as np

from matchmill.index.mill.arrays import FOLDED_BIT
from matchmill.index.mill.build.entries import Entries
from matchmill.index.mill.build.inline_tests import MASKS, PADDING
from matchmill.index.mill.build.slot_dictionaries import (
    FOLDED_SHAPE,
    LEAST_FOLDED,
    MOST_DISTINCT,
    MOST_FOLDED,
    N_TESTS,
    fold_slot,
)
from matchmill.kernels.intrinsics import prefetch
from matchmill.kernels.jit import int64, kernel, uint64
from matchmill.kernels.sorting import sort_by_key
from matchmill.kernels.threads import on_ranges, split_weights

__all__ = ["N_BLOCK_FIELDS", "build_blocks", "cut_blocks", "fill_blocks"]

_PADDING, _PADDING_SHARE = 64, 24  # bytes, and a share, that are cheaper than one more block
_INLINE_PADDING, _INLINE_SHARE = 128, 4  # the same where private tests are of many kinds
_LONGEST = (1 << 24) - 1  # length that is told of a slot; only a hint what to load
_FIRST_WORD = 1  # place 0 says that there is nothing
_AHEAD = 12
_MOST_ENTRIES = (1 << 24) - 1
_NOT_IN_DICTIONARY = 255

# Fields of a block while it is being built. A dictionary is a block without entries; it and the
# folded blocks after it know the entries that it serves.
_PLACE, _FIRST, _TESTS, _PRIVATES, _KIND, _FOLLOWS, _FOLDED_FIRST, _FOLDED_LAST = range(8)
N_BLOCK_FIELDS = 8


def build_blocks(
    entries: Entries, clause_ids: np.ndarray, n_slots: int
) -> tuple[np.ndarray, np.ndarray]:
    """(slot_places, words)"""
    counts = np.bincount(entries.slots, minlength=n_slots)
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    order = np.empty(len(entries.slots), np.int64)
    _sort_by_slot(entries.slots, starts[:-1].copy(), order)
    clauses = np.empty(len(order), np.int32)
    shapes = np.empty(len(order), np.int64)
    on_ranges(
        lambda start, stop: _sort_by_shape(
            entries.clauses,
            entries.shapes,
            entries.test_offsets,
            entries.tests,
            starts[start : stop + 1],
            order,
            clauses,
            shapes,
        ),
        split_weights(starts),
    )
    slot_places = np.zeros(n_slots, np.int64)
    most = len(order) + len(order) // LEAST_FOLDED  # as many blocks as there can be
    blocks = np.empty((most + 1, N_BLOCK_FIELDS), np.int64)
    n_blocks = cut_blocks(starts, shapes, slot_places, blocks)
    blocks = blocks[: n_blocks + 1].copy()
    words = np.zeros(int(blocks[-1, _PLACE]), np.uint64)

    def fill(start: int, stop: int) -> None:
        fill_blocks(
            entries.test_offsets,
            entries.tests,
            entries.word_offsets,
            entries.words,
            clause_ids,
            clauses,
            blocks[start : stop + 1],
            words,
            words.view(np.uint32),
            words.view(np.uint16),
        )

    on_ranges(fill, split_weights(blocks[:, _FIRST]))
    return slot_places, words


@kernel
def _sort_by_slot(slots: np.ndarray, cursors: np.ndarray, out_order: np.ndarray) -> None:
    for e in range(len(slots)):
        slot = slots[e]
        out_order[cursors[slot]] = e
        cursors[slot] += 1


@kernel
def _sort_by_shape(
    clauses: np.ndarray,
    shapes: np.ndarray,
    test_offsets: np.ndarray,
    tests: np.ndarray,
    starts: np.ndarray,
    order: np.ndarray,
    out_clauses: np.ndarray,
    out_shapes: np.ndarray,
) -> None:
    """The clauses and shapes of all entries: those of each slot by shape, folded ones last."""
    most = int64(0)
    for s in range(len(starts) - 1):
        most = max(most, starts[s + 1] - starts[s])
    keys, values = np.empty(2 * most, np.int64), np.empty(2 * most, np.int64)
    counts = np.zeros(N_TESTS, np.int32)
    scratch, distinct = np.empty(2 * MOST_DISTINCT, np.int64), np.empty(2 * MOST_DISTINCT, np.int64)
    for s in range(len(starts) - 1):
        first, n = starts[s], starts[s + 1] - starts[s]
        for k in range(n):
            e = first + k
            if e + _AHEAD < len(order):
                prefetch(shapes, order[e + _AHEAD])
                prefetch(clauses, order[e + _AHEAD])
            keys[k] = shapes[order[e]]
            values[k] = clauses[order[e]]
        fold_slot(keys, values, n, test_offsets, tests, counts, scratch, distinct)
        sort_by_key(keys, values, n)
        for k in range(n):
            out_shapes[first + k] = keys[k]
            out_clauses[first + k] = values[k]


@kernel
def cut_blocks(
    starts: np.ndarray, shapes: np.ndarray, out_places: np.ndarray, out_blocks: np.ndarray
) -> int:
    """The blocks of all slots, and one more behind them; returns their number. An entry of another
    shape opens a new block unless padding is cheap."""
    n_blocks, place = int64(0), int64(_FIRST_WORD)
    zero, one, none = int64(0), int64(1), int64(-1)  # literals would be types of their own
    for slot in range(len(starts) - 1):
        e, last = starts[slot], starts[slot + 1]
        slot_start = place
        folded_first = int64(-1)
        while e < last:
            first = e
            is_folded = shapes[e] & FOLDED_SHAPE != 0
            if is_folded and folded_first < 0:
                folded_first = e
                n_folded = (shapes[e] >> 16) & 0xFFFFFF
                _write_block(out_blocks, n_blocks, place, e, n_folded, zero, zero, one, e, last)
                n_blocks += 1
                place += 1 + ((n_folded + 3) >> 2)
            n_tests, n_privates = int64(0), int64(0)
            n_exact = 0
            while e < last and (shapes[e] & FOLDED_SHAPE != 0) == is_folded:
                shape = shapes[e]
                entry_tests, entry_privates = (shape >> 16) & 0xFFFFFF, (shape >> 40) & 0xFFFFF
                if is_folded:
                    entry_tests = int64(0)
                tests, privates = max(n_tests, entry_tests), max(n_privates, entry_privates)
                exact = n_exact + 2 * entry_tests + 8 * entry_privates
                padding = (e - first + 1) * (2 * tests + 8 * privates) - exact
                most = _PADDING + exact // _PADDING_SHARE
                if (shape >> 60) & 3 != MASKS:
                    most = _INLINE_PADDING + exact // _INLINE_SHARE
                if padding > most or e - first == _MOST_ENTRIES:
                    break
                n_tests, n_privates, n_exact = tests, privates, exact
                e += 1
            n, kind = e - first, (shapes[e - 1] >> 60) & 3
            _write_block(
                out_blocks,
                n_blocks,
                place,
                first,
                n_tests,
                n_privates,
                kind,
                int64(e < last),
                folded_first,
                last,
            )
            n_blocks += 1
            n_halves = n + (n * n_tests + 1) // 2
            place += 1 + ((n_halves + 1) >> 1) + n * n_privates + n * int64(is_folded)
        if place > slot_start:
            out_places[slot] = (slot_start << 24) | min(place - slot_start, _LONGEST)
    _write_block(out_blocks, n_blocks, place, len(shapes), zero, zero, zero, zero, none, none)
    return int(n_blocks)


@kernel
def _write_block(
    out_blocks: np.ndarray,
    b: int,
    place: int,
    first: int,
    n_tests: int,
    n_privates: int,
    kind: int,
    follows: int,
    folded_first: int,
    folded_last: int,
) -> None:
    out_blocks[b, _PLACE] = place
    out_blocks[b, _FIRST] = first
    out_blocks[b, _TESTS] = n_tests
    out_blocks[b, _PRIVATES] = n_privates
    out_blocks[b, _KIND] = kind
    out_blocks[b, _FOLLOWS] = follows
    out_blocks[b, _FOLDED_FIRST] = folded_first
    out_blocks[b, _FOLDED_LAST] = folded_last


@kernel
def _find_dictionary(
    test_offsets: np.ndarray,
    tests: np.ndarray,
    clauses: np.ndarray,
    first: int,
    last: int,
    bits: np.ndarray,
    dictionary: np.ndarray,
    n_before: int,
) -> int:
    """The tests of some entries, each once, and the bit of each; returns how many. Those of the
    dictionary before have no bit any more."""
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
def fill_blocks(
    test_offsets: np.ndarray,
    tests: np.ndarray,
    word_offsets: np.ndarray,
    words: np.ndarray,
    clause_ids: np.ndarray,
    clauses: np.ndarray,
    blocks: np.ndarray,
    out_words: np.ndarray,
    out_ids: np.ndarray,
    out_tests: np.ndarray,
) -> None:
    bits = np.full(N_TESTS, _NOT_IN_DICTIONARY, np.uint8)
    dictionary = np.empty(MOST_FOLDED, np.uint16)
    n_folded, folded_first = int64(0), int64(-1)
    for b in range(len(blocks) - 1):
        n_tests, n_privates = blocks[b, _TESTS], blocks[b, _PRIVATES]
        first, last = blocks[b, _FIRST], blocks[b + 1, _FIRST]
        n = last - first
        place = blocks[b, _PLACE]
        is_folded = blocks[b, _FOLDED_FIRST] >= 0
        out_words[place] = (
            (uint64(n) << uint64(40))
            | (uint64(is_folded) << uint64(FOLDED_BIT))
            | (uint64(n_tests) << uint64(23))
            | (uint64(blocks[b, _KIND]) << uint64(21))
            | (uint64(n_privates) << uint64(1))
            | uint64(blocks[b, _FOLLOWS])
        )
        if is_folded and blocks[b, _FOLDED_FIRST] != folded_first:
            folded_first = blocks[b, _FOLDED_FIRST]
            n_folded = _find_dictionary(
                test_offsets,
                tests,
                clauses,
                folded_first,
                blocks[b, _FOLDED_LAST],
                bits,
                dictionary,
                n_folded,
            )
        test_at = 4 * (place + 1)
        if n == 0:
            for k in range(n_folded):
                out_tests[test_at + k] = dictionary[k]
            continue
        mask_at = place + 1
        if is_folded:
            test_at += 4 * n
        id_at = (test_at + n * n_tests + 1) >> 1
        private_at = (id_at + n + 1) >> 1
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
            if is_folded:
                mask = uint64(0)
                for k in range(start, stop):
                    mask |= uint64(1) << uint64(bits[tests[k]])
                out_words[mask_at] = mask
                mask_at += 1
            else:
                for k in range(start, stop):
                    out_tests[test_at + k - start] = tests[k]
                test_at += n_tests
            at = private_at
            for k in range(word_offsets[i], word_offsets[i + 1]):
                out_words[at] = words[k]
                at += 1
            private_at += n_privates
            while at < private_at:
                out_words[at] = uint64(PADDING)
                at += 1
