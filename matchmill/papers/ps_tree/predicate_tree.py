"""`ps_tree`: the PS-Tree of one dimension of keys; its leaves list the predicates that hold there.

forest     one tree (`forest.py`)
lists      for each leaf the ids of all predicates that cover its space, so that a point query
           is a way down the tree and a copy (PS-Tree, Table 3). A predicate is listed as often
           as it covers spaces: wide intervals among many cuts take memory, as in the paper.
intervals  n, low, high, low, high … of each predicate, for its deletion
table      where the intervals of an id are
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.common.id_table import (
    IdTable,
    check_known,
    check_new,
    find_id,
    find_ids,
    new_id_table,
    put_id,
    remove_id,
    table_with_room,
)
from matchmill.papers.common.pools import (
    Spans,
    give_row,
    give_span,
    new_spans,
    rows_left,
    span_capacity,
    spans_left,
    spans_with_room,
    take_span,
)
from matchmill.papers.predicate_index.base import Predicates, Satisfied
from matchmill.papers.predicate_index.interval_table import collect
from matchmill.papers.ps_tree.cuts import (
    MAX_KEY,
    add_key_cut,
    key_interval_leaves,
    plant,
    remove_key_cut,
)
from matchmill.papers.ps_tree.forest import (
    CHILDREN,
    FANOUT,
    KEY_ELEMENTS,
    LIST,
    N_LIST,
    N_PREDICATES,
    NEXT,
    PREVIOUS,
    Forest,
    forest_with_room,
    leaf_of_key,
    new_forest,
    with_trees,
)
from matchmill.papers.ps_tree.leaf_lists import (
    append_entry,
    copy_list,
    drop_list,
    list_cells_needed,
    remove_entry,
)

__all__ = ["PSTree", "PSTreeArrays"]

_ROWS_PER_CUT = 2 * KEY_ELEMENTS + 1
_AT_ONCE = 32  # keys that are looked up together


class PSTreeArrays(NamedTuple):
    """The arrays of the tree."""

    forest: Forest
    lists: Spans  # int64
    intervals: Spans  # int64
    table: IdTable


class PSTree:
    """Changes in place, one call at a time."""

    name: ClassVar[str] = "ps_tree"

    def __init__(self) -> None:
        forest = forest_with_room(with_trees(new_forest(), 1), 1)
        plant(forest, 0)
        self.arrays = PSTreeArrays(forest, new_spans(), new_spans(), new_id_table())

    @classmethod
    def build(cls, predicates: Predicates) -> PSTree:
        """Build the index from predicates."""
        tree = cls()
        tree.insert(predicates)
        return tree

    def insert(self, predicates: Predicates) -> None:
        """Insert predicates."""
        ids = predicates.ids
        check_new(find_ids(self.arrays.table, ids), ids, "predicates")
        scratch, needed = np.zeros(KEY_ELEMENTS, np.uint8), np.zeros(3, np.int64)
        done = 0
        while True:
            done = _insert(self.arrays, *predicates, done, scratch, needed)
            if done == len(ids):
                return
            n_cuts, n_list_cells, n_interval_cells = needed.tolist()
            forest, lists, intervals, table = self.arrays
            self.arrays = PSTreeArrays(
                forest_with_room(forest, n_cuts),
                spans_with_room(lists, n_list_cells),
                spans_with_room(intervals, n_interval_cells),
                table_with_room(table, 1),
            )

    def delete(self, ids: np.ndarray) -> None:
        """Delete predicates by their ids."""
        ids = np.unique(ids)
        check_known(find_ids(self.arrays.table, ids), "predicates")
        _delete(self.arrays, ids, np.zeros(KEY_ELEMENTS, np.uint8))

    def match(self, keys: np.ndarray) -> Satisfied:
        """Find the predicates that each key satisfies."""
        forest, lists, _, table = self.arrays
        return collect(
            len(keys),
            int(table.n_used[0]),
            lambda start, offsets, out: _match(forest, lists.cells, keys, start, offsets, out),
        )

    @property
    def n_bytes(self) -> int:
        """Bytes of the arrays."""
        forest, lists, intervals, table = self.arrays
        pools = (forest.nodes, forest.children, forest.leaves, lists, intervals, table)
        return int(forest.trees.nbytes + sum(a.nbytes for pool in pools for a in pool))


@kernel
def _insert(
    tree: PSTreeArrays,
    ids: np.ndarray,
    offsets: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    start: int,
    scratch: np.ndarray,
    out_needed: np.ndarray,
) -> int:
    """Insert predicates from `start` on; returns the first one for which there was no room."""
    forest, lists, intervals = tree.forest, tree.lists, tree.intervals
    leaves = forest.leaves.cells
    for p in range(start, len(ids)):
        first, end = int(offsets[p]), int(offsets[p + 1])
        n = end - first
        n_cells = 0
        for k in range(first, end):
            n_cells += _cells_needed(forest, lows[k], highs[k])
        if (
            min(rows_left(forest.nodes), rows_left(forest.children)) < 2 * n * _ROWS_PER_CUT
            or rows_left(forest.leaves) < 2 * n
            or spans_left(lists) < n_cells
            or spans_left(intervals) < span_capacity(2 * n + 1)
            or 2 * (tree.table.n_used[0] + 1) > len(tree.table.cells)
        ):
            out_needed[0] = 2 * n
            out_needed[1] = n_cells
            out_needed[2] = span_capacity(2 * n + 1)
            return p
        at = take_span(intervals, 2 * n + 1)
        intervals.cells[at] = n
        for k in range(n):
            low, high = lows[first + k], highs[first + k]
            intervals.cells[at + 1 + 2 * k] = low
            intervals.cells[at + 2 + 2 * k] = high
            if low > 0:
                _divide(forest, lists, add_key_cut(forest, 0, low, scratch))
            if high < MAX_KEY:
                _divide(forest, lists, add_key_cut(forest, 0, high + 1, scratch))
            leaf, last = key_interval_leaves(forest, 0, low, high)
            while leaf != last:
                leaves[leaf, N_PREDICATES] += 1
                lists.cells[append_entry(lists, leaves, leaf, 1)] = ids[p]
                leaf = int(leaves[leaf, NEXT])
        put_id(tree.table, ids[p], at)
    return len(ids)


@kernel
def _cells_needed(forest: Forest, low: int, high: int) -> int:
    """Return the most cells that lists take when an interval is inserted."""
    trees, nodes, children = forest.trees, forest.nodes.cells, forest.children.cells
    leaves = forest.leaves.cells
    leaf = leaf_of_key(trees, nodes, children, 0, low)
    end = leaves[leaf_of_key(trees, nodes, children, 0, high), NEXT]
    n = 0
    while leaf != end:
        n += list_cells_needed(leaves, leaf, 1)
        leaf = int(leaves[leaf, NEXT])
    return n


@kernel
def _divide(forest: Forest, lists: Spans, new: int) -> None:
    """Give a leaf that a cut has made the list of the one to its left."""
    if new >= 0:
        leaves = forest.leaves.cells
        copy_list(lists, leaves, int(leaves[new, PREVIOUS]), new, 1)


@kernel
def _delete(tree: PSTreeArrays, ids: np.ndarray, scratch: np.ndarray) -> None:
    forest, lists, intervals = tree.forest, tree.lists, tree.intervals
    leaves = forest.leaves.cells
    for k in range(len(ids)):
        at = find_id(tree.table.cells, ids[k])
        remove_id(tree.table, ids[k])
        n = int(intervals.cells[at])
        for i in range(at + 1, at + 1 + 2 * n, 2):
            leaf, last = key_interval_leaves(forest, 0, intervals.cells[i], intervals.cells[i + 1])
            while leaf != last:
                leaves[leaf, N_PREDICATES] -= 1
                remove_entry(lists, leaves, leaf, 1, ids[k])
                leaf = int(leaves[leaf, NEXT])
        for i in range(at + 1, at + 1 + 2 * n, 2):
            low, high = intervals.cells[i], intervals.cells[i + 1]
            if low > 0:
                _unite(forest, lists, remove_key_cut(forest, 0, low, scratch))
            if high < MAX_KEY:
                _unite(forest, lists, remove_key_cut(forest, 0, high + 1, scratch))
        give_span(intervals, at, 2 * n + 1)


@kernel
def _unite(forest: Forest, lists: Spans, gone: int) -> None:
    """Drop a leaf that no cut divides off any more: it lists what its neighbour does."""
    if gone >= 0:
        drop_list(lists, forest.leaves.cells, gone)
        give_row(forest.leaves, gone)


@kernel
def _match(
    forest: Forest,
    lists: np.ndarray,
    keys: np.ndarray,
    start: int,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> int:
    """Write the ids of keys from `start` on, and return the first key for which there was no room.

    Several keys go down the tree step by step: memory answers all of them at once.
    """
    children, leaves = forest.children.cells, forest.leaves.cells
    root, height, _, last = forest.trees[0]
    top = forest.nodes.cells[root, CHILDREN]
    ways, firsts, numbers = np.empty((3, _AT_ONCE), np.int64)
    n_out = out_offsets[start]
    for block in range(start, len(keys), _AT_ONCE):
        n = min(_AT_ONCE, len(keys) - block)
        for i in range(n):
            is_beyond = height < KEY_ELEMENTS and keys[block + i] >> (4 * height)
            ways[i] = ~last if top < 0 or is_beyond else top
        for level in range(height - 1, -1, -1):
            for i in range(n):
                if ways[i] >= 0:
                    element = (keys[block + i] >> (4 * level)) & (FANOUT - 1)
                    ways[i] = children[ways[i], FANOUT + element]
        for i in range(n):
            leaf = ~ways[i]
            firsts[i], numbers[i] = leaves[leaf, LIST], leaves[leaf, N_LIST]
        for i in range(n):
            first, n_ids = firsts[i], numbers[i]
            if n_out + n_ids > len(out):
                return block + i
            for k in range(n_ids):
                out[n_out + k] = lists[first + k]
            n_out += n_ids
            out_offsets[block + i + 1] = n_out
    return len(keys)
