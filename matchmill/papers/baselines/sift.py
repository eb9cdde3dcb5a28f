"""SIFT: counting with ranges that are enumerated (BE-Tree, section 7.2).

    lists      of each cell, the rows of clauses with a predicate that holds there; then, of each
               cell, those with a predicate that accepts absence and does not hold there
    needed     of each row, how many predicates have to be seen to hold
    needless   rows of clauses that need nothing
    counters   of one call: equal to `needed` between two events

Yan and Garcia-Molina's counting algorithm: each pair of an event leads to one list, each entry of
the list takes one off its clause's counter, and a clause whose counter is at zero matches. Lists of
what fails come first and add one, so that a counter that reaches zero stays there. The counters
are reset by following the same lists again, or by a copy of `needed` if that is shorter.

Against `counting`, which keeps wide ranges in few places, each pair reads a single list here, at
the price of one entry per value: see `enumerated_postings.py`, where its budget is too.

Codes belong to all clauses together: a new bound would split lists. So this index is built once,
and changes by segments.
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

__all__ = ["Sift"]

_COPY_FACTOR = 32  # copying a counter takes so many times less than finding it through a list


class SiftArrays(NamedTuple):
    clause_ids: np.ndarray  # int64
    needed: np.ndarray  # int8, int16 or int32
    needless: np.ndarray  # int32
    edge_offsets: np.ndarray  # int64
    edges: np.ndarray  # int64
    list_offsets: np.ndarray  # int64, one more than twice the cells
    rows: np.ndarray  # uint32


def build_sift(table: ConjunctionTable, max_postings: int) -> SiftArrays:
    enumeration = build_enumeration(table, max_postings)
    counts = np.concatenate((enumeration.hold_counts, enumeration.fail_counts))
    list_offsets = offsets_of(counts)
    order = np.arange(table.n_clauses)
    needed = enumeration.n_needed(table)
    longest = int(np.diff(table.clause_offsets).max(initial=0))
    narrow = next(kind for kind in (np.int8, np.int16, np.int32) if longest <= np.iinfo(kind).max)
    return SiftArrays(
        np.ascontiguousarray(table.clause_ids),
        needed.astype(narrow),
        np.flatnonzero(needed == 0).astype(np.int32),
        enumeration.dictionary.edge_offsets,
        enumeration.dictionary.edges,
        list_offsets,
        fill_lists(enumeration, table, order, list_offsets, fails_apart=True),
    )


class Sift(ArrayIndex[SiftArrays]):
    """Counting over enumerated ranges; `max_postings` bounds what they may take."""

    name: ClassVar[str] = "sift"
    array_type: ClassVar[type[Any]] = SiftArrays

    @classmethod
    def build(
        cls,
        table: ConjunctionTable,
        statistics: Statistics | None = None,
        *,
        max_postings: int = MAX_POSTINGS,
        **options: Any,
    ) -> Sift:
        """Build the index from a table."""
        started = time.perf_counter()
        arrays = build_sift(table, max_postings)
        return cls(arrays, time.perf_counter() - started)

    def _new_scratch(self) -> tuple[Any, ...]:
        counters = self._arrays.needed.copy()
        found = np.empty(len(counters) + 1, np.uint32)
        return counters, found

    def _kernel(self) -> Callable[..., tuple[int, int]]:
        return _match_events


@kernel
def _count_list(
    rows: np.ndarray,
    start: int,
    stop: int,
    step: int,
    counters: np.ndarray,
    found: np.ndarray,
    n_found: int,
) -> int:
    """Add `step` to the counters of a list, and append rows that reach zero to `found`."""
    for k in range(start, stop):
        row = rows[k]
        count = counters[row] + step
        counters[row] = count
        found[n_found] = row  # whether or not it counts: to guess would be wrong too often
        n_found += 1 if count == 0 else 0
    return n_found


@kernel
def _match_events(
    sift: SiftArrays,
    events: EventBatch,
    start: int,
    counters: np.ndarray,
    found: np.ndarray,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> tuple[int, int]:
    """Return (the first event for which `out` had no room, counters changed before it)."""
    clause_ids, needed, needless = sift.clause_ids, sift.needed, sift.needless
    edge_offsets, edges = sift.edge_offsets, sift.edges
    list_offsets, rows = sift.list_offsets, sift.rows
    n_dimensions = len(edge_offsets) - 1
    n_cells = (len(list_offsets) - 1) >> 1
    n_events = len(events.offsets) - 1
    cells = np.empty(max(1, n_dimensions), np.int64)
    n_out = out_offsets[start]
    n_counted = 0
    none, one, less = int64(0), int64(1), int64(-1)  # literals would be types of their own
    for e in range(start, n_events):
        n_here = 0
        n_pairs = 0
        for i in range(events.offsets[e], events.offsets[e + 1]):
            if has_cells(edge_offsets, events.dimensions[i]):
                cell = cell_of(edge_offsets, edges, events.dimensions[i], events.keys[i])
                cells[n_pairs] = cell
                n_pairs += 1
                first, stop = list_offsets[n_cells + cell], list_offsets[n_cells + cell + 1]
                _count_list(rows, first, stop, one, counters, found, none)
                n_here += stop - first
        n_found = none
        for row in needless:
            if counters[row] == 0:
                found[n_found] = row
                n_found += 1
        for i in range(n_pairs):
            first, stop = list_offsets[cells[i]], list_offsets[cells[i] + 1]
            n_found = _count_list(rows, first, stop, less, counters, found, n_found)
            n_here += stop - first
        if _COPY_FACTOR * n_here > len(counters):
            for row in range(len(counters)):
                counters[row] = needed[row]
        else:
            for i in range(n_pairs):
                for shift in (0, n_cells):
                    cell = cells[i] + shift
                    for k in range(list_offsets[cell], list_offsets[cell + 1]):
                        counters[rows[k]] = needed[rows[k]]
        if n_out + n_found > len(out):
            return e, n_counted
        for i in range(n_found):
            out[n_out + i] = clause_ids[found[i]]
        n_out += n_found
        n_counted += n_here
        out_offsets[e + 1] = n_out
    return n_events, n_counted
