"""Find subscriptions that need a second look: costly, useless and repeated ones.

    costly        looked at for many events of a sample
    never         no event can match: nothing is left of the expression
    always        every event matches: a clause without predicates
    duplicates    the same clauses, up to their order

A subscription that is indexed by a superset of what it asks for, be it for some events only, is
neither called always nor duplicate, since its clauses do not tell; what it matches is counted
before confirmation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.engine.equal_clauses import Items, leaders_of, repeated_clauses
from matchmill.engine.subscription_table import (
    EXACT,
    NESTED,
    Id,
    Subscriptions,
)
from matchmill.index.base import Index
from matchmill.index.mixed import parts_of

if TYPE_CHECKING:
    from matchmill.engine.state import Store

__all__ = ["Costly", "Insights", "find_insights", "insights_of"]


_EVENTS_AT_ONCE = 256


_Part: TypeAlias = tuple[Index, ConjunctionTable]


class Costly(NamedTuple):
    """A subscription that the index looks at often."""

    id: Id
    checked_per_event: float  # clauses of it that the index looked at
    matched_per_event: float  # at most 1


class Insights(NamedTuple):
    """Each list has at most so many entries as were asked for; the counts are of all there are."""

    costly: list[Costly]  # the most often looked at first; among equals, the least often matched
    n_never: int
    never: list[Id]
    n_always: int
    always: list[Id]
    n_duplicates: int  # subscriptions that could be spared: all of a group but one
    duplicates: list[list[Id]]  # whole groups, the largest first


@runtime_checkable
class TellsCosts(Protocol):
    """An index that can say how often each of its clauses was looked at."""

    def clause_costs(self, events: EventBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return all clause ids, ascending, how often each was looked at, and how often it held."""
        ...


def insights_of(store: Store, top: int = 10) -> Insights:
    """Look at all subscriptions of an engine; name at most `top` of each kind."""
    state = store.state
    segments = [
        part
        for segment in state.snapshot.segments
        for part in parts_of(segment.built, segment.table)
    ]
    sample = store.sample.batch() if store.sample.n_sampled else None
    return find_insights(segments, state.subscriptions, sample, top)


def find_insights(
    segments: Iterable[_Part],
    subscriptions: Subscriptions,
    sample: EventBatch | None,
    top: int = 10,
) -> Insights:
    """Look at all subscriptions.

    `segments` are the indexes and the tables they were built from, with removed clauses, which
    are left out here.

    Of an index that does not tell what it looks at (a small fresh one, for example), only what held
    counts as looked at. Without a sample nothing is costly.
    """
    rows = _Rows(subscriptions)
    parts = list(segments)
    always = rows.is_exact & rows.is_live & _has_empty_clause(parts, rows)
    costly: list[Costly] = []
    if sample is not None and sample.n_events:
        checked, matched = _counts(parts, rows, sample)
        costly = _costliest(rows, checked / sample.n_events, matched / sample.n_events, top)
    never = np.flatnonzero(rows.is_live & (rows.n_clauses == 0))
    always_rows = np.flatnonzero(always)
    groups = _groups_of_equals([table for _, table in parts], rows)
    largest = [groups.data[a:b] for a, b in pairwise(groups.offsets[: top + 1])]
    return Insights(
        costly,
        len(never),
        rows.ids(never[:top]),
        len(always_rows),
        rows.ids(always_rows[:top]),
        len(groups.data) - (len(groups.offsets) - 1),
        [rows.ids(group) for group in largest],
    )


class _Rows:
    """All rows as they are at this moment; writers may go on meanwhile."""

    def __init__(self, subscriptions: Subscriptions) -> None:
        self._subscriptions = subscriptions
        current = subscriptions.row_of_number.array
        n_rows = int(current.max(initial=-1)) + 1
        self.n_rows = n_rows
        self.is_live = np.zeros(n_rows, bool)
        self.is_live[current[current >= 0]] = True
        self._counted_row = np.append(np.where(self.is_live, np.arange(n_rows), n_rows), n_rows)
        self.n_clauses = np.diff(subscriptions.first_clause.array[: n_rows + 1])
        self.is_exact = np.isin(subscriptions.is_exact.array[:n_rows], (EXACT, NESTED))

    def of_clauses(self, clause_ids: np.ndarray) -> np.ndarray:
        """Return the row of each clause; n_rows for a clause that does not count."""
        rows = self._subscriptions.row_of_clause.array[clause_ids]
        return np.asarray(self._counted_row[np.minimum(rows, self.n_rows)])

    def total(self, rows: np.ndarray, amounts: np.ndarray | None = None) -> np.ndarray:
        """Count how often each row occurs, or add up its amounts."""
        return np.bincount(rows, amounts, self.n_rows + 1)[: self.n_rows]

    def ids(self, rows: np.ndarray) -> list[Id]:
        numbers = self._subscriptions.number_of_row.array[rows]
        ids: list[Id] = self._subscriptions.ids_of_numbers(numbers).to_pylist()
        return ids


def _has_empty_clause(parts: Sequence[_Part], rows: _Rows) -> np.ndarray:
    out = np.zeros(rows.n_rows + 1, bool)
    for _, table in parts:
        empty = np.flatnonzero(np.diff(table.clause_offsets) == 0)
        out[rows.of_clauses(table.clause_ids[empty])] = True
    return out[: rows.n_rows]


# -- costs ----------------------------------------------------------------------------------------


def _counts(
    parts: Sequence[_Part], rows: _Rows, sample: EventBatch
) -> tuple[np.ndarray, np.ndarray]:
    """Return, per row, how often its clauses were looked at, and how many events matched it."""
    checked = np.zeros(rows.n_rows)
    matched = np.zeros(rows.n_rows)
    for index, _ in parts:
        if isinstance(index, TellsCosts):
            clause_ids, amounts, _ = index.clause_costs(sample)
            checked += rows.total(rows.of_clauses(clause_ids), amounts)
    has_many = np.append(rows.n_clauses > 1, False)
    for start in range(0, sample.n_events, _EVENTS_AT_ONCE):
        events = sample.slice(start, min(sample.n_events, start + _EVENTS_AT_ONCE))
        places = [np.empty(0, np.int64)]  # event * n_rows + row, where several clauses may hold
        for index, _ in parts:
            matches = index.match_batch(events)
            owners = rows.of_clauses(matches.clause_ids)
            if not isinstance(index, TellsCosts):
                checked += rows.total(owners)
            many = has_many[owners]
            matched += rows.total(owners[~many])
            event = np.repeat(np.arange(events.n_events), np.diff(matches.offsets))
            places.append(event[many] * rows.n_rows + owners[many])
        matched += rows.total(np.unique(np.concatenate(places)) % rows.n_rows)
    return checked, matched


def _costliest(rows: _Rows, checked: np.ndarray, matched: np.ndarray, top: int) -> list[Costly]:
    order = np.lexsort((matched, -checked))[:top]
    order = order[checked[order] > 0]
    return [
        Costly(*one)
        for one in zip(
            rows.ids(order), checked[order].tolist(), matched[order].tolist(), strict=True
        )
    ]


# -- duplicates -----------------------------------------------------------------------------------


def _groups_of_equals(tables: Sequence[ConjunctionTable], rows: _Rows) -> Items:
    """Return groups of at least two rows with the same clauses, the largest first."""
    clause_ids, kinds = repeated_clauses(tables)
    owners = rows.of_clauses(clause_ids)
    # A row with a clause that nobody else has is like no other.
    is_suspect = rows.is_live & rows.is_exact & (rows.n_clauses > 0)
    is_suspect &= rows.total(owners) == rows.n_clauses
    taken = np.append(is_suspect, False)[owners]
    owners, kinds = owners[taken], kinds[taken]
    order = np.lexsort((kinds, owners))
    owners, kinds = owners[order], kinds[order]
    # A set: a clause that a row has twice counts once.
    is_new = np.append(True, (owners[1:] != owners[:-1]) | (kinds[1:] != kinds[:-1]))[: len(kinds)]
    owners, kinds = owners[is_new], kinds[is_new]
    suspects = np.flatnonzero(is_suspect)
    leaders = leaders_of(Items(np.searchsorted(owners, np.append(suspects, rows.n_rows)), kinds))
    sizes = np.bincount(leaders, minlength=len(leaders))
    found = np.flatnonzero(sizes[leaders] > 1)
    leaders = leaders[found]
    order = np.lexsort((leaders, -sizes[leaders]))  # stable: rows of a group stay in order
    group_sizes = np.sort(sizes[sizes > 1])[::-1]
    return Items(
        np.concatenate((np.zeros(1, np.int64), np.cumsum(group_sizes))), suspects[found[order]]
    )
