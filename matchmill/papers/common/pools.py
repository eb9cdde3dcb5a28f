"""Memory for structures that change in place: rows of one width, and spans of any length.

    Rows     cells[r, c]: row r. A free row has the next free one in column 0, or -1.
             state: rows below which all have been used once, first free row or -1, rows in use
    Spans    cells[s : s + capacity]: a span; its capacity is a power of two. A free one has the
             next free one of its capacity in its first cell, or -1.
             free: the first free span of each capacity 2**k, or -1
             state: cells below which all have been used once, cells in use

Kernels take and give back; they never grow an array, because others would keep the old one. The
caller of a kernel makes room in advance for the most that it can take:

    rows = rows_with_room(rows, 3 * n)
    insert(rows, …)

A kernel that cannot know it in advance asks `rows_left`, stops where it is, and is called again.
One that would only like to have a span, to move something to a smaller one, asks `can_take_span`.

Taking without room is a RuntimeError, which is an error of the caller: it would write to memory of
others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchmill.kernels.jit import kernel

__all__ = [
    "Rows",
    "Spans",
    "can_take_span",
    "give_row",
    "give_span",
    "new_rows",
    "new_spans",
    "rows_in_use",
    "rows_left",
    "rows_with_room",
    "span_capacity",
    "spans_in_use",
    "spans_left",
    "spans_with_room",
    "take_row",
    "take_span",
]

_TOP, _FREE, _IN_USE = range(3)
_SPAN_TOP, _SPAN_IN_USE = range(2)
_CAPACITIES = 48


class Rows(NamedTuple):
    """Rows of one width."""

    cells: np.ndarray  # int64, two dimensions
    state: np.ndarray  # int64


class Spans(NamedTuple):
    """Spans of any length."""

    cells: np.ndarray  # int32 or int64
    free: np.ndarray  # int64
    state: np.ndarray  # int64


# -- rows -----------------------------------------------------------------------------------------


def new_rows(width: int, n: int = 16) -> Rows:
    """Make rows, none of them taken."""
    return Rows(np.zeros((n, width), np.int64), np.array([0, -1, 0]))


def rows_with_room(rows: Rows, n: int) -> Rows:
    """Return the same rows, with at least n more to take."""
    missing = n - (len(rows.cells) - int(rows.state[_IN_USE]))
    return rows if missing <= 0 else rows._replace(cells=_grown(rows.cells, missing))


def rows_in_use(rows: Rows) -> int:
    """Return how many rows are in use."""
    return int(rows.state[_IN_USE])


@kernel
def rows_left(rows: Rows) -> int:
    """How many can be taken."""
    return int(len(rows.cells) - rows.state[_IN_USE])


@kernel
def take_row(rows: Rows) -> int:
    """Take a row, with whatever was in it. There must be one left."""
    state = rows.state
    row = int(state[_FREE])
    if row >= 0:
        state[_FREE] = rows.cells[row, 0]
    else:
        row = int(state[_TOP])
        if row >= len(rows.cells):
            raise RuntimeError("a row is taken for which no room was made")
        state[_TOP] += 1
    state[_IN_USE] += 1
    return row


@kernel
def give_row(rows: Rows, row: int) -> None:
    """Give back a row."""
    state = rows.state
    rows.cells[row, 0] = state[_FREE]
    state[_FREE] = row
    state[_IN_USE] -= 1


# -- spans ----------------------------------------------------------------------------------------


def new_spans(dtype: Any = np.int64, n: int = 64) -> Spans:
    """Make room for spans."""
    return Spans(np.zeros(n, dtype), np.full(_CAPACITIES, -1, np.int64), np.zeros(2, np.int64))


def spans_with_room(spans: Spans, n: int) -> Spans:
    """Return the same spans, with room for others whose capacities sum up to n cells.

    Free spans do not count: they may have the wrong capacity.
    """
    missing = n - (len(spans.cells) - int(spans.state[_SPAN_TOP]))
    return spans if missing <= 0 else spans._replace(cells=_grown(spans.cells, missing))


def spans_in_use(spans: Spans) -> int:
    """Cells that are in use."""
    return int(spans.state[_SPAN_IN_USE])


@kernel
def spans_left(spans: Spans) -> int:
    """Cells that can be taken whatever the capacities."""
    return int(len(spans.cells) - spans.state[_SPAN_TOP])


@kernel
def span_capacity(n: int) -> int:
    """Return the cells of a span that is taken for n."""
    capacity = 1
    while capacity < n:
        capacity *= 2
    return capacity


@kernel
def _capacity_class(n: int) -> int:
    k = 0
    while 1 << k < n:
        k += 1
    return k


@kernel
def can_take_span(spans: Spans, n: int) -> bool:
    """Tell whether there is room to take a span for n cells."""
    k = _capacity_class(n)
    return bool(spans.free[k] >= 0 or spans.state[_SPAN_TOP] + (1 << k) <= len(spans.cells))


@kernel
def take_span(spans: Spans, n: int) -> int:
    """Take a span for n cells, with whatever was in it, and return its first cell.

    There must be room.
    """
    k = _capacity_class(n)
    start = int(spans.free[k])
    if start >= 0:
        spans.free[k] = spans.cells[start]
    else:
        start = int(spans.state[_SPAN_TOP])
        if start + (1 << k) > len(spans.cells):
            raise RuntimeError("a span is taken for which no room was made")
        spans.state[_SPAN_TOP] += 1 << k
    spans.state[_SPAN_IN_USE] += 1 << k
    return start


@kernel
def give_span(spans: Spans, start: int, n: int) -> None:
    """Give back a span that was taken for n cells, or for as many as have the same capacity."""
    k = _capacity_class(n)
    spans.cells[start] = spans.free[k]
    spans.free[k] = start
    spans.state[_SPAN_IN_USE] -= 1 << k


def _grown(cells: np.ndarray, missing: int) -> np.ndarray:
    """Half as long again, or longer where that is not enough."""
    n = len(cells)
    grown = np.zeros((n + max(missing, n // 2), *cells.shape[1:]), cells.dtype)
    grown[:n] = cells
    return grown
