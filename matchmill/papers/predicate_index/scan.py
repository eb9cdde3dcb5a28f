"""The baseline for one dimension: compare a key with every interval.

    lows[i], highs[i], ids[i]    interval i of n; the arrays are longer, for those to come

Intervals are looked at 256 at a time: whether any holds the key is a sum without branches, and
mostly the answer is no. Nothing is sorted, so a deleted interval gives its place to the last one.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.predicate_index.base import Predicates, Satisfied
from matchmill.papers.predicate_index.interval_table import Intervals, KnownIntervals, collect

__all__ = ["PredicateScan"]


class PredicateScan:
    """All intervals, one after the other."""

    name: ClassVar[str] = "scan"

    def __init__(self) -> None:
        self._known = KnownIntervals()
        self._rows = Intervals(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))
        self._n = 0

    @classmethod
    def build(cls, predicates: Predicates) -> PredicateScan:
        """Build the index from predicates."""
        scan = cls()
        scan.insert(predicates)
        return scan

    def insert(self, predicates: Predicates) -> None:
        """Insert predicates."""
        new = self._known.add(predicates)
        n = self._n + len(new.ids)
        if n > len(self._rows.ids):
            capacity = n + n // 2
            wider = [np.empty(capacity, np.int64) for _ in self._rows]
            for array, old in zip(wider, self._rows, strict=True):
                array[: self._n] = old[: self._n]
            self._rows = Intervals(*wider)
        for array, values in zip(self._rows, new, strict=True):
            array[self._n : n] = values
        self._n = n

    def delete(self, ids: np.ndarray) -> None:
        """Delete predicates by their ids."""
        self._known.remove(ids)
        self._n = _drop(self._rows, self._n, np.unique(ids))

    def match(self, keys: np.ndarray) -> Satisfied:
        """Find the predicates that each key satisfies."""
        rows, n = self._rows, self._n
        return collect(
            len(keys), n, lambda start, offsets, out: _match(rows, n, keys, start, offsets, out)
        )

    @property
    def n_bytes(self) -> int:
        """Bytes of the arrays."""
        return self._known.n_bytes + sum(a.nbytes for a in self._rows)


@kernel
def _drop(rows: Intervals, n: int, ids: np.ndarray) -> int:
    """Take out all intervals of some predicates, whose ids ascend; returns how many are left."""
    i = 0
    while i < n:
        at = np.searchsorted(ids, rows.ids[i])
        if at < len(ids) and ids[at] == rows.ids[i]:
            n -= 1
            rows.ids[i], rows.lows[i], rows.highs[i] = rows.ids[n], rows.lows[n], rows.highs[n]
        else:
            i += 1
    return n


@kernel
def _match(
    rows: Intervals,
    n: int,
    keys: np.ndarray,
    start: int,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> int:
    ids, lows, highs = rows.ids, rows.lows, rows.highs
    n_out = out_offsets[start]
    for k in range(start, len(keys)):
        key = keys[k]
        if n_out + n > len(out):
            return k
        for first in range(0, n, 256):
            some_lows, some_highs = lows[first : first + 256], highs[first : first + 256]
            size = min(256, n - first)
            n_inside = 0
            for i in range(size):
                n_inside += (some_lows[i] <= key) & (key <= some_highs[i])
            if n_inside:
                for i in range(first, first + size):
                    if lows[i] <= key <= highs[i]:
                        out[n_out] = ids[i]
                        n_out += 1
        out_offsets[k + 1] = n_out
    return len(keys)
