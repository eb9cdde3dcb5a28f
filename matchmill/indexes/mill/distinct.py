"""The distinct predicates of a table, by hashing.

slots      31 bits of hash and a number; the table grows with the number of distinct ones
records    of a distinct predicate: its first interval's place, low and high, and
           dimension << 32 | number of intervals: one cache line answers most comparisons
firsts     one predicate that stands for each of them
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill._jit import int64, kernel
from matchmill._threads import on_ranges, split_evenly
from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.indexes.mill.machine import prefetch

__all__ = ["find_distinct", "mixed"]

_AHEAD = 32  # predicates whose slots are being loaded


class _Found(NamedTuple):
    """Distinct predicates, and the hash table that they are in."""

    slots: np.ndarray
    records: np.ndarray
    firsts: np.ndarray
    n_distinct: int


def find_distinct(table: ConjunctionTable) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct predicate of each predicate; one that stands for each distinct one; how often
    each is used. They are numbered by dimension, and then in the order in which they occur.

    Each thread numbers the distinct ones of its range; those of further ranges are then added to
    those of the first."""
    ids = np.empty(table.n_predicates, np.int32)
    cuts = split_evenly(table.n_predicates)
    nothing = np.empty(0, np.int64)

    def find(start: int, stop: int) -> _Found:
        return _collect(table, nothing, ids, start, stop, _nothing_found())

    parts = on_ranges(find, cuts)
    found = parts[0]
    numbers = [np.arange(found.n_distinct, dtype=np.int32)]
    for part in parts[1:]:
        numbers.append(np.empty(part.n_distinct, np.int32))
        rows = part.firsts[: part.n_distinct]
        found = _collect(table, rows, numbers[-1], 0, len(rows), found)
    n_distinct = found.n_distinct
    firsts = found.firsts[:n_distinct]
    dimensions = table.dimensions[firsts]
    ends = np.cumsum(np.bincount(dimensions, minlength=table.n_dimensions))
    order = np.empty(n_distinct, np.int64)
    renumbered = np.empty(n_distinct, np.int32)
    _sort_by_dimension(dimensions, np.concatenate(([0], ends)), order, renumbered)

    def renumber(start: int, stop: int) -> np.ndarray:
        uses = np.zeros(n_distinct, np.int32)
        _renumber(ids[start:stop], renumbered[numbers[cuts.index(start)]], uses)
        return uses

    uses = on_ranges(renumber, cuts)
    total = uses[0]
    for more in uses[1:]:
        total += more
    return ids, firsts[order], total


def _nothing_found() -> _Found:
    few = 1 << 12
    slots = np.full(2 * few, -1, np.int64)
    return _Found(slots, np.empty((few, 4), np.int64), np.empty(few, np.int64), 0)


def _collect(
    table: ConjunctionTable,
    rows: np.ndarray,
    out_ids: np.ndarray,
    start: int,
    stop: int,
    found: _Found,
) -> _Found:
    """Adds predicates rows[start:stop], or start … stop themselves if there are no rows."""
    slots, records, firsts, n_distinct = found
    while True:
        start, n_distinct = _add_predicates(
            table.dimensions,
            table.interval_offsets,
            table.lows,
            table.highs,
            rows,
            start,
            stop,
            slots,
            records,
            firsts,
            n_distinct,
            out_ids,
        )
        if start >= stop:
            return _Found(slots, records, firsts, n_distinct)
        factor = 4 if len(firsts) < 1 << 20 else 2
        firsts = _grown(firsts, factor, n_distinct)
        records = _grown(records, factor, n_distinct)
        grown = np.full(factor * len(slots), -1, np.int64)
        _rehash(slots, grown)
        slots = grown


def _grown(rows: np.ndarray, factor: int, n_used: int) -> np.ndarray:
    """A longer array that begins with the rows in use; memory beyond them is not touched."""
    grown = np.empty((factor * len(rows), *rows.shape[1:]), rows.dtype)
    grown[:n_used] = rows[:n_used]
    return grown


@kernel
def mixed(h: int, key: int) -> int:
    """31 bits. Works on 31-bit pieces, so that nothing overflows with or without compilation."""
    x = ((h ^ (key & 0x7FFFFFFF) ^ (key >> 29)) & 0x7FFFFFFF) * 0x5851F42D
    return (x ^ (x >> 29)) & 0x7FFFFFFF


@kernel
def _add_predicates(
    dimensions: np.ndarray,
    offsets: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    rows: np.ndarray,
    start: int,
    stop: int,
    slots: np.ndarray,
    records: np.ndarray,
    firsts: np.ndarray,
    n_distinct: int,
    out_ids: np.ndarray,
) -> tuple[int, int]:
    """Adds predicates until the table is half full; returns how far it came, and how many are
    distinct now."""
    mask = len(slots) - 1
    hashes = np.empty(_AHEAD, np.int64)
    predicates = np.empty(_AHEAD, np.int64)
    for block in range(start, stop, _AHEAD):
        if n_distinct + _AHEAD > len(records):
            return block, n_distinct
        n = min(stop - block, _AHEAD)
        for i in range(n):
            p = rows[block + i] if len(rows) > 0 else block + i
            h = mixed(int64(17), int64(dimensions[p]))
            for k in range(offsets[p], offsets[p + 1]):
                h = mixed(h, lows[k])
                h = mixed(h, highs[k])
            predicates[i] = p
            hashes[i] = h
            prefetch(slots, h & mask)
        for i in range(n):
            entry = slots[hashes[i] & mask]
            if entry >= 0:
                prefetch(records, entry & 0xFFFFFFFF)
        for i in range(n):
            p, h = predicates[i], hashes[i]
            slot = h & mask
            first = offsets[p]
            n_intervals = offsets[p + 1] - first
            shape = (int64(dimensions[p]) << 32) | n_intervals
            while True:
                entry = slots[slot]
                if entry < 0:
                    slots[slot] = (h << 32) | n_distinct
                    firsts[n_distinct] = p
                    out_ids[block + i] = n_distinct
                    records[n_distinct, 0] = first
                    records[n_distinct, 1] = lows[first]
                    records[n_distinct, 2] = highs[first]
                    records[n_distinct, 3] = shape
                    n_distinct += 1
                    break
                if entry >> 32 == h:
                    known = entry & 0xFFFFFFFF
                    is_same = (
                        records[known, 3] == shape
                        and records[known, 1] == lows[first]
                        and records[known, 2] == highs[first]
                    )
                    if is_same and n_intervals > 1:
                        other = records[known, 0]
                        for k in range(1, n_intervals):
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
    dimensions: np.ndarray, cursors: np.ndarray, out_order: np.ndarray, out_places: np.ndarray
) -> None:
    """`cursors` says where each dimension begins, and moves on."""
    for i in range(len(dimensions)):
        at = cursors[dimensions[i]]
        cursors[dimensions[i]] += 1
        out_order[at] = i
        out_places[i] = at


@kernel
def _renumber(ids: np.ndarray, numbers: np.ndarray, out_uses: np.ndarray) -> None:
    for p in range(len(ids)):
        new = numbers[ids[p]]
        ids[p] = new
        out_uses[new] += 1
