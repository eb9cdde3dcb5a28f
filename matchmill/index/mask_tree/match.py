"""From events to clause ids.

    codes of the event ─► blocks from the top, 64 children per compare ─► leaves ─► candidates
                                                                         │ does hold: proved
                                                                         ▼ may hold: exact bounds

Kernels get the addresses of arrays (`kernels/addresses.py`): `tree` are those of `MaskTreeArrays`,
`state` those of `TreeState`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchmill.encoding.event_batch import EventBatch
from matchmill.index.mask_tree.arrays import (
    ABSENT,
    N_EDGES,
    MaskTreeArrays,
    blocks_of,
    bounds_of,
    codes_of,
    dimensions_of,
    edges_of,
    general_dimensions_of,
    general_highs_of,
    general_intervals_of,
    general_lows_of,
    general_offsets_of,
    general_places_of,
    ids_of,
    levels_of,
    slots_of,
    unsure_of,
)
from matchmill.kernels.addresses import Int32Array, Int64Array, UInt8Array, accessor, borrowed
from matchmill.kernels.intrinsics import (
    LANES,
    lanes_inside,
    lanes_within,
    prefetch,
    trailing_zeros,
)
from matchmill.kernels.jit import int64, kernel, uint64
from matchmill.kernels.searches import first_at_least

__all__ = ["TreeState", "match_events", "new_tree_state"]

_AHEAD = 4  # leaves whose codes are being loaded
_BLOCK = 2 * LANES  # bytes of a block per tree dimension
_NONE, _ONE, _ALL = (np.uint64(n) for n in (0, 1, (1 << 64) - 1))


class TreeState(NamedTuple):
    """The event at hand, all events of the batch, and the ids that were found.

    Between events all keys are 0 and all codes ABSENT.
    """

    keys: Int64Array  # of the event, per dimension
    event_codes: UInt8Array  # per tree dimension
    visits: Int64Array  # blocks to visit on one level
    below: Int64Array  # blocks to visit on the level below
    event_offsets: Int64Array
    event_dimensions: Int32Array
    event_keys: Int64Array
    out_offsets: Int64Array
    out: Int32Array


keys_of = accessor(TreeState, "keys")
event_codes_of = accessor(TreeState, "event_codes")
visits_of = accessor(TreeState, "visits")
below_of = accessor(TreeState, "below")
event_offsets_of = accessor(TreeState, "event_offsets")
event_dimensions_of = accessor(TreeState, "event_dimensions")
event_keys_of = accessor(TreeState, "event_keys")
out_offsets_of = accessor(TreeState, "out_offsets")
out_of = accessor(TreeState, "out")


def new_tree_state(tree: MaskTreeArrays, events: EventBatch, n_out: int) -> TreeState:
    """Return the state of one thread, for a batch of events and room for `n_out` ids."""
    n_leaves = len(tree.unsure)
    return TreeState(
        np.zeros(len(tree.slots), np.int64),
        np.full(len(tree.dimensions), ABSENT, np.uint8),
        np.empty(n_leaves, np.int64),
        np.empty(n_leaves, np.int64),
        # Kernels know these by address alone.
        np.ascontiguousarray(events.offsets, np.int64),
        np.ascontiguousarray(events.dimensions, np.int32),
        np.ascontiguousarray(events.keys, np.int64),
        np.zeros(events.n_events + 1, np.int64),
        np.empty(n_out, np.int32),
    )


@kernel
def _code_of(edges: np.ndarray, codes: np.ndarray, j: int, key: int) -> int:
    """Return the code of a key on tree dimension j."""
    bucket = j * N_EDGES
    step = N_EDGES >> 1
    while step:
        if edges[bucket + step - 1] <= key:
            bucket += step
        step >>= 1
    return int(codes[bucket])


@kernel
def _enter(tree: Any, state: Any, first: int, last: int) -> None:
    """Take in the pairs of an event."""
    slots, edges, codes = slots_of(tree), edges_of(tree), codes_of(tree)
    dimensions, values = event_dimensions_of(state), event_keys_of(state)
    keys, event_codes = keys_of(state), event_codes_of(state)
    for k in range(first, last):
        d = int64(dimensions[k])
        if d < len(keys):
            keys[d] = values[k]
            j = int64(slots[d])
            if j >= 0 and values[k] > 0:
                event_codes[j] = _code_of(edges, codes, j, values[k])


@kernel
def _leave(tree: Any, state: Any, first: int, last: int) -> None:
    """Return to the empty event."""
    slots, dimensions = slots_of(tree), event_dimensions_of(state)
    keys, event_codes = keys_of(state), event_codes_of(state)
    for k in range(first, last):
        d = int64(dimensions[k])
        if d < len(keys):
            keys[d] = 0
            if slots[d] >= 0:
                event_codes[slots[d]] = ABSENT


@kernel
def _may_hold(blocks: np.ndarray, at: int, codes: np.ndarray) -> Any:
    """Return the lanes of a block whose ranges have all codes of the event."""
    mask = _ALL
    for j in range(len(codes)):
        mask &= lanes_within(blocks, at + j * _BLOCK, codes[j])
        if mask == _NONE:
            break
    return mask


@kernel
def _does_hold(blocks: np.ndarray, at: int, codes: np.ndarray) -> Any:
    """Return the lanes of a leaf that are proved by codes alone."""
    mask = _ALL
    for j in range(len(codes)):
        mask &= lanes_inside(blocks, at + j * _BLOCK, codes[j])
    return mask


@kernel
def _general_holds(tree: Any, state: Any, place: int) -> bool:
    places, keys = general_places_of(tree), keys_of(state)
    offsets, dimensions = general_offsets_of(tree), general_dimensions_of(tree)
    intervals, lows, highs = (
        general_intervals_of(tree), general_lows_of(tree), general_highs_of(tree),
    )  # fmt: skip
    g = first_at_least(places, place, 0, len(places))
    for p in range(offsets[g], offsets[g + 1]):
        key = keys[dimensions[p]]
        inside = False
        for k in range(intervals[p], intervals[p + 1]):
            if lows[k] <= key <= highs[k]:
                inside = True
                break
        if not inside:
            return False
    return True


@kernel
def _holds(tree: Any, state: Any, place: int) -> bool:
    """Whether the clause at a place holds, by its exact bounds."""
    dimensions, bounds, keys = dimensions_of(tree), bounds_of(tree), keys_of(state)
    at = place * 2 * len(dimensions)
    for j in range(len(dimensions)):
        key = keys[dimensions[j]]
        if key < bounds[at + 2 * j] or key > bounds[at + 2 * j + 1]:
            return False
    if unsure_of(tree)[place >> 6] >> uint64(place & 63) & _ONE:
        return bool(_general_holds(tree, state, place))
    return True


@kernel
def _find_leaves(tree: Any, state: Any) -> int:
    """Write the leaves that may have matches to `visits`; return how many."""
    blocks, levels, codes = blocks_of(tree), levels_of(tree), event_codes_of(state)
    visits, below = visits_of(state), below_of(state)
    n_bytes = len(codes) * _BLOCK
    level = len(levels) - 2
    visits[0] = levels[level]
    n = 1
    while level > 0:
        n_below = 0
        for i in range(n):
            mask = _may_hold(blocks, visits[i] * n_bytes, codes)
            child = levels[level - 1] + (visits[i] - levels[level]) * LANES
            while mask:
                below[n_below] = child + trailing_zeros(mask)
                n_below += 1
                mask &= mask - _ONE
        for i in range(n_below):
            visits[i] = below[i]
        n = n_below
        level -= 1
    return n


@kernel
def _match_leaves(tree: Any, state: Any, n_leaves: int, n_out: int) -> tuple[int, int]:
    """Append the ids of clauses that hold; return (ids written, clauses looked at).

    If there is no room, the first number is beyond it.
    """
    blocks, ids, unsure, codes = (
        blocks_of(tree), ids_of(tree), unsure_of(tree), event_codes_of(state),
    )  # fmt: skip
    visits, out = visits_of(state), out_of(state)
    n_bytes = len(codes) * _BLOCK
    n_seen = 0
    for i in range(n_leaves):
        if i + _AHEAD < n_leaves:
            at = visits[i + _AHEAD] * n_bytes
            for byte in range(at, at + n_bytes, 64):
                prefetch(blocks, byte)
        leaf = visits[i]
        mask = _may_hold(blocks, leaf * n_bytes, codes)
        if mask == _NONE:
            continue
        rest = mask & ~(_does_hold(blocks, leaf * n_bytes, codes) & ~unsure[leaf])
        while rest:
            lane = trailing_zeros(rest)
            if not _holds(tree, state, leaf * LANES + lane):
                mask ^= _ONE << uint64(lane)
                n_seen += 1
            rest &= rest - _ONE
        if n_out + LANES > len(out):
            return len(out) + 1, n_seen
        while mask:
            out[n_out] = ids[leaf * LANES + trailing_zeros(mask)]
            n_out += 1
            n_seen += 1
            mask &= mask - _ONE
    return n_out, n_seen


@kernel
def match_events(tree: Any, state: Any, pairs: bytes, start: int, stop: int) -> tuple[int, int]:
    """Match events from `start` to `stop`.

    Return (the first one for which there was no room, clauses looked at). Unless `pairs` is empty,
    it becomes event 0: 64-bit integers dimension, key, dimension, key, …
    """
    tree, state = borrowed(tree), borrowed(state)
    offsets, out_offsets = event_offsets_of(state), out_offsets_of(state)
    n_room = len(out_of(state))
    if len(pairs) > 0:
        offsets[1] = len(pairs) >> 4
        dimensions, keys = event_dimensions_of(state), event_keys_of(state)
        numbers = np.frombuffer(pairs, np.int64)
        for k in range(offsets[1]):
            dimensions[k] = numbers[2 * k]
            keys[k] = numbers[2 * k + 1]
    n_out = out_offsets[start]
    n_seen = 0
    for e in range(start, stop):
        _enter(tree, state, offsets[e], offsets[e + 1])
        n_after, seen = _match_leaves(tree, state, _find_leaves(tree, state), n_out)
        _leave(tree, state, offsets[e], offsets[e + 1])
        n_seen += seen
        if n_after > n_room:
            return e, n_seen
        n_out = n_after
        out_offsets[e + 1] = n_out
    return stop, n_seen
