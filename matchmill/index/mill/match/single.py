"""Matching one event at a time.

1  each pair: its code; its row into the truth table, its values into the columns; the slots
   of its nodes and groups into a list
2  the slots of dimensions that the event lacks and that matter then; the slot of all events
3  each slot of the list: its blocks, entry by entry, leaving an entry at its first test if
   that fails, which is the most likely to; the next slots are being loaded meanwhile, and
   what the next two events are looked up in
4  the truth table and the columns back to those of the empty event

Kernels get the places of the index's arrays, `mill`, and those of `EventState`, `state`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchmill.encoding.event_batch import EventBatch
from matchmill.index.mill.arrays import (
    ABSENT_DIMENSIONS,
    ACCESS_WORDS,
    BELOW_KEY,
    DEFAULT_ROW,
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
    INLINE,
    MASKS,
    MORE_BIT,
    has_point,
    private_holds,
)
from matchmill.index.mill.build.slot_dictionaries import missing_tests
from matchmill.index.predicate_codes import code_of
from matchmill.kernels.intrinsics import array_at, prefetch, table_at, trailing_zeros
from matchmill.kernels.jit import int64, kernel, uint64

__all__ = ["EventState", "enter_event", "leave_event", "match_events", "new_state"]

_AHEAD = 3
_STRETCH = 256  # entries of a block that are looked at in one go
_MOST_LEVELS = 64  # of a dimension
_LOADED = 512  # words of a slot that are asked for
_ONE, _TWO, _THREE, _FOUR, _EIGHT, _COLUMN = (uint64(n) for n in (1, 2, 3, 4, 8, 48))
_LOW_SIX, _LOW_EIGHT = uint64(63), uint64(255)
# Eight bits as eight bytes.
_SPREAD = (
    np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    .view(np.uint64)[:, 0]
    .copy()
)

# Numbers of the arrays of EventState among their places.
TRUTH, VALUES, CODES, VISITS, LEFT, EVENT_OFFSETS, EVENT_DIMENSIONS, EVENT_KEYS = range(8)
OUT_OFFSETS, OUT, TRUTH_WORDS = range(8, 11)


class EventState(NamedTuple):
    """Scratch of one thread: what is known of the event at hand; the events; what was found."""

    truth: np.ndarray  # uint8, one a shared predicate: whether it holds
    values: np.ndarray  # int32, one a column
    codes: np.ndarray  # int32, one a dimension
    visits: np.ndarray  # int64: slot_places of the slots to visit
    left: np.ndarray  # int64: entries whose first test holds
    event_offsets: np.ndarray  # int64
    event_dimensions: np.ndarray  # int32
    event_keys: np.ndarray  # int64
    out_offsets: np.ndarray  # int64
    out: np.ndarray  # int32
    truth_words: np.ndarray  # uint64: eight a word of bits; the same memory as `truth`


def new_state(
    mill: MillArrays, events: EventBatch, out_offsets: np.ndarray, out: np.ndarray
) -> EventState:
    most_words = int(mill.dimensions[:, N_WORDS].max(initial=0))
    truth = np.unpackbits(mill.default_truth.view(np.uint8), bitorder="little")
    return EventState(
        truth,
        mill.default_values.copy(),
        np.full(len(mill.dimensions), -1, np.int32),
        np.empty(1024 + _MOST_LEVELS + 64 * most_words, np.int64),
        np.empty(_STRETCH, np.int64),
        # Kernels know these by address alone.
        np.ascontiguousarray(events.offsets, np.int64),
        np.ascontiguousarray(events.dimensions, np.int32),
        np.ascontiguousarray(events.keys, np.int64),
        out_offsets,
        out,
        truth.view(np.uint64),
    )


@kernel
def _flip_row(
    truth_words: np.ndarray, rows: np.ndarray, row: int, default: int, word: int, n_words: int
) -> None:
    """A row into the truth table, in place of the default, or out of it again."""
    for w in range(n_words):
        bits = rows[row + w]
        if default >= 0:
            bits ^= rows[default + w]
        at = uint64(word + w) << _THREE
        if bits != 0:
            for _ in range(8):
                truth_words[at] ^= _SPREAD[bits & _LOW_EIGHT]
                bits >>= _EIGHT
                at += _ONE


@kernel
def _add_slot(
    slot_places: np.ndarray, words: np.ndarray, places: np.ndarray, n: int, slot: int
) -> int:
    place = slot_places[slot]
    if place > 0:
        if n < len(places):
            places[n] = place
            prefetch(words, place >> 24)
        n += 1
    return n


@kernel
def _add_groups(
    rows: np.ndarray,
    access_words: np.ndarray,
    slot_places: np.ndarray,
    words: np.ndarray,
    places: np.ndarray,
    n: int,
    row: int,
    word: int,
    n_words: int,
    group_start: int,
) -> int:
    """The groups of the shared predicates that hold in a row; none of them is empty."""
    for w in range(n_words):
        bits = rows[row + w] & access_words[word + w]
        first = group_start + ((word + w) << 6)
        while bits != 0:
            place = slot_places[first + trailing_zeros(bits)]
            places[uint64(n)] = place
            prefetch(words, place >> 24)
            n += 1
            bits &= bits - uint64(1)
    return n


@kernel
def enter_event(mill: Any, state: Any, first_pair: int, last_pair: int) -> int:
    """Take in all pairs of an event; returns the number of slots, or if there may be no room for
    them, how many there can be."""
    sizes, fields = array_at(mill, SIZES, np.int64), table_at(mill, DIMENSIONS, np.int64, N_FIELDS)
    edges, ranks = array_at(mill, EDGES, np.int64), array_at(mill, RANKS, np.uint8)
    row_of_code, rows = array_at(mill, ROW_OF_CODE, np.int32), array_at(mill, ROWS, np.uint64)
    access_words = array_at(mill, ACCESS_WORDS, np.uint64)
    slot_places, words = array_at(mill, SLOT_PLACES, np.int64), array_at(mill, WORDS, np.uint64)
    pairs = table_at(mill, PAIRS, np.int64, PAIR_WIDTH)
    absent_dimensions = array_at(mill, ABSENT_DIMENSIONS, np.int32)
    dimensions = array_at(state, EVENT_DIMENSIONS, np.int32)
    keys = array_at(state, EVENT_KEYS, np.int64)
    truth_words = array_at(state, TRUTH_WORDS, np.uint64)
    values = array_at(state, VALUES, np.int32)
    codes, places = array_at(state, CODES, np.int32), array_at(state, VISITS, np.int64)
    half_rows = table_at(mill, DIMENSIONS, np.int64, N_FIELDS // 2)
    group_start = sizes[GROUP_START]
    n = int64(0)
    # In stages, so that the memory of all pairs is being loaded at the same time.
    for k in range(first_pair, last_pair):
        prefetch(half_rows, 2 * int64(dimensions[k]))
        prefetch(half_rows, 2 * int64(dimensions[k]) + 1)
    for k in range(first_pair, last_pair):
        d = int64(dimensions[k])
        if d < len(fields) and fields[d, LAST_KEY] < fields[d, BELOW_KEY]:
            prefetch(edges, (fields[d, EDGE_START] + fields[d, EDGE_STOP]) >> 1)
    for k in range(first_pair, last_pair):
        d = int64(dimensions[k])
        if d < len(fields):
            below, last_key = fields[d, BELOW_KEY], fields[d, LAST_KEY]
            code = min(max(keys[k], below), last_key) - below
            if last_key < below:
                code = code_of(edges, fields[d, EDGE_START], fields[d, EDGE_STOP], keys[k])
            codes[d] = code
            prefetch(slot_places, fields[d, NODE_START] + code)
            prefetch(row_of_code, max(int64(0), fields[d, ROW_START]) + code)
            prefetch(ranks, max(int64(0), fields[d, RANK_START]) + code)
    for k in range(first_pair, last_pair):
        d = int64(dimensions[k])
        if d < len(fields) and fields[d, ROW_START] >= 0:
            prefetch(rows, row_of_code[fields[d, ROW_START] + codes[d]])
    for k in range(first_pair, last_pair):
        d = int64(dimensions[k])
        if d >= len(fields):
            continue
        code = int64(codes[d])
        if fields[d, FIRST_COLUMN] >= 0:
            values[fields[d, FIRST_COLUMN]] = code
            if fields[d, RANK_START] >= 0:
                values[fields[d, FIRST_COLUMN]] = ranks[fields[d, RANK_START] + code]
            if fields[d, SECOND_COLUMN] >= 0:
                values[fields[d, SECOND_COLUMN]] = code
        most = _MOST_LEVELS + (fields[d, N_WORDS] << 6)
        has_room = n + most <= len(places)
        levels = fields[d, USED_LEVELS]
        if levels != 0 and has_room:
            slot = fields[d, NODE_START]
            place = slot_places[slot + code]
            places[uint64(n)] = place
            prefetch(words, place >> 24)
            n += int64(place > 0)
            last_code = fields[d, EDGE_STOP] - fields[d, EDGE_START]
            level = 0
            levels = levels >> 1 if code > 0 else 0
            while levels != 0:
                slot += (last_code >> level) + 1
                level += 1
                if levels & 1:
                    place = slot_places[slot + (code >> level)]
                    places[uint64(n)] = place
                    prefetch(words, place >> 24)
                    n += int64(place > 0)
                levels >>= 1
        if fields[d, ROW_START] >= 0:
            row = int64(row_of_code[fields[d, ROW_START] + code])
            word, n_words = fields[d, FIRST_WORD], fields[d, N_WORDS]
            _flip_row(truth_words, rows, row, fields[d, DEFAULT_ROW], word, n_words)
            if has_room:
                n = _add_groups(
                    rows,
                    access_words,
                    slot_places,
                    words,
                    places,
                    n,
                    row,
                    word,
                    n_words,
                    group_start,
                )
        if not has_room:
            n = max(n, len(places)) + most
    for p in range(len(pairs)):
        a, b = int64(codes[pairs[p, 0]]), int64(codes[pairs[p, 1]])
        if a > 0 and b > 0:
            slot = pairs[p, 2] + a * pairs[p, 3] + b
            n = _add_slot(slot_places, words, places, n, slot)
    for d in absent_dimensions:
        if codes[d] < 0:
            if fields[d, USED_LEVELS] != 0:
                n = _add_slot(slot_places, words, places, n, fields[d, NODE_START])
            row = fields[d, DEFAULT_ROW]
            word, n_words = fields[d, FIRST_WORD], fields[d, N_WORDS]
            if row >= 0 and n + (n_words << 6) > len(places):
                n = max(n, len(places)) + (n_words << 6)
            elif row >= 0:
                n = _add_groups(
                    rows,
                    access_words,
                    slot_places,
                    words,
                    places,
                    n,
                    row,
                    word,
                    n_words,
                    group_start,
                )
    return _add_slot(slot_places, words, places, n, sizes[N_SLOTS] - 1)


@kernel
def leave_event(mill: Any, state: Any, first_pair: int, last_pair: int) -> None:
    """Back to the empty event."""
    fields = table_at(mill, DIMENSIONS, np.int64, N_FIELDS)
    row_of_code, rows = array_at(mill, ROW_OF_CODE, np.int32), array_at(mill, ROWS, np.uint64)
    defaults = array_at(mill, DEFAULT_VALUES, np.int32)
    dimensions = array_at(state, EVENT_DIMENSIONS, np.int32)
    truth_words = array_at(state, TRUTH_WORDS, np.uint64)
    values = array_at(state, VALUES, np.int32)
    codes = array_at(state, CODES, np.int32)
    for k in range(first_pair, last_pair):
        d = int64(dimensions[k])
        if d >= len(fields):
            continue
        if fields[d, ROW_START] >= 0:
            row = int64(row_of_code[fields[d, ROW_START] + codes[d]])
            default, word = fields[d, DEFAULT_ROW], fields[d, FIRST_WORD]
            _flip_row(truth_words, rows, row, default, word, fields[d, N_WORDS])
        if fields[d, FIRST_COLUMN] >= 0:
            values[fields[d, FIRST_COLUMN]] = defaults[fields[d, FIRST_COLUMN]]
            if fields[d, SECOND_COLUMN] >= 0:
                values[fields[d, SECOND_COLUMN]] = defaults[fields[d, SECOND_COLUMN]]
        codes[d] = -1


@kernel
def _holds(truth: np.ndarray, test: Any) -> Any:
    """1 if a shared predicate holds, else 0."""
    return uint64(truth[uint64(test)])


@kernel
def _four_hold(truth: np.ndarray, tests: np.ndarray, k: Any) -> Any:
    first = _holds(truth, tests[k]) & _holds(truth, tests[k + _ONE])
    return first & _holds(truth, tests[k + _TWO]) & _holds(truth, tests[k + _TWO + _ONE])


@kernel
def _word_holds(test: Any, value: Any, found: Any, n_masks: Any, first_interval: Any) -> Any:
    """Whether one word of private tests holds, in the lowest bit, and what is to be known for the
    next one: whether the value was among the points so far.

    The word is taken for a mask, for points and for an interval, and what it is decides which of
    the three counts: no branch, no guess."""
    column = test >> _COLUMN
    is_mask, is_interval = uint64(column < n_masks), uint64(column >= first_interval)
    is_points = (is_mask | is_interval) ^ _ONE
    low, high = test & CODE_MASK, (test >> uint64(CODE_BITS)) & CODE_MASK
    by_interval = uint64(low <= value) & uint64(value <= high)
    by_mask = test >> (value & _LOW_SIX)
    found |= uint64(has_point(test, value) != 0)
    by_points = found ^ (test >> uint64(EXCEPTION_BIT))
    more = is_points & (test >> uint64(MORE_BIT))
    holds = (by_mask & is_mask) | (by_interval & is_interval) | (by_points & is_points)
    return holds | more, found & more


@kernel
def _walk(mill: Any, state: Any, n_slots: int, n_out: int) -> tuple[int, int]:
    """All entries of the slots in the list; returns (ids written, entries looked at).

    If there is no room for a block's entries, the first number is beyond it."""
    sizes, words = array_at(mill, SIZES, np.int64), array_at(mill, WORDS, np.uint64)
    ids, tests = array_at(mill, IDS, np.uint32), array_at(mill, TESTS, np.uint16)
    pool = array_at(mill, POOL, np.int32)
    truth, values = array_at(state, TRUTH, np.uint8), array_at(state, VALUES, np.int32)
    codes, places = array_at(state, CODES, np.int32), array_at(state, VISITS, np.int64)
    left, out = array_at(state, LEFT, np.int64), array_at(state, OUT, np.int32)
    n_masks = uint64(sizes[N_MASKS])
    first_interval = n_masks + uint64(sizes[N_POINTS])
    missing = uint64(0)  # tests of the slot's dictionary that do not hold
    n_seen = 0
    for i in range(n_slots):
        if i + _AHEAD < n_slots:
            start = places[i + _AHEAD] >> 24
            length = min(places[i + _AHEAD] & 0xFFFFFF, _LOADED)
            for k in range(start + 8, start + length, 8):
                prefetch(words, k)
        place = places[i] >> 24
        follows = True
        while follows:
            header = words[place]
            follows = header & _ONE != 0
            n = int64(header >> uint64(40))
            n_tests = int64((header >> uint64(23)) & uint64(MOST_TESTS))
            n_privates = int64((header >> uint64(1)) & uint64(0xFFFFF))
            kind = (header >> uint64(21)) & uint64(3)
            is_folded = (header >> uint64(FOLDED_BIT)) & _ONE != 0
            if is_folded and n == 0:
                missing = missing_tests(truth, tests, 4 * (place + 1), n_tests)
                place += 1 + ((n_tests + 3) >> 2)
                continue
            n_seen += n
            if n_out + n >= len(out):
                return len(out) + 1, n_seen
            mask_at = place + 1
            if is_folded:
                place += n
            test_at = uint64(4 * (place + 1))
            id_at = (int64(test_at) + n * n_tests + 1) >> 1
            private_at = (id_at + n + 1) >> 1
            place = private_at + n * n_privates
            step = uint64(n_tests)
            skipped = uint64(n_tests > 0)  # the first test, done before
            n_rest = step - skipped
            e = 0
            while e < n:
                # First tests: which entries of this stretch are left. No branch, no guess.
                stop_at = min(n, e + _STRETCH)
                n_left = 0
                k = test_at + uint64(e) * step
                if is_folded:
                    while e < stop_at:
                        left[uint64(n_left)] = e
                        n_left += int64(words[uint64(mask_at + e)] & missing == 0)
                        e += 1
                elif n_tests == 0:
                    while e < stop_at:
                        left[uint64(n_left)] = e
                        n_left += 1
                        e += 1
                while e < stop_at:
                    t = uint64(tests[k])
                    left[uint64(n_left)] = e
                    n_left += int64(truth[t])
                    k += step
                    e += 1
                # All other tests of those.
                for j in range(n_left):
                    entry = uint64(left[uint64(j)])
                    k = test_at + entry * step + skipped
                    ok = _ONE
                    for _ in range(n_rest >> _TWO):
                        ok &= _four_hold(truth, tests, k)
                        k += _FOUR
                    if n_rest & _TWO != 0:
                        ok &= _holds(truth, tests[k]) & _holds(truth, tests[k + _ONE])
                        k += _TWO
                    if n_rest & _ONE != 0:
                        ok &= _holds(truth, tests[k])
                    k = uint64(private_at) + entry * uint64(n_privates)
                    stop = k + uint64(n_privates)
                    if kind == uint64(MASKS):
                        while k < stop:
                            ok &= words[k] >> uint64(values[words[k] >> _COLUMN])
                            k += _ONE
                    elif kind == uint64(INLINE):
                        found = uint64(0)
                        while k < stop:
                            value = uint64(values[words[k] >> _COLUMN])
                            holds, found = _word_holds(
                                words[k], value, found, n_masks, first_interval
                            )
                            ok &= holds
                            k += _ONE
                    elif ok & _ONE != 0:
                        ok = uint64(
                            private_holds(
                                sizes[N_MASKS],
                                sizes[N_POINTS],
                                words,
                                pool,
                                int64(k),
                                int64(stop),
                                values,
                                codes,
                            )
                        )
                    out[uint64(n_out)] = ids[uint64(id_at) + entry]
                    n_out += int64(ok & _ONE)
    return n_out, n_seen


@kernel
def _load_fields(mill: Any, state: Any, first_pair: int, last_pair: int) -> None:
    """Ask for the dimensions of an event to come."""
    dimensions = array_at(state, EVENT_DIMENSIONS, np.int32)
    half_rows = table_at(mill, DIMENSIONS, np.int64, N_FIELDS // 2)
    for k in range(first_pair, last_pair):
        prefetch(half_rows, 2 * int64(dimensions[k]))
        prefetch(half_rows, 2 * int64(dimensions[k]) + 1)


@kernel
def _load_codes(mill: Any, state: Any, first_pair: int, last_pair: int) -> None:
    """Ask for what belongs to the codes of an event to come, whose dimensions are there."""
    dimensions = array_at(state, EVENT_DIMENSIONS, np.int32)
    keys = array_at(state, EVENT_KEYS, np.int64)
    fields = table_at(mill, DIMENSIONS, np.int64, N_FIELDS)
    edges, ranks = array_at(mill, EDGES, np.int64), array_at(mill, RANKS, np.uint8)
    row_of_code = array_at(mill, ROW_OF_CODE, np.int32)
    slot_places = array_at(mill, SLOT_PLACES, np.int64)
    for k in range(first_pair, last_pair):
        d = int64(dimensions[k])
        if d < len(fields):
            below, last_key = fields[d, BELOW_KEY], fields[d, LAST_KEY]
            code = min(max(keys[k], below), last_key) - below
            if last_key < below:
                prefetch(edges, (fields[d, EDGE_START] + fields[d, EDGE_STOP]) >> 1)
            else:
                prefetch(slot_places, fields[d, NODE_START] + code)
                prefetch(row_of_code, max(int64(0), fields[d, ROW_START]) + code)
                prefetch(ranks, max(int64(0), fields[d, RANK_START]) + code)


@kernel
def match_events(
    mill: Any, state: Any, pairs: bytes, start: int, stop: int
) -> tuple[int, int, int]:
    """Matches events from `start` to `stop`; returns (the first one for which there was no room,
    slots that it visits, entries looked at).

    Unless `pairs` is empty, it becomes event 0: 64-bit integers dimension, key, dimension, key, …
    """
    offsets = array_at(state, EVENT_OFFSETS, np.int64)
    out_offsets, out = array_at(state, OUT_OFFSETS, np.int64), array_at(state, OUT, np.int32)
    n_visits = len(array_at(state, VISITS, np.int64))
    if len(pairs) > 0:
        offsets[1] = len(pairs) >> 4
        dimensions = array_at(state, EVENT_DIMENSIONS, np.int32)
        keys = array_at(state, EVENT_KEYS, np.int64)
        numbers = np.frombuffer(pairs, np.int64)
        for k in range(offsets[1]):
            dimensions[k] = numbers[2 * k]
            keys[k] = numbers[2 * k + 1]
    n_out = out_offsets[start]
    n_seen = 0
    n_slots = 0
    for e in range(start, stop):
        n_slots = enter_event(mill, state, offsets[e], offsets[e + 1])
        n_after = len(out) + 1
        if e + 2 < stop:
            _load_fields(mill, state, offsets[e + 2], offsets[e + 3])
        if e + 1 < stop:
            _load_codes(mill, state, offsets[e + 1], offsets[e + 2])
        if n_slots <= n_visits:
            n_after, seen = _walk(mill, state, n_slots, n_out)
            n_seen += seen if n_after <= len(out) else 0
        leave_event(mill, state, offsets[e], offsets[e + 1])
        if n_after > len(out):
            return e, n_slots, n_seen
        n_out = n_after
        out_offsets[e + 1] = n_out
    return stop, n_slots, n_seen
