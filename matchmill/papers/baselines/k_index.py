"""The conjunction algorithm over the k-index.

Whang et al., "Indexing Boolean Expressions", VLDB 2009; a baseline of BE-Tree, PS-Tree and OpIndex.

    rank      a clause: ranks ascend by size, the number of predicates that do not accept absence
    entry     2 · rank + 1 for a predicate that holds ("in"), 2 · rank for one that accepts absence
              and does not hold ("not in"), which thereby comes first
    list      entries[list_offsets[l]] … of one cell and one size, list_sizes[l]; ascending
    cell      a code of a dimension; lists cell_offsets[c] … [c + 1], by ascending size. One more
              cell behind all others has the clauses of size 0 ("Z"), which every event starts with

A clause of size k matches if it stands in k of the lists that the pairs of an event lead to, and in
none as a "not in". For each k, the lists of that size are kept sorted by the entry that each is at:

    heads   3  3  9  14  20      k = 3: no clause below 9 can be in three lists, so the lists before
                    ↑            the third skip to 9; were all three the same clause, it would match

Lists skip by galloping: steps that double, then halve. Sizes are taken in ascending order, not in
descending order as in the paper: then a cell's lists follow each other in memory. Clauses larger
than the event are never looked at.

Ranges are enumerated: see `enumerated_postings.py`, where the budget is too. The k-index is static;
changes go by segments.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import Statistics
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.jit import int64, kernel
from matchmill.papers.baselines.enumerated_postings import (
    MAX_POSTINGS,
    build_enumeration,
    cell_of,
    fill_lists,
    has_cells,
)
from matchmill.papers.common.array_index import ArrayIndex

__all__ = ["KIndex"]

# A head is an entry and the slot of its list in one number, so that sorting moves little.
_SLOT_BITS = 31
_SLOT_MASK = (1 << _SLOT_BITS) - 1
_END = (1 << 63) - 1  # the head of a list that is over
_NEAR = 8  # entries that are looked at one by one before a list gallops


class KIndexArrays(NamedTuple):
    clause_ids: np.ndarray  # int64, by rank
    edge_offsets: np.ndarray  # int64
    edges: np.ndarray  # int64
    cell_offsets: np.ndarray  # int64, two more than there are cells
    list_sizes: np.ndarray  # int32
    list_offsets: np.ndarray  # int64
    entries: np.ndarray  # uint32


def build_k_index(table: ConjunctionTable, max_postings: int) -> KIndexArrays:
    enumeration = build_enumeration(table, max_postings)
    sizes = enumeration.n_needed(table)
    order = np.argsort(sizes, kind="stable")
    counts = enumeration.hold_counts + enumeration.fail_counts
    offsets = offsets_of(counts)
    entries = fill_lists(enumeration, table, order, offsets, fails_apart=False)
    n_zero = int(np.count_nonzero(sizes == 0))
    entries = np.append(entries, 2 * np.arange(n_zero, dtype=np.uint32) + np.uint32(1))
    offsets = np.append(offsets, len(entries))
    cell_offsets, starts = _split_by_size(offsets, entries, sizes[order].astype(np.int32))
    return KIndexArrays(
        table.clause_ids[order],
        enumeration.dictionary.edge_offsets,
        enumeration.dictionary.edges,
        cell_offsets,
        sizes[order][entries[starts] >> 1].astype(np.int32),
        np.append(starts, len(entries)),
        entries,
    )


def _split_by_size(
    offsets: np.ndarray, entries: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lists of each cell, and where each list starts."""
    cell_offsets = np.zeros(len(offsets), np.int64)
    n_lists = _find_lists(offsets, entries, sizes, cell_offsets, np.empty(0, np.int64))
    starts = np.empty(n_lists, np.int64)
    _find_lists(offsets, entries, sizes, cell_offsets, starts)
    return cell_offsets, starts


class KIndex(ArrayIndex[KIndexArrays]):
    """Sorted lists by size, and skipping; `max_postings` bounds what they may take."""

    name: ClassVar[str] = "k_index"
    array_type: ClassVar[type[Any]] = KIndexArrays

    @classmethod
    def build(
        cls,
        table: ConjunctionTable,
        statistics: Statistics | None = None,
        *,
        max_postings: int = MAX_POSTINGS,
        **options: Any,
    ) -> KIndex:
        """Build the index from a table."""
        started = time.perf_counter()
        arrays = build_k_index(table, max_postings)
        return cls(arrays, time.perf_counter() - started)

    def _kernel(self) -> Callable[..., tuple[int, int]]:
        return _match_events


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _find_lists(
    offsets: np.ndarray,
    entries: np.ndarray,
    sizes: np.ndarray,
    out_cell_offsets: np.ndarray,
    out_starts: np.ndarray,
) -> int:
    """Count the lists, and write the starts of those for which there is room."""
    n_lists = 0
    for cell in range(len(offsets) - 1):
        size = -1
        for k in range(offsets[cell], offsets[cell + 1]):
            here = sizes[entries[k] >> 1]
            if here != size:
                size = here
                if n_lists < len(out_starts):
                    out_starts[n_lists] = k
                n_lists += 1
        out_cell_offsets[cell + 1] = n_lists
    return n_lists


@kernel
def _gallop(entries: np.ndarray, place: int, stop: int, target: int) -> int:
    """Return the first place from this one on whose entry is not below the target, or `stop`."""
    if entries[place] >= target:
        return place
    step = 1
    while place + step < stop and entries[place + step] < target:
        place += step
        step <<= 1
    while step > 0:
        if place + step < stop and entries[place + step] < target:
            place += step
        step >>= 1
    return place + 1


@kernel
def _intersect(
    entries: np.ndarray,
    needed: int,
    n_lists: int,
    heads: np.ndarray,
    places: np.ndarray,
    stops: np.ndarray,
    clause_ids: np.ndarray,
    out: np.ndarray,
    n_found: int,
) -> tuple[int, int]:
    """Append the clauses that are in `needed` lists; returns (matches, steps).

    Matches for which there is no room are counted. Heads ascend.
    """
    n_steps = 0
    while heads[needed - 1] < _END:
        n_steps += 1
        rank = heads[needed - 1] >> (_SLOT_BITS + 1)
        n_moving = needed - 1
        target = 2 * rank
        if heads[0] >> (_SLOT_BITS + 1) == rank:
            if (heads[0] >> _SLOT_BITS) & 1:
                if n_found < len(out):
                    out[n_found] = clause_ids[rank]
                n_found += 1
            target += 2
            n_moving = needed
            while n_moving < n_lists and heads[n_moving] < target << _SLOT_BITS:
                n_moving += 1
        for i in range(n_moving - 1, -1, -1):
            # A list that moves is put to its place among those behind it, which are sorted.
            head = heads[i]
            if head < target << _SLOT_BITS:
                slot = head & _SLOT_MASK
                place, stop = places[slot] + 1, stops[slot]
                near = min(stop, place + _NEAR)
                while place < near and entries[place] < target:
                    place += 1
                if place == near and place < stop:
                    place = _gallop(entries, place, stop, target)
                places[slot] = place
                head = int64(entries[place]) << _SLOT_BITS | slot if place < stop else _END
            j = i + 1
            while j < n_lists and heads[j] < head:
                heads[j - 1] = heads[j]
                j += 1
            heads[j - 1] = head
        while n_lists > needed and heads[n_lists - 1] == _END:
            n_lists -= 1
    return n_found, n_steps


@kernel
def _match_events(
    index: KIndexArrays,
    events: EventBatch,
    start: int,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> tuple[int, int]:
    """Return (the first event for which `out` had no room, steps before it)."""
    clause_ids, edge_offsets, edges = index.clause_ids, index.edge_offsets, index.edges
    cell_offsets, list_sizes = index.cell_offsets, index.list_sizes
    list_offsets, entries = index.list_offsets, index.entries
    n_dimensions = len(edge_offsets) - 1
    n_events = len(events.offsets) - 1
    lists = np.empty(n_dimensions + 1, np.int64)
    last_lists = np.empty(n_dimensions + 1, np.int64)
    heads = np.empty(n_dimensions + 1, np.int64)
    places = np.empty(n_dimensions + 1, np.int64)
    stops = np.empty(n_dimensions + 1, np.int64)
    n_out = out_offsets[start]
    n_steps = 0
    for e in range(start, n_events):
        lists[0] = cell_offsets[len(cell_offsets) - 2]
        last_lists[0] = cell_offsets[len(cell_offsets) - 1]
        n_cells = 1
        for i in range(events.offsets[e], events.offsets[e + 1]):
            if has_cells(edge_offsets, events.dimensions[i]):
                cell = cell_of(edge_offsets, edges, events.dimensions[i], events.keys[i])
                lists[n_cells] = cell_offsets[cell]
                last_lists[n_cells] = cell_offsets[cell + 1]
                n_cells += 1
        n_found = n_out
        n_here = 0
        for size in range(n_cells):
            n_lists = 0
            for i in range(n_cells):
                k = lists[i]
                if k < last_lists[i] and list_sizes[k] == size:
                    lists[i] += 1
                    places[n_lists], stops[n_lists] = list_offsets[k], list_offsets[k + 1]
                    head = int64(entries[list_offsets[k]]) << _SLOT_BITS | n_lists
                    j = n_lists
                    while j > 0 and heads[j - 1] > head:
                        heads[j] = heads[j - 1]
                        j -= 1
                    heads[j] = head
                    n_lists += 1
            needed = max(1, size)
            if n_lists >= needed:
                n_found, n_more = _intersect(
                    entries, needed, n_lists, heads, places, stops, clause_ids, out, n_found
                )
                n_here += n_more
        if n_found > len(out):
            return e, n_steps
        n_out = n_found
        n_steps += n_here
        out_offsets[e + 1] = n_out
    return n_events, n_steps
