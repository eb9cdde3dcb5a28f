"""What a change of the tree works with, beside the tree. Nothing of it is saved.

state       what is still to be done: N_WORK, SPILL_AT, SPILL_END; RECYCLED, a p-node to be taken
            apart; MERGED, a bucket that takes in its halves; DOUBTFUL, a node below a p-node that
            may have too few clauses; HAS_HELD; N_MOVING; REINSERTED, a p-node whose clauses are
            inserted again where another ranks higher; INSERTED, the slot of a clause whose
            insertion is not counted yet
work        nodes that may have to be cut: the last N_WORK are next
spill       records that were taken out and go in again: SPILL_AT … SPILL_END
held        one record that was taken out and goes in again when all else is done
moving      slots of clauses that are to be inserted again, one after the other
needs       what a kernel lacked when it stopped: rows, rows, words, words, entries, words, words,
            slots
by_dimension  COUNT, HEAD, NEXT, USED of each dimension, while a leaf is partitioned
touched     the dimensions of which that is not empty
chain       clause of a leaf, next entry: the clauses with a test on a dimension
places      where the clauses of a leaf are; -1 for one that has moved
by_count    the first dimension with a count
bounds      the range of a histogram of each touched dimension, and
losses      the average size of its buckets, while a leaf is partitioned
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.papers.be_tree.parameters import N_DIMENSIONS
from matchmill.papers.be_tree.tree import (
    Tree,
)
from matchmill.papers.common.pools import rows_with_room, spans_with_room

__all__ = ["Scratch", "new_scratch", "with_room"]

(
    N_WORK,
    SPILL_AT,
    SPILL_END,
    RECYCLED,
    MERGED,
    DOUBTFUL,
    HAS_HELD,
    N_MOVING,
    REINSERTED,
    INSERTED,
) = range(10)
(
    NEED_NODES,
    NEED_PARTITIONS,
    NEED_WORDS,
    NEED_DIRECTORIES,
    NEED_ENTRIES,
    NEED_SPILL,
    NEED_HELD,
    NEED_MOVING,
) = range(8)
COUNT, HEAD, NEXT, USED = range(4)
NOTHING = -1


class Scratch(NamedTuple):
    """What changes of the tree write to."""

    state: np.ndarray  # int64
    work: np.ndarray  # int32
    spill: np.ndarray  # int32
    held: np.ndarray  # int32
    moving: np.ndarray  # int32
    needs: np.ndarray  # int64
    by_dimension: np.ndarray  # int32, two dimensions
    touched: np.ndarray  # int32
    chain: np.ndarray  # int32, two dimensions
    places: np.ndarray  # int64
    by_count: np.ndarray  # int32
    bounds: np.ndarray  # int64, two dimensions
    losses: np.ndarray  # float64


def new_scratch(tree: Tree) -> Scratch:
    """Make scratch for a tree."""
    n_dimensions = int(tree.settings[N_DIMENSIONS])
    return Scratch(
        np.array([0, 0, 0, NOTHING, NOTHING, NOTHING, 0, 0, NOTHING, NOTHING]),
        np.empty(len(tree.nodes.cells), np.int32),
        np.empty(64, np.int32),
        np.empty(64, np.int32),
        np.empty(64, np.int32),
        np.zeros(8, np.int64),
        _unused(n_dimensions),
        np.empty(n_dimensions, np.int32),
        *_entries(256),
        np.empty((n_dimensions, 2), np.int64),
        np.empty(n_dimensions, np.float64),
    )


def with_room(tree: Tree, scratch: Scratch) -> tuple[Tree, Scratch]:
    """Both, with all that a kernel said it needs."""
    nodes, partitions, words, directories, entries, spill, held, moving = scratch.needs.tolist()
    scratch.needs[:] = 0
    tree = tree._replace(
        nodes=rows_with_room(tree.nodes, nodes),
        partitions=rows_with_room(tree.partitions, partitions),
        leaves=spans_with_room(tree.leaves, words),
        directories=spans_with_room(tree.directories, directories),
    )
    tree = tree._replace(
        discarded=_lengthened(tree.discarded, len(tree.nodes.cells)),
        windows=_lengthened(tree.windows, len(tree.partitions.cells)),
    )
    if len(scratch.work) < len(tree.nodes.cells):
        scratch = scratch._replace(work=_lengthened(scratch.work, len(tree.nodes.cells)))
    if len(scratch.places) < entries:
        chain, places, by_count = _entries(entries + entries // 2)
        scratch = scratch._replace(chain=chain, places=places, by_count=by_count)
    if len(scratch.spill) < spill:
        scratch = scratch._replace(spill=_lengthened(scratch.spill, 2 * spill))
    if len(scratch.held) < held:
        scratch = scratch._replace(held=np.empty(2 * held, np.int32))
    if len(scratch.moving) < moving:
        scratch = scratch._replace(moving=np.empty(2 * moving, np.int32))
    n_dimensions = int(tree.settings[N_DIMENSIONS])
    if len(scratch.touched) < n_dimensions:
        scratch = scratch._replace(
            by_dimension=_unused(2 * n_dimensions),
            touched=np.empty(2 * n_dimensions, np.int32),
            bounds=np.empty((2 * n_dimensions, 2), np.int64),
            losses=np.empty(2 * n_dimensions, np.float64),
        )
    return tree, scratch


def _lengthened(array: np.ndarray, n: int) -> np.ndarray:
    if len(array) >= n:
        return array
    longer = np.zeros((n, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def _unused(n_dimensions: int) -> np.ndarray:
    by_dimension = np.zeros((n_dimensions, 4), np.int32)
    by_dimension[:, HEAD] = NOTHING
    return by_dimension


def _entries(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.empty((n, 2), np.int32), np.empty(n, np.int64), np.empty(n + 1, np.int32)
