"""A scan over a ConjunctionTable as it is: nothing to build, for the few clauses that are new.

    keys    one int64 a dimension, the event's key or 0: filled before and cleared after an event

Segments use it for clauses that wait to be built into the real index. `scan.py` is the baseline.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np

from matchmill._jit import kernel
from matchmill.encoding.conjunction_table import ConjunctionTable, clause_holds
from matchmill.encoding.event_batch import EventBatch
from matchmill.indexes.base import IndexStats, Matches, Statistics

__all__ = ["FreshScan"]


class FreshScan:
    """Every clause of a small table, one after the other."""

    name: ClassVar[str] = "fresh_scan"

    def __init__(self, table: ConjunctionTable, build_seconds: float = 0.0) -> None:
        self._table = table
        self._n_dimensions = table.n_dimensions
        self._build_seconds = build_seconds
        self._candidates = 0

    @classmethod
    def build(
        cls, table: ConjunctionTable, statistics: Statistics | None = None, **options: Any
    ) -> FreshScan:
        started = time.perf_counter()
        return cls(table, time.perf_counter() - started)

    def match_batch(self, events: EventBatch) -> Matches:
        keys = np.zeros(self._n_dimensions, np.int64)
        offsets = np.zeros(events.n_events + 1, np.int64)
        out = np.empty(max(256, 4 * events.n_events), np.int64)
        start = 0
        while True:
            done = _scan_events(self._table, events, start, keys, offsets, out)
            if done == events.n_events:
                break
            out = np.concatenate((out, np.empty(len(out) + self._table.n_clauses, np.int64)))
            start = done
        self._candidates += events.n_events * self._table.n_clauses
        return Matches(offsets, out[: offsets[-1]])

    def arrays(self) -> dict[str, np.ndarray]:
        return self._table._asdict()

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> FreshScan:
        return cls(ConjunctionTable(**arrays))

    def stats(self) -> IndexStats:
        table = self._table
        return IndexStats(table.n_clauses, table.n_bytes, self._build_seconds, self._candidates)


@kernel
def _scan_events(
    table: ConjunctionTable,
    events: EventBatch,
    start: int,
    keys: np.ndarray,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> int:
    """Matches events from `start` on; returns the first one for which `out` had no room."""
    n_events = len(events.offsets) - 1
    n_clauses = len(table.clause_ids)
    n_out = out_offsets[start]
    for e in range(start, n_events):
        for k in range(events.offsets[e], events.offsets[e + 1]):
            if events.dimensions[k] < len(keys):
                keys[events.dimensions[k]] = events.keys[k]
        full = False
        for i in range(n_clauses):
            if clause_holds(table, i, keys):
                if n_out == len(out):
                    full = True
                    break
                out[n_out] = table.clause_ids[i]
                n_out += 1
        for k in range(events.offsets[e], events.offsets[e + 1]):
            if events.dimensions[k] < len(keys):
                keys[events.dimensions[k]] = 0
        if full:
            return e
        out_offsets[e + 1] = n_out
    return n_events
