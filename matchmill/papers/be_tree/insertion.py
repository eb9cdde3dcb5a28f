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
from matchmill.papers.be_tree.parameters import RANDOM, draw, explores
from matchmill.papers.be_tree.scratch import NEED_NODES, NEED_WORDS, Scratch
from matchmill.papers.be_tree.tree import (
    CAPACITY,
    DIRECTORY,
    HIGH,
    IS_SPLIT,
    LEFT,
    LOW,
    OWNER,
    RIGHT,
    ROOT,
    SIZE,
    UPPER,
    WORDS,
    Tree,
    append_record,
    count_below,
    dyadic,
    is_enclosed,
    mark_subsumed_on_path,
    new_node,
    rank_of,
)
from matchmill.papers.common.pools import rows_left, spans_left

__all__ = ["best_partition", "insert_record"]


@kernel
def best_partition(
    tree: Tree, source: np.ndarray, record: int, node: int, is_random: bool
) -> tuple[int, int, int]:
    """Find the highest ranking p-node of a node's directory for a clause, or any at random.

    Its top bucket or -1, and the least and the largest key that the clause lets pass there.
    """
    best, low, high = int64(-1), int64(0), int64(0)
    n_found, best_rank = 0, 0.0
    directory = tree.nodes.cells[node, DIRECTORY]
    p, end = record + TESTS, record + source[record + TOTAL]
    while p < end:
        first, last = hull(source, p)
        if first > 0:
            top = find_partition(tree.directories.cells, directory, source[p] >> 2)
            if top >= 0:
                n_found += 1
                rank = rank_of(tree, top)
                if is_random:
                    is_better = draw(tree.settings, n_found) == 0  # each is as likely
                else:
                    is_better = best < 0 or rank > best_rank
                if is_better:
                    best, best_rank, low, high = int64(top), rank, first, last
        p += test_words(source, p)
    return int(best), int(low), int(high)


@kernel
def insert_record(tree: Tree, scratch: Scratch, source: np.ndarray, record: int) -> bool:
    """InsertBETree. False if there was no room; then no clause has been inserted.

    Where the leaf overflows, its node is on the list of work afterwards.
    """
    scratch.needs[:] = 0
    if rows_left(tree.nodes) < 2:
        scratch.needs[NEED_NODES] = 2
        return False
    random = tree.settings[RANDOM]
    node = _find_leaf(tree, source, record)
    nodes, words = tree.nodes.cells, tree.leaves.cells
    row = nodes[node]
    needed = 2 * (row[WORDS] + source[record + TOTAL])
    if spans_left(tree.leaves) < needed:
        scratch.needs[NEED_WORDS] = needed
        tree.settings[RANDOM] = random  # so that it goes the same way when called again
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
    while nodes[node, DIRECTORY] >= 0:
        is_random = explores(tree.settings, tree.weights)
        best, low, high = best_partition(tree, source, record, node, is_random)
        if best < 0:
            break
        node = _find_bucket(tree, best, low, high)
    return node


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
