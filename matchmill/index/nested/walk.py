"""Walk nested clauses: for one event, or for many whose hull clauses are known."""

from __future__ import annotations

import numpy as np

from matchmill.encoding.conjunction_table import NONE, ONE_KEY
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.nested.arrays import ACCEPT, FIRST_LEAF, Scratch, Walk
from matchmill.kernels.jit import int64, kernel

__all__ = ["chain_pairs", "leaf_holds", "unchain_pairs", "walk_batch", "walk_pairs"]

_FEW_INTERVALS = 8
_JUMP_BITS = 0xFFFFFFFF


@kernel
def _is_inside(more: np.ndarray, first: int, n: int, key: int) -> bool:
    """Whether a key is in one of n intervals, which ascend."""
    low, high = 0, n
    while high - low > _FEW_INTERVALS:
        middle = (low + high) >> 1
        if more[first + 2 * middle] <= key:
            low = middle
        else:
            high = middle
    for k in range(low, high):
        if more[first + 2 * k] <= key <= more[first + 2 * k + 1]:
            return True
    return False


@kernel
def _key_holds(leaves: np.ndarray, more: np.ndarray, k: int, key: int) -> bool:
    """Whether one of the intervals of leaf k has a key."""
    n_intervals = (leaves[k, 0] >> 2) & _JUMP_BITS
    if n_intervals == 1:
        return bool(leaves[k, 2] <= key <= leaves[k, 3])
    return _is_inside(more, leaves[k, 2], n_intervals, key)


@kernel
def leaf_holds(leaves: np.ndarray, more: np.ndarray, k: int, scratch: Scratch) -> bool:
    """Whether leaf k holds for the event in the scratch."""
    quantifier = leaves[k, 0] & 3
    at = int64(scratch.last[leaves[k, 0] >> 34])
    if quantifier == ONE_KEY:
        return _key_holds(leaves, more, k, scratch.keys[at] if at >= 0 else int64(0))
    while at >= 0:
        if _key_holds(leaves, more, k, scratch.keys[at]):
            return bool(quantifier != NONE)
        at = int64(scratch.earlier[at])
    return bool(quantifier == NONE)


@kernel
def chain_pairs(walk: Walk, scratch: Scratch, n: int, dimension: int, key: int) -> int:
    """Take a pair into the scratch, which has n; return how many it has then."""
    if dimension < len(walk.places):
        place = walk.places[dimension]
        if place >= 0:
            scratch.places[n] = place
            scratch.keys[n] = key
            scratch.earlier[n] = scratch.last[place]
            scratch.last[place] = n
            return n + 1
    return n


@kernel
def unchain_pairs(scratch: Scratch, n: int) -> None:
    """Bring the scratch to rest after an event of which it has n pairs."""
    for k in range(n):
        scratch.last[scratch.places[k]] = -1


@kernel
def _holds(walk: Walk, scratch: Scratch, i: int) -> bool:
    leaves, more = walk.leaves, walk.more
    k = walk.starts[i]
    while True:
        jumps = leaves[k, 1]
        jump = jumps & _JUMP_BITS if leaf_holds(leaves, more, k, scratch) else jumps >> 32
        if jump < FIRST_LEAF:
            return bool(jump == ACCEPT)
        k = jump - FIRST_LEAF


@kernel
def _walk_woken(
    walk: Walk, scratch: Scratch, hulls: np.ndarray, start: int, stop: int, out: np.ndarray, n: int
) -> int:
    """Append the clauses that hold, of those that hulls[start:stop] wake and of `always`.

    Return the number of ids then, even if `out` has no room for them.
    """
    scratch.clock[0] += 1
    now = scratch.clock[0]
    n_walked = len(walk.always)
    for i in walk.always:
        if _holds(walk, scratch, i):
            if n < len(out):
                out[n] = walk.clause_ids[i]
            n += 1
    for h in range(start, stop):
        i = walk.owners[hulls[h]]
        if scratch.woken[i] != now:
            scratch.woken[i] = now
            n_walked += 1
            if _holds(walk, scratch, i):
                if n < len(out):
                    out[n] = walk.clause_ids[i]
                n += 1
    scratch.clock[1] += n_walked
    return n


@kernel
def walk_pairs(
    walk: Walk, scratch: Scratch, pairs: bytes, hulls: np.ndarray, out: np.ndarray
) -> int:
    """Find the clauses that hold for one event; return how many, even if there was no room."""
    numbers = np.frombuffer(pairs, np.int64)
    n_pairs = 0
    for k in range(0, len(numbers), 2):
        n_pairs = chain_pairs(walk, scratch, n_pairs, numbers[k], numbers[k + 1])
    n = _walk_woken(walk, scratch, hulls, 0, len(hulls), out, 0)
    unchain_pairs(scratch, n_pairs)
    return n


@kernel
def walk_batch(
    walk: Walk,
    scratch: Scratch,
    events: EventBatch,
    hull_offsets: np.ndarray,
    hulls: np.ndarray,
    first: int,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> int:
    """Match events from `first` on; return the first one for which `out` had no room."""
    for e in range(first, len(out_offsets) - 1):
        n_pairs = 0
        for k in range(events.offsets[e], events.offsets[e + 1]):
            n_pairs = chain_pairs(walk, scratch, n_pairs, events.dimensions[k], events.keys[k])
        n = _walk_woken(
            walk, scratch, hulls, hull_offsets[e], hull_offsets[e + 1], out, out_offsets[e]
        )
        unchain_pairs(scratch, n_pairs)
        if n > len(out):
            return e
        out_offsets[e + 1] = n
    return len(out_offsets) - 1
