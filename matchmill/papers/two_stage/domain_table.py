"""Table-based predicate matching: a slot for every value of a finite domain.

    slots[kind, v]      the first entry of the value v, plus 1, or 0 if there is none
    filled[kind, b]     how many of the 64 slots from 64 b on have entries
    reaches[b]          no range that begins before slot 64 (b + 1) has a larger high
    entries             rows (`common/pools.py`): next entry of the slot or -1, id, high
    outside             an OrderedList with the intervals that are not inside the domain

The kinds are those of an OrderedList. An interval stands in the slot of its value, its high if it
begins at the first end, its low if it ends at the last end, and else, compared with the key, its
low. What a key satisfies follows from where it is: all slots of `up_to` from it on, all of `since`
up to it, and nothing has to be searched. Ranges are walked down from the key until none before
reaches it. Inserting and deleting change one slot; a range that is deleted leaves `reaches` as is.

Time and memory grow with the domain; runs of 64 empty slots are passed at once. The domain is the
keys from 0 to the largest high, and grows by doubling. Intervals with a high of `max_values` or
more are never in it, but outside, in a list.

Two-stage, section 3.2. There a slot has one predicate; here equal ones are chained.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.common.pools import Rows, give_row, new_rows, rows_with_room, take_row
from matchmill.papers.predicate_index.base import Predicates, Satisfied
from matchmill.papers.predicate_index.interval_table import Intervals, KnownIntervals, collect
from matchmill.papers.two_stage.ordered_list import (
    N_KINDS,
    UP_TO,
    OrderedList,
    common_ends,
    kinds_of,
)

__all__ = ["DomainTable", "as_predicates", "joined"]

_MAX_VALUES = 1 << 20


class Table(NamedTuple):
    slots: np.ndarray  # int32, two dimensions
    filled: np.ndarray  # int32, two dimensions
    reaches: np.ndarray  # int64
    entries: Rows


class DomainTable:
    """One slot per value of a small domain."""

    name: ClassVar[str] = "domain_table"

    def __init__(self, max_values: int = _MAX_VALUES) -> None:
        self._known = KnownIntervals()
        self._max_values = max_values
        self._table = _empty_table(0)
        self._rebuild()

    @classmethod
    def build(cls, predicates: Predicates, *, max_values: int = _MAX_VALUES) -> DomainTable:
        """`max_values`: no domain is larger."""
        table = cls(max_values)
        table.insert(predicates)
        return table

    @property
    def n_values(self) -> int:
        """Number of values of the domain."""
        return int(self._table.slots.shape[1])

    def insert(self, predicates: Predicates) -> None:
        """Insert predicates."""
        new = self._known.add(predicates)
        self._n_intervals += len(new.ids)
        must_grow = self._largest(new) >= self.n_values
        if must_grow or self._n_intervals > 2 * self._n_when_chosen:
            self._rebuild()
        else:
            self._enter(new)

    def delete(self, ids: np.ndarray) -> None:
        """Delete predicates by their ids."""
        gone = self._known.remove(ids)
        self._n_intervals -= len(gone.ids)
        is_inside = gone.highs < self.n_values
        inside = gone.take(is_inside)
        _leave(self._table, inside, *_places(inside, self._ends))
        if not is_inside.all():
            self._outside.delete(gone.ids[~is_inside])

    def match(self, keys: np.ndarray) -> Satisfied:
        """Find the predicates that each key satisfies."""
        table, ends = self._table, self._ends
        inside = collect(
            len(keys),
            self._n_intervals,
            lambda start, offsets, out: _match(table, ends, keys, start, offsets, out),
        )
        if self._outside.n_intervals == 0:
            return inside
        return joined(inside, self._outside.match(keys))

    @property
    def n_bytes(self) -> int:
        """Bytes of the arrays."""
        table = self._table
        arrays = (table.slots, table.filled, table.reaches, *table.entries)
        return self._known.n_bytes + self._outside.n_bytes + sum(a.nbytes for a in arrays)

    def _rebuild(self) -> None:
        """Choose the domain and the ends again, and enter all."""
        intervals = self._known.all()
        self._n_intervals = len(intervals.ids)
        self._n_when_chosen = max(self._n_intervals, 8)
        self._ends = common_ends(intervals)
        n_values = self._largest(intervals) + 1
        if n_values > self.n_values > 0:
            n_values = min(max(n_values, 2 * self.n_values), self._max_values)
        self._table = _empty_table(n_values)
        self._outside = OrderedList()
        self._enter(intervals)

    def _largest(self, intervals: Intervals) -> int:
        """Return the largest key of those that a domain may hold, or -1."""
        fits = intervals.highs < self._max_values
        return int(intervals.highs.max(where=fits, initial=-1))

    def _enter(self, intervals: Intervals) -> None:
        is_inside = intervals.highs < self.n_values
        inside = intervals.take(is_inside)
        entries = rows_with_room(self._table.entries, len(inside.ids))
        self._table = self._table._replace(entries=entries)
        _enter(self._table, inside, *_places(inside, self._ends))
        if not is_inside.all():
            self._outside.insert(as_predicates(intervals.take(~is_inside)))


def _empty_table(n_values: int) -> Table:
    n_blocks = (n_values + 63) >> 6
    return Table(
        np.zeros((N_KINDS, n_values), np.int32),
        np.zeros((N_KINDS, n_blocks), np.int32),
        np.full(n_blocks, -1, np.int64),
        new_rows(3),
    )


def _places(intervals: Intervals, ends: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the kinds and the values in whose slots intervals stand."""
    kinds = kinds_of(intervals, ends)
    return kinds, np.where(kinds == UP_TO, intervals.highs, intervals.lows)


def as_predicates(intervals: Intervals) -> Predicates:
    """Return intervals by predicate, ascending."""
    by_id = intervals.take(np.argsort(intervals.ids, kind="stable"))
    ids, firsts = np.unique(by_id.ids, return_index=True)
    return Predicates(ids, np.append(firsts, len(by_id.ids)), by_id.lows, by_id.highs)


def joined(a: Satisfied, b: Satisfied) -> Satisfied:
    """Return what two structures have found for the same keys."""
    offsets = a.offsets + b.offsets
    ids = np.empty(offsets[-1], np.int64)
    for found, starts in ((a, offsets[:-1]), (b, offsets[:-1] + np.diff(a.offsets))):
        shifts = np.repeat(starts - found.offsets[:-1], np.diff(found.offsets))
        ids[np.arange(len(shifts)) + shifts] = found.ids
    return Satisfied(offsets, ids)


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _enter(table: Table, intervals: Intervals, kinds: np.ndarray, values: np.ndarray) -> None:
    slots, filled, reaches = table.slots, table.filled, table.reaches
    cells = table.entries.cells
    for i in range(len(kinds)):
        kind, value = kinds[i], values[i]
        row = take_row(table.entries)
        filled[kind, value >> 6] += slots[kind, value] == 0
        cells[row, 0] = slots[kind, value] - 1
        cells[row, 1], cells[row, 2] = intervals.ids[i], intervals.highs[i]
        slots[kind, value] = row + 1
        if kind == 3:
            block = value >> 6
            while block < len(reaches) and reaches[block] < intervals.highs[i]:
                reaches[block] = intervals.highs[i]
                block += 1


@kernel
def _leave(table: Table, intervals: Intervals, kinds: np.ndarray, values: np.ndarray) -> None:
    """Take out intervals, which are there. A predicate has a slot once at most."""
    slots, filled, cells = table.slots, table.filled, table.entries.cells
    for i in range(len(kinds)):
        kind, value = kinds[i], values[i]
        before = -1
        row = slots[kind, value] - 1
        while cells[row, 1] != intervals.ids[i]:
            before = row
            row = cells[row, 0]
        if before >= 0:
            cells[before, 0] = cells[row, 0]
        else:
            slots[kind, value] = cells[row, 0] + 1
            filled[kind, value >> 6] -= slots[kind, value] == 0
        give_row(table.entries, row)


@kernel
def _match(
    table: Table,
    ends: tuple[int, int],
    keys: np.ndarray,
    start: int,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> int:
    slots, filled, reaches = table.slots, table.filled, table.reaches
    cells = table.entries.cells
    n_values = slots.shape[1]
    n_out = out_offsets[start]
    for k in range(start, len(keys)):
        key = keys[k]
        for kind in range(4):
            # The values, first … stop, whose slots are satisfied, of ranges perhaps.
            first, stop = 0, 0
            if key < n_values:
                if kind == 0:
                    first, stop = key, key + 1
                elif kind == 1 and key >= ends[0]:
                    first, stop = key, n_values
                elif kind == 2 and key <= ends[1]:
                    stop = key + 1
                elif kind == 3:
                    block = key >> 6
                    while block >= 0 and reaches[block] >= key:
                        block -= 1
                    first, stop = (block + 1) << 6, key + 1
            value = first
            while value < stop:
                if value & 63 == 0 and filled[kind, value >> 6] == 0:
                    value += 64
                    continue
                row = slots[kind, value] - 1
                while row >= 0:
                    if cells[row, 2] >= key:
                        if n_out == len(out):
                            return k
                        out[n_out] = cells[row, 1]
                        n_out += 1
                    row = cells[row, 0]
                value += 1
        out_offsets[k + 1] = n_out
    return len(keys)
