"""Clauses as rows of a relation: what every form of matching in SQL stores.

A row is one interval of one predicate:

    sid, attr, low, high    the clause, the dimension, and the keys low … high
    sign                    1: the predicate asks for such a key; -1: it forbids one
    opens                   1 for the first interval of a predicate that asks, else 0
    cnt                     how many predicates of the clause ask: the sum of its `opens`
    n_rest, is_pivot        rows outside the clause's pivot; 1 for rows of the pivot

A predicate that accepts absence would be true without any pair of the event to join with, so it is
stored as what it forbids: its complement, with sign -1. The intervals of a predicate do not meet
and an event has one key per dimension, so at most one row of a predicate joins with an event, and

    the clause holds  ⟺  the signs of all rows that join sum to cnt

A clause in which no predicate asks would join with nothing. It asks for the pair (ALWAYS, 1), which
every event is given.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ABSENT_KEY, ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.papers.common.clause_intervals import ClauseIntervals, complement, from_table
from matchmill.papers.two_stage.sql.selectivity import KeySample, interval_shares

__all__ = ["ALWAYS", "ClauseRows", "clause_rows", "event_pairs"]

ALWAYS = -1  # a dimension of every event, and of no table
_PRESENT = 1  # its key


class ClauseRows(NamedTuple):
    """Clauses as relations."""

    sid: np.ndarray
    attr: np.ndarray
    low: np.ndarray
    high: np.ndarray
    sign: np.ndarray
    opens: np.ndarray
    cnt: np.ndarray
    n_rest: np.ndarray
    is_pivot: np.ndarray


def clause_rows(table: ConjunctionTable, sample: KeySample | None) -> ClauseRows:
    """Return the rows of all clauses.

    The pivots are chosen by a sample of keys, if there is one.
    """
    n_intervals = np.diff(table.interval_offsets)
    clauses = np.repeat(np.arange(table.n_clauses), np.diff(table.clause_offsets))
    is_empty = n_intervals == 0
    forbids = np.zeros(table.n_predicates, bool)
    forbids[~is_empty] = table.lows[table.interval_offsets[:-1][~is_empty]] == ABSENT_KEY
    n_asking = np.bincount(clauses[~forbids], minlength=table.n_clauses)

    intervals = from_table(table)
    predicates = np.repeat(np.arange(table.n_predicates), n_intervals)
    of_forbidding = forbids[predicates]
    asked = intervals.take(~of_forbidding)
    forbidden = complement(intervals.take(of_forbidding))
    always = _constant(np.flatnonzero(n_asking == 0), ALWAYS, _PRESENT, _PRESENT)
    # A predicate without intervals never holds: it asks for a key between 1 and 0.
    never = _constant(clauses[is_empty], table.dimensions[is_empty], 1, 0)

    joined = [np.concatenate(a) for a in zip(asked, never, always, forbidden, strict=True)]
    rows, attr, low, high = (a.astype(np.int64) for a in joined)
    n_ask = len(rows) - len(forbidden.rows)
    sign = np.where(np.arange(len(rows)) < n_ask, 1, -1)
    opens = (sign > 0).astype(np.int64)
    opens[1 : len(asked.rows)] &= np.diff(predicates[~of_forbidding]) != 0

    pivots = _pivots(rows[:n_ask], attr[:n_ask], low[:n_ask], high[:n_ask], sample)
    is_pivot = ((sign > 0) & (attr == pivots[rows])).astype(np.int64)
    n_rest = np.bincount(rows[is_pivot == 0], minlength=table.n_clauses)
    cnt = np.maximum(n_asking, 1)
    order = np.lexsort((low, attr, rows))  # the same clauses always give the same rows
    everything = ClauseRows(
        table.clause_ids[rows], attr, low, high, sign, opens, cnt[rows], n_rest[rows], is_pivot
    )
    return ClauseRows(*(a[order].astype(np.int64, copy=False) for a in everything))


def _constant(
    rows: np.ndarray, dimensions: np.ndarray | int, low: int, high: int
) -> ClauseIntervals:
    def full(value: np.ndarray | int) -> np.ndarray:
        return np.full(len(rows), value, np.int64)

    return ClauseIntervals(rows, full(dimensions), full(low), full(high))


def _pivots(
    rows: np.ndarray,
    attr: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    sample: KeySample | None,
) -> np.ndarray:
    """Return the dimension of each clause that the fewest events satisfy.

    Every clause asks for one.
    """
    order = np.lexsort((attr, rows))
    rows, attr, low, high = rows[order], attr[order], low[order], high[order]
    starts = np.flatnonzero(
        np.concatenate(([True], (rows[1:] != rows[:-1]) | (attr[1:] != attr[:-1])))[: len(rows)]
    )
    if sample is None:
        shares = np.zeros(len(starts))
    else:
        by_interval = interval_shares(sample, attr, low, high)
        shares = np.add.reduceat(by_interval, starts) if len(starts) else by_interval
    rows, attr = rows[starts], attr[starts]
    best = np.lexsort((shares, rows))
    _, first = np.unique(rows[best], return_index=True)
    return attr[best][first]


def event_pairs(events: EventBatch) -> dict[str, np.ndarray]:
    """Return the relation (event, attr, val); a pair with the key of absence is no pair."""
    event = np.repeat(np.arange(events.n_events), np.diff(events.offsets))
    first, last = int(events.offsets[0]), int(events.offsets[-1])
    attr, val = events.dimensions[first:last].astype(np.int64), events.keys[first:last]
    present = val != ABSENT_KEY
    every = np.arange(events.n_events)
    return {
        "event": np.concatenate((event[present], every)),
        "attr": np.concatenate((attr[present], np.full_like(every, ALWAYS))),
        "val": np.concatenate((val[present], np.full_like(every, _PRESENT))),
    }
