"""The index `mill`: built from a table, asked with batches of events.

A batch is matched one event at a time, or 64 at a time after they have been sorted (`alike.py`),
whichever was quicker on the events themselves: some blocks of a large batch are matched in each
way, against the clock, and the outcome serves for the next events. `kernel="one"` or
`kernel="many"` decides it beforehand.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any, ClassVar

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch, IntervalEvents
from matchmill.errors import InputError
from matchmill.index.base import ClauseMatches, IndexStats, Statistics
from matchmill.index.mill.arrays import N_CLAUSES, MillArrays, mill_places, views_of
from matchmill.index.mill.build.build_arrays import build_arrays
from matchmill.index.mill.match.batch_order import in_batch_order, sorted_alike, telling_dimensions
from matchmill.index.mill.match.block import BLOCK, BlockState, match_block, new_block_state
from matchmill.index.mill.match.clause_costs import clause_costs
from matchmill.index.mill.match.intervals import match_wide_events, new_wide_state
from matchmill.index.mill.match.scratch import Scratch, single_scratch
from matchmill.kernels.intrinsics import places_of

__all__ = ["KERNELS", "Mill"]

KERNELS = ("auto", "one", "many")
_TRIED_EVERY = 1 << 14  # events after which both ways are tried again
_TRIALS = 4  # of each way
_ENOUGH_TO_TELL = 2 * BLOCK  # events of a batch that say by which dimensions to sort
_WORTH_TRYING = 16 * BLOCK  # a smaller batch goes by what is known, or one at a time: the other
# way has its own kernels, which take seconds to compile on the first use of all


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
        self._places = mill_places(arrays, self._views)
        self._build_seconds = build_seconds
        self._candidates = 0
        self._kernel = kernel
        self._many_is_quicker = False
        self._events_until_trial = 0
        self._matches_each = 0.0  # of late
        self._telling = np.empty(0, np.int64)  # dimensions to sort events by
        self._events_until_telling = 0
        self._scratch: list[Scratch] = []  # of threads that come again
        self._block_states: list[BlockState] = []

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

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        n_events = events.n_events
        self._events_until_trial -= n_events
        self._events_until_telling -= n_events
        is_trial = (
            self._kernel == "auto" and n_events >= _WORTH_TRYING and self._events_until_trial <= 0
        )
        by_blocks = self._kernel == "many" or (
            self._kernel == "auto" and self._many_is_quicker and n_events >= BLOCK // 2
        )
        if not (is_trial or by_blocks):
            run = _Run(self, events)
            run.match(0, n_events, by_blocks=False)
            return run.matches()
        if is_trial or (self._events_until_telling <= 0 and n_events >= _ENOUGH_TO_TELL):
            self._events_until_telling = _TRIED_EVERY
            self._telling = telling_dimensions(self._arrays, self._places, events)
        order, events = sorted_alike(self._places, self._telling, events)
        run = _Run(self, events)
        if is_trial:
            self._events_until_trial = _TRIED_EVERY
            run.try_both()
        else:
            run.match(0, n_events, by_blocks=True)
        return in_batch_order(order, run.matches())

    def match_pairs(self, pairs: bytes) -> np.ndarray:
        """The clauses that hold for one event, given as dimension, key, dimension, key, … in 64
        bits each: the quickest way for a single event. The array is the caller's."""
        try:
            scratch = self._scratch.pop()
        except IndexError:
            scratch = single_scratch(self._arrays, self._places, 64)
        if len(pairs) >> 4 > scratch.n_pairs:
            scratch = single_scratch(self._arrays, self._places, len(pairs) >> 3)
        ids, seen = scratch.match_pairs(pairs)
        self._candidates += seen
        self._scratch.append(scratch)
        known = self._arrays.clause_ids
        return known[ids] if len(known) else ids

    def match_intervals(self, events: IntervalEvents) -> ClauseMatches:
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
        return ClauseMatches(offsets, known[ids] if len(known) else ids)

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


class _Run:
    """One batch on its way: the ids found so far, and the scratch of this thread."""

    def __init__(self, mill: Mill, events: EventBatch) -> None:
        self._mill = mill
        self._events = events
        guess = int(mill._matches_each * events.n_events * 1.1)
        n_out = max(1024, 16 * events.n_events, guess)
        self._scratch = Scratch(mill._arrays, mill._places, events, n_out)
        self._n_growths = 0  # how often there was no room for ids

    def matches(self) -> ClauseMatches:
        """What was found for all events."""
        mill, offsets = self._mill, self._scratch.offsets
        ids, known = self._scratch.ids[: offsets[-1]], mill._arrays.clause_ids
        if self._events.n_events >= BLOCK:
            mill._matches_each = len(ids) / self._events.n_events
        return ClauseMatches(offsets, known[ids] if len(known) else ids)

    def try_both(self) -> None:
        """One of two neighbouring blocks in this way, one in the other, in some places of the
        batch; all others as was quicker. After a block each, in which kernels may be compiled."""
        mill, n_blocks = self._mill, self._events.n_events // BLOCK
        self.match(0, BLOCK, by_blocks=True)
        self.match(BLOCK, 2 * BLOCK, by_blocks=False)
        seconds: tuple[list[float], list[float]] = ([], [])
        done = 2
        n_trials = min(_TRIALS, (n_blocks - 2) // 2)
        for trial in range(n_trials):
            start = 2 + (n_blocks - 2) * trial // n_trials
            self.match(done * BLOCK, start * BLOCK, by_blocks=mill._many_is_quicker)
            for block, by_blocks in ((start, trial & 1), (start + 1, 1 - (trial & 1))):
                seconds[by_blocks].append(self._timed(block * BLOCK, by_blocks=bool(by_blocks)))
            done = start + 2
        mill._many_is_quicker = median(seconds[1]) < median(seconds[0])
        self.match(done * BLOCK, self._events.n_events, by_blocks=mill._many_is_quicker)

    def _timed(self, start: int, *, by_blocks: bool) -> float:
        """Seconds for one block; if memory had to grow meanwhile, those of a second time."""
        n_growths = -1
        while n_growths != self._n_growths:
            n_growths = self._n_growths
            began = time.perf_counter()
            self.match(start, start + BLOCK, by_blocks=by_blocks)
            seconds = time.perf_counter() - began
        return seconds

    def match(self, start: int, stop: int, *, by_blocks: bool) -> None:
        """Append the ids of the next events, which are matched one at a time or 64."""
        if by_blocks:
            self._by_blocks(start, stop)
        else:
            room = len(self._scratch.ids)
            self._mill._candidates += self._scratch.match(start, stop)
            self._n_growths += len(self._scratch.ids) > room

    def _by_blocks(self, start: int, stop: int) -> None:
        mill, scratch = self._mill, self._scratch
        try:
            state = mill._block_states.pop()
        except IndexError:
            state = new_block_state(mill._arrays)
        places = places_of(*state)
        while start < stop:
            end = min(stop, start + BLOCK)
            width = state.found.shape[1]
            most, n_found, seen = match_block(
                mill._places, places, scratch.places, start, end, width
            )
            needed = int(scratch.offsets[start]) + n_found
            if most > width:
                state = state._replace(found=np.empty((BLOCK, most * 5 // 4), np.int32))
                places = places_of(*state)
                self._n_growths += 1
            elif needed > len(scratch.ids):
                scratch.make_room(start, needed)
                self._n_growths += 1
            else:
                mill._candidates += seen
                start = end
        mill._block_states.append(state)
