"""Many clauses into a `pst_bloom` that has none: dimension by dimension.

    bulk    all predicates that do not accept absence, by dimension: the predicate, its clause,
            whether it is the clause's access predicate

A tree, its leaves and its signatures fit the cache, those of thousands of dimensions do not; so all
that is done at leaves is done for one dimension after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.kernels.jit import kernel
from matchmill.papers.common.pools import Spans, rows_left
from matchmill.papers.ps_tree.access_predicates import Ranked
from matchmill.papers.ps_tree.bloom_signatures import sign
from matchmill.papers.ps_tree.cuts import MAX_KEY, add_key_cut, key_interval_leaves
from matchmill.papers.ps_tree.forest import FIRST, KEY_ELEMENTS, NEXT, Forest

__all__ = ["Bulk", "bulk_of", "count_filings", "cut_predicates", "sign_predicates"]

_ROWS_PER_CUT = 2 * KEY_ELEMENTS + 1


class Bulk(NamedTuple):
    """The predicates of a bulk load, in order."""

    predicates: np.ndarray  # int64
    clauses: np.ndarray  # int64
    is_access: np.ndarray  # uint8


def bulk_of(ranked: Ranked) -> Bulk:
    """Put predicates in the order of a bulk load."""
    n = int(ranked.n_eligible.sum())
    bulk = Bulk(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.uint8))
    table = ranked.table
    ends = np.zeros(table.n_dimensions + 1, np.int64)
    _sort_by_dimension(
        table.clause_offsets, table.dimensions, ranked.order, ranked.n_eligible, ends, bulk
    )
    return bulk


@kernel
def _sort_by_dimension(
    clause_offsets: np.ndarray,
    dimensions: np.ndarray,
    order: np.ndarray,
    n_eligible: np.ndarray,
    ends: np.ndarray,
    out: Bulk,
) -> None:
    for i in range(len(n_eligible)):
        for j in range(clause_offsets[i], clause_offsets[i] + n_eligible[i]):
            ends[dimensions[order[j]] + 1] += 1
    for d in range(len(ends) - 1):
        ends[d + 1] += ends[d]
    for i in range(len(n_eligible)):
        first = clause_offsets[i]
        for j in range(first, first + n_eligible[i]):
            dimension = dimensions[order[j]]
            at = ends[dimension]
            ends[dimension] += 1
            out.predicates[at] = order[j]
            out.clauses[at] = i
            out.is_access[at] = j == first


@kernel
def cut_predicates(
    forest: Forest, table: ConjunctionTable, bulk: Bulk, start: int, scratch: np.ndarray
) -> int:
    """Divide the spaces, in which there is nothing yet, of predicates from `start` on.

    Returns the first one for which there was no room.
    """
    for b in range(start, len(bulk.predicates)):
        p = bulk.predicates[b]
        first, last = table.interval_offsets[p], table.interval_offsets[p + 1]
        n_cuts = 2 * (last - first)
        if (
            min(rows_left(forest.nodes), rows_left(forest.children)) < n_cuts * _ROWS_PER_CUT
            or rows_left(forest.leaves) < 2 * n_cuts
        ):
            return b
        for k in range(first, last):
            add_key_cut(forest, table.dimensions[p], table.lows[k], scratch)
            if table.highs[k] < MAX_KEY:
                add_key_cut(forest, table.dimensions[p], table.highs[k] + 1, scratch)
    return len(bulk.predicates)


@kernel
def count_filings(
    forest: Forest,
    table: ConjunctionTable,
    bulk: Bulk,
    out_listed: np.ndarray,
    out_covering: np.ndarray,
) -> None:
    """For each leaf how many clauses it will list, and how many predicates will cover it.

    What begins at it less what ends, summed up along each tree.
    """
    leaves = forest.leaves.cells
    for b in range(len(bulk.predicates)):
        p = bulk.predicates[b]
        is_access = int(bulk.is_access[b])
        for k in range(table.interval_offsets[p], table.interval_offsets[p + 1]):
            leaf, end = key_interval_leaves(
                forest, table.dimensions[p], table.lows[k], table.highs[k]
            )
            out_covering[leaf] += 1
            out_listed[leaf] += is_access
            if end >= 0:
                out_covering[end] -= 1
                out_listed[end] -= is_access
    for tree in range(len(forest.trees)):
        leaf = int(forest.trees[tree, FIRST])
        n_covering = n_listed = 0
        while leaf >= 0:
            n_covering += out_covering[leaf]
            n_listed += out_listed[leaf]
            out_covering[leaf] = n_covering
            out_listed[leaf] = n_listed
            leaf = int(leaves[leaf, NEXT])


@kernel
def sign_predicates(
    forest: Forest, signatures: Spans, table: ConjunctionTable, bulk: Bulk, places: np.ndarray
) -> None:
    """Enter the clauses, whose places are given, into the signatures, which have their size."""
    leaves = forest.leaves.cells
    for b in range(len(bulk.predicates)):
        if bulk.is_access[b]:
            continue
        p = bulk.predicates[b]
        place = int(places[bulk.clauses[b]])
        for k in range(table.interval_offsets[p], table.interval_offsets[p + 1]):
            leaf, end = key_interval_leaves(
                forest, table.dimensions[p], table.lows[k], table.highs[k]
            )
            while leaf != end:
                sign(signatures, leaves, leaf, place)
                leaf = int(leaves[leaf, NEXT])
