"""Kernels that fill the rows, the bounds and the tails of all chunks.

A row differs from the one before it in the clauses whose intervals begin there or ended before it.
So each interval flips its bit in two rows, and a running XOR over the rows of a slot does it.
"""

from __future__ import annotations

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.index.bitmaps.arrays import CHUNK, LANE_BITS
from matchmill.index.bitmaps.buckets import HIGH_UNSURE, LOW_UNSURE, Slots, Spans
from matchmill.kernels.intrinsics import ROW_WORDS, count_ones
from matchmill.kernels.jit import int64, kernel, uint64

__all__ = ["count_bits", "fill_bounds", "fill_rows"]

_ONE = np.uint64(1)


@kernel
def fill_rows(
    table: ConjunctionTable, order: np.ndarray, slots: Slots, spans: Spans, out: np.ndarray
) -> None:
    """Write the rows of all chunks; `out` is zero before."""
    n_rows, n_slots = slots.row_starts[-1], len(slots.dimensions)
    for place in range(len(order)):
        i = order[place]
        base = place // CHUNK * n_rows * ROW_WORDS + (place % CHUNK >> 6)
        bit = _ONE << uint64(place & 63)
        for slot in range(n_slots):  # as if there were no predicate
            out[base + slots.row_starts[slot] * ROW_WORDS] |= bit
        for p in range(table.clause_offsets[i], table.clause_offsets[i + 1]):
            slot = int64(slots.of_dimension[table.dimensions[p]])
            if slot >= 0:
                first, stop = table.interval_offsets[p], table.interval_offsets[p + 1]
                _flip(spans, first, stop, slots.row_starts, slot, base, bit, out)
    for chunk in range((len(order) + CHUNK - 1) // CHUNK):
        for slot in range(n_slots):
            first = (chunk * n_rows + slots.row_starts[slot]) * ROW_WORDS
            stop = (chunk * n_rows + slots.row_starts[slot + 1]) * ROW_WORDS
            for word in range(first + ROW_WORDS, stop):
                out[word] ^= out[word - ROW_WORDS]


@kernel
def _flip(
    spans: Spans,
    first: int,
    stop: int,
    row_starts: np.ndarray,
    slot: int,
    base: int,
    bit: int,
    out: np.ndarray,
) -> None:
    """Flip a bit where the intervals of a predicate begin and end."""
    start, n_rows = row_starts[slot], row_starts[slot + 1] - row_starts[slot]
    out[base + start * ROW_WORDS] ^= bit
    k = first
    while k < stop:
        begin, end = int64(spans.first[k]), int64(spans.last[k])
        k += 1
        while k < stop and spans.first[k] <= end + 1:
            end = int64(spans.last[k])
            k += 1
        out[base + (start + begin) * ROW_WORDS] ^= bit
        if end + 1 < n_rows:
            out[base + (start + end + 1) * ROW_WORDS] ^= bit


@kernel
def count_bits(
    rows: np.ndarray,
    row_starts: np.ndarray,
    masses: np.ndarray,
    out_bits: np.ndarray,
    out_leads: np.ndarray,
) -> None:
    """Count the bits of each row in all chunks, and find the two slots of each with the fewest."""
    n_rows, n_slots = row_starts[-1], len(row_starts) - 1
    for chunk in range(len(out_leads) // 2):
        least, second = np.inf, np.inf
        for slot in range(n_slots):
            likely = 0.0
            for r in range(row_starts[slot], row_starts[slot + 1]):
                n = 0
                word = (chunk * n_rows + r) * ROW_WORDS
                for w in range(ROW_WORDS):
                    n += count_ones(rows[word + w])
                out_bits[r] += n
                if n:  # an empty row ends the search
                    likely += masses[r] * (32 + n)
            if likely < least:
                second, out_leads[2 * chunk + 1] = least, out_leads[2 * chunk]
                least, out_leads[2 * chunk] = likely, slot
            elif likely < second:
                second, out_leads[2 * chunk + 1] = likely, slot


@kernel
def fill_bounds(
    table: ConjunctionTable,
    order: np.ndarray,
    slots: Slots,
    spans: Spans,
    chunk_starts: np.ndarray,
    out_offsets: np.ndarray,
    out_bounds: np.ndarray,
    out_sides: np.ndarray,
    out_tail_offsets: np.ndarray,
    out_tails: np.ndarray,
) -> None:
    """Write the bounds and tails of all chunks; offsets are zero before."""
    n_tails = 2 * slots.row_starts[-1]
    for chunk in range(len(chunk_starts) - 1):
        start = chunk_starts[chunk]
        tail_offsets = out_tail_offsets[chunk * (n_tails + 1) : (chunk + 1) * (n_tails + 1)]
        tails = out_tails[start : chunk_starts[chunk + 1]]
        n_lanes = min(len(order) - chunk * CHUNK, CHUNK)
        offsets = out_offsets[chunk * (CHUNK + 1) : (chunk + 1) * (CHUNK + 1)]
        for counting in (True, False):
            n = 0
            for lane in range(n_lanes):
                i = order[chunk * CHUNK + lane]
                n = _bounds_of(
                    table, i, slots, spans, start, n, lane, counting, out_bounds, out_sides,
                    tail_offsets, tails,
                )  # fmt: skip
                offsets[lane + 1] = n
            # What was counted, or where the next one goes, is that of the tail before it.
            for t in range(n_tails, 0, -1):
                tail_offsets[t] = tail_offsets[t - 1]
            tail_offsets[0] = 0
            if counting:
                for t in range(n_tails):
                    tail_offsets[t + 1] += tail_offsets[t]
        for lane in range(max(0, n_lanes), CHUNK):
            offsets[lane + 1] = n


@kernel
def _bounds_of(
    table: ConjunctionTable,
    i: int,
    slots: Slots,
    spans: Spans,
    start: int,
    n: int,
    lane: int,
    counting: bool,
    out_bounds: np.ndarray,
    out_sides: np.ndarray,
    tail_ends: np.ndarray,
    out_tails: np.ndarray,
) -> int:
    """Count the bounds of a clause in their tails, or write them; return how many there are."""
    for p in range(table.clause_offsets[i], table.clause_offsets[i + 1]):
        slot = int64(slots.of_dimension[table.dimensions[p]])
        k = table.interval_offsets[p]
        if slot < 0 or table.interval_offsets[p + 1] != k + 1:
            continue
        for side in range(2):
            if not spans.unsure[k] & (HIGH_UNSURE if side else LOW_UNSURE):
                continue
            row = int64(spans.last[k]) if side else int64(spans.first[k])
            tail = 2 * (slots.row_starts[slot] + row) + side
            if not counting:
                out_bounds[start + n] = table.highs[k] + 1 if side else table.lows[k]
                out_sides[start + n] = slot << 1 | side
                out_tails[tail_ends[tail]] = lane | n << LANE_BITS
            tail_ends[tail] += 1
            n += 1
    return n
