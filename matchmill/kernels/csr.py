"""Rows of different lengths in flat arrays (compressed sparse rows, CSR).

row i    entries[offsets[i] … offsets[i + 1]]; offsets has one element more than there are rows
"""

from __future__ import annotations

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.kernels.sorting import sort_rows

__all__ = ["distinct_owners", "distinct_rows", "offsets_of", "take_ranges"]


def offsets_of(counts: np.ndarray) -> np.ndarray:
    """Return the offsets of rows that have these numbers of entries."""
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def take_ranges(offsets: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return new offsets, and the positions of all entries, of some rows."""
    counts = offsets[rows + 1] - offsets[rows]
    out_offsets = offsets_of(counts)
    within = np.arange(out_offsets[-1]) - np.repeat(out_offsets[:-1], counts)
    return out_offsets, np.repeat(offsets[rows], counts) + within


def distinct_rows(offsets: np.ndarray, entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows with each entry once, in ascending order."""
    entries = entries.astype(np.int64)  # a copy: sorted in place
    out_offsets = np.empty(len(offsets), np.int64)
    n = _distinct(offsets, entries, out_offsets)
    return out_offsets, entries[:n]


@kernel
def _distinct(offsets: np.ndarray, entries: np.ndarray, out_offsets: np.ndarray) -> int:
    scratch = np.empty(64, np.int64)
    n = 0
    out_offsets[0] = 0
    for row in range(len(offsets) - 1):
        start, stop = offsets[row], offsets[row + 1]
        is_sorted = True
        for k in range(start + 1, stop):
            if entries[k] <= entries[k - 1]:
                is_sorted = False
                break
        if not is_sorted:
            if stop - start > len(scratch):
                scratch = np.empty(2 * (stop - start), np.int64)
            sort_rows(entries, scratch, start, stop)
        for k in range(start, stop):
            if k == start or entries[k] != entries[n - 1]:
                entries[n] = entries[k]
                n += 1
        out_offsets[row + 1] = n
    return n


def distinct_owners(
    offsets: np.ndarray, entries: np.ndarray, owner_of: np.ndarray, first_of: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows with the owner of each entry instead of the entry, each owner once.

    Owner o has the entries first_of[o] … first_of[o + 1]. No entry is twice in a row, so only
    owners of several entries have to be compared; they come last, in ascending order.
    """
    out_offsets = np.empty(len(offsets), np.int64)
    out = np.empty(len(entries), np.int64)
    entries = entries.astype(np.int64, copy=False)
    n = _distinct_owners(offsets, entries, owner_of, first_of, out_offsets, out)
    return out_offsets, out[:n]


@kernel
def _distinct_owners(
    offsets: np.ndarray,
    entries: np.ndarray,
    owner_of: np.ndarray,
    first_of: np.ndarray,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> int:
    several = np.empty(64, np.int64)  # owners of several entries, in one row
    scratch = np.empty(64, np.int64)
    n = 0
    out_offsets[0] = 0
    for row in range(len(offsets) - 1):
        start, stop = offsets[row], offsets[row + 1]
        if stop - start > len(several):
            several = np.empty(2 * (stop - start), np.int64)
            scratch = np.empty(2 * (stop - start), np.int64)
        n_several = 0
        for k in range(start, stop):
            owner = np.int64(owner_of[entries[k]])
            if first_of[owner + 1] - first_of[owner] == 1:
                out[n] = owner
                n += 1
            else:
                several[n_several] = owner
                n_several += 1
        if n_several > 1:
            sort_rows(several, scratch, 0, n_several)
        for k in range(n_several):
            if k == 0 or several[k] != several[k - 1]:
                out[n] = several[k]
                n += 1
        out_offsets[row + 1] = n
    return n
