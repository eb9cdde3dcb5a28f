"""Clauses leave: underflow (section 4.2), the merge rule (section 4.3), recycling (section 5).

Of the two ways that the paper has for the clauses of an l-node that underflows, they are inserted
again: they are copied to the spill, and their nodes are given back. What underflows is

    a p-node with fewer clauses than min_size, which would not have been made for them, or none
    a bucket that has not been split with fewer than min_size clauses, if the bucket above is open
    and the halves of that fit into one l-node: it becomes the bucket that it was before the split
"""

from __future__ import annotations

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.be_tree.clause_records import SLOT, TOTAL
from matchmill.papers.be_tree.cutting import fitting_capacity
from matchmill.papers.be_tree.directories import directory_words, remove_partition
from matchmill.papers.be_tree.parameters import MAX_CAPACITY, MIN_SIZE
from matchmill.papers.be_tree.scratch import (
    DOUBTFUL,
    MERGED,
    NEED_SPILL,
    NOTHING,
    RECYCLED,
    REINSERTED,
    SPILL_AT,
    SPILL_END,
    Scratch,
)
from matchmill.papers.be_tree.tree import (
    ABOVE,
    CAPACITY,
    DIRECTORY,
    IS_SPLIT,
    LEAF,
    LEFT,
    N_PARTITIONS,
    OWNER,
    P_DIMENSION,
    RIGHT,
    SIZE,
    TOP,
    TOTAL_SIZE,
    UPPER,
    WORDS,
    Tree,
    count_below,
    resize_leaf,
    shrink_leaf,
    start_window,
)
from matchmill.papers.common.pools import Spans, give_row, give_span

__all__ = [
    "find_record",
    "list_subtree",
    "merge_halves",
    "recycle",
    "remove_record",
    "tidy",
    "underfull_partition",
]


@kernel
def find_record(tree: Tree, slot: int) -> int:
    """Where the record of a clause is."""
    words = tree.leaves.cells
    record = int(tree.nodes.cells[tree.slot_nodes[slot], LEAF])
    while words[record + SLOT] != slot:
        record += words[record + TOTAL]
    return int(record)


@kernel
def remove_record(tree: Tree, slot: int) -> int:
    """Take a clause out of its leaf; returns the node. Needs no room."""
    node = int(tree.slot_nodes[slot])
    row, words = tree.nodes.cells[node], tree.leaves.cells
    record, end = find_record(tree, slot), row[LEAF] + row[WORDS]
    n = words[record + TOTAL]
    for p in range(record + n, end):
        words[p - n] = words[p]
    left = row[WORDS] - n
    shrink_leaf(row, tree.leaves, left)
    row[SIZE] -= 1
    tree.slot_nodes[slot] = -1
    count_below(tree.nodes.cells, tree.partitions.cells, row[OWNER], -1)
    return node


@kernel
def _give_partition(tree: Tree, scratch: Scratch, partition: int) -> None:
    """Give back the row of a p-node; what was to be done with it is not any more."""
    start_window(tree.windows, tree.sampled, partition)
    if scratch.state[REINSERTED] == partition:
        scratch.state[REINSERTED] = NOTHING
    give_row(tree.partitions, partition)


@kernel
def tidy(tree: Tree, scratch: Scratch, node: int) -> int:
    """Remove nodes without clauses and children, upwards; see whether a bucket is to be merged.

    Returns the first node that stays.
    """
    nodes, partitions = tree.nodes.cells, tree.partitions.cells
    max_capacity = tree.settings[MAX_CAPACITY]
    while nodes[node, OWNER] >= 0 and _is_bare(nodes[node]):
        owner, upper = nodes[node, OWNER], nodes[node, UPPER]
        if upper < 0:
            above = partitions[owner, ABOVE]
            remove_partition(tree, above, partitions[owner, P_DIMENSION])
            _give_partition(tree, scratch, owner)
            give_row(tree.nodes, node)
            node = above
        else:
            nodes[upper, LEFT if nodes[upper, LEFT] == node else RIGHT] = -1
            give_row(tree.nodes, node)
            node = upper
            if nodes[node, N_PARTITIONS] == 0 and max(nodes[node, LEFT], nodes[node, RIGHT]) < 0:
                nodes[node, IS_SPLIT] = 0
    row = nodes[node]
    row[CAPACITY] = min(row[CAPACITY], fitting_capacity(row[SIZE], max_capacity))
    upper = row[UPPER]
    if upper >= 0 and row[SIZE] < tree.settings[MIN_SIZE] and _can_merge(tree, upper):
        scratch.state[MERGED] = upper
    return node


@kernel
def _can_merge(tree: Tree, bucket: int) -> bool:
    """Whether the halves of a bucket are open leaves that fit into one with its own clauses."""
    nodes = tree.nodes.cells
    total = nodes[bucket, SIZE]
    for side in range(2):
        half = nodes[bucket, LEFT + side]
        if half >= 0:
            if not _is_open_leaf(nodes[half]):
                return False
            total += nodes[half, SIZE]
    return bool(nodes[bucket, N_PARTITIONS] == 0 and total <= tree.settings[MAX_CAPACITY])


@kernel
def _is_bare(row: np.ndarray) -> bool:
    return bool(row[SIZE] == 0 and row[N_PARTITIONS] == 0 and max(row[LEFT], row[RIGHT]) < 0)


@kernel
def _is_open_leaf(row: np.ndarray) -> bool:
    """Whether a bucket has neither been split nor partitioned."""
    return bool(not row[IS_SPLIT] and not row[N_PARTITIONS])


@kernel
def merge_halves(tree: Tree, scratch: Scratch) -> bool:
    """Undo the split of the bucket MERGED; False if the spill is too short.

    Clauses that were inserted again since `tidy` may have cut its halves: then it stays.
    """
    nodes = tree.nodes.cells
    bucket = scratch.state[MERGED]
    if not _can_merge(tree, bucket):
        scratch.state[MERGED] = NOTHING
        return True
    n_words = 0
    for side in range(2):
        if nodes[bucket, LEFT + side] >= 0:
            n_words += nodes[nodes[bucket, LEFT + side], WORDS]
    if n_words > len(scratch.spill):
        scratch.needs[:] = 0
        scratch.needs[NEED_SPILL] = n_words
        return False
    scratch.state[SPILL_AT] = scratch.state[SPILL_END] = 0
    for side in range(2):
        half = nodes[bucket, LEFT + side]
        if half >= 0:
            owner = nodes[half, OWNER]
            count_below(nodes, tree.partitions.cells, owner, -nodes[half, SIZE])
            _spill_leaf(nodes[half], tree.leaves, scratch.state, scratch.spill)
            give_row(tree.nodes, half)
            nodes[bucket, LEFT + side] = -1
    nodes[bucket, IS_SPLIT] = 0
    scratch.state[MERGED] = NOTHING
    scratch.state[DOUBTFUL] = bucket
    return True


@kernel
def list_subtree(nodes: np.ndarray, directories: np.ndarray, top: int, out: np.ndarray) -> int:
    """Write a node and all below it, each before those below it; return their number."""
    out[0] = top
    n, k = 1, 0
    while k < n:
        row = nodes[out[k]]
        for side in range(2):
            if row[LEFT + side] >= 0:
                out[n] = row[LEFT + side]
                n += 1
        start = row[DIRECTORY]
        if start >= 0:
            for place in range(1 << directories[start]):
                if directories[start + 1 + 2 * place]:
                    out[n] = directories[start + 2 + 2 * place]
                    n += 1
        k += 1
    return n


@kernel
def recycle(tree: Tree, scratch: Scratch) -> bool:
    """Take the p-node RECYCLED apart; False if the spill is too short. No work may be left."""
    nodes, partitions = tree.nodes.cells, tree.partitions.cells
    partition = scratch.state[RECYCLED]
    n_nodes = list_subtree(nodes, tree.directories.cells, partitions[partition, TOP], scratch.work)
    n_words = 0
    for k in range(n_nodes):
        n_words += nodes[scratch.work[k], WORDS]
    if n_words > len(scratch.spill):
        scratch.needs[:] = 0
        scratch.needs[NEED_SPILL] = n_words
        return False
    scratch.state[SPILL_AT] = scratch.state[SPILL_END] = 0
    above = partitions[partition, ABOVE]
    count_below(nodes, partitions, nodes[above, OWNER], -partitions[partition, TOTAL_SIZE])
    remove_partition(tree, above, partitions[partition, P_DIMENSION])
    for k in range(n_nodes):
        node = scratch.work[k]
        row = nodes[node]
        _spill_leaf(row, tree.leaves, scratch.state, scratch.spill)
        if row[DIRECTORY] >= 0:
            log_places = tree.directories.cells[row[DIRECTORY]]
            give_span(tree.directories, row[DIRECTORY], directory_words(log_places))
        if row[UPPER] < 0:
            _give_partition(tree, scratch, row[OWNER])
        give_row(tree.nodes, node)
    scratch.state[RECYCLED] = NOTHING
    scratch.state[DOUBTFUL] = tidy(tree, scratch, above)
    return True


@kernel
def underfull_partition(nodes: np.ndarray, partitions: np.ndarray, min_size: int, node: int) -> int:
    """Return the highest p-node above a node with too few clauses, or -1."""
    found = -1
    owner = nodes[node, OWNER]
    while owner >= 0:
        if partitions[owner, TOTAL_SIZE] < min_size:
            found = owner
        owner = nodes[partitions[owner, ABOVE], OWNER]
    return int(found)


@kernel
def _spill_leaf(row: np.ndarray, leaves: Spans, state: np.ndarray, spill: np.ndarray) -> None:
    end = state[SPILL_END]
    for k in range(row[WORDS]):
        spill[end + k] = leaves.cells[row[LEAF] + k]
    state[SPILL_END] += row[WORDS]
    resize_leaf(row, leaves, 0)
