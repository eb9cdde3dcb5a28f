"""Distinct predicates of a table: the same dimension and the same intervals are one predicate.

    ids[p]      the distinct predicate of the table's predicate p
    firsts[d]   a predicate of the table that stands for distinct predicate d

Distinct predicates are numbered by dimension, so those of a dimension are contiguous.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.kernels.jit import kernel

__all__ = ["PredicateDictionary", "build_predicate_dictionary"]


class PredicateDictionary(NamedTuple):
    ids: np.ndarray  # int32
    firsts: np.ndarray  # int64

    @property
    def n_distinct(self) -> int:
        return len(self.firsts)


def build_predicate_dictionary(table: ConjunctionTable) -> PredicateDictionary:
    n = table.n_predicates
    n_slots = 1 << max(4, (2 * n).bit_length())
    ids = np.empty(n, np.int32)
    firsts = np.empty(n, np.int64)
    n_distinct = _find_distinct(table, np.full(n_slots, -1, np.int32), ids, firsts)
    firsts = firsts[:n_distinct].copy()
    order = np.argsort(table.dimensions[firsts], kind="stable")
    renumbered = np.empty(n_distinct, np.int32)
    renumbered[order] = np.arange(n_distinct, dtype=np.int32)
    return PredicateDictionary(renumbered[ids], firsts[order])


@kernel
def _hash_predicate(table: ConjunctionTable, p: int) -> int:
    """Mixes 31-bit pieces, so that nothing overflows with or without compilation."""
    h: Any = np.int64(table.dimensions[p]) + 1
    for k in range(table.interval_offsets[p], table.interval_offsets[p + 1]):
        for bound in (table.lows[k], table.highs[k]):
            for piece in (bound & 0x7FFFFFFF, (bound >> 31) & 0x7FFFFFFF, bound >> 62):
                h = ((h ^ piece) * 0x2545F491) & 0x7FFFFFFFFFFF
                h = (h ^ (h >> 19)) & 0x7FFFFFFF
    return int(h)


@kernel
def _same_predicate(table: ConjunctionTable, p: int, q: int) -> bool:
    a, b = table.interval_offsets[p], table.interval_offsets[q]
    n = table.interval_offsets[p + 1] - a
    if table.dimensions[p] != table.dimensions[q] or n != table.interval_offsets[q + 1] - b:
        return False
    for k in range(n):
        if table.lows[a + k] != table.lows[b + k] or table.highs[a + k] != table.highs[b + k]:
            return False
    return True


@kernel
def _find_distinct(
    table: ConjunctionTable, slots: np.ndarray, out_ids: np.ndarray, out_firsts: np.ndarray
) -> int:
    mask = len(slots) - 1
    n_distinct = 0
    for p in range(len(table.dimensions)):
        slot = _hash_predicate(table, p) & mask
        while slots[slot] >= 0 and not _same_predicate(table, p, out_firsts[slots[slot]]):
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            slots[slot] = n_distinct
            out_firsts[n_distinct] = p
            n_distinct += 1
        out_ids[p] = slots[slot]
    return n_distinct
