"""The parallel search tree of `gryphon`: its layout, and how it is built.

    rank     of a dimension: its place in the order of tests. codes[rank] is an event's code there
    place    of a distinct predicate in that order: equalities first (of codes: also a range that
             no other bound divides), then those that neither are equalities nor accept absence,
             then those that accept absence; each by rank
    node     its own clauses end here: rows[row_offsets[n]] …; its branches are branch_offsets[n] …
    branch   branch_keys[b] says what is tested, ascending inside a node: a cell (equality with
             one code of one dimension), or n_cells + rank, or n_cells + n_dimensions + rank
    edge     edge_offsets[b] …: what can come out of the test; interval_offsets[e] … in codes, none
             for an equality; leads to targets[e]: a node, or n_nodes + the place of a leaf
    leaf     a clause that is alone below its edge: row, number of tests left, and of each test
             rank, number of intervals, low, high, …

Clauses are sequences of predicates by place; those with a common beginning share a path. A clause
has no branch for what it does not test, so a node is a chain of the paper's nodes, joined by edges
for "don't care" that nothing else leaves from: all of these are taken at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.index.predicate_codes import Dictionary, build_dictionary
from matchmill.kernels.csr import offsets_of, take_ranges
from matchmill.kernels.jit import kernel

__all__ = ["GryphonTree", "build_tree"]

_EQUALITY, _OTHER, _ACCEPTS_ABSENCE = range(3)


class GryphonTree(NamedTuple):
    """The arrays of the tree."""

    clause_ids: np.ndarray  # int64
    ranks: np.ndarray  # int32, one per dimension
    cell_starts: np.ndarray  # int64, one per dimension
    edge_key_offsets: np.ndarray  # int64: the bounds of each dimension, which make its codes
    edge_keys: np.ndarray  # int64
    row_offsets: np.ndarray  # int64, one more than there are nodes
    rows: np.ndarray  # int32
    branch_offsets: np.ndarray  # int64, one more than there are nodes
    branch_keys: np.ndarray  # int32
    edge_offsets: np.ndarray  # int64, one more than there are branches
    interval_offsets: np.ndarray  # int64, one more than there are edges
    lows: np.ndarray  # int32
    highs: np.ndarray  # int32
    targets: np.ndarray  # int64
    leaves: np.ndarray  # int32


class _Shape(NamedTuple):
    """The tree before it is laid out: edges by parent and place."""

    n_nodes: int
    row_nodes: np.ndarray  # ascending: the node of each clause that ends at a node
    rows: np.ndarray
    parents: np.ndarray
    places: np.ndarray
    children: np.ndarray  # a node, or -1
    leaf_rows: np.ndarray  # the clause of an edge that leads to a leaf, or -1
    depths: np.ndarray  # of the parents


def build_tree(table: ConjunctionTable, *, rare_first: bool) -> GryphonTree:
    """Build the tree of a table."""
    dictionary = build_dictionary(table)
    n_dimensions = dictionary.n_dimensions
    n_uses = np.bincount(dictionary.dimensions, dictionary.uses, n_dimensions)
    by_rank = np.argsort(n_uses if rare_first else -n_uses, kind="stable")
    ranks = np.empty(n_dimensions, np.int32)
    ranks[by_rank] = np.arange(n_dimensions)
    kinds = _kinds(dictionary)
    firsts = dictionary.lows[dictionary.interval_offsets[:-1]]
    order = np.lexsort((firsts, ranks[dictionary.dimensions], kinds))
    places = np.empty(dictionary.n_distinct, np.int64)
    places[order] = np.arange(dictionary.n_distinct)

    n_codes = np.diff(dictionary.edge_offsets) + 1
    cell_starts = np.empty(n_dimensions, np.int64)
    cell_starts[by_rank] = np.cumsum(n_codes[by_rank]) - n_codes[by_rank]
    n_cells = int(n_codes.sum())
    owners = dictionary.dimensions[order]
    keys = np.where(
        kinds[order] == _EQUALITY,
        cell_starts[owners] + firsts[order],
        n_cells + ranks[owners] + n_dimensions * (kinds[order] == _ACCEPTS_ABSENCE),
    )

    sequences = _sequences(table, places[dictionary.ids], dictionary.n_distinct)
    shape = _grow(table.clause_offsets, sequences)
    leaves, leaf_starts = _leaves(table, dictionary, sequences, order, ranks, shape)
    edge_keys = keys[shape.places]
    opens = np.ones(len(edge_keys), bool)
    opens[1:] = (np.diff(edge_keys) != 0) | (np.diff(shape.parents) != 0)
    branches = np.flatnonzero(opens)

    predicates = order[shape.places]
    interval_offsets, intervals = take_ranges(dictionary.interval_offsets, predicates)
    is_tested = np.repeat(kinds[predicates] != _EQUALITY, np.diff(interval_offsets))
    n_tested = offsets_of(is_tested)
    nodes = np.arange(shape.n_nodes + 1)
    return GryphonTree(
        np.ascontiguousarray(table.clause_ids),
        ranks,
        cell_starts,
        dictionary.edge_offsets,
        dictionary.edges,
        np.searchsorted(shape.row_nodes, nodes),
        shape.rows.astype(np.int32),
        np.searchsorted(shape.parents[branches], nodes),
        edge_keys[branches].astype(np.int32),
        np.append(branches, len(edge_keys)),
        n_tested[interval_offsets],
        dictionary.lows[intervals[is_tested]],
        dictionary.highs[intervals[is_tested]],
        np.where(shape.children >= 0, shape.children, shape.n_nodes + leaf_starts),
        leaves,
    )


def _kinds(dictionary: Dictionary) -> np.ndarray:
    firsts = dictionary.interval_offsets[:-1]
    is_point = np.diff(dictionary.interval_offsets) == 1
    is_point &= dictionary.lows[firsts] == dictionary.highs[firsts]
    kinds = np.where(is_point, _EQUALITY, _OTHER)
    kinds[dictionary.lows[firsts] == 0] = _ACCEPTS_ABSENCE
    return kinds


def _sequences(table: ConjunctionTable, places: np.ndarray, n_distinct: int) -> np.ndarray:
    """Return the places of each clause's predicates, ascending."""
    clauses = np.repeat(np.arange(table.n_clauses), np.diff(table.clause_offsets))
    both = clauses * n_distinct + places
    both.sort()
    sorted_places: np.ndarray = both - clauses * n_distinct
    return sorted_places


def _grow(clause_offsets: np.ndarray, sequences: np.ndarray) -> _Shape:
    """Level by level: the clauses of a node are divided by their next predicate."""
    members = np.arange(len(clause_offsets) - 1)
    nodes = np.zeros(len(members), np.int64)
    n_nodes, depth = 1, 0
    n_distinct = int(sequences.max(initial=0)) + 1
    empty = np.empty(0, np.int64)
    ended: list[tuple[np.ndarray, ...]] = [(empty, empty)]
    grown: list[tuple[np.ndarray, ...]] = [(empty,) * 5]
    while len(members):
        goes_on = clause_offsets[members] + depth < clause_offsets[members + 1]
        ended.append((nodes[~goes_on], members[~goes_on]))
        members, nodes = members[goes_on], nodes[goes_on]
        keys = nodes * n_distinct + sequences[clause_offsets[members] + depth]
        by_key = np.argsort(keys, kind="stable")
        members, keys = members[by_key], keys[by_key]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        sizes = np.diff(np.append(starts, len(keys)))
        is_node = sizes > 1
        children = np.full(len(starts), -1)
        children[is_node] = n_nodes + np.arange(np.count_nonzero(is_node))
        leaf_rows = np.where(is_node, -1, members[starts])
        parents, places = np.divmod(keys[starts], n_distinct)
        grown.append((parents, places, children, leaf_rows, np.full(len(starts), depth)))
        n_nodes += int(np.count_nonzero(is_node))
        depth += 1
        members = members[np.repeat(is_node, sizes)]
        nodes = np.repeat(children[is_node], sizes[is_node])
    ended_at = [np.concatenate(parts) for parts in zip(*ended, strict=True)]
    edges = [np.concatenate(parts) for parts in zip(*grown, strict=True)]
    return _Shape(n_nodes, *ended_at, *edges)


def _leaves(
    table: ConjunctionTable,
    dictionary: Dictionary,
    sequences: np.ndarray,
    order: np.ndarray,
    ranks: np.ndarray,
    shape: _Shape,
) -> tuple[np.ndarray, np.ndarray]:
    """Return what is left to test of clauses that are alone, and where it starts for each edge."""
    is_leaf = shape.leaf_rows >= 0
    rows = shape.leaf_rows[is_leaf]
    n_words = offsets_of(2 + 2 * np.diff(dictionary.interval_offsets)[order])
    before = offsets_of(np.diff(n_words)[sequences])
    firsts = table.clause_offsets[rows] + shape.depths[is_leaf] + 1
    lasts = table.clause_offsets[rows + 1]
    lengths = 2 + before[lasts] - before[firsts]
    ends = np.cumsum(lengths)
    starts = np.full(len(is_leaf), -1)
    starts[is_leaf] = ends - lengths
    leaves = np.empty(int(lengths.sum()), np.int32)
    _write_leaves(dictionary, sequences, order, ranks, rows, firsts, lasts, leaves)
    return leaves, starts


@kernel
def _write_leaves(
    dictionary: Dictionary,
    sequences: np.ndarray,
    order: np.ndarray,
    ranks: np.ndarray,
    rows: np.ndarray,
    firsts: np.ndarray,
    lasts: np.ndarray,
    out: np.ndarray,
) -> None:
    at = 0
    for i in range(len(rows)):
        out[at] = rows[i]
        out[at + 1] = lasts[i] - firsts[i]
        at += 2
        for p in range(firsts[i], lasts[i]):
            q = order[sequences[p]]
            start, stop = dictionary.interval_offsets[q], dictionary.interval_offsets[q + 1]
            out[at] = ranks[dictionary.dimensions[q]]
            out[at + 1] = stop - start
            at += 2
            for k in range(start, stop):
                out[at] = dictionary.lows[k]
                out[at + 1] = dictionary.highs[k]
                at += 2
