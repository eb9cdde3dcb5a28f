"""From a table to the arrays of chunked bitmaps.

    table ─► slots and edges ─► spans of intervals ─► order of clauses ─► rows, bounds, tails

The clauses of a chunk should be excluded together by few rows. Clauses on the same few dimensions
are ordered as boxes (`mask_tree/order.py`); others by the least likely of their predicates.
"""

from __future__ import annotations

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.index.array_index import narrow_ids
from matchmill.index.base import Statistics
from matchmill.index.bitmaps.arrays import (
    CHUNK,
    FULL,
    LAST_KEY,
    BitmapArrays,
)
from matchmill.index.bitmaps.buckets import Slots, Spans, find_slots, find_spans, row_masses
from matchmill.index.bitmaps.rows import count_bits, fill_bounds, fill_rows
from matchmill.index.mask_tree.order import order_boxes
from matchmill.kernels.csr import offsets_of, take_ranges
from matchmill.kernels.intrinsics import ROW_WORDS
from matchmill.kernels.jit import int64, kernel

__all__ = ["build_bitmaps"]

_MOST_BOX_SLOTS = 8
# Nanoseconds: a clause, each of its bounds; the tail of a row, each of its items.
_CLAUSE, _BOUND = 12.0, 1.0
_TAIL, _ITEM = 4.0, 5.0
_BOX_SHARE = 0.9  # of the slots that a clause asks for, on average


def build_bitmaps(table: ConjunctionTable, statistics: Statistics | None) -> BitmapArrays:
    """Build all arrays."""
    slots = find_slots(table, statistics)
    spans = find_spans(table, slots)
    masses = row_masses(slots, statistics)
    order = _ordered(table, slots, spans, masses)
    n_chunks = max(1, -(-table.n_clauses // CHUNK))
    rows = np.zeros(n_chunks * slots.n_rows * ROW_WORDS, np.uint64)
    fill_rows(table, order, slots, spans, rows)
    n_bits, leads = np.zeros(slots.n_rows, np.int64), np.zeros(2 * n_chunks, np.int32)
    count_bits(rows, slots.row_starts, masses, n_bits, leads)
    bounds = _bounds(table, order, slots, spans, n_chunks)
    padded_ids = np.full(n_chunks * CHUNK, -1, np.int64)
    padded_ids[: len(order)] = table.clause_ids[order]
    ids, clause_ids = narrow_ids(padded_ids)
    return BitmapArrays(
        sizes=_sizes(table, slots, n_chunks, len(bounds["bounds"])),
        dimensions=slots.dimensions,
        slots=slots.of_dimension,
        edges=slots.edges,
        row_starts=slots.row_starts,
        ranks=_ranks(n_bits, table.n_clauses),
        rows=rows,
        leads=leads,
        ids=ids,
        clause_ids=clause_ids,
        **bounds,
        **_general(table, order, slots, spans, n_chunks),
    )


def _sizes(table: ConjunctionTable, slots: Slots, n_chunks: int, n_bounds: int) -> np.ndarray:
    per_clause = n_bounds / max(1, table.n_clauses)
    per_tail = n_bounds / n_chunks / slots.n_rows
    costs = _CLAUSE + _BOUND * per_clause, len(slots.dimensions) * (_TAIL + _ITEM * per_tail)
    return np.array([n_chunks, slots.n_rows, table.n_clauses, *costs], np.int64)


def _ranks(n_bits: np.ndarray, n_clauses: int) -> np.ndarray:
    share = n_bits / max(1, n_clauses)
    ranks: np.ndarray = np.minimum(FULL - 1, np.sqrt(share) * FULL).astype(np.uint8)
    ranks[n_bits >= n_clauses] = FULL
    return ranks


# -- order ----------------------------------------------------------------------------------------


def _ordered(table: ConjunctionTable, slots: Slots, spans: Spans, masses: np.ndarray) -> np.ndarray:
    n_slots = len(slots.dimensions)
    n_held = int((slots.of_dimension[table.dimensions] >= 0).sum())
    if n_slots <= _MOST_BOX_SLOTS and n_held >= _BOX_SHARE * n_slots * table.n_clauses:
        return order_boxes(_ends(table, slots, spans))
    sums = np.concatenate((np.zeros(1), np.cumsum(masses)))
    leads = np.empty(table.n_clauses, np.int32)
    places = np.empty(table.n_clauses, np.int64)
    _least_likely(table, slots, spans, sums, leads, places)
    return np.lexsort((places, leads))


def _ends(table: ConjunctionTable, slots: Slots, spans: Spans) -> np.ndarray:
    """Return the first rows of each clause on all slots, then the last ones."""
    n_slots = len(slots.dimensions)
    ends = np.zeros((table.n_clauses, 2 * n_slots), np.float32)
    ends[:, n_slots:] = np.diff(slots.row_starts) - 1
    _fill_ends(table, slots, spans, ends)
    return ends


@kernel
def _fill_ends(table: ConjunctionTable, slots: Slots, spans: Spans, out: np.ndarray) -> None:
    n_slots = len(slots.dimensions)
    for i in range(len(out)):
        for p in range(table.clause_offsets[i], table.clause_offsets[i + 1]):
            slot = int64(slots.of_dimension[table.dimensions[p]])
            first, stop = table.interval_offsets[p], table.interval_offsets[p + 1]
            if slot >= 0 and first < stop:
                out[i, slot] = spans.first[first]
                out[i, n_slots + slot] = spans.last[stop - 1]


@kernel
def _least_likely(
    table: ConjunctionTable,
    slots: Slots,
    spans: Spans,
    sums: np.ndarray,
    out_leads: np.ndarray,
    out_places: np.ndarray,
) -> None:
    """Find the least likely predicate of each clause: its slot, and where it stands there."""
    for i in range(len(out_leads)):
        least = np.inf
        out_leads[i], out_places[i] = len(slots.dimensions), 0
        for p in range(table.clause_offsets[i], table.clause_offsets[i + 1]):
            slot = int64(slots.of_dimension[table.dimensions[p]])
            first, stop = table.interval_offsets[p], table.interval_offsets[p + 1]
            if slot < 0 or first == stop:
                continue
            start = slots.row_starts[slot]
            chance = 0.0
            for k in range(first, stop):
                chance += sums[start + spans.last[k] + 1] - sums[start + spans.first[k]]
            if chance < least:
                least = chance
                low, high = table.lows[first], table.highs[stop - 1]
                # Ranges without a lower bound come before all others.
                out_leads[i] = slot
                out_places[i] = low if low > 1 else high - LAST_KEY


# -- what rows cannot say -------------------------------------------------------------------------


def _bounds(
    table: ConjunctionTable, order: np.ndarray, slots: Slots, spans: Spans, n_chunks: int
) -> dict[str, np.ndarray]:
    n_ends = ((spans.unsure & 1) + (spans.unsure >> 1)).astype(np.int64)
    n_intervals = np.diff(table.interval_offsets)
    is_plain = (slots.of_dimension[table.dimensions] >= 0) & (n_intervals == 1)
    per_predicate = np.zeros(table.n_predicates, np.int64)
    per_predicate[is_plain] = n_ends[table.interval_offsets[:-1][is_plain]]
    sums = offsets_of(per_predicate)
    per_clause = (sums[table.clause_offsets[1:]] - sums[table.clause_offsets[:-1]])[order]
    per_chunk = np.zeros(n_chunks * CHUNK, np.int64)
    per_chunk[: len(order)] = per_clause
    starts = offsets_of(per_chunk.reshape(n_chunks, CHUNK).sum(axis=1))
    n = int(starts[-1])
    out = {
        "chunk_starts": starts,
        "bound_offsets": np.zeros(n_chunks * (CHUNK + 1), np.int32),
        "bounds": np.empty(n, np.int64),
        "sides": np.empty(n, np.uint8),
        "tail_offsets": np.zeros(n_chunks * (2 * slots.n_rows + 1), np.int32),
        "tails": np.empty(n, np.int32),
    }
    fill_bounds(table, order, slots, spans, *out.values())
    return out


def _general(
    table: ConjunctionTable, order: np.ndarray, slots: Slots, spans: Spans, n_chunks: int
) -> dict[str, np.ndarray]:
    """Return the predicates that have to be looked at in full."""
    n_intervals = np.diff(table.interval_offsets)
    n_unsure = offsets_of(spans.unsure > 0)[table.interval_offsets]
    is_general = (n_intervals > 1) & (n_unsure[1:] > n_unsure[:-1])
    is_general |= slots.of_dimension[table.dimensions] < 0
    sums = offsets_of(is_general)[table.clause_offsets]
    n_general = np.diff(sums)[order]
    places = np.flatnonzero(n_general)
    _, all_predicates = take_ranges(table.clause_offsets, order[places])
    predicates = all_predicates[is_general[all_predicates]]
    interval_offsets, intervals = take_ranges(table.interval_offsets, predicates)
    bits = np.zeros(n_chunks * CHUNK, np.uint8)
    bits[places] = 1
    return {
        "general": np.packbits(bits, bitorder="little").view(np.uint64),
        "general_places": places.astype(np.int64),
        "general_offsets": offsets_of(n_general[places]),
        "general_dimensions": table.dimensions[predicates],
        "general_intervals": interval_offsets,
        "general_lows": table.lows[intervals],
        "general_highs": table.highs[intervals],
    }
