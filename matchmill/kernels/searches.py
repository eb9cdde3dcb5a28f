"""Binary searches for kernels. Python code uses `np.searchsorted`."""

from __future__ import annotations

import numpy as np

from matchmill.kernels.jit import kernel

__all__ = ["first_above", "first_at_least"]


@kernel
def first_at_least(values: np.ndarray, wanted: int, start: int, stop: int) -> int:
    """Return the first position in values[start:stop], ascending, that is `wanted` or more."""
    low, high = start, stop
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def first_above(values: np.ndarray, wanted: int, start: int, stop: int) -> int:
    """Return the first position in values[start:stop], ascending, that is above `wanted`."""
    low, high = start, stop
    while low < high:
        middle = (low + high) >> 1
        if values[middle] <= wanted:
            low = middle + 1
        else:
            high = middle
    return low
