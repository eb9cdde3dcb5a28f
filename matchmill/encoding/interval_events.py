"""Events that are expressions themselves: for each dimension the intervals of keys they allow.

    event i    pairs offsets[i] … offsets[i + 1]
    pair p     dimensions[p]; keys lows[k] … highs[k] for k in interval_offsets[p] … [p + 1]

A clause matches if each of its predicates holds for some key that the event allows on its
dimension; a dimension that does not occur allows key 0 (absent) alone. Each dimension occurs at
most once an event; intervals ascend and do not touch. An event of points is an ordinary event.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.event_batch import EventBatch

__all__ = ["IntervalEvents", "as_intervals"]


class IntervalEvents(NamedTuple):
    offsets: np.ndarray  # int64
    dimensions: np.ndarray  # int32
    interval_offsets: np.ndarray  # int64
    lows: np.ndarray  # int64
    highs: np.ndarray  # int64

    @property
    def n_events(self) -> int:
        return len(self.offsets) - 1


def as_intervals(events: EventBatch) -> IntervalEvents:
    """Ordinary events in this form."""
    places = np.arange(len(events.keys) + 1)
    return IntervalEvents(events.offsets, events.dimensions, places, events.keys, events.keys)
