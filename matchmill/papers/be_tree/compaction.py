"""A tree copied into pools without gaps, each node followed by what is below it.

A build of all clauses at once leaves the leaves of its first steps behind; the copy does without.
What is below one p-node then also lies together, which is where a match goes next.
"""

from __future__ import annotations

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.be_tree.directories import directory_words, find_entry
from matchmill.papers.be_tree.tree import (
    ABOVE,
    DIRECTORY,
    LEAF,
    LEFT,
    NODE_WIDTH,
    OWNER,
    P_DIMENSION,
    PARTITION_WIDTH,
    RIGHT,
    ROOT,
    TOP,
    UPPER,
    WORDS,
    Tree,
    nothing_sampled,
)
from matchmill.papers.common.pools import (
    new_rows,
    new_spans,
    rows_in_use,
    spans_in_use,
    take_row,
    take_span,
)

__all__ = ["compacted"]


def compacted(tree: Tree) -> Tree:
    """Copy the tree so that its memory is in one piece."""
    n_nodes, n_partitions = rows_in_use(tree.nodes), rows_in_use(tree.partitions)
    copy = Tree(
        new_rows(NODE_WIDTH, n_nodes),
        new_rows(PARTITION_WIDTH, max(1, n_partitions)),
        new_spans(np.int32, max(1, spans_in_use(tree.leaves))),
        new_spans(np.int32, max(1, spans_in_use(tree.directories))),
        tree.slot_nodes,
        tree.settings,
        tree.weights,
        *nothing_sampled(n_nodes, max(1, n_partitions)),
    )
    new_places = np.empty(len(tree.nodes.cells), np.int32)
    _copy(tree, copy, new_places, np.empty(n_nodes, np.int32))
    is_taken = tree.slot_nodes >= 0
    tree.slot_nodes[is_taken] = new_places[tree.slot_nodes[is_taken]]
    return copy


@kernel
def _copy(tree: Tree, copy: Tree, new_places: np.ndarray, stack: np.ndarray) -> None:
    """Copy the nodes from the root on; `new_places` tells where each has gone.

    A node is copied after the one above it, which then learns where it is.
    """
    old_nodes, nodes = tree.nodes.cells, copy.nodes.cells
    stack[0] = ROOT
    n_stack = 1
    while n_stack:
        n_stack -= 1
        old = stack[n_stack]
        place = take_row(copy.nodes)
        new_places[old] = place
        row = nodes[place]
        row[:] = old_nodes[old]
        if row[WORDS]:
            row[LEAF] = take_span(copy.leaves, row[WORDS])
            for k in range(row[WORDS]):
                copy.leaves.cells[row[LEAF] + k] = tree.leaves.cells[old_nodes[old, LEAF] + k]
        if row[OWNER] >= 0:
            _link(tree, copy, new_places, old)
        n_stack = _copy_directory(tree, copy, old, place, stack, n_stack)
        for side in (RIGHT, LEFT):
            if row[side] >= 0:
                stack[n_stack] = row[side]
                n_stack += 1


@kernel
def _link(tree: Tree, copy: Tree, new_places: np.ndarray, old: int) -> None:
    """Tell the bucket above, or the new p-node and its directory, where a bucket has gone."""
    old_row, place = tree.nodes.cells[old], new_places[old]
    row = copy.nodes.cells[place]
    if old_row[UPPER] >= 0:
        upper = new_places[old_row[UPPER]]
        side = LEFT if tree.nodes.cells[old_row[UPPER], LEFT] == old else RIGHT
        copy.nodes.cells[upper, side] = place
        row[UPPER] = upper
        row[OWNER] = copy.nodes.cells[upper, OWNER]
        return
    partition = take_row(copy.partitions)
    p_row = copy.partitions.cells[partition]
    p_row[:] = tree.partitions.cells[old_row[OWNER]]
    above = new_places[p_row[ABOVE]]
    p_row[TOP], p_row[ABOVE] = place, above
    row[OWNER] = partition
    start = copy.nodes.cells[above, DIRECTORY]
    entry = find_entry(copy.directories.cells, start, p_row[P_DIMENSION])
    copy.directories.cells[entry + 1] = place


@kernel
def _copy_directory(
    tree: Tree, copy: Tree, old: int, place: int, stack: np.ndarray, n_stack: int
) -> int:
    start = tree.nodes.cells[old, DIRECTORY]
    if start >= 0:
        n_words = directory_words(tree.directories.cells[start])
        fresh = take_span(copy.directories, n_words)
        copy.nodes.cells[place, DIRECTORY] = fresh
        for k in range(n_words):
            copy.directories.cells[fresh + k] = tree.directories.cells[start + k]
        for entry in range(start + 1, start + n_words, 2):
            if tree.directories.cells[entry]:
                stack[n_stack] = tree.directories.cells[entry + 1]
                n_stack += 1
    return n_stack
