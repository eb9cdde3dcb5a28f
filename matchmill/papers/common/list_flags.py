"""Multi-valued dimensions as flags, for tables that an index has to see as a whole.

    some key on tags is in {a, b}   ──►   flag 12 is present
    no key on tags is in {a}        ──►   flag 13 is absent

Each distinct set of a multi-valued dimension becomes a dimension by itself, after all others. The
index of lists finds the flags of an event: it has one clause per flag.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import (
    ABSENT_KEY,
    NO_QUANTIFIERS,
    NONE,
    ONE_KEY,
    SOME,
    ConjunctionTable,
)
from matchmill.encoding.dimensions import TRUE_KEY
from matchmill.encoding.event_batch import EventBatch, from_pairs
from matchmill.index.distinct_predicates import find_distinct
from matchmill.index.lists import ListIndex
from matchmill.kernels.csr import offsets_of, take_ranges

__all__ = ["ListFlags"]


class ListFlags(NamedTuple):
    """The sets of all multi-valued dimensions of a table."""

    table: ConjunctionTable  # the same table with flags
    finder: ListIndex | None  # a clause per flag, whose id is its dimension

    @classmethod
    def of(cls, table: ConjunctionTable, n_dimensions: int) -> ListFlags:
        """Return the flags of a table; the first of them is the dimension `n_dimensions`."""
        if not table.has_lists:
            return cls(table, None)
        distinct = find_distinct(table)
        is_list = table.quantifiers != ONE_KEY
        used, flags = np.unique(distinct.ids[is_list], return_inverse=True)
        interval_offsets, intervals = take_ranges(table.interval_offsets, distinct.firsts()[used])
        flag_table = ConjunctionTable(
            np.arange(n_dimensions, n_dimensions + len(used)),
            np.arange(len(used) + 1),
            distinct.dimensions[used],
            interval_offsets,
            table.lows[intervals],
            table.highs[intervals],
            np.full(len(used), SOME, np.uint8),
        )
        return cls(_with_flags(table, is_list, n_dimensions + flags), ListIndex.build(flag_table))

    def events(self, events: EventBatch) -> EventBatch:
        """Return events with their flags."""
        if self.finder is None:
            return events
        found = self.finder.match_batch(events)
        rows = np.arange(events.n_events)
        return from_pairs(
            events.n_events,
            [np.repeat(rows, np.diff(events.offsets)), np.repeat(rows, np.diff(found.offsets))],
            [events.dimensions, found.clause_ids.astype(np.int32)],
            [events.keys, np.full(len(found.clause_ids), TRUE_KEY, np.int64)],
        )


def _with_flags(
    table: ConjunctionTable, is_list: np.ndarray, flags: np.ndarray
) -> ConjunctionTable:
    """Return a table with flags in the place of multi-valued dimensions."""
    counts = np.where(is_list, 1, np.diff(table.interval_offsets))
    dimensions = table.dimensions.copy()
    dimensions[is_list] = flags
    offsets = offsets_of(counts)
    lows, highs = np.empty((2, int(offsets[-1])), np.int64)
    kept = np.flatnonzero(~is_list)
    _, at = take_ranges(offsets, kept)
    _, before = take_ranges(table.interval_offsets, kept)
    lows[at], highs[at] = table.lows[before], table.highs[before]
    key = np.where(table.quantifiers[is_list] == NONE, ABSENT_KEY, TRUE_KEY)
    lows[offsets[:-1][is_list]] = key
    highs[offsets[:-1][is_list]] = key
    clauses = np.repeat(np.arange(table.n_clauses), np.diff(table.clause_offsets))
    order = np.lexsort((dimensions, clauses))
    interval_offsets, intervals = take_ranges(offsets, order)
    return ConjunctionTable(
        table.clause_ids,
        table.clause_offsets,
        dimensions[order],
        interval_offsets,
        lows[intervals],
        highs[intervals],
        NO_QUANTIFIERS,
    )
