"""Updates around any index: immutable segments, tombstones, merging.

    snapshot    (segment, segment, …)       replaced as a whole: a reader keeps the one it took
    segment     built      an index, built once from the table
                table      its clauses, ascending by id (for merging and saving)
                dead_ids   sorted ids of clauses that no longer count

New clauses gather in one small *fresh* segment that is scanned. When it is full it is built into
the real index, and when there are enough segments of one size they are merged into one, as Lucene
does. A segment that is mostly dead is rebuilt. All of that is the writer's work; no reader waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from matchmill._jit import kernel
from matchmill.encoding.clause_encoder import relabel_table
from matchmill.encoding.conjunction_table import ConjunctionTable, concatenate, take_clauses
from matchmill.encoding.cuts import Relabelling
from matchmill.encoding.event_batch import EventBatch
from matchmill.errors import InputError
from matchmill.indexes.base import Index, IndexStats, Matches
from matchmill.indexes.fresh_scan import FreshScan
from matchmill.indexes.registry import index_class

__all__ = ["Segment", "Segmented", "Snapshot", "segments_from_arrays", "segments_to_arrays"]

_NO_IDS = np.empty(0, np.int64)


class Segment(NamedTuple):
    built: Index
    table: ConjunctionTable
    dead_ids: np.ndarray

    @property
    def n_live(self) -> int:
        return self.table.n_clauses - len(self.dead_ids)

    def live_table(self) -> ConjunctionTable:
        """The clauses that still count."""
        if len(self.dead_ids) == 0:
            return self.table
        dead = np.isin(self.table.clause_ids, self.dead_ids)
        return take_clauses(self.table, np.flatnonzero(~dead))

    def match_batch(self, events: EventBatch) -> Matches:
        matches = self.built.match_batch(events)
        return _without(matches, self.dead_ids) if len(self.dead_ids) else matches


class Snapshot(NamedTuple):
    segments: tuple[Segment, ...]

    @property
    def n_clauses(self) -> int:
        return sum(segment.n_live for segment in self.segments)

    def match_batch(self, events: EventBatch) -> Matches:
        if not self.segments:
            return Matches(np.zeros(events.n_events + 1, np.int64), _NO_IDS)
        matches = self.segments[0].match_batch(events)
        for segment in self.segments[1:]:
            matches = _joined(matches, segment.match_batch(events))
        return matches


class Segmented:
    """Insert, delete and match; any static index inside. One writer at a time."""

    def __init__(
        self,
        index_class: type[Index],
        *,
        fresh_clauses: int = 4096,
        merge_factor: int = 8,
        segments: Iterable[Segment] = (),
        **options: Any,
    ) -> None:
        self._index_class = index_class
        self._fresh_clauses = fresh_clauses
        self._merge_factor = merge_factor
        self._options = options
        self.snapshot = Snapshot(tuple(segments))

    # reading

    def match_batch(self, events: EventBatch) -> Matches:
        return self.snapshot.match_batch(events)

    def stats(self) -> list[IndexStats]:
        """The figures of each segment."""
        return [segment.built.stats() for segment in self.snapshot.segments]

    # writing

    def insert(self, table: ConjunctionTable) -> None:
        self.apply(table, _NO_IDS)

    def delete(self, clause_ids: np.ndarray) -> None:
        self.apply(None, clause_ids)

    def apply(self, table: ConjunctionTable | None, deleted_ids: np.ndarray) -> None:
        """Delete and insert in one step: a reader sees both or neither."""
        segments = list(self.snapshot.segments)
        if len(deleted_ids):
            segments = self._with_deleted(segments, np.unique(deleted_ids))
        if table is not None and table.n_clauses:
            segments = self._with_inserted(segments, _by_id(table))
        self.snapshot = Snapshot(tuple(segments))

    def relabel(self, relabellings: dict[int, list[Relabelling]]) -> None:
        """Bring all clauses to new labels."""
        segments = [
            self._rebuilt(relabel_table(segment.table, relabellings), segment.dead_ids, segment)
            for segment in self.snapshot.segments
        ]
        self.snapshot = Snapshot(tuple(segments))

    def compact(self, *, renumber: np.ndarray | None = None) -> None:
        """Merge everything into one segment; clause renumber[i] becomes clause i if asked."""
        table = _by_id(concatenate([s.live_table() for s in self.snapshot.segments]))
        if renumber is not None:
            order = np.argsort(renumber)
            new_ids = order[np.searchsorted(renumber[order], table.clause_ids)]
            table = _by_id(table._replace(clause_ids=new_ids))
        self.snapshot = Snapshot((self._built(table),) if table.n_clauses else ())

    def _built(self, table: ConjunctionTable) -> Segment:
        return Segment(self._index_class.build(table, None, **self._options), table, _NO_IDS)

    def _rebuilt(self, table: ConjunctionTable, dead_ids: np.ndarray, like: Segment) -> Segment:
        return Segment(type(like.built).build(table, None, **self._options), table, dead_ids)

    def _with_deleted(self, segments: list[Segment], ids: np.ndarray) -> list[Segment]:
        n_found = 0
        out: list[Segment] = []
        for segment in segments:
            hit = ids[_is_member(segment.table.clause_ids, ids)]
            if len(hit) and len(segment.dead_ids):
                hit = hit[~_is_member(segment.dead_ids, hit)]
            if len(hit):
                n_found += len(hit)
                segment = segment._replace(dead_ids=np.union1d(segment.dead_ids, hit))
                if 4 * len(segment.dead_ids) > segment.table.n_clauses:
                    segment = self._rebuilt(segment.live_table(), _NO_IDS, segment)
            if segment.table.n_clauses:
                out.append(segment)
        if n_found != len(ids):
            raise InputError(f"{len(ids) - n_found} of these clauses are not in the index")
        return out

    def _with_inserted(self, segments: list[Segment], table: ConjunctionTable) -> list[Segment]:
        """The fresh segment, if there is one, is the last."""
        if segments and self._is_fresh(segments[-1]):
            fresh = segments.pop()
            table = _by_id(concatenate([fresh.live_table(), table]))
        if table.n_clauses < self._fresh_clauses:
            return [*segments, Segment(FreshScan.build(table), table, _NO_IDS)]
        return self._merged([*segments, self._built(table)])

    def _is_fresh(self, segment: Segment) -> bool:
        return segment.table.n_clauses < self._fresh_clauses

    def _merged(self, segments: list[Segment]) -> list[Segment]:
        """Merge segments of one size class as long as there are too many of them."""
        while True:
            classes: dict[int, list[Segment]] = {}
            for segment in segments:
                classes.setdefault(self._size_class(segment), []).append(segment)
            crowded = [c for c, group in classes.items() if len(group) >= self._merge_factor]
            if not crowded:
                return segments
            group = classes[min(crowded)]
            table = _by_id(concatenate([segment.live_table() for segment in group]))
            kept = [s for s in segments if not any(s is g for g in group)]
            segments = [*kept, self._built(table)]

    def _size_class(self, segment: Segment) -> int:
        n, size_class = segment.n_live // self._fresh_clauses, 0
        while n >= self._merge_factor:
            n //= self._merge_factor
            size_class += 1
        return size_class


def _by_id(table: ConjunctionTable) -> ConjunctionTable:
    ids = table.clause_ids
    if len(ids) < 2 or bool((ids[1:] > ids[:-1]).all()):
        return table
    return take_clauses(table, np.argsort(ids, kind="stable"))


def _is_member(sorted_ids: np.ndarray, ids: np.ndarray) -> np.ndarray:
    if len(sorted_ids) == 0:
        return np.zeros(len(ids), bool)
    at = np.minimum(np.searchsorted(sorted_ids, ids), len(sorted_ids) - 1)
    return np.asarray(sorted_ids[at] == ids)


def _without(matches: Matches, dead_ids: np.ndarray) -> Matches:
    kept = ~_is_member(dead_ids, matches.clause_ids)
    if kept.all():
        return matches
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(kept)))
    return Matches(before[matches.offsets], matches.clause_ids[kept])


def _joined(a: Matches, b: Matches) -> Matches:
    if len(b.clause_ids) == 0:
        return a
    if len(a.clause_ids) == 0:
        return b
    out = np.empty(len(a.clause_ids) + len(b.clause_ids), np.int64)
    _join(a.offsets, a.clause_ids, b.offsets, b.clause_ids, out)
    return Matches(a.offsets + b.offsets, out)


@kernel
def _join(
    a_offsets: np.ndarray,
    a_ids: np.ndarray,
    b_offsets: np.ndarray,
    b_ids: np.ndarray,
    out: np.ndarray,
) -> None:
    n = 0
    for e in range(len(a_offsets) - 1):
        for k in range(a_offsets[e], a_offsets[e + 1]):
            out[n] = a_ids[k]
            n += 1
        for k in range(b_offsets[e], b_offsets[e + 1]):
            out[n] = b_ids[k]
            n += 1


# -- files ----------------------------------------------------------------------------------------


def segments_to_arrays(snapshot: Snapshot) -> tuple[dict[str, np.ndarray], list[str]]:
    """The arrays of all segments, and the name of each segment's index."""
    arrays: dict[str, np.ndarray] = {}
    for n, segment in enumerate(snapshot.segments):
        parts = {f"table_{name}": a for name, a in segment.table._asdict().items()}
        if not isinstance(segment.built, FreshScan):  # that is its table
            parts |= {f"index_{name}": a for name, a in segment.built.arrays().items()}
        parts["dead_ids"] = segment.dead_ids
        arrays |= {f"segment{n}_{name}": a for name, a in parts.items()}
    return arrays, [segment.built.name for segment in snapshot.segments]


def segments_from_arrays(arrays: dict[str, np.ndarray], names: list[str]) -> list[Segment]:
    return [_segment_from_arrays(arrays, f"segment{n}_", name) for n, name in enumerate(names)]


def _segment_from_arrays(arrays: dict[str, np.ndarray], prefix: str, name: str) -> Segment:
    table = ConjunctionTable(*(arrays[f"{prefix}table_{f}"] for f in ConjunctionTable._fields))
    dead_ids = arrays[f"{prefix}dead_ids"]
    if name == FreshScan.name:
        return Segment(FreshScan(table), table, dead_ids)
    start = f"{prefix}index_"
    parts = {key[len(start) :]: a for key, a in arrays.items() if key.startswith(start)}
    return Segment(index_class(name).from_arrays(parts), table, dead_ids)
