"""The distinct predicates of a table, in the codes of their dimensions.

    distinct predicate q    dimensions[q]; used uses[q] times; its intervals, in codes, are
                            lows[k] … highs[k] for k in interval_offsets[q] … [q + 1]
    dimension d             distinct predicates predicate_offsets[d] … [d + 1]
                            edges edge_offsets[d] … [d + 1], ascending: where some predicate of
                            the dimension starts or ends to hold
    code of a key           how many edges are at or below it: 0 … n_edges

All keys between two edges behave alike, so a code says all that a key can say. Key 0, absence, has
code 0 on every dimension (an edge at 0 is left out: nothing is below it).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill._jit import int64, kernel
from matchmill._sorting import sort_by_key
from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.indexes.mill.machine import prefetch

__all__ = ["Dictionary", "build_dictionary", "code_of"]

_LAST_KEY = (1 << 63) - 1
_AHEAD = 32  # predicates whose slots are being loaded


class Dictionary(NamedTuple):
    ids: np.ndarray  # int32, one a predicate of the table
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
        return len(self.dimensions)

    @property
    def n_dimensions(self) -> int:
        return len(self.edge_offsets) - 1


def build_dictionary(table: ConjunctionTable) -> Dictionary:
    ids, firsts = _find_distinct(table)
    n_dimensions = table.n_dimensions
    dimensions = table.dimensions[firsts]
    order = np.argsort(dimensions, kind="stable")
    renumbered = np.empty(len(firsts), np.int32)
    renumbered[order] = np.arange(len(firsts), dtype=np.int32)
    uses = np.zeros(len(firsts), np.int32)
    _renumber(ids, renumbered, uses)
    firsts, dimensions = firsts[order], dimensions[order]

    counts = table.interval_offsets[firsts + 1] - table.interval_offsets[firsts]
    interval_offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    predicate_offsets = np.searchsorted(dimensions, np.arange(n_dimensions + 1))
    lows = np.empty(interval_offsets[-1], np.int32)
    highs = np.empty(interval_offsets[-1], np.int32)
    edge_offsets = np.zeros(n_dimensions + 1, np.int64)
    edges = _code_intervals(
        table.interval_offsets,
        table.lows,
        table.highs,
        firsts,
        predicate_offsets,
        interval_offsets,
        lows,
        highs,
        edge_offsets,
    )
    return Dictionary(
        ids,
        dimensions,
        uses,
        interval_offsets,
        lows,
        highs,
        predicate_offsets,
        edge_offsets,
        edges,
    )


# -- distinct predicates --------------------------------------------------------------------------


def _find_distinct(table: ConjunctionTable) -> tuple[np.ndarray, np.ndarray]:
    """The distinct predicate of each predicate, and one that stands for each distinct one.

    slots      31 bits of hash and a number; the table grows with the number of distinct ones
    records    of a distinct predicate: its first interval's place, low and high, and
               dimension << 32 | number of intervals: one cache line answers most comparisons
    """
    n = table.n_predicates
    ids = np.empty(n, np.int32)
    firsts = np.empty(1 << 12, np.int64)
    records = np.empty((1 << 12, 4), np.int64)
    slots = np.full(1 << 13, -1, np.int64)
    done = n_distinct = 0
    while True:
        done, n_distinct = _add_predicates(table, slots, records, ids, firsts, done, n_distinct)
        if done == n:
            return ids, firsts[:n_distinct].copy()
        factor = 4 if len(firsts) < 1 << 20 else 2
        firsts = np.concatenate((firsts, np.empty((factor - 1) * len(firsts), np.int64)))
        more = np.empty(((factor - 1) * len(records), 4), np.int64)
        records = np.concatenate((records, more))
        grown = np.full(factor * len(slots), -1, np.int64)
        _rehash(slots, grown)
        slots = grown


@kernel
def _mixed(h: int, key: int) -> int:
    """31 bits. Works on 31-bit pieces, so that nothing overflows with or without compilation."""
    x = ((h ^ (key & 0x7FFFFFFF) ^ (key >> 29)) & 0x7FFFFFFF) * 0x5851F42D
    return (x ^ (x >> 29)) & 0x7FFFFFFF


@kernel
def _add_predicates(
    table: ConjunctionTable,
    slots: np.ndarray,
    records: np.ndarray,
    out_ids: np.ndarray,
    out_firsts: np.ndarray,
    start: int,
    n_distinct: int,
) -> tuple[int, int]:
    """Adds predicates from `start` on, until the table is half full; returns how far it came."""
    n = len(table.dimensions)
    mask = len(slots) - 1
    hashes = np.empty(_AHEAD, np.int64)
    for block in range(start, n, _AHEAD):
        if n_distinct + _AHEAD > len(records):
            return block, n_distinct
        stop = min(n, block + _AHEAD)
        for p in range(block, stop):
            h = _mixed(17, int64(table.dimensions[p]))
            for k in range(table.interval_offsets[p], table.interval_offsets[p + 1]):
                h = _mixed(_mixed(h, table.lows[k]), table.highs[k])
            hashes[p - block] = h
            prefetch(slots, h & mask)
        for p in range(block, stop):
            entry = slots[hashes[p - block] & mask]
            if entry >= 0:
                prefetch(records, entry & 0xFFFFFFFF)
        for p in range(block, stop):
            h = hashes[p - block]
            slot = h & mask
            first = table.interval_offsets[p]
            n_intervals = table.interval_offsets[p + 1] - first
            shape = (int64(table.dimensions[p]) << 32) | n_intervals
            while True:
                entry = slots[slot]
                if entry < 0:
                    slots[slot] = (h << 32) | n_distinct
                    out_firsts[n_distinct] = p
                    out_ids[p] = n_distinct
                    records[n_distinct, 0] = first
                    records[n_distinct, 1] = table.lows[first]
                    records[n_distinct, 2] = table.highs[first]
                    records[n_distinct, 3] = shape
                    n_distinct += 1
                    break
                if entry >> 32 == h:
                    known = entry & 0xFFFFFFFF
                    is_same = (
                        records[known, 3] == shape
                        and records[known, 1] == table.lows[first]
                        and records[known, 2] == table.highs[first]
                    )
                    if is_same and n_intervals > 1:
                        other = records[known, 0]
                        for k in range(1, n_intervals):
                            is_same &= table.lows[first + k] == table.lows[other + k]
                            is_same &= table.highs[first + k] == table.highs[other + k]
                    if is_same:
                        out_ids[p] = known
                        break
                slot = (slot + 1) & mask
    return n, n_distinct


@kernel
def _rehash(slots: np.ndarray, out: np.ndarray) -> None:
    mask = len(out) - 1
    for entry in slots:
        if entry >= 0:
            slot = (entry >> 32) & mask
            while out[slot] >= 0:
                slot = (slot + 1) & mask
            out[slot] = entry


@kernel
def _renumber(ids: np.ndarray, renumbered: np.ndarray, out_uses: np.ndarray) -> None:
    for p in range(len(ids)):
        new = renumbered[ids[p]]
        ids[p] = new
        out_uses[new] += 1


# -- codes ----------------------------------------------------------------------------------------


@kernel
def code_of(edges: np.ndarray, start: int, stop: int, key: int) -> int:
    """How many of edges[start:stop] are at or below the key."""
    low = start
    n = stop - start
    while n > 0:
        half = (n + 1) >> 1
        low += half if edges[low + half - 1] <= key else 0
        n -= half
    return int(low - start)


@kernel
def _find_edge(slots: np.ndarray, mask: int, key: int) -> int:
    """The slot of an edge, or the free one where it belongs."""
    slot = _mixed(0, key) & mask
    while slots[slot, 0] != key and slots[slot, 0] >= 0:
        slot = (slot + 1) & mask
    return slot


@kernel
def _code_intervals(
    table_offsets: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    firsts: np.ndarray,
    predicate_offsets: np.ndarray,
    interval_offsets: np.ndarray,
    out_lows: np.ndarray,
    out_highs: np.ndarray,
    out_edge_offsets: np.ndarray,
) -> np.ndarray:
    """The edges of all dimensions; fills the codes of all intervals.

    Each dimension's bounds go through a hash table of (edge, code), so that only distinct ones
    are sorted and none is searched for."""
    slots = np.empty((64, 2), np.int64)
    edges = np.empty(2 * len(out_lows), np.int64)
    bounds = np.empty((len(out_lows), 2), np.int64)  # of the distinct predicates alone, in order
    n_distinct = len(firsts)
    n_edges = 0
    for d in range(len(predicate_offsets) - 1):
        first, last = predicate_offsets[d], predicate_offsets[d + 1]
        start = n_edges
        mask = 63
        slots[:64, 0] = -1
        for q in range(first, last):
            if q + 2 * _AHEAD < n_distinct:
                prefetch(table_offsets, firsts[q + 2 * _AHEAD])
                prefetch(lows, table_offsets[firsts[q + _AHEAD]])
                prefetch(highs, table_offsets[firsts[q + _AHEAD]])
            base = table_offsets[firsts[q]]
            for k in range(interval_offsets[q + 1] - interval_offsets[q]):
                at = interval_offsets[q] + k
                bounds[at, 0] = lows[base + k]
                bounds[at, 1] = highs[base + k] + 1 if highs[base + k] < _LAST_KEY else 0
                for side in range(2):
                    edge = bounds[at, side]
                    slot = _find_edge(slots, mask, edge)
                    if slots[slot, 0] < 0:
                        slots[slot, 0] = edge
                        slots[slot, 1] = 0
                        if edge > 0:
                            edges[n_edges] = edge
                            n_edges += 1
                if 2 * (n_edges - start + 3) > mask:
                    mask = 4 * mask + 3
                    if len(slots) <= mask:
                        slots = np.empty((mask + 1, 2), np.int64)
                    slots[: mask + 1, 0] = -1
                    slots[_find_edge(slots, mask, 0)] = 0
                    for k_edge in range(start, n_edges):
                        slots[_find_edge(slots, mask, edges[k_edge]), 0] = edges[k_edge]
        sort_by_key(edges[start:n_edges], edges[start:n_edges].copy())
        for k in range(start, n_edges):
            slots[_find_edge(slots, mask, edges[k]), 1] = k - start + 1
        out_edge_offsets[d + 1] = n_edges
        for at in range(interval_offsets[first], interval_offsets[last]):
            out_lows[at] = slots[_find_edge(slots, mask, bounds[at, 0]), 1]
            if bounds[at, 1] > 0:
                out_highs[at] = slots[_find_edge(slots, mask, bounds[at, 1]), 1] - 1
            else:  # nothing is above the last key
                out_highs[at] = n_edges - start
    return edges[:n_edges].copy()
