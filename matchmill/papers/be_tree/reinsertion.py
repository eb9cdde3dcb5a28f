"""Clauses that are inserted again, each by itself (the second strategy that section 5 names).

The paper leaves the description to a report. Here a clause is misplaced if, among the p-nodes that
could take it, another one ranks higher now than the one that it is below. What is below a p-node is
looked through when its window ends. Clauses that are misplaced are taken out and inserted again,
one after the other, and what one of them brings about is settled before the next.
"""

from __future__ import annotations

from matchmill.kernels.jit import kernel
from matchmill.papers.be_tree.clause_records import TOTAL
from matchmill.papers.be_tree.deletion import (
    find_record,
    list_subtree,
    remove_record,
    tidy,
    underfull_partition,
)
from matchmill.papers.be_tree.insertion import best_partition
from matchmill.papers.be_tree.parameters import MIN_SIZE
from matchmill.papers.be_tree.scratch import (
    HAS_HELD,
    N_MOVING,
    NEED_HELD,
    NEED_MOVING,
    RECYCLED,
    REINSERTED,
    Scratch,
)
from matchmill.papers.be_tree.tree import ABOVE, LEAF, TOP, TOTAL_SIZE, WORDS, Tree, rank_of

__all__ = ["list_misplaced", "take_out"]


@kernel
def list_misplaced(tree: Tree, scratch: Scratch) -> bool:
    """Note the clauses below the p-node REINSERTED that are misplaced; False if there was no room.

    No work may be left.
    """
    nodes, words = tree.nodes.cells, tree.leaves.cells
    p_row = tree.partitions.cells[scratch.state[REINSERTED]]
    if p_row[TOTAL_SIZE] > len(scratch.moving):
        scratch.needs[:] = 0
        scratch.needs[NEED_MOVING] = p_row[TOTAL_SIZE]
        return False
    own_rank, n_moving = rank_of(tree, p_row[TOP]), 0
    for k in range(list_subtree(nodes, tree.directories.cells, p_row[TOP], scratch.work)):
        row = nodes[scratch.work[k]]
        record, end = row[LEAF], row[LEAF] + row[WORDS]
        while record < end:
            best, _, _ = best_partition(tree, words, record, p_row[ABOVE], False)
            if rank_of(tree, best) > own_rank:
                scratch.moving[n_moving] = words[record]
                n_moving += 1
            record += words[record + TOTAL]
    scratch.state[N_MOVING] = n_moving
    return True


@kernel
def take_out(tree: Tree, scratch: Scratch, slot: int) -> bool:
    """Take a clause out of the tree and hold it; False if there was no room for its record."""
    words = tree.leaves.cells
    record = find_record(tree, slot)
    n_words = words[record + TOTAL]
    if n_words > len(scratch.held):
        scratch.needs[:] = 0
        scratch.needs[NEED_HELD] = n_words
        return False
    for k in range(n_words):
        scratch.held[k] = words[record + k]
    scratch.state[HAS_HELD] = 1
    node = remove_record(tree, slot)
    min_size = tree.settings[MIN_SIZE]
    recycled = underfull_partition(tree.nodes.cells, tree.partitions.cells, min_size, node)
    scratch.state[RECYCLED] = recycled
    if recycled < 0:
        tidy(tree, scratch, node)
    return True
