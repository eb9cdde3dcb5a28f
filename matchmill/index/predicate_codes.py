"""The distinct predicates of a table, in the codes of their dimensions.

    distinct predicate q    dimensions[q]; used uses[q] times; its intervals, in codes, are
                            lows[k] … highs[k] for k in interval_offsets[q] … [q + 1]
    dimension d             distinct predicates predicate_offsets[d] … [d + 1]
                            edges edge_offsets[d] … [d + 1], ascending: where some predicate of
                            the dimension starts or ends to hold
    code of a key           how many edges are at or below it: 0 … n_edges

All keys between two edges satisfy the same predicates, so a code says all that a key can say.
Key 0, absence, has code 0 on every dimension (an edge at 0 is left out: nothing is below it).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.index.distinct_predicates import find_distinct
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.hashing import combine31
from matchmill.kernels.intrinsics import prefetch
from matchmill.kernels.jit import int64, kernel
from matchmill.kernels.sorting import sort_rows
from matchmill.kernels.threads import on_ranges, split_weights

__all__ = ["Dictionary", "build_dictionary", "code_of"]

_LAST_KEY = (1 << 63) - 1
_FEWEST_SLOTS = 64
_AHEAD = 32  # predicates whose slots are being loaded


class Dictionary(NamedTuple):
    """The distinct predicates of a table, and the edges of its dimensions."""

    ids: np.ndarray  # int32, one per predicate of the table
    dimensions: np.ndarray  # int32, ascending
    uses: np.ndarray  # int32
    interval_offsets: np.ndarray  # int64
    lows: np.ndarray  # int32 codes
    highs: np.ndarray  # int32 codes
    predicate_offsets: np.ndarray  # int64, one more than there are dimensions
    edge_offsets: np.ndarray  # int64
    edges: np.ndarray  # int64 keys

    @property
    def n_distinct(self) -> int:
        """The number of distinct predicates."""
        return len(self.dimensions)

    @property
    def n_dimensions(self) -> int:
        """The number of dimensions."""
        return len(self.edge_offsets) - 1


class _Scratch(NamedTuple):
    """For the dimension at hand."""

    slots: np.ndarray  # int64, two per slot: a hash table of (edge, code), so that only distinct
    # edges are sorted and none is searched for
    bounds: np.ndarray  # int64, two per interval: its low, and what comes after its high
    sorting: np.ndarray  # int64


class _Codes(NamedTuple):
    """What is found."""

    lows: np.ndarray  # int32, of all intervals
    highs: np.ndarray  # int32, of all intervals
    edges: np.ndarray  # int64, of some dimensions
    n_edges: np.ndarray  # int64, one per dimension


def build_dictionary(table: ConjunctionTable) -> Dictionary:
    """Find the distinct predicates of a table, and code their intervals."""
    n_dimensions = table.n_dimensions
    ids, dimensions, places, n_intervals, uses = find_distinct(table)
    predicate_offsets = np.searchsorted(dimensions, np.arange(n_dimensions + 1))
    interval_offsets = offsets_of(n_intervals)
    lows = np.empty(interval_offsets[-1], np.int32)
    highs = np.empty(interval_offsets[-1], np.int32)
    n_edges = np.zeros(n_dimensions, np.int64)

    def code(start: int, stop: int) -> np.ndarray:
        counts = np.diff(interval_offsets[predicate_offsets[start : stop + 1]])
        n_bounds = 2 * int(counts.max(initial=0))
        scratch = _Scratch(
            np.empty((_slots_for(n_bounds), 2), np.int64),
            np.empty((n_bounds // 2, 2), np.int64),
            np.empty(n_bounds, np.int64),
        )
        edges = np.empty(2 * int(counts.sum()), np.int64)
        out = _Codes(lows, highs, edges, n_edges[start:stop])
        offsets = predicate_offsets[start : stop + 1]
        n = _code_intervals(table, places, offsets, interval_offsets, scratch, out)
        return edges[:n]

    edges = on_ranges(code, split_weights(interval_offsets[predicate_offsets]))
    return Dictionary(
        ids,
        dimensions,
        uses,
        interval_offsets,
        lows,
        highs,
        predicate_offsets,
        offsets_of(n_edges),
        np.concatenate(edges),
    )


def _slots_for(n: int) -> int:
    """Return the size of a hash table that n entries fill by half or less; sizes are 64 * 4**i."""
    n_slots = _FEWEST_SLOTS
    while n_slots < 2 * (n + 3):
        n_slots *= 4
    return n_slots


@kernel
def code_of(edges: np.ndarray, start: int, stop: int, key: int) -> int:
    """Count those of edges[start:stop] that are at or below the key, without branches."""
    low = start
    n = stop - start
    while n > 0:
        half = (n + 1) >> 1
        low += half if edges[low + half - 1] <= key else 0
        n -= half
    return int(low - start)


@kernel
def _find_edge(slots: np.ndarray, mask: int, key: int) -> int:
    """Return the slot of an edge, or the free one where it belongs."""
    slot = combine31(int64(0), key) & mask
    while slots[slot, 0] != key and slots[slot, 0] >= 0:
        slot = (slot + 1) & mask
    return slot


@kernel
def _code_intervals(
    table: ConjunctionTable,
    places: np.ndarray,
    predicate_offsets: np.ndarray,
    interval_offsets: np.ndarray,
    scratch: _Scratch,
    out: _Codes,
) -> int:
    """Write the edges of some dimensions, and the codes of all their intervals.

    Return the number of edges.
    """
    lows, highs, slots, bounds = table.lows, table.highs, scratch.slots, scratch.bounds
    out_edges, out_lows, out_highs = out.edges, out.lows, out.highs
    n_edges = int64(0)
    for d in range(len(predicate_offsets) - 1):
        first, last = predicate_offsets[d], predicate_offsets[d + 1]
        base = interval_offsets[first]
        start = n_edges
        mask = int64(-1)
        for q in range(first, last):
            if q + _AHEAD < len(places):
                prefetch(lows, places[q + _AHEAD])
                prefetch(highs, places[q + _AHEAD])
            place = places[q]
            for k in range(interval_offsets[q] - base, interval_offsets[q + 1] - base):
                if 2 * (n_edges - start + 3) > mask:
                    mask = max(int64(_FEWEST_SLOTS), 4 * (mask + 1)) - 1
                    for s in range(mask + 1):
                        slots[s, 0] = -1
                    for e in range(start, n_edges):
                        slots[_find_edge(slots, mask, out_edges[e]), 0] = out_edges[e]
                bounds[k, 0] = lows[place]
                bounds[k, 1] = highs[place] + 1 if highs[place] < _LAST_KEY else 0
                place += 1
                for side in range(2):
                    edge = bounds[k, side]
                    if edge > 0:
                        slot = _find_edge(slots, mask, edge)
                        if slots[slot, 0] < 0:
                            slots[slot, 0] = edge
                            out_edges[n_edges] = edge
                            n_edges += 1
        sort_rows(out_edges, scratch.sorting, start, n_edges)
        for e in range(start, n_edges):
            slots[_find_edge(slots, mask, out_edges[e]), 1] = e - start + 1
        out.n_edges[d] = n_edges - start
        for k in range(interval_offsets[last] - base):
            low, high = int64(0), n_edges - start  # nothing is below the first or above the last
            if bounds[k, 0] > 0:
                low = slots[_find_edge(slots, mask, bounds[k, 0]), 1]
            if bounds[k, 1] > 0:
                high = slots[_find_edge(slots, mask, bounds[k, 1]), 1] - 1
            out_lows[base + k] = low
            out_highs[base + k] = high
    return int(n_edges)
