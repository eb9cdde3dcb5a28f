"""Evaluate nested clauses for 64 events at once: a word per condition, a bit per event.

keys      place × 64: the key of each event of the block, 0 where it has none
truths    a word per condition: bit e is set if event e satisfies it
clause    its leaves from left to right; `values` has what is known of the parts that are open

a and (b or c)      leaf a    join 0: open an `and` with a
leaf b    join 1: open an `or` with b
leaf c    the end: `or` it to b, then `and` that to a
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ONE_KEY
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.nested.arrays import DEEP, NestedArrays, Scratch, Walk
from matchmill.index.nested.walk import (
    borrowed_scratch,
    borrowed_walk,
    chain_pairs,
    flat_value,
    leaf_holds,
    unchain_pairs,
)
from matchmill.kernels.addresses import borrowed
from matchmill.kernels.intrinsics import trailing_zeros
from matchmill.kernels.jit import int64, kernel, uint64

__all__ = ["BLOCK", "Words", "match_words", "new_words"]

BLOCK = 64
_MOST_OPEN = 64
_INTERVALS = 0xFFFFFFFF


class Words(NamedTuple):
    """What one thread needs; between blocks `keys` is 0."""

    keys: np.ndarray  # int64: place × 64
    truths: np.ndarray  # uint64 per condition
    listed: np.ndarray  # int32: conditions on several keys
    values: np.ndarray  # uint64: of open parts
    depths: np.ndarray  # int32: of open parts
    found: np.ndarray  # int32: clauses that some event of the block satisfies
    found_words: np.ndarray  # uint64: which ones do


def new_words(arrays: NestedArrays) -> Words:
    """Return what one thread needs."""
    heads = arrays.leaves[arrays.condition_leaves, 0]
    n_clauses = len(arrays.clause_ids)
    return Words(
        np.zeros((len(arrays.dimensions), BLOCK), np.int64),
        np.empty(len(arrays.condition_leaves), np.uint64),
        np.flatnonzero((heads & 3) != ONE_KEY).astype(np.int32),
        np.empty(_MOST_OPEN, np.uint64),
        np.empty(_MOST_OPEN, np.int32),
        np.empty(n_clauses, np.int32),
        np.empty(n_clauses, np.uint64),
    )


@kernel
def _range_word(keys: np.ndarray, low: int, high: int) -> Any:
    """Return which of 64 keys are from low to high."""
    word = uint64(0)
    for e in range(BLOCK):
        word |= uint64((low <= keys[e]) & (keys[e] <= high)) << uint64(e)
    return word


@kernel
def _write_truths(walk: Walk, words: Words) -> None:
    """Evaluate all conditions on one key."""
    leaves, more = walk.leaves, walk.more
    for c in range(len(words.truths)):
        k = walk.condition_leaves[c]
        if (leaves[k, 0] & 3) != ONE_KEY:
            continue
        keys = words.keys[leaves[k, 0] >> 34]
        n_intervals = (leaves[k, 0] >> 2) & _INTERVALS
        if n_intervals == 1:
            words.truths[c] = _range_word(keys, leaves[k, 2], leaves[k, 3])
            continue
        word = uint64(0)
        first = leaves[k, 2]
        for j in range(first, first + 2 * n_intervals, 2):
            word |= _range_word(keys, more[j], more[j + 1])
        words.truths[c] = word


@kernel
def _take_events(
    walk: Walk,
    scratch: Scratch,
    words: Words,
    events: EventBatch,
    start: int,
    stop: int,
) -> None:
    """Write the keys of a block of events, and evaluate conditions on several keys."""
    for c in words.listed:
        words.truths[c] = uint64(0)
    for e in range(start, stop):
        n_pairs = 0
        for k in range(events.offsets[e], events.offsets[e + 1]):
            n_pairs = chain_pairs(walk, scratch, n_pairs, events.dimensions[k], events.keys[k])
        for k in range(n_pairs):
            words.keys[scratch.places[k], e - start] = scratch.keys[k]
        for c in words.listed:
            if leaf_holds(walk.leaves, walk.more, walk.condition_leaves[c], scratch):
                words.truths[c] |= uint64(1) << uint64(e - start)
        unchain_pairs(scratch, n_pairs)


@kernel
def _clause_word(walk: Walk, words: Words, i: int) -> Any:
    """Return which events satisfy a clause."""
    truths, values, depths = words.truths, words.values, words.depths
    conditions, joins = walk.conditions, walk.joins
    start, stop = walk.starts[i], walk.starts[i + 1]
    shape = int64(walk.shapes[i])
    if shape != DEEP:
        return flat_value(conditions, joins, truths, start, stop, shape)
    value = truths[conditions[start]]
    n_open = 0
    for k in range(start + 1, stop):
        depth = joins[k]
        while n_open > 0 and depths[n_open - 1] > depth:
            n_open -= 1
            value = value | values[n_open] if depths[n_open] & 1 else value & values[n_open]
        if n_open > 0 and depths[n_open - 1] == depth:
            value = value | values[n_open - 1] if depth & 1 else value & values[n_open - 1]
        else:
            depths[n_open] = depth
            n_open += 1
        values[n_open - 1] = value
        if depth == 0 and value == 0:
            return uint64(0)
        value = truths[conditions[k]]
    while n_open > 0:
        n_open -= 1
        value = value | values[n_open] if depths[n_open] & 1 else value & values[n_open]
    return value


@kernel
def _borrowed_words(words: Words) -> Words:
    return Words(
        borrowed(words.keys),
        borrowed(words.truths),
        borrowed(words.listed),
        borrowed(words.values),
        borrowed(words.depths),
        borrowed(words.found),
        borrowed(words.found_words),
    )


@kernel
def match_words(
    counted_walk: Walk,
    counted_scratch: Scratch,
    counted_words: Words,
    events: EventBatch,
    first: int,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> int:
    """Match events from `first` on; return the first of a block for which `out` had no room."""
    walk, scratch = borrowed_walk(counted_walk), borrowed_scratch(counted_scratch)
    words = _borrowed_words(counted_words)
    n_events = len(out_offsets) - 1
    for start in range(first, n_events, BLOCK):
        stop = min(n_events, start + BLOCK)
        _take_events(walk, scratch, words, events, start, stop)
        _write_truths(walk, words)
        words.keys[:] = 0
        mask = uint64(0xFFFFFFFFFFFFFFFF) >> uint64(BLOCK - (stop - start))
        n_found = 0
        counts = np.zeros(BLOCK + 1, np.int64)
        for i in range(len(walk.clause_ids)):
            word = _clause_word(walk, words, i) & mask
            if word:
                words.found[n_found] = i
                words.found_words[n_found] = word
                n_found += 1
                while word:
                    counts[trailing_zeros(word) + 1] += 1
                    word &= word - uint64(1)
        counts[0] = out_offsets[start]
        for e in range(BLOCK):
            counts[e + 1] += counts[e]
        if counts[BLOCK] > len(out):
            return start
        for e in range(start, stop):
            out_offsets[e + 1] = counts[e - start + 1]
        for n in range(n_found):
            clause_id = walk.clause_ids[words.found[n]]
            word = words.found_words[n]
            while word:
                e = int64(trailing_zeros(word))
                out[counts[e]] = clause_id
                counts[e] += 1
                word &= word - uint64(1)
        scratch.clock[1] += (stop - start) * len(walk.clause_ids)
    return n_events
