"""Batches that leave a worker have a limited number of bytes, whatever the ids and the matches.

A batch of events can have any number of matches, and each repeats the id of its event. Arrow's
offsets have 32 bits, and a worker holds its batches in memory: so they are cut by their bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["MOST_BYTES", "byte_sizes", "cuts", "pair_cuts"]

MOST_BYTES = 32 << 20  # of a batch; one row may be larger


def byte_sizes(array: pa.Array) -> np.ndarray:
    """Return how many bytes each slot takes; of nested values each counts the mean."""
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind):
        lengths = pc.binary_length(array).fill_null(0)
        sizes: np.ndarray = lengths.to_numpy(zero_copy_only=False).astype(np.int64) + 4
        return sizes
    mean = -(-array.nbytes // len(array)) if len(array) else 0
    return np.full(len(array), mean, np.int64)


def cuts(sizes: np.ndarray, most: int) -> list[int]:
    """Return the bounds of ranges of at most so many bytes; each has at least one slot."""
    bounds, ends = [0], np.cumsum(sizes)
    while bounds[-1] < len(sizes):
        start = bounds[-1]
        used = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, used + most, side="right"))
        bounds.append(min(len(sizes), max(start + 1, stop)))
    return bounds


def pair_cuts(
    events: np.ndarray, event_sizes: np.ndarray, ids: pa.Array, most: int = MOST_BYTES
) -> Iterator[tuple[int, int]]:
    """Divide pairs of events and subscription ids into ranges of at most so many bytes."""
    if not len(events):
        return
    if len(events) * int(event_sizes.max()) + ids.nbytes <= most:
        yield 0, len(events)
        return
    bounds = cuts(event_sizes[events] + byte_sizes(ids), most)
    yield from itertools.pairwise(bounds)
