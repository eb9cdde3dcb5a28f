"""Predicates whose intervals are nested or apart, as those of prefixes are: a path-compressed trie.

All texts that begin with "ab" are an interval of keys, and it lies inside that of "a". So the trie
of the prefixes is the forest of their intervals by containment, and needs no letters. (Suffixes
are prefixes of the reversed text, which is a dimension of its own.)

    entry i    cells[4 i …]: low, tag, high, back
               ascending by low, the wider of two first
    back       i - back is the nearest entry before i that reaches as far as i or farther; 0 if
               there is none. In a forest that is the parent.

The entries that hold a key are found from the last one that begins at or below it. One that misses
the key takes its `back` along: whatever lies between reaches less far. One that holds it leads to
its parent, or, where intervals overlap otherwise, to the entry before it. So the answer is right
for any intervals, and with prefixes a climb is as long as the trie is deep.

OpIndex (section 6.2) keeps a trie for the prefix operator; `op_index` keeps these cells in its
lists.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from matchmill.errors import InputError
from matchmill.kernels.jit import kernel
from matchmill.papers.predicate_index.base import Predicates, Satisfied

__all__ = ["ENTRY", "PrefixTrie", "link_entries"]

ENTRY = 4  # cells of an entry
_LOW, _TAG, _HIGH, _BACK = range(ENTRY)


@kernel
def link_entries(cells: np.ndarray, start: int, n: int) -> bool:
    """Write `back` of n entries from cell `start` on; whether all are nested or apart."""
    is_forest = True
    for i in range(n):
        at = start + ENTRY * i
        low, high = cells[at + _LOW], cells[at + _HIGH]
        k = i - 1
        while k >= 0 and cells[start + ENTRY * k + _HIGH] < high:
            if cells[start + ENTRY * k + _HIGH] >= low:
                is_forest = False
            back = cells[start + ENTRY * k + _BACK]
            k = k - back if back > 0 else -1
        cells[at + _BACK] = i - k if k >= 0 else 0
    return is_forest


@kernel
def _find(
    cells: np.ndarray, is_forest: bool, keys: np.ndarray, out_offsets: np.ndarray, out: np.ndarray
) -> int:
    """Write the tags of the entries that hold each key; returns how many, even if out is full."""
    n_out = 0
    for q in range(len(keys)):
        key = keys[q]
        low, high = 0, len(cells) // ENTRY
        while low < high:
            middle = (low + high) >> 1
            if cells[ENTRY * middle + _LOW] <= key:
                low = middle + 1
            else:
                high = middle
        i = low - 1
        while i >= 0:
            at = ENTRY * i
            back = cells[at + _BACK]
            if cells[at + _HIGH] >= key:
                if n_out < len(out):
                    out[n_out] = cells[at + _TAG]
                n_out += 1
                if not is_forest:
                    back = 1
            i = i - back if back > 0 else -1
        out_offsets[q + 1] = n_out
    return n_out


class PrefixTrie:
    """A forest of intervals; exact, if slower, where some overlap in another way."""

    name: ClassVar[str] = "prefix_trie"

    def __init__(self, cells: np.ndarray) -> None:
        """Cells of entries in any order."""
        self._set(cells.reshape(-1, ENTRY))

    @classmethod
    def build(cls, predicates: Predicates) -> Self:
        """Build the index from predicates."""
        return cls(_entries(predicates))

    @property
    def is_forest(self) -> bool:
        """Whether all intervals are nested or apart."""
        return self._is_forest

    def insert(self, predicates: Predicates) -> None:
        """Insert predicates."""
        entries = self._cells.reshape(-1, ENTRY)
        if np.isin(predicates.ids, entries[:, _TAG]).any():
            raise InputError("some of these predicates are here already; none was inserted")
        self._set(np.concatenate((entries, _entries(predicates))))

    def delete(self, ids: np.ndarray) -> None:
        """Delete predicates by their ids."""
        entries = self._cells.reshape(-1, ENTRY)
        n_missing = int((~np.isin(ids, entries[:, _TAG])).sum())
        if n_missing:
            raise InputError(
                f"{n_missing} of these {len(ids)} predicates are not here; none was deleted"
            )
        self._set(entries[~np.isin(entries[:, _TAG], ids)])

    def match(self, keys: np.ndarray) -> Satisfied:
        """Find the predicates that each key satisfies."""
        offsets = np.zeros(len(keys) + 1, np.int64)
        out = np.empty(4 * len(keys) + 64, np.int64)
        while True:
            n = _find(self._cells, self._is_forest, keys, offsets, out)
            if n <= len(out):
                return Satisfied(offsets, out[:n])
            out = np.empty(n, np.int64)

    @property
    def n_bytes(self) -> int:
        """Bytes of the arrays."""
        return int(self._cells.nbytes)

    def _set(self, entries: np.ndarray) -> None:
        ordered = entries[np.lexsort((-entries[:, _HIGH], entries[:, _LOW]))]
        self._cells: np.ndarray[Any, Any] = ordered.reshape(-1)
        self._is_forest = bool(link_entries(self._cells, 0, len(entries)))


def _entries(predicates: Predicates) -> np.ndarray:
    entries = np.zeros((len(predicates.lows), ENTRY), np.int64)
    entries[:, _LOW] = predicates.lows
    entries[:, _TAG] = np.repeat(predicates.ids, np.diff(predicates.interval_offsets))
    entries[:, _HIGH] = predicates.highs
    return entries
