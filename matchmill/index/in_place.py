"""Updates of an index that changes in place: one segment, no merging of built parts.

    structure    the index itself, in narrow codes (`encoding/key_codes.py`); every change of it is
                 made here, under a lock that keeps matches out
    contents     the clauses in wide keys, ascending by id, and the codes: values that only grow
    view         a structure with the contents of one moment: what a snapshot holds

A snapshot stays what it was, although the structure behind it changes. So the structure has all
clauses that some view may still need, and each view leaves out what is not its own:

    insertion    into the structure at once; older views leave out larger ids than they have
    deletion     a tombstone at once; out of the structure when no view is left that has the clause
    given up     what was inserted is deleted again; the older contents are still there

Views that are in use are known by weak references, so nothing has to be released, and nothing is
lost when a reader is interrupted. `_superseded` has, in order, each view that another one followed,
with the clauses that were deleted then. They leave the structure when the views up to there are
gone, at the next change.

The contents are the truth, and the structure follows from them. If a change of it fails half-way,
or a process is forked in the middle of one, it is not whole, and whoever needs it next builds it
again. So no change can leave anything behind, whatever an index does.

Codes never change, so clauses with constants that are new on their dimension are *doubtful*: the
index finds them a little too often. Matches check these, and whatever a *vague* key has found. When
a quarter is doubtful, the structure is built again with new codes, like a merge of segments:
planned and finished under the writers' lock, built outside of it.

Clauses with multi-valued dimensions are in segments of the index of lists instead, in wide keys,
which change under the same lock (`lists`). They are exact, and the contents have them, too.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, cast
from weakref import ref

import numpy as np

from matchmill.encoding.clause_encoder import relabel_table
from matchmill.encoding.conjunction_table import (
    ConjunctionTable,
    clause_holds,
    divide,
    take_clauses,
)
from matchmill.encoding.cut_points import Relabelling
from matchmill.encoding.event_batch import EventBatch, IntervalEvents
from matchmill.encoding.flat_dictionary import Growable
from matchmill.encoding.growing_table import GrowingTable, clauses_from
from matchmill.encoding.key_codes import KeyCodes
from matchmill.errors import InputError
from matchmill.index.base import (
    ClauseMatches,
    Configurable,
    DynamicIndex,
    Index,
    IndexStats,
    OneSided,
    SelfAdjusting,
    Statistics,
)
from matchmill.index.interval_scan import IntervalIndex, scan_intervals
from matchmill.index.joined_matches import joined_matches
from matchmill.index.lists import ListIndex
from matchmill.index.live_clauses import by_id, live_clauses, position_of
from matchmill.index.segments import Merge, Segment, Segmented, Snapshot
from matchmill.index.tombstones import NO_TOMBSTONES, Tombstones
from matchmill.kernels.forks import renewed_after_fork
from matchmill.kernels.jit import kernel
from matchmill.kernels.readers_writer import ReadersWriterLock
from matchmill.kernels.searches import first_at_least
from matchmill.kernels.uninterrupted import uninterrupted

__all__ = ["InPlaceSegments", "Structure", "View"]

_NO_IDS = np.empty(0, np.int64)
_LISTED = 2  # among `doubtful`: clauses that are in the index of lists
_ADJUST_EVERY = 1 << 14  # events between two times that an index adjusts itself to them
_MOST_DOUBTFUL = 0.25
_notices = logging.getLogger("matchmill")


class Contents(NamedTuple):
    """The clauses of a structure, in keys, and how keys become codes. A value."""

    clauses: GrowingTable
    codes: KeyCodes
    doubtful: Growable  # uint8: of each clause; _LISTED for those in the index of lists
    n_doubtful: int

    @property
    def table(self) -> ConjunctionTable:
        """The clauses."""
        return self.clauses.table


class Structure:
    """An index that changes in place, and what is known of its contents."""

    def __init__(
        self,
        index_class: type[DynamicIndex],
        options: Mapping[str, Any],
        index: DynamicIndex,
        contents: Contents,
        removed: Tombstones = NO_TOMBSTONES,
    ) -> None:
        self.index = index
        self.lists = _lists_of(contents.table, removed)
        self.contents = contents  # with `removed`, what is in the index
        self.removed = removed
        self._index_class = index_class
        self._options = options
        self._superseded: deque[tuple[ref[View], np.ndarray]] = deque()
        self._lock = ReadersWriterLock()
        self._is_whole = True
        self._n_matched = 0
        renewed_after_fork(self)

    @classmethod
    def build(
        cls,
        index_class: type[DynamicIndex],
        options: Mapping[str, Any],
        table: ConjunctionTable,
        statistics: Statistics | None,
    ) -> Structure:
        """Build a structure of the clauses of a table, which are ascending by id."""
        sample = None
        if statistics is not None:
            counts = np.diff(statistics.sample_offsets)
            sample = np.repeat(np.arange(len(counts)), counts), statistics.sample_keys
        plain, _ = divide(table)
        codes = KeyCodes.of(plain, sample)
        coded, doubtful = codes.clauses(plain)
        if statistics is not None and sample is not None:
            statistics = statistics._replace(sample_keys=codes.keys(*sample))
        sides = _sides(index_class, plain)
        index = index_class.build(coded, statistics, **options, **sides)
        flags = _with_listed(table, plain, doubtful)
        contents = Contents(GrowingTable.of(table), codes, Growable(np.uint8, flags), 0)
        return cls(index_class, options, index, contents)

    def after_fork(self) -> None:
        """In a forked child: nobody else is here. A change under way stays half made."""
        self._lock = ReadersWriterLock()

    # -- changes, by one writer at a time ---------------------------------------------------------

    def insert(self, table: ConjunctionTable) -> None:
        """Insert clauses, whose ids are larger than all before."""
        clauses, codes, doubtful, n_doubtful = self.contents
        plain, lists = divide(table)
        codes = codes.with_dimensions_of(plain)
        coded, flags = codes.clauses(plain)
        contents = Contents(
            clauses.extended(table),
            codes,
            doubtful.extended(_with_listed(table, plain, flags)),
            n_doubtful + int(flags.sum()),
        )
        with self._changing():
            if plain.n_clauses:
                cast(Any, self.index).insert(coded, **_sides(self._index_class, plain))
            if lists.n_clauses:
                self.lists.insert(lists)
            self.contents = contents

    def supersede(self, view: View, deleted_ids: np.ndarray) -> None:
        """Note that another view follows this one, without some clauses that this one has."""
        self._superseded.append((ref(view), deleted_ids))

    def sweep(self) -> None:
        """Delete the clauses that no view has any more."""
        gone: list[np.ndarray] = []
        while self._superseded and self._superseded[0][0]() is None:
            gone.append(self._superseded.popleft()[1])
        ids = np.concatenate([_NO_IDS, *gone])
        if len(ids):
            self.removed = self.removed.with_ids(ids, self.contents.table.clause_ids)
            with self._changing(rejects=False):
                self._delete(ids)

    def return_to(self, view: View) -> None:
        """Undo what was done since a view was made: the change is given up."""
        if any(one() is view for one, _ in self._superseded):
            while self._superseded.pop()[0]() is not view:
                pass
        n_before, table = view.table.n_clauses, self.contents.table
        gone = table.clause_ids[n_before:]
        if len(gone) == 0:
            self.contents = view.contents
            return
        try:
            with self._changing(rejects=False):
                after, self.contents = self.contents, view.contents
                self._delete(gone, after)
        except Exception as error:  # noqa: BLE001 - it is built again when it is needed
            _notices.warning("an index is built again: a change could not be undone: %r", error)

    def _delete(self, ids: np.ndarray, contents: Contents | None = None) -> None:
        """Delete clauses of the contents from where they are."""
        contents = contents or self.contents
        rows = position_of(contents.table.clause_ids, ids)
        is_listed = contents.doubtful.data[rows] == _LISTED
        if not is_listed.all():
            self.index.delete(ids[~is_listed])
        if is_listed.any():
            self.lists.delete(ids[is_listed])

    @contextmanager
    def _changing(self, *, rejects: bool = True) -> Iterator[None]:
        """Hold this around a change of the index. It `rejects` with InputError, unchanged."""
        with self._lock.writing():
            self._make_whole()
            self._is_whole = False
            try:
                yield
            except InputError as error:
                self._is_whole = rejects and type(error) is InputError
                raise
            self._is_whole = True

    def _make_whole(self) -> None:
        """Build the index again if a change has failed half-way."""
        if self._is_whole:
            return
        codes = self.contents.codes
        plain, _ = divide(live_clauses([(self.contents.table, self.removed)]))
        coded, _ = codes.clauses(plain)
        sides = _sides(self._index_class, plain)
        self.index = self._index_class.build(coded, None, **self._options, **sides)
        self.lists = _lists_of(self.contents.table, self.removed)
        self._is_whole = True

    # -- reading ----------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[DynamicIndex]:
        """Hold this while the index is read."""
        while True:
            self._lock.begin_reading()
            if self._is_whole:
                break
            self._lock.end_reading()
            with self._lock.writing():
                self._make_whole()
        try:
            yield self.index
        finally:
            self._lock.end_reading()

    def match(self, view: View, events: EventBatch) -> ClauseMatches:
        """Return the clauses of a view that hold, with those that were deleted in it."""
        coded, is_vague = view.contents.codes.events(events)
        with self.reading() as index:
            found = index.match_batch(coded)
            if self.lists.snapshot.segments:
                found = joined_matches(found, self.lists.match_batch(events))
            has_others = self.contents.table.n_clauses > view.table.n_clauses
        self._adjust(events.n_events)
        if len(found.clause_ids) == 0:
            return found
        if has_others or view.contents.n_doubtful or is_vague.any():
            return view.own(found, events, is_vague)
        return found

    def _adjust(self, n_events: int) -> None:
        """Have the index adjust itself to events, now and then."""
        self._n_matched += n_events
        if self._n_matched >= _ADJUST_EVERY:
            self._n_matched = 0
            index = self.index
            if isinstance(index, SelfAdjusting) and index.adjusts:
                with self._changing(rejects=False):
                    cast("SelfAdjusting", self.index).adjust()


def _lists_of(table: ConjunctionTable, removed: Tombstones) -> Segmented:
    """Return the clauses with multi-valued dimensions in an index of their own."""
    lists = Segmented(ListIndex)
    _, listed = divide(live_clauses([(table, removed)]) if removed.n_dead else table)
    if listed.n_clauses:
        lists.insert(listed)
    return lists


def _with_listed(
    table: ConjunctionTable, plain: ConjunctionTable, doubtful: np.ndarray
) -> np.ndarray:
    """Return a flag for each clause of a table, from those of its clauses that are not listed."""
    if plain.n_clauses == table.n_clauses:
        return doubtful
    flags = np.full(table.n_clauses, _LISTED, np.uint8)
    flags[position_of(table.clause_ids, plain.clause_ids)] = doubtful
    return flags


def _sides(index_class: type[DynamicIndex], table: ConjunctionTable) -> dict[str, np.ndarray]:
    """Say which predicates have one end, to an index that wants to know."""
    if issubclass(index_class, OneSided):
        return {"one_sided": index_class.one_sided_of(table)}
    return {}


class View:
    """The index of one segment at one moment."""

    name: ClassVar[str] = "in_place"

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.contents = structure.contents
        self.table = self.contents.table
        self.name = structure.index.name  # type: ignore[misc]

    @classmethod
    def build(
        cls, table: ConjunctionTable, statistics: Statistics | None = None, **options: Any
    ) -> View:
        """Raise an error: `InPlaceSegments` makes views."""
        raise NotImplementedError

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Return the clauses that hold for each event; this may wait for a change to end."""
        return uninterrupted(self.structure.match, self, events)

    def match_pairs(self, pairs: bytes) -> np.ndarray:
        """Return the clauses that hold for one event, given as 64-bit dimension, key, ….

        This spares making columns of single events.
        """
        numbers = np.frombuffer(pairs, np.int64).reshape(-1, 2)
        offsets = np.array([0, len(numbers)], np.int64)
        event = EventBatch(offsets, numbers[:, 0].astype(np.int32), numbers[:, 1].copy())
        return self.match_batch(event).clause_ids

    def match_intervals(self, events: IntervalEvents) -> ClauseMatches:
        """Return the clauses that events which allow intervals of keys can satisfy."""
        return uninterrupted(self._match_intervals, events)

    def _match_intervals(self, events: IntervalEvents) -> ClauseMatches:
        with self.structure.reading() as index:
            if not isinstance(index, IntervalIndex):
                return scan_intervals(self.table, events)
            found = index.match_intervals(self.contents.codes.intervals(events)).clause_ids
        rows = position_of(self.table.clause_ids, np.unique(found).astype(np.int64))
        listed = np.flatnonzero(self.contents.doubtful.array == _LISTED)
        rows = np.union1d(rows[rows >= 0], listed)
        return scan_intervals(take_clauses(self.table, rows), events)

    def own(self, found: ClauseMatches, events: EventBatch, is_vague: np.ndarray) -> ClauseMatches:
        """Drop clauses that came after this view, and those that do not hold.

        Those are doubtful, or the event has a vague key.
        """
        offsets = np.zeros(len(found.offsets), np.int64)
        ids = np.empty_like(found.clause_ids)
        contents = self.contents
        keys = np.zeros(len(contents.codes.first), np.int64)
        n = _copy_own(
            self.table, contents.doubtful.data, events, is_vague, keys, *found, offsets, ids
        )
        return ClauseMatches(offsets, ids[:n])

    def arrays(self) -> dict[str, np.ndarray]:
        """Return a copy of all that `structure_from_arrays` needs, besides the table."""
        return uninterrupted(self._arrays)

    def _arrays(self) -> dict[str, np.ndarray]:
        contents, structure = self.contents, self.structure
        with structure.reading() as index:
            inner = {f"built_{name}": array.copy() for name, array in index.arrays().items()}
            removed_ids = structure.removed.all_ids()
        codes = {f"codes_{name}": array for name, array in contents.codes._asdict().items()}
        doubtful = contents.doubtful.array
        return {**inner, **codes, "doubtful": doubtful, "removed_ids": removed_ids}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> View:
        """Raise an error: `InPlaceSegments` makes views."""
        raise NotImplementedError

    def stats(self) -> IndexStats:
        """Return figures of the index, with the bytes of its codes."""
        return uninterrupted(self._stats)

    def _stats(self) -> IndexStats:
        with self.structure.reading() as index:
            stats = index.stats()
            for part in self.structure.lists.stats():
                stats = stats.plus(part)
        n_bytes = stats.n_bytes + self.contents.codes.n_bytes + self.contents.doubtful.data.nbytes
        return stats._replace(n_bytes=n_bytes)


class SavedView(View):
    """The arrays of a view, taken while nothing changed."""

    def __init__(self, view: View) -> None:
        self.name = view.name  # type: ignore[misc]
        self._copied = view.arrays()

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what was taken."""
        return self._copied


class InPlaceSegments(Segmented):
    """Insert, delete and match in one segment, whose index changes in place."""

    index_class: type[DynamicIndex]

    def apply(self, table: ConjunctionTable | None, deleted_ids: np.ndarray) -> None:
        """Delete and insert in one step: a reader sees both or neither."""
        before = self.snapshot
        segment = before.segments[0] if before.segments else None
        if segment is not None:
            _structure_of(segment).sweep()
        try:
            if len(deleted_ids):
                segment = self._without_all(segment, np.unique(deleted_ids))
            if table is not None and table.n_clauses:
                segment = self._with(segment, by_id(table))
        except BaseException:
            self._give_up(before)
            raise
        is_there = segment is not None and segment.n_live
        self._continue_with((cast("Segment", segment),) if is_there else ())
        if len(deleted_ids) and self._running is not None:
            self._running.deleted.append(deleted_ids)

    def relabel(self, relabellings: dict[int, list[Relabelling]]) -> None:
        """Bring all clauses to new labels. Their codes stay, and so does the index."""
        if not self.snapshot.segments:
            return
        (segment,) = self.snapshot.segments
        structure, contents = _structure_of(segment), _view_of(segment).contents
        table = relabel_table(segment.table, relabellings)
        structure.contents = contents._replace(
            clauses=GrowingTable.of(table), codes=contents.codes.relabelled(relabellings)
        )
        structure.lists.relabel(relabellings)
        structure.supersede(_view_of(segment), _NO_IDS)
        self.snapshot = Snapshot((_segment_of(structure, segment.dead),))
        self._running = None

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from another snapshot; undo in place what came after it."""
        self._give_up(snapshot)
        self.snapshot = snapshot
        self._running = None

    def after_fork(self) -> None:
        """In a forked child: nobody finishes a merge that was under way."""
        self._running = None

    def built(self, table: ConjunctionTable, statistics: Statistics | None) -> Segment:
        """Return a new segment, built with some statistics of events."""
        structure = Structure.build(self.index_class, self._options, table, statistics)
        return _segment_of(structure, NO_TOMBSTONES)

    def without(self, segment: Segment, ids: np.ndarray) -> Segment:
        """Return a segment with some of its clauses deleted."""
        own = ids[position_of(segment.table.clause_ids, ids) >= 0]
        own = own[~segment.dead.has(own)]
        if len(own) == 0:
            return segment
        structure = _structure_of(segment)
        structure.supersede(_view_of(segment), own)
        return _segment_of(structure, segment.dead.with_ids(own, segment.table.clause_ids))

    def with_table(
        self, segments: list[Segment], table: ConjunctionTable, statistics: Statistics | None
    ) -> list[Segment]:
        """Return segments that nobody else has yet, with more clauses."""
        if not segments:
            return [self.built(table, statistics)]
        return [self._inserted(segments[0], table)]

    def frozen(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot whose arrays do not change any more, to be saved."""
        saved = (cast("Index", SavedView(_view_of(s))) for s in snapshot.segments)
        return Snapshot(
            tuple(s._replace(built=one) for s, one in zip(snapshot.segments, saved, strict=True))
        )

    def opened(
        self, table: ConjunctionTable, dead: Tombstones, arrays: dict[str, np.ndarray]
    ) -> Segment:
        """Return a segment of these clauses from what its view saved."""
        start = "built_"
        inner = {n.removeprefix(start): a for n, a in arrays.items() if n.startswith(start)}
        index = self.index_class.from_arrays(inner)
        if isinstance(index, Configurable):
            index.configure(**self._options)
        doubtful, removed_ids = arrays["doubtful"], arrays["removed_ids"]
        if doubtful.shape != (table.n_clauses,):
            raise ValueError("'doubtful' has another length than there are clauses")
        codes = KeyCodes(*(arrays[f"codes_{field}"] for field in KeyCodes._fields))
        n_doubtful = int((doubtful == 1).sum())
        contents = Contents(GrowingTable.of(table), codes, Growable(np.uint8, doubtful), n_doubtful)
        removed = NO_TOMBSTONES
        if len(removed_ids):
            removed = removed.with_ids(removed_ids, table.clause_ids)
        structure = Structure(self.index_class, self._options, index, contents, removed)
        waiting = np.setdiff1d(dead.all_ids(), removed_ids)
        structure.supersede(View(structure), waiting)  # a view that nobody has
        return _segment_of(structure, dead)

    # -- changes ----------------------------------------------------------------------------------

    def _without_all(self, segment: Segment | None, ids: np.ndarray) -> Segment | None:
        n_found = 0
        if segment is not None:
            n_before = segment.n_live
            segment = self.without(segment, ids)
            n_found = n_before - segment.n_live
        if n_found != len(ids):
            raise InputError(f"{len(ids) - n_found} of these clauses are not in the index")
        return segment

    def _with(self, segment: Segment | None, table: ConjunctionTable) -> Segment:
        is_small = segment is not None and segment.n_live >= table.n_clauses
        if segment is None or not is_small or table.clause_ids[0] <= segment.table.clause_ids[-1]:
            parts = [(table, NO_TOMBSTONES)]
            if segment is not None:
                parts.insert(0, segment[1:])
            self._running = None
            return self.built(live_clauses(parts), self.statistics)
        return self._inserted(segment, table)

    def _inserted(self, segment: Segment, table: ConjunctionTable) -> Segment:
        structure = _structure_of(segment)
        structure.insert(table)
        structure.supersede(_view_of(segment), _NO_IDS)
        return _segment_of(structure, segment.dead)

    def _give_up(self, snapshot: Snapshot) -> None:
        for segment in snapshot.segments:
            _structure_of(segment).return_to(_view_of(segment))

    def _continue_with(self, segments: tuple[Segment, ...]) -> None:
        if not segments or not self.snapshot.segments:
            self._running = None
        self.snapshot = Snapshot(segments)

    # -- new codes, built like a merge ------------------------------------------------------------

    def new_parts(self, merge: Merge) -> tuple[Segment, ...]:
        """Return the clauses that came since a merge has taken others; it has them from now on."""
        if not self.snapshot.segments:
            return ()
        (segment,) = self.snapshot.segments
        first, merge.n_taken = merge.n_taken, segment.table.n_clauses
        if first == merge.n_taken:
            return ()
        return (segment._replace(table=clauses_from(segment.table, first)),)

    def begin(self, segments: tuple[Segment, ...]) -> Merge:
        """Begin to build segments again."""
        merge = super().begin(segments)
        merge.n_taken = sum(segment.table.n_clauses for segment in segments)
        return merge

    def finish(self, merge: Merge, merged: Segment) -> bool:
        """Put a segment that was built again in its place, with the changes since."""
        if self._running is not merge or not self.snapshot.segments:
            return False
        (current,) = self.snapshot.segments
        later = clauses_from(current.table, merge.n_taken)
        later = live_clauses([(later, current.dead)])
        if later.n_clauses:
            merged = self._inserted(merged, later)
        if merge.deleted:
            merged = self.without(merged, np.unique(np.concatenate(merge.deleted)))
        return self.replace(merge, (merged,))

    def replace(self, merge: Merge, segments: tuple[Segment, ...]) -> bool:
        """Put other segments in the place of all, if the merge has them all and still fits."""
        if self._running is not merge:
            return False
        self.snapshot = Snapshot(segments)
        self._running = None
        return True

    def _due(self) -> tuple[Segment, ...]:
        for segment in self.snapshot.segments:
            n_doubtful = _view_of(segment).contents.n_doubtful
            if n_doubtful > self._fresh_clauses + _MOST_DOUBTFUL * segment.n_live:
                return (segment,)
        return ()


def _view_of(segment: Segment) -> View:
    assert isinstance(segment.built, View)
    return segment.built


def _structure_of(segment: Segment) -> Structure:
    return _view_of(segment).structure


def _segment_of(structure: Structure, dead: Tombstones) -> Segment:
    view = View(structure)
    return Segment(cast("Index", view), view.table, dead)


@kernel
def _copy_own(
    table: ConjunctionTable,
    doubtful: np.ndarray,
    events: EventBatch,
    is_vague: np.ndarray,
    keys: np.ndarray,
    offsets: np.ndarray,
    clause_ids: np.ndarray,
    out_offsets: np.ndarray,
    out_ids: np.ndarray,
) -> int:
    """Copy the matches of the clauses of a table; those that may not hold, only if they do.

    `keys` are 0, one for each dimension of the table.
    """
    n_clauses = len(table.clause_ids)
    n = 0
    for e in range(len(offsets) - 1):
        has_keys = False
        first, stop = events.offsets[e], events.offsets[e + 1]
        for k in range(offsets[e], offsets[e + 1]):
            clause_id = clause_ids[k]
            row = first_at_least(table.clause_ids, clause_id, 0, n_clauses)
            if row == n_clauses:
                continue
            if doubtful[row] == 1 or (is_vague[e] and doubtful[row] != _LISTED):
                if not has_keys:
                    has_keys = True
                    for pair in range(first, stop):
                        if events.dimensions[pair] < len(keys):
                            keys[events.dimensions[pair]] = events.keys[pair]
                if not clause_holds(table, row, keys):
                    continue
            out_ids[n] = clause_id
            n += 1
        if has_keys:
            for pair in range(first, stop):
                if events.dimensions[pair] < len(keys):
                    keys[events.dimensions[pair]] = 0
        out_offsets[e + 1] = n
    return n
