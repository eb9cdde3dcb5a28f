"""The index `mill`: built from a table, asked with batches of events.

A batch is matched one event at a time or 64 at a time, whichever was quicker on the events
themselves: one block of a large batch is matched both ways, against the clock, and the outcome
serves for the next events. `kernel="one"` or `kernel="many"` decides it beforehand.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np

from matchmill._jit import JIT_DISABLED, kernel
from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.encoding.interval_events import IntervalEvents
from matchmill.errors import InputError
from matchmill.indexes.base import IndexStats, Matches, Statistics
from matchmill.indexes.mill.arrays import N_CLAUSES, MillArrays
from matchmill.indexes.mill.by_address import places_of, quick_match
from matchmill.indexes.mill.clause_costs import clause_costs
from matchmill.indexes.mill.layout import build_arrays
from matchmill.indexes.mill.many_events import BLOCK, match_block, new_block_state
from matchmill.indexes.mill.one_event import (
    BlockViews,
    match_events,
    match_pairs,
    new_state,
    views_of,
)
from matchmill.indexes.mill.wide_events import match_wide_events, new_wide_state

__all__ = ["KERNELS", "Mill"]

KERNELS = ("auto", "one", "many")
_TRIED_EVERY = 1 << 16  # events after which both ways are tried again
_WORTH_TRYING = 4 * BLOCK  # a smaller batch goes by what is known, or one at a time


class Mill:
    """Our own index: shared truth tables, clauses filed under their cheapest predicate."""

    name: ClassVar[str] = "mill"

    def __init__(
        self, arrays: MillArrays, build_seconds: float = 0.0, kernel: str = "auto"
    ) -> None:
        if kernel not in KERNELS:
            raise InputError(f"kernel is one of {', '.join(KERNELS)}, not {kernel!r}")
        self._arrays = arrays
        self._views = views_of(arrays)
        self._build_seconds = build_seconds
        self._candidates = 0
        self._kernel = kernel
        self._many_is_quicker = False
        self._events_until_trial = 0
        self._matches_each = 0.0  # of late
        self._scratch: list[_Scratch] = []  # of threads that come again

    @classmethod
    def build(
        cls,
        table: ConjunctionTable,
        statistics: Statistics | None = None,
        *,
        kernel: str = "auto",
        **options: Any,
    ) -> Mill:
        started = time.perf_counter()
        arrays = build_arrays(table, statistics)
        return cls(arrays, time.perf_counter() - started, kernel)

    def match_batch(self, events: EventBatch) -> Matches:
        return _Run(self, events).matches()

    def match_pairs(self, pairs: bytes) -> np.ndarray:
        """The clauses that hold for one event, given as dimension, key, dimension, key, … in 64
        bits each: the quickest way for a single event. The array is the caller's."""
        try:
            scratch = self._scratch.pop()
        except IndexError:
            scratch = _Scratch(self._arrays, self._views)
        if len(pairs) >> 4 > scratch.n_pairs:
            scratch = _Scratch(self._arrays, self._views, len(pairs) >> 3)
        n, seen = scratch.match(pairs)
        self._candidates += int(seen)
        ids = scratch.out[:n].copy()
        self._scratch.append(scratch)
        known = self._arrays.clause_ids
        return known[ids] if len(known) else ids

    def match_intervals(self, events: IntervalEvents) -> Matches:
        """The same for events that allow intervals of keys."""
        n_events = events.n_events
        state = new_wide_state(self._arrays, events)
        offsets = np.zeros(n_events + 1, np.int64)
        out = np.empty(1024, np.int64)
        done = 0
        while True:
            done, needed, seen = match_wide_events(
                self._arrays, self._views, state, events, done, offsets, out
            )
            self._candidates += seen
            if done == n_events:
                break
            if needed > len(state.found):
                state = state._replace(found=np.empty(2 * needed, np.int64))
            out = np.concatenate((out, np.empty(len(out) + needed, np.int64)))
        ids, known = out[: offsets[-1]], self._arrays.clause_ids
        return Matches(offsets, known[ids] if len(known) else ids)

    def clause_costs(self, events: EventBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The ids of all clauses, ascending; for how many of these events each was looked at; and
        for how many it held. Slower than matching, and not counted among the candidates."""
        return clause_costs(self._arrays, self._views, events)

    def arrays(self) -> dict[str, np.ndarray]:
        return self._arrays._asdict()

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Mill:
        return cls(MillArrays(**arrays))

    def stats(self) -> IndexStats:
        n_bytes = sum(a.nbytes for a in self._arrays)
        n_clauses = int(self._arrays.sizes[N_CLAUSES])
        return IndexStats(n_clauses, n_bytes, self._build_seconds, self._candidates)


class _Scratch:
    """What one thread needs to match single events, again and again."""

    def __init__(self, arrays: MillArrays, views: BlockViews, n_pairs: int = 64) -> None:
        self._arrays, self._views = arrays, views
        self._state = new_state(arrays, n_pairs)
        self.n_pairs = n_pairs
        self.out = np.empty(256, np.int32)
        self._places = places_of(arrays, views, self._state, self.out)

    def match(self, pairs: bytes) -> tuple[int, int]:
        """The number of ids in `out`, and of entries looked at."""
        while True:
            if JIT_DISABLED:
                n, n_slots, seen = match_pairs(
                    self._arrays, self._views, self._state, pairs, self.out
                )
            else:
                n, n_slots, seen = quick_match(self._places, pairs)
            if n_slots > len(self._state.places):
                self._state = self._state._replace(places=np.empty(2 * n_slots, np.int64))
            elif n > len(self.out):
                self.out = np.empty(4 * len(self.out), np.int32)
            else:
                return n, seen
            self._places = places_of(self._arrays, self._views, self._state, self.out)


class _Run:
    """One batch on its way: the ids found so far, and the scratch of this thread."""

    def __init__(self, mill: Mill, events: EventBatch) -> None:
        self._mill = mill
        self._events = events
        self._offsets = np.zeros(events.n_events + 1, np.int64)
        guess = int(mill._matches_each * events.n_events * 1.1)
        self._out = np.empty(max(1024, 16 * events.n_events, guess), np.int32)
        self._state = new_state(mill._arrays)

    def matches(self) -> Matches:
        mill, n_events = self._mill, self._events.n_events
        if mill._kernel == "one" or (n_events < BLOCK // 2 and mill._kernel == "auto"):
            self._one_by_one(0, n_events)
        elif mill._kernel == "many":
            self._by_blocks(0, n_events)
        else:
            self._as_is_quicker()
        ids, known = self._out[: self._offsets[-1]], mill._arrays.clause_ids
        if n_events >= BLOCK:
            mill._matches_each = len(ids) / n_events
        return Matches(self._offsets, known[ids] if len(known) else ids)

    def _as_is_quicker(self) -> None:
        mill, n_events = self._mill, self._events.n_events
        start = 0
        mill._events_until_trial -= n_events
        if n_events >= _WORTH_TRYING and mill._events_until_trial <= 0:
            mill._events_until_trial = _TRIED_EVERY
            self._one_by_one(0, BLOCK)  # also brings the blocks into the cache
            start = 2 * BLOCK
            began = time.perf_counter()
            self._one_by_one(BLOCK, start)
            between = time.perf_counter()
            self._by_blocks(BLOCK, start)
            mill._many_is_quicker = time.perf_counter() - between < between - began
        if mill._many_is_quicker:
            self._by_blocks(start, n_events)
        else:
            self._one_by_one(start, n_events)

    def _one_by_one(self, start: int, stop: int) -> None:
        mill = self._mill
        while start < stop:
            start, n_slots, seen = match_events(
                mill._arrays,
                mill._views,
                self._state,
                self._events,
                start,
                stop,
                self._offsets,
                self._out,
            )
            mill._candidates += int(seen)
            if n_slots > len(self._state.places):
                self._state = self._state._replace(places=np.empty(2 * n_slots, np.int64))
            elif start < stop:
                self._make_room(start, 2 * len(self._out))

    def _by_blocks(self, start: int, stop: int) -> None:
        if start == stop:
            return
        mill = self._mill
        state = new_block_state(mill._arrays)
        rows = np.empty((BLOCK, 256), np.int32)
        counts = np.empty(BLOCK, np.int64)
        while start < stop:
            end = min(stop, start + BLOCK)
            seen = match_block(
                mill._arrays, mill._views, state, self._events, start, end, rows, counts
            )
            if counts.max() > rows.shape[1]:
                rows = np.empty((BLOCK, int(counts.max()) * 5 // 4), np.int32)
                continue
            mill._candidates += int(seen)
            needed = int(self._offsets[start] + counts.sum())
            if needed > len(self._out):
                self._make_room(start, needed)
            _append_rows(rows, counts, start, end, self._offsets, self._out)
            start = end

    def _make_room(self, done: int, least: int) -> None:
        """A wider output, by what the events so far took."""
        n_found = int(self._offsets[done])
        expected = int(1.1 * n_found / max(1, done) * self._events.n_events)
        grown = np.empty(max(least, expected), np.int32)
        grown[:n_found] = self._out[:n_found]
        self._out = grown


@kernel
def _append_rows(
    rows: np.ndarray,
    counts: np.ndarray,
    start: int,
    stop: int,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> None:
    for e in range(start, stop):
        at, n = out_offsets[e], counts[e - start]
        out[at : at + n] = rows[e - start, :n]
        out_offsets[e + 1] = at + n
