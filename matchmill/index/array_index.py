"""What indexes of one kernel have in common: arrays, addresses, and batches that need more room.

    index    addresses of its arrays
    run      one batch while it is matched, or single events one after the other: a *state* of
             arrays that kernels write to, its addresses, and room for the ids that are found

A state has the fields event_offsets, event_dimensions, event_keys, out_offsets and out. A subclass
declares its arrays and its state, and calls its kernel.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import ClauseMatches, IndexStats
from matchmill.kernels.addresses import addresses_of

__all__ = ["ArrayIndex", "narrow_ids"]

_FIRST_PAIRS = 64  # of a single event
_FIRST_IDS = 256
_LEAST_ROOM = 1024
_NARROW = 1 << 31


def narrow_ids(clause_ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what a kernel writes, as int32, and the ids that this stands for.

    The kernel writes ids if they fit, and the second array is empty; otherwise it writes places in
    the second array. -1 is padding.
    """
    if int(clause_ids.max(initial=0)) < _NARROW:
        return clause_ids.astype(np.int32), np.empty(0, np.int64)
    places = np.where(clause_ids >= 0, np.arange(len(clause_ids)), -1)
    return places.astype(np.int32), clause_ids.astype(np.int64)


class ArrayIndex:
    """An index of flat arrays that one kernel matches."""

    name: ClassVar[str]
    declared: ClassVar[Any]  # the NamedTuple of its arrays

    def __init__(self, arrays: Any, build_seconds: float = 0.0) -> None:
        self.check(arrays)
        self._arrays = arrays
        self._addresses = addresses_of(arrays)
        self._build_seconds = build_seconds
        self._candidates = 0
        self._matches_per_event = 0.0  # recently
        self._single: list[_Run] = []  # for single events, not in use at the moment

    # what a subclass says

    @staticmethod
    def check(arrays: Any, /) -> None:
        """Check what was built or opened; InputError if something does not fit."""
        raise NotImplementedError

    def new_state(self, events: EventBatch, n_out: int) -> Any:
        """Return the state of a batch of events, with room for `n_out` ids."""
        raise NotImplementedError

    @staticmethod
    def match_events(
        index: Any, state: Any, pairs: bytes, start: int, stop: int, /
    ) -> tuple[int, int]:
        """Match events; return the first without room, or `stop`, and the clauses looked at."""
        raise NotImplementedError

    # what it gets

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Return the clauses that hold for each event."""
        room = int(1.1 * self._matches_per_event * events.n_events)
        run = _Run(self, events, max(_LEAST_ROOM, 16 * events.n_events, room))
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
            run = self._single_run(_FIRST_PAIRS)
        if len(pairs) >> 4 > run.n_pairs:
            run = self._single_run(len(pairs) >> 3)
        found = run.match_one(pairs)
        self._single.append(run)
        return found

    def _single_run(self, n_pairs: int) -> _Run:
        events = EventBatch(
            np.zeros(2, np.int64), np.empty(n_pairs, np.int32), np.empty(n_pairs, np.int64)
        )
        return _Run(self, events, _FIRST_IDS)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays, to be saved and mapped."""
        arrays: dict[str, np.ndarray] = self._arrays._asdict()
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        """Return an index that was saved."""
        return cls(cls.declared(**arrays))

    def clause_ids(self) -> np.ndarray:
        """Return the ids of all clauses, ascending."""
        ids = self._arrays.ids[self._arrays.ids >= 0]
        known = self._arrays.clause_ids
        return np.sort(known[ids] if len(known) else ids.astype(np.int64))

    def stats(self) -> IndexStats:
        """Return figures of the index."""
        n_bytes = sum(a.nbytes for a in self._arrays)
        n_clauses = int((self._arrays.ids >= 0).sum())
        return IndexStats(n_clauses, n_bytes, self._build_seconds, self._candidates)


class _Run:
    """The state of one thread: a batch while it is matched, or one event after the other."""

    def __init__(self, index: ArrayIndex, events: EventBatch, n_out: int) -> None:
        self._index = index
        self._state = index.new_state(events, n_out)
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
        done, seen = index.match_events(index._addresses, self._addresses, pairs, 0, n_events)
        n_seen = seen
        while done < n_events:
            self._make_room(done, n_events)
            done, seen = index.match_events(index._addresses, self._addresses, b"", done, n_events)
            n_seen += seen
        index._candidates += n_seen
        offsets = self._state.out_offsets
        ids, known = self._state.out[: offsets[n_events]], index._arrays.clause_ids
        return ClauseMatches(offsets, known[ids] if len(known) else ids)

    def _make_room(self, done: int, n_events: int) -> None:
        """Make room for more ids, by what the events so far took."""
        out = self._state.out
        n_found = int(self._state.out_offsets[done])
        expected = int(1.1 * n_found / max(1, done) * n_events)
        grown = np.empty(max(2 * len(out) + _LEAST_ROOM, expected), out.dtype)
        grown[:n_found] = out[:n_found]
        self._state = self._state._replace(out=grown)
        self._addresses = addresses_of(self._state)
