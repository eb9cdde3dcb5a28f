"""64 events at a time, one bit per event: their state, and taking them in and out.

    masks[s]                the events for which shared predicate s holds; while events are taken
                            in, masks[64 w + e] is word w of event e's truth table
    keys[d, e], codes[d, e] event e's key and code on dimension d
    slot_masks[s]           the events that visit slot s
    values[c, e]            event e's value in column c

Events are taken in dimension by dimension, so that each step is done for many of them at once.
`block_walk.py` then tests the clauses of the slots that they visit.

Kernels get the addresses of the index's arrays, `mill`, and of BlockState, `state`; `events` are
those of EventState (`event_state.py`), which has the events and takes the ids.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from matchmill.index.mill.arrays import (
    BELOW_KEY,
    DEFAULT_ROW,
    EDGE_START,
    EDGE_STOP,
    FIRST_COLUMN,
    FIRST_WORD,
    GROUP_START,
    LAST_KEY,
    N_SLOTS,
    N_WORDS,
    NODE_START,
    PAIR_FIRST,
    PAIR_SECOND,
    RANK_START,
    ROW_START,
    SECOND_COLUMN,
    USED_LEVELS,
    MillArrays,
    absent_dimensions_of,
    access_words_of,
    default_truth_of,
    default_values_of,
    dimensions_of,
    edges_of,
    pairs_of,
    ranks_of,
    row_of_code_of,
    rows_of,
    sizes_of,
    slot_places_of,
)
from matchmill.index.mill.match.event_state import (
    STRETCH,
    event_dimensions_of,
    event_keys_of,
    event_offsets_of,
)
from matchmill.index.mill.match.lookups import (
    MOST_LEVELS,
    code_of_key,
    even_code,
    find_levels,
    group_slot,
    is_even,
    pair_slot,
)
from matchmill.index.mill.words import slot_on_level
from matchmill.kernels.addresses import (
    Form,
    Int32Array,
    Int64Array,
    UInt8Array,
    UInt64Array,
    accessor,
)
from matchmill.kernels.intrinsics import trailing_zeros
from matchmill.kernels.jit import int64, kernel, uint64

__all__ = ["BLOCK", "BlockState", "enter_events", "leave_events", "new_block_state"]

BLOCK = 64
_FEW = 8  # events
_FIRST_ROOM = 256  # ids of an event
_ZERO, _ONE = uint64(0), uint64(1)


class BlockState(NamedTuple):
    """Scratch of one thread. Between blocks all words are those of empty events."""

    masks: UInt64Array  # one per shared predicate
    transposed: UInt64Array  # 64 words
    is_touched: UInt8Array  # one per word of the truth table: whether some event changed it
    touched: Int32Array  # those words
    present: UInt64Array  # one per dimension: the events that have it
    entered: Int32Array  # the dimensions that some event has
    slot_masks: UInt64Array  # one per slot
    slots: Int32Array  # the slots that some event visits
    positions: Int64Array  # one per event: in edges, or in rows
    levels: Int64Array  # scratch: the levels in use of a dimension
    values: Annotated[np.ndarray, Form(np.int32, BLOCK)]  # a row per column
    keys: Annotated[np.ndarray, Form(np.int64, BLOCK)]  # a row per dimension
    codes: Annotated[np.ndarray, Form(np.int32, BLOCK)]  # a row per dimension
    left: Int64Array  # entries of which some event is left
    left_masks: UInt64Array  # the events that are left
    found: Int32Array  # 64 rows of ids, all of one width
    found_counts: Int64Array  # one per event: how many ids


masks_of = accessor(BlockState, "masks")
transposed_of = accessor(BlockState, "transposed")
is_touched_of = accessor(BlockState, "is_touched")
touched_of = accessor(BlockState, "touched")
present_of = accessor(BlockState, "present")
entered_of = accessor(BlockState, "entered")
slot_masks_of = accessor(BlockState, "slot_masks")
slots_of = accessor(BlockState, "slots")
positions_of = accessor(BlockState, "positions")
block_levels_of = accessor(BlockState, "levels")
block_values_of = accessor(BlockState, "values")
block_keys_of = accessor(BlockState, "keys")
block_codes_of = accessor(BlockState, "codes")
left_of = accessor(BlockState, "left")
left_masks_of = accessor(BlockState, "left_masks")
found_of = accessor(BlockState, "found")
found_counts_of = accessor(BlockState, "found_counts")


def new_block_state(mill: MillArrays) -> BlockState:
    """Return the state of 64 empty events."""
    n_slots, n_words = int(mill.sizes[N_SLOTS]), len(mill.default_truth)
    n_dimensions = len(mill.dimensions)
    holds = np.unpackbits(mill.default_truth.view(np.uint8), bitorder="little")
    return BlockState(
        masks=np.where(holds, ~_ZERO, _ZERO),
        transposed=np.empty(BLOCK, np.uint64),
        is_touched=np.zeros(n_words, np.uint8),
        touched=np.empty(n_words, np.int32),
        present=np.zeros(n_dimensions, np.uint64),
        entered=np.empty(n_dimensions, np.int32),
        slot_masks=np.zeros(n_slots, np.uint64),
        slots=np.empty(n_slots, np.int32),
        positions=np.empty(BLOCK, np.int64),
        levels=np.empty(MOST_LEVELS, np.int64),
        values=np.repeat(mill.default_values, BLOCK).reshape(-1, BLOCK),
        keys=np.zeros((n_dimensions, BLOCK), np.int64),
        codes=np.full((n_dimensions, BLOCK), -1, np.int32),
        left=np.empty(STRETCH, np.int64),
        left_masks=np.empty(STRETCH, np.uint64),
        found=np.empty(BLOCK * _FIRST_ROOM, np.int32),
        found_counts=np.zeros(BLOCK, np.int64),
    )


@kernel
def _visit(
    slot_places: np.ndarray,
    slot_masks: np.ndarray,
    slots: np.ndarray,
    n: int,
    slot: int,
    visitors: int,
) -> int:
    """Record that some events visit a slot; return the new number of slots."""
    if slot_masks[slot] == _ZERO:
        if slot_places[slot] == 0:
            return n
        slots[n] = slot
        n += 1
    slot_masks[slot] |= uint64(visitors)
    return n


@kernel
def _swap_bits(source: np.ndarray, target: np.ndarray, by: Any, mask: Any) -> None:
    """Do one step of transposing 64 words.

    Words k and k + 32 exchange bits that are `by` apart, and become neighbours.
    """
    for k in range(BLOCK // 2):
        one, other = source[k], source[k + BLOCK // 2]
        swapped = ((one >> by) ^ other) & mask
        target[2 * k] = one ^ (swapped << by)
        target[2 * k + 1] = other ^ swapped


@kernel
def _transpose(words: np.ndarray, scratch: np.ndarray) -> None:
    """Turn 64 words with one bit per predicate into 64 words with one bit per event.

    After six steps the words are in order again.
    """
    _swap_bits(words, scratch, uint64(32), uint64(0x00000000FFFFFFFF))
    _swap_bits(scratch, words, uint64(16), uint64(0x0000FFFF0000FFFF))
    _swap_bits(words, scratch, uint64(8), uint64(0x00FF00FF00FF00FF))
    _swap_bits(scratch, words, uint64(4), uint64(0x0F0F0F0F0F0F0F0F))
    _swap_bits(words, scratch, uint64(2), uint64(0x3333333333333333))
    _swap_bits(scratch, words, uint64(1), uint64(0x5555555555555555))


@kernel
def _enter_keys(mill: Any, state: Any, events: Any, start: int, stop: int) -> int:
    """Take in the keys of the events; return the number of dimensions."""
    n_dimensions = len(dimensions_of(mill))
    present, entered, block_keys = present_of(state), entered_of(state), block_keys_of(state)
    offsets, keys = event_offsets_of(events), event_keys_of(events)
    dimensions = event_dimensions_of(events)
    n = 0
    for e in range(start, stop):
        bit = _ONE << uint64(e - start)
        for k in range(offsets[e], offsets[e + 1]):
            d = int64(dimensions[k])
            if d < n_dimensions:
                if present[d] == _ZERO:
                    entered[n] = d
                    n += 1
                present[d] |= bit
                block_keys[d, e - start] = keys[k]
    return n


@kernel
def _are_few(events: Any) -> bool:
    """Return whether there are so few events that each is better looked at separately."""
    n = 0
    while events != _ZERO and n <= _FEW:
        events &= events - _ONE
        n += 1
    return n <= _FEW


@kernel
def _find_codes(mill: Any, state: Any, d: int, n_events: int) -> None:
    """Find the codes of the events that have a dimension; all others have -1."""
    fields, edges = dimensions_of(mill), edges_of(mill)
    keys, codes = block_keys_of(state)[d], block_codes_of(state)[d]
    events = present_of(state)[d]
    if _are_few(events):
        while events != _ZERO:
            e = trailing_zeros(events)
            events &= events - _ONE
            codes[e] = code_of_key(fields, edges, d, keys[e])
        return
    if is_even(fields, d):
        below, last_key = fields[d, BELOW_KEY], fields[d, LAST_KEY]
        for e in range(n_events):
            codes[e] = even_code(below, last_key, keys[e])
    else:
        _search_codes(edges, fields[d, EDGE_START], fields[d, EDGE_STOP], state, d, n_events)
    absent = ~events & (~_ZERO >> uint64(BLOCK - n_events))
    while absent != _ZERO:
        codes[trailing_zeros(absent)] = -1
        absent &= absent - _ONE


@kernel
def _search_codes(
    edges: np.ndarray, first: int, last: int, state: Any, d: int, n_events: int
) -> None:
    """Find the codes of all keys on a dimension: `code_of`, each step for all of them at once."""
    keys, codes = block_keys_of(state)[d], block_codes_of(state)[d]
    lows = positions_of(state)
    for e in range(n_events):
        lows[e] = first
    n = last - first
    while n > 0:
        half = (n + 1) >> 1
        for e in range(n_events):
            lows[e] += half if edges[lows[e] + half - 1] <= keys[e] else 0
        n -= half
    for e in range(n_events):
        codes[e] = lows[e] - first


@kernel
def _enter_truth(mill: Any, state: Any, d: int, n_events: int, n_touched: int) -> int:
    """Enter the truth of a dimension's shared predicates; return the new number of words touched.

    Words are those of an empty event at first, and change by what differs between the row of a
    code and that of code 0, which events without the dimension have: neighbouring dimensions may
    share a word.
    """
    fields, row_of_code, rows = dimensions_of(mill), row_of_code_of(mill), rows_of(mill)
    default_truth, masks = default_truth_of(mill), masks_of(state)
    is_touched, touched = is_touched_of(state), touched_of(state)
    positions, codes = positions_of(state), block_codes_of(state)[d]
    row_start, first_word = fields[d, ROW_START], fields[d, FIRST_WORD]
    events = present_of(state)[d]
    few = _are_few(events)
    if not few:
        for e in range(n_events):
            positions[e] = row_of_code[row_start + max(codes[e], 0)]
    for w in range(fields[d, N_WORDS]):
        word = first_word + w
        at = BLOCK * word
        empty = rows[row_of_code[row_start] + w]
        is_first = not is_touched[word]
        if is_first:
            is_touched[word] = 1
            touched[n_touched] = word
            n_touched += 1
        if is_first and few:
            for e in range(n_events):
                masks[at + e] = default_truth[word]
        elif is_first:
            for e in range(n_events):
                masks[at + e] = rows[positions[e] + w] ^ empty ^ default_truth[word]
        elif not few:
            for e in range(n_events):
                masks[at + e] ^= rows[positions[e] + w] ^ empty
        rest = events if few else _ZERO
        while rest != _ZERO:
            e = trailing_zeros(rest)
            rest &= rest - _ONE
            masks[at + e] ^= rows[row_of_code[row_start + codes[e]] + w] ^ empty
    return n_touched


@kernel
def _enter_values(mill: Any, state: Any, d: int) -> None:
    """Enter what inline tests read of a dimension."""
    fields, ranks = dimensions_of(mill), ranks_of(mill)
    values, codes = block_values_of(state), block_codes_of(state)[d]
    first, second = fields[d, FIRST_COLUMN], fields[d, SECOND_COLUMN]
    rank_start = fields[d, RANK_START]
    events = present_of(state)[d]
    while events != _ZERO:
        e = trailing_zeros(events)
        events &= events - _ONE
        values[first, e] = ranks[rank_start + codes[e]] if rank_start >= 0 else codes[e]
        if second >= 0:
            values[second, e] = codes[e]


@kernel
def _visit_nodes(mill: Any, state: Any, d: int, n: int) -> int:
    """Record the nodes that the codes of a dimension are in; return the new number of slots."""
    slot_places, levels = slot_places_of(mill), block_levels_of(state)
    slot_masks, slots = slot_masks_of(state), slots_of(state)
    codes = block_codes_of(state)[d]
    n_levels = find_levels(dimensions_of(mill), d, levels)
    events = present_of(state)[d]
    while events != _ZERO:
        e = trailing_zeros(events)
        bit = _ONE << uint64(e)
        events &= events - _ONE
        code = int64(codes[e])
        for i in range(n_levels if code > 0 else 1):
            slot = slot_on_level(levels[i], code)
            n = _visit(slot_places, slot_masks, slots, n, slot, bit)
    return n


@kernel
def _visit_absent(mill: Any, state: Any, everyone: int, n: int) -> int:
    """Record the slots of events that lack a dimension; return the new number of slots."""
    fields, slot_places = dimensions_of(mill), slot_places_of(mill)
    rows, access_words = rows_of(mill), access_words_of(mill)
    group_start, present = sizes_of(mill)[GROUP_START], present_of(state)
    slot_masks, slots = slot_masks_of(state), slots_of(state)
    for d in absent_dimensions_of(mill):
        absent = uint64(everyone) & ~present[d]
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
                    slot = group_slot(group_start, word + w) + trailing_zeros(bits)
                    n = _visit(slot_places, slot_masks, slots, n, slot, absent)
                    bits &= bits - _ONE
    return n


@kernel
def _visit_groups(mill: Any, state: Any, n_touched: int, everyone: Any, n: int) -> int:
    """Transpose the words that were touched, and record the groups that events visit.

    Return the new number of slots.
    """
    slot_places, access_words = slot_places_of(mill), access_words_of(mill)
    group_start, masks = sizes_of(mill)[GROUP_START], masks_of(state)
    transposed, touched = transposed_of(state), touched_of(state)
    slot_masks, slots = slot_masks_of(state), slots_of(state)
    for t in range(n_touched):
        word = int64(touched[t])
        first = BLOCK * word
        _transpose(masks[first : first + BLOCK], transposed)
        bits = access_words[word]
        while bits != _ZERO:
            s = first + trailing_zeros(bits)
            bits &= bits - _ONE
            events = masks[s] & everyone
            if events != _ZERO:
                n = _visit(slot_places, slot_masks, slots, n, group_start + s, events)
    return n


@kernel
def enter_events(mill: Any, state: Any, events: Any, start: int, stop: int) -> tuple[int, int, int]:
    """Take in some events; return the numbers of slots, of words touched, and of dimensions."""
    fields, slot_places, pairs = dimensions_of(mill), slot_places_of(mill), pairs_of(mill)
    entered, codes = entered_of(state), block_codes_of(state)
    slot_masks, slots = slot_masks_of(state), slots_of(state)
    n_events = stop - start
    everyone = ~_ZERO >> uint64(BLOCK - n_events)
    n_entered = _enter_keys(mill, state, events, start, stop)
    n = n_touched = int64(0)
    for i in range(n_entered):
        d = int64(entered[i])
        _find_codes(mill, state, d, n_events)
        if fields[d, FIRST_COLUMN] >= 0:
            _enter_values(mill, state, d)
        if fields[d, USED_LEVELS] != 0:
            n = _visit_nodes(mill, state, d, n)
        if fields[d, ROW_START] >= 0:
            n_touched = _enter_truth(mill, state, d, n_events, n_touched)
    n = _visit_groups(mill, state, n_touched, everyone, n)
    for p in range(len(pairs)):
        firsts, seconds = codes[pairs[p, PAIR_FIRST]], codes[pairs[p, PAIR_SECOND]]
        for e in range(n_events):
            a, b = int64(firsts[e]), int64(seconds[e])
            if a > 0 and b > 0:
                slot = pair_slot(pairs, p, a, b)
                n = _visit(slot_places, slot_masks, slots, n, slot, _ONE << uint64(e))
    n = _visit_absent(mill, state, everyone, n)
    n = _visit(slot_places, slot_masks, slots, n, sizes_of(mill)[N_SLOTS] - 1, everyone)
    return n, n_touched, n_entered


@kernel
def leave_events(mill: Any, state: Any, n_slots: int, n_touched: int, n_entered: int) -> None:
    """Return to empty events."""
    fields, default_truth = dimensions_of(mill), default_truth_of(mill)
    defaults, masks, present = default_values_of(mill), masks_of(state), present_of(state)
    is_touched, touched, entered = is_touched_of(state), touched_of(state), entered_of(state)
    slot_masks, slots = slot_masks_of(state), slots_of(state)
    values, codes = block_values_of(state), block_codes_of(state)
    for i in range(n_entered):
        d = int64(entered[i])
        events = present[d]
        present[d] = _ZERO
        first, second = fields[d, FIRST_COLUMN], fields[d, SECOND_COLUMN]
        while events != _ZERO:
            e = trailing_zeros(events)
            events &= events - _ONE
            codes[d, e] = -1
            if first >= 0:
                values[first, e] = defaults[first]
            if second >= 0:
                values[second, e] = defaults[second]
    for t in range(n_touched):
        w = int64(touched[t])
        is_touched[w] = 0
        if default_truth[w] == _ZERO:
            for k in range(BLOCK):
                masks[BLOCK * w + k] = _ZERO
            continue
        for k in range(BLOCK):
            masks[BLOCK * w + k] = ~_ZERO if (default_truth[w] >> uint64(k)) & _ONE else _ZERO
    for i in range(n_slots):
        slot_masks[slots[i]] = _ZERO
