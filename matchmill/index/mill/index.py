"""The index `mill`: built from a table, asked with batches of events.

A batch is matched one event at a time, or 64 at a time after they have been sorted
(`match/batch_order.py`), whichever was quicker on the events themselves: some blocks of a large
batch are matched in each way, against the clock, or small batches as a whole
(`small_batches.py`), and the outcome serves for the next events. `kernel="one"` or `kernel="many"`
decides it in advance.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any, ClassVar

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch, IntervalEvents
from matchmill.index.base import ClauseMatches, IndexStats, Statistics
from matchmill.index.match_buffer import collect_matches
from matchmill.index.mill.arrays import N_CLAUSES, MillArrays, check_mill
from matchmill.index.mill.build.build_arrays import build_arrays
from matchmill.index.mill.match.batch_order import (
    find_sort_dimensions,
    in_batch_order,
    sort_events,
)
from matchmill.index.mill.match.block import BLOCK, BlockState, new_block_state
from matchmill.index.mill.match.block_walk import match_block
from matchmill.index.mill.match.clause_costs import clause_costs
from matchmill.index.mill.match.intervals import match_interval_events, new_interval_state
from matchmill.index.mill.match.scratch import Scratch, single_scratch
from matchmill.index.mill.warm import read_only, warm_workload
from matchmill.index.options import OPTIONS
from matchmill.index.small_batches import SmallBatches
from matchmill.kernels.addresses import addresses_of

__all__ = ["KERNELS", "Mill"]

(_KERNEL,) = OPTIONS["mill"]
KERNELS = _KERNEL.choices
_TRIED_EVERY = 1 << 14  # events after which both ways are tried again
_TRIALS = 4  # of each way
_ENOUGH_TO_SORT = 2 * BLOCK  # events of a batch that show by which dimensions to sort
# Until so many events have come in batches, they are matched one at a time: 64 at a time has its
# own kernels, which take seconds to compile when they are first used.
_WORTH_TRYING = 16 * BLOCK
_SMALL = 8 * BLOCK  # a batch of fewer is timed as a whole


class Mill:
    """The default index: shared truth tables, clauses filed under their cheapest predicate."""

    name: ClassVar[str] = "mill"

    def __init__(
        self, arrays: MillArrays, build_seconds: float = 0.0, kernel: str = "auto"
    ) -> None:
        check_mill(arrays)
        # As of a file that is mapped: else kernels would be compiled for both.
        self._arrays = MillArrays(*map(read_only, arrays))
        self._addresses = addresses_of(arrays)
        self._build_seconds = build_seconds
        self._candidates = 0
        self.configure(kernel=kernel)
        self._many_is_quicker = False
        self._events_until_trial = _WORTH_TRYING
        self._small_batches = SmallBatches()
        self._matches_per_event = 0.0  # recently
        self._sort_dimensions = np.empty(0, np.int64)
        self._events_until_sorting = 0  # until sort dimensions are found again
        self._scratch: list[Scratch] = []  # not in use at the moment
        self._block_states: list[BlockState] = []

    def configure(self, *, kernel: str = "auto", **options: Any) -> None:
        """Choose between one event at a time, 64 at a time ("many"), or what is quicker."""
        _KERNEL.check(kernel)
        self.kernel = kernel

    @classmethod
    def build(
        cls,
        table: ConjunctionTable,
        statistics: Statistics | None = None,
        *,
        kernel: str = "auto",
        **options: Any,
    ) -> Mill:
        """Build the index; `kernel` as in `configure`."""
        started = time.perf_counter()
        arrays = build_arrays(table, statistics)
        return cls(arrays, time.perf_counter() - started, kernel)

    @classmethod
    def warm(cls) -> None:
        """Compile all kernels that building and matching need."""
        work = warm_workload()
        saved = ConjunctionTable(*map(read_only, work.table))
        cls.build(saved)
        built = cls.build(work.table, work.statistics)
        built.match_batch(work.events)
        built.match_pairs(b"")
        built.clause_costs(work.events)
        built.match_intervals(work.intervals)

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Return the clauses that hold for each event."""
        n_events = events.n_events
        if self.kernel != "auto" or n_events < BLOCK // 2:
            return self._matched(events, by_blocks=self.kernel == "many")
        self._events_until_trial -= n_events
        if self._events_until_trial > 0:
            return self._matched(events, by_blocks=self._many_is_quicker)
        if n_events >= _SMALL:
            self._events_until_trial = _TRIED_EVERY
            return self._matched(events, by_blocks=True, is_trial=True)
        found, outcome = self._small_batches.match(
            n_events, lambda by_blocks: self._matched(events, by_blocks=by_blocks)
        )
        if outcome is not None:
            self._many_is_quicker = outcome
            self._events_until_trial = _TRIED_EVERY
        return found

    def _matched(
        self, events: EventBatch, *, by_blocks: bool, is_trial: bool = False
    ) -> ClauseMatches:
        """Match a batch one event or 64 at a time; in both ways if it is to be tried."""
        n_events = events.n_events
        self._events_until_sorting -= n_events
        if not by_blocks:
            run = _Run(self, events)
            run.match(0, n_events, by_blocks=False)
            return run.matches()
        if is_trial or (self._events_until_sorting <= 0 and n_events >= _ENOUGH_TO_SORT):
            self._events_until_sorting = _TRIED_EVERY
            self._sort_dimensions = find_sort_dimensions(self._arrays, self._addresses, events)
        order, events = sort_events(self._addresses, self._sort_dimensions, events)
        run = _Run(self, events)
        if is_trial:
            run.try_both()
        else:
            run.match(0, n_events, by_blocks=True)
        return in_batch_order(order, run.matches())

    def match_pairs(self, pairs: bytes) -> np.ndarray:
        """Return the clauses that hold for one event: the quickest way for a single one.

        `pairs` are 64-bit integers dimension, key, dimension, key, … The array is the caller's.
        """
        try:
            scratch = self._scratch.pop()
        except IndexError:
            scratch = single_scratch(self._arrays, self._addresses, 64)
        if len(pairs) >> 4 > scratch.n_pairs:
            scratch = single_scratch(self._arrays, self._addresses, len(pairs) >> 3)
        ids, seen = scratch.match_pairs(pairs)
        self._candidates += seen
        self._scratch.append(scratch)
        known = self._arrays.clause_ids
        return known[ids] if len(known) else ids

    def _with_clause_ids(self, found: ClauseMatches) -> ClauseMatches:
        """Look up the ids of clauses, if entries do not hold them."""
        known = self._arrays.clause_ids
        return found._replace(clause_ids=known[found.clause_ids]) if len(known) else found

    def match_intervals(self, events: IntervalEvents) -> ClauseMatches:
        """Return the clauses that events which allow intervals of keys can satisfy."""
        state = new_interval_state(self._arrays, events)

        def match_from(start: int, offsets: np.ndarray, out: np.ndarray) -> int:
            nonlocal state
            done, needed, seen = match_interval_events(
                self._arrays, state, events, start, offsets, out
            )
            self._candidates += seen
            if needed > len(state.found):
                state = state._replace(found=np.empty(2 * needed, np.int64))
            return int(done)

        n_clauses = int(self._arrays.sizes[N_CLAUSES])
        found = collect_matches(events.n_events, n_clauses, match_from)
        return self._with_clause_ids(found)

    def clause_costs(self, events: EventBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Count how often each clause is looked at, and how often it holds.

        Return the ids of all clauses, ascending; for how many of these events each was looked at;
        and for how many it held. Slower than matching, and not counted among the candidates.
        """
        return clause_costs(self._arrays, events)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays, to be saved and mapped."""
        return self._arrays._asdict()

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Mill:
        """Return an index that was saved."""
        return cls(MillArrays(**arrays))

    def stats(self) -> IndexStats:
        """Return figures of the index."""
        n_bytes = sum(a.nbytes for a in self._arrays)
        n_clauses = int(self._arrays.sizes[N_CLAUSES])
        return IndexStats(n_clauses, n_bytes, self._build_seconds, self._candidates)


class _Run:
    """One batch while it is being matched: the ids found so far, and the scratch of this thread."""

    def __init__(self, mill: Mill, events: EventBatch) -> None:
        self._mill = mill
        self._events = events
        guess = int(mill._matches_per_event * events.n_events * 1.1)
        n_out = max(1024, 16 * events.n_events, guess)
        self._scratch = Scratch(mill._arrays, mill._addresses, events, n_out)
        self._n_growths = 0  # how often there was no room for ids

    def matches(self) -> ClauseMatches:
        """Return what was found for all events."""
        mill, offsets = self._mill, self._scratch.offsets
        ids = self._scratch.ids[: offsets[-1]]
        if self._events.n_events >= BLOCK:
            mill._matches_per_event = len(ids) / self._events.n_events
        return mill._with_clause_ids(ClauseMatches(offsets, ids))

    def try_both(self) -> None:
        """Match all events, and find out which way is quicker.

        Some blocks of the batch are matched one event at a time and their neighbours 64 at a time,
        all others in the way that was quicker. Before that comes one block in each way, during
        which kernels may be compiled.
        """
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
        """Return the seconds for one block; if memory had to grow meanwhile, do it again."""
        n_growths = -1
        while n_growths != self._n_growths:
            n_growths = self._n_growths
            began = time.perf_counter()
            self.match(start, start + BLOCK, by_blocks=by_blocks)
            seconds = time.perf_counter() - began
        return seconds

    def match(self, start: int, stop: int, *, by_blocks: bool) -> None:
        """Append the ids of the next events, which are matched one or 64 at a time."""
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
        addresses = addresses_of(state)
        while start < stop:
            end = min(stop, start + BLOCK)
            most, n_found, seen = match_block(
                mill._addresses, addresses, scratch.addresses, start, end
            )
            needed = int(scratch.offsets[start]) + n_found
            if most > len(state.found) // BLOCK:
                state = state._replace(found=np.empty(BLOCK * (most * 5 // 4), np.int32))
                addresses = addresses_of(state)
                self._n_growths += 1
            elif needed > len(scratch.ids):
                scratch.make_room(start, needed)
                self._n_growths += 1
            else:
                mill._candidates += seen
                start = end
        mill._block_states.append(state)
