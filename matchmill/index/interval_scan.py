"""Events that allow intervals of keys, for every index: a scan of the clauses themselves.

    spans    of each dimension: first and last interval of the event, or none

An index that can do better has a method `match_intervals`.

Keys do not say which elements a list may have. Where the event names the attribute, some list that
it allows is taken to have what a predicate asks for. Predicates are looked at one by one: those of
a nested clause that are about one dimension may hold for different keys. So candidates with such
clauses are confirmed.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from matchmill.encoding.conjunction_table import (
    ABSENT_KEY,
    DEEPEST_JOIN,
    JOIN_SHIFT,
    NONE,
    ONE_KEY,
    QUANTIFIER_BITS,
    ConjunctionTable,
)
from matchmill.encoding.event_batch import IntervalEvents
from matchmill.index.base import ClauseMatches
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.jit import int64, kernel

__all__ = ["IntervalIndex", "scan_intervals"]


@runtime_checkable
class IntervalIndex(Protocol):
    """An index that matches events of intervals itself."""

    def match_intervals(self, events: IntervalEvents) -> ClauseMatches:
        """Return the clauses that the events can satisfy."""
        ...


def scan_intervals(table: ConjunctionTable, events: IntervalEvents) -> ClauseMatches:
    """Return the clauses of a table that events of intervals can satisfy."""
    spans = np.zeros((max(table.n_dimensions, 1), 2), np.int64)
    found: list[np.ndarray] = []
    holds = np.empty(table.n_clauses, np.bool_)
    for e in range(events.n_events):
        _scan(table, events, e, spans, holds)
        found.append(table.clause_ids[holds])
    offsets = offsets_of(np.array([len(ids) for ids in found], np.int64))
    return ClauseMatches(offsets, np.concatenate([np.empty(0, np.int64), *found]))


@kernel
def _meets(table: ConjunctionTable, p: int, events: IntervalEvents, start: int, stop: int) -> bool:
    """Return whether a predicate has a key in common with some intervals of the event."""
    for k in range(table.interval_offsets[p], table.interval_offsets[p + 1]):
        for own in range(start, stop):
            if events.lows[own] <= table.highs[k] and table.lows[k] <= events.highs[own]:
                return True
    return False


@kernel
def _can_hold(
    table: ConjunctionTable, p: int, events: IntervalEvents, start: int, stop: int
) -> bool:
    """Return whether a predicate holds for some keys that an event allows in these intervals."""
    quantifier = table.quantifiers[p] & QUANTIFIER_BITS if len(table.quantifiers) else ONE_KEY
    if quantifier != ONE_KEY:
        return start < stop or quantifier == NONE
    if start < stop:
        return _meets(table, p, events, start, stop)
    return bool(table.lows[table.interval_offsets[p]] == ABSENT_KEY)


@kernel
def _scan(
    table: ConjunctionTable,
    events: IntervalEvents,
    event: int,
    spans: np.ndarray,
    out_holds: np.ndarray,
) -> None:
    """Find the clauses that hold; spans are empty before and after."""
    first, last = events.offsets[event], events.offsets[event + 1]
    for pair in range(first, last):
        if events.dimensions[pair] < len(spans):
            spans[events.dimensions[pair], 0] = events.interval_offsets[pair]
            spans[events.dimensions[pair], 1] = events.interval_offsets[pair + 1]
    has_lists = len(table.quantifiers) > 0
    for i in range(len(out_holds)):
        holds, deepest = True, DEEPEST_JOIN
        for p in range(table.clause_offsets[i], table.clause_offsets[i + 1]):
            join = int64(table.quantifiers[p]) >> JOIN_SHIFT if has_lists else 0
            if join > deepest:
                continue
            if holds == ((join & 1) == 0):  # else the outcome does not depend on it
                start, stop = spans[table.dimensions[p], 0], spans[table.dimensions[p], 1]
                holds = _can_hold(table, p, events, start, stop)
                deepest = DEEPEST_JOIN
            else:
                deepest = join - 1
        out_holds[i] = holds
    for pair in range(first, last):
        if events.dimensions[pair] < len(spans):
            spans[events.dimensions[pair]] = 0
