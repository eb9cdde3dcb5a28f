"""The index `mill`: built from a table, asked with batches of events."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.indexes.base import IndexStats, Matches, Statistics
from matchmill.indexes.mill.layout import MillArrays, build_arrays
from matchmill.indexes.mill.one_event import match_events, new_state

__all__ = ["Mill"]


class Mill:
    """Our own index: shared truth tables, clauses filed under their cheapest predicate."""

    name: ClassVar[str] = "mill"

    def __init__(self, arrays: MillArrays, n_clauses: int, build_seconds: float = 0.0) -> None:
        self._arrays = arrays
        self._n_clauses = n_clauses
        self._build_seconds = build_seconds
        self._candidates = 0

    @classmethod
    def build(
        cls, table: ConjunctionTable, statistics: Statistics | None = None, **options: Any
    ) -> Mill:
        started = time.perf_counter()
        arrays = build_arrays(table, statistics)
        return cls(arrays, table.n_clauses, time.perf_counter() - started)

    def match_batch(self, events: EventBatch) -> Matches:
        n_events = events.n_events
        state = new_state(self._arrays)
        offsets = np.zeros(n_events + 1, np.int64)
        out = np.empty(max(1024, 16 * n_events), np.int64)
        done = 0
        while True:
            done, n_slots, seen = match_events(
                self._arrays, state, events, done, n_events, offsets, out
            )
            self._candidates += seen
            if done == n_events:
                return Matches(offsets, out[: offsets[-1]])
            if n_slots > len(state.slots):
                state = state._replace(slots=np.empty(2 * n_slots, np.int32))
                continue
            mean = offsets[done] // max(1, done)
            room = max(2 * len(out), int(1.2 * mean * n_events))
            grown = np.empty(
                min(room, len(out) + len(self._arrays.entry_ids) * (n_events - done)), np.int64
            )
            grown[: offsets[done]] = out[: offsets[done]]
            out = grown

    def arrays(self) -> dict[str, np.ndarray]:
        return {**self._arrays._asdict(), "n_clauses": np.array([self._n_clauses])}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Mill:
        parts = dict(arrays)
        n_clauses = int(parts.pop("n_clauses")[0])
        return cls(MillArrays(**parts), n_clauses)

    def stats(self) -> IndexStats:
        n_bytes = sum(a.nbytes for a in self._arrays)
        return IndexStats(self._n_clauses, n_bytes, self._build_seconds, self._candidates)
