"""Insertion and deletion of many clauses.

A kernel that lacks memory says how much it needs and stops; called again, it goes on.
`scratch.state` has what is left to be done.

    progress    nodes to be cut, then records to be inserted, then what is to be taken apart
"""

from __future__ import annotations

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.kernels.jit import kernel
from matchmill.papers.be_tree.clause_records import TOTAL, record_words, write_record
from matchmill.papers.be_tree.cutting import cut, push_work
from matchmill.papers.be_tree.deletion import (
    merge_halves,
    recycle,
    remove_record,
    tidy,
    underfull_partition,
)
from matchmill.papers.be_tree.directories import find_partition
from matchmill.papers.be_tree.insertion import insert_record
from matchmill.papers.be_tree.parameters import MIN_SIZE, N_DIMENSIONS, SELF_ADJUST
from matchmill.papers.be_tree.ranking import end_window, is_full, note_change
from matchmill.papers.be_tree.reinsertion import list_misplaced, take_out
from matchmill.papers.be_tree.scratch import (
    DOUBTFUL,
    HAS_HELD,
    INSERTED,
    MERGED,
    N_MOVING,
    N_WORK,
    NEED_SPILL,
    NOTHING,
    RECYCLED,
    REINSERTED,
    SPILL_AT,
    SPILL_END,
    Scratch,
)
from matchmill.papers.be_tree.tree import (
    DIRECTORY,
    IS_DUE,
    LEAF,
    OWNER,
    ROOT,
    SIZE,
    Tree,
    resize_leaf,
)

__all__ = [
    "change",
    "end_full_windows",
    "end_windows_of_root",
    "fill_root",
    "table_words",
]


@kernel
def _adapt(tree: Tree, scratch: Scratch, node: int, is_insertion: bool) -> None:
    """See what a change in the leaf of a node brings about above."""
    recycled = -1
    if not is_insertion:
        min_size = tree.settings[MIN_SIZE]
        recycled = underfull_partition(tree.nodes.cells, tree.partitions.cells, min_size, node)
    if recycled < 0 and tree.settings[SELF_ADJUST]:
        recycled = note_change(tree, scratch, node)
    scratch.state[RECYCLED] = recycled
    if recycled < 0 and not is_insertion:
        tidy(tree, scratch, node)


@kernel
def progress(tree: Tree, scratch: Scratch) -> bool:
    """Do what is left to be done; False if memory lacks for it."""
    state = scratch.state
    while True:
        if state[N_WORK]:
            # Off the list first: what is cut may put itself and others on it.
            state[N_WORK] -= 1
            node = scratch.work[state[N_WORK]]
            if not cut(tree, scratch, node):
                push_work(scratch, node)
                return False
        elif state[SPILL_AT] < state[SPILL_END]:
            if not insert_record(tree, scratch, scratch.spill, state[SPILL_AT]):
                return False
            state[SPILL_AT] += scratch.spill[state[SPILL_AT] + TOTAL]
        elif state[INSERTED] >= 0:
            node = int(tree.slot_nodes[state[INSERTED]])
            state[INSERTED] = NOTHING
            _adapt(tree, scratch, node, True)
        elif state[RECYCLED] >= 0:
            if not recycle(tree, scratch):
                return False
        elif state[MERGED] >= 0:
            if not merge_halves(tree, scratch):
                return False
        elif state[DOUBTFUL] >= 0:
            node = state[DOUBTFUL]
            state[RECYCLED] = underfull_partition(
                tree.nodes.cells, tree.partitions.cells, tree.settings[MIN_SIZE], node
            )
            state[DOUBTFUL] = NOTHING
        elif state[HAS_HELD]:
            if not insert_record(tree, scratch, scratch.held, 0):
                return False
            state[HAS_HELD] = 0
        elif state[N_MOVING]:
            if not take_out(tree, scratch, int(scratch.moving[state[N_MOVING] - 1])):
                return False
            state[N_MOVING] -= 1
        elif state[REINSERTED] >= 0:
            if not list_misplaced(tree, scratch):
                return False
            state[REINSERTED] = NOTHING
        else:
            return True


@kernel
def change(
    tree: Tree,
    scratch: Scratch,
    table: ConjunctionTable,
    slots: np.ndarray,
    is_insertion: bool,
    start: int,
) -> tuple[int, bool]:
    """Insert the clauses of a table, or delete those in some slots, from `start` on.

    How far it came, and whether all is done. (One kernel for both: all of the tree is compiled into
    it.).
    """
    for i in range(start, len(slots)):
        if not progress(tree, scratch):
            return i, False
        if is_insertion:
            n_words = record_words(table, i)
            if n_words > len(scratch.spill):
                scratch.needs[:] = 0
                scratch.needs[NEED_SPILL] = n_words
                return i, False
            scratch.state[SPILL_AT] = 0
            scratch.state[SPILL_END] = write_record(table, i, slots[i], scratch.spill, 0)
            scratch.state[INSERTED] = slots[i]
        else:
            _adapt(tree, scratch, remove_record(tree, slots[i]), False)
    return len(slots), progress(tree, scratch)


@kernel
def fill_root(tree: Tree, scratch: Scratch, table: ConjunctionTable, n_words: int) -> None:
    """All clauses of a table into the empty root, to be cut. There must be room for the words."""
    row = tree.nodes.cells[ROOT]
    resize_leaf(row, tree.leaves, n_words)
    place = row[LEAF]
    for i in range(len(table.clause_ids)):
        place = write_record(table, i, i, tree.leaves.cells, place)
        tree.slot_nodes[i] = ROOT
    row[SIZE] = len(table.clause_ids)
    push_work(scratch, ROOT)


@kernel
def table_words(table: ConjunctionTable) -> int:
    """Return the words of all records of a table."""
    n_words = 0
    for i in range(len(table.clause_ids)):
        n_words += record_words(table, i)
    return n_words


@kernel
def end_windows_of_root(tree: Tree, scratch: Scratch, start: int) -> int:
    """End the windows of the root's p-nodes, up to the first one that is to be changed.

    Dimensions are taken from `start` on; `progress` makes the change. Returns the next dimension,
    or -1 if there was none.
    """
    for dimension in range(start, tree.settings[N_DIMENSIONS]):
        directory = tree.nodes.cells[ROOT, DIRECTORY]
        if directory < 0:
            return -1
        top = find_partition(tree.directories.cells, directory, dimension)
        if top >= 0 and _is_to_change(tree, scratch, tree.nodes.cells[top, OWNER]):
            return dimension + 1
    return -1


@kernel
def end_full_windows(tree: Tree, scratch: Scratch, start: int) -> int:
    """End the windows that are full, up to the first one whose p-node is to be changed.

    P-nodes are taken from row `start` on; `progress` makes the change. Returns the next row, or -1
    if there was none. (Rows that are free have empty windows.)
    """
    tree.sampled[IS_DUE] = 0
    for partition in range(start, len(tree.partitions.cells)):
        if is_full(tree, partition) and _is_to_change(tree, scratch, partition):
            return partition + 1
    return -1


@kernel
def _is_to_change(tree: Tree, scratch: Scratch, partition: int) -> bool:
    if end_window(tree, scratch, partition):
        scratch.state[RECYCLED] = partition
    return bool(scratch.state[RECYCLED] >= 0 or scratch.state[REINSERTED] >= 0)
