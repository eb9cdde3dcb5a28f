"""Matching 64 events at a time: one bit an event.

    masks[s]         for which events shared predicate s holds
    slot_masks[s]    which events visit slot s
    value_masks[64 c + v]  which events have value v in mask column c
    seen_values[c]         which values occur in mask column c
    values[e], codes[e]    event e's values in the columns, codes on the dimensions

The blocks are those of `one_event.py`, and each is read once for all events that visit it: an entry
is left as soon as no event is left. That pays where events visit the same slots; where they have
little in common, one at a time is quicker. Ids are gathered event by event in rows of one width.

Kernels get the places of the index's arrays, `mill`, and of BlockState, `state`; `scratch` are
those of EventState (`one_event.py`), which has the events and takes the ids.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchmill._jit import int64, kernel, uint64
from matchmill.indexes.mill.arrays import (
    ABSENT_DIMENSIONS,
    ACCESS_WORDS,
    DEFAULT_ROW,
    DEFAULT_TRUTH,
    DEFAULT_VALUES,
    DIMENSIONS,
    EDGE_START,
    EDGE_STOP,
    EDGES,
    FIRST_COLUMN,
    FIRST_WORD,
    GROUP_START,
    IDS,
    N_FIELDS,
    N_MASKS,
    N_POINTS,
    N_SHARED,
    N_SLOTS,
    N_WORDS,
    NODE_START,
    PAIR_WIDTH,
    PAIRS,
    POOL,
    RANK_START,
    RANKS,
    ROW_OF_CODE,
    ROW_START,
    ROWS,
    SECOND_COLUMN,
    SIZES,
    SLOT_PLACES,
    TESTS,
    USED_LEVELS,
    WORDS,
    MillArrays,
)
from matchmill.indexes.mill.dictionary import code_of
from matchmill.indexes.mill.machine import array_at, prefetch, table_at, trailing_zeros
from matchmill.indexes.mill.one_event import (
    EVENT_DIMENSIONS,
    EVENT_KEYS,
    EVENT_OFFSETS,
    OUT,
    OUT_OFFSETS,
)
from matchmill.indexes.mill.privates import private_holds

__all__ = ["BLOCK", "BlockState", "match_block", "new_block_state"]

BLOCK = 64
_AHEAD = 6
_LOADED = 128  # words of a slot that are asked for
_ZERO, _ONE, _TWO, _SIX, _COLUMN = (uint64(n) for n in (0, 1, 2, 6, 48))


# Numbers of the arrays of BlockState among their places.
MASKS, PRESENT, SLOT_MASKS, SLOTS, VALUE_MASKS, SEEN_VALUES, ABSENT_COLUMNS = range(7)
BLOCK_VALUES, BLOCK_CODES, FOUND, FOUND_COUNTS = range(7, 11)


class BlockState(NamedTuple):
    """Scratch of one thread."""

    masks: np.ndarray  # uint64, one a shared predicate
    present: np.ndarray  # uint64, one a dimension: the events that have it
    slot_masks: np.ndarray  # uint64
    slots: np.ndarray  # int32
    value_masks: np.ndarray  # uint64, 64 a mask column
    seen_values: np.ndarray  # uint64, one a mask column
    absent_columns: np.ndarray  # int32: mask columns in which absence has a value
    values: np.ndarray  # int32, 64 × columns
    codes: np.ndarray  # int32, 64 × dimensions
    found: np.ndarray  # int32, 64 × as many ids as there is room for
    found_counts: np.ndarray  # int64, one an event: how many ids


def new_block_state(mill: MillArrays) -> BlockState:
    n_slots, n_masks = int(mill.sizes[N_SLOTS]), int(mill.sizes[N_MASKS])
    return BlockState(
        np.zeros(int(mill.sizes[N_SHARED]) + 64, np.uint64),
        np.zeros(len(mill.dimensions), np.uint64),
        np.zeros(n_slots, np.uint64),
        np.empty(n_slots, np.int32),
        np.zeros(64 * n_masks, np.uint64),
        np.zeros(n_masks, np.uint64),
        np.flatnonzero(mill.default_values[:n_masks] < 63).astype(np.int32),
        np.tile(mill.default_values, (BLOCK, 1)),
        np.full((BLOCK, len(mill.dimensions)), -1, np.int32),
        np.empty((BLOCK, 256), np.int32),
        np.zeros(BLOCK, np.int64),
    )


@kernel
def _visit(
    slot_places: np.ndarray,
    slot_masks: np.ndarray,
    slots: np.ndarray,
    n: int,
    slot: int,
    events: int,
) -> int:
    """Record that some events visit a slot; returns the new number of slots."""
    if slot_masks[slot] == _ZERO:
        if slot_places[slot] == 0:
            return n
        slots[n] = slot
        n += 1
    slot_masks[slot] |= uint64(events)
    return n


@kernel
def _flip_bits(
    masks: np.ndarray, rows: np.ndarray, row: int, default: int, word: int, n_words: int, bit: int
) -> None:
    """Flip an event's bit where its row differs from that of absence."""
    for w in range(n_words):
        bits = rows[row + w]
        if default >= 0:
            bits ^= rows[default + w]
        base = (word + w) << 6
        while bits != _ZERO:
            masks[base + trailing_zeros(bits)] ^= uint64(bit)
            bits &= bits - _ONE


@kernel
def _enter(mill: Any, state: Any, scratch: Any, start: int, stop: int) -> int:
    """Take in all pairs of the events; returns the number of slots."""
    sizes, fields = array_at(mill, SIZES, np.int64), table_at(mill, DIMENSIONS, np.int64, N_FIELDS)
    edges, ranks = array_at(mill, EDGES, np.int64), array_at(mill, RANKS, np.uint8)
    row_of_code, rows = array_at(mill, ROW_OF_CODE, np.int32), array_at(mill, ROWS, np.uint64)
    access_words = array_at(mill, ACCESS_WORDS, np.uint64)
    slot_places = array_at(mill, SLOT_PLACES, np.int64)
    pairs = table_at(mill, PAIRS, np.int64, PAIR_WIDTH)
    absent_dimensions = array_at(mill, ABSENT_DIMENSIONS, np.int32)
    default_truth = array_at(mill, DEFAULT_TRUTH, np.uint64)
    defaults = array_at(mill, DEFAULT_VALUES, np.int32)
    masks, present = array_at(state, MASKS, np.uint64), array_at(state, PRESENT, np.uint64)
    slot_masks, slots = array_at(state, SLOT_MASKS, np.uint64), array_at(state, SLOTS, np.int32)
    value_masks = array_at(state, VALUE_MASKS, np.uint64)
    seen_values = array_at(state, SEEN_VALUES, np.uint64)
    absent_columns = array_at(state, ABSENT_COLUMNS, np.int32)
    values = table_at(state, BLOCK_VALUES, np.int32, len(defaults))
    codes = table_at(state, BLOCK_CODES, np.int32, len(fields))
    offsets = array_at(scratch, EVENT_OFFSETS, np.int64)
    dimensions = array_at(scratch, EVENT_DIMENSIONS, np.int32)
    keys = array_at(scratch, EVENT_KEYS, np.int64)
    n_masks, group_start = sizes[N_MASKS], sizes[GROUP_START]
    everyone = ~_ZERO >> uint64(64 - (stop - start))
    n = 0
    for column in absent_columns:
        value_masks[(int64(column) << 6) + defaults[column]] = everyone
        seen_values[column] = _ONE << uint64(defaults[column])
    for w in range(len(default_truth)):
        bits = default_truth[w]
        while bits != _ZERO:
            masks[(w << 6) + trailing_zeros(bits)] = everyone
            bits &= bits - _ONE
    for e in range(start, stop):
        bit = _ONE << uint64(e - start)
        for k in range(offsets[e], offsets[e + 1]):
            d = int64(dimensions[k])
            if d >= len(fields):
                continue
            present[d] |= bit
            first, last = fields[d, EDGE_START], fields[d, EDGE_STOP]
            code = code_of(edges, first, last, keys[k])
            codes[e - start, d] = code
            for column in (fields[d, FIRST_COLUMN], fields[d, SECOND_COLUMN]):
                if column < 0:
                    continue
                if column < n_masks:
                    value = int64(ranks[fields[d, RANK_START] + code])
                    value_masks[(column << 6) + value] |= bit
                    seen_values[column] |= _ONE << uint64(value)
                    if defaults[column] != value:
                        value_masks[(column << 6) + defaults[column]] &= ~bit
                    values[e - start, column] = value
                else:
                    values[e - start, column] = code
            levels = fields[d, USED_LEVELS]
            if levels != 0:
                slot = fields[d, NODE_START]
                n = _visit(slot_places, slot_masks, slots, n, slot + code, bit)
                level = 0
                levels = levels >> 1 if code > 0 else 0
                while levels != 0:
                    slot += ((last - first) >> level) + 1
                    level += 1
                    if levels & 1:
                        n = _visit(slot_places, slot_masks, slots, n, slot + (code >> level), bit)
                    levels >>= 1
            if fields[d, ROW_START] >= 0:
                row = int64(row_of_code[fields[d, ROW_START] + code])
                word, n_words = fields[d, FIRST_WORD], fields[d, N_WORDS]
                _flip_bits(masks, rows, row, fields[d, DEFAULT_ROW], word, n_words, bit)
                for w in range(n_words):
                    bits = rows[row + w] & access_words[word + w]
                    while bits != _ZERO:
                        slot = group_start + ((word + w) << 6) + trailing_zeros(bits)
                        n = _visit(slot_places, slot_masks, slots, n, slot, bit)
                        bits &= bits - _ONE
    for p in range(len(pairs)):
        for e in range(stop - start):
            a, b = int64(codes[e, pairs[p, 0]]), int64(codes[e, pairs[p, 1]])
            if a > 0 and b > 0:
                slot = pairs[p, 2] + a * pairs[p, 3] + b
                n = _visit(slot_places, slot_masks, slots, n, slot, _ONE << uint64(e))
    for d in absent_dimensions:
        absent = everyone & ~present[d]
        if absent == _ZERO:
            continue
        if fields[d, USED_LEVELS] != 0:
            n = _visit(slot_places, slot_masks, slots, n, fields[d, NODE_START], absent)
        row = fields[d, DEFAULT_ROW]
        if row >= 0:
            word = fields[d, FIRST_WORD]
            for w in range(fields[d, N_WORDS]):
                bits = rows[row + w] & access_words[word + w]
                while bits != _ZERO:
                    slot = group_start + ((word + w) << 6) + trailing_zeros(bits)
                    n = _visit(slot_places, slot_masks, slots, n, slot, absent)
                    bits &= bits - _ONE
    return _visit(slot_places, slot_masks, slots, n, sizes[N_SLOTS] - 1, everyone)


@kernel
def _leave(mill: Any, state: Any, scratch: Any, start: int, stop: int, n_slots: int) -> None:
    sizes, fields = array_at(mill, SIZES, np.int64), table_at(mill, DIMENSIONS, np.int64, N_FIELDS)
    defaults = array_at(mill, DEFAULT_VALUES, np.int32)
    masks, present = array_at(state, MASKS, np.uint64), array_at(state, PRESENT, np.uint64)
    slot_masks, slots = array_at(state, SLOT_MASKS, np.uint64), array_at(state, SLOTS, np.int32)
    value_masks = array_at(state, VALUE_MASKS, np.uint64)
    seen_values = array_at(state, SEEN_VALUES, np.uint64)
    values = table_at(state, BLOCK_VALUES, np.int32, len(defaults))
    codes = table_at(state, BLOCK_CODES, np.int32, len(fields))
    offsets = array_at(scratch, EVENT_OFFSETS, np.int64)
    dimensions = array_at(scratch, EVENT_DIMENSIONS, np.int32)
    n_masks = sizes[N_MASKS]
    for e in range(start, stop):
        for k in range(offsets[e], offsets[e + 1]):
            d = int64(dimensions[k])
            if d >= len(fields):
                continue
            codes[e - start, d] = -1
            for column in (fields[d, FIRST_COLUMN], fields[d, SECOND_COLUMN]):
                if column < 0:
                    continue
                values[e - start, column] = defaults[column]
                while column < n_masks and seen_values[column] != _ZERO:
                    value = trailing_zeros(seen_values[column])
                    value_masks[(column << 6) + value] = _ZERO
                    seen_values[column] &= seen_values[column] - _ONE
            if present[d] != _ZERO:
                present[d] = _ZERO
                if fields[d, N_WORDS] > 0:
                    first = fields[d, FIRST_WORD] << 6
                    for m in range(first, first + (fields[d, N_WORDS] << 6)):
                        masks[m] = _ZERO
    for i in range(n_slots):
        slot_masks[slots[i]] = _ZERO


@kernel
def _left_by_others(
    sizes: np.ndarray,
    words: np.ndarray,
    pool: np.ndarray,
    start: int,
    stop: int,
    values: np.ndarray,
    codes: np.ndarray,
    events: Any,
) -> Any:
    """Which of the events satisfy private tests that are no masks (but may be followed by some)."""
    left = events
    while events != _ZERO:
        event = trailing_zeros(events)
        events &= events - _ONE
        if not private_holds(
            sizes[N_MASKS], sizes[N_POINTS], words, pool, start, stop, values[event], codes[event]
        ):
            left ^= _ONE << uint64(event)
    return left


@kernel
def _walk(mill: Any, state: Any, n_slots: int, width: int) -> int:
    """Append the ids of all entries that hold to the rows of their events; returns how many were
    looked at. Ids beyond a row's width are counted only."""
    sizes, words = array_at(mill, SIZES, np.int64), array_at(mill, WORDS, np.uint64)
    ids, tests = array_at(mill, IDS, np.uint32), array_at(mill, TESTS, np.uint16)
    pool, slot_places = array_at(mill, POOL, np.int32), array_at(mill, SLOT_PLACES, np.int64)
    n_columns = len(array_at(mill, DEFAULT_VALUES, np.int32))
    n_dimensions = len(table_at(mill, DIMENSIONS, np.int64, N_FIELDS))
    masks = array_at(state, MASKS, np.uint64)
    slot_masks, slots = array_at(state, SLOT_MASKS, np.uint64), array_at(state, SLOTS, np.int32)
    value_masks = array_at(state, VALUE_MASKS, np.uint64)
    seen_values = array_at(state, SEEN_VALUES, np.uint64)
    values = table_at(state, BLOCK_VALUES, np.int32, n_columns)
    codes = table_at(state, BLOCK_CODES, np.int32, n_dimensions)
    out = table_at(state, FOUND, np.int32, width)
    out_counts = array_at(state, FOUND_COUNTS, np.int64)
    n_masks = uint64(sizes[N_MASKS])
    n_seen = 0
    for i in range(n_slots):
        if i + _AHEAD < n_slots:
            place = slot_places[slots[i + _AHEAD]]
            start = place >> 24
            for k in range(start, start + min(place & 0xFFFFFF, _LOADED), 8):
                prefetch(words, k)
        visitors = slot_masks[slots[i]]
        place = slot_places[slots[i]] >> 24
        follows = True
        while follows:
            header = words[place]
            follows = header & _ONE != _ZERO
            n = int64(header >> uint64(40))
            n_tests = int64((header >> uint64(23)) & uint64(0x1FFFF))
            n_privates = int64((header >> _ONE) & uint64(0xFFFFF))
            n_seen += n
            test_at = uint64(4 * (place + 1))
            id_at = (int64(test_at) + n * n_tests + 1) >> 1
            private_at = (id_at + n + 1) >> 1
            place = private_at + n * n_privates
            step = uint64(n_tests)
            for entry in range(n):
                k = test_at
                test_at += step
                left = visitors
                while k < test_at:
                    left &= masks[tests[k]]
                    k += _ONE
                    if left == _ZERO:
                        break
                if left == _ZERO:
                    continue
                k = uint64(private_at + entry * n_privates)
                stop = k + uint64(n_privates)
                while k < stop and left != _ZERO:
                    test = words[k]
                    column = test >> _COLUMN
                    if column >= n_masks:
                        left = _left_by_others(
                            sizes, words, pool, int64(k), int64(stop), values, codes, left
                        )
                        break
                    bits = test & seen_values[column]
                    among = _ZERO
                    while bits != _ZERO:
                        among |= value_masks[(column << _SIX) + uint64(trailing_zeros(bits))]
                        bits &= bits - _ONE
                    left &= among
                    k += _ONE
                clause = int64(ids[id_at + entry])
                while left != _ZERO:
                    event = trailing_zeros(left)
                    left &= left - _ONE
                    at = out_counts[event]
                    if at < width:
                        out[event, at] = clause
                    out_counts[event] = at + 1
    return n_seen


@kernel
def match_block(
    mill: Any, state: Any, scratch: Any, start: int, stop: int, width: int
) -> tuple[int, int, int]:
    """Matches at most 64 events, with room for `width` ids each, and appends what was found;
    returns (the most ids of an event, all ids, entries looked at). Appends nothing if there is
    no room, for either."""
    counts = array_at(state, FOUND_COUNTS, np.int64)
    found = table_at(state, FOUND, np.int32, width)
    out_offsets, out = array_at(scratch, OUT_OFFSETS, np.int64), array_at(scratch, OUT, np.int32)
    for e in range(len(counts)):
        counts[e] = 0
    n_slots = _enter(mill, state, scratch, start, stop)
    n_seen = _walk(mill, state, n_slots, width)
    _leave(mill, state, scratch, start, stop, n_slots)
    most, total = int64(0), int64(0)
    for e in range(len(counts)):
        most = max(most, counts[e])
        total += counts[e]
    at = out_offsets[start]
    if most <= width and at + total <= len(out):
        for e in range(stop - start):
            for k in range(counts[e]):
                out[at] = found[e, k]
                at += 1
            out_offsets[start + e + 1] = at
    return most, total, n_seen
