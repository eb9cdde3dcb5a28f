"""The counter arrays of OpIndex: for each pivot a row for each clause that is filed under it.

    pivots[p]     start, capacity, n: its rows are initial[start … start + n], owners likewise
                  n_dead: rows that were deleted and may still have entries
                  free: a row that nothing refers to, or -1; the next one is in its initial value
    initial       what a counter is before an event; DEAD if the row was deleted; below 0 if free
    owners        what the row belongs to

Pivot 0 has the clauses that no dimension is sure to lead to; dimension d is pivot d + 1. A row
never moves within its pivot, so (pivot, row) stays the place of a clause as long as the clause
lives.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.common.pools import (
    Spans,
    give_span,
    new_spans,
    span_capacity,
    spans_with_room,
    take_span,
)

__all__ = [
    "DEAD",
    "N_DEAD",
    "N_ROWS",
    "START",
    "Rows",
    "add_rows",
    "free_dead_rows",
    "new_rows",
    "place_row",
    "row_span",
    "rows_with_span",
    "with_pivots",
]

START, _CAPACITY, N_ROWS, N_DEAD, _FREE, _WIDTH = range(6)
DEAD = 1 << 30


class Rows(NamedTuple):
    """The counters of all pivots."""

    pivots: np.ndarray  # int64, pivots × 5
    initial: Spans  # int32
    owners: np.ndarray  # int64


def new_rows() -> Rows:
    """Make counters for no pivot."""
    return Rows(np.empty((0, _WIDTH), np.int64), new_spans(np.int32), np.zeros(64, np.int64))


def with_pivots(rows: Rows, n_pivots: int) -> Rows:
    """With at least so many pivots."""
    missing = n_pivots - len(rows.pivots)
    if missing <= 0:
        return rows
    more = np.zeros((missing, _WIDTH), np.int64)
    more[:, _FREE] = -1
    return rows._replace(pivots=np.concatenate((rows.pivots, more)))


def add_rows(
    rows: Rows, pivots: np.ndarray, initial: np.ndarray, owners: np.ndarray
) -> tuple[Rows, np.ndarray]:
    """Add a row for each of these, and return where it is in its pivot."""
    touched, counts = np.unique(pivots, return_counts=True)
    is_first = int(rows.initial.state[0]) == 0
    sizes = counts if is_first else _span_sizes(rows.pivots, touched, counts)
    rows = rows_with_span(rows, int(sizes.sum()))
    _reserve(rows, touched, counts, is_first)
    out = np.empty(len(pivots), np.int64)
    _place(rows, pivots, initial, owners, out)
    return rows, out


def rows_with_span(rows: Rows, n: int) -> Rows:
    """Return the same rows, with room for spans of n cells in all."""
    spans = spans_with_room(rows.initial, n)
    if len(rows.owners) < len(spans.cells):
        wider = np.zeros(len(spans.cells), np.int64)
        wider[: len(rows.owners)] = rows.owners
        rows = rows._replace(owners=wider)
    return rows if spans is rows.initial else rows._replace(initial=spans)


def row_span(pivots: np.ndarray, pivot: int) -> int:
    """Return the cells of the span that one more row of a pivot takes; 0 if there is room."""
    n = int(pivots[pivot, N_ROWS]) + 1
    return 0 if n <= pivots[pivot, _CAPACITY] else int(span_capacity(n))


@kernel
def _span_sizes(pivots: np.ndarray, touched: np.ndarray, counts: np.ndarray) -> np.ndarray:
    sizes = np.zeros(len(touched), np.int64)
    for t in range(len(touched)):
        n = pivots[touched[t], N_ROWS] + counts[t]
        if n > pivots[touched[t], _CAPACITY]:
            sizes[t] = span_capacity(n)
    return sizes


@kernel
def _reserve(rows: Rows, touched: np.ndarray, counts: np.ndarray, is_first: bool) -> None:
    pivots, spans, owners = rows.pivots, rows.initial, rows.owners
    for t in range(len(touched)):
        p = touched[t]
        n = pivots[p, N_ROWS] + counts[t]
        capacity, old = pivots[p, _CAPACITY], pivots[p, START]
        if n <= capacity:
            continue
        if is_first:  # the pool is filled from one end, without gaps
            start = int(spans.state[0])
            spans.state[0] += n
            spans.state[1] += n
            pivots[p, _CAPACITY] = n
        else:
            start = take_span(spans, n)
            pivots[p, _CAPACITY] = span_capacity(n)
        for r in range(pivots[p, N_ROWS]):
            spans.cells[start + r] = spans.cells[old + r]
            owners[start + r] = owners[old + r]
        if capacity > 0:
            given = 1
            while 2 * given <= capacity:
                given *= 2
            give_span(spans, old, given)
        pivots[p, START] = start


@kernel
def _place(
    rows: Rows, pivots: np.ndarray, initial: np.ndarray, owners: np.ndarray, out: np.ndarray
) -> None:
    for k in range(len(pivots)):
        record = rows.pivots[pivots[k]]
        row = record[_FREE]
        if row >= 0:
            record[_FREE] = -2 - rows.initial.cells[record[START] + row]
        else:
            row = record[N_ROWS]
            record[N_ROWS] += 1
        rows.initial.cells[record[START] + row] = initial[k]
        rows.owners[record[START] + row] = owners[k]
        out[k] = row


@kernel
def place_row(rows: Rows, pivot: int, initial: int, owner: int) -> int:
    """Add one row, for which there is room, and return where it is in its pivot."""
    pivots, counts = np.empty(1, np.int64), np.ones(1, np.int64)
    initials, owners = np.empty(1, np.int64), np.empty(1, np.int64)
    out = np.empty(1, np.int64)
    pivots[0], initials[0], owners[0] = pivot, initial, owner
    _reserve(rows, pivots, counts, False)
    _place(rows, pivots, initials, owners, out)
    return int(out[0])


@kernel
def free_dead_rows(rows: Rows, pivot: int) -> None:
    """After the entries of the dead are gone."""
    record = rows.pivots[pivot]
    for r in range(record[N_ROWS]):
        if rows.initial.cells[record[START] + r] == DEAD:
            rows.initial.cells[record[START] + r] = -2 - record[_FREE]
            record[_FREE] = r
    record[N_DEAD] = 0
