"""The clusters of `propagation`: which predicate gives access to a clause, and how its others lie.

    predicate    a distinct one; the n_access that give access to some clause come first
    block        of access predicate a: blocks[block_offsets[a]] … [a + 1], one cluster after the
                 other; one more block behind all others is walked with every event
    cluster      clauses of one access predicate and as many others: size, n, then `size` columns
                 of n predicates each, then the n rows of the clauses

The access predicate of a clause is the least likely one of its best kind: equalities, sets of
points, then any other that does not accept absence; by codes, so that a range which no other bound
divides is as good as an equality. Inside a cluster the first column has of each
clause the predicate least likely to hold, so that most clauses cost one look.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.index.base import Statistics
from matchmill.index.predicate_codes import Dictionary
from matchmill.index.selectivity import code_masses, predicate_chances
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.jit import kernel
from matchmill.papers.common.clause_intervals import MAX_KEY, ClauseIntervals

__all__ = ["Clusters", "accepts_absence", "build_clusters", "key_intervals"]

_EQUALITY, _POINTS, _OTHER, _NO_ACCESS = range(4)


class Clusters(NamedTuple):
    """Clauses by their access predicates."""

    numbers: np.ndarray  # int32: the predicate that each of the dictionary's has become
    n_access: int
    block_offsets: np.ndarray  # int64, two more than there are access predicates
    blocks: np.ndarray  # int32


def accepts_absence(dictionary: Dictionary) -> np.ndarray:
    """Tell of each predicate whether it accepts absence."""
    flags: np.ndarray = dictionary.lows[dictionary.interval_offsets[:-1]] == 0
    return flags


def build_clusters(
    table: ConjunctionTable,
    dictionary: Dictionary,
    statistics: Statistics | None,
    *,
    equality_only: bool,
) -> Clusters:
    """Choose access predicates and lay out the clusters."""
    masses = code_masses(dictionary, statistics)
    chances = predicate_chances(dictionary, masses).astype(np.float64)
    kinds = _access_kinds(dictionary)
    if equality_only:
        kinds[kinds > _EQUALITY] = _NO_ACCESS
    n_distinct = dictionary.n_distinct
    # By kind, then by chance: the first of a clause's predicates gives access.
    order = np.lexsort((chances, kinds))
    preferences = np.empty(n_distinct, np.int64)
    preferences[order] = np.arange(n_distinct)
    n_eligible = int(np.count_nonzero(kinds < _NO_ACCESS))
    by_chance = np.empty(n_distinct, np.int64)
    by_chance[np.argsort(chances, kind="stable")] = np.arange(n_distinct)

    lengths = np.diff(table.clause_offsets)
    accesses = np.full(table.n_clauses, n_distinct)
    is_filled = lengths > 0
    starts = table.clause_offsets[:-1][is_filled]
    if len(starts):
        best = np.minimum.reduceat(preferences[dictionary.ids], starts)
        accesses[is_filled] = np.where(best < n_eligible, order[best], n_distinct)
    gives_access = np.zeros(n_distinct, bool)
    gives_access[accesses[accesses < n_distinct]] = True
    n_access = int(np.count_nonzero(gives_access))
    numbers = np.empty(n_distinct, np.int32)
    numbers[np.argsort(~gives_access, kind="stable")] = np.arange(n_distinct, dtype=np.int32)

    owners = np.append(numbers, n_access)[accesses]
    sizes = lengths - (owners < n_access)
    clauses = np.lexsort((sizes, owners))
    opens = np.ones(len(clauses), bool)
    opens[1:] = (np.diff(owners[clauses]) != 0) | (np.diff(sizes[clauses]) != 0)
    cluster_offsets = np.append(np.flatnonzero(opens), len(clauses))
    firsts = clauses[cluster_offsets[:-1]]
    n_words = 2 + np.diff(cluster_offsets) * (sizes[firsts] + 1)
    per_block = np.bincount(owners[firsts], n_words, n_access + 1).astype(np.int64)
    block_offsets = offsets_of(per_block)
    blocks = np.empty(int(block_offsets[-1]), np.int32)
    _write_clusters(
        cluster_offsets,
        clauses,
        sizes,
        accesses,
        table.clause_offsets,
        dictionary.ids,
        by_chance,
        numbers,
        blocks,
    )
    return Clusters(numbers, n_access, block_offsets, blocks)


def _access_kinds(dictionary: Dictionary) -> np.ndarray:
    firsts = dictionary.interval_offsets[:-1]
    n_wide = offsets_of(dictionary.lows != dictionary.highs)
    is_points = n_wide[dictionary.interval_offsets[1:]] == n_wide[firsts]
    kinds = np.where(is_points, _POINTS, _OTHER)
    kinds[is_points & (np.diff(dictionary.interval_offsets) == 1)] = _EQUALITY
    kinds[accepts_absence(dictionary)] = _NO_ACCESS
    return kinds


def key_intervals(dictionary: Dictionary, numbers: np.ndarray) -> ClauseIntervals:
    """Return the intervals of all predicates in keys, each under its number."""
    n_intervals = np.diff(dictionary.interval_offsets)
    dimensions = np.repeat(dictionary.dimensions, n_intervals)
    # With an edge of 0 before those of each dimension, and the last key of all behind.
    starts = dictionary.edge_offsets[:-1]
    edges = np.insert(dictionary.edges, starts, 0)
    starts = starts + np.arange(len(starts))
    highs = np.full(len(dimensions), MAX_KEY)
    n_edges = np.diff(dictionary.edge_offsets)
    is_bounded = dictionary.highs < n_edges[dimensions]
    highs[is_bounded] = (
        edges[starts[dimensions] + dictionary.highs + 1 * is_bounded][is_bounded] - 1
    )
    return ClauseIntervals(
        np.repeat(numbers, n_intervals),
        dimensions,
        edges[starts[dimensions] + dictionary.lows],
        highs,
    )


@kernel
def _write_clusters(
    cluster_offsets: np.ndarray,
    clauses: np.ndarray,
    sizes: np.ndarray,
    accesses: np.ndarray,
    clause_offsets: np.ndarray,
    ids: np.ndarray,
    by_chance: np.ndarray,
    numbers: np.ndarray,
    out: np.ndarray,
) -> None:
    start = 0
    for c in range(len(cluster_offsets) - 1):
        first = cluster_offsets[c]
        n = cluster_offsets[c + 1] - first
        size = sizes[clauses[first]]
        out[start] = size
        out[start + 1] = n
        start += 2
        for i in range(n):
            row = clauses[first + i]
            n_columns = 0
            for p in range(clause_offsets[row], clause_offsets[row + 1]):
                if ids[p] != accesses[row]:
                    column = n_columns
                    n_columns += 1
                    while column > 0 and _is_before(by_chance, ids[p], out, start, column, n, i):
                        out[start + column * n + i] = out[start + (column - 1) * n + i]
                        column -= 1
                    out[start + column * n + i] = ids[p]
            for column in range(size):
                out[start + column * n + i] = numbers[out[start + column * n + i]]
            out[start + size * n + i] = row
        start += n * (size + 1)


@kernel
def _is_before(
    by_chance: np.ndarray, q: int, out: np.ndarray, start: int, column: int, n: int, i: int
) -> bool:
    """Whether a predicate is less likely than the one in the column before."""
    return bool(by_chance[q] < by_chance[out[start + (column - 1) * n + i]])
