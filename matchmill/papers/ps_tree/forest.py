"""PS-Trees: the values of a dimension cut into predicate spaces (PS-Tree paper, section 4).

    tree t        root node, height (trees of keys alone), first leaf, last leaf; root -1: no tree
    node          an element of values; a node at which a cut was made is a boundary value v:
                  l the leaf before v, e the leaf of v, g the leaf after v. Any other node has in
                  l that of the least boundary below it
                  n_before, n_after: how many predicates cut just before v, and just after it
                  children, mask: the row of its 16 children (-1: none) and which of them there are
                  parent
    children      16 nodes, then 16 ways, for keys: where a look-up goes on from each element,
                  whether there is a child or not: to the row of its children, or to a leaf, as
                  ~leaf. Cuts keep the ways right, so that a look-up compares nothing
    leaf          a space: next, previous, the boundary nodes to its left and right (-1: none),
                  predicate counter, event counter, a list of entries (`leaf_lists.py`), and two
                  columns for whoever files something else here

A space has as its id the row of its leaf, unique over all trees, so it names the dimension too.
The root's links to the first and the last leaf stand in the tree. `e` is the same leaf as `l` where
nothing cuts before v, and the same as `g` where nothing cuts after v.

Values are sequences of elements 0 … 15 (`typed_elements.py`); whatever the type, order is that of
the sequences. Keys (int64, not negative) are 16 elements without the zeros in front: a tree is as
high as its largest boundary needs, and a new root is put on top when that grows.

What the paper leaves to its report: GetRNode keeps, on the way down, the last greater neighbour,
and its `l` is the answer: GetLNode is done when cuts are made, not when they are looked for. For
keys both are done when cuts are made: all that lies between two boundaries has the same way.
`cuts.py` is about PartitionLeafNode and DeletePredicate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.common.pools import Rows, new_rows, rows_with_room

__all__ = [
    "CHILDREN",
    "EXTRA",
    "EXTRA_SIZE",
    "FANOUT",
    "FIRST",
    "HEIGHT",
    "KEY_ELEMENTS",
    "LAST",
    "LEFT",
    "LIST",
    "LIST_ROOM",
    "MASK",
    "NEXT",
    "N_AFTER",
    "N_BEFORE",
    "N_EVENTS",
    "N_LIST",
    "N_PREDICATES",
    "PARENT",
    "PREVIOUS",
    "RIGHT",
    "ROOT",
    "E",
    "Forest",
    "G",
    "L",
    "forest_with_room",
    "leaf_of",
    "leaf_of_key",
    "lowest",
    "new_forest",
    "with_trees",
]  # fmt: skip

FANOUT = 16
KEY_ELEMENTS = 16

# Columns of trees, of nodes, of leaves.
ROOT, HEIGHT, FIRST, LAST = range(4)
L, E, G, N_BEFORE, N_AFTER, CHILDREN, MASK, PARENT = range(8)
NEXT, PREVIOUS, LEFT, RIGHT, N_PREDICATES, N_EVENTS = range(6)
LIST, N_LIST, LIST_ROOM, EXTRA, EXTRA_SIZE = range(6, 11)


class Forest(NamedTuple):
    """The arrays of all trees."""

    trees: np.ndarray  # int32, two dimensions
    nodes: Rows  # int32
    children: Rows  # int32
    leaves: Rows  # int64


def new_forest() -> Forest:
    """Make a forest without trees."""
    return Forest(np.empty((0, 4), np.int32), _narrow(8), _narrow(2 * FANOUT), new_rows(11))


def _narrow(width: int) -> Rows:
    rows = new_rows(width)
    return rows._replace(cells=rows.cells.astype(np.int32))


def with_trees(forest: Forest, n: int) -> Forest:
    """Return the same forest with places for at least n trees."""
    n_trees = len(forest.trees)
    if n <= n_trees:
        return forest
    trees = np.full((max(n, n_trees + n_trees // 2), 4), -1, np.int32)
    trees[:n_trees] = forest.trees
    return forest._replace(trees=trees)


def forest_with_room(forest: Forest, n_cuts: int, n_elements: int = KEY_ELEMENTS) -> Forest:
    """Return the same forest, with room for so many cuts at values of so many elements.

    A tree of keys may have to grow by as many roots, and may have to be planted.
    """
    n = n_cuts * (2 * n_elements + 1)
    return Forest(
        forest.trees,
        rows_with_room(forest.nodes, n),
        rows_with_room(forest.children, n),
        rows_with_room(forest.leaves, 2 * n_cuts),
    )


# -- looking up -----------------------------------------------------------------------------------


@kernel
def lowest(mask: int) -> int:
    """Return the number of the lowest bit that is set."""
    n = 0
    if mask & 0xFF == 0:
        mask >>= 8
        n = 8
    if mask & 0xF == 0:
        mask >>= 4
        n += 4
    if mask & 0x3 == 0:
        mask >>= 2
        n += 2
    return n if mask & 1 else n + 1


@kernel
def leaf_of_key(
    trees: np.ndarray, nodes: np.ndarray, children: np.ndarray, tree: int, key: int
) -> int:
    """Return the leaf of a key, -1 where there is no tree (MatchPair, Alg. 3)."""
    node = trees[tree, ROOT]
    if node < 0:
        return -1
    way = nodes[node, CHILDREN]
    shift = 4 * trees[tree, HEIGHT]
    if way < 0 or (shift < 4 * KEY_ELEMENTS and key >> shift):
        return int(trees[tree, LAST])
    while way >= 0:
        shift -= 4
        way = children[way, FANOUT + ((key >> shift) & (FANOUT - 1))]
    return int(~way)


@kernel
def leaf_of(forest: Forest, tree: int, elements: np.ndarray, n: int) -> int:
    """Return the leaf of a value given by its elements; the tree must have been planted."""
    nodes, children = forest.nodes.cells, forest.children.cells
    node = forest.trees[tree, ROOT]
    greater = -1
    for i in range(n):
        element = int(elements[i])
        mask = nodes[node, MASK]
        row = nodes[node, CHILDREN]
        above = mask >> (element + 1)
        if above:
            greater = children[row, element + 1 + lowest(above)]
        if not (mask >> element) & 1:
            node = -1
            break
        node = children[row, element]
    if node >= 0:
        if nodes[node, N_BEFORE] + nodes[node, N_AFTER] > 0:
            return int(nodes[node, E])
        if nodes[node, MASK]:  # only longer values are boundaries, and they are greater
            greater = node
    if greater < 0:
        return int(forest.trees[tree, LAST])
    return int(nodes[greater, L])
