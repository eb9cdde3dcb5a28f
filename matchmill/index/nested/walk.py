"""Walk nested clauses: for one event, or for many whose hull clauses are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchmill.encoding.conjunction_table import NONE, ONE_KEY
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.nested.arrays import ACCEPT, DEEP, FIRST_LEAF, Scratch, Walk
from matchmill.kernels.addresses import borrowed
from matchmill.kernels.jit import int64, kernel, uint64

__all__ = [
    "borrowed_scratch",
    "borrowed_walk",
    "chain_pairs",
    "flat_value",
    "leaf_holds",
    "unchain_pairs",
    "walk_batch",
    "walk_pairs",
]

_FEW_INTERVALS = 8
_JUMP_BITS = 0xFFFFFFFF
_PLAIN_BITS, _ONE_INTERVAL = (1 << 34) - 1, 1 << 2 | ONE_KEY
_FEW_CONDITIONS = 4  # per clause that is woken: evaluating all takes no longer than a walk


@kernel
def borrowed_walk(walk: Walk) -> Walk:
    """Return the same arrays without reference counts; see `addresses.py`."""
    return Walk(
        borrowed(walk.clause_ids),
        borrowed(walk.starts),
        borrowed(walk.leaves),
        borrowed(walk.more),
        borrowed(walk.places),
        borrowed(walk.always),
        borrowed(walk.owners),
        borrowed(walk.steps),
        borrowed(walk.condition_leaves),
        borrowed(walk.conditions),
        borrowed(walk.joins),
        borrowed(walk.shapes),
    )


@kernel
def borrowed_scratch(scratch: Scratch) -> Scratch:
    """Return the same arrays without reference counts."""
    return Scratch(
        borrowed(scratch.last),
        borrowed(scratch.earlier),
        borrowed(scratch.places),
        borrowed(scratch.keys),
        borrowed(scratch.woken),
        borrowed(scratch.truths),
        borrowed(scratch.clock),
    )


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
def _write_truths(walk: Walk, scratch: Scratch) -> None:
    """Evaluate all conditions for the event in the scratch."""
    leaves, truths = walk.leaves, scratch.truths
    for c in range(len(truths)):
        k = walk.condition_leaves[c]
        if (leaves[k, 0] & _PLAIN_BITS) == _ONE_INTERVAL:
            at = scratch.last[leaves[k, 0] >> 34]
            key = scratch.keys[at] if at >= 0 else int64(0)
            truths[c] = (leaves[k, 2] <= key) & (key <= leaves[k, 3])
        else:
            truths[c] = leaf_holds(leaves, walk.more, k, scratch)


@kernel
def flat_value(
    conditions: np.ndarray, joins: np.ndarray, truths: np.ndarray, start: int, stop: int, shape: int
) -> Any:
    """Evaluate leaves start … stop of a flat clause, of whose result each bit is one event.

    An `or` of `and` is evaluated as the reverse of the reverses.
    """
    reverse = uint64(0) - uint64(shape)
    value, total = uint64(truths[conditions[start]]) ^ reverse, ~uint64(0)
    for k in range(start + 1, stop):
        begins = uint64(0) - uint64(joins[k] == shape)  # all bits if an inner part begins here
        total &= value | ~begins
        value = (value & ~begins) | (uint64(truths[conditions[k]]) ^ reverse)
    return (total & value) ^ reverse


@kernel
def _holds_by_truths(walk: Walk, truths: np.ndarray, i: int) -> bool:
    if walk.shapes[i] != DEEP:
        start, stop, shape = walk.starts[i], walk.starts[i + 1], int64(walk.shapes[i])
        word = flat_value(walk.conditions, walk.joins, truths, start, stop, shape)
        return bool(word & uint64(1))
    steps = walk.steps
    k = walk.starts[i]
    while True:
        jump = int64(steps[k, 1 + truths[steps[k, 0]]])
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
    by_truths = len(scratch.truths) < _FEW_CONDITIONS * (n_walked + stop - start)
    if by_truths:
        _write_truths(walk, scratch)
    for i in walk.always:
        if _holds_by_truths(walk, scratch.truths, i) if by_truths else _holds(walk, scratch, i):
            if n < len(out):
                out[n] = walk.clause_ids[i]
            n += 1
    for h in range(start, stop):
        i = walk.owners[hulls[h]]
        if scratch.woken[i] != now:
            scratch.woken[i] = now
            n_walked += 1
            if _holds_by_truths(walk, scratch.truths, i) if by_truths else _holds(walk, scratch, i):
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
    own_walk, own_scratch = borrowed_walk(walk), borrowed_scratch(scratch)
    numbers = np.frombuffer(pairs, np.int64)
    n_pairs = 0
    for k in range(0, len(numbers), 2):
        n_pairs = chain_pairs(own_walk, own_scratch, n_pairs, numbers[k], numbers[k + 1])
    n = _walk_woken(own_walk, own_scratch, hulls, 0, len(hulls), out, 0)
    unchain_pairs(own_scratch, n_pairs)
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
    own_walk, own_scratch = borrowed_walk(walk), borrowed_scratch(scratch)
    dimensions, keys = events.dimensions, events.keys
    for e in range(first, len(out_offsets) - 1):
        n_pairs = 0
        for k in range(events.offsets[e], events.offsets[e + 1]):
            n_pairs = chain_pairs(own_walk, own_scratch, n_pairs, dimensions[k], keys[k])
        start, stop = hull_offsets[e], hull_offsets[e + 1]
        n = _walk_woken(own_walk, own_scratch, hulls, start, stop, out, out_offsets[e])
        unchain_pairs(own_scratch, n_pairs)
        if n > len(out):
            return e
        out_offsets[e + 1] = n
    return len(out_offsets) - 1
