"""Sorting inside kernels. NumPy's sort there takes seconds to compile, each time it is used."""

from __future__ import annotations

import numpy as np

from matchmill._jit import int64, kernel

__all__ = ["sort_by_key", "sort_rows"]

_SHORT = 24
_DIGIT = 11


@kernel
def sort_by_key(keys: np.ndarray, values: np.ndarray) -> None:
    """Sort keys ascending, in place and stably, and their values along: merging runs."""
    n = len(keys)
    for start in range(0, n, _SHORT):
        for k in range(start + 1, min(n, start + _SHORT)):
            key, value = keys[k], values[k]
            j = k
            while j > start and keys[j - 1] > key:
                keys[j], values[j] = keys[j - 1], values[j - 1]
                j -= 1
            keys[j], values[j] = key, value
    if n <= _SHORT:
        return
    from_keys, from_values = keys, values
    to_keys, to_values = np.empty_like(keys), np.empty_like(values)
    width = _SHORT
    while width < n:
        for start in range(0, n, 2 * width):
            a, middle, stop = start, min(n, start + width), min(n, start + 2 * width)
            b = middle
            for k in range(start, stop):
                if a < middle and (b >= stop or from_keys[a] <= from_keys[b]):
                    to_keys[k], to_values[k] = from_keys[a], from_values[a]
                    a += 1
                else:
                    to_keys[k], to_values[k] = from_keys[b], from_values[b]
                    b += 1
        from_keys, from_values, to_keys, to_values = to_keys, to_values, from_keys, from_values
        width *= 2
    for k in range(n):
        keys[k], values[k] = from_keys[k], from_values[k]


@kernel
def sort_rows(rows: np.ndarray, scratch: np.ndarray, start: int, stop: int) -> None:
    """Sort rows[start:stop], numbers from 0 to 2**33, in place: by insertion if they are few, else
    by digits. `scratch` is as long as they are many."""
    n = stop - start
    if n <= 2 * _SHORT:
        for k in range(start + 1, stop):
            row = rows[k]
            j = k
            while j > start and rows[j - 1] > row:
                rows[j] = rows[j - 1]
                j -= 1
            rows[j] = row
        return
    top = int64(0)
    for k in range(start, stop):
        top |= rows[k]
    counts = np.empty(1 << _DIGIT, np.int64)
    shift = 0
    while top >> shift > 0:
        counts[:] = 0
        for k in range(start, stop):
            counts[(rows[k] >> shift) & 0x7FF] += 1
        total = int64(0)
        for digit in range(1 << _DIGIT):
            here = counts[digit]
            counts[digit] = total
            total += here
        for k in range(start, stop):
            digit = (rows[k] >> shift) & 0x7FF
            scratch[counts[digit]] = rows[k]
            counts[digit] += 1
        for k in range(n):
            rows[start + k] = scratch[k]
        shift += _DIGIT
