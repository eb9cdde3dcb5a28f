"""The intervals of many clauses, one after the other: a ConjunctionTable without its levels.

    interval k    clause rows[k] (a position, not an id), dimensions[k], lows[k] … highs[k]

`complement` and `to_table` want them by clause, dimension and key, which is the order of a table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.kernels.csr import offsets_of

__all__ = ["MAX_KEY", "ClauseIntervals", "complement", "from_table", "join", "to_table"]

MAX_KEY = np.iinfo(np.int64).max


class ClauseIntervals(NamedTuple):
    """Intervals with the clause and the dimension of each."""

    rows: np.ndarray  # int32
    dimensions: np.ndarray  # int32
    lows: np.ndarray  # int64
    highs: np.ndarray  # int64

    def take(self, chosen: np.ndarray) -> ClauseIntervals:
        """Return some of them, by position or by a mask."""
        return ClauseIntervals(*(a[chosen] for a in self))


def from_table(table: ConjunctionTable) -> ClauseIntervals:
    """Return the intervals of a table."""
    n_intervals = np.diff(table.interval_offsets)
    rows = np.arange(table.n_clauses, dtype=np.int32)
    return ClauseIntervals(
        np.repeat(np.repeat(rows, np.diff(table.clause_offsets)), n_intervals),
        np.repeat(table.dimensions, n_intervals),
        table.lows,
        table.highs,
    )


def join(a: ClauseIntervals, b: ClauseIntervals) -> ClauseIntervals:
    """Those of both, by clause, dimension and key."""
    if len(b.rows) == 0:
        return a
    both = ClauseIntervals(*(np.concatenate(pair) for pair in zip(a, b, strict=True)))
    return both.take(np.lexsort((both.lows, both.dimensions, both.rows)))


def complement(intervals: ClauseIntervals) -> ClauseIntervals:
    """For each predicate the keys that it does not hold for, absence among them."""
    n = len(intervals.rows)
    starts = _starts(intervals)
    n_predicates = int(starts.sum())
    # One more interval per predicate: before its first, between two, after its last.
    before = np.arange(n) + np.cumsum(starts) - 1
    lows = np.zeros(n + n_predicates, np.int64)
    highs = np.full(n + n_predicates, MAX_KEY)
    highs[before] = intervals.lows - 1
    lows[before + 1] = intervals.highs + 1  # above the last key of all it wraps
    is_empty = (lows > highs) | (lows < 0)
    owners = np.repeat(np.arange(n), 1 + starts)
    out = ClauseIntervals(intervals.rows[owners], intervals.dimensions[owners], lows, highs)
    return out.take(~is_empty)


def to_table(clause_ids: np.ndarray, intervals: ClauseIntervals) -> ConjunctionTable:
    """Clauses with these ids; intervals that touch become one."""
    starts = _starts(intervals)
    opens = starts.copy()
    opens[1:] |= intervals.lows[1:] != intervals.highs[:-1] + 1
    closes = np.append(opens[1:], True)[: len(opens)]
    predicates = np.flatnonzero(starts)
    n_before = offsets_of(opens)
    return ConjunctionTable(
        clause_ids,
        np.searchsorted(intervals.rows[predicates], np.arange(len(clause_ids) + 1)),
        intervals.dimensions[predicates],
        n_before[np.append(predicates, len(opens))],
        intervals.lows[opens],
        intervals.highs[closes],
    )


def _starts(intervals: ClauseIntervals) -> np.ndarray:
    """Where a predicate begins."""
    starts = np.ones(len(intervals.rows), bool)
    starts[1:] = np.diff(intervals.rows) != 0
    starts[1:] |= np.diff(intervals.dimensions) != 0
    return starts
