"""Matching one event at a time.

1  each pair: its code; its row into the truth table, its values into the columns; the slots
   of its nodes and groups into a list
2  the slots of dimensions that the event lacks and that matter then; the slot of all events
3  each slot of the list: its blocks, entry by entry, leaving an entry at its first test if
   that fails, which is the most likely to; the next slots are being loaded meanwhile
4  the truth table and the columns back to those of the empty event
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchmill._jit import kernel
from matchmill.encoding.event_batch import EventBatch
from matchmill.indexes.mill.dictionary import code_of
from matchmill.indexes.mill.layout import (
    COLUMN_START,
    COLUMN_STOP,
    DEFAULT_ROW,
    EDGE_START,
    EDGE_STOP,
    FIRST_WORD,
    GROUP_START,
    N_HASHED,
    N_MASKS,
    N_SLOTS,
    N_WORDS,
    NODE_START,
    ROW_START,
    USED_LEVELS,
    MillArrays,
)
from matchmill.indexes.mill.prefetch import prefetch
from matchmill.indexes.mill.privates import private_holds

__all__ = ["EventState", "lowest_bit", "match_events", "new_state"]

_AHEAD = 6

# 2**b modulo the prime 67 differs for all b below 66.
_BIT_OF_REMAINDER = np.zeros(67, np.int64)
for _bit in range(64):
    _BIT_OF_REMAINDER[pow(2, _bit, 67)] = _bit


class EventState(NamedTuple):
    """Scratch of one thread: what is known of the event at hand."""

    truth: np.ndarray  # uint64
    values: np.ndarray  # int32, one a column
    codes: np.ndarray  # int32, one a dimension
    slots: np.ndarray  # int32


def new_state(mill: MillArrays) -> EventState:
    n_dimensions = len(mill.dimensions)
    return EventState(
        mill.default_truth.copy(),
        mill.default_values.copy(),
        np.full(n_dimensions, -1, np.int32),
        np.empty(1024, np.int32),
    )


@kernel
def lowest_bit(mask: Any) -> int:
    """The number of the lowest bit that is set, by its remainder."""
    isolated = mask & (~mask + np.uint64(1))
    return int(_BIT_OF_REMAINDER[isolated % np.uint64(67)])


@kernel
def _holds(truth: np.ndarray, test: Any) -> Any:
    t = np.uint64(test)
    return (truth[t >> np.uint64(6)] >> (t & np.uint64(63))) & np.uint64(1)


@kernel
def _flip_row(mill: MillArrays, state: EventState, d: int, code: int) -> None:
    """Into the truth table, or out of it again."""
    row = np.int64(mill.row_of_code[mill.dimensions[d, ROW_START] + code])
    word = mill.dimensions[d, FIRST_WORD]
    default = mill.dimensions[d, DEFAULT_ROW]
    n_words = mill.dimensions[d, N_WORDS]
    if default < 0:
        for w in range(n_words):
            state.truth[word + w] ^= mill.rows[row + w]
    else:
        for w in range(n_words):
            state.truth[word + w] ^= mill.rows[row + w] ^ mill.rows[default + w]


@kernel
def _add_slot(mill: MillArrays, slots: np.ndarray, n: int, slot: int) -> int:
    if mill.slot_blocks[slot + 1] > mill.slot_blocks[slot]:
        if n < len(slots):
            slots[n] = slot
            prefetch(mill.blocks, 2 * np.int64(mill.slot_blocks[slot]))
        n += 1
    return n


@kernel
def _add_groups(mill: MillArrays, slots: np.ndarray, n: int, d: int, code: int) -> int:
    row = np.int64(mill.row_of_code[mill.dimensions[d, ROW_START] + code])
    word = mill.dimensions[d, FIRST_WORD]
    for w in range(mill.dimensions[d, N_WORDS]):
        bits = mill.rows[row + w] & mill.access_words[word + w]
        while bits != 0:
            s = ((word + w) << 6) + lowest_bit(bits)
            n = _add_slot(mill, slots, n, mill.sizes[GROUP_START] + s)
            bits &= bits - np.uint64(1)
    return n


@kernel
def _enter(mill: MillArrays, state: EventState, d: int, key: int, n: int) -> int:
    """Take in one pair; returns the new number of slots."""
    fields = mill.dimensions[d]
    code = code_of(mill.edges, fields[EDGE_START], fields[EDGE_STOP], key)
    state.codes[d] = code
    for k in range(fields[COLUMN_START], fields[COLUMN_STOP]):
        column = mill.columns[k]
        if column < mill.sizes[N_MASKS]:
            state.values[column] = mill.ranks[mill.rank_starts[column] + code]
        else:
            state.values[column] = code
    levels = fields[USED_LEVELS]
    slot = fields[NODE_START]
    if levels != 0:
        n = _add_slot(mill, state.slots, n, slot + code)
        if code > 0:
            last = fields[EDGE_STOP] - fields[EDGE_START]
            level = 0
            levels >>= 1
            while levels != 0:
                slot += (last >> level) + 1
                level += 1
                if levels & 1:
                    n = _add_slot(mill, state.slots, n, slot + (code >> level))
                levels >>= 1
    if fields[ROW_START] >= 0:
        _flip_row(mill, state, d, code)
        n = _add_groups(mill, state.slots, n, d, code)
    return n


@kernel
def _enter_absent(mill: MillArrays, state: EventState, n: int) -> int:
    for d in mill.absent_dimensions:
        if state.codes[d] < 0:
            if mill.dimensions[d, USED_LEVELS] != 0:
                n = _add_slot(mill, state.slots, n, mill.dimensions[d, NODE_START])
            if mill.dimensions[d, DEFAULT_ROW] >= 0:
                n = _add_groups(mill, state.slots, n, np.int64(d), 0)
    return _add_slot(mill, state.slots, n, mill.sizes[N_SLOTS] - 1)


@kernel
def _leave(mill: MillArrays, state: EventState, d: int) -> None:
    fields = mill.dimensions[d]
    if fields[ROW_START] >= 0:
        _flip_row(mill, state, d, np.int64(state.codes[d]))
    for k in range(fields[COLUMN_START], fields[COLUMN_STOP]):
        column = mill.columns[k]
        state.values[column] = mill.default_values[column]
    state.codes[d] = -1


@kernel
def _walk_block(mill: MillArrays, state: EventState, b: int, out: np.ndarray, n_out: int) -> int:
    """Append the ids of the entries of a block that hold; there is room for all."""
    at, length = mill.blocks[2 * b] >> 16, mill.blocks[2 * b] & 0xFFFF
    first, last = mill.blocks[2 * b + 1], mill.blocks[2 * b + 3]
    truth, tests = state.truth, mill.tests
    for e in range(first, last):
        if length == 0 or _holds(truth, tests[at]) != 0:
            ok = np.uint64(1)
            for k in range(at + 1, at + length):
                ok &= _holds(truth, tests[k])
            if ok != 0:
                start, stop = mill.private_offsets[e], mill.private_offsets[e + 1]
                if start == stop or private_holds(
                    mill.sizes[N_MASKS],
                    mill.sizes[N_HASHED],
                    mill.privates,
                    mill.pool,
                    start,
                    stop,
                    state.values,
                    state.codes,
                ):
                    out[n_out] = mill.entry_ids[e]
                    n_out += 1
        at += length
    return n_out


@kernel
def _walk_slots(
    mill: MillArrays, state: EventState, n_slots: int, out: np.ndarray, n_out: int
) -> tuple[int, int]:
    """All entries of the slots in the list; returns (ids written, entries looked at).

    More ids than there is room for are counted, as one too many, and not written."""
    n_seen = 0
    for i in range(n_slots):
        if i + _AHEAD < n_slots:
            b = np.int64(mill.slot_blocks[state.slots[i + _AHEAD]])
            prefetch(mill.tests, mill.blocks[2 * b] >> 16)
        slot = state.slots[i]
        for b in range(mill.slot_blocks[slot], mill.slot_blocks[slot + 1]):
            n_entries = mill.blocks[2 * b + 3] - mill.blocks[2 * b + 1]
            n_seen += n_entries
            if n_out + n_entries > len(out):
                return len(out) + 1, n_seen
            n_out = _walk_block(mill, state, b, out, n_out)
    return n_out, n_seen


@kernel
def match_events(
    mill: MillArrays,
    state: EventState,
    events: EventBatch,
    start: int,
    stop: int,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> tuple[int, int, int]:
    """Matches events from `start` to `stop`; returns (the first one for which there was no room,
    slots that it visits, entries looked at)."""
    n_out = out_offsets[start]
    n_seen = 0
    n_slots = 0
    for e in range(start, stop):
        n_slots = 0
        for k in range(events.offsets[e], events.offsets[e + 1]):
            d = np.int64(events.dimensions[k])
            if d < len(mill.dimensions):
                n_slots = _enter(mill, state, d, events.keys[k], n_slots)
        n_slots = _enter_absent(mill, state, n_slots)
        n_after = len(out) + 1
        if n_slots <= len(state.slots):
            n_after, seen = _walk_slots(mill, state, n_slots, out, n_out)
            n_seen += seen
        for k in range(events.offsets[e], events.offsets[e + 1]):
            d = np.int64(events.dimensions[k])
            if d < len(mill.dimensions):
                _leave(mill, state, d)
        if n_after > len(out):
            return e, n_slots, n_seen
        n_out = n_after
        out_offsets[e + 1] = n_out
    return stop, n_slots, n_seen
