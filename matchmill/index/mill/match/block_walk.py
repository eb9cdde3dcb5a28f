"""Matching 64 events at a time: the walk over all slots that they visit.

The blocks are those of `single_walk.py`, and each is read once for all events that visit it. That
pays where events visit the same slots, for which `batch_order.py` sorts them; where they have
little in common, one at a time is quicker. Tests are done in steps without branches: first tests
of a stretch of entries, then all others of those of which some event is left. Ids are gathered
event by event in rows of one width.

Kernels get the addresses of the index's arrays, `mill`, of BlockState, `state`, and of EventState,
`events`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchmill.index.mill.arrays import (
    N_MASKS,
    N_POINTS,
    ids_of,
    pool_of,
    sizes_of,
    slot_places_of,
    tests_of,
    words_of,
)
from matchmill.index.mill.match.block import (
    BLOCK,
    block_codes_of,
    block_values_of,
    enter_events,
    found_counts_of,
    found_of,
    leave_events,
    left_masks_of,
    left_of,
    masks_of,
    slot_masks_of,
    slots_of,
)
from matchmill.index.mill.match.event_state import STRETCH, out_of, out_offsets_of
from matchmill.index.mill.match.inline_tests import has_point, in_interval, in_pool
from matchmill.index.mill.words import (
    GENERAL,
    block_at,
    column_of,
    general_test,
    has_more,
    is_exception,
    slot_length,
    slot_start,
)
from matchmill.kernels.addresses import borrowed
from matchmill.kernels.intrinsics import prefetch, trailing_zeros
from matchmill.kernels.jit import int64, kernel, uint64

__all__ = ["match_block"]

_AHEAD = 6  # slots that are being loaded
_LOADED = 128  # words of a slot that are loaded in advance, at most
_ZERO, _ONE = uint64(0), uint64(1)


@kernel
def _events_left(
    sizes: np.ndarray,
    words: np.ndarray,
    pool: np.ndarray,
    start: int,
    stop: int,
    values: np.ndarray,
    codes: np.ndarray,
    events: Any,
) -> Any:
    """Return those of the events that satisfy the inline tests words[start:stop]."""
    n_masks = uint64(sizes[N_MASKS])
    first_interval = n_masks + uint64(sizes[N_POINTS])
    k = uint64(start)
    while k < uint64(stop) and events != _ZERO:
        test = words[k]
        column = column_of(test)
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
                left |= has_point(test, uint64(values[column, event])) << event
                if rest == _ZERO and has_more(test) != _ZERO:
                    test = words[k]
                    k += _ONE
                    rest = events
            if is_exception(test) != _ZERO:
                left ^= events
        elif column == uint64(GENERAL):
            d, first, n = general_test(test, words[k])
            k += _ONE
            while rest != _ZERO:
                event = uint64(trailing_zeros(rest))
                rest &= rest - _ONE
                code = max(int64(0), int64(codes[d, event]))
                left |= uint64(in_pool(pool, first, n, code)) << event
        else:
            while rest != _ZERO:
                event = uint64(trailing_zeros(rest))
                rest &= rest - _ONE
                left |= in_interval(test, uint64(values[column, event])) << event
        events = left
    return events


@kernel
def _walk_slots(mill: Any, state: Any, n_slots: int, width: int) -> int:
    """Append the ids of all entries that hold to the rows of their events.

    Return how many were looked at. Ids beyond a row's width are counted only.
    """
    sizes, words, ids, tests = sizes_of(mill), words_of(mill), ids_of(mill), tests_of(mill)
    pool, slot_places = pool_of(mill), slot_places_of(mill)
    masks, slot_masks, slots = masks_of(state), slot_masks_of(state), slots_of(state)
    values, codes = block_values_of(state), block_codes_of(state)
    left, left_masks = left_of(state), left_masks_of(state)
    out, out_counts = found_of(state), found_counts_of(state)
    row, last = uint64(width), uint64(width - 1)
    dictionary_at = _ZERO  # of the slot at hand
    n_seen = 0
    for i in range(n_slots):
        if i + _AHEAD < n_slots:
            place = slot_places[slots[i + _AHEAD]]
            start = slot_start(place)
            for k in range(start, start + min(slot_length(place), _LOADED), 8):
                prefetch(words, k)
        visitors = slot_masks[slots[i]]
        block_start = slot_start(slot_places[slots[i]])
        follows = True
        while follows:
            block = block_at(words, block_start)
            follows = block.follows
            block_start = block.end
            n = block.n_entries
            if n == 0:
                dictionary_at = uint64(block.tests_at)
                continue
            n_seen += n
            tests_at, step = uint64(block.tests_at), uint64(block.n_tests)
            skipped = uint64(block.n_tests > 0)  # the first test, done before
            e = 0
            while e < n:
                # First tests: of which entries of this stretch some event is left.
                stop_at = min(n, e + STRETCH)
                n_left = 0
                k = tests_at + uint64(e) * step
                while e < stop_at:
                    events = visitors
                    if block.n_tests > 0:
                        events &= masks[tests[k]]
                    elif block.uses_dictionary:
                        needed = words[block.masks_at + e]
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
                    k = tests_at + uint64(entry) * step
                    for t in range(k + skipped, k + step):
                        events &= masks[tests[t]]
                    left[uint64(n_left)] = entry
                    left_masks[uint64(n_left)] = events
                    n_left += int64(events != _ZERO)
                for j in range(n_left):
                    entry = left[uint64(j)]
                    events = left_masks[uint64(j)]
                    if block.n_inline > 0:
                        first = block.inline_at + entry * block.n_inline
                        stop = first + block.n_inline
                        events = _events_left(
                            sizes, words, pool, first, stop, values, codes, events
                        )
                    clause = int64(ids[block.ids_at + entry])
                    while events != _ZERO:
                        event = uint64(trailing_zeros(events))
                        events &= events - _ONE
                        at = uint64(out_counts[event])
                        out[event * row + min(at, last)] = clause
                        out_counts[event] = at + _ONE
    return n_seen


@kernel
def match_block(mill: Any, state: Any, events: Any, start: int, stop: int) -> tuple[int, int, int]:
    """Match at most 64 events and append what was found.

    Return (the most ids of an event, all ids, entries looked at). Appends nothing if there is no
    room, in `found` or in `out`.
    """
    mill, state, events = borrowed(mill), borrowed(state), borrowed(events)
    counts, found = found_counts_of(state), found_of(state)
    out_offsets, out = out_offsets_of(events), out_of(events)
    width = len(found) // BLOCK
    for e in range(len(counts)):
        counts[e] = 0
    n_slots, n_touched, n_entered = enter_events(mill, state, events, start, stop)
    n_seen = _walk_slots(mill, state, n_slots, width)
    leave_events(mill, state, n_slots, n_touched, n_entered)
    most, total = int64(0), int64(0)
    for e in range(len(counts)):
        most = max(most, counts[e])
        total += counts[e]
    at = out_offsets[start]
    if most <= width and at + total <= len(out):
        for e in range(stop - start):
            for k in range(counts[e]):
                out[at] = found[e * width + k]
                at += 1
            out_offsets[start + e + 1] = at
    return most, total, n_seen
