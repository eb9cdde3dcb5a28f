"""From events to clause ids.

    events, 256 at a time ─► of each chunk, the rows of each event ─► lanes that may hold
                                                                       │ few: their bounds
                                                                       │ many: all tails
                                                                       ▼
                                                                     lanes that hold ─► ids

One chunk after the other is matched with all events at hand, so its rows and tails stay in the
cache. What is found comes chunk by chunk and is sorted by event at the end.

Kernels get the addresses of arrays (`kernels/addresses.py`): `index` are those of `BitmapArrays`,
`state` those of `BitmapState`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchmill.encoding.event_batch import EventBatch
from matchmill.index.bitmaps.arrays import (
    BOUNDS_COST,
    CHUNK,
    FULL,
    LANE_BITS,
    N_CHUNKS,
    N_EDGES,
    N_ROWS,
    TAILS_COST,
    BitmapArrays,
    bound_offsets_of,
    bounds_of,
    chunk_starts_of,
    dimensions_of,
    edges_of,
    general_dimensions_of,
    general_highs_of,
    general_intervals_of,
    general_lows_of,
    general_of,
    general_offsets_of,
    general_places_of,
    ids_of,
    leads_of,
    ranks_of,
    row_starts_of,
    rows_of,
    sides_of,
    sizes_of,
    slots_of,
    tail_offsets_of,
    tails_of,
)
from matchmill.kernels.addresses import (
    Int32Array,
    Int64Array,
    UInt8Array,
    UInt64Array,
    accessor,
    borrowed,
)
from matchmill.kernels.intrinsics import (
    ROW_WORDS,
    count_ones,
    meet_four_rows,
    meet_two_rows,
    trailing_zeros,
)
from matchmill.kernels.jit import int64, kernel, uint64
from matchmill.kernels.searches import first_at_least

__all__ = ["BitmapState", "match_events", "new_bitmap_state"]

_EVENTS = 256  # at a time
_ROOM = 1 << 21  # ids of the events at hand; memory that is not touched costs nothing
_NONE, _ONE = np.uint64(0), np.uint64(1)


class BitmapState(NamedTuple):
    """The events at hand, all events of the batch, and the ids that were found."""

    keys: Int64Array  # per event at hand and slot; 0 if it has none
    event_rows: UInt8Array  # likewise: the row of the slot that it is in
    ordered: Int32Array  # per event: rows that exclude clauses, those that exclude most first
    n_ordered: Int64Array  # a multiple of 4
    starts: Int64Array  # per rank: where its rows begin
    lanes: UInt64Array  # the clauses that may hold, of one event and chunk
    found: Int32Array  # ids, chunk by chunk
    parts: Int64Array  # of those: event << 32 | how many
    event_offsets: Int64Array
    event_dimensions: Int32Array
    event_keys: Int64Array
    out_offsets: Int64Array
    out: Int32Array


keys_of = accessor(BitmapState, "keys")
event_rows_of = accessor(BitmapState, "event_rows")
ordered_of = accessor(BitmapState, "ordered")
n_ordered_of = accessor(BitmapState, "n_ordered")
starts_of = accessor(BitmapState, "starts")
lanes_of = accessor(BitmapState, "lanes")
found_of = accessor(BitmapState, "found")
parts_of = accessor(BitmapState, "parts")
event_offsets_of = accessor(BitmapState, "event_offsets")
event_dimensions_of = accessor(BitmapState, "event_dimensions")
event_keys_of = accessor(BitmapState, "event_keys")
out_offsets_of = accessor(BitmapState, "out_offsets")
out_of = accessor(BitmapState, "out")


def new_bitmap_state(arrays: BitmapArrays, events: EventBatch, n_out: int) -> BitmapState:
    """Return the state of one thread, for a batch of events and room for `n_out` ids."""
    n_events = max(1, min(_EVENTS, events.n_events))
    n_slots, n_chunks = len(arrays.dimensions), int(arrays.sizes[N_CHUNKS])
    return BitmapState(
        np.empty(n_events * n_slots, np.int64),
        np.empty(n_events * n_slots, np.uint8),
        np.empty(n_events * (n_slots + 4), np.int32),
        np.empty(n_events, np.int64),
        np.empty(FULL + 2, np.int64),
        np.empty(ROW_WORDS, np.uint64),
        np.empty(max(_ROOM, n_chunks * CHUNK), np.int32),
        np.empty(n_events * n_chunks, np.int64),
        np.ascontiguousarray(events.offsets, np.int64),
        np.ascontiguousarray(events.dimensions, np.int32),
        np.ascontiguousarray(events.keys, np.int64),
        np.zeros(events.n_events + 1, np.int64),
        np.empty(n_out, np.int32),
    )


# -- events ---------------------------------------------------------------------------------------


@kernel
def _enter(index: Any, state: Any, i: int, first: int, last: int) -> None:
    """Take in the pairs of an event, as event i of those at hand."""
    slots, edges, row_starts = slots_of(index), edges_of(index), row_starts_of(index)
    dimensions, values = event_dimensions_of(state), event_keys_of(state)
    keys, event_rows = keys_of(state), event_rows_of(state)
    n_slots = len(row_starts) - 1
    at = i * n_slots
    for slot in range(n_slots):
        keys[at + slot], event_rows[at + slot] = 0, 0
    for k in range(first, last):
        d = int64(dimensions[k])
        if d < len(slots) and slots[d] >= 0 and values[k] > 0:
            slot, key = int64(slots[d]), values[k]
            place, step = slot * N_EDGES, N_EDGES >> 1
            while step:
                if edges[place + step - 1] <= key:
                    place += step
                step >>= 1
            last_row = row_starts[slot + 1] - row_starts[slot] - 1
            keys[at + slot] = key
            event_rows[at + slot] = min(place - slot * N_EDGES + 1, last_row)
    _order_rows(index, state, i)


@kernel
def _order_rows(index: Any, state: Any, i: int) -> None:
    """Sort the rows of an event by their ranks, without those that exclude nothing."""
    row_starts, ranks = row_starts_of(index), ranks_of(index)
    event_rows, ordered, starts = event_rows_of(state), ordered_of(state), starts_of(state)
    n_slots = len(row_starts) - 1
    at, out = i * n_slots, i * (n_slots + 4)
    for rank in range(FULL + 2):
        starts[rank] = 0
    for slot in range(n_slots):
        starts[int64(ranks[row_starts[slot] + event_rows[at + slot]]) + 1] += 1
    for rank in range(FULL + 1):
        starts[rank + 1] += starts[rank]
    n = starts[FULL]
    for slot in range(n_slots):
        row = row_starts[slot] + event_rows[at + slot]
        rank = int64(ranks[row])
        if rank < FULL:
            ordered[out + starts[rank]] = row
            starts[rank] += 1
    while n & 3:
        ordered[out + n] = ordered[out + n - 1]
        n += 1
    n_ordered_of(state)[i] = n


@kernel
def _key_of(index: Any, state: Any, i: int, e: int, dimension: int) -> int:
    """Return the key of event e, which is event i at hand, on any dimension."""
    slots, offsets = slots_of(index), event_offsets_of(state)
    if slots[dimension] >= 0:
        return int(keys_of(state)[i * len(dimensions_of(index)) + int64(slots[dimension])])
    dimensions, values = event_dimensions_of(state), event_keys_of(state)
    for k in range(offsets[e + 1] - 1, offsets[e] - 1, -1):
        if dimensions[k] == dimension:
            return int(values[k])
    return 0


# -- chunks ---------------------------------------------------------------------------------------


@kernel
def _may_hold(index: Any, state: Any, chunk: int, i: int) -> bool:
    """Find the lanes of a chunk that may hold for an event; return whether there are any."""
    rows, row_starts, leads = rows_of(index), row_starts_of(index), leads_of(index)
    event_rows, ordered, lanes = event_rows_of(state), ordered_of(state), lanes_of(state)
    n_slots = len(row_starts) - 1
    base = chunk * sizes_of(index)[N_ROWS]
    first, second = int64(leads[2 * chunk]), int64(leads[2 * chunk + 1])
    some = meet_two_rows(
        lanes,
        rows,
        (base + row_starts[first] + event_rows[i * n_slots + first]) * ROW_WORDS,
        (base + row_starts[second] + event_rows[i * n_slots + second]) * ROW_WORDS,
    )
    at = i * (n_slots + 4)
    stop = at + n_ordered_of(state)[i]
    while some and at < stop:
        some = meet_four_rows(
            lanes,
            rows,
            (base + ordered[at]) * ROW_WORDS,
            (base + ordered[at + 1]) * ROW_WORDS,
            (base + ordered[at + 2]) * ROW_WORDS,
            (base + ordered[at + 3]) * ROW_WORDS,
        )
        at += 4
    return bool(some)


@kernel
def _clear_failed(index: Any, state: Any, chunk: int, i: int) -> None:
    """Clear the lanes that fail by the tails of the event's rows."""
    row_starts, tail_offsets, tails, bounds = (
        row_starts_of(index), tail_offsets_of(index), tails_of(index), bounds_of(index),
    )  # fmt: skip
    keys, event_rows, lanes = keys_of(state), event_rows_of(state), lanes_of(state)
    n_slots = len(row_starts) - 1
    start = chunk_starts_of(index)[chunk]
    base = chunk * (2 * row_starts[n_slots] + 1)
    for slot in range(n_slots):
        key = keys[i * n_slots + slot]
        at = base + 2 * (row_starts[slot] + event_rows[i * n_slots + slot])
        upper = start + tail_offsets[at + 1]
        for k in range(start + tail_offsets[at], start + tail_offsets[at + 2]):
            tail = int64(tails[k])
            fails = (bounds[start + (tail >> LANE_BITS)] > key) ^ (k >= upper)
            lane = tail & (CHUNK - 1)
            lanes[lane >> 6] &= ~(uint64(fails) << uint64(lane & 63))


@kernel
def _fails(index: Any, state: Any, chunk: int, i: int, lane: int) -> bool:
    """Whether some bound of a clause fails."""
    offsets, bounds, sides = bound_offsets_of(index), bounds_of(index), sides_of(index)
    keys = keys_of(state)
    start, at = chunk_starts_of(index)[chunk], chunk * (CHUNK + 1) + lane
    first_key = i * len(dimensions_of(index))
    fails = 0
    for k in range(start + offsets[at], start + offsets[at + 1]):
        side = int64(sides[k])
        fails |= int64(bounds[k] > keys[first_key + (side >> 1)]) ^ (side & 1)
    return fails != 0


@kernel
def _general_holds(index: Any, state: Any, i: int, e: int, place: int) -> bool:
    offsets, dimensions = general_offsets_of(index), general_dimensions_of(index)
    intervals, lows, highs = (
        general_intervals_of(index), general_lows_of(index), general_highs_of(index),
    )  # fmt: skip
    places = general_places_of(index)
    g = first_at_least(places, place, 0, len(places))
    for p in range(offsets[g], offsets[g + 1]):
        key = _key_of(index, state, i, e, dimensions[p])
        inside = False
        for k in range(intervals[p], intervals[p + 1]):
            if lows[k] <= key <= highs[k]:
                inside = True
                break
        if not inside:
            return False
    return True


@kernel
def _keep_those_that_hold(index: Any, state: Any, chunk: int, i: int, e: int) -> int:
    """Clear all lanes that do not hold; return how many were looked at."""
    lanes, general = lanes_of(state), general_of(index)
    n = 0
    for w in range(ROW_WORDS):
        n += count_ones(lanes[w])
    sizes = sizes_of(index)
    by_tails = n * sizes[BOUNDS_COST] > sizes[TAILS_COST]
    if by_tails:
        _clear_failed(index, state, chunk, i)
    for w in range(ROW_WORDS):
        rest = lanes[w]
        if by_tails:
            rest &= general[chunk * ROW_WORDS + w]
        while rest:
            lane = (w << 6) + trailing_zeros(rest)
            bit = rest & (~rest + _ONE)
            rest ^= bit
            fails = not by_tails and _fails(index, state, chunk, i, lane)
            if not fails and general[chunk * ROW_WORDS + w] & bit:
                fails = not _general_holds(index, state, i, e, chunk * CHUNK + lane)
            if fails:
                lanes[w] ^= bit
    return n


@kernel
def _write_ids(index: Any, state: Any, chunk: int, n_found: int) -> int:
    """Append the ids of the lanes that are left; return how many there are now."""
    ids, lanes, found = ids_of(index), lanes_of(state), found_of(state)
    for w in range(ROW_WORDS):
        rest = lanes[w]
        at = chunk * CHUNK + (w << 6)
        while rest:
            found[n_found] = ids[at + trailing_zeros(rest)]
            n_found += 1
            rest &= rest - _ONE
    return n_found


@kernel
def _match_chunks(index: Any, state: Any, first: int, n: int) -> tuple[int, int]:
    """Match n events from `first` on; return (parts found, clauses looked at).

    If there is no room for what they find, the first number is -1.
    """
    n_room = len(found_of(state)) - CHUNK
    parts = parts_of(state)
    n_found = n_parts = n_seen = 0
    for chunk in range(sizes_of(index)[N_CHUNKS]):
        for i in range(n):
            if not _may_hold(index, state, chunk, i):
                continue
            if n_found > n_room:
                return -1, n_seen
            n_seen += _keep_those_that_hold(index, state, chunk, i, first + i)
            n_after = _write_ids(index, state, chunk, n_found)
            if n_after > n_found:
                parts[n_parts] = i << 32 | (n_after - n_found)
                n_parts += 1
                n_found = n_after
    return n_parts, n_seen


@kernel
def _sort_by_event(state: Any, first: int, n: int, n_parts: int) -> bool:
    """Append what was found for n events to `out`; return whether there was room."""
    parts, found = parts_of(state), found_of(state)
    offsets, out = out_offsets_of(state), out_of(state)
    for i in range(n):
        offsets[first + i + 1] = 0
    for k in range(n_parts):
        offsets[first + (parts[k] >> 32) + 1] += parts[k] & 0xFFFFFFFF
    for i in range(n):
        offsets[first + i + 1] += offsets[first + i]
    if offsets[first + n] > len(out):
        return False
    for i in range(n, 0, -1):  # the end of an event is where the next ids of it go
        offsets[first + i] = offsets[first + i - 1]
    at = 0
    for k in range(n_parts):
        place = first + (parts[k] >> 32) + 1
        n_ids, to = parts[k] & 0xFFFFFFFF, offsets[place]
        for m in range(n_ids):
            out[to + m] = found[at + m]
        offsets[place] += n_ids
        at += n_ids
    return True


@kernel
def match_events(index: Any, state: Any, pairs: bytes, start: int, stop: int) -> tuple[int, int]:
    """Match events from `start` to `stop`.

    Return (the first one for which there was no room, clauses looked at). Unless `pairs` is empty,
    it becomes event 0: 64-bit integers dimension, key, dimension, key, …
    """
    index, state = borrowed(index), borrowed(state)
    offsets = event_offsets_of(state)
    if len(pairs) > 0:
        offsets[1] = len(pairs) >> 4
        dimensions, keys = event_dimensions_of(state), event_keys_of(state)
        numbers = np.frombuffer(pairs, np.int64)
        for k in range(offsets[1]):
            dimensions[k] = numbers[2 * k]
            keys[k] = numbers[2 * k + 1]
    most = len(n_ordered_of(state))
    n_seen = 0
    e = start
    while e < stop:
        n = min(most, stop - e)
        for i in range(n):
            _enter(index, state, i, offsets[e + i], offsets[e + i + 1])
        n_parts, seen = _match_chunks(index, state, e, n)
        if n_parts < 0:  # there is always room for one event
            most = max(1, n >> 1)
            continue
        if not _sort_by_event(state, e, n, n_parts):
            return e, n_seen
        n_seen += seen
        e += n
    return stop, n_seen
