"""Entries into blocks: entries of one slot and one shape, all in one piece of memory.

`arrays.py` says what a block looks like.
"""

from __future__ import annotations

import numpy as np

from matchmill._jit import int64, kernel, uint64
from matchmill._sorting import sort_by_key
from matchmill.indexes.mill.entries import Entries
from matchmill.indexes.mill.machine import prefetch
from matchmill.indexes.mill.privates import PADDING

__all__ = ["build_blocks"]

_PADDING, _PADDING_SHARE = 24, 12  # bytes, and a share, that are cheaper than one more block
_LONGEST = (1 << 24) - 1  # length that is told of a slot; only a hint what to load
_FIRST_WORD = 1  # place 0 says that there is nothing
_AHEAD = 12
_MOST_ENTRIES = (1 << 24) - 1


def build_blocks(
    entries: Entries, clause_ids: np.ndarray, n_slots: int
) -> tuple[np.ndarray, np.ndarray]:
    """(slot_places, words)"""
    order = _sorted_entries(entries.slots, entries.shapes, n_slots)
    slot_places = np.zeros(n_slots, np.int64)
    blocks = _cut_blocks(entries.slots, entries.shapes, order, slot_places)
    words = np.zeros(int(blocks[-1, 0]), np.uint64)
    clauses = entries.clauses[order]
    _fill_blocks(
        entries, clause_ids, clauses, blocks, words, words.view(np.uint32), words.view(np.uint16)
    )
    _mark_followed(slot_places, blocks, words)
    return slot_places, words


@kernel
def _sorted_entries(slots: np.ndarray, shapes: np.ndarray, n_slots: int) -> np.ndarray:
    """The entries by slot, and by shape inside a slot."""
    starts = np.zeros(n_slots + 1, np.int64)
    for slot in slots:
        starts[slot + 1] += 1
    for s in range(n_slots):
        starts[s + 1] += starts[s]
    order = np.empty(len(slots), np.int64)
    ends = starts[:-1].copy()
    for e in range(len(slots)):
        order[ends[slots[e]]] = e
        ends[slots[e]] += 1
    for s in range(n_slots):
        first, last = starts[s], starts[s + 1]
        keys = shapes[order[first:last]]
        sort_by_key(keys, order[first:last])
    return order


@kernel
def _cut_blocks(
    slots: np.ndarray, shapes: np.ndarray, order: np.ndarray, out_places: np.ndarray
) -> np.ndarray:
    """The blocks of all slots as rows (place, first entry, tests, privates), and one row
    more. An entry of another shape opens a new block unless padding is cheap."""
    blocks = np.empty((1024, 4), np.int64)
    n_blocks = 0
    place = int64(_FIRST_WORD)
    e = 0
    while e < len(order):
        slot = slots[order[e]]
        slot_start = place
        while e < len(order) and slots[order[e]] == slot:
            first = e
            n_tests, n_privates = int64(0), int64(0)
            n_exact = 0
            while e < len(order) and slots[order[e]] == slot:
                shape = shapes[order[e]]
                entry_tests, entry_privates = (shape >> 16) & 0xFFFFFF, shape >> 40
                tests, privates = max(n_tests, entry_tests), max(n_privates, entry_privates)
                exact = n_exact + 2 * entry_tests + 8 * entry_privates
                padding = (e - first + 1) * (2 * tests + 8 * privates) - exact
                if padding > _PADDING + exact // _PADDING_SHARE or e - first == _MOST_ENTRIES:
                    break
                n_tests, n_privates, n_exact = tests, privates, exact
                e += 1
            if n_blocks + 1 == len(blocks):
                grown = np.empty((2 * len(blocks), 4), np.int64)
                grown[:n_blocks] = blocks[:n_blocks]
                blocks = grown
            n = e - first
            blocks[n_blocks, 0] = place
            blocks[n_blocks, 1] = first
            blocks[n_blocks, 2] = n_tests
            blocks[n_blocks, 3] = n_privates
            n_blocks += 1
            n_halves = n + (n * n_tests + 1) // 2
            place += 1 + ((n_halves + 1) >> 1) + n * n_privates
        out_places[slot] = (slot_start << 24) | min(place - slot_start, _LONGEST)
    blocks[n_blocks, 0] = place
    blocks[n_blocks, 1] = len(order)
    return blocks[: n_blocks + 1].copy()


@kernel
def _fill_blocks(
    entries: Entries,
    clause_ids: np.ndarray,
    clauses: np.ndarray,
    blocks: np.ndarray,
    out_words: np.ndarray,
    out_ids: np.ndarray,
    out_tests: np.ndarray,
) -> None:
    test_offsets, tests = entries.test_offsets, entries.tests
    word_offsets, words = entries.word_offsets, entries.words
    for b in range(len(blocks) - 1):
        n_tests, n_privates = blocks[b, 2], blocks[b, 3]
        first, last = blocks[b, 1], blocks[b + 1, 1]
        n = last - first
        place = blocks[b, 0]
        out_words[place] = (
            (uint64(n) << uint64(40))
            | (uint64(n_tests) << uint64(23))
            | (uint64(n_privates) << uint64(1))
        )
        test_at = 4 * (place + 1)
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


@kernel
def _mark_followed(slot_places: np.ndarray, blocks: np.ndarray, out_words: np.ndarray) -> None:
    """Set the flag of all blocks that are not the last of their slot."""
    is_first = np.zeros(out_words.shape[0] + 1, np.uint8)
    for place in slot_places:
        is_first[place >> 24] = 1
    for b in range(len(blocks) - 2):
        if not is_first[blocks[b + 1, 0]]:
            out_words[blocks[b, 0]] |= uint64(1)
