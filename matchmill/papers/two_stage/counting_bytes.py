"""Counting with a byte for each predicate and clause.

    cells[p, c]    1 if the clause in column c has predicate p, else 0
    needed[c]      how many predicates it has; the largest number there is if column c is not in use
    hits           of one call, the satisfied predicates of 16,384 columns: they stay in the cache

`needed` and hits are bytes as long as no clause has more than 254 predicates, then wider.

Two-stage, section 3.3, calls hits the hit vector and `needed` the count vector.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.two_stage.counting_matrix import Association, CountingMatrix, Pairs, set_bits

__all__ = ["CountingBytes"]

_TILE = 16_384
_WIDTHS = (np.uint8, np.uint16, np.uint32)


class ByteMatrix:
    def __init__(self, cells: np.ndarray, needed: np.ndarray) -> None:
        self._cells = cells
        self._needed = needed

    @classmethod
    def empty(cls) -> ByteMatrix:
        return cls(np.zeros((0, 0), np.uint8), np.zeros(0, np.uint8))

    @classmethod
    def bytes_of(cls, n_predicates: int, n_columns: int) -> int:
        return n_predicates * n_columns

    def shape(self) -> tuple[int, int]:
        return self._cells.shape[0], self._cells.shape[1]

    def resize(self, n_predicates: int, n_columns: int) -> None:
        cells = np.zeros((n_predicates, n_columns), np.uint8)
        rows, columns = (min(n, had) for n, had in zip(cells.shape, self.shape(), strict=True))
        cells[:rows, :columns] = self._cells[:rows, :columns]
        needed = np.full(n_columns, _unused(self._needed), self._needed.dtype)
        needed[:columns] = self._needed[:columns]
        self._cells, self._needed = cells, needed

    def set_columns(self, columns: np.ndarray, offsets: np.ndarray, ids: np.ndarray) -> None:
        n_needed = np.diff(offsets)
        self._widen(int(n_needed.max(initial=0)))
        self._needed[columns] = n_needed
        _set_cells(self._cells, columns, offsets, ids)

    def _widen(self, longest: int) -> None:
        """Clauses of that many predicates can be counted, and distinguished from no clause."""
        width = next(w for w in _WIDTHS if longest < np.iinfo(w).max)
        if np.dtype(width).itemsize > self._needed.dtype.itemsize:
            wider = self._needed.astype(width)
            wider[self._needed == _unused(self._needed)] = np.iinfo(width).max
            self._needed = wider

    def clear_columns(self, columns: np.ndarray) -> np.ndarray:
        self._needed[columns] = _unused(self._needed)
        ids = np.nonzero(self._cells[:, columns])[0]
        self._cells[:, columns] = 0
        return ids

    def used_columns(self) -> np.ndarray:
        return np.flatnonzero(self._needed != _unused(self._needed))

    def match(self, vector: np.ndarray) -> Pairs:
        offsets, ids = set_bits(vector)
        hits = np.zeros(_TILE, self._needed.dtype)
        rows, columns = np.empty(1024, np.int32), np.empty(1024, np.int64)
        column = n = 0
        while True:
            column, n = _count(
                self._cells, self._needed, offsets, ids, column, hits, n, rows, columns
            )
            if column == len(self._needed):
                return rows[:n], columns[:n]
            # One part of the columns may bring this many more.
            more = len(rows) + len(vector) * _TILE
            rows, columns = np.resize(rows, more), np.resize(columns, more)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"cells": self._cells, "needed": self._needed}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> ByteMatrix:
        return cls(arrays["cells"], arrays["needed"])


class CountingBytes(CountingMatrix):
    """Two-stage's counting with a matrix of bytes."""

    name: ClassVar[str] = "counting_bytes"
    association: ClassVar[type[Association]] = ByteMatrix


def _unused(needed: np.ndarray) -> int:
    return int(np.iinfo(needed.dtype).max)


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _set_cells(
    cells: np.ndarray, columns: np.ndarray, offsets: np.ndarray, ids: np.ndarray
) -> None:
    for i in range(len(columns)):
        for k in range(offsets[i], offsets[i + 1]):
            cells[ids[k], columns[i]] = 1


@kernel
def _count(
    cells: np.ndarray,
    needed: np.ndarray,
    offsets: np.ndarray,
    ids: np.ndarray,
    column: int,
    hits: np.ndarray,
    n: int,
    out_rows: np.ndarray,
    out_columns: np.ndarray,
) -> tuple[int, int]:
    """Match in the columns from `column` on, after n that are there.

    Stops at a part of the columns for which there is no room.
    """
    for first in range(column, len(needed), len(hits)):
        size = min(len(hits), len(needed) - first)
        before = n
        for e in range(len(offsets) - 1):
            counts = hits[:size]
            counts[:] = 0
            k, stop = offsets[e], offsets[e + 1]
            while k + 4 <= stop:  # fewer times through the hits
                a = cells[ids[k], first : first + size]
                b = cells[ids[k + 1], first : first + size]
                c = cells[ids[k + 2], first : first + size]
                d = cells[ids[k + 3], first : first + size]
                for i in range(size):
                    counts[i] += a[i] + b[i] + c[i] + d[i]
                k += 4
            while k < stop:
                a = cells[ids[k], first : first + size]
                for i in range(size):
                    counts[i] += a[i]
                k += 1
            wanted = needed[first : first + size]
            for i in range(size):
                if counts[i] == wanted[i]:
                    if n == len(out_rows):
                        return first, before
                    out_rows[n] = e
                    out_columns[n] = first + i
                    n += 1
    return len(needed), n
