"""The distinct predicates of a table, by hashing.

slots      31 bits of hash and a number; the table grows with the number of distinct ones
records    of a distinct predicate: its first interval's place, low and high, and its shape,
           dimension << 32 | number of intervals: one cache line answers most comparisons
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.kernels.hashing import combine31
from matchmill.kernels.intrinsics import prefetch
from matchmill.kernels.jit import int64, kernel
from matchmill.kernels.threads import on_ranges, split_evenly

__all__ = ["Distinct", "find_distinct"]

_AHEAD = 32  # predicates whose slots are being loaded
_PLACE, _LOW, _HIGH, _SHAPE = range(4)  # of a record


class Distinct(NamedTuple):
    """Distinct predicates, numbered by dimension, and then in the order in which they occur."""

    ids: np.ndarray  # int32: the distinct predicate of each predicate
    dimensions: np.ndarray  # int32
    places: np.ndarray  # int64: of the first interval, in the table
    n_intervals: np.ndarray  # int64
    uses: np.ndarray  # int32

    @property
    def n_distinct(self) -> int:
        """The number of distinct predicates."""
        return len(self.dimensions)

    def firsts(self) -> np.ndarray:
        """Return the first predicate of the table that is equal to each distinct one."""
        out = np.empty(self.n_distinct, np.int64)
        n = len(self.ids)
        out[self.ids[::-1]] = np.arange(n - 1, -1, -1)  # of several, the last one written stays
        return out


class _Found(NamedTuple):
    """Distinct predicates, and their hash table."""

    slots: np.ndarray
    records: np.ndarray
    n_distinct: int


def find_distinct(table: ConjunctionTable) -> Distinct:
    """Find the distinct predicates of a table.

    Each thread numbers those of its own range; those of further ranges are then added to those of
    the first.
    """
    ids = np.empty(table.n_predicates, np.int32)
    cuts = split_evenly(table.n_predicates)
    no_records = np.empty((0, 4), np.int64)

    def find(start: int, stop: int) -> _Found:
        return _collect(table, no_records, ids, start, stop, _nothing_found())

    parts = on_ranges(find, cuts)
    found = parts[0]
    numbers = [np.arange(found.n_distinct, dtype=np.int32)]
    for part in parts[1:]:
        numbers.append(np.empty(part.n_distinct, np.int32))
        records = part.records[: part.n_distinct]
        found = _collect(table, records, numbers[-1], 0, len(records), found)
    n_distinct = found.n_distinct
    dimensions = np.empty(n_distinct, np.int32)
    places, n_intervals = np.empty(n_distinct, np.int64), np.empty(n_distinct, np.int64)
    renumbered = np.empty(n_distinct, np.int32)
    _sort_by_dimension(
        found.records,
        np.zeros(table.n_dimensions + 1, np.int64),
        dimensions,
        places,
        n_intervals,
        renumbered,
    )

    def renumber(start: int, stop: int) -> np.ndarray:
        uses = np.zeros(n_distinct, np.int32)
        _renumber(ids[start:stop], renumbered[numbers[cuts.index(start)]], uses)
        return uses

    uses = on_ranges(renumber, cuts)
    total = uses[0]
    for more in uses[1:]:
        total += more
    return Distinct(ids, dimensions, places, n_intervals, total)


def _nothing_found() -> _Found:
    few = 1 << 12
    return _Found(np.full(2 * few, -1, np.int64), np.empty((few, 4), np.int64), 0)


def _collect(
    table: ConjunctionTable,
    added: np.ndarray,
    out_ids: np.ndarray,
    start: int,
    stop: int,
    found: _Found,
) -> _Found:
    """Add records added[start:stop], or predicates start … stop if there are none."""
    slots, records, n_distinct = found
    while True:
        start, n_distinct = _add_predicates(
            table, added, start, stop, _Found(slots, records, n_distinct), out_ids
        )
        if start >= stop:
            return _Found(slots, records, n_distinct)
        factor = 4 if len(records) < 1 << 20 else 2
        records = _grown(records, factor, n_distinct)
        grown = np.full(factor * len(slots), -1, np.int64)
        _rehash(slots, grown)
        slots = grown


def _grown(rows: np.ndarray, factor: int, n_used: int) -> np.ndarray:
    """Return a longer array that begins with the rows in use; memory beyond is not touched."""
    grown = np.empty((factor * len(rows), *rows.shape[1:]), rows.dtype)
    grown[:n_used] = rows[:n_used]
    return grown


@kernel
def _add_predicates(
    table: ConjunctionTable,
    added: np.ndarray,
    start: int,
    stop: int,
    found: _Found,
    out_ids: np.ndarray,
) -> tuple[int, int]:
    """Add predicates until the table is half full.

    Return how far it came, and how many are distinct now.
    """
    dimensions, offsets = table.dimensions, table.interval_offsets
    lows, highs = table.lows, table.highs
    slots, records, n_distinct = found
    mask = len(slots) - 1
    hashes = np.empty(_AHEAD, np.int64)
    new = np.empty((_AHEAD, 4), np.int64)
    for block in range(start, stop, _AHEAD):
        if n_distinct + _AHEAD > len(records):
            return block, n_distinct
        n = min(stop - block, _AHEAD)
        for i in range(n):
            p = block + i
            if len(added) > 0:
                for field in range(4):
                    new[i, field] = added[p, field]
            else:
                place = offsets[p]
                new[i, _PLACE] = place
                new[i, _LOW] = lows[place]
                new[i, _HIGH] = highs[place]
                new[i, _SHAPE] = (int64(dimensions[p]) << 32) | (offsets[p + 1] - place)
            h = combine31(int64(17), new[i, _SHAPE] >> 32)
            h = combine31(combine31(h, new[i, _LOW]), new[i, _HIGH])
            first = new[i, _PLACE]
            for k in range(first + 1, first + (new[i, _SHAPE] & 0xFFFFFFFF)):
                h = combine31(combine31(h, lows[k]), highs[k])
            hashes[i] = h
            prefetch(slots, h & mask)
        for i in range(n):
            entry = slots[hashes[i] & mask]
            if entry >= 0:
                prefetch(records, entry & 0xFFFFFFFF)
        for i in range(n):
            h = hashes[i]
            slot = h & mask
            while True:
                entry = slots[slot]
                if entry < 0:
                    slots[slot] = (h << 32) | n_distinct
                    for field in range(4):
                        records[n_distinct, field] = new[i, field]
                    out_ids[block + i] = n_distinct
                    n_distinct += 1
                    break
                if entry >> 32 == h:
                    known = entry & 0xFFFFFFFF
                    is_same = (
                        records[known, _SHAPE] == new[i, _SHAPE]
                        and records[known, _LOW] == new[i, _LOW]
                        and records[known, _HIGH] == new[i, _HIGH]
                    )
                    if is_same:
                        first, other = new[i, _PLACE], records[known, _PLACE]
                        for k in range(1, new[i, _SHAPE] & 0xFFFFFFFF):
                            is_same &= lows[first + k] == lows[other + k]
                            is_same &= highs[first + k] == highs[other + k]
                    if is_same:
                        out_ids[block + i] = known
                        break
                slot = (slot + 1) & mask
    return stop, n_distinct


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
def _sort_by_dimension(
    records: np.ndarray,
    cursors: np.ndarray,
    out_dimensions: np.ndarray,
    out_places: np.ndarray,
    out_n_intervals: np.ndarray,
    out_numbers: np.ndarray,
) -> None:
    """Sort distinct predicates; `cursors` are 0, one more than there are dimensions."""
    for i in range(len(out_numbers)):
        cursors[(records[i, _SHAPE] >> 32) + 1] += 1
    for d in range(1, len(cursors)):
        cursors[d] += cursors[d - 1]
    for i in range(len(out_numbers)):
        d = records[i, _SHAPE] >> 32
        at = cursors[d]
        cursors[d] += 1
        out_dimensions[at] = d
        out_places[at] = records[i, _PLACE]
        out_n_intervals[at] = records[i, _SHAPE] & 0xFFFFFFFF
        out_numbers[i] = at


@kernel
def _renumber(ids: np.ndarray, numbers: np.ndarray, out_uses: np.ndarray) -> None:
    for p in range(len(ids)):
        new = numbers[ids[p]]
        ids[p] = new
        out_uses[new] += 1
