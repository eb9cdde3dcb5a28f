"""The arrays of `EventState` for one batch of events; some of them grow."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchmill.encoding.event_batch import EventBatch
from matchmill.index.mill.arrays import MillArrays
from matchmill.index.mill.match.event_state import new_event_state
from matchmill.index.mill.match.single import match_events
from matchmill.kernels.addresses import addresses_of

__all__ = ["Scratch", "single_scratch"]


class Scratch:
    """The events of a batch, and the ids that were found so far."""

    def __init__(self, mill: MillArrays, addresses: Any, events: EventBatch, n_out: int) -> None:
        """Take the events of a batch.

        `addresses` are those of `mill`, `n_out` is the number of ids that are expected.
        """
        self._mill = addresses
        offsets = np.zeros(events.n_events + 1, np.int64)
        self._state = new_event_state(mill, events, offsets, np.empty(n_out, np.int32))
        self.addresses = addresses_of(self._state)

    @property
    def offsets(self) -> np.ndarray:
        """Where the ids of each event begin."""
        return self._state.out_offsets

    @property
    def ids(self) -> np.ndarray:
        """The ids that were found, and room for more."""
        return self._state.out

    @property
    def n_pairs(self) -> int:
        """The number of pairs that there is room for."""
        return len(self._state.event_keys)

    def match(self, start: int, stop: int) -> int:
        """Append the ids of some events; return the number of entries looked at."""
        return self._match(b"", start, stop)

    def match_pairs(self, pairs: bytes) -> tuple[np.ndarray, int]:
        """Return the ids of one event, and the number of entries looked at."""
        if not pairs:
            self._state.event_offsets[1] = 0
        seen = self._match(pairs, 0, 1)
        return self._state.out[: self._state.out_offsets[1]].copy(), seen

    def _match(self, pairs: bytes, start: int, stop: int) -> int:
        start, n_slots, n_seen = match_events(self._mill, self.addresses, pairs, start, stop)
        while start < stop:
            if n_slots > len(self._state.visits):
                self._replace(visits=np.empty(2 * n_slots, np.int64))
            else:
                self.make_room(start, 2 * len(self._state.out))
            start, n_slots, seen = match_events(self._mill, self.addresses, b"", start, stop)
            n_seen += seen
        return int(n_seen)

    def make_room(self, done: int, least: int) -> None:
        """Make room for more ids, by what the events so far took."""
        offsets = self._state.out_offsets
        n_found = int(offsets[done])
        expected = int(1.1 * n_found / max(1, done) * (len(offsets) - 1))
        grown = np.empty(max(least, expected), np.int32)
        grown[:n_found] = self._state.out[:n_found]
        self._replace(out=grown)

    def _replace(self, **arrays: np.ndarray) -> None:
        self._state = self._state._replace(**arrays)
        self.addresses = addresses_of(self._state)


def single_scratch(mill: MillArrays, addresses: Any, n_pairs: int) -> Scratch:
    """Return scratch to be used again and again, for single events with up to n_pairs pairs."""
    events = EventBatch(
        np.zeros(2, np.int64), np.empty(n_pairs, np.int32), np.empty(n_pairs, np.int64)
    )
    return Scratch(mill, addresses, events, 256)
