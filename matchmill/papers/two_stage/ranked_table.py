"""A domain table for keys of any size: the table's values are the ranks of the keys in use.

    cuts       ascending: the first key of each interval, and the key after its last one
    code       of a key: how many cuts are not above it. Keys with one code satisfy the same
               predicates, so an interval of keys is an interval of codes
    table      a DomainTable over codes, from 0 to the number of cuts
    waiting    an OrderedList with the predicates that have a bound between two cuts

The paper's domains have a value per slot, with a smallest and a largest one. An engine's keys are
labels that leave gaps and begin at 3 << 60 for numbers, so no table could have a slot for each. But
of a domain of several thousand values there are only so many bounds, and it is their ranks that a
table needs. For an attribute whose values all occur in predicates, ranks are the domain.

    x = 5, x < 8        keys [50, 50] and [20, 79]      cuts 20, 50, 51, 80
    codes of intervals  [2, 2] and [1, 3]               code of 60: 3; of 80: 4; of 7: 0

A new cut would move all codes above it. So a predicate with a new bound waits, and when one in
eight predicates waits, all cuts are taken again and the table is built from them. Cuts of deleted
predicates go at that time too.

Two-stage, section 3.2.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from matchmill.papers.predicate_index.base import Predicates, Satisfied
from matchmill.papers.predicate_index.interval_table import Intervals, KnownIntervals
from matchmill.papers.two_stage.domain_table import DomainTable, as_predicates, joined
from matchmill.papers.two_stage.ordered_list import OrderedList

__all__ = ["RankedTable", "bounds_of"]

_MAX_KEY = np.iinfo(np.int64).max
_ALWAYS = 16  # predicates may wait, however few there are
_SHARE = 8


def bounds_of(lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
    """Return the cuts that intervals need, ascending."""
    return np.unique(np.concatenate((lows, highs[highs < _MAX_KEY] + 1)))


class RankedTable:
    """One slot per key that predicates tell apart."""

    name: ClassVar[str] = "ranked_table"

    def __init__(self) -> None:
        self._known = KnownIntervals()
        self._n_intervals = 0
        self._cuts = np.empty(0, np.int64)
        self._bounds = self._cuts  # cuts, and the bounds of what waits
        self._table = DomainTable()
        self._waiting = OrderedList()

    @classmethod
    def build(cls, predicates: Predicates) -> RankedTable:
        """Build the index from predicates."""
        table = cls()
        table.insert(predicates)
        return table

    def n_bounds_with(self, predicates: Predicates) -> int:
        """Return how many bounds there are with more predicates."""
        return len(self._bounds_with(predicates.lows, predicates.highs))

    def insert(self, predicates: Predicates) -> None:
        """Insert predicates."""
        new = self._known.add(predicates)
        self._n_intervals += len(new.ids)
        self._bounds = self._bounds_with(new.lows, new.highs)
        waits = self._waits(new)
        n_waiting = self._waiting.n_intervals + int(waits.sum())
        if n_waiting > _ALWAYS and _SHARE * n_waiting > self._n_intervals:
            self._rebuild()
            return
        if waits.any():
            self._waiting.insert(as_predicates(new.take(waits)))
        if not waits.all():
            self._table.insert(as_predicates(self._coded(new.take(~waits))))

    def delete(self, ids: np.ndarray) -> None:
        """Delete predicates by their ids."""
        gone = self._known.remove(ids)
        self._n_intervals -= len(gone.ids)
        waits = self._waits(gone)
        if waits.any():
            self._waiting.delete(np.unique(gone.ids[waits]))
        if not waits.all():
            self._table.delete(np.unique(gone.ids[~waits]))

    def match(self, keys: np.ndarray) -> Satisfied:
        """Find the predicates that each key satisfies."""
        found = self._table.match(np.searchsorted(self._cuts, keys, side="right"))
        if self._waiting.n_intervals == 0:
            return found
        return joined(found, self._waiting.match(keys))

    @property
    def n_bytes(self) -> int:
        """Bytes of the arrays."""
        n = self._known.n_bytes + self._table.n_bytes + self._waiting.n_bytes
        return n + self._cuts.nbytes + self._bounds.nbytes

    def _bounds_with(self, lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
        new = bounds_of(lows, highs)
        at = np.searchsorted(self._bounds, new)
        is_new = at == np.searchsorted(self._bounds, new, side="right")
        return np.insert(self._bounds, at[is_new], new[is_new]) if is_new.any() else self._bounds

    def _waits(self, intervals: Intervals) -> np.ndarray:
        """Of each interval whether its predicate has a bound that is no cut."""
        is_new = ~np.isin(intervals.lows, self._cuts)
        is_new |= ~np.isin(intervals.highs + 1, self._cuts) & (intervals.highs < _MAX_KEY)
        return np.isin(intervals.ids, intervals.ids[is_new])

    def _coded(self, intervals: Intervals) -> Intervals:
        """Bring intervals whose bounds are cuts to codes."""
        lows = np.searchsorted(self._cuts, intervals.lows, side="right")
        highs = np.searchsorted(self._cuts, intervals.highs, side="right")
        return Intervals(intervals.ids, lows, highs)

    def _rebuild(self) -> None:
        intervals = self._known.all()
        self._cuts = self._bounds = bounds_of(intervals.lows, intervals.highs)
        self._table = DomainTable.build(as_predicates(self._coded(intervals)))
        self._waiting = OrderedList()
