"""Updates around any index: immutable segments, tombstones, merging.

    snapshot    (segment, segment, …, fresh)    oldest first; replaced as a whole, so that a reader
                                                keeps the one it took
    segment     built    an index, built once from the table
                table    its clauses, ascending by id (for merging and saving)
                dead     its deleted clauses
    fresh       the newest clauses, so few that they are scanned

A full fresh segment is built into the real index, together with the small segments before it: one
build of a few milliseconds for many insertions. Beyond that, a segment is merged with all newer
ones once they have grown to a `merge_factor`-th of it, so there are only as many segments as tiers,
and a clause is built again about `merge_factor` times in each. A segment with a quarter deleted
is built again without them.

The large merges are planned and finished by the writer, but built outside of its lock:

    merge = plan()  →  built = build(merge)  →  finish(merge, built)

Deletions that come in between are noted in the merge, and insertions go elsewhere. A relabelling
ends it: `finish` then says False, and the next plan starts from the new labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from matchmill.encoding.clause_encoder import relabel_table
from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.cut_points import Relabelling
from matchmill.encoding.event_batch import EventBatch, IntervalEvents
from matchmill.errors import InputError
from matchmill.index.base import ClauseMatches, Index, IndexStats, Statistics
from matchmill.index.fresh_scan import FreshScan
from matchmill.index.joined_matches import joined_matches
from matchmill.index.live_clauses import by_id, live_clauses, position_of
from matchmill.index.mixed import build_index, match_intervals
from matchmill.index.tombstones import NO_TOMBSTONES, Tombstones

__all__ = ["Merge", "Segment", "Segmented", "Snapshot"]

_NO_IDS = np.empty(0, np.int64)
_SMALL_TIERS = 4  # a build costs as much as some thousand clauses in it, so the first tier is wide
_MOST_DEAD = 0.25


class Segment(NamedTuple):
    """Some clauses, the index of them, and those that were deleted."""

    built: Index
    table: ConjunctionTable
    dead: Tombstones

    @property
    def n_live(self) -> int:
        """The number of clauses that were not deleted."""
        return self.table.n_clauses - self.dead.n_dead

    @property
    def is_fresh(self) -> bool:
        """Whether the clauses are scanned, because they are so few and new."""
        return isinstance(self.built, FreshScan)

    def with_deleted(self, ids: np.ndarray) -> Segment:
        """Return the same segment with some of its clauses deleted."""
        own = ids[position_of(self.table.clause_ids, ids) >= 0]
        own = own[~self.dead.has(own)]
        if len(own) == 0:
            return self
        return self._replace(dead=self.dead.with_ids(own, self.table.clause_ids))


class Snapshot(NamedTuple):
    """All segments at one moment."""

    segments: tuple[Segment, ...]

    @property
    def n_clauses(self) -> int:
        """The number of clauses that were not deleted."""
        return sum(segment.n_live for segment in self.segments)

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Return the clauses that hold for each event."""
        parts = (segment.built.match_batch(events) for segment in self.segments)
        return self._live(parts, events.n_events)

    def match_intervals(self, events: IntervalEvents) -> ClauseMatches:
        """Return the clauses that events which allow intervals of keys can satisfy."""
        parts = (match_intervals(s.built, s.table, events) for s in self.segments)
        return self._live(parts, events.n_events)

    def _live(self, parts: Iterable[ClauseMatches], n_events: int) -> ClauseMatches:
        """Join the matches of all segments, without deleted clauses."""
        found: ClauseMatches | None = None
        for segment, matches in zip(self.segments, parts, strict=True):
            if segment.dead.n_dead:
                matches = segment.dead.without_dead(matches)
            if len(matches.clause_ids):
                found = matches if found is None else joined_matches(found, matches)
        if found is None:
            return ClauseMatches(np.zeros(n_events + 1, np.int64), _NO_IDS)
        return found


class Merge:
    """Segments that are being merged into one."""

    def __init__(self, segments: tuple[Segment, ...]) -> None:
        self.segments = segments
        self.deleted: list[np.ndarray] = []  # since it was planned
        self.n_taken = 0  # clauses of the one segment that changes in place (`in_place.py`)

    def has(self, segment: Segment) -> bool:
        """Return whether a segment is part of this merge."""
        return any(segment.built is own.built for own in self.segments)


class Segmented:
    """Insert, delete and match; any static index inside. One writer at a time."""

    def __init__(
        self,
        index_class: type[Index],
        *,
        fresh_clauses: int = 128,
        merge_factor: int = 16,
        segments: Iterable[Segment] = (),
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.index_class = index_class
        self.statistics: Statistics | None = None  # what every build is told of the events
        self.snapshot = Snapshot(tuple(segments))
        self._fresh_clauses = fresh_clauses
        self._merge_factor = merge_factor
        self._small = fresh_clauses * merge_factor * _SMALL_TIERS
        self._options = dict(options or {})
        self._running: Merge | None = None

    # reading

    @property
    def options(self) -> dict[str, Any]:
        """The options that indexes are built with."""
        return self._options

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Return the clauses that hold for each event."""
        return self.snapshot.match_batch(events)

    def stats(self) -> list[IndexStats]:
        """Return the figures of each segment."""
        return [segment.built.stats() for segment in self.snapshot.segments]

    # writing

    def insert(self, table: ConjunctionTable) -> None:
        """Add clauses, and do all merges that are due."""
        self.apply(table, _NO_IDS)
        self.settle()

    def delete(self, clause_ids: np.ndarray) -> None:
        """Delete clauses, and do all merges that are due."""
        self.apply(None, clause_ids)
        self.settle()

    def apply(self, table: ConjunctionTable | None, deleted_ids: np.ndarray) -> None:
        """Delete and insert in one step: a reader sees both or neither.

        Large merges are left to whoever asks for a `plan`.
        """
        segments = list(self.snapshot.segments)
        if len(deleted_ids):
            segments = self._with_deleted(segments, np.unique(deleted_ids))
        if table is not None and table.n_clauses:
            segments = self._with_inserted(segments, by_id(table))
        self.snapshot = Snapshot(tuple(segments))
        if len(deleted_ids) and self._running is not None:
            self._running.deleted.append(deleted_ids)

    def relabel(self, relabellings: dict[int, list[Relabelling]]) -> None:
        """Bring all clauses to new labels."""
        changed = np.fromiter(relabellings, np.int32, len(relabellings))
        segments = list(self.snapshot.segments)
        for n, segment in enumerate(segments):
            if np.isin(segment.table.dimensions, changed).any():
                table = relabel_table(segment.table, relabellings)
                built = _fresh(table) if segment.is_fresh else self.built(table, self.statistics)
                segments[n] = built._replace(dead=segment.dead)
        self.restore(Snapshot(tuple(segments)))

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from another snapshot; a merge that is under way is given up."""
        self.snapshot = snapshot
        self._running = None

    def after_fork(self) -> None:
        """In a forked child: nobody finishes a merge that was under way."""
        self.restore(self.snapshot)

    def built(self, table: ConjunctionTable, statistics: Statistics | None) -> Segment:
        """Return a new segment of the real index, built with some statistics of events."""
        index = build_index(self.index_class, table, statistics, **self._options)
        return Segment(index, table, NO_TOMBSTONES)

    def without(self, segment: Segment, ids: np.ndarray) -> Segment:
        """Return a segment with some of its clauses deleted."""
        return segment.with_deleted(ids)

    def with_table(
        self, segments: list[Segment], table: ConjunctionTable, statistics: Statistics | None
    ) -> list[Segment]:
        """Return segments that nobody else has yet, with more clauses."""
        return [*segments, self.built(table, statistics)]

    def frozen(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot whose arrays do not change any more, to be saved."""
        return snapshot

    def _with_deleted(self, segments: list[Segment], ids: np.ndarray) -> list[Segment]:
        n_found = 0
        out: list[Segment] = []
        for before in segments:
            segment = before.with_deleted(ids)
            n_found += before.n_live - segment.n_live
            if segment is not before and not self._is_merging(segment):
                if segment.n_live == 0:
                    continue
                if segment.is_fresh:
                    segment = _fresh(live_clauses([(segment.table, segment.dead)]))
            out.append(segment)
        if n_found != len(ids):
            raise InputError(f"{len(ids) - n_found} of these clauses are not in the index")
        return out

    def _with_inserted(self, segments: list[Segment], table: ConjunctionTable) -> list[Segment]:
        parts = [(table, NO_TOMBSTONES)]
        if segments and segments[-1].is_fresh and not self._is_merging(segments[-1]):
            parts.insert(0, segments.pop()[1:])
        table = live_clauses(parts)
        if table.n_clauses < self._fresh_clauses:
            return [*segments, _fresh(table)]
        parts = [(table, NO_TOMBSTONES)]
        while segments and segments[-1].n_live <= self._small:
            if self._is_merging(segments[-1]):
                break
            parts.insert(0, segments.pop()[1:])
        return [*segments, self.built(live_clauses(parts), self.statistics)]

    def _is_merging(self, segment: Segment) -> bool:
        return self._running is not None and self._running.has(segment)

    # merging

    def plan(self) -> Merge | None:
        """Return the next merge, which `finish` has to end; None if none is due or one runs."""
        chosen = self._due() if self._running is None else ()
        return self.begin(chosen) if chosen else None

    @property
    def is_merge_due(self) -> bool:
        """Whether `plan` would return a merge."""
        return self._running is None and bool(self._due())

    def _due(self) -> tuple[Segment, ...]:
        settled = self.snapshot.segments
        if settled and settled[-1].is_fresh:
            settled = settled[:-1]
        return self._crowded(settled) or self._decayed(settled)

    def begin(self, segments: tuple[Segment, ...]) -> Merge:
        """Reserve segments: until the merge ends they take deletions only."""
        self._running = Merge(segments)
        return self._running

    def new_parts(self, merge: Merge) -> tuple[Segment, ...]:
        """Return the clauses that came since a merge has taken others; it has them from now on.

        They only get deletions until the merge ends.
        """
        new = tuple(segment for segment in self.snapshot.segments if not merge.has(segment))
        merge.segments += new
        return new

    def build(self, merge: Merge) -> Segment:
        """Build the segments of a merge as one. This needs no lock: nothing here changes."""
        return self.built(live_clauses((s.table, s.dead) for s in merge.segments), self.statistics)

    def finish(self, merge: Merge, merged: Segment) -> bool:
        """Put the merged segment in the place of its parts, if it still fits."""
        if self._running is not merge:
            return False
        if merge.deleted:
            merged = merged.with_deleted(np.unique(np.concatenate(merge.deleted)))
        segments: list[Segment] = []
        for segment in self.snapshot.segments:
            if not merge.has(segment):
                segments.append(segment)
            elif segment.built is merge.segments[0].built and merged.n_live:
                segments.append(merged)
        self.restore(Snapshot(tuple(segments)))
        return True

    def replace(self, merge: Merge, segments: tuple[Segment, ...]) -> bool:
        """Put other segments in the place of all, if the merge has them all and still fits."""
        if self._running is not merge:
            return False
        self.restore(Snapshot(segments))
        return True

    def abandon(self, merge: Merge) -> None:
        """End a merge that cannot be finished; all stays as it is."""
        if self._running is merge:
            self._running = None

    def settle(self) -> None:
        """Do all merges that are due, here and now."""
        while (merge := self.plan()) is not None:
            try:
                self.finish(merge, self.build(merge))
            finally:
                self.abandon(merge)

    def _crowded(self, settled: tuple[Segment, ...]) -> tuple[Segment, ...]:
        """Return the segments from the oldest one that newer ones have caught up with."""
        first, n_newer = len(settled), 0
        for n in reversed(range(len(settled))):
            n_live = settled[n].n_live
            if n_newer and n_live <= max(self._small, self._merge_factor * n_newer):
                first = n
            n_newer += n_live
        return settled[first:]

    def _decayed(self, settled: tuple[Segment, ...]) -> tuple[Segment, ...]:
        for segment in settled:
            if segment.dead.n_dead > _MOST_DEAD * segment.table.n_clauses:
                return (segment,)
        return ()


def _fresh(table: ConjunctionTable) -> Segment:
    return Segment(FreshScan(table), table, NO_TOMBSTONES)
