"""Match events with the index of lists (`arrays.py` shows it).

each pair of the event     its code is counted, if it was not yet, and the ranges above it
each thing that holds      its blocks: keep entries with a bit in the signature, test the rest
all counts                 back to rest
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchmill.encoding.event_batch import EventBatch
from matchmill.index.lists.arrays import ALWAYS, DIRECT, ONE, UNUSED, ListArrays, Scratch
from matchmill.index.predicate_codes import code_of
from matchmill.kernels.intrinsics import prefetch
from matchmill.kernels.jit import int64, kernel, uint64

__all__ = ["match_events", "match_one"]

_AHEAD = 8  # entries whose records are being loaded
_FULL = -1  # there is no room for ids


@kernel
def _add_code(arrays: ListArrays, scratch: Scratch, d: int, code: int, n_held: int) -> int:
    """Count a code and the ranges above it; return how many things hold."""
    counts, held = scratch.counts, scratch.held
    signatures = scratch.signature_words
    if counts[code] > 0:
        return n_held
    counts[code] = 1
    held[n_held] = code
    n_held += 1
    bit = uint64(1) << uint64(code & 63)
    signatures[3 * d] |= bit
    signatures[3 * d + 2] |= bit
    for k in range(arrays.above_offsets[code], arrays.above_offsets[code + 1]):
        thing = arrays.above[k]
        if counts[thing] == 0:
            held[n_held] = thing
            n_held += 1
            bit = uint64(1) << uint64(thing & 63)
            signatures[3 * d + 1] |= bit
            signatures[3 * d + 2] |= bit
        counts[thing] += 1
    return n_held


@kernel
def _set_absence(arrays: ListArrays, scratch: Scratch, d: int, count: int) -> None:
    """Count the absence of a dimension with one value, or take that back (0)."""
    code = arrays.edge_offsets[d] + d
    scratch.is_absent[d] = count
    for word in range(3 * d, 3 * d + 3):
        scratch.signature_words[word] = scratch.rest[word] if count else uint64(0)
    scratch.counts[code] = count
    for k in range(arrays.above_offsets[code], arrays.above_offsets[code + 1]):
        scratch.counts[arrays.above[k]] = count


@kernel
def _add_pairs(
    arrays: ListArrays,
    scratch: Scratch,
    dimensions: np.ndarray,
    keys: np.ndarray,
    start: int,
    stop: int,
) -> int:
    """Count what holds for an event; return how many things do that do not hold at rest."""
    kinds, edge_offsets = arrays.kinds, arrays.edge_offsets
    n_held = 0
    for k in range(start, stop):
        d = int64(dimensions[k])
        if d >= len(kinds) or kinds[d] == UNUSED or keys[k] == 0:
            continue
        if kinds[d] == ONE:
            _set_absence(arrays, scratch, d, 0)
        first = edge_offsets[d]
        code = first + d + code_of(arrays.edges, first, edge_offsets[d + 1], keys[k])
        n_held = _add_code(arrays, scratch, d, code, n_held)
    return n_held


@kernel
def _reset(
    arrays: ListArrays,
    scratch: Scratch,
    dimensions: np.ndarray,
    keys: np.ndarray,
    start: int,
    stop: int,
    n_held: int,
) -> None:
    """Bring everything back to rest after an event."""
    for k in range(n_held):
        scratch.counts[scratch.held[k]] = 0
    for k in range(start, stop):
        d = int64(dimensions[k])
        if d >= len(arrays.kinds) or arrays.kinds[d] == UNUSED or keys[k] == 0:
            continue
        if arrays.kinds[d] == ONE:
            _set_absence(arrays, scratch, d, 1)
        else:
            for word in range(3 * d, 3 * d + 3):
                scratch.signature_words[word] = uint64(0)


@kernel
def _passes(records: np.ndarray, counts: np.ndarray, at: int) -> bool:
    """Return whether all tests of a record hold."""
    n_tests = records[at + 1]
    at += 2
    for _ in range(n_tests):
        head = int64(records[at])
        n_things, n_taken, is_none = head >> 2, int64(0), head & 1
        at += 1
        if head & 2:
            n_taken = int64(records[at])
            at += 1
        total = int64(0)
        for k in range(at, at + n_things):
            total += counts[records[k]]
            if total > 0 and n_taken == 0:
                break
        at += n_things
        for k in range(at, at + n_taken):
            total -= counts[records[k]]
        at += n_taken
        if (total > 0) == (is_none == 1):
            return False
    return True


@kernel
def _add_absences(arrays: ListArrays, scratch: Scratch, n_held: int) -> int:
    """Append the slots that are visited beside the things that hold; return how many there are."""
    held = scratch.held
    n = n_held
    held[n] = len(arrays.slot_offsets) - 2
    n += 1
    for d in arrays.absent:
        if scratch.is_absent[d]:
            code = arrays.edge_offsets[d] + d
            held[n] = code
            n += 1
            for k in range(arrays.above_offsets[code], arrays.above_offsets[code + 1]):
                held[n] = arrays.above[k]
                n += 1
    return n


@kernel
def _visit(
    arrays: ListArrays, scratch: Scratch, n_visited: int, out: np.ndarray, n_out: int
) -> int:
    """Append the rows that hold, of the clauses of all slots in `held`.

    Return how many ids there are, or _FULL. This is one function because passing arrays takes
    longer than looking at an entry.
    """
    slot_offsets, block_offsets = arrays.slot_offsets, arrays.block_offsets
    block_signatures, masks = arrays.block_signatures, arrays.entry_masks
    entry_records, records = arrays.entry_records, arrays.records
    held, kept, found_at, counts = scratch.held, scratch.kept, scratch.found_at, scratch.counts
    now, seen = scratch.clock[0], int64(0)
    for visited in range(n_visited):
        thing = held[visited]
        for b in range(slot_offsets[thing], slot_offsets[thing + 1]):
            first, stop = block_offsets[b], block_offsets[b + 1]
            signature = block_signatures[b]
            seen += stop - first
            if n_out + stop - first > len(out):
                return _FULL
            if signature == DIRECT:
                for r in range(first, stop):
                    head = entry_records[r]
                    row = head >> 1
                    out[n_out] = row
                    if head & 1:
                        n_out += found_at[row] != now
                        found_at[row] = now
                    else:
                        n_out += 1
                continue
            word = ~uint64(0)
            if signature != ALWAYS:
                word = scratch.signature_words[signature]
            n_kept = 0
            for r in range(first, stop):
                kept[n_kept] = entry_records[r]
                n_kept += (word & masks[r]) != uint64(0)
            for k in range(n_kept):
                if k + _AHEAD < n_kept:
                    prefetch(records, kept[k + _AHEAD])
                at = kept[k]
                if _passes(records, counts, at):
                    head = int64(records[at])
                    row = head >> 1
                    out[n_out] = row
                    if head & 1:
                        n_out += found_at[row] != now
                        found_at[row] = now
                    else:
                        n_out += 1
    scratch.clock[1] += seen
    return n_out


@kernel
def _match_event(
    arrays: ListArrays,
    scratch: Scratch,
    dimensions: np.ndarray,
    keys: np.ndarray,
    start: int,
    stop: int,
    out: np.ndarray,
    n_out: int,
) -> int:
    """Append the rows that hold for one event; return how many ids there are, or _FULL."""
    scratch.clock[0] += 1
    n_held = _add_pairs(arrays, scratch, dimensions, keys, start, stop)
    n_out = _visit(arrays, scratch, _add_absences(arrays, scratch, n_held), out, n_out)
    _reset(arrays, scratch, dimensions, keys, start, stop, n_held)
    return n_out


@kernel
def match_events(
    arrays: ListArrays,
    scratch: Scratch,
    events: EventBatch,
    first: int,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> int:
    """Match events from `first` on; return the first one for which `out` had no room."""
    n_out = out_offsets[first]
    for e in range(first, len(events.offsets) - 1):
        n_out = _match_event(
            arrays,
            scratch,
            events.dimensions,
            events.keys,
            events.offsets[e],
            events.offsets[e + 1],
            out,
            n_out,
        )
        if n_out < 0:
            return e
        out_offsets[e + 1] = n_out
    return len(events.offsets) - 1


@kernel
def match_one(arrays: ListArrays, scratch: Scratch, pairs: bytes, out: np.ndarray) -> Any:
    """Match the event of some pairs; return how many rows there are, or a negative number."""
    numbers = np.frombuffer(pairs, np.int64)
    n_pairs = len(numbers) >> 1
    for k in range(n_pairs):
        scratch.dimensions[k] = numbers[2 * k]
        scratch.keys[k] = numbers[2 * k + 1]
    none = int64(0)  # a literal would be a type of its own
    return _match_event(
        arrays, scratch, scratch.dimensions, scratch.keys, none, int64(n_pairs), out, none
    )
