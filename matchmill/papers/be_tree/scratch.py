"""What a change of the tree works with, beside the tree. Nothing of it is saved.

state       N_WORK, SPILL_AT, SPILL_END, RECYCLED, MERGED: what is still to be done
            (p-node to be taken apart; bucket that takes in its halves)
work        nodes that may have to be cut: the last N_WORK are next
spill       records that were taken out and go in again: SPILL_AT … SPILL_END
needs       what a kernel lacked when it stopped: rows, rows, words, words, entries, words
by_dimension  COUNT, HEAD, NEXT, USED of each dimension, while a leaf is partitioned
touched     the dimensions of which that is not empty
chain       clause of a leaf, next entry: the clauses with a test on a dimension
places      where the clauses of a leaf are; -1 for one that has moved
by_count    the first dimension with a count
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.papers.be_tree.tree import N_DIMENSIONS, Tree
from matchmill.papers.common.pools import rows_with_room, spans_with_room

__all__ = ["Scratch", "new_scratch", "with_room"]

N_WORK, SPILL_AT, SPILL_END, RECYCLED, MERGED, DOUBTFUL = range(6)
NEED_NODES, NEED_PARTITIONS, NEED_WORDS, NEED_DIRECTORIES, NEED_ENTRIES, NEED_SPILL = range(6)
COUNT, HEAD, NEXT, USED = range(4)
NOTHING = -1


class Scratch(NamedTuple):
    """What changes of the tree write to."""

    state: np.ndarray  # int64
    work: np.ndarray  # int32
    spill: np.ndarray  # int32
    needs: np.ndarray  # int64
    by_dimension: np.ndarray  # int32, two dimensions
    touched: np.ndarray  # int32
    chain: np.ndarray  # int32, two dimensions
    places: np.ndarray  # int64
    by_count: np.ndarray  # int32


def new_scratch(tree: Tree) -> Scratch:
    """Make scratch for a tree."""
    n_dimensions = int(tree.settings[N_DIMENSIONS])
    return Scratch(
        np.array([0, 0, 0, NOTHING, NOTHING, NOTHING]),
        np.empty(len(tree.nodes.cells), np.int32),
        np.empty(64, np.int32),
        np.zeros(6, np.int64),
        _unused(n_dimensions),
        np.empty(n_dimensions, np.int32),
        *_entries(256),
    )


def with_room(tree: Tree, scratch: Scratch) -> tuple[Tree, Scratch]:
    """Both, with all that a kernel said it needs."""
    nodes, partitions, words, directories, entries, spill = scratch.needs.tolist()
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
    n_dimensions = int(tree.settings[N_DIMENSIONS])
    if len(scratch.touched) < n_dimensions:
        scratch = scratch._replace(
            by_dimension=_unused(2 * n_dimensions), touched=np.empty(2 * n_dimensions, np.int32)
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
