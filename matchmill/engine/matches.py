"""The result of matching a batch: for each event a set of subscription ids.

event i    numbers[offsets[i] … offsets[i + 1]], turned into ids when asked for
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from matchmill.kernels.jit import kernel
from matchmill.kernels.sorting import sort_rows

__all__ = ["Matches", "distinct_rows"]


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


def distinct_rows(offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each row once an event, ascending."""
    rows = rows.astype(np.int64)  # a copy: sorted in place
    out_offsets = np.empty(len(offsets), np.int64)
    n = _distinct(offsets, rows, out_offsets)
    return out_offsets, rows[:n]


@kernel
def _distinct(offsets: np.ndarray, rows: np.ndarray, out_offsets: np.ndarray) -> int:
    scratch = np.empty(64, np.int64)
    n = 0
    out_offsets[0] = 0
    for e in range(len(offsets) - 1):
        start, stop = offsets[e], offsets[e + 1]
        is_sorted = True
        for k in range(start + 1, stop):
            if rows[k] <= rows[k - 1]:
                is_sorted = False
                break
        if not is_sorted:
            if stop - start > len(scratch):
                scratch = np.empty(2 * (stop - start), np.int64)
            sort_rows(rows, scratch, start, stop)
        for k in range(start, stop):
            if k == start or rows[k] != rows[n - 1]:
                rows[n] = rows[k]
                n += 1
        out_offsets[e + 1] = n
    return n
