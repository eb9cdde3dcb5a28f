"""REIN: strike out what an event cannot satisfy; what is left matches.

Qian, Cao, Zhu, Li, "REIN: A Fast Event Matching Approach for Content-based Publish/Subscribe
Systems", INFOCOM 2014. A subscription is a rectangle; it does not match if on some attribute its
low bound is above the event's value, or its high bound below. So nothing is counted:

    attribute      two lists of buckets, of low bounds and of high bounds; a bucket holds pairs of
                   a bound and a subscription, in no order
    event          one bit per subscription, all 0. For each of its values, which lies in bucket b:
                       low bounds:   those of bucket b that are above the value, and all of the
                                     buckets after b, set the bits of their subscriptions
                       high bounds:  those of bucket b that are below, and all of the buckets before
                   for each attribute that it lacks: the bits of all that have a predicate there
    answer         the bits that are still 0

Example, with buckets 0 … 9 and 10 … 19: subscriptions p in [2, 12], q in [8, 9], r in [11, 15].

    low bounds     | 2 p, 8 q | 11 r |        high bounds    | 9 q | 12 p, 15 r |
    event 9        bucket 0: low bounds above 9 there: none; after it: r. High bounds below 9: none.
                   p and q match

The same arrays, with `n_cells` above 1, are those of HEM (`hem.py`), which adds bits to them:

    cell           some neighbouring buckets
    cell_bits      per attribute and cell: all with a low bound in later cells, and all with a high
                   bound in earlier ones. One OR replaces the walk over these buckets
    full_bits      per attribute: all with a predicate there, for events that lack it

Where ours deviates. The papers divide a known domain of values evenly; here buckets have equally
many different bounds, since keys have no known domain, which suits them. They have one interval per
predicate: with several, the hull is filed, and what is left over is checked by its exact intervals.
A predicate that accepts absence is not struck out by it. Built once; changes go by segments. Of an
attribute of which an event knows nothing REIN (2014) does not speak; the code that the authors of
HEM published strikes those out one by one, as here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from matchmill.encoding.conjunction_table import (
    ABSENT_KEY,
    ConjunctionTable,
    clause_holds,
    take_clauses,
)
from matchmill.encoding.event_batch import EventBatch
from matchmill.errors import InputError
from matchmill.index.base import Statistics
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.intrinsics import trailing_zeros
from matchmill.kernels.jit import kernel, uint64
from matchmill.papers.common.array_index import ArrayIndex

__all__ = ["Rein", "ReinArrays", "build_rein"]

_LAST = np.iinfo(np.int64).max
_BITS_BYTES = 4 << 30
_LOW, _HIGH = 0, 1


class ReinArrays(NamedTuple):
    """All arrays; a clause is its position in clause_ids."""

    clause_ids: np.ndarray  # int64
    slots: np.ndarray  # int32: dimension -> place among those with predicates, or -1
    edge_offsets: np.ndarray  # int64: of a slot's edges; it has one bucket more
    edges: np.ndarray  # int64: bucket of a value = edges at or below it
    list_offsets: np.ndarray  # int64: of low bounds' buckets, slot after slot, then of high bounds'
    bounds: np.ndarray  # int64
    rows: np.ndarray  # int32: clauses
    need_offsets: np.ndarray  # int64: per slot
    needs: np.ndarray  # int32: clauses that hold only if the event has the attribute
    cell_bits: np.ndarray  # uint64: per slot and cell the low side, the high side
    full_bits: np.ndarray  # uint64: per slot
    initial: np.ndarray  # uint64: the bits beyond the last clause
    unsure: np.ndarray  # uint64: clauses of `general`
    general_places: np.ndarray  # int64: their positions
    general: ConjunctionTable  # dimensions are slots
    n_cells: np.ndarray  # int64, one


# -- building -------------------------------------------------------------------------------------


class _Hulls(NamedTuple):
    """Predicates by slot: what strikes their clauses out."""

    rows: np.ndarray  # int64
    lows: np.ndarray  # int64
    highs: np.ndarray  # int64
    needs: np.ndarray  # bool: whether the event must have the attribute
    offsets: np.ndarray  # int64: per slot


def build_rein(
    table: ConjunctionTable, n_buckets: int, n_cells: int, bits_bytes: int
) -> ReinArrays:
    """Build the arrays; InputError if bits would take more than `bits_bytes`."""
    used = np.unique(table.dimensions)
    slots = np.full(table.n_dimensions, -1, np.int32)
    slots[used] = np.arange(len(used))
    n_words = -(-table.n_clauses // 64)
    n_rows = len(used) * (2 * n_cells + 1) if n_cells > 1 else 0
    if n_rows * n_words * 8 > bits_bytes:
        raise InputError(
            f"the bits of {len(used):,} attributes and {table.n_clauses:,} clauses take more than"
            f" bits_bytes, {bits_bytes:,}; take fewer cells or more bits_bytes"
        )
    hulls, general = _hulls_of(table, slots, len(used))
    parts = [_slot_part(own, n_buckets) for own in _by_slot(hulls)]
    bits = [_slot_bits(part, n_cells, table.n_clauses) for part in parts] if n_cells > 1 else []
    some = take_clauses(table, general)
    list_offsets, bounds, rows = _lists(parts)
    return ReinArrays(
        np.ascontiguousarray(table.clause_ids),
        slots,
        offsets_of(np.array([len(p.edges) for p in parts], np.int64)),
        _joined([p.edges for p in parts], np.int64),
        list_offsets,
        bounds,
        rows,
        offsets_of(np.array([p.hulls.needs.sum() for p in parts], np.int64)),
        _joined([p.hulls.rows[p.hulls.needs] for p in parts], np.int32),
        _joined([cells for cells, _ in bits], np.uint64),
        _joined([full for _, full in bits], np.uint64),
        _packed(np.arange(table.n_clauses, 64 * n_words), 64 * n_words),
        _packed(general, 64 * n_words),
        general,
        some._replace(dimensions=slots[some.dimensions]),
        np.array([n_cells], np.int64),
    )


def _joined(parts: list[np.ndarray], dtype: type) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype), *parts]).astype(dtype)


def _packed(rows: np.ndarray, n: int) -> np.ndarray:
    held = np.zeros(-(-n // 64) * 64, bool)
    held[rows] = True
    return np.packbits(held, bitorder="little").view(np.uint64)


def _hulls_of(
    table: ConjunctionTable, slots: np.ndarray, n_slots: int
) -> tuple[_Hulls, np.ndarray]:
    """Return the hulls by slot, and the clauses that a hull does not say all of."""
    first, end = table.interval_offsets[:-1], table.interval_offsets[1:]
    owners = np.repeat(np.arange(table.n_clauses), np.diff(table.clause_offsets))
    lows, highs = np.append(table.lows, _LAST), np.append(table.highs, _LAST)
    has_some = end > first
    absence = has_some & (lows[first] == ABSENT_KEY)
    skipped = absence & (highs[first] == ABSENT_KEY)  # an interval of absence alone
    start = first + skipped
    present = end > start
    low = np.where(present, np.maximum(lows[start], ABSENT_KEY + 1), _LAST)
    high = np.where(present, highs[np.maximum(end - 1, 0)], _LAST)
    general = np.unique(owners[(end - start) != 1])
    order = np.argsort(slots[table.dimensions], kind="stable")
    counts = np.bincount(slots[table.dimensions], minlength=n_slots)
    hulls = _Hulls(owners[order], low[order], high[order], ~absence[order], offsets_of(counts))
    return hulls, general


def _by_slot(hulls: _Hulls) -> Iterator[_Hulls]:
    for slot in range(len(hulls.offsets) - 1):
        span = slice(hulls.offsets[slot], hulls.offsets[slot + 1])
        rows, lows, highs, needs = (a[span] for a in hulls[:-1])
        yield _Hulls(rows, lows, highs, needs, hulls.offsets[slot : slot + 2])


class _Part(NamedTuple):
    hulls: _Hulls
    edges: np.ndarray
    low_buckets: np.ndarray
    high_buckets: np.ndarray


def _slot_part(hulls: _Hulls, n_buckets: int) -> _Part:
    distinct = np.unique(np.concatenate((hulls.lows, hulls.highs)))
    n_edges = min(n_buckets - 1, len(distinct))
    edges = distinct[np.arange(1, n_edges + 1) * len(distinct) // (n_edges + 1)]
    edges = np.unique(edges)
    low_buckets = np.searchsorted(edges, hulls.lows, side="right")
    return _Part(hulls, edges, low_buckets, np.searchsorted(edges, hulls.highs, side="right"))


def _lists(parts: list[_Part]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the buckets of all low bounds, then of all high bounds: offsets, bounds, clauses."""
    counts, bounds, rows = [], [], []
    for side in (_LOW, _HIGH):
        for part in parts:
            buckets = part.high_buckets if side else part.low_buckets
            order = np.argsort(buckets, kind="stable")
            counts.append(np.bincount(buckets, minlength=len(part.edges) + 1))
            bounds.append((part.hulls.highs if side else part.hulls.lows)[order])
            rows.append(part.hulls.rows[order])
    return (
        offsets_of(_joined(counts, np.int64)),
        _joined(bounds, np.int64),
        _joined(rows, np.int32),
    )


def _slot_bits(part: _Part, n_cells: int, n_clauses: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the bits of the cells, low side before high side, and those of all predicates."""
    size = -(-(len(part.edges) + 1) // n_cells)
    low_cells, high_cells = part.low_buckets // size, part.high_buckets // size
    rows = part.hulls.rows
    cells = [
        _packed(rows[chosen], n_clauses)
        for cell in range(n_cells)
        for chosen in (low_cells > cell, high_cells < cell)
    ]
    return np.concatenate(cells), _packed(rows[part.hulls.needs], n_clauses)


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _bucket_of(edges: np.ndarray, start: int, stop: int, value: int) -> int:
    """Return how many edges are at or below a value."""
    first = start
    while start < stop:
        middle = (start + stop) >> 1
        if edges[middle] <= value:
            start = middle + 1
        else:
            stop = middle
    return start - first


@kernel
def _strike(rows: np.ndarray, start: int, stop: int, marks: np.ndarray) -> None:
    for i in range(start, stop):
        marks[rows[i] >> 6] |= uint64(1) << uint64(rows[i] & 63)


@kernel
def _strike_bits(bits: np.ndarray, row: int, marks: np.ndarray) -> None:
    start = row * len(marks)
    for word in range(len(marks)):
        marks[word] |= bits[start + word]


@kernel
def _strike_by_value(index: ReinArrays, slot: int, key: int, marks: np.ndarray) -> int:
    """Strike out what a value rules out; return how many bounds were looked at."""
    offsets, bounds, rows = index.list_offsets, index.bounds, index.rows
    n_cells = index.n_cells[0]
    first_edge, last_edge = index.edge_offsets[slot], index.edge_offsets[slot + 1]
    n_buckets = last_edge - first_edge + 1
    n_all = len(index.edges) + len(index.edge_offsets) - 1
    bucket = _bucket_of(index.edges, first_edge, last_edge, key)
    low = first_edge + slot + bucket
    high = n_all + low
    for i in range(offsets[low], offsets[low + 1]):
        if bounds[i] > key:
            marks[rows[i] >> 6] |= uint64(1) << uint64(rows[i] & 63)
    for i in range(offsets[high], offsets[high + 1]):
        if bounds[i] < key:
            marks[rows[i] >> 6] |= uint64(1) << uint64(rows[i] & 63)
    size = (n_buckets + n_cells - 1) // n_cells
    cell = bucket // size
    end = min(n_buckets, (cell + 1) * size)
    _strike(rows, offsets[low + 1], offsets[low - bucket + end], marks)
    _strike(rows, offsets[high - bucket + cell * size], offsets[high], marks)
    if n_cells > 1:
        _strike_bits(index.cell_bits, 2 * (slot * n_cells + cell), marks)
        _strike_bits(index.cell_bits, 2 * (slot * n_cells + cell) + 1, marks)
    n_low: int = offsets[low - bucket + end] - offsets[low]
    n_high: int = offsets[high + 1] - offsets[high - bucket + cell * size]
    return n_low + n_high


@kernel
def _collect(
    index: ReinArrays, marks: np.ndarray, keys: np.ndarray, out: np.ndarray, n_out: int
) -> int:
    """Append the clauses that are not struck out; those that are unsure after a check."""
    for word in range(len(marks)):
        left = ~marks[word]
        while left != uint64(0):
            row = 64 * word + trailing_zeros(left)
            left &= left - uint64(1)
            if (index.unsure[word] >> uint64(row & 63)) & uint64(1):
                place = np.searchsorted(index.general_places, row)
                if not clause_holds(index.general, place, keys):
                    continue
            if n_out < len(out):
                out[n_out] = index.clause_ids[row]
            n_out += 1
    return n_out


@kernel
def _match_events(
    index: ReinArrays,
    events: EventBatch,
    start: int,
    marks: np.ndarray,
    keys: np.ndarray,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> tuple[int, int]:
    """Return (the first event for which `out` had no room, bounds looked at before it)."""
    slots = index.slots
    n_events = len(events.offsets) - 1
    n_candidates = 0
    for e in range(start, n_events):
        marks[:] = index.initial
        keys[:] = ABSENT_KEY
        n_here = 0
        for i in range(events.offsets[e], events.offsets[e + 1]):
            key = events.keys[i]
            slot = slots[events.dimensions[i]] if events.dimensions[i] < len(slots) else -1
            if slot >= 0 and key != ABSENT_KEY:
                keys[slot] = key
                n_here += _strike_by_value(index, slot, key, marks)
        for slot in range(len(keys)):
            if keys[slot] == ABSENT_KEY:
                if index.n_cells[0] > 1:
                    _strike_bits(index.full_bits, slot, marks)
                else:
                    first, last = index.need_offsets[slot], index.need_offsets[slot + 1]
                    _strike(index.needs, first, last, marks)
                    n_here += last - first
        found = _collect(index, marks, keys, out, out_offsets[e])
        if found > len(out):
            return e, n_candidates
        out_offsets[e + 1] = found
        n_candidates += n_here
    return n_events, n_candidates


# -- the class ------------------------------------------------------------------------------------


class Rein(ArrayIndex[ReinArrays]):
    """Buckets of low and high bounds, and a bit per clause that they set."""

    name: ClassVar[str] = "rein"
    array_type: ClassVar[type[Any]] = ReinArrays

    @classmethod
    def build(
        cls,
        table: ConjunctionTable,
        statistics: Statistics | None = None,
        *,
        buckets: int = 1000,
        **options: Any,
    ) -> Rein:
        """Build the index from a table."""
        return cls._built(table, buckets, 1, _BITS_BYTES)

    @classmethod
    def _built(cls, table: ConjunctionTable, buckets: int, n_cells: int, bits_bytes: int) -> Self:
        started = time.perf_counter()
        arrays = build_rein(table, buckets, n_cells, bits_bytes)
        return cls(arrays, time.perf_counter() - started)

    def _new_scratch(self) -> tuple[Any, ...]:
        n_slots = len(self._arrays.edge_offsets) - 1
        return self._arrays.initial.copy(), np.empty(n_slots, np.int64)

    def _kernel(self) -> Callable[..., tuple[int, int]]:
        return _match_events
