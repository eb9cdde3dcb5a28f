"""Rank, Loss and Gain (section 5), all of the paper's factors being 1.

    Gain    for each clause of an l-node the p-nodes above it: as many of its tests are covered or
            subsumed
    Loss    tests made in vain, that is of clauses that then did not match, per event
    Rank    the Gain of all l-nodes below a p-node less their Loss

Matching counts what is made in vain for one event of `SAMPLE_EVERY`, in memory of its own: it may
run in many threads and changes nothing. A window is therefore counted in changes below a p-node,
a tenth of its clauses; what was matched meanwhile is averaged when it ends. Then Loss is noted,
which lowers the p-node's score for clauses to come, and the p-node may be recycled.

The paper leaves the threshold open, under which a Rank is too low. Rank below 0 hardly ever occurs:
a clause has a Gain of 1 at least, and is looked at in vain by few events. So what is lost for a
clause is also compared with what p-nodes usually lose for one, an average over windows that fades:
twice of it is too much.
"""

from __future__ import annotations

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.be_tree.deletion import list_subtree
from matchmill.papers.be_tree.scratch import Scratch
from matchmill.papers.be_tree.tree import (
    ABOVE,
    CHANGES,
    LOSS,
    N_WINDOWS,
    OWNER,
    SAMPLED,
    SAMPLED_BEFORE,
    SIZE,
    TOP,
    TOTAL_SIZE,
    USUAL_LOSS,
    Tree,
    start_window,
)

__all__ = ["SAMPLE_EVERY", "end_window", "note_change"]

SAMPLE_EVERY = 8
_SHORTEST_WINDOW = 16
_TOO_MUCH = 2  # times what is usual
_SCALE = 1 << 20  # of what is lost for a clause
_MEMORY = 64  # windows that make what is usual


@kernel
def note_change(tree: Tree, scratch: Scratch, node: int) -> int:
    """Count a change for the p-nodes above a node, and end the windows that it fills.

    The highest p-node that is to be recycled, or -1. No work may be left.
    """
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
    n_events = tree.sampled[SAMPLED] - tree.windows[partition, SAMPLED_BEFORE]
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
    if gain < n_discarded // n_events:
        return True
    # In vain for a clause, compared with what is usual.
    own = _SCALE * n_discarded // (n_events * max(1, partitions[partition, TOTAL_SIZE]))
    usual, n_windows = tree.sampled[USUAL_LOSS], tree.sampled[N_WINDOWS]
    tree.sampled[USUAL_LOSS] += (own - usual) // min(n_windows + 1, _MEMORY)
    tree.sampled[N_WINDOWS] += 1
    return bool(n_windows > 0 and own > _TOO_MUCH * usual)


@kernel
def _depth(nodes: np.ndarray, partitions: np.ndarray, node: int) -> int:
    depth = 0
    owner = nodes[node, OWNER]
    while owner >= 0:
        depth += 1
        owner = nodes[partitions[owner, ABOVE], OWNER]
    return depth
