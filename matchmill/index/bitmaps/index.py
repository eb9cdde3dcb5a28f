"""The index `bitmaps`: built from a table, asked with batches of events."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.array_index import ArrayIndex
from matchmill.index.base import Statistics
from matchmill.index.bitmaps.arrays import BitmapArrays, check_bitmaps
from matchmill.index.bitmaps.build import build_bitmaps
from matchmill.index.bitmaps.match import match_events, new_bitmap_state

__all__ = ["Bitmaps"]


class Bitmaps(ArrayIndex):
    """Clauses of many predicates, or many of which hold: rows of bits for 512 clauses at a time."""

    name: ClassVar[str] = "bitmaps"
    declared: ClassVar[Any] = BitmapArrays
    check = staticmethod(check_bitmaps)
    match_events = staticmethod(match_events)

    @classmethod
    def build(
        cls, table: ConjunctionTable, statistics: Statistics | None = None, **options: Any
    ) -> Bitmaps:
        """Build the index."""
        started = time.perf_counter()
        arrays = build_bitmaps(table, statistics)
        return cls(arrays, time.perf_counter() - started)

    def new_state(self, events: EventBatch, n_out: int) -> Any:
        """Return the state of a batch of events."""
        return new_bitmap_state(self._arrays, events, n_out)
