"""Which predicates are shared, and the truth of all shared ones for each code.

    shared predicate s     bit s of an event's truth table; 0 is always true, 1 never
    dimension d            its shared predicates are consecutive: words first_words[d] … of the
                           truth table hold them, n_words[d] of them
    rows                   row_of_code[row_starts[d] + c] is the place, in `rows`, of the words
                           for code c; equal rows are stored once; -1: nothing shared on d

Sharing pays where the bits of a predicate (one per row) cost less than the inline tests that it
saves. Numbers have 16 bits, so a test of a clause takes two bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.index.predicate_codes import Dictionary
from matchmill.kernels.hashing import combine31
from matchmill.kernels.jit import int64, kernel, uint64

__all__ = ["ALWAYS", "NEVER", "SharedPredicates", "share_predicates"]

ALWAYS, NEVER = 0, 1
_FIRST = 2
_MOST = (1 << 16) - _FIRST
_MOST_ON_DIMENSION = 2048
_SAVED_BITS = 48  # an inline test takes 64 bits, a shared one 16


class SharedPredicates(NamedTuple):
    """The numbers of shared predicates, and their truth for each code."""

    numbers: np.ndarray  # int32, one per distinct predicate: its shared number or -1
    distinct: np.ndarray  # int32, one per shared number: the distinct predicate (or -1)
    first_words: np.ndarray  # int32, one per dimension
    n_words: np.ndarray  # int32
    row_starts: np.ndarray  # int64
    row_of_code: np.ndarray  # int32
    rows: np.ndarray  # uint64

    @property
    def n_shared(self) -> int:
        """How many shared numbers there are, ALWAYS and NEVER among them."""
        return len(self.distinct)


def share_predicates(dictionary: Dictionary) -> SharedPredicates:
    """Choose the predicates to share, number them, and build their rows."""
    chosen = _choose(dictionary)
    numbers = np.full(dictionary.n_distinct, -1, np.int32)
    numbers[chosen] = np.arange(_FIRST, _FIRST + len(chosen))
    distinct = np.concatenate((np.full(_FIRST, -1, np.int32), chosen.astype(np.int32)))
    firsts = _FIRST + np.searchsorted(chosen, dictionary.predicate_offsets)
    starts, stops = firsts[:-1], firsts[1:]
    first_words = starts >> 6
    n_words = np.where(stops > starts, ((stops - 1) >> 6) - first_words + 1, 0)
    row_starts, row_of_code, rows = _build_rows(dictionary, numbers, first_words, n_words)
    return SharedPredicates(
        numbers,
        distinct,
        first_words.astype(np.int32),
        n_words.astype(np.int32),
        row_starts,
        row_of_code,
        rows,
    )


def _choose(dictionary: Dictionary) -> np.ndarray:
    """Choose the distinct predicates to share; return them, ascending."""
    uses, dimensions = dictionary.uses, dictionary.dimensions
    n_dimensions = dictionary.n_dimensions
    n_edges = np.diff(dictionary.edge_offsets)
    n_frequent = np.bincount(dimensions[uses >= 8], minlength=n_dimensions)
    n_rows = np.minimum(n_edges + 1, 2 * n_frequent + 65)
    enough = np.maximum(1, n_rows // _SAVED_BITS)
    chosen = np.flatnonzero(uses >= enough[dimensions])
    if len(chosen) > _MOST:
        counts = np.bincount(uses[chosen])
        n_at_least = np.cumsum(counts[::-1])[::-1]
        least = int(np.flatnonzero(n_at_least <= _MOST)[0]) if n_at_least[-1] <= _MOST else None
        if least is None:  # the most used alone are too many
            order = np.argsort(-uses[chosen].astype(np.int64), kind="stable")
            chosen = np.sort(chosen[order[:_MOST]])
        else:
            chosen = chosen[uses[chosen] >= least]
    per_dimension = np.bincount(dimensions[chosen], minlength=n_dimensions)
    for d in np.flatnonzero(per_dimension > _MOST_ON_DIMENSION):
        here = chosen[dimensions[chosen] == d]
        order = np.argsort(-uses[here].astype(np.int64), kind="stable")
        chosen = np.setdiff1d(chosen, here[order[_MOST_ON_DIMENSION:]], assume_unique=True)
    return chosen


class _Rows(NamedTuple):
    """Where the rows of each dimension are, and the rows."""

    first_words: np.ndarray  # int64, one per dimension
    n_words: np.ndarray  # int64, one per dimension
    row_starts: np.ndarray  # int64, one per dimension
    row_of_code: np.ndarray  # int32
    rows: np.ndarray  # uint64


def _build_rows(
    dictionary: Dictionary, numbers: np.ndarray, first_words: np.ndarray, n_words: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (row_starts, row_of_code, rows)."""
    n_codes = np.diff(dictionary.edge_offsets) + 1
    has_rows = n_words > 0
    sizes = np.where(has_rows, n_codes, 0)
    row_starts = np.where(has_rows, np.cumsum(sizes) - sizes, -1)
    row_of_code = np.empty(int(sizes.sum()), np.int32)
    out = _Rows(first_words, n_words, row_starts, row_of_code, np.empty(1 << 12, np.uint64))
    d = n_used = 0
    while True:
        d, n_used, n_needed = _add_rows(dictionary, numbers, d, n_used, out)
        if d == len(n_words):
            return row_starts, row_of_code, out.rows[:n_used].copy()
        grown = np.empty(2 * len(out.rows) + n_needed, np.uint64)
        grown[:n_used] = out.rows[:n_used]
        out = out._replace(rows=grown)


@kernel
def _add_rows(
    dictionary: Dictionary, numbers: np.ndarray, start: int, n_used: int, out: _Rows
) -> tuple[int, int, int]:
    """Write rows of the dimensions from `start` on, while there is room.

    Return (dimension, words used, words that the next dimension may need).
    """
    predicate_offsets, edge_offsets = dictionary.predicate_offsets, dictionary.edge_offsets
    interval_offsets, lows, highs = (
        dictionary.interval_offsets, dictionary.lows, dictionary.highs,
    )  # fmt: skip
    n_words, out_rows = out.n_words, out.rows
    for d in range(start, len(n_words)):
        width = int64(n_words[d])
        if width == 0:
            continue
        first, last = predicate_offsets[d], predicate_offsets[d + 1]
        n_codes = edge_offsets[d + 1] - edge_offsets[d] + 1
        changes = np.zeros(n_codes + 1, np.uint8)  # where the row may differ from the one before
        for q in range(first, last):
            if numbers[q] >= 0:
                for k in range(interval_offsets[q], interval_offsets[q + 1]):
                    changes[lows[k]] = 1
                    changes[highs[k] + 1] = 1
        runs = np.empty(n_codes + 1, np.int64)
        n_runs = -1
        for c in range(n_codes + 1):
            if c == 0 or changes[c]:
                n_runs += 1
            runs[c] = n_runs
        n_runs = runs[n_codes - 1] + 1
        if n_used + n_runs * width > len(out_rows):
            return d, n_used, n_runs * width
        block = out_rows[n_used : n_used + n_runs * width]
        block[:] = 0
        for q in range(first, last):
            if numbers[q] < 0:
                continue
            word = (int64(numbers[q]) >> 6) - out.first_words[d]
            bit = uint64(1) << uint64(numbers[q] & 63)
            for k in range(interval_offsets[q], interval_offsets[q + 1]):
                for run in range(runs[lows[k]], runs[highs[k] + 1]):
                    block[run * width + word] |= bit
        n_used = _keep_distinct(
            block, width, n_runs, n_used, runs, out.row_starts[d], out.row_of_code
        )
    return len(n_words), n_used, 0


@kernel
def _keep_distinct(
    block: np.ndarray,
    width: int,
    n_runs: int,
    n_used: int,
    runs: np.ndarray,
    row_start: int,
    out_row_of_code: np.ndarray,
) -> int:
    """Move distinct rows of a dimension together; return the words used after them."""
    n_slots = 4
    while n_slots < 2 * n_runs:
        n_slots *= 2
    slots = np.full(n_slots, -1, np.int64)
    places = np.empty(n_runs, np.int64)
    n_kept = 0
    for run in range(n_runs):
        h = int64(0)
        for w in range(width):
            word = block[run * width + w]
            h = combine31(h, int64(word & uint64(0x7FFFFFFF)))
            h = combine31(h, int64(word >> uint64(31)))
        slot = h & (n_slots - 1)
        while slots[slot] >= 0:
            is_same = True
            for w in range(width):
                if block[slots[slot] * width + w] != block[run * width + w]:
                    is_same = False
                    break
            if is_same:
                break
            slot = (slot + 1) & (n_slots - 1)
        if slots[slot] < 0:
            slots[slot] = n_kept
            for w in range(width):
                block[n_kept * width + w] = block[run * width + w]
            n_kept += 1
        places[run] = n_used + slots[slot] * width
    for c in range(len(runs) - 1):
        out_row_of_code[row_start + c] = places[runs[c]]
    return n_used + n_kept * width
