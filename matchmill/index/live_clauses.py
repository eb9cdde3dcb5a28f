"""The clauses of several segments that were not deleted, as one table.

Segments are merged while others match, so merging must not hold the interpreter lock: one kernel
counts, one copies, and no array of positions is made.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from matchmill.encoding.conjunction_table import (
    ConjunctionTable,
    concatenate,
    take_clauses,
    used_quantifiers,
)
from matchmill.index.tombstones import Tombstones
from matchmill.kernels.jit import kernel

__all__ = ["by_id", "live_clauses", "position_of"]


def live_clauses(parts: Iterable[tuple[ConjunctionTable, Tombstones]]) -> ConjunctionTable:
    """Return the clauses that were not deleted, ascending by id."""
    return by_id(concatenate([_live(table, dead) for table, dead in parts]))


def by_id(table: ConjunctionTable) -> ConjunctionTable:
    """Sort clauses by id; mostly they are sorted already."""
    ids = table.clause_ids
    if len(ids) < 2 or bool((ids[1:] > ids[:-1]).all()):
        return table
    return take_clauses(table, np.argsort(ids, kind="stable"))


def position_of(sorted_ids: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Return the position of each id among ascending ones, or -1."""
    if len(sorted_ids) == 0:
        return np.full(len(ids), -1, np.int64)
    at = np.minimum(np.searchsorted(sorted_ids, ids), len(sorted_ids) - 1)
    return np.where(sorted_ids[at] == ids, at, -1)


def _live(table: ConjunctionTable, dead: Tombstones) -> ConjunctionTable:
    if dead.n_dead == 0:
        return table
    is_dead = dead.has(table.clause_ids)
    n_clauses, n_predicates, n_intervals = _count_kept(table, is_dead)
    out = ConjunctionTable(
        np.empty(n_clauses, np.int64),
        np.zeros(n_clauses + 1, np.int64),
        np.empty(n_predicates, np.int32),
        np.zeros(n_predicates + 1, np.int64),
        np.empty(n_intervals, np.int64),
        np.empty(n_intervals, np.int64),
        np.empty(n_predicates if table.has_lists else 0, np.uint8),
    )
    _copy_kept(table, is_dead, out)
    return out._replace(quantifiers=used_quantifiers(out.quantifiers))


@kernel
def _count_kept(table: ConjunctionTable, is_dead: np.ndarray) -> tuple[int, int, int]:
    n_clauses = n_predicates = n_intervals = 0
    for i in range(len(is_dead)):
        if not is_dead[i]:
            first, stop = table.clause_offsets[i], table.clause_offsets[i + 1]
            n_clauses += 1
            n_predicates += stop - first
            n_intervals += table.interval_offsets[stop] - table.interval_offsets[first]
    return n_clauses, n_predicates, n_intervals


@kernel
def _copy_kept(table: ConjunctionTable, is_dead: np.ndarray, out: ConjunctionTable) -> None:
    c = p = k = 0
    has_lists = len(table.quantifiers) > 0
    for i in range(len(is_dead)):
        if is_dead[i]:
            continue
        for from_p in range(table.clause_offsets[i], table.clause_offsets[i + 1]):
            for from_k in range(table.interval_offsets[from_p], table.interval_offsets[from_p + 1]):
                out.lows[k] = table.lows[from_k]
                out.highs[k] = table.highs[from_k]
                k += 1
            out.dimensions[p] = table.dimensions[from_p]
            if has_lists:
                out.quantifiers[p] = table.quantifiers[from_p]
            p += 1
            out.interval_offsets[p] = k
        out.clause_ids[c] = table.clause_ids[i]
        c += 1
        out.clause_offsets[c] = p
