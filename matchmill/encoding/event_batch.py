"""Events as flat arrays: for each event its (dimension, key) pairs.

    event i    dimensions[offsets[i] … offsets[i + 1]], keys likewise

Each dimension occurs at most once an event; a dimension that does not occur has key 0 (absent).
Pairs on dimensions that an index has never heard of are to be ignored by it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.kernels.jit import kernel

__all__ = ["EventBatch", "from_pairs"]


class EventBatch(NamedTuple):
    offsets: np.ndarray  # int64
    dimensions: np.ndarray  # int32
    keys: np.ndarray  # int64

    @property
    def n_events(self) -> int:
        return len(self.offsets) - 1

    def slice(self, start: int, stop: int) -> EventBatch:
        """Some events in a row."""
        offsets = self.offsets[start : stop + 1]
        first, last = offsets[0], offsets[-1]
        return EventBatch(offsets - first, self.dimensions[first:last], self.keys[first:last])


def from_pairs(
    n_events: int, rows: list[np.ndarray], dimensions: list[np.ndarray], keys: list[np.ndarray]
) -> EventBatch:
    """Sort pairs by event. Each list holds one array per source of pairs."""
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
