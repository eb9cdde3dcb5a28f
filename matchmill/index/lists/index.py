"""The index `lists`: built from a table, asked with events that may have several keys."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import ClauseMatches, IndexStats, Statistics
from matchmill.index.lists.arrays import ListArrays, Scratch, new_scratch
from matchmill.index.lists.build import build_arrays
from matchmill.index.lists.match import match_events, match_one
from matchmill.index.match_buffer import collect_matches

__all__ = ["ListIndex"]

_FEW_PAIRS = 64


class ListIndex:
    """Clauses filed under their least likely predicate, which may be about many keys."""

    name: ClassVar[str] = "lists"
    takes_lists: ClassVar[bool] = True

    def __init__(self, arrays: ListArrays, build_seconds: float = 0.0) -> None:
        self._arrays = arrays
        self._build_seconds = build_seconds
        self._candidates = 0
        self._room = 1024  # ids of a single event
        self._scratch: list[Scratch] = []  # not in use at the moment

    @classmethod
    def build(
        cls, table: ConjunctionTable, statistics: Statistics | None = None, **options: Any
    ) -> ListIndex:
        """Build the index."""
        started = time.perf_counter()
        arrays = build_arrays(table, statistics)
        return cls(arrays, time.perf_counter() - started)

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Return the clauses that hold for each event."""
        scratch = self._taken(0)

        def match_from(start: int, offsets: np.ndarray, out: np.ndarray) -> int:
            return match_events(self._arrays, scratch, events, start, offsets, out)

        found = collect_matches(events.n_events, len(self._arrays.clause_ids), match_from)
        self._given_back(scratch)
        return found._replace(clause_ids=self._arrays.clause_ids[found.clause_ids])

    def match_pairs(self, pairs: bytes) -> np.ndarray:
        """Return the clauses that hold for one event: the quickest way for a single one.

        `pairs` are 64-bit integers dimension, key, dimension, key, …
        """
        scratch = self._taken(len(pairs) >> 4)
        out = np.empty(self._room, np.int64)
        n_found = match_one(self._arrays, scratch, pairs, out)
        while n_found < 0:
            self._room *= 2
            out = np.empty(self._room, np.int64)
            n_found = match_one(self._arrays, scratch, pairs, out)
        self._given_back(scratch)
        return self._arrays.clause_ids[out[:n_found]]

    def _taken(self, n_pairs: int) -> Scratch:
        try:
            scratch = self._scratch.pop()
        except IndexError:
            scratch = new_scratch(self._arrays, max(n_pairs, _FEW_PAIRS))
        if n_pairs > len(scratch.keys):
            scratch = scratch._replace(
                dimensions=np.empty(2 * n_pairs, np.int32), keys=np.empty(2 * n_pairs, np.int64)
            )
        return scratch

    def _given_back(self, scratch: Scratch) -> None:
        self._candidates += int(scratch.clock[1])
        scratch.clock[1] = 0
        self._scratch.append(scratch)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays, to be saved and mapped."""
        return self._arrays._asdict()

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> ListIndex:
        """Return an index that was saved."""
        return cls(ListArrays(**arrays))

    def stats(self) -> IndexStats:
        """Return figures of the index."""
        n_bytes = sum(array.nbytes for array in self._arrays)
        n_clauses = len(self._arrays.clause_ids)
        return IndexStats(n_clauses, n_bytes, self._build_seconds, self._candidates)
