"""Rank, Loss and Gain (section 5), all of the paper's factors being 1.

    Gain    for each clause of an l-node the p-nodes above it: as many of its tests are covered or
            subsumed
    Loss    tests made in vain, that is of clauses that then did not match, an event
    Rank    the Gain of all l-nodes below a p-node less their Loss

Matching counts what is made in vain for one event of `SAMPLE_EVERY`, in memory of its own: it may
run in many threads and changes nothing. A window is therefore counted in changes below a p-node,
a tenth of its clauses; what was matched meanwhile is averaged when it ends. Then Loss is noted,
which lowers the p-node's score for clauses to come, and a p-node whose Rank is below 0 is recycled.
"""

from __future__ import annotations

import numpy as np

from matchmill._jit import kernel
from matchmill.indexes.be_tree.deletion import list_subtree
from matchmill.indexes.be_tree.scratch import Scratch
from matchmill.indexes.be_tree.tree import (
    ABOVE,
    CHANGES,
    LOSS,
    OWNER,
    SAMPLED_BEFORE,
    SIZE,
    TOP,
    TOTAL_SIZE,
    Tree,
    start_window,
)

__all__ = ["SAMPLE_EVERY", "end_window", "note_change"]

SAMPLE_EVERY = 8
_SHORTEST_WINDOW = 16
_THRESHOLD = 0


@kernel
def note_change(tree: Tree, scratch: Scratch, node: int) -> int:
    """Count a change for the p-nodes above a node, and end the windows that it fills; the highest
    p-node that is to be recycled, or -1. No work may be left."""
    recycled = -1
    owner = tree.nodes.cells[node, OWNER]
    while owner >= 0:
        tree.windows[owner, CHANGES] += 1
        length = max(_SHORTEST_WINDOW, tree.partitions.cells[owner, TOTAL_SIZE] // 10)
        if tree.windows[owner, CHANGES] >= length and end_window(tree, scratch, owner):
            recycled = owner
        owner = tree.nodes.cells[tree.partitions.cells[owner, ABOVE], OWNER]
    return int(recycled)


@kernel
def end_window(tree: Tree, scratch: Scratch, partition: int) -> bool:
    """Note what a p-node lost in its window and begin the next; whether it is to be recycled."""
    n_events = tree.sampled[0] - tree.windows[partition, SAMPLED_BEFORE]
    if n_events == 0:
        return False
    gain = n_discarded = 0
    nodes, partitions = tree.nodes.cells, tree.partitions.cells
    top = partitions[partition, TOP]
    for k in range(list_subtree(nodes, tree.directories.cells, top, scratch.work)):
        node = scratch.work[k]
        n_discarded += tree.discarded[node]
        tree.discarded[node] = 0
        gain += nodes[node, SIZE] * _depth(nodes, partitions, node)
    partitions[partition, LOSS] = n_discarded // n_events
    start_window(tree.windows, tree.sampled, partition)
    return bool(gain - n_discarded // n_events < _THRESHOLD)


@kernel
def _depth(nodes: np.ndarray, partitions: np.ndarray, node: int) -> int:
    depth = 0
    owner = nodes[node, OWNER]
    while owner >= 0:
        depth += 1
        owner = nodes[partitions[owner, ABOVE], OWNER]
    return depth
