"""The index `mask_tree`: built from a table, asked with batches of events."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import ClauseMatches, IndexStats, Statistics
from matchmill.index.mask_tree.arrays import MaskTreeArrays, check_tree
from matchmill.index.mask_tree.build import build_mask_tree
from matchmill.index.mask_tree.match import TreeState, match_events, new_tree_state
from matchmill.kernels.addresses import addresses_of
from matchmill.kernels.intrinsics import LANES

__all__ = ["MaskTree"]

_FIRST_PAIRS = 64  # of a single event


class MaskTree:
    """Clauses on the same few dimensions: boxes in a tree, 64 of them per compare."""

    name: ClassVar[str] = "mask_tree"

    def __init__(self, arrays: MaskTreeArrays, build_seconds: float = 0.0) -> None:
        check_tree(arrays)
        self._arrays = arrays
        self._addresses = addresses_of(arrays)
        self._build_seconds = build_seconds
        self._candidates = 0
        self._matches_per_event = 0.0  # recently
        self._single: list[_Run] = []  # for single events, not in use at the moment

    @classmethod
    def build(
        cls, table: ConjunctionTable, statistics: Statistics | None = None, **options: Any
    ) -> MaskTree:
        """Build the index."""
        started = time.perf_counter()
        arrays = build_mask_tree(table, statistics)
        return cls(arrays, time.perf_counter() - started)

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Return the clauses that hold for each event."""
        room = int(1.1 * self._matches_per_event * events.n_events)
        run = _Run(self, events, max(1024, 16 * events.n_events, room))
        found = run.match(b"", events.n_events)
        self._matches_per_event = len(found.clause_ids) / max(1, events.n_events)
        return found

    def match_pairs(self, pairs: bytes) -> np.ndarray:
        """Return the clauses that hold for one event: the quickest way for a single one.

        `pairs` are 64-bit integers dimension, key, dimension, key, … The array is the caller's.
        """
        try:
            run = self._single.pop()
        except IndexError:
            run = _single_run(self, _FIRST_PAIRS)
        if len(pairs) >> 4 > run.n_pairs:
            run = _single_run(self, len(pairs) >> 3)
        found = run.match_one(pairs)
        self._single.append(run)
        return found

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays, to be saved and mapped."""
        return self._arrays._asdict()

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> MaskTree:
        """Return an index that was saved."""
        return cls(MaskTreeArrays(**arrays))

    def stats(self) -> IndexStats:
        """Return figures of the index."""
        n_bytes = sum(a.nbytes for a in self._arrays)
        n_clauses = int((self._arrays.ids >= 0).sum())
        return IndexStats(n_clauses, n_bytes, self._build_seconds, self._candidates)


class _Run:
    """The state of one thread: a batch while it is matched, or one event after the other."""

    def __init__(self, index: MaskTree, events: EventBatch, n_out: int) -> None:
        self._index = index
        self._state: TreeState = new_tree_state(index._arrays, events, n_out)
        self._addresses = addresses_of(self._state)

    @property
    def n_pairs(self) -> int:
        """The number of pairs that there is room for."""
        return len(self._state.event_keys)

    def match_one(self, pairs: bytes) -> np.ndarray:
        """Return the ids of one event."""
        if not pairs:
            self._state.event_offsets[1] = 0
        return self.match(pairs, 1).clause_ids.copy()

    def match(self, pairs: bytes, n_events: int) -> ClauseMatches:
        """Match all events; `pairs`, if there are any, become the first one."""
        index = self._index
        done, seen = match_events(index._addresses, self._addresses, pairs, 0, n_events)
        n_seen = seen
        while done < n_events:
            self._make_room(done, n_events)
            done, seen = match_events(index._addresses, self._addresses, b"", done, n_events)
            n_seen += seen
        index._candidates += n_seen
        offsets = self._state.out_offsets
        return ClauseMatches(offsets, self._state.out[: offsets[n_events]])

    def _make_room(self, done: int, n_events: int) -> None:
        """Make room for more ids, by what the events so far took."""
        n_found = int(self._state.out_offsets[done])
        expected = int(1.1 * n_found / max(1, done) * n_events)
        room = max(2 * len(self._state.out) + LANES, expected)
        grown = np.empty(room, np.int64)
        grown[:n_found] = self._state.out[:n_found]
        self._state = self._state._replace(out=grown)
        self._addresses = addresses_of(self._state)


def _single_run(index: MaskTree, n_pairs: int) -> _Run:
    events = EventBatch(
        np.zeros(2, np.int64), np.empty(n_pairs, np.int32), np.empty(n_pairs, np.int64)
    )
    return _Run(index, events, 256)
