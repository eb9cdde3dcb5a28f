"""Counting with lists from predicates to clauses, and back.

    clauses of p       spans of columns: the clauses that have predicate p
    predicates of c    spans of predicates: those of the clause in column c, for deletion
    records            of each list: its first cell, how many entries it has, and its room
    needed[c]          how many predicates it has; the largest number there is if column c is not in
                       use
    hits               of one event, the satisfied predicates of each column

An event clears the hits, adds one for each clause of each satisfied predicate, and compares all
hits with all of `needed`. A clause is deleted by taking it out of the list of each of its
predicates, where it has to be searched for.

    2 predicates, 3 columns        0: a, b   1: a   2: b
    clauses of a                   0, 1      room for 2
    clauses of b                   0, 2      room for 2
    another clause with b          a span of 4: 0, 2, 3, -

`needed` and hits are bytes as long as no clause has more than 254 predicates, then wider.

Two-stage, section 3.3: the re-allocatable arrays from predicates to subscriptions. They grow there
by a constant, which makes n insertions into one list cost n²; here their room is doubled.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.index.base import Statistics
from matchmill.kernels.jit import kernel
from matchmill.papers.common.pools import (
    Spans,
    give_span,
    new_spans,
    span_capacity,
    spans_with_room,
    take_span,
)
from matchmill.papers.two_stage.counting_matrix import Association, CountingMatrix, Pairs, set_bits

__all__ = ["CountingLists"]

_FIRST, _N, _CAPACITY, _WIDTH = range(4)
_WIDTHS = (np.uint8, np.uint16, np.uint32)
_NO_LIMIT = 1 << 62


class Lists(NamedTuple):
    """Lists that grow: records, and the spans that they point to."""

    records: np.ndarray  # int64, lists × 3
    spans: Spans  # of int32


class ListAssociation:
    """The lists of predicates and of clauses."""

    def __init__(self, clauses: Lists, predicates: Lists, needed: np.ndarray) -> None:
        self._clauses = clauses
        self._predicates = predicates
        self._needed = needed

    @classmethod
    def empty(cls) -> ListAssociation:
        """Make lists of nothing."""
        return cls(_no_lists(), _no_lists(), np.zeros(0, np.uint8))

    @classmethod
    def bytes_of(cls, n_predicates: int, n_columns: int) -> int:
        """Return the bytes of the records; lists take as much as there is in them."""
        return 8 * _WIDTH * (n_predicates + n_columns)

    def shape(self) -> tuple[int, int]:
        """Return the numbers of predicates and columns."""
        return len(self._clauses.records), len(self._needed)

    def resize(self, n_predicates: int, n_columns: int) -> None:
        """Make room for so many; what goes was never in use."""
        self._clauses = _with_lists(self._clauses, n_predicates)
        self._predicates = _with_lists(self._predicates, n_columns)
        needed = np.full(n_columns, _unused(self._needed), self._needed.dtype)
        kept = min(n_columns, len(self._needed))
        needed[:kept] = self._needed[:kept]
        self._needed = needed

    def set_columns(self, columns: np.ndarray, offsets: np.ndarray, ids: np.ndarray) -> None:
        """Column columns[i] gets the predicates ids[offsets[i]] … and is in use."""
        n_needed = np.diff(offsets)
        self._widen(int(n_needed.max(initial=0)))
        self._needed[columns] = n_needed
        per_predicate = np.repeat(columns, n_needed)
        self._clauses = _with_entries(self._clauses, ids, per_predicate)
        self._predicates = _with_entries(self._predicates, per_predicate, ids)

    def _widen(self, longest: int) -> None:
        """Clauses of that many predicates can be counted, and distinguished from no clause."""
        width = next(w for w in _WIDTHS if longest < np.iinfo(w).max)
        if np.dtype(width).itemsize > self._needed.dtype.itemsize:
            wider = self._needed.astype(width)
            wider[self._needed == _unused(self._needed)] = np.iinfo(width).max
            self._needed = wider

    def clear_columns(self, columns: np.ndarray) -> np.ndarray:
        """Clear columns, and return the predicates that they had, as often as they had them."""
        self._needed[columns] = _unused(self._needed)
        ids = np.empty(int(self._predicates.records[columns, _N].sum()), np.int64)
        _take_out(self._clauses, self._predicates, columns, ids)
        return ids

    def used_columns(self) -> np.ndarray:
        """Ascending."""
        return np.flatnonzero(self._needed != _unused(self._needed))

    def match(self, vector: np.ndarray) -> Pairs:
        """All (event, column) that match, in any order."""
        offsets, ids = set_bits(vector)
        hits = np.zeros(len(self._needed), self._needed.dtype)
        rows, columns = np.empty(1024, np.int32), np.empty(1024, np.int64)
        event = n = 0
        while True:
            event, n = _count(
                self._clauses, self._needed, offsets, ids, event, hits, n, rows, columns
            )
            if event == len(vector):
                return rows[:n], columns[:n]
            more = 2 * len(rows) + len(hits)  # one event may bring this many
            rows, columns = np.resize(rows, more), np.resize(columns, more)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all that `from_arrays` needs."""
        named = {"needed": self._needed}
        for name, lists in (("clauses", self._clauses), ("predicates", self._predicates)):
            named[f"{name}_records"] = lists.records
            named |= {f"{name}_{field}": a for field, a in lists.spans._asdict().items()}
        return named

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> ListAssociation:
        """Make the same again from its arrays."""
        clauses, predicates = (
            Lists(arrays[f"{name}_records"], Spans(*(arrays[f"{name}_{f}"] for f in Spans._fields)))
            for name in ("clauses", "predicates")
        )
        return cls(clauses, predicates, arrays["needed"])


class CountingLists(CountingMatrix):
    """Two-stage's counting with lists."""

    name: ClassVar[str] = "counting_lists"
    association: ClassVar[type[Association]] = ListAssociation

    @classmethod
    def build(
        cls,
        table: ConjunctionTable,
        statistics: Statistics | None = None,
        *,
        predicates: str = "auto",
        **options: Any,
    ) -> Self:
        """`predicates`: one of STRUCTURES. There is no matrix, so that none can be too large."""
        return cls._built(table, _NO_LIMIT, predicates)


def _no_lists() -> Lists:
    return Lists(np.zeros((0, _WIDTH), np.int64), new_spans(np.int32))


def _with_lists(lists: Lists, n: int) -> Lists:
    records = np.zeros((n, _WIDTH), np.int64)
    kept = min(n, len(lists.records))
    records[:kept] = lists.records[:kept]
    return lists._replace(records=records)


def _with_entries(lists: Lists, owners: np.ndarray, entries: np.ndarray) -> Lists:
    """Append entries[k] to list owners[k]."""
    touched, counts = np.unique(owners, return_counts=True)
    room = _room_for(lists.records, touched, counts)
    lists = lists._replace(spans=spans_with_room(lists.spans, room))
    _reserve(lists, touched, counts)
    _append(lists, owners, entries)
    return lists


def _unused(needed: np.ndarray) -> int:
    return int(np.iinfo(needed.dtype).max)


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _room_for(records: np.ndarray, touched: np.ndarray, counts: np.ndarray) -> int:
    """Return the cells of the spans that more entries may take."""
    room = 0
    for t in range(len(touched)):
        n = records[touched[t], _N] + counts[t]
        if n > records[touched[t], _CAPACITY]:
            room += span_capacity(n)
    return room


@kernel
def _reserve(lists: Lists, touched: np.ndarray, counts: np.ndarray) -> None:
    """Move lists that have no room for more entries."""
    records, cells = lists.records, lists.spans.cells
    for t in range(len(touched)):
        record = records[touched[t]]
        n = record[_N] + counts[t]
        old, capacity = record[_FIRST], record[_CAPACITY]
        if n <= capacity:
            continue
        first = take_span(lists.spans, n)
        for k in range(record[_N]):
            cells[first + k] = cells[old + k]
        if capacity > 0:
            give_span(lists.spans, old, capacity)
        record[_FIRST] = first
        record[_CAPACITY] = span_capacity(n)


@kernel
def _append(lists: Lists, owners: np.ndarray, entries: np.ndarray) -> None:
    records, cells = lists.records, lists.spans.cells
    for k in range(len(owners)):
        record = records[owners[k]]
        cells[record[_FIRST] + record[_N]] = entries[k]
        record[_N] += 1


@kernel
def _empty_list(lists: Lists, i: int) -> None:
    """Give back the span of a list."""
    record = lists.records[i]
    if record[_CAPACITY] > 0:
        give_span(lists.spans, record[_FIRST], record[_CAPACITY])
    record[_N] = record[_CAPACITY] = 0


@kernel
def _take_out(clauses: Lists, predicates: Lists, columns: np.ndarray, out_ids: np.ndarray) -> None:
    """Take columns out of the lists of their predicates, which are written to `out_ids`."""
    cells = clauses.spans.cells
    n = 0
    for column in columns:
        own = predicates.records[column]
        for k in range(own[_FIRST], own[_FIRST] + own[_N]):
            id_ = predicates.spans.cells[k]
            record = clauses.records[id_]
            at = record[_FIRST]
            while cells[at] != column:
                at += 1
            record[_N] -= 1
            cells[at] = cells[record[_FIRST] + record[_N]]
            if record[_N] == 0:
                _empty_list(clauses, id_)
            out_ids[n] = id_
            n += 1
        _empty_list(predicates, column)


@kernel
def _count(
    clauses: Lists,
    needed: np.ndarray,
    offsets: np.ndarray,
    ids: np.ndarray,
    event: int,
    hits: np.ndarray,
    n: int,
    out_rows: np.ndarray,
    out_columns: np.ndarray,
) -> tuple[int, int]:
    """Match events from `event` on, after n that are there; stops at one without room."""
    records, cells = clauses.records, clauses.spans.cells
    for e in range(event, len(offsets) - 1):
        before = n
        hits[:] = 0
        for k in range(offsets[e], offsets[e + 1]):
            first = records[ids[k], _FIRST]
            for at in range(first, first + records[ids[k], _N]):
                hits[cells[at]] += 1
        for column in range(len(needed)):
            if hits[column] == needed[column]:
                if n == len(out_rows):
                    return e, before
                out_rows[n] = e
                out_columns[n] = column
                n += 1
    return len(offsets) - 1, n
