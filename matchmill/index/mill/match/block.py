"""Matching 64 events at a time: one bit an event.

    masks[s]                for which events shared predicate s holds; while events are taken in,
                            masks[64 w + e] is word w of event e's truth table
    keys[d, e], codes[d, e] event e's key and code on dimension d
    slot_masks[s]           which events visit slot s
    values[c, e]            event e's value in column c

Events are taken in dimension by dimension, so that each step is done for many of them at once.
The blocks are those of `one_event.py`, and each is read once for all events that visit it. That
pays where events visit the same slots, which `alike.py` sees to; where they have little in common,
one at a time is quicker. Tests are done in steps without branches: first tests of a stretch of
entries, then all others of those of which some event is left. Ids are gathered event by event in
rows of one width.

Kernels get the places of the index's arrays, `mill`, and of BlockState, `state`; `scratch` are
those of EventState (`one_event.py`), which has the events and takes the ids.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchmill.index.mill.arrays import (
    ABSENT_DIMENSIONS,
    ACCESS_WORDS,
    BELOW_KEY,
    DEFAULT_ROW,
    DEFAULT_TRUTH,
    DEFAULT_VALUES,
    DIMENSIONS,
    EDGE_START,
    EDGE_STOP,
    EDGES,
    FIRST_COLUMN,
    FIRST_WORD,
    FOLDED_BIT,
    GROUP_START,
    IDS,
    LAST_KEY,
    MOST_TESTS,
    N_FIELDS,
    N_MASKS,
    N_POINTS,
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
from matchmill.index.mill.build.inline_tests import (
    CODE_BITS,
    CODE_MASK,
    EXCEPTION_BIT,
    GENERAL,
    MORE_BIT,
    general_test,
    has_point,
    in_pool,
)
from matchmill.index.mill.match.single import (
    EVENT_DIMENSIONS,
    EVENT_KEYS,
    EVENT_OFFSETS,
    OUT,
    OUT_OFFSETS,
)
from matchmill.index.predicate_codes import code_of
from matchmill.kernels.intrinsics import array_at, prefetch, table_at, trailing_zeros
from matchmill.kernels.jit import int64, kernel, uint64

__all__ = ["BLOCK", "BlockState", "match_block", "new_block_state"]

BLOCK = 64
_AHEAD = 6
_LOADED = 128  # words of a slot that are asked for
_FEW = 8  # events
_STRETCH = 256  # entries of a block that are looked at in one go
_ZERO, _ONE, _COLUMN = (uint64(n) for n in (0, 1, 48))


# Numbers of the arrays of BlockState among their places.
MASKS, TURNED, IS_TOUCHED, TOUCHED, PRESENT, ENTERED, SLOT_MASKS, SLOTS, PLACES = range(9)
BLOCK_VALUES, BLOCK_KEYS, BLOCK_CODES, LEFT, LEFT_MASKS, FOUND, FOUND_COUNTS = range(9, 16)


class BlockState(NamedTuple):
    """Scratch of one thread. Between blocks all words are as those of empty events."""

    masks: np.ndarray  # uint64, one a shared predicate
    turned: np.ndarray  # uint64, 64 words
    is_touched: np.ndarray  # uint8, one a word of the truth table: whether some event changed it
    touched: np.ndarray  # int32: those words
    present: np.ndarray  # uint64, one a dimension: the events that have it
    entered: np.ndarray  # int32: the dimensions that some event has
    slot_masks: np.ndarray  # uint64
    slots: np.ndarray  # int32
    places: np.ndarray  # int64, one an event: where something of it stands
    values: np.ndarray  # int32, columns × 64
    keys: np.ndarray  # int64, dimensions × 64
    codes: np.ndarray  # int32, dimensions × 64
    left: np.ndarray  # int64: entries of which some event is left
    left_masks: np.ndarray  # uint64: which
    found: np.ndarray  # int32, 64 × as many ids as there is room for
    found_counts: np.ndarray  # int64, one an event: how many ids


def new_block_state(mill: MillArrays) -> BlockState:
    n_slots, n_words = int(mill.sizes[N_SLOTS]), len(mill.default_truth)
    holds = np.unpackbits(mill.default_truth.view(np.uint8), bitorder="little")
    return BlockState(
        np.where(holds, ~_ZERO, _ZERO),
        np.empty(BLOCK, np.uint64),
        np.zeros(n_words, np.uint8),
        np.empty(n_words, np.int32),
        np.zeros(len(mill.dimensions), np.uint64),
        np.empty(len(mill.dimensions), np.int32),
        np.zeros(n_slots, np.uint64),
        np.empty(n_slots, np.int32),
        np.empty(BLOCK, np.int64),
        np.repeat(mill.default_values, BLOCK).reshape(-1, BLOCK),
        np.zeros((len(mill.dimensions), BLOCK), np.int64),
        np.full((len(mill.dimensions), BLOCK), -1, np.int32),
        np.empty(_STRETCH, np.int64),
        np.empty(_STRETCH, np.uint64),
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
def _deal(source: np.ndarray, target: np.ndarray, by: Any, mask: Any) -> None:
    """One step of turning 64 words on their side: of words k and k + 32, bits change places that
    are `by` apart, and they become neighbours."""
    for k in range(BLOCK // 2):
        one, other = source[k], source[k + BLOCK // 2]
        swapped = ((one >> by) ^ other) & mask
        target[2 * k] = one ^ (swapped << by)
        target[2 * k + 1] = other ^ swapped


@kernel
def _turn(words: np.ndarray, scratch: np.ndarray) -> None:
    """64 words with a bit a predicate become 64 words with a bit an event. After six steps the
    words are in order again."""
    _deal(words, scratch, uint64(32), uint64(0x00000000FFFFFFFF))
    _deal(scratch, words, uint64(16), uint64(0x0000FFFF0000FFFF))
    _deal(words, scratch, uint64(8), uint64(0x00FF00FF00FF00FF))
    _deal(scratch, words, uint64(4), uint64(0x0F0F0F0F0F0F0F0F))
    _deal(words, scratch, uint64(2), uint64(0x3333333333333333))
    _deal(scratch, words, uint64(1), uint64(0x5555555555555555))


@kernel
def _enter_keys(mill: Any, state: Any, scratch: Any, start: int, stop: int) -> int:
    """Take in the keys of the events; returns the number of dimensions."""
    n_dimensions = len(table_at(mill, DIMENSIONS, np.int64, N_FIELDS))
    present, entered = array_at(state, PRESENT, np.uint64), array_at(state, ENTERED, np.int32)
    block_keys = table_at(state, BLOCK_KEYS, np.int64, BLOCK)
    offsets = array_at(scratch, EVENT_OFFSETS, np.int64)
    dimensions = array_at(scratch, EVENT_DIMENSIONS, np.int32)
    keys = array_at(scratch, EVENT_KEYS, np.int64)
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
    """Whether there are so few events that each is better looked at by itself."""
    n = 0
    while events != _ZERO and n <= _FEW:
        events &= events - _ONE
        n += 1
    return n <= _FEW


@kernel
def _find_codes(mill: Any, state: Any, d: int, n_events: int) -> None:
    """The codes of the events that have a dimension; all others have -1."""
    fields, edges = table_at(mill, DIMENSIONS, np.int64, N_FIELDS), array_at(mill, EDGES, np.int64)
    keys = table_at(state, BLOCK_KEYS, np.int64, BLOCK)[d]
    codes = table_at(state, BLOCK_CODES, np.int32, BLOCK)[d]
    lows = array_at(state, PLACES, np.int64)
    first, last = fields[d, EDGE_START], fields[d, EDGE_STOP]
    below, last_key = fields[d, BELOW_KEY], fields[d, LAST_KEY]
    events = array_at(state, PRESENT, np.uint64)[d]
    is_near = below <= last_key
    if _are_few(events):
        while events != _ZERO:
            e = trailing_zeros(events)
            events &= events - _ONE
            if is_near:
                codes[e] = min(max(keys[e], below), last_key) - below
            else:
                codes[e] = code_of(edges, first, last, keys[e])
        return
    if is_near:
        for e in range(n_events):
            codes[e] = min(max(keys[e], below), last_key) - below
    else:  # `code_of`, step by step for all
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
    absent = ~events & (~_ZERO >> uint64(BLOCK - n_events))
    while absent != _ZERO:
        codes[trailing_zeros(absent)] = -1
        absent &= absent - _ONE


@kernel
def _enter_truth(mill: Any, state: Any, d: int, n_events: int, n_touched: int) -> int:
    """The truth of a dimension's shared predicates; returns the new number of words touched.

    Words are those of an empty event at first, and change by what differs between the row of a
    code and that of code 0, which events without the dimension have: neighbouring dimensions may
    share a word."""
    fields = table_at(mill, DIMENSIONS, np.int64, N_FIELDS)
    row_of_code, rows = array_at(mill, ROW_OF_CODE, np.int32), array_at(mill, ROWS, np.uint64)
    default_truth = array_at(mill, DEFAULT_TRUTH, np.uint64)
    masks, is_touched = array_at(state, MASKS, np.uint64), array_at(state, IS_TOUCHED, np.uint8)
    touched, places = array_at(state, TOUCHED, np.int32), array_at(state, PLACES, np.int64)
    codes = table_at(state, BLOCK_CODES, np.int32, BLOCK)[d]
    row_start, first_word = fields[d, ROW_START], fields[d, FIRST_WORD]
    events = array_at(state, PRESENT, np.uint64)[d]
    few = _are_few(events)
    if not few:
        for e in range(n_events):
            places[e] = row_of_code[row_start + max(codes[e], 0)]
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
                masks[at + e] = rows[places[e] + w] ^ empty ^ default_truth[word]
        elif not few:
            for e in range(n_events):
                masks[at + e] ^= rows[places[e] + w] ^ empty
        rest = events if few else _ZERO
        while rest != _ZERO:
            e = trailing_zeros(rest)
            rest &= rest - _ONE
            masks[at + e] ^= rows[row_of_code[row_start + codes[e]] + w] ^ empty
    return n_touched


@kernel
def _enter_values(mill: Any, state: Any, d: int) -> None:
    """What private tests read of a dimension."""
    fields, ranks = table_at(mill, DIMENSIONS, np.int64, N_FIELDS), array_at(mill, RANKS, np.uint8)
    values = table_at(state, BLOCK_VALUES, np.int32, BLOCK)
    codes = table_at(state, BLOCK_CODES, np.int32, BLOCK)[d]
    first, second = fields[d, FIRST_COLUMN], fields[d, SECOND_COLUMN]
    rank_start = fields[d, RANK_START]
    events = array_at(state, PRESENT, np.uint64)[d]
    while events != _ZERO:
        e = trailing_zeros(events)
        events &= events - _ONE
        values[first, e] = ranks[rank_start + codes[e]] if rank_start >= 0 else codes[e]
        if second >= 0:
            values[second, e] = codes[e]


@kernel
def _visit_nodes(mill: Any, state: Any, d: int, n: int) -> int:
    """The slots of the ranges that a code is in; returns the new number of slots."""
    fields = table_at(mill, DIMENSIONS, np.int64, N_FIELDS)
    slot_places = array_at(mill, SLOT_PLACES, np.int64)
    slot_masks, slots = array_at(state, SLOT_MASKS, np.uint64), array_at(state, SLOTS, np.int32)
    codes = table_at(state, BLOCK_CODES, np.int32, BLOCK)[d]
    last_code = fields[d, EDGE_STOP] - fields[d, EDGE_START]
    events = array_at(state, PRESENT, np.uint64)[d]
    while events != _ZERO:
        e = trailing_zeros(events)
        bit = _ONE << uint64(e)
        events &= events - _ONE
        code = int64(codes[e])
        slot = fields[d, NODE_START]
        n = _visit(slot_places, slot_masks, slots, n, slot + code, bit)
        level = 0
        levels = fields[d, USED_LEVELS] >> 1 if code > 0 else 0
        while levels != 0:
            slot += (last_code >> level) + 1
            level += 1
            if levels & 1:
                n = _visit(slot_places, slot_masks, slots, n, slot + (code >> level), bit)
            levels >>= 1
    return n


@kernel
def _visit_absent(mill: Any, state: Any, everyone: int, n: int) -> int:
    """The slots of events that lack a dimension; returns the new number of slots."""
    sizes, fields = array_at(mill, SIZES, np.int64), table_at(mill, DIMENSIONS, np.int64, N_FIELDS)
    rows, access_words = array_at(mill, ROWS, np.uint64), array_at(mill, ACCESS_WORDS, np.uint64)
    slot_places = array_at(mill, SLOT_PLACES, np.int64)
    present = array_at(state, PRESENT, np.uint64)
    slot_masks, slots = array_at(state, SLOT_MASKS, np.uint64), array_at(state, SLOTS, np.int32)
    for d in array_at(mill, ABSENT_DIMENSIONS, np.int32):
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
                    slot = sizes[GROUP_START] + BLOCK * (word + w) + trailing_zeros(bits)
                    n = _visit(slot_places, slot_masks, slots, n, slot, absent)
                    bits &= bits - _ONE
    return n


@kernel
def _enter(mill: Any, state: Any, scratch: Any, start: int, stop: int) -> tuple[int, int, int]:
    """Take in the events; returns the numbers of slots, of words touched, and of dimensions."""
    sizes, fields = array_at(mill, SIZES, np.int64), table_at(mill, DIMENSIONS, np.int64, N_FIELDS)
    access_words = array_at(mill, ACCESS_WORDS, np.uint64)
    slot_places = array_at(mill, SLOT_PLACES, np.int64)
    pairs = table_at(mill, PAIRS, np.int64, PAIR_WIDTH)
    masks, turned = array_at(state, MASKS, np.uint64), array_at(state, TURNED, np.uint64)
    touched, entered = array_at(state, TOUCHED, np.int32), array_at(state, ENTERED, np.int32)
    slot_masks, slots = array_at(state, SLOT_MASKS, np.uint64), array_at(state, SLOTS, np.int32)
    codes = table_at(state, BLOCK_CODES, np.int32, BLOCK)
    n_events = stop - start
    everyone = ~_ZERO >> uint64(BLOCK - n_events)
    n_entered = _enter_keys(mill, state, scratch, start, stop)
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
    for t in range(n_touched):
        word = int64(touched[t])
        first = BLOCK * word
        _turn(masks[first : first + BLOCK], turned)
        bits = access_words[word]
        while bits != _ZERO:
            s = first + trailing_zeros(bits)
            bits &= bits - _ONE
            events = masks[s] & everyone
            if events != _ZERO:
                n = _visit(slot_places, slot_masks, slots, n, sizes[GROUP_START] + s, events)
    for p in range(len(pairs)):
        for e in range(n_events):
            a, b = int64(codes[pairs[p, 0], e]), int64(codes[pairs[p, 1], e])
            if a > 0 and b > 0:
                slot = pairs[p, 2] + a * pairs[p, 3] + b
                n = _visit(slot_places, slot_masks, slots, n, slot, _ONE << uint64(e))
    n = _visit_absent(mill, state, everyone, n)
    n = _visit(slot_places, slot_masks, slots, n, sizes[N_SLOTS] - 1, everyone)
    return n, n_touched, n_entered


@kernel
def _leave(mill: Any, state: Any, n_slots: int, n_touched: int, n_entered: int) -> None:
    fields = table_at(mill, DIMENSIONS, np.int64, N_FIELDS)
    default_truth = array_at(mill, DEFAULT_TRUTH, np.uint64)
    defaults = array_at(mill, DEFAULT_VALUES, np.int32)
    masks, present = array_at(state, MASKS, np.uint64), array_at(state, PRESENT, np.uint64)
    is_touched = array_at(state, IS_TOUCHED, np.uint8)
    touched, entered = array_at(state, TOUCHED, np.int32), array_at(state, ENTERED, np.int32)
    slot_masks, slots = array_at(state, SLOT_MASKS, np.uint64), array_at(state, SLOTS, np.int32)
    values = table_at(state, BLOCK_VALUES, np.int32, BLOCK)
    codes = table_at(state, BLOCK_CODES, np.int32, BLOCK)
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


@kernel
def _left_by_privates(
    sizes: np.ndarray,
    words: np.ndarray,
    pool: np.ndarray,
    start: int,
    stop: int,
    values: np.ndarray,
    codes: np.ndarray,
    events: Any,
) -> Any:
    """Which of the events satisfy the private tests words[start:stop] (`privates.py`)."""
    n_masks = uint64(sizes[N_MASKS])
    first_interval = n_masks + uint64(sizes[N_POINTS])
    k = uint64(start)
    while k < uint64(stop) and events != _ZERO:
        test = words[k]
        column = test >> _COLUMN
        k += _ONE
        left, rest = _ZERO, events
        if column < n_masks:
            while rest != _ZERO:
                event = uint64(trailing_zeros(rest))
                rest &= rest - _ONE
                left |= ((test >> uint64(values[column, event])) & _ONE) << event
        elif column < first_interval:
            while rest != _ZERO:
                event = uint64(trailing_zeros(rest))
                rest &= rest - _ONE
                value = uint64(values[column, event])
                left |= uint64(has_point(test, value) != _ZERO) << event
                if rest == _ZERO and (test >> uint64(MORE_BIT)) & _ONE != _ZERO:
                    test = words[k]
                    k += _ONE
                    rest = events
            if (test >> uint64(EXCEPTION_BIT)) & _ONE != _ZERO:
                left ^= events
        elif column == uint64(GENERAL):
            d, place, n = general_test(test, words[k])
            k += _ONE
            while rest != _ZERO:
                event = uint64(trailing_zeros(rest))
                rest &= rest - _ONE
                code = max(int64(0), int64(codes[d, event]))
                left |= uint64(in_pool(pool, place, n, code)) << event
        else:
            low, high = test & CODE_MASK, (test >> uint64(CODE_BITS)) & CODE_MASK
            while rest != _ZERO:
                event = uint64(trailing_zeros(rest))
                rest &= rest - _ONE
                value = uint64(values[column, event])
                left |= (uint64(low <= value) & uint64(value <= high)) << event
        events = left
    return events


@kernel
def _walk(mill: Any, state: Any, n_slots: int, width: int) -> int:
    """Append the ids of all entries that hold to the rows of their events; returns how many were
    looked at. Ids beyond a row's width are counted only."""
    sizes, words = array_at(mill, SIZES, np.int64), array_at(mill, WORDS, np.uint64)
    ids, tests = array_at(mill, IDS, np.uint32), array_at(mill, TESTS, np.uint16)
    pool, slot_places = array_at(mill, POOL, np.int32), array_at(mill, SLOT_PLACES, np.int64)
    masks = array_at(state, MASKS, np.uint64)
    slot_masks, slots = array_at(state, SLOT_MASKS, np.uint64), array_at(state, SLOTS, np.int32)
    values = table_at(state, BLOCK_VALUES, np.int32, BLOCK)
    codes = table_at(state, BLOCK_CODES, np.int32, BLOCK)
    left, left_masks = array_at(state, LEFT, np.int64), array_at(state, LEFT_MASKS, np.uint64)
    out = table_at(state, FOUND, np.int32, width)
    out_counts = array_at(state, FOUND_COUNTS, np.int64)
    last = uint64(width - 1)
    dictionary_at = _ZERO  # of the slot at hand
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
            n_tests = int64((header >> uint64(23)) & uint64(MOST_TESTS))
            n_privates = int64((header >> _ONE) & uint64(0xFFFFF))
            is_folded = (header >> uint64(FOLDED_BIT)) & _ONE != _ZERO
            if is_folded and n == 0:
                dictionary_at = uint64(4 * (place + 1))
                place += 1 + ((n_tests + 3) >> 2)
                continue
            n_seen += n
            mask_at = place + 1
            if is_folded:
                place += n
            test_at = uint64(4 * (place + 1))
            id_at = (int64(test_at) + n * n_tests + 1) >> 1
            private_at = (id_at + n + 1) >> 1
            place = private_at + n * n_privates
            step = uint64(n_tests)
            skipped = uint64(n_tests > 0)  # the first test, done before
            e = 0
            while e < n:
                # First tests: of which entries of this stretch some event is left.
                stop_at = min(n, e + _STRETCH)
                n_left = 0
                k = test_at + uint64(e) * step
                while e < stop_at:
                    events = visitors
                    if n_tests > 0:
                        events &= masks[tests[k]]
                    elif is_folded:
                        needed = words[mask_at + e]
                        while needed != _ZERO:
                            t = dictionary_at + uint64(trailing_zeros(needed))
                            events &= masks[tests[t]]
                            needed &= needed - _ONE
                    left[uint64(n_left)] = e
                    left_masks[uint64(n_left)] = events
                    n_left += int64(events != _ZERO)
                    k += step
                    e += 1
                # All other tests of those.
                n_last = n_left
                n_left = 0
                for j in range(n_last):
                    entry = left[uint64(j)]
                    events = left_masks[uint64(j)]
                    k = test_at + uint64(entry) * step
                    for t in range(k + skipped, k + step):
                        events &= masks[tests[t]]
                    left[uint64(n_left)] = entry
                    left_masks[uint64(n_left)] = events
                    n_left += int64(events != _ZERO)
                for j in range(n_left):
                    entry = left[uint64(j)]
                    events = left_masks[uint64(j)]
                    if n_privates > 0:
                        k = private_at + entry * n_privates
                        events = _left_by_privates(
                            sizes, words, pool, k, k + n_privates, values, codes, events
                        )
                    clause = int64(ids[id_at + entry])
                    while events != _ZERO:
                        event = uint64(trailing_zeros(events))
                        events &= events - _ONE
                        at = uint64(out_counts[event])
                        out[event, min(at, last)] = clause
                        out_counts[event] = at + _ONE
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
    n_slots, n_touched, n_entered = _enter(mill, state, scratch, start, stop)
    n_seen = _walk(mill, state, n_slots, width)
    _leave(mill, state, n_slots, n_touched, n_entered)
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
