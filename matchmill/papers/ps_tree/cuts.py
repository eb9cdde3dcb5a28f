"""Where predicates begin and end: the cuts that divide the spaces of a PS-Tree, and their end.

A cut lies just before a boundary value or just after it. Predicates share cuts, and a node counts
how many have made each of its two. What the paper (section 4.2, 4.4) leaves to its report:

PartitionLeafNode    the old leaf stays on the left, the new one on the right has a copy of the
                     counters; whoever keeps lists copies them (`add_cut` returns the new leaf)
DeletePredicate      a cut that no predicate needs any more goes, and its two spaces become the left
                     one. Equal counters alone would not do: two neighbours may hold one predicate
                     each, and not the same. The larger event counter stays, as a partition had
                     copied it. A boundary without cuts goes, with the nodes that it leaves empty.

For keys a cut after k is a cut before k + 1, so that neighbours have one cut between them.
"""

from __future__ import annotations

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.common.pools import give_row, take_row
from matchmill.papers.ps_tree.forest import (
    CHILDREN,
    FANOUT,
    FIRST,
    HEIGHT,
    KEY_ELEMENTS,
    LAST,
    LEFT,
    MASK,
    N_AFTER,
    N_BEFORE,
    N_EVENTS,
    NEXT,
    PARENT,
    PREVIOUS,
    RIGHT,
    ROOT,
    E,
    Forest,
    G,
    L,
    leaf_of,
    leaf_of_key,
    lowest,
)

__all__ = [
    "MAX_KEY",
    "add_cut",
    "add_key_cut",
    "key_interval_leaves",
    "leaf_after_cut",
    "plant",
    "remove_cut",
    "remove_key_cut",
]

MAX_KEY = (1 << 63) - 1


@kernel
def plant(forest: Forest, tree: int) -> None:
    """One space, if there is no tree yet."""
    trees = forest.trees
    if trees[tree, ROOT] < 0:
        leaf = take_row(forest.leaves)
        leaves = forest.leaves.cells
        leaves[leaf] = 0
        leaves[leaf, NEXT : RIGHT + 1] = -1
        trees[tree, ROOT] = _new_node(forest, -1)
        trees[tree, HEIGHT] = 1
        trees[tree, FIRST] = leaf
        trees[tree, LAST] = leaf


@kernel
def _new_node(forest: Forest, parent: int) -> int:
    node = take_row(forest.nodes)
    nodes = forest.nodes.cells
    nodes[node] = 0
    nodes[node, CHILDREN] = -1
    nodes[node, PARENT] = parent
    return node


@kernel
def _set_child(forest: Forest, node: int, element: int, child: int, leaf: int) -> int:
    """Take a row for the node's children; `leaf` is where there are no others."""
    nodes, children = forest.nodes.cells, forest.children.cells
    if nodes[node, CHILDREN] < 0:
        row = take_row(forest.children)
        nodes[node, CHILDREN] = row
        for i in range(FANOUT):
            children[row, FANOUT + i] = ~leaf
    row = int(nodes[node, CHILDREN])
    children[row, element] = child
    nodes[node, MASK] |= 1 << element
    return row


@kernel
def _raise(forest: Forest, tree: int, key: int) -> None:
    """Put roots on top until the tree is as high as the key needs."""
    trees, nodes = forest.trees, forest.nodes.cells
    while trees[tree, HEIGHT] < KEY_ELEMENTS and key >> (4 * trees[tree, HEIGHT]):
        root = trees[tree, ROOT]
        if nodes[root, MASK]:
            top = _new_node(forest, -1)
            row = _set_child(forest, top, 0, root, int(trees[tree, LAST]))
            forest.children.cells[row, FANOUT] = nodes[root, CHILDREN]
            nodes[root, PARENT] = top
            nodes[top, L] = nodes[root, L]
            trees[tree, ROOT] = top
        trees[tree, HEIGHT] += 1


@kernel
def _spell(key: int, n: int, elements: np.ndarray) -> None:
    """Return the last n elements of a key."""
    for i in range(n):
        elements[i] = (key >> (4 * (n - 1 - i))) & (FANOUT - 1)


@kernel
def add_key_cut(forest: Forest, tree: int, key: int, elements: np.ndarray) -> int:
    """`add_cut` just before a key; `elements` is scratch. Plants the tree if it has to."""
    plant(forest, tree)
    _raise(forest, tree, key)
    n = int(forest.trees[tree, HEIGHT])
    _spell(key, n, elements)
    new = add_cut(forest, tree, elements, n, False)
    if new >= 0:
        _lead(forest, int(forest.leaves.cells[new, LEFT]), elements, n, new)
    return new


@kernel
def remove_key_cut(forest: Forest, tree: int, key: int, elements: np.ndarray) -> int:
    """Take back a cut at a key."""
    n = int(forest.trees[tree, HEIGHT])
    _spell(key, n, elements)
    return _remove_cut(forest, tree, elements, n, False, True)


@kernel
def _lead(forest: Forest, node: int, elements: np.ndarray, n: int, leaf: int) -> None:
    """Let the ways of a boundary key, and of all that follows it up to the next one, end in a leaf.

    These are, in each row from the boundary up, the empty places to its right, until one that is
    not empty; and from there down, those before the first child.
    """
    nodes, children = forest.nodes.cells, forest.children.cells
    level = n
    first = int(elements[n - 1])  # at the bottom the boundary's own place is one of them
    child = -1
    while level > 0 and child < 0:
        level -= 1
        node = int(nodes[node, PARENT])
        child = _lead_empty(nodes, children, node, first, leaf, level == n - 1)
        if level > 0:
            first = int(elements[level - 1]) + 1
    while child >= 0 and level < n - 1:
        level += 1
        child = _lead_empty(nodes, children, child, 0, leaf, False)


@kernel
def _lead_empty(
    nodes: np.ndarray, children: np.ndarray, node: int, first: int, leaf: int, with_first: bool
) -> int:
    """Lead the empty places of a node from `first` on; returns the child that ends them, or -1."""
    row, mask = nodes[node, CHILDREN], nodes[node, MASK]
    for element in range(first, FANOUT):
        if (mask >> element) & 1 and not (with_first and element == first):
            return int(children[row, element])
        children[row, FANOUT + element] = ~leaf
    return -1


@kernel
def key_interval_leaves(forest: Forest, tree: int, low: int, high: int) -> tuple[int, int]:
    """Return the first leaf of an interval between two cuts, and the one after it, or -1."""
    trees, nodes, children = forest.trees, forest.nodes.cells, forest.children.cells
    first = leaf_of_key(trees, nodes, children, tree, low)
    end = -1 if high == MAX_KEY else leaf_of_key(trees, nodes, children, tree, high + 1)
    return first, end


@kernel
def add_cut(forest: Forest, tree: int, elements: np.ndarray, n: int, after: bool) -> int:
    """Cut just before a value, or just after it (Partition, Alg. 2).

    The new leaf, to the right of the one that was divided; -1 if the cut was there already.
    """
    nodes, leaves = forest.nodes.cells, forest.leaves.cells
    node = int(forest.trees[tree, ROOT])
    n_there = 0
    while n_there < n and (nodes[node, MASK] >> int(elements[n_there])) & 1:
        node = int(forest.children.cells[nodes[node, CHILDREN], int(elements[n_there])])
        n_there += 1
    is_boundary = n_there == n and nodes[node, N_BEFORE] + nodes[node, N_AFTER] > 0
    old = int(nodes[node, E]) if is_boundary else leaf_of(forest, tree, elements, n)
    for i in range(n_there, n):
        child = _new_node(forest, node)
        row = _set_child(forest, node, int(elements[i]), child, old)
        if i > n_there:
            children = forest.children.cells
            children[nodes[nodes[node, PARENT], CHILDREN], FANOUT + int(elements[i - 1])] = row
        node = child
    if not is_boundary:
        _set_l(forest, node, old)
        nodes[node, E] = old
        nodes[node, G] = old
    side = N_AFTER if after else N_BEFORE
    nodes[node, side] += 1
    if nodes[node, side] > 1:
        return -1
    new = take_row(forest.leaves)
    leaves[new] = leaves[old]
    right = int(leaves[old, RIGHT])
    if right >= 0 and right != node:
        _relink(forest, right, old, new)
    if after or nodes[node, N_AFTER] == 0:
        nodes[node, G] = new
    if not after:
        nodes[node, E] = new
    leaves[new, LEFT] = node
    leaves[new, PREVIOUS] = old
    leaves[old, RIGHT] = node
    leaves[old, NEXT] = new
    if leaves[new, NEXT] >= 0:
        leaves[leaves[new, NEXT], PREVIOUS] = new
    else:
        forest.trees[tree, LAST] = new
    return new


@kernel
def leaf_after_cut(forest: Forest, tree: int, elements: np.ndarray, n: int, after: bool) -> int:
    """Return the leaf that begins at a cut."""
    nodes = forest.nodes.cells
    node = int(forest.trees[tree, ROOT])
    for i in range(n):
        node = int(forest.children.cells[nodes[node, CHILDREN], int(elements[i])])
    return int(nodes[node, G] if after else nodes[node, E])


@kernel
def _set_l(forest: Forest, node: int, leaf: int) -> None:
    """For a boundary, and for the nodes above it whose least boundary it is."""
    nodes, children = forest.nodes.cells, forest.children.cells
    while True:
        nodes[node, L] = leaf
        parent = int(nodes[node, PARENT])
        if parent < 0 or nodes[parent, N_BEFORE] + nodes[parent, N_AFTER] > 0:
            return
        if children[nodes[parent, CHILDREN], lowest(nodes[parent, MASK])] != node:
            return
        node = parent


@kernel
def _relink(forest: Forest, node: int, old: int, new: int) -> None:
    """Tell the boundary to the right of a space that this is another leaf now."""
    nodes = forest.nodes.cells
    if nodes[node, L] == old:
        _set_l(forest, node, new)
    if nodes[node, E] == old:
        nodes[node, E] = new


@kernel
def remove_cut(forest: Forest, tree: int, elements: np.ndarray, n: int, after: bool) -> int:
    """Take back one `add_cut`. If nothing else cuts there, its two spaces become the left one.

    The leaf that is no longer in the tree, or -1. Whoever called empties it and gives it back.
    """
    return _remove_cut(forest, tree, elements, n, after, False)


@kernel
def _remove_cut(
    forest: Forest, tree: int, elements: np.ndarray, n: int, after: bool, is_key: bool
) -> int:
    nodes, leaves = forest.nodes.cells, forest.leaves.cells
    node = int(forest.trees[tree, ROOT])
    for i in range(n):
        node = int(forest.children.cells[nodes[node, CHILDREN], int(elements[i])])
    side = N_AFTER if after else N_BEFORE
    nodes[node, side] -= 1
    if nodes[node, side] > 0:
        return -1
    kept = int(nodes[node, E] if after else nodes[node, L])
    gone = int(nodes[node, G] if after else nodes[node, E])
    right = int(leaves[gone, RIGHT])
    if right >= 0 and right != node:
        _relink(forest, right, gone, kept)
    if nodes[node, E] == gone:
        nodes[node, E] = kept
    if nodes[node, G] == gone:
        nodes[node, G] = kept
    leaves[kept, RIGHT] = right
    leaves[kept, NEXT] = leaves[gone, NEXT]
    leaves[kept, N_EVENTS] = max(leaves[kept, N_EVENTS], leaves[gone, N_EVENTS])
    if leaves[gone, NEXT] >= 0:
        leaves[leaves[gone, NEXT], PREVIOUS] = kept
    else:
        forest.trees[tree, LAST] = kept
    if is_key:
        _lead(forest, node, elements, n, kept)
    if nodes[node, N_BEFORE] + nodes[node, N_AFTER] == 0:
        _prune(forest, node, elements, n, kept)
    return gone


@kernel
def _prune(forest: Forest, node: int, elements: np.ndarray, n: int, leaf: int) -> None:
    """Give back a node and those above it, while they are no boundaries and have no children.

    `leaf` is what is left in their place.
    """
    nodes = forest.nodes.cells
    while n > 0 and nodes[node, MASK] == 0 and nodes[node, N_BEFORE] + nodes[node, N_AFTER] == 0:
        n -= 1
        parent = int(nodes[node, PARENT])
        give_row(forest.nodes, node)
        node = parent
        nodes[node, MASK] &= ~(1 << int(elements[n]))
        forest.children.cells[nodes[node, CHILDREN], FANOUT + int(elements[n])] = ~leaf
        if nodes[node, MASK] == 0:
            give_row(forest.children, int(nodes[node, CHILDREN]))
            nodes[node, CHILDREN] = -1
