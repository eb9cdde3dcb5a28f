"""Sorting inside kernels. NumPy's sort there takes seconds to compile, each time it is used."""

from __future__ import annotations

import numpy as np

from matchmill.kernels.jit import int64, kernel

__all__ = ["sort_by_key", "sort_rows"]

_SHORT = 24
_DIGIT = 11


@kernel
def sort_by_key(keys: np.ndarray, values: np.ndarray, n: int) -> None:
    """Sort the first n keys ascending, in place and stably, and their values with them.

    A merge sort. The arrays are twice as long; their second halves are scratch.
    """
    for start in range(0, n, _SHORT):
        for k in range(start + 1, min(n, start + _SHORT)):
            key, value = keys[k], values[k]
            j = k
            while j > start and keys[j - 1] > key:
                keys[j], values[j] = keys[j - 1], values[j - 1]
                j -= 1
            keys[j], values[j] = key, value
    source, target = 0, n
    width = _SHORT
    while width < n:
        for start in range(source, source + n, 2 * width):
            end = source + n
            a, middle, stop = start, min(end, start + width), min(end, start + 2 * width)
            b = middle
            for k in range(target + start - source, target + stop - source):
                if a < middle and (b >= stop or keys[a] <= keys[b]):
                    keys[k], values[k] = keys[a], values[a]
                    a += 1
                else:
                    keys[k], values[k] = keys[b], values[b]
                    b += 1
        source, target = target, source
        width *= 2
    if source > 0:
        for k in range(n):
            keys[k], values[k] = keys[n + k], values[n + k]


@kernel
def sort_rows(rows: np.ndarray, scratch: np.ndarray, start: int, stop: int) -> None:
    """Sort rows[start:stop], numbers from 0 on, in place.

    Few are sorted by insertion, many by radix, without the digits in which all are equal.
    `scratch` is at least as long as the range.
    """
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
    varying = int64(0)
    for k in range(start, stop):
        varying |= rows[k] ^ rows[start]
    counts = np.empty(1 << _DIGIT, np.int64)
    for shift in range(0, 63, _DIGIT):
        if (varying >> shift) & 0x7FF == 0:
            continue
        for digit in range(1 << _DIGIT):
            counts[digit] = 0
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
