"""Counting with a bit for each predicate and clause, 64 clauses in one operation.

    cells[p, w]     bit b is set if the clause in column 64 w + b has predicate p
    needed[k, w]    bit k of the numbers of predicates that these 64 clauses have
    used[w]         which of these 64 columns are in use

Hits are kept in the same way, bit k of 64 numbers in one word, so that a row is added to 64 of them
by a few `and` and `xor`: the carry goes from one bit to the next until there is none. A clause
matches where all bits of the two numbers are the same.

Most clauses that do not match fail by few predicates, so there is another way: a clause matches if
it is in no row of a predicate that is *not* satisfied. That takes one operation per word, adding
about four, so it is taken for events that leave less than four times as many predicates unsatisfied
as they satisfy.

Two-stage, section 3.3; it does not say how it counts in words. Adding bit by bit and the other way
are ours.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from matchmill.kernels.intrinsics import trailing_zeros
from matchmill.kernels.jit import kernel, uint64
from matchmill.papers.two_stage.counting_matrix import Association, CountingMatrix, Pairs, set_bits

__all__ = ["CountingBits"]

_TILE = 512  # words of one part: 32,768 columns
_ADDING = 4


class BitMatrix:
    def __init__(self, cells: np.ndarray, needed: np.ndarray, used: np.ndarray) -> None:
        self._cells = cells
        self._needed = needed
        self._used = used
        self._has_clauses = _nonzero_rows(cells)

    @classmethod
    def empty(cls) -> BitMatrix:
        none = np.zeros((0, 0), np.uint64)
        return cls(none, np.zeros((1, 0), np.uint64), np.zeros(0, np.uint64))

    @classmethod
    def bytes_of(cls, n_predicates: int, n_columns: int) -> int:
        return n_predicates * n_columns // 8

    def shape(self) -> tuple[int, int]:
        return self._cells.shape[0], 64 * self._cells.shape[1]

    def resize(self, n_predicates: int, n_columns: int) -> None:
        self._cells = _resized(self._cells, n_predicates, n_columns // 64)
        self._needed = _resized(self._needed, len(self._needed), n_columns // 64)
        self._used = _resized(self._used[None], 1, n_columns // 64)[0]
        self._has_clauses = _resized(self._has_clauses[None], 1, (n_predicates + 63) // 64)[0]

    def set_columns(self, columns: np.ndarray, offsets: np.ndarray, ids: np.ndarray) -> None:
        n_needed = np.diff(offsets)
        n_bits = max(1, int(n_needed.max(initial=0)).bit_length())
        if n_bits > len(self._needed):
            self._needed = _resized(self._needed, n_bits, self._needed.shape[1])
        _set_columns(self._cells, self._needed, self._used, columns, offsets, ids)
        _set_each(self._has_clauses, ids)

    def clear_columns(self, columns: np.ndarray) -> np.ndarray:
        _clear_each(self._used, columns)
        for bits in self._needed:
            _clear_each(bits, columns)
        return _clear_columns(self._cells, columns)

    def used_columns(self) -> np.ndarray:
        return set_bits(self._used[None])[1]

    def match(self, vector: np.ndarray) -> Pairs:
        # A predicate that has lost all its clauses may be looked at in vain.
        unsatisfied = self._has_clauses[: vector.shape[1]] & ~vector
        satisfied, others = set_bits(vector), set_bits(unsatisfied)
        is_adding = _ADDING * np.diff(satisfied[0]) <= np.diff(others[0])
        rows, columns = np.empty(1024, np.int32), np.empty(1024, np.int64)
        sums = np.zeros((len(self._needed), _TILE), np.uint64)
        word = n = 0
        while True:
            word, n = _count(
                self._cells, self._needed, self._used, satisfied, others, is_adding, word, sums, n,
                rows, columns,
            )  # fmt: skip
            if word == len(self._used):
                return rows[:n], columns[:n]
            # One part of the columns may bring this many more.
            more = len(rows) + len(vector) * 64 * _TILE
            rows, columns = np.resize(rows, more), np.resize(columns, more)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"cells": self._cells, "needed": self._needed, "used": self._used}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> BitMatrix:
        return cls(arrays["cells"], arrays["needed"], arrays["used"])


class CountingBits(CountingMatrix):
    """Two-stage's counting with a matrix of bits."""

    name: ClassVar[str] = "counting_bits"
    association: ClassVar[type[Association]] = BitMatrix


def _resized(words: np.ndarray, n_rows: int, n_words: int) -> np.ndarray:
    resized = np.zeros((n_rows, n_words), np.uint64)
    n_rows, n_words = min(n_rows, words.shape[0]), min(n_words, words.shape[1])
    resized[:n_rows, :n_words] = words[:n_rows, :n_words]
    return resized


def _nonzero_rows(cells: np.ndarray) -> np.ndarray:
    """Return a bit for each row: whether it has any."""
    words = np.zeros((len(cells) + 63) // 64, np.uint64)
    _set_each(words, np.flatnonzero(cells.any(axis=1)))
    return words


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _set_each(words: np.ndarray, places: np.ndarray) -> None:
    for at in places:
        words[at >> 6] |= uint64(1) << uint64(at & 63)


@kernel
def _clear_each(words: np.ndarray, places: np.ndarray) -> None:
    for at in places:
        words[at >> 6] &= ~(uint64(1) << uint64(at & 63))


@kernel
def _set_columns(
    cells: np.ndarray,
    needed: np.ndarray,
    used: np.ndarray,
    columns: np.ndarray,
    offsets: np.ndarray,
    ids: np.ndarray,
) -> None:
    for i in range(len(columns)):
        word = columns[i] >> 6
        bit = uint64(1) << uint64(columns[i] & 63)
        used[word] |= bit
        length = offsets[i + 1] - offsets[i]
        for k in range(len(needed)):
            if (length >> k) & 1:
                needed[k, word] |= bit
        for k in range(offsets[i], offsets[i + 1]):
            cells[ids[k], word] |= bit


@kernel
def _clear_columns(cells: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the rows in which each of the columns was set."""
    n = 0
    for p in range(len(cells)):
        for column in columns:
            n += int((cells[p, column >> 6] >> uint64(column & 63)) & uint64(1))
    ids = np.empty(n, np.int64)
    n = 0
    for p in range(len(cells)):
        for column in columns:
            bit = uint64(1) << uint64(column & 63)
            if cells[p, column >> 6] & bit:
                ids[n] = p
                n += 1
                cells[p, column >> 6] &= ~bit
    return ids


@kernel
def _count(
    cells: np.ndarray,
    needed: np.ndarray,
    used: np.ndarray,
    satisfied: Pairs,
    others: Pairs,
    is_adding: np.ndarray,
    word: int,
    sums: np.ndarray,
    n: int,
    out_rows: np.ndarray,
    out_columns: np.ndarray,
) -> tuple[int, int]:
    """Match in the words from `word` on, after n that are there.

    Stops at a part for which there is no room. `sums` is 0 before and after.
    """
    n_bits, tile = sums.shape
    found, carries = np.empty(tile, np.uint64), np.empty(tile, np.uint64)
    for first in range(word, len(used), tile):
        size = min(tile, len(used) - first)
        before = n
        for e in range(len(is_adding)):
            offsets, ids = satisfied if is_adding[e] else others
            found[:size] = used[first : first + size]
            for k in range(offsets[e], offsets[e + 1]):
                row = cells[ids[k], first : first + size]
                if not is_adding[e]:
                    for i in range(size):
                        found[i] &= ~row[i]
                    continue
                for i in range(size):
                    carries[i] = row[i]
                for b in range(n_bits):
                    some = uint64(0)
                    for i in range(size):
                        both = sums[b, i] & carries[i]
                        sums[b, i] ^= carries[i]
                        carries[i] = both
                        some |= both
                    if not some:
                        break
            if is_adding[e]:
                for b in range(n_bits):
                    for i in range(size):
                        found[i] &= ~(sums[b, i] ^ needed[b, first + i])
                        sums[b, i] = uint64(0)
            for i in range(size):
                bits = found[i]
                while bits:
                    if n == len(out_rows):
                        return first, before
                    out_rows[n] = e
                    out_columns[n] = 64 * (first + i) + trailing_zeros(bits)
                    n += 1
                    bits &= bits - uint64(1)
    return len(used), n
