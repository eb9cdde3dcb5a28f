"""Build the index of nested clauses (`arrays.py` shows it): jumps, conditions, and what wakes them.

joins        0 0 1 1 0 1 1          (a) and (b or c or d) and (e or f or g)
tree         and ─┬─ a
├─ or ─ b c d     a part costs as often as it is expected to be true:
└─ or ─ e f g     an `or` the sum of its parts, an `and` its cheapest part
access       the leaves of the cheapest part
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import (
    NONE,
    ConjunctionTable,
    joins_of,
    quantifiers_of,
    take_predicates,
    without_joins,
)
from matchmill.index.base import Statistics
from matchmill.index.fresh_scan import packed_clauses
from matchmill.index.nested.arrays import (
    ACCEPT,
    DEEP,
    FIRST_LEAF,
    FLAT_AND,
    FLAT_OR,
    REJECT,
    NestedArrays,
)
from matchmill.index.predicate_codes import build_dictionary
from matchmill.index.selectivity import code_masses, predicate_chances
from matchmill.kernels.csr import offsets_of, take_ranges
from matchmill.kernels.jit import int64, kernel

__all__ = ["FEW_LEAVES", "build_arrays"]

FEW_LEAVES = 256  # of all clauses: looking at all takes no longer than asking what wakes them
_NEARLY_ALWAYS = 1.0  # access leaves of a clause that are expected to be true
_RARE = 0.02  # chance of the conditions on top from which on alternatives are not looked at
_HALF = 0.5  # … unless these are less likely than this
_MOST_TOGETHER = 6  # conditions of a hull clause


class _Tree(NamedTuple):
    """The tree of one clause: first its leaves, then its parts."""

    parents: np.ndarray  # int32
    depths: np.ndarray  # int32: of parts: even is `and`
    costs: np.ndarray  # float64
    cheapest: np.ndarray  # int32: of an `and`
    open: np.ndarray  # int32: parts whose end has not come yet


def build_arrays(
    table: ConjunctionTable, statistics: Statistics | None
) -> tuple[NestedArrays, ConjunctionTable]:
    """Return the arrays of nested clauses, and the hull clauses that wake them, numbered."""
    n_leaves = table.n_predicates
    quantifiers, joins = quantifiers_of(table), joins_of(table)
    dictionary = build_dictionary(table)
    chances = predicate_chances(dictionary, code_masses(dictionary, statistics))[dictionary.ids]
    chances[quantifiers == NONE] = 1.0
    _, condition_leaves, conditions = np.unique(
        dictionary.ids.astype(np.int64) << 2 | quantifiers, return_index=True, return_inverse=True
    )
    dimensions, places = np.unique(table.dimensions, return_inverse=True)
    counts = np.diff(table.interval_offsets)
    leaves = np.empty((n_leaves, 4), np.int64)
    leaves[:, 0] = places.astype(np.int64) << 34 | counts << 2 | quantifiers
    leaves[:, 2] = table.lows[table.interval_offsets[:-1]]
    leaves[:, 3] = table.highs[table.interval_offsets[:-1]]
    several = np.flatnonzero(counts > 1)
    offsets, intervals = take_ranges(table.interval_offsets, several)
    leaves[several, 2] = 2 * offsets[:-1]
    more = np.column_stack((table.lows[intervals], table.highs[intervals])).ravel()
    widest = int(np.diff(table.clause_offsets).max(initial=1))
    _write_jumps(table.clause_offsets, joins, np.empty(widest + 1, np.int64), leaves)
    owners, hull = _hull_clauses(table, joins, chances)
    is_woken = np.zeros(table.n_clauses, bool)
    is_woken[owners] = True
    arrays = NestedArrays(
        table.clause_ids,
        table.clause_offsets,
        leaves,
        more,
        joins,
        conditions.astype(np.int32),
        condition_leaves.astype(np.int32),
        dimensions.astype(np.int32),
        np.flatnonzero(~is_woken).astype(np.int32),
        owners,
        _shapes(table.clause_offsets, joins),
        packed_clauses(table) if n_leaves <= FEW_LEAVES else np.empty(0, np.int64),
    )
    return arrays, hull


# -- jumps ----------------------------------------------------------------------------------------


@kernel
def _write_jumps(
    starts: np.ndarray, joins: np.ndarray, following: np.ndarray, leaves: np.ndarray
) -> None:
    """Write where to go from each leaf.

    From a true leaf an `or` is left as a whole: on to the first later leaf with a smaller join, and
    from there on in the same way until an `and` is met. From a false one likewise out of `and`.
    """
    for i in range(len(starts) - 1):
        start, n = starts[i], starts[i + 1] - starts[i]
        for k in range(n - 1, -1, -1):  # following[k]: the first later leaf with a smaller join
            at = k + 1
            while at < n and joins[start + at] >= joins[start + k]:
                at = following[at]
            following[k] = at
        for k in range(n):
            jumps = int64(0)
            for outcome in range(2):
                at = k + 1
                while at < n and (joins[start + at] & 1) == outcome:
                    at = following[at]
                if at < n:
                    target = FIRST_LEAF + start + at
                else:
                    target = int64(ACCEPT if outcome else REJECT)
                jumps = jumps << 32 | target
            leaves[start + k, 1] = jumps


@kernel
def _shapes(starts: np.ndarray, joins: np.ndarray) -> np.ndarray:
    """Return the shape of each clause."""
    out = np.empty(len(starts) - 1, np.uint8)
    for i in range(len(out)):
        least, most = 255, 0
        for k in range(starts[i] + 1, starts[i + 1]):
            least = min(least, joins[k])
            most = max(most, joins[k])
        out[i] = DEEP
        if most <= FLAT_AND + 1:
            out[i] = FLAT_AND
        elif least == FLAT_OR and most == FLAT_OR + 1:
            out[i] = FLAT_OR
    return out


# -- access ---------------------------------------------------------------------------------------


def _new_tree(n_leaves: int) -> _Tree:
    n = 2 * n_leaves
    return _Tree(
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n, np.float64),
        np.empty(n, np.int32),
        np.empty(n_leaves, np.int32),
    )


@kernel
def _put_into(tree: _Tree, part: int, child: int) -> None:
    """Note that something whose end has come belongs to a part."""
    tree.parents[child] = part
    if tree.depths[part] & 1:
        tree.costs[part] += tree.costs[child]
    elif tree.cheapest[part] < 0 or tree.costs[child] < tree.costs[part]:
        tree.costs[part] = tree.costs[child]
        tree.cheapest[part] = child


@kernel
def _make_tree(
    joins: np.ndarray, chances: np.ndarray, start: int, n: int, tree: _Tree
) -> tuple[int, int]:
    """Make the tree of a clause of n leaves; return its root, and how many parts it has."""
    n_open, n_parts = 0, 0
    for k in range(n):
        tree.costs[k] = chances[start + k]
    current = 0
    for k in range(1, n):
        depth = int64(joins[start + k])
        while n_open > 0 and tree.depths[tree.open[n_open - 1]] > depth:
            n_open -= 1
            _put_into(tree, tree.open[n_open], current)
            current = int64(tree.open[n_open])
        if n_open == 0 or tree.depths[tree.open[n_open - 1]] < depth:
            part = n + n_parts
            n_parts += 1
            tree.depths[part] = depth
            tree.costs[part] = 0.0
            tree.cheapest[part] = -1
            tree.open[n_open] = part
            n_open += 1
        _put_into(tree, tree.open[n_open - 1], current)
        current = k
    while n_open > 0:
        n_open -= 1
        _put_into(tree, tree.open[n_open], current)
        current = int64(tree.open[n_open])
    tree.parents[current] = -1
    return current, n_parts


@kernel
def _choose_on_top(tree: _Tree, root: int, n: int, n_parts: int) -> None:
    """Have an `and` on top choose its conditions if they are rare together, else a part."""
    together, least, part = 1.0, -1, -1
    for k in range(n):
        if tree.parents[k] == root:
            together *= tree.costs[k]
            if least < 0 or tree.costs[k] < tree.costs[least]:
                least = k
    for k in range(n, n + n_parts):
        if tree.parents[k] == root and (part < 0 or tree.costs[k] < tree.costs[part]):
            part = k
    if least >= 0:
        if part < 0 or together <= _RARE or tree.costs[part] >= _HALF:
            tree.cheapest[root] = least
            tree.costs[root] = together
        else:
            tree.cheapest[root] = part
            tree.costs[root] = together * tree.costs[part]


@kernel
def _is_access(tree: _Tree, leaf: int) -> bool:
    """Whether all parts around a leaf have chosen what it is in."""
    child, parent = leaf, int64(tree.parents[leaf])
    while parent >= 0 and (tree.depths[parent] & 1 or tree.cheapest[parent] == child):
        child, parent = parent, int64(tree.parents[parent])
    return bool(parent < 0)


@kernel
def _gather(
    tree: _Tree, dimensions: np.ndarray, start: int, n: int, leaf: int, root: int, out: np.ndarray
) -> int:
    """Write a leaf and conditions that go with it, ascending by dimension; return how many.

    Those are on top of the clause, or beside the leaf in an `and`.
    """
    out[0] = start + leaf
    n_out = 1
    for k in range(n):
        parent = tree.parents[k]
        is_with = parent >= 0 and (parent == root or parent == tree.parents[leaf])
        if k == leaf or not is_with or tree.depths[parent] & 1 or n_out == len(out):
            continue
        at = n_out
        while at > 0 and dimensions[out[at - 1]] > dimensions[start + k]:
            at -= 1
        if at > 0 and dimensions[out[at - 1]] == dimensions[start + k]:
            continue
        for j in range(n_out, at, -1):
            out[j] = out[j - 1]
        out[at] = start + k
        n_out += 1
    return n_out


@kernel
def _choose_access(
    table: ConjunctionTable,
    joins: np.ndarray,
    chances: np.ndarray,
    tree: _Tree,
    out_owners: np.ndarray,
    out_counts: np.ndarray,
    out_predicates: np.ndarray,
) -> tuple[int, int]:
    """Write the hull clauses of all clauses; none of one that nearly all events would wake.

    Return how many there are, and how many predicates they have.
    """
    starts, dimensions = table.clause_offsets, table.dimensions
    n_hull, n_predicates = 0, 0
    for i in range(len(starts) - 1):
        start, n = starts[i], starts[i + 1] - starts[i]
        root, n_parts = _make_tree(joins, chances, start, n, tree)
        if n_parts > 0 and (tree.depths[root] & 1) == 0:
            _choose_on_top(tree, root, n, n_parts)
        if tree.costs[root] >= _NEARLY_ALWAYS:
            continue
        for k in range(n):
            if _is_access(tree, k):
                room = out_predicates[n_predicates : n_predicates + _MOST_TOGETHER]
                out_owners[n_hull] = i
                out_counts[n_hull] = _gather(tree, dimensions, start, n, k, root, room)
                n_predicates += out_counts[n_hull]
                n_hull += 1
    return n_hull, n_predicates


def _hull_clauses(
    table: ConjunctionTable, joins: np.ndarray, chances: np.ndarray
) -> tuple[np.ndarray, ConjunctionTable]:
    """Return which clause each hull clause wakes, and all of these."""
    widest = int(np.diff(table.clause_offsets).max(initial=1))
    room = table.n_predicates if table.n_predicates > FEW_LEAVES else 0
    owners, counts = np.empty(room, np.int32), np.empty(room, np.int64)
    predicates = np.empty(_MOST_TOGETHER * room, np.int64)
    n_hull, n_predicates = 0, 0
    if room:
        n_hull, n_predicates = _choose_access(
            table, joins, chances, _new_tree(widest), owners, counts, predicates
        )
    hull = take_predicates(table, predicates[:n_predicates])._replace(
        clause_ids=np.arange(n_hull), clause_offsets=offsets_of(counts[:n_hull])
    )
    return owners[:n_hull].copy(), without_joins(hull)
