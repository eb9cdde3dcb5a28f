"""Forgetting what is dead: live rows and clauses are copied into new, smaller stores.

Dimensions, cut points and patterns are made again from what lives (`encoding/live_dimensions`), so
that an engine under churn stays as small and as fast as one that was just loaded.

    round 1    everything there is when it begins; most of the work, outside of the writers' lock
    round 2…   what has been subscribed meanwhile, until that is little
    the end    under the lock: the last few rows, the rows that have died since, and the swap

    old row  old_rows[new row]          rows keep their order, and so do the numbers of clauses

Nobody waits: readers keep the state that they took, and writers are held up for the last step only.
A relabelling of cut points makes the copied clauses stale; then it starts again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.live_dimensions import LiveDimensions, NoRoomError
from matchmill.engine.state import Store
from matchmill.engine.subscription_table import Subscriptions
from matchmill.index.base import Statistics
from matchmill.index.live_clauses import live_clauses, position_of
from matchmill.index.segments import Segment
from matchmill.kernels.csr import offsets_of

__all__ = ["compact"]

_FEW_ROWS = 1000
_MOST_ATTEMPTS = 3


def compact(store: Store) -> None:
    """Merge all segments into one and drop removed rows; no merge may run at the same time."""
    for _ in range(_MOST_ATTEMPTS):
        if _Compaction(store).run():
            return
    with store.lock:  # relabelled again and again: now writers have to wait
        _Compaction(store).run()


class _Part(NamedTuple):
    """What one round copies: rows first … stop of the old subscriptions, and their segments."""

    first: int
    stop: int
    row_of_number: np.ndarray
    segments: tuple[Segment, ...]


class _Compaction:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._segmented = store.segmented
        self._new = Subscriptions()
        self._new_segments: list[Segment] = []
        self._old_rows: list[np.ndarray] = []
        self._n_taken = 0
        self._statistics: Statistics | None = None

    def run(self) -> bool:
        """Compact; return False if a relabelling came in between."""
        store = self._store
        with store.lock:
            store.relearn()
            self._live = LiveDimensions(store.state.dimensions)
            self._merge = self._segmented.begin(())
            store.gone = []
        try:
            while True:
                with store.lock:
                    part = self._take()
                    if part.stop - part.first <= _FEW_ROWS:
                        self._copy(part)
                        return self._finish()
                self._copy(part)
        except NoRoomError:
            return False
        finally:
            with store.lock:
                self._segmented.abandon(self._merge)
                store.gone = None

    def _take(self) -> _Part:
        """Take everything since the last round; its segments only get deletions from now on."""
        self._old = self._store.state.subscriptions
        first, self._n_taken = self._n_taken, self._old.n_rows
        new = self._segmented.new_parts(self._merge)
        return _Part(first, self._n_taken, self._old.row_of_number.array.copy(), new)

    def _copy(self, part: _Part) -> None:
        old, new = self._old, self._new
        if part.first == 0:
            new = new.with_ids_of(old, np.flatnonzero(part.row_of_number >= 0))
        rows = np.arange(part.first, part.stop)
        rows = rows[part.row_of_number[old.number_of_row.data[rows]] == rows]
        first_clause = new.row_of_clause.n
        self._new = new.with_rows_of(old, rows)
        table = live_clauses((s.table, s.dead) for s in part.segments)
        ids = position_of(old.clauses_of(rows), table.clause_ids) + first_clause
        self._add_segment(self._live.translated(table._replace(clause_ids=ids)))
        self._old_rows.append(rows)

    def _add_segment(self, table: ConjunctionTable) -> None:
        if table.n_clauses:
            if not self._new_segments:
                self._statistics = self._new_statistics()
            self._new_segments = self._segmented.with_table(
                self._new_segments, table, self._statistics
            )

    def _new_statistics(self) -> Statistics | None:
        """Return what is known of events, in the new dimensions."""
        known = self._segmented.statistics
        if known is None:
            return None
        counts, offsets = known.dimension_counts, known.sample_offsets
        owners = np.repeat(np.arange(len(counts), dtype=np.int32), np.diff(offsets))
        numbers, keys, _ = self._live.event_pairs(owners, known.sample_keys)
        order = np.lexsort((keys, numbers))
        new_counts = np.zeros(len(self._live.dimensions), np.int64)
        for old, new in self._live.numbers.items():
            if old < len(counts):
                new_counts[new] = counts[old]
        new_offsets = offsets_of(np.bincount(numbers, minlength=len(new_counts)))
        return Statistics(known.n_events, new_counts, new_offsets, keys[order])

    def _finish(self) -> bool:
        store = self._store
        gone = np.concatenate([np.empty(0, np.int64), *(store.gone or ())])
        new_rows = position_of(np.concatenate(self._old_rows), gone)
        new_rows = np.unique(new_rows[new_rows >= 0])
        dead = self._new.clauses_of(new_rows)
        segments = [self._segmented.without(segment, dead) for segment in self._new_segments]
        live = tuple(segment for segment in segments if segment.n_live)
        subscriptions = self._new.removed(new_rows).made()
        if not self._segmented.replace(self._merge, live):
            return False
        self._segmented.statistics = self._statistics
        self._live.dimensions.all_are_needed()
        store.sample.translate(self._live.event_pairs)
        store.publish(subscriptions=subscriptions, dimensions=self._live.dimensions)
        return True
