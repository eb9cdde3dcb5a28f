"""The way of a clause down the tree: Algorithms 3 and 4.

A directory below a p-node never has the p-node's dimension, so a dimension that has been used is
just not found (Algorithm 3, line 4).
"""

from __future__ import annotations

import numpy as np

from matchmill.kernels.jit import int64, kernel
from matchmill.papers.be_tree.clause_records import CHECKED, TESTS, TOTAL, hull, test_words
from matchmill.papers.be_tree.cutting import push_work
from matchmill.papers.be_tree.directories import find_partition
from matchmill.papers.be_tree.scratch import NEED_NODES, NEED_WORDS, Scratch
from matchmill.papers.be_tree.tree import (
    CAPACITY,
    DIRECTORY,
    HIGH,
    IS_SPLIT,
    LEFT,
    LOSS,
    LOW,
    OWNER,
    RARE_FIRST,
    RIGHT,
    ROOT,
    SIZE,
    TOTAL_SIZE,
    UPPER,
    WORDS,
    Tree,
    append_record,
    count_below,
    dyadic,
    is_enclosed,
    mark_subsumed_on_path,
    new_node,
)
from matchmill.papers.common.pools import rows_left, spans_left

__all__ = ["insert_record"]


@kernel
def insert_record(tree: Tree, scratch: Scratch, source: np.ndarray, record: int) -> bool:
    """InsertBETree. False if there was no room; then no clause has been inserted.

    Where the leaf overflows, its node is on the list of work afterwards.
    """
    scratch.needs[:] = 0
    if rows_left(tree.nodes) < 2:
        scratch.needs[NEED_NODES] = 2
        return False
    node = _find_leaf(tree, source, record)
    nodes, words = tree.nodes.cells, tree.leaves.cells
    row = nodes[node]
    needed = 2 * (row[WORDS] + source[record + TOTAL])
    if spans_left(tree.leaves) < needed:
        scratch.needs[NEED_WORDS] = needed
        return False
    place = append_record(nodes, tree.leaves, tree.slot_nodes, node, source, record)
    words[place + CHECKED] = words[place + TOTAL]
    mark_subsumed_on_path(nodes, tree.partitions.cells, words, node, place)
    count_below(nodes, tree.partitions.cells, row[OWNER], 1)
    if row[SIZE] > row[CAPACITY]:
        push_work(scratch, node)
    return True


@kernel
def _find_leaf(tree: Tree, source: np.ndarray, record: int) -> int:
    """Find the node for a clause.

    Take up to two new ones, which stay if the clause does not come.
    """
    nodes = tree.nodes.cells
    node = ROOT
    end = record + source[record + TOTAL]
    while nodes[node, DIRECTORY] >= 0:
        best, low, high = -1, int64(0), int64(0)
        p = record + TESTS
        while p < end:
            first, last = hull(source, p)
            if first > 0:
                top = find_partition(tree.directories.cells, nodes[node, DIRECTORY], source[p] >> 2)
                if top >= 0 and (best < 0 or _ranks_above(tree, top, best)):
                    best, low, high = top, first, last
            p += test_words(source, p)
        if best < 0:
            break
        node = _find_bucket(tree, best, low, high)
    return node


@kernel
def _ranks_above(tree: Tree, top: int, best: int) -> bool:
    """Tell whether the p-node of one top bucket ranks above that of another.

    The rank is Gain, the number of clauses that have a test on its dimension, less Loss. With rare
    dimensions first, fewer clauses are the better ones.
    """
    one = tree.partitions.cells[tree.nodes.cells[top, OWNER]]
    other = tree.partitions.cells[tree.nodes.cells[best, OWNER]]
    if tree.settings[RARE_FIRST]:
        return bool(one[TOTAL_SIZE] + one[LOSS] < other[TOTAL_SIZE] + other[LOSS])
    return bool(one[TOTAL_SIZE] - one[LOSS] > other[TOTAL_SIZE] - other[LOSS])


@kernel
def _find_bucket(tree: Tree, top: int, low: int, high: int) -> int:
    """InsertCDir: the smallest bucket of a directory around low … high.

    A half without a bucket gets one, and a bucket too small for its half gets one around it.
    """
    nodes = tree.nodes.cells
    node = top
    while nodes[node, IS_SPLIT]:
        middle = nodes[node, LOW] + (nodes[node, HIGH] - nodes[node, LOW]) // 2
        if low <= middle < high:
            return node
        side = LEFT if high <= middle else RIGHT
        child = int(nodes[node, side])
        owner = nodes[top, OWNER]
        if child < 0:
            first, last = nodes[node, LOW], nodes[node, HIGH]
            first, last = (first, middle) if side == LEFT else (middle + 1, last)
            nodes[node, side] = new_node(tree, owner, node, first, last)
        elif not is_enclosed(nodes, child, low, high):
            first, last = dyadic(min(low, nodes[child, LOW]), max(high, nodes[child, HIGH]))
            around = new_node(tree, owner, node, first, last)
            nodes[node, side] = around
            nodes[child, UPPER] = around
            middle = first + (last - first) // 2
            nodes[around, LEFT if nodes[child, HIGH] <= middle else RIGHT] = child
            nodes[around, IS_SPLIT] = 1
        node = int(nodes[node, side])
    return node
