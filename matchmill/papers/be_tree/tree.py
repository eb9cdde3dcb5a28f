"""The pools of a BE-Tree, and what is done to one node.

    nodes         a c-node, its bucket in a clustering directory and its l-node, in one row:
                    LEAF, WORDS        the records of the l-node, a span of `leaves`
                    DIRECTORY          the partition directory, a span of `directories`, or -1
                    LEFT, RIGHT        the buckets in the lower and the upper half, or -1
                    LOW, HIGH          the bucket
                    DIMENSION          of the bucket; -1 at the root, which is none
                    SIZE, CAPACITY     clauses in the l-node, and how many before it is cut
                    N_PARTITIONS       p-nodes below the c-node
                    UPPER              the bucket above, -1 for the top of a directory
                    OWNER              the p-node of the directory, -1 at the root
                    IS_SPLIT           whether the bucket has been cut in halves
    partitions    p-nodes: DIMENSION, TOP (bucket), ABOVE (c-node), TOTAL_SIZE (clauses below),
                  LOSS (in 1024ths)
    leaves        int32: the records of an l-node, one after the other; without any, no span
    directories   int32: partition directories
    slot_nodes    int32: the node in whose l-node a clause is
    settings      whole numbers that the tree is tuned by, and
    weights       numbers (both: parameters.py)

    discarded     int64: tests made in vain in each l-node, for the events that were sampled
    windows       for each p-node, the changes below it, the sampled events before its window, and
                  the events that came to it (these only if windows count matches)
    sampled       how many events have been sampled; how many windows have ended, and what
                  is usually lost for a clause in one; whether matches have filled a window

What matching leaves behind (the last three) is not saved.

The root is node 0. Buckets are dyadic (low is a multiple of the power of two that is their length),
so that halving is the same whatever has been inserted, and the top is all keys that there are. As
keys may be 64 bits wide, a half that has been cut off is not created as such: its bucket is the
smallest dyadic one around the clauses that move there (the paper's minimal boundary, section 4.3),
and a clause of that half which does not fit in brings about the smallest one around both. No
clause is ever moved by that: there is no cascade of splits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.kernels.jit import int64, kernel
from matchmill.papers.be_tree.clause_records import TOTAL, mark_subsumed
from matchmill.papers.be_tree.parameters import BETA, GAMMA, MAX_CAPACITY, RARE_FIRST, Parameters
from matchmill.papers.common.pools import (
    Rows,
    Spans,
    give_span,
    new_rows,
    new_spans,
    span_capacity,
    take_row,
    take_span,
)

__all__ = [
    "Tree",
    "append_record",
    "count_below",
    "dyadic",
    "is_enclosed",
    "mark_subsumed_on_path",
    "new_node",
    "new_tree",
    "note_visit",
    "nothing_sampled",
    "rank_of",
    "resize_leaf",
    "shrink_leaf",
    "start_window",
    "window_length",
]

(
    LEAF,
    WORDS,
    DIRECTORY,
    LEFT,
    RIGHT,
    LOW,
    HIGH,
    DIMENSION,
    SIZE,
    CAPACITY,
    N_PARTITIONS,
    UPPER,
    OWNER,
    IS_SPLIT,
) = range(14)
NODE_WIDTH = 16  # two lines of a cache, and what matching reads is in the first

P_DIMENSION, TOP, ABOVE, TOTAL_SIZE, LOSS = range(5)
PARTITION_WIDTH = 5

LOSS_UNIT = 1024

CHANGES, SAMPLED_BEFORE, VISITS = range(3)
SAMPLED, N_WINDOWS, USUAL_LOSS, IS_DUE = range(4)
SHORTEST_WINDOW = 16
ROOT = 0
LAST_KEY = (1 << 63) - 1


class Tree(NamedTuple):
    """The arrays of the tree."""

    nodes: Rows
    partitions: Rows
    leaves: Spans
    directories: Spans
    slot_nodes: np.ndarray  # int32
    settings: np.ndarray  # int64
    weights: np.ndarray  # float64
    discarded: np.ndarray  # int64
    windows: np.ndarray  # int64, two dimensions
    sampled: np.ndarray  # int64


def new_tree(parameters: Parameters) -> Tree:
    """Make an empty tree."""
    tree = Tree(
        new_rows(NODE_WIDTH),
        new_rows(PARTITION_WIDTH),
        new_spans(np.int32),
        new_spans(np.int32),
        np.full(16, -1, np.int32),
        parameters.settings(),
        parameters.weights(),
        *nothing_sampled(16, 16),
    )
    new_node(tree, -1, -1, 0, LAST_KEY)
    return tree


def nothing_sampled(n_nodes: int, n_partitions: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`discarded`, `windows` and `sampled` of a tree that has seen no events."""
    return (
        np.zeros(n_nodes, np.int64),
        np.zeros((n_partitions, 3), np.int64),
        np.zeros(4, np.int64),
    )


@kernel
def dyadic(low: int, high: int) -> tuple[int, int]:
    """Return the smallest dyadic bucket around low … high."""
    differing = low ^ high
    rest = int64(0)
    while rest < differing:
        rest = rest << 1 | 1
    return low & ~rest, low | rest


@kernel
def is_enclosed(nodes: np.ndarray, node: int, low: int, high: int) -> bool:
    """Tell whether a bucket encloses low … high."""
    return bool(nodes[node, LOW] <= low and high <= nodes[node, HIGH])


@kernel
def new_node(tree: Tree, owner: int, upper: int, low: int, high: int) -> int:
    """Make a c-node with an empty l-node. There must be room for a row."""
    node = take_row(tree.nodes)
    row = tree.nodes.cells[node]
    row[:] = 0
    row[LEFT] = row[RIGHT] = row[DIRECTORY] = -1
    row[DIMENSION] = tree.partitions.cells[owner, P_DIMENSION] if owner >= 0 else -1
    row[LOW], row[HIGH] = low, high
    row[UPPER], row[OWNER] = upper, owner
    row[CAPACITY] = tree.settings[MAX_CAPACITY]
    tree.discarded[node] = 0
    return node


@kernel
def start_window(windows: np.ndarray, sampled: np.ndarray, partition: int) -> None:
    """Start to count again what a p-node finds."""
    windows[partition, CHANGES] = windows[partition, VISITS] = 0
    windows[partition, SAMPLED_BEFORE] = sampled[SAMPLED]


@kernel
def window_length(tree: Tree, partition: int) -> int:
    """Return the operations of a window: a tenth of the clauses below the p-node."""
    return int(max(SHORTEST_WINDOW, tree.partitions.cells[partition, TOTAL_SIZE] // 10))


@kernel
def note_visit(tree: Tree, node: int) -> None:
    """Count an event that came to a node, if that is the top bucket of a p-node."""
    row = tree.nodes.cells[node]
    if row[OWNER] >= 0 and row[UPPER] < 0:
        window = tree.windows[row[OWNER]]
        window[VISITS] += 1
        if window[VISITS] + window[CHANGES] >= window_length(tree, row[OWNER]):
            tree.sampled[IS_DUE] = 1


@kernel
def rank_of(tree: Tree, top: int) -> float:
    """Return the rank of the p-node of a top bucket, for clauses to come.

    Gain is the number of clauses below. With rare dimensions first, fewer clauses rank higher.
    """
    p_row, weights = tree.partitions.cells[tree.nodes.cells[top, OWNER]], tree.weights
    gain = weights[BETA] * p_row[TOTAL_SIZE]
    loss = weights[GAMMA] * p_row[LOSS] / LOSS_UNIT
    return float(-gain - loss if tree.settings[RARE_FIRST] else gain - loss)


@kernel
def resize_leaf(row: np.ndarray, leaves: Spans, words: int) -> None:
    """Give a leaf the span that so many words take, with as many of its words as fit."""
    old = row[WORDS]
    row[WORDS] = words
    if old and words and span_capacity(old) == span_capacity(words):
        return
    start, cells = row[LEAF], leaves.cells
    if words:
        row[LEAF] = take_span(leaves, words)
        for k in range(min(old, words)):
            cells[row[LEAF] + k] = cells[start + k]
    if old:
        give_span(leaves, start, old)


@kernel
def shrink_leaf(row: np.ndarray, leaves: Spans, words: int) -> None:
    """Halve the span in place as often as it goes; what is cut off becomes free."""
    if words == 0:
        resize_leaf(row, leaves, 0)
        return
    start, capacity = row[LEAF], 1
    while capacity < row[WORDS]:
        capacity *= 2
    while capacity >= 2 * words and capacity > 1:
        capacity //= 2
        give_span(leaves, start + capacity, capacity)
    row[WORDS] = words


@kernel
def append_record(
    nodes: np.ndarray,
    leaves: Spans,
    slot_nodes: np.ndarray,
    node: int,
    source: np.ndarray,
    record: int,
) -> int:
    """Copy a record to the end of a leaf and note where its clause is; returns its place there.

    There must be room for twice the words of both.
    """
    n = int64(source[record + TOTAL])
    row = nodes[node]
    before = row[WORDS]
    resize_leaf(row, leaves, before + n)
    place = row[LEAF] + before
    for k in range(n):
        leaves.cells[place + k] = source[record + k]
    row[SIZE] += 1
    slot_nodes[source[record]] = node
    return int(place)


@kernel
def mark_subsumed_on_path(
    nodes: np.ndarray, partitions: np.ndarray, words: np.ndarray, node: int, record: int
) -> None:
    """Mark the tests of a record that the buckets above its leaf have answered."""
    while nodes[node, OWNER] >= 0:
        row = nodes[node]
        mark_subsumed(words, record, row[DIMENSION], row[LOW], row[HIGH])
        node = partitions[row[OWNER], ABOVE]


@kernel
def count_below(nodes: np.ndarray, partitions: np.ndarray, owner: int, change: int) -> None:
    """Change the number of clauses below a p-node and all above it."""
    while owner >= 0:
        partitions[owner, TOTAL_SIZE] += change
        owner = nodes[partitions[owner, ABOVE], OWNER]
