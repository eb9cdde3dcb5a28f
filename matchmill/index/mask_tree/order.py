"""The order of clauses in a mask tree: runs of 64, 4,096, … clauses are small boxes.

A run is divided at a multiple of the size of the blocks below it, by the low or the high ends of
one dimension: those whose two halves an event visits least often. That is estimated on a sample of
the run, as the product of the extents of its box. Ends are positions among the buckets
(`codes.positions`), so equal distances are about equally likely.
"""

from __future__ import annotations

import numpy as np

from matchmill.kernels.jit import kernel

__all__ = ["order_boxes"]

_FAN_OUT = 64
_SAMPLE = 256  # of a large run
_SMALL_SAMPLE = 64
_LARGE = 1 << 14
_WIDTH = 256.0  # of all positions


def order_boxes(ends: np.ndarray) -> np.ndarray:
    """Return the clauses in the order of the leaves.

    Row i of `ends` has the low ends of clause i on all tree dimensions, then its high ends.
    """
    order = np.arange(len(ends), dtype=np.int64)
    _order(ends, order, np.empty((_SAMPLE, ends.shape[1]), np.float32))
    return order


@kernel
def _order(ends: np.ndarray, order: np.ndarray, sample: np.ndarray) -> None:
    starts = np.empty(128, np.int64)
    stops = np.empty(128, np.int64)
    starts[0], stops[0] = 0, len(order)
    n_runs = 1
    while n_runs:
        n_runs -= 1
        start, stop = starts[n_runs], stops[n_runs]
        n = stop - start
        if n <= _FAN_OUT:
            continue
        unit = _FAN_OUT
        while unit * _FAN_OUT < n:
            unit *= _FAN_OUT
        middle = start + (n + unit - 1) // unit // 2 * unit
        column = _best_column(ends, order, start, stop, sample)
        _select(ends, column, order, start, stop, middle)
        starts[n_runs], stops[n_runs] = start, middle
        starts[n_runs + 1], stops[n_runs + 1] = middle, stop
        n_runs += 2


@kernel
def _best_column(
    ends: np.ndarray, order: np.ndarray, start: int, stop: int, sample: np.ndarray
) -> int:
    n = min(stop - start, _SAMPLE if stop - start >= _LARGE else _SMALL_SAMPLE)
    n_columns = ends.shape[1]
    for i in range(n):
        row = order[start + i * (stop - start) // n]
        for column in range(n_columns):
            sample[i, column] = ends[row, column]
    best, least = 0, np.inf
    for column in range(n_columns):
        by_value = np.argsort(sample[:n, column])
        middle = n // 2
        if sample[by_value[0], column] == sample[by_value[n - 1], column]:
            continue
        cost = _extent(sample, by_value[:middle]) + _extent(sample, by_value[middle:])
        if cost < least:
            best, least = column, cost
    return best


@kernel
def _extent(sample: np.ndarray, rows: np.ndarray) -> float:
    """Return the share of events that visit the box of some rows."""
    n_dimensions = sample.shape[1] // 2
    share = 1.0
    for j in range(n_dimensions):
        low, high = sample[rows[0], j], sample[rows[0], n_dimensions + j]
        for row in rows:
            low = min(low, sample[row, j])
            high = max(high, sample[row, n_dimensions + j])
        share *= (high - low + 1.0) / _WIDTH
    return share


@kernel
def _select(
    ends: np.ndarray, column: int, order: np.ndarray, start: int, stop: int, middle: int
) -> None:
    """Move the rows with the least ends before `middle`, all others after it."""
    low, high = start, stop - 1
    while low < high:
        pivot = _median(
            ends[order[low], column],
            ends[order[(low + high) >> 1], column],
            ends[order[high], column],
        )
        i, j = low, high
        while i <= j:
            while ends[order[i], column] < pivot:
                i += 1
            while ends[order[j], column] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@kernel
def _median(a: float, b: float, c: float) -> float:
    return max(min(a, b), min(max(a, b), c))
