"""Counting, in its list form: Yan and Garcia-Molina's algorithm, which others compare with.

For each pair of an event the satisfied predicates are found, for each of those the clauses that
contain it, and a clause that has been found as often as it has predicates matches. How that is
laid out stands in `key_postings.py` and `counting_part.py`; here is what changes. The forms with a
matrix in the place of lists are `counting_bytes.py` and `counting_bits.py`.

    parts    each at least twice as large as the next: a new one is merged with those before it
             until that is so, and a clause takes part in a merge O(log n) times
    fresh    the clauses inserted last, too few to be a part; scanned

The clauses of a part are read back from its postings for a merge, so nothing is kept twice.
Deletion raises what a clause needs; a part a quarter of which is deleted is built again. A change
replaces the whole state, so that a reader keeps the one it took.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import (
    ConjunctionTable,
    concatenate,
    empty_table,
    take_clauses,
)
from matchmill.encoding.event_batch import EventBatch
from matchmill.errors import InputError
from matchmill.index.base import ClauseMatches, IndexStats, Statistics
from matchmill.index.fresh_scan import FreshScan
from matchmill.papers.baselines.counting_part import CountingPart
from matchmill.papers.common.id_table import check_new

__all__ = ["Counting"]

_FRESH_CLAUSES = 1024


class _State(NamedTuple):
    parts: tuple[CountingPart, ...]
    fresh: ConjunctionTable

    def arrays(self) -> dict[str, np.ndarray]:
        named = {f"fresh_{name}": a for name, a in self.fresh._asdict().items()}
        for n, part in enumerate(self.parts):
            named |= {f"part{n}_{name}": a for name, a in part.arrays().items()}
        return named


class Counting:
    """Satisfied predicates counted per clause. One writer at a time, any number of readers."""

    name: ClassVar[str] = "counting"

    def __init__(
        self, state: _State, build_seconds: float = 0.0, fresh_clauses: int = _FRESH_CLAUSES
    ) -> None:
        self._state = state
        self._build_seconds = build_seconds
        self._fresh_clauses = fresh_clauses
        self._candidates = 0

    @classmethod
    def build(
        cls,
        table: ConjunctionTable,
        statistics: Statistics | None = None,
        *,
        fresh_clauses: int = _FRESH_CLAUSES,
        **options: Any,
    ) -> Counting:
        """`fresh_clauses` are gathered before they are built into a part."""
        started = time.perf_counter()
        state = _State(_merged([table]), empty_table())
        return cls(state, time.perf_counter() - started, fresh_clauses)

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Match a batch of events."""
        state = self._state
        found = []
        for part in state.parts:
            matches, n_counted = part.match_batch(events)
            self._candidates += n_counted
            found.append(matches)
        if state.fresh.n_clauses or not found:
            found.append(FreshScan(state.fresh).match_batch(events))
            self._candidates += events.n_events * state.fresh.n_clauses
        return _joined(found)

    def insert(self, table: ConjunctionTable) -> None:
        """Insert the clauses of a table."""
        parts, fresh = self._state
        ids = np.sort(table.clause_ids)
        is_known = np.isin(ids, fresh.clause_ids)
        for part in parts:
            is_known |= part.has(ids)
        check_new(np.where(is_known, 0, -1), ids)
        fresh = concatenate([fresh, table])
        if fresh.n_clauses >= self._fresh_clauses:
            parts, fresh = _merged([*parts, fresh]), empty_table()
        self._state = _State(parts, fresh)

    def delete(self, clause_ids: np.ndarray) -> None:
        """Delete clauses by their ids."""
        parts, fresh = self._state
        ids = np.unique(clause_ids)
        is_deleted = np.isin(fresh.clause_ids, ids)
        rows = [part.rows_of(ids) for part in parts]
        n_missing = len(ids) - int(is_deleted.sum()) - sum(map(len, rows))
        if n_missing:
            raise InputError(
                f"{n_missing} of these {len(ids)} clauses are not in the index; none was deleted"
            )
        parts = tuple(
            part.without(those) if len(those) else part
            for part, those in zip(parts, rows, strict=True)
        )
        if any(_is_worn(part) for part in parts):
            parts = _merged(parts)
        if is_deleted.any():
            fresh = take_clauses(fresh, np.flatnonzero(~is_deleted))
        self._state = _State(parts, fresh)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all that `from_arrays` needs."""
        return self._state.arrays()

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Counting:
        """Make the same again from its arrays."""
        parts: list[CountingPart] = []
        while named := _named(arrays, f"part{len(parts)}_"):
            parts.append(CountingPart.from_arrays(named))
        return cls(_State(tuple(parts), ConjunctionTable(**_named(arrays, "fresh_"))))

    def stats(self) -> IndexStats:
        """Return the figures of this index."""
        state = self._state
        n_clauses = sum(part.n_live for part in state.parts) + state.fresh.n_clauses
        n_bytes = sum(a.nbytes for a in state.arrays().values())
        return IndexStats(n_clauses, n_bytes, self._build_seconds, self._candidates)


def _named(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}


# -- merging --------------------------------------------------------------------------------------

Clauses = CountingPart | ConjunctionTable


def _merged(sources: Sequence[Clauses]) -> tuple[CountingPart, ...]:
    """Parts, each at least twice as large as the next. What is a table yet is built."""
    groups: list[list[Clauses]] = []
    for source in sources:
        group = [source]
        while groups and _n_live(groups[-1]) < 2 * _n_live(group):
            group = groups.pop() + group
        groups.append(group)
    return tuple(_built(group) for group in groups if _n_live(group))


def _built(group: list[Clauses]) -> CountingPart:
    (first, *others) = group
    if not others and isinstance(first, CountingPart) and not _is_worn(first):
        return first
    table = concatenate([s.live_table() if isinstance(s, CountingPart) else s for s in group])
    if (np.diff(table.clause_ids) <= 0).any():
        table = take_clauses(table, np.argsort(table.clause_ids, kind="stable"))
    return CountingPart.build(table)


def _n_live(group: Sequence[Clauses]) -> int:
    return sum(s.n_live if isinstance(s, CountingPart) else s.n_clauses for s in group)


def _is_worn(part: CountingPart) -> bool:
    return part.n_dead * 3 > part.n_live


def _joined(found: list[ClauseMatches]) -> ClauseMatches:
    if len(found) == 1:
        return found[0]
    offsets = np.sum([matches.offsets for matches in found], axis=0)
    clause_ids = np.empty(offsets[-1], np.int64)
    starts = offsets[:-1].copy()
    for matches in found:
        counts = np.diff(matches.offsets)
        shifts = np.repeat(starts - matches.offsets[:-1], counts)
        clause_ids[np.arange(len(shifts)) + shifts] = matches.clause_ids
        starts += counts
    return ClauseMatches(offsets, clause_ids)
