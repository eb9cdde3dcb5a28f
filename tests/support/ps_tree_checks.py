"""What must hold of a forest of PS-Trees at any moment, whatever was inserted and deleted."""

from __future__ import annotations

import numpy as np

from matchmill.papers.common.pools import rows_in_use
from matchmill.papers.ps_tree.forest import (
    CHILDREN,
    FANOUT,
    FIRST,
    LAST,
    LEFT,
    MASK,
    N_AFTER,
    N_BEFORE,
    NEXT,
    PARENT,
    PREVIOUS,
    RIGHT,
    ROOT,
    E,
    Forest,
    G,
    L,
)


def check_forest(forest: Forest) -> list[int]:
    """Asserts all invariants; returns how many spaces each tree has."""
    counts = [check_tree(forest, t) for t in range(len(forest.trees)) if forest.trees[t, ROOT] >= 0]
    assert rows_in_use(forest.leaves) == sum(n for n, _, _ in counts)
    assert rows_in_use(forest.nodes) == sum(n for _, n, _ in counts)
    assert rows_in_use(forest.children) == sum(n for _, _, n in counts)
    return [n for n, _, _ in counts]


def check_tree(forest: Forest, tree: int) -> tuple[int, int, int]:
    """Leaves, nodes and rows of children of one tree."""
    nodes, leaves = forest.nodes.cells, forest.leaves.cells
    root = int(forest.trees[tree, ROOT])
    assert nodes[root, PARENT] == -1
    boundaries: list[int] = []
    n_nodes, n_rows = _walk(forest, root, boundaries, is_root=True)

    # Boundaries in order say which leaves there are, and where they begin and end.
    expected = [(-1, -1)]
    for node in boundaries:
        before, e, g = (int(x) for x in nodes[node, [L, E, G]])
        assert before == expected[-1][0] or expected[-1][0] == -1
        expected[-1] = (before, expected[-1][1])
        assert (e != before) == (nodes[node, N_BEFORE] > 0)
        assert (g != e) == (nodes[node, N_AFTER] > 0)
        if e != before:
            expected.append((e, node))
        if g != e:
            expected.append((g, node))
    if expected[-1][0] == -1:
        expected[-1] = (int(forest.trees[tree, LAST]), -1)

    chain = []
    leaf = int(forest.trees[tree, FIRST])
    previous = -1
    while leaf >= 0:
        assert leaves[leaf, PREVIOUS] == previous
        chain.append((leaf, int(leaves[leaf, LEFT])))
        previous, leaf = leaf, int(leaves[leaf, NEXT])
    assert previous == forest.trees[tree, LAST]
    assert chain == expected
    rights = [node for _, node in chain[1:]] + [-1]
    assert [int(leaves[leaf, RIGHT]) for leaf, _ in chain] == rights
    return len(chain), n_nodes, n_rows


def _walk(forest: Forest, node: int, out: list[int], is_root: bool = False) -> tuple[int, int]:
    """Boundaries from `node` down, in order; counts nodes and rows of children."""
    nodes = forest.nodes.cells
    assert min(nodes[node, N_BEFORE], nodes[node, N_AFTER]) >= 0
    is_boundary = nodes[node, N_BEFORE] + nodes[node, N_AFTER] > 0
    mask = int(nodes[node, MASK])
    assert is_boundary or mask or is_root, "a node that leads nowhere"
    assert (nodes[node, CHILDREN] >= 0) == (mask != 0)
    if is_boundary:
        out.append(node)
    first = len(out) - int(is_boundary)
    n_nodes, n_rows = 1, int(mask != 0)
    for element in range(FANOUT):
        if mask >> element & 1:
            child = int(forest.children.cells[nodes[node, CHILDREN], element])
            assert nodes[child, PARENT] == node
            below = _walk(forest, child, out)
            n_nodes, n_rows = n_nodes + below[0], n_rows + below[1]
    if mask or is_boundary:
        assert nodes[node, L] == nodes[out[first], L], "l is that of the least boundary"
    return n_nodes, n_rows


def key_bounds(forest: Forest, tree: int, keys: range) -> np.ndarray:
    """For each key the leaf that a walk along the leaves finds: the slow way."""
    starts = {-1: 0}
    for node, value in _values(forest, int(forest.trees[tree, ROOT]), 0):
        starts[node] = value
    found = []
    for key in keys:
        leaf = int(forest.trees[tree, FIRST])
        leaves = forest.leaves.cells
        while (after := int(leaves[leaf, NEXT])) >= 0 and starts[int(leaves[after, LEFT])] <= key:
            leaf = after
        found.append(leaf)
    return np.array(found)


def _values(forest: Forest, node: int, value: int) -> list[tuple[int, int]]:
    nodes = forest.nodes.cells
    found = []
    if nodes[node, N_BEFORE] + nodes[node, N_AFTER] > 0:
        found.append((node, value))
    for element in range(FANOUT):
        if int(nodes[node, MASK]) >> element & 1:
            child = int(forest.children.cells[nodes[node, CHILDREN], element])
            found += _values(forest, child, 16 * value + element)
    return found
