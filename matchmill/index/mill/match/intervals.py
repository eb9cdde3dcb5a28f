"""Matching events that allow intervals of keys (`encoding/event_batch.py`).

    ranges of dimension d    codes range_lows[k] … range_highs[k] for k in range_spans[d, 0] …
                             range_spans[d, 1]; the first range of all is that of absence, code 0

The same arrays as for ordinary events. A shared predicate holds if it does in the row of some
code; the slots of all codes are visited, so that a clause may be found more than once, and is
counted once; inline tests look for a code that the event allows. Made to be right before quick.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchmill.encoding.event_batch import IntervalEvents
from matchmill.index.mill.arrays import (
    DEFAULT_ROW,
    FIRST_COLUMN,
    FIRST_WORD,
    GROUP_START,
    N_MASKS,
    N_POINTS,
    N_SLOTS,
    N_WORDS,
    PAIR_FIRST,
    PAIR_SECOND,
    RANK_START,
    ROW_START,
    SECOND_COLUMN,
    USED_LEVELS,
    MillArrays,
)
from matchmill.index.mill.match.lookups import (
    MOST_LEVELS,
    code_of_key,
    find_levels,
    group_slot,
    pair_slot,
)
from matchmill.index.mill.words import (
    GENERAL,
    POINTS_PER_WORD,
    block_at,
    column_of,
    general_test,
    has_more,
    high_of,
    is_exception,
    level_number,
    level_start,
    low_of,
    point_of,
    slot_start,
)
from matchmill.kernels.intrinsics import trailing_zeros
from matchmill.kernels.jit import int64, kernel, uint64
from matchmill.kernels.sorting import sort_rows

__all__ = ["IntervalState", "match_interval_events", "new_interval_state"]

_ZERO, _ONE = uint64(0), uint64(1)


class IntervalState(NamedTuple):
    """Scratch of one thread."""

    truth: np.ndarray  # uint64
    range_spans: np.ndarray  # int64, two per dimension
    range_lows: np.ndarray  # int64
    range_highs: np.ndarray  # int64
    levels: np.ndarray  # int64
    slots: np.ndarray  # int64: the slots to visit, each once
    column_dimensions: np.ndarray  # int64, one per column
    found: np.ndarray  # int64


def new_interval_state(mill: MillArrays, events: IntervalEvents) -> IntervalState:
    """Return the state before the first event."""
    n_dimensions = len(mill.dimensions)
    spans = np.zeros((n_dimensions, 2), np.int64)
    spans[:, 1] = 1
    owners = np.zeros(len(mill.default_values), np.int64)
    for field in (FIRST_COLUMN, SECOND_COLUMN):
        owned = np.flatnonzero(mill.dimensions[:, field] >= 0)
        owners[mill.dimensions[owned, field]] = owned
    n_ranges = len(events.lows) + 1
    return IntervalState(
        mill.default_truth.copy(),
        spans,
        np.zeros(n_ranges, np.int64),
        np.zeros(n_ranges, np.int64),
        np.empty(MOST_LEVELS, np.int64),
        np.empty(int(mill.sizes[N_SLOTS]), np.int64),
        owners,
        np.empty(1024, np.int64),
    )


@kernel
def _add_nodes(mill: MillArrays, state: IntervalState, d: int, n_slots: int) -> int:
    """Append the nodes of all ranges of a dimension, each once; return the new number."""
    first_range, last_range = state.range_spans[d, 0], state.range_spans[d, 1]
    for i in range(find_levels(mill.dimensions, d, state.levels)):
        level, start = level_number(state.levels[i]), level_start(state.levels[i])
        following = int64(0)  # the first node that is not visited yet
        for k in range(first_range, last_range):
            low, high = state.range_lows[k], state.range_highs[k]
            if high == 0 and level > 0:  # code 0 visits level 0 only
                continue
            if level > 0:
                low = max(low, 1)
            for node in range(max(following, low >> level), (high >> level) + 1):
                if mill.slot_places[start + node] != 0:
                    state.slots[n_slots] = start + node
                    n_slots += 1
                following = node + 1
    return n_slots


@kernel
def _enter_ranges(
    mill: MillArrays, state: IntervalState, events: IntervalEvents, event: int
) -> None:
    """Take in the codes that an event allows, and the truth of shared predicates."""
    fields, rows, truth = mill.dimensions, mill.rows, state.truth
    range_lows, range_highs = state.range_lows, state.range_highs
    truth[:] = mill.default_truth
    n_ranges = 1
    for p in range(events.offsets[event], events.offsets[event + 1]):
        d = int64(events.dimensions[p])
        if d >= len(fields):
            continue
        first_range = n_ranges
        for k in range(events.interval_offsets[p], events.interval_offsets[p + 1]):
            low = code_of_key(fields, mill.edges, d, events.lows[k])
            high = code_of_key(fields, mill.edges, d, events.highs[k])
            if n_ranges > first_range and range_highs[n_ranges - 1] >= low:
                low = range_highs[n_ranges - 1] + 1  # a gap between two edges
            if low <= high:
                range_lows[n_ranges] = low
                range_highs[n_ranges] = high
                n_ranges += 1
        state.range_spans[d, 0] = first_range
        state.range_spans[d, 1] = n_ranges
        if fields[d, ROW_START] >= 0:
            word, default = fields[d, FIRST_WORD], fields[d, DEFAULT_ROW]
            for w in range(fields[d, N_WORDS]):
                if default >= 0:
                    truth[word + w] &= ~rows[default + w]
                for k in range(first_range, n_ranges):
                    for code in range(range_lows[k], range_highs[k] + 1):
                        row = int64(mill.row_of_code[fields[d, ROW_START] + code])
                        truth[word + w] |= rows[row + w]


@kernel
def _find_slots(mill: MillArrays, state: IntervalState, events: IntervalEvents, event: int) -> int:
    """Collect the slots that an event visits, each once; return how many."""
    fields, pairs, slot_places = mill.dimensions, mill.pairs, mill.slot_places
    spans, lows, highs = state.range_spans, state.range_lows, state.range_highs
    n_slots = 0
    for p in range(events.offsets[event], events.offsets[event + 1]):
        d = int64(events.dimensions[p])
        if d < len(fields) and fields[d, USED_LEVELS] != 0:
            n_slots = _add_nodes(mill, state, d, n_slots)
    for d in mill.absent_dimensions:
        if spans[d, 0] == 0 and fields[d, USED_LEVELS] != 0:
            n_slots = _add_nodes(mill, state, int64(d), n_slots)
    for p in range(len(pairs)):
        a, b = pairs[p, PAIR_FIRST], pairs[p, PAIR_SECOND]
        for i in range(spans[a, 0], spans[a, 1]):
            for one in range(max(1, lows[i]), highs[i] + 1):
                for j in range(spans[b, 0], spans[b, 1]):
                    for other in range(max(1, lows[j]), highs[j] + 1):
                        slot = pair_slot(pairs, p, one, other)
                        if slot_places[slot] != 0:
                            state.slots[n_slots] = slot
                            n_slots += 1
    for w in range(len(state.truth)):
        bits = state.truth[w] & mill.access_words[w]
        while bits != _ZERO:
            slot = group_slot(mill.sizes[GROUP_START], w) + trailing_zeros(bits)
            state.slots[n_slots] = slot
            n_slots += 1
            bits &= bits - _ONE
    last_slot = mill.sizes[N_SLOTS] - 1
    if slot_places[last_slot] != 0:
        state.slots[n_slots] = last_slot
        n_slots += 1
    return n_slots


@kernel
def _overlaps(state: IntervalState, d: int, low: int, high: int) -> bool:
    """Return whether the event allows some code of low … high on a dimension."""
    for k in range(state.range_spans[d, 0], state.range_spans[d, 1]):
        if state.range_lows[k] <= high and low <= state.range_highs[k]:
            return True
    return False


@kernel
def _mask_overlaps(mill: MillArrays, state: IntervalState, d: int, test: Any) -> bool:
    """Return whether the event allows some code that a mask accepts."""
    ranks = mill.dimensions[d, RANK_START]
    for k in range(state.range_spans[d, 0], state.range_spans[d, 1]):
        for code in range(state.range_lows[k], state.range_highs[k] + 1):
            if (test >> uint64(mill.ranks[ranks + code])) & _ONE != _ZERO:
                return True
    return False


@kernel
def _points_overlap(words: np.ndarray, state: IntervalState, d: int, first: int, stop: int) -> bool:
    """Return whether the event allows some code that words[first:stop] of points accept."""
    if is_exception(words[first]) == _ZERO:
        for at in range(first, stop):
            for i in range(POINTS_PER_WORD):
                code = point_of(words[at], i)
                if _overlaps(state, d, code, code):
                    return True
        return False
    for k in range(state.range_spans[d, 0], state.range_spans[d, 1]):
        for code in range(state.range_lows[k], state.range_highs[k] + 1):
            is_accepted = True
            for at in range(first, stop):
                for i in range(POINTS_PER_WORD):
                    is_accepted &= point_of(words[at], i) != code
            if is_accepted:
                return True
    return False


@kernel
def _inline_tests_hold(mill: MillArrays, state: IntervalState, start: int, stop: int) -> bool:
    """Return whether the event allows codes that satisfy the inline tests words[start:stop]."""
    words, n_masks, n_points = mill.words, mill.sizes[N_MASKS], mill.sizes[N_POINTS]
    at = start
    while at < stop:
        test = words[at]
        column = int64(column_of(test))
        at += 1
        holds = column == 0  # padding
        if column == GENERAL:
            d, first, n = general_test(test, words[at])
            at += 1
            for i in range(n):
                low, high = mill.pool[first + 2 * i], mill.pool[first + 2 * i + 1]
                holds |= _overlaps(state, d, int64(low), int64(high))
        elif column > 0:
            d = state.column_dimensions[column]
            if column < n_masks:
                holds = _mask_overlaps(mill, state, d, test)
            elif column < n_masks + n_points:
                first = at - 1
                while has_more(words[at - 1]) != _ZERO:
                    at += 1
                holds = _points_overlap(words, state, d, first, at)
            else:
                holds = _overlaps(state, d, int64(low_of(test)), int64(high_of(test)))
        if not holds:
            return False
    return True


@kernel
def _lacks(truth: np.ndarray, test: int) -> Any:
    """Return 1 if a shared predicate does not hold, else 0."""
    return (~truth[test >> 6] >> uint64(test & 63)) & _ONE


@kernel
def _walk_slots(mill: MillArrays, state: IntervalState, n_slots: int) -> tuple[int, int]:
    """Write ids into state.found as far as there is room; return (ids, entries looked at)."""
    words, truth = mill.words, state.truth
    ids, tests = words.view(np.uint32), words.view(np.uint16)
    missing = _ZERO  # tests of the slot's dictionary that do not hold
    n_found = n_seen = 0
    for i in range(n_slots):
        at = slot_start(mill.slot_places[state.slots[i]])
        follows = True
        while follows:
            block = block_at(words, at)
            follows = block.follows
            at = block.end
            if block.n_entries == 0:
                missing = _ZERO
                for k in range(block.n_tests):
                    missing |= _lacks(truth, int64(tests[block.tests_at + k])) << uint64(k)
            n_seen += block.n_entries
            for e in range(block.n_entries):
                holds = not block.uses_dictionary or words[block.masks_at + e] & missing == _ZERO
                first = block.tests_at + e * block.n_tests
                for k in range(first, first + block.n_tests):
                    holds &= _lacks(truth, int64(tests[k])) == _ZERO
                start = block.inline_at + e * block.n_inline
                if holds and _inline_tests_hold(mill, state, start, start + block.n_inline):
                    if n_found < len(state.found):
                        state.found[n_found] = int64(ids[block.ids_at + e])
                    n_found += 1
    return n_found, n_seen


@kernel
def match_interval_events(
    mill: MillArrays,
    state: IntervalState,
    events: IntervalEvents,
    start: int,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> tuple[int, int, int]:
    """Match events from `start` on.

    Return (the first one for which there was no room, room that it needs at most, entries looked
    at).
    """
    n_seen = 0
    for event in range(start, len(events.offsets) - 1):
        _enter_ranges(mill, state, events, event)
        n_found, seen = _walk_slots(mill, state, _find_slots(mill, state, events, event))
        n_seen += seen
        for p in range(events.offsets[event], events.offsets[event + 1]):
            if events.dimensions[p] < len(mill.dimensions):
                state.range_spans[events.dimensions[p], 0] = 0
                state.range_spans[events.dimensions[p], 1] = 1
        n_out = out_offsets[event]
        if n_found > len(state.found) or n_out + n_found > len(out):
            return event, n_found, n_seen
        found = state.found
        sort_rows(found, np.empty(n_found, np.int64), 0, n_found)
        for k in range(n_found):
            if k == 0 or found[k] != found[k - 1]:
                out[n_out] = found[k]
                n_out += 1
        out_offsets[event + 1] = n_out
    return len(events.offsets) - 1, 0, n_seen
