"""Matching events that allow intervals of keys (`encoding.event_batch`).

    ranges of dimension d    codes range_lows[k] … range_highs[k] for k in range_spans[d, 0] …
                             range_spans[d, 1]; the first range of all is that of absence, code 0

The same arrays as for ordinary events. A shared predicate holds if it does in the row of some
code; the slots of all codes are visited, so that a clause may be found more than once, and is
counted once; private tests look for a code that the event allows. Made to be right before quick.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchmill.encoding.event_batch import IntervalEvents
from matchmill.index.mill.arrays import (
    DEFAULT_ROW,
    EDGE_START,
    EDGE_STOP,
    FIRST_COLUMN,
    FIRST_WORD,
    FOLDED_BIT,
    GROUP_START,
    MOST_TESTS,
    N_MASKS,
    N_POINTS,
    N_SLOTS,
    N_WORDS,
    NODE_START,
    RANK_START,
    ROW_START,
    SECOND_COLUMN,
    USED_LEVELS,
    BlockViews,
    MillArrays,
)
from matchmill.index.mill.build.inline_tests import (
    EXCEPTION_BIT,
    GENERAL,
    MORE_BIT,
    POINT_BITS,
    POINTS,
)
from matchmill.index.predicate_codes import code_of
from matchmill.kernels.intrinsics import trailing_zeros
from matchmill.kernels.jit import int64, kernel, uint64
from matchmill.kernels.sorting import sort_rows

__all__ = ["WideState", "match_wide_events", "new_wide_state"]

_ZERO, _ONE = uint64(0), uint64(1)


class WideState(NamedTuple):
    """Scratch of one thread."""

    truth: np.ndarray  # uint64
    range_spans: np.ndarray  # int64, two a dimension
    range_lows: np.ndarray  # int64
    range_highs: np.ndarray  # int64
    slots: np.ndarray  # int64
    column_dimensions: np.ndarray  # int64, one a column
    found: np.ndarray  # int64


def new_wide_state(mill: MillArrays, events: IntervalEvents) -> WideState:
    n_dimensions = len(mill.dimensions)
    spans = np.zeros((n_dimensions, 2), np.int64)
    spans[:, 1] = 1
    owners = np.zeros(len(mill.default_values), np.int64)
    for field in (FIRST_COLUMN, SECOND_COLUMN):
        owned = np.flatnonzero(mill.dimensions[:, field] >= 0)
        owners[mill.dimensions[owned, field]] = owned
    n_ranges = len(events.lows) + 1
    return WideState(
        mill.default_truth.copy(),
        spans,
        np.zeros(n_ranges, np.int64),
        np.zeros(n_ranges, np.int64),
        np.empty(int(mill.sizes[N_SLOTS]), np.int64),
        owners,
        np.empty(1024, np.int64),
    )


@kernel
def _add_cells(
    mill: MillArrays, state: WideState, d: int, low: int, high: int, n_slots: int
) -> int:
    """The node slots of a range of codes."""
    slot_places, slots, levels = mill.slot_places, state.slots, mill.dimensions[d, USED_LEVELS]
    n_codes = mill.dimensions[d, EDGE_STOP] - mill.dimensions[d, EDGE_START] + 1
    start = mill.dimensions[d, NODE_START]
    level = 0
    while levels != 0:
        if levels & 1:
            first = low if level == 0 else max(low, 1) >> level
            for place in range(first, (high >> level) + 1):
                if high > 0 or level == 0:
                    if slot_places[start + place] != 0:
                        slots[n_slots] = start + place
                        n_slots += 1
        start += ((n_codes - 1) >> level) + 1
        level += 1
        levels >>= 1
    return n_slots


@kernel
def _enter(mill: MillArrays, state: WideState, events: IntervalEvents, event: int) -> int:
    """Take in an event; returns the number of slots, with some twice."""
    fields, rows, row_of_code, truth = mill.dimensions, mill.rows, mill.row_of_code, state.truth
    spans, range_lows, range_highs = state.range_spans, state.range_lows, state.range_highs
    truth[:] = mill.default_truth
    n_slots = 0
    n_ranges = 1
    for p in range(events.offsets[event], events.offsets[event + 1]):
        d = int64(events.dimensions[p])
        if d >= len(fields):
            continue
        first_range = n_ranges
        for k in range(events.interval_offsets[p], events.interval_offsets[p + 1]):
            first, last = fields[d, EDGE_START], fields[d, EDGE_STOP]
            low = code_of(mill.edges, first, last, events.lows[k])
            high = code_of(mill.edges, first, last, events.highs[k])
            if n_ranges > first_range and range_highs[n_ranges - 1] >= low:
                low = range_highs[n_ranges - 1] + 1  # a gap inside one space
            if low <= high:
                range_lows[n_ranges] = low
                range_highs[n_ranges] = high
                n_ranges += 1
        spans[d, 0] = first_range
        spans[d, 1] = n_ranges
        if fields[d, ROW_START] >= 0:
            word, n_words, default = (
                fields[d, FIRST_WORD],
                fields[d, N_WORDS],
                fields[d, DEFAULT_ROW],
            )
            if default >= 0:
                for w in range(n_words):
                    truth[word + w] &= ~rows[default + w]
            for k in range(first_range, n_ranges):
                for code in range(range_lows[k], range_highs[k] + 1):
                    row = int64(row_of_code[fields[d, ROW_START] + code])
                    for w in range(n_words):
                        truth[word + w] |= rows[row + w]
        if fields[d, USED_LEVELS] != 0:
            for k in range(first_range, n_ranges):
                n_slots = _add_cells(mill, state, d, range_lows[k], range_highs[k], n_slots)
    for d in mill.absent_dimensions:
        if spans[d, 0] == 0 and fields[d, USED_LEVELS] != 0:
            n_slots = _add_cells(mill, state, int64(d), 0, 0, n_slots)
    for p in range(len(mill.pairs)):
        a, b = mill.pairs[p, 0], mill.pairs[p, 1]
        for i in range(spans[a, 0], spans[a, 1]):
            for one in range(max(1, range_lows[i]), range_highs[i] + 1):
                for j in range(spans[b, 0], spans[b, 1]):
                    for other in range(max(1, range_lows[j]), range_highs[j] + 1):
                        slot = mill.pairs[p, 2] + one * mill.pairs[p, 3] + other
                        if mill.slot_places[slot] != 0:
                            state.slots[n_slots] = slot
                            n_slots += 1
    for w in range(len(truth)):
        bits = truth[w] & mill.access_words[w]
        while bits != _ZERO:
            state.slots[n_slots] = mill.sizes[GROUP_START] + (w << 6) + trailing_zeros(bits)
            n_slots += 1
            bits &= bits - _ONE
    if mill.slot_places[mill.sizes[N_SLOTS] - 1] != 0:
        state.slots[n_slots] = mill.sizes[N_SLOTS] - 1
        n_slots += 1
    return n_slots


@kernel
def _overlaps(state: WideState, d: int, low: int, high: int) -> bool:
    """Whether the event allows some code of low … high on a dimension."""
    for k in range(state.range_spans[d, 0], state.range_spans[d, 1]):
        if state.range_lows[k] <= high and low <= state.range_highs[k]:
            return True
    return False


@kernel
def _point(words: np.ndarray, at: int, i: int) -> int:
    """Of the points from a word on, the one with this number."""
    shifted = words[at + i // POINTS] >> uint64(POINT_BITS * (i % POINTS))
    return int(shifted & ((_ONE << uint64(POINT_BITS)) - _ONE))


@kernel
def _privates_hold(mill: MillArrays, state: WideState, start: int, stop: int) -> bool:
    words, n_masks, n_points = mill.words, mill.sizes[N_MASKS], mill.sizes[N_POINTS]
    at = start
    while at < stop:
        test = words[at]
        column = int64(test >> uint64(48))
        at += 1
        holds = False
        if column == 0:
            holds = True
        elif column == GENERAL:
            d = int64((test >> uint64(24)) & uint64(0xFFFFFF))
            place, n = int64(words[at] >> uint64(24)), int64(words[at] & uint64(0xFFFFFF))
            at += 1
            for i in range(n):
                low, high = mill.pool[place + 2 * i], mill.pool[place + 2 * i + 1]
                holds |= _overlaps(state, d, int64(low), int64(high))
        else:
            d = state.column_dimensions[column]
            if column < n_masks:
                ranks = mill.dimensions[d, RANK_START]
                for k in range(state.range_spans[d, 0], state.range_spans[d, 1]):
                    for code in range(state.range_lows[k], state.range_highs[k] + 1):
                        holds |= (test >> uint64(mill.ranks[ranks + code])) & _ONE != _ZERO
            elif column < n_masks + n_points:
                first = at - 1
                while (words[at - 1] >> uint64(MORE_BIT)) & _ONE != _ZERO:
                    at += 1
                if (test >> uint64(EXCEPTION_BIT)) & _ONE == _ZERO:
                    for i in range(POINTS * (at - first)):
                        code = _point(words, first, i)
                        holds |= _overlaps(state, d, code, code)
                else:
                    for k in range(state.range_spans[d, 0], state.range_spans[d, 1]):
                        for code in range(state.range_lows[k], state.range_highs[k] + 1):
                            is_exception = False
                            for i in range(POINTS * (at - first)):
                                is_exception |= _point(words, first, i) == code
                            holds |= not is_exception
                            if holds:
                                break
            else:
                low = int64(test & uint64(0xFFFFFF))
                high = int64((test >> uint64(24)) & uint64(0xFFFFFF))
                holds = _overlaps(state, d, low, high)
        if not holds:
            return False
    return True


@kernel
def _lacks(truth: np.ndarray, test: int) -> Any:
    """1 if a shared predicate does not hold, else 0."""
    return (~truth[test >> 6] >> uint64(test & 63)) & _ONE


@kernel
def _walk(mill: MillArrays, views: BlockViews, state: WideState, n_slots: int) -> tuple[int, int]:
    """Ids into state.found as far as there is room; returns (ids, entries looked at)."""
    words, tests, truth = mill.words, views.tests, state.truth
    missing = _ZERO  # tests of the slot's dictionary that do not hold
    n_found = n_seen = 0
    for i in range(n_slots):
        place = mill.slot_places[state.slots[i]] >> 24
        follows = True
        while follows:
            header = words[place]
            follows = header & _ONE != _ZERO
            n = int64(header >> uint64(40))
            n_tests = int64((header >> uint64(23)) & uint64(MOST_TESTS))
            n_privates = int64((header >> _ONE) & uint64(0xFFFFF))
            is_folded = (header >> uint64(FOLDED_BIT)) & _ONE != _ZERO
            if is_folded and n == 0:
                missing = _ZERO
                for k in range(n_tests):
                    missing |= _lacks(truth, int64(tests[4 * (place + 1) + k])) << uint64(k)
                place += 1 + ((n_tests + 3) >> 2)
                continue
            mask_at = place + 1
            if is_folded:
                place += n
            test_at = 4 * (place + 1)
            id_at = (test_at + n * n_tests + 1) >> 1
            private_at = (id_at + n + 1) >> 1
            place = private_at + n * n_privates
            n_seen += n
            for e in range(n):
                holds = not is_folded or words[mask_at + e] & missing == _ZERO
                for k in range(test_at + e * n_tests, test_at + (e + 1) * n_tests):
                    holds &= _lacks(truth, int64(tests[k])) == _ZERO
                start = private_at + e * n_privates
                if holds and _privates_hold(mill, state, start, start + n_privates):
                    if n_found < len(state.found):
                        state.found[n_found] = int64(views.ids[id_at + e])
                    n_found += 1
    return n_found, n_seen


@kernel
def match_wide_events(
    mill: MillArrays,
    views: BlockViews,
    state: WideState,
    events: IntervalEvents,
    start: int,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> tuple[int, int, int]:
    """Matches events from `start` on; returns (the first one for which there was no room, room
    that it needs at most, entries looked at)."""
    n_seen = 0
    for event in range(start, len(events.offsets) - 1):
        n_slots = _enter(mill, state, events, event)
        n_found, seen = _walk(mill, views, state, n_slots)
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
