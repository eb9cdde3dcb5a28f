"""Encoded events as flat arrays.

An `EventBatch` holds (dimension, key) pairs for each event:

    event i    dimensions[offsets[i] … offsets[i + 1]], keys likewise

Each dimension occurs at most once per event; a dimension that does not occur has key 0 (absent).
An index ignores pairs on dimensions that it does not know.

`IntervalEvents` are events that are expressions themselves: for each dimension they hold the
intervals of keys that the event allows.

    event i    pairs offsets[i] … offsets[i + 1]
    pair p     dimensions[p]; keys lows[k] … highs[k] for k in interval_offsets[p] … [p + 1]

A clause matches if each of its predicates holds for some key that the event allows on its
dimension; a dimension that does not occur allows key 0 (absent) alone. Each dimension occurs at
most once per event; intervals ascend and do not touch. An event of points is an ordinary event.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.kernels.jit import kernel

__all__ = ["EventBatch", "IntervalEvents", "as_intervals", "from_pairs"]


class EventBatch(NamedTuple):
    """Events that have one key per dimension."""

    offsets: np.ndarray  # int64
    dimensions: np.ndarray  # int32
    keys: np.ndarray  # int64

    @property
    def n_events(self) -> int:
        """The number of events."""
        return len(self.offsets) - 1

    def slice(self, start: int, stop: int) -> EventBatch:
        """Return the events from start to stop, without the last."""
        offsets = self.offsets[start : stop + 1]
        first, last = offsets[0], offsets[-1]
        return EventBatch(offsets - first, self.dimensions[first:last], self.keys[first:last])


class IntervalEvents(NamedTuple):
    """Events that allow intervals of keys."""

    offsets: np.ndarray  # int64
    dimensions: np.ndarray  # int32
    interval_offsets: np.ndarray  # int64
    lows: np.ndarray  # int64
    highs: np.ndarray  # int64

    @property
    def n_events(self) -> int:
        """The number of events."""
        return len(self.offsets) - 1


def as_intervals(events: EventBatch) -> IntervalEvents:
    """Return ordinary events as events that allow one key per dimension."""
    places = np.arange(len(events.keys) + 1)
    return IntervalEvents(events.offsets, events.dimensions, places, events.keys, events.keys)


def from_pairs(
    n_events: int, rows: list[np.ndarray], dimensions: list[np.ndarray], keys: list[np.ndarray]
) -> EventBatch:
    """Return a batch of pairs, sorted by event. Each list holds one array per source of pairs."""
    if not rows:
        return EventBatch(
            np.zeros(n_events + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.int64)
        )
    all_rows = np.concatenate(rows)
    out_dimensions = np.empty(len(all_rows), np.int32)
    out_keys = np.empty(len(all_rows), np.int64)
    offsets = _sort_pairs(
        n_events,
        all_rows,
        np.concatenate(dimensions),
        np.concatenate(keys),
        out_dimensions,
        out_keys,
    )
    return EventBatch(offsets, out_dimensions, out_keys)


@kernel
def _sort_pairs(
    n_events: int,
    rows: np.ndarray,
    dimensions: np.ndarray,
    keys: np.ndarray,
    out_dimensions: np.ndarray,
    out_keys: np.ndarray,
) -> np.ndarray:
    offsets = np.zeros(n_events + 1, np.int64)
    for r in rows:
        offsets[r + 1] += 1
    for i in range(n_events):
        offsets[i + 1] += offsets[i]
    cursor = offsets[:-1].copy()
    for k in range(len(rows)):
        at = cursor[rows[k]]
        cursor[rows[k]] += 1
        out_dimensions[at] = dimensions[k]
        out_keys[at] = keys[k]
    return offsets
