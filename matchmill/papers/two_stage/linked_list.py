"""List-based predicate matching as the paper has it: ordered linked lists.

    heads[kind]    the first entry of the list of each kind of operator, or -1
    entries        rows (`common/pools.py`): next entry or -1, id, key, high

    points    by value, ascending             walked to the value
    up_to     by their last key, descending   all are satisfied until one is not
    since     by their first key, ascending   all are satisfied until one is not
    ranges    by their first key, ascending   walked to the key, each compared

Kinds are those of an OrderedList, which is the same in arrays, and so is the choice of the ends.
An event walks every list of its dimension from the start, and so do insertion and deletion; many
that come at once are merged in one walk. Equal keys stand in the order of their ids.

Two-stage, section 3.1. There `!=` has a list of its own; here it is an interval of `up_to` and one
of `since`.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.common.pools import Rows, give_row, new_rows, rows_with_room, take_row
from matchmill.papers.predicate_index.base import Predicates, Satisfied
from matchmill.papers.predicate_index.interval_table import Intervals, KnownIntervals, collect
from matchmill.papers.two_stage.ordered_list import N_KINDS, UP_TO, common_ends, kinds_of

__all__ = ["LinkedList"]

_NEXT, _ID, _KEY, _HIGH = range(4)


class LinkedList:
    """Ordered linked lists, one per kind of operator."""

    name: ClassVar[str] = "linked_list"

    def __init__(self) -> None:
        self._known = KnownIntervals()
        self._n_intervals = self._n_when_chosen = 0
        self._ends = (-1, -1)
        self._clear()

    def _clear(self) -> None:
        self._entries = new_rows(4)
        self._heads = np.full(N_KINDS, -1, np.int64)

    @classmethod
    def build(cls, predicates: Predicates) -> LinkedList:
        """Build the index from predicates."""
        lists = cls()
        lists.insert(predicates)
        return lists

    def insert(self, predicates: Predicates) -> None:
        """Insert predicates."""
        new = self._known.add(predicates)
        self._n_intervals += len(new.ids)
        if self._n_intervals > 2 * self._n_when_chosen:
            new = self._known.all()
            self._n_when_chosen = max(len(new.ids), 8)
            self._ends = common_ends(new)
            self._clear()
        self._entries = rows_with_room(self._entries, len(new.ids))
        for kind, some in self._by_kind(new):
            _link(self._entries, self._heads, kind, some)

    def delete(self, ids: np.ndarray) -> None:
        """Delete predicates by their ids."""
        gone = self._known.remove(ids)
        self._n_intervals -= len(gone.ids)
        for kind, some in self._by_kind(gone):
            _unlink(self._entries, self._heads, kind, some)

    def match(self, keys: np.ndarray) -> Satisfied:
        """Find the predicates that each key satisfies."""
        cells, heads, ends = self._entries.cells, self._heads, self._ends
        return collect(
            len(keys),
            self._n_intervals,
            lambda start, offsets, out: _match(cells, heads, ends, keys, start, offsets, out),
        )

    @property
    def n_bytes(self) -> int:
        """Bytes of the arrays."""
        return self._known.n_bytes + self._entries.cells.nbytes

    def _by_kind(self, intervals: Intervals) -> list[tuple[int, Intervals]]:
        """Return the intervals of each kind in the order of its list.

        What a list is ordered by is put in `lows`; for a descending one, with the other sign.
        """
        kinds = kinds_of(intervals, self._ends)
        found = []
        for kind in range(N_KINDS):
            some = intervals.take(kinds == kind)
            if len(some.ids):
                keys = -some.highs if kind == UP_TO else some.lows
                order = np.lexsort((some.ids, keys))
                found.append((kind, Intervals(some.ids, keys, some.highs).take(order)))
        return found


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _link(entries: Rows, heads: np.ndarray, kind: int, new: Intervals) -> None:
    """Put entries, which are in order, into the list of a kind; there is room."""
    cells = entries.cells
    before, row = -1, int(heads[kind])
    for i in range(len(new.ids)):
        key, id_ = new.lows[i], new.ids[i]
        while row >= 0 and (
            cells[row, _KEY] < key or (cells[row, _KEY] == key and cells[row, _ID] < id_)
        ):
            before, row = row, int(cells[row, _NEXT])
        added = take_row(entries)
        cells[added, _NEXT] = row
        cells[added, _ID], cells[added, _KEY], cells[added, _HIGH] = id_, key, new.highs[i]
        if before >= 0:
            cells[before, _NEXT] = added
        else:
            heads[kind] = added
        before = added


@kernel
def _unlink(entries: Rows, heads: np.ndarray, kind: int, gone: Intervals) -> None:
    """Take entries, which are in order and all there, out of the list of a kind."""
    cells = entries.cells
    before, row = -1, int(heads[kind])
    for i in range(len(gone.ids)):
        while cells[row, _KEY] != gone.lows[i] or cells[row, _ID] != gone.ids[i]:
            before, row = row, int(cells[row, _NEXT])
        following = int(cells[row, _NEXT])
        if before >= 0:
            cells[before, _NEXT] = following
        else:
            heads[kind] = following
        give_row(entries, row)
        row = following


@kernel
def _match(
    cells: np.ndarray,
    heads: np.ndarray,
    ends: tuple[int, int],
    keys: np.ndarray,
    start: int,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> int:
    n_out = out_offsets[start]
    for k in range(start, len(keys)):
        key = keys[k]
        for kind in range(4):
            if (kind == 1 and key < ends[0]) or (kind == 2 and key > ends[1]):
                continue
            # The list is in order, so that behind this key nothing is satisfied.
            last = -key if kind == 1 else key
            row = heads[kind]
            while row >= 0 and cells[row, _KEY] <= last:
                is_satisfied = cells[row, _KEY] == key if kind == 0 else cells[row, _HIGH] >= key
                if is_satisfied:
                    if n_out == len(out):
                        return k
                    out[n_out] = cells[row, _ID]
                    n_out += 1
                row = cells[row, _NEXT]
        out_offsets[k + 1] = n_out
    return len(keys)
