"""Rank, Loss and Gain (section 5).

    Gain    of an l-node: for each clause the p-nodes above it, which have as many of its tests;
            alpha_subsumed for a test that is subsumed, alpha_covered for one that is covered
    Loss    tests made in vain, that is of clauses that then did not match, per event
    Rank    beta times the Gain of all l-nodes below a p-node, less gamma times their Loss

A test is lost at the l-node where it is made, and counted there alone: p-nodes and buckets make
no tests of clauses, so they have no Loss beside that of their l-nodes.

Matching may run in many threads and changes no structure; it counts into memory of its own.

    windows="changes"     What is made in vain is counted for one event of `SAMPLE_EVERY`. The
                          window of a p-node is a tenth of its clauses, counted in changes below it;
                          what was matched meanwhile is averaged when it ends.
    windows="operations"  As printed: insertions, deletions and the events that come to the p-node,
                          all of them, fill its window, and Loss is an average over these events.
                          A window that matches have filled ends at the next change below, or when
                          `adjust` is called.

When a window ends, Loss is noted, which lowers the p-node's score for clauses to come, and the
p-node may be recycled: if its Rank is below `threshold`. Without a threshold it is if its Rank is
below 0, which hardly ever occurs over all events (a clause has a Gain of 1 at least, and is looked
at in vain by few of them), and also if what is lost for a clause is twice of what p-nodes usually
lose for one, an average over windows that fades.

If it is not recycled and `reinsert` is set, those of its clauses for which another p-node now ranks
higher are taken out and inserted again.
"""

from __future__ import annotations

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.be_tree.clause_records import CHECKED, TOTAL, test_words
from matchmill.papers.be_tree.deletion import list_subtree
from matchmill.papers.be_tree.parameters import (
    ALPHA_COVERED,
    ALPHA_SUBSUMED,
    BETA,
    BY_OPERATIONS,
    GAMMA,
    HAS_THRESHOLD,
    REINSERT,
    THRESHOLD,
)
from matchmill.papers.be_tree.scratch import NOTHING, REINSERTED, Scratch
from matchmill.papers.be_tree.tree import (
    ABOVE,
    CHANGES,
    LEAF,
    LOSS,
    LOSS_UNIT,
    N_WINDOWS,
    OWNER,
    SAMPLED,
    SAMPLED_BEFORE,
    SIZE,
    TOP,
    TOTAL_SIZE,
    USUAL_LOSS,
    VISITS,
    WORDS,
    Tree,
    start_window,
    window_length,
)

__all__ = ["SAMPLE_EVERY", "end_window", "is_full", "note_change"]

SAMPLE_EVERY = 8
_TOO_MUCH = 2  # times what is usual
_SCALE = 1 << 20  # of what is lost for a clause
_MEMORY = 64  # windows that make what is usual


@kernel
def is_full(tree: Tree, partition: int) -> bool:
    """Tell whether the window of a p-node has all of its operations."""
    window = tree.windows[partition]
    return bool(window[CHANGES] + window[VISITS] >= window_length(tree, partition))


@kernel
def note_change(tree: Tree, scratch: Scratch, node: int) -> int:
    """Count a change for the p-nodes above a node, and end the windows that it fills.

    The highest p-node that is to be recycled, or -1. No work may be left.
    """
    recycled = -1
    owner = tree.nodes.cells[node, OWNER]
    while owner >= 0:
        tree.windows[owner, CHANGES] += 1
        if is_full(tree, owner) and end_window(tree, scratch, owner):
            recycled = owner
        owner = tree.nodes.cells[tree.partitions.cells[owner, ABOVE], OWNER]
    if recycled >= 0:
        scratch.state[REINSERTED] = NOTHING
    return int(recycled)


@kernel
def end_window(tree: Tree, scratch: Scratch, partition: int) -> bool:
    """Note what a p-node lost in its window and begin the next; whether it is to be recycled."""
    by_operations = tree.settings[BY_OPERATIONS]
    window = tree.windows[partition]
    n_events = window[VISITS] if by_operations else tree.sampled[SAMPLED] - window[SAMPLED_BEFORE]
    if n_events == 0 and not by_operations:
        return False
    n_discarded, gain = _loss_and_gain(tree, scratch, partition)
    loss = n_discarded / n_events if n_events else 0.0
    tree.partitions.cells[partition, LOSS] = int(loss * LOSS_UNIT)
    start_window(tree.windows, tree.sampled, partition)
    is_poor = _is_poor(tree, partition, gain, loss, n_discarded, max(1, n_events))
    if tree.settings[REINSERT] and not is_poor:
        scratch.state[REINSERTED] = partition
    return is_poor


@kernel
def _loss_and_gain(tree: Tree, scratch: Scratch, partition: int) -> tuple[int, float]:
    """Sum up the tests made in vain below a p-node, and the Gain; begin to count them again."""
    nodes, partitions, words = tree.nodes.cells, tree.partitions.cells, tree.leaves.cells
    alpha_subsumed, alpha_covered = tree.weights[ALPHA_SUBSUMED], tree.weights[ALPHA_COVERED]
    gain, n_discarded = 0.0, 0
    top = partitions[partition, TOP]
    for k in range(list_subtree(nodes, tree.directories.cells, top, scratch.work)):
        node = scratch.work[k]
        n_discarded += tree.discarded[node]
        tree.discarded[node] = 0
        gain += alpha_covered * nodes[node, SIZE] * _depth(nodes, partitions, node)
        if alpha_subsumed != alpha_covered:
            n_subsumed = _count_subsumed(nodes[node], words)
            gain += (alpha_subsumed - alpha_covered) * n_subsumed
    return n_discarded, gain


@kernel
def _count_subsumed(row: np.ndarray, words: np.ndarray) -> int:
    """Count the tests of a leaf that are not made."""
    n_subsumed = 0
    record, end = row[LEAF], row[LEAF] + row[WORDS]
    while record < end:
        p, stop = record + words[record + CHECKED], record + words[record + TOTAL]
        while p < stop:
            n_subsumed += 1
            p += test_words(words, p)
        record = stop
    return n_subsumed


@kernel
def _is_poor(
    tree: Tree, partition: int, gain: float, loss: float, n_discarded: int, n_events: int
) -> bool:
    rank = tree.weights[BETA] * gain - tree.weights[GAMMA] * loss
    if tree.weights[HAS_THRESHOLD]:
        return bool(rank < tree.weights[THRESHOLD])
    if rank < 0:
        return True
    # In vain for a clause, compared with what is usual.
    own = _SCALE * n_discarded // (n_events * max(1, tree.partitions.cells[partition, TOTAL_SIZE]))
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
