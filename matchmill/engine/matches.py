"""The result of matching a batch: for each event a set of subscription ids.

event i    numbers[offsets[i] … offsets[i + 1]], turned into ids when asked for
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

__all__ = ["Matches"]


class Matches:
    """Matches of a batch. `matches[i]` is the set of ids of event i; `to_arrow()` has all pairs."""

    __slots__ = ("_ids", "numbers", "offsets", "rejected")

    def __init__(
        self,
        offsets: np.ndarray,
        numbers: np.ndarray,
        rejected: dict[int, str],
        ids: Callable[[np.ndarray], pa.Array],
    ) -> None:
        self.offsets = offsets
        self.numbers = numbers
        self.rejected = rejected
        self._ids = ids

    @property
    def n_events(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> np.ndarray:
        """How many subscriptions each event satisfies."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        """How many (event, subscription) pairs there are."""
        return len(self.numbers)

    def __getitem__(self, event: int) -> set[str | int]:
        if not -self.n_events <= event < self.n_events:
            raise IndexError(f"there are {self.n_events} events, {event} is not one of them")
        event %= self.n_events
        numbers = self.numbers[self.offsets[event] : self.offsets[event + 1]]
        return set(self._ids(numbers).to_pylist())

    def __iter__(self) -> Iterator[set[str | int]]:
        return (self[event] for event in range(self.n_events))

    def ids(self) -> pa.Array:
        """The subscription of each pair, event after event."""
        return self._ids(self.numbers)

    def to_arrow(self) -> pa.Table:
        """A table of pairs: `event` (counted from 0) and `subscription`."""
        events = np.repeat(np.arange(self.n_events), self.counts)
        return pa.table({"event": pa.array(events), "subscription": self.ids()})

    def to_pandas(self) -> object:
        """The same as a pandas frame."""
        return self.to_arrow().to_pandas()

    def __repr__(self) -> str:
        rejected = f", {len(self.rejected):,} rejected" if self.rejected else ""
        return f"<Matches: {self.n_events:,} events{rejected}, {len(self):,} matches>"
