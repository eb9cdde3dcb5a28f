"""How clauses come into `pst_hash` (PS-Tree, Alg. 6).

A clause with N predicates that do not accept absence has the N most selective as access predicates:
each combination of spaces that these cover is a record that lists the clause. Predicates of several
intervals cover the spaces of all of them; these are disjoint, so an event finds a clause once.

A clause with fewer such predicates is listed by the leaves of its best one, as in `pst_bloom` (the
paper's footnote 2), and so is one whose combinations would be more than 4096: two wide ranges among
thousands of cuts would take millions of records otherwise. One without any is checked always.

Only access predicates cut spaces. Cuts are made one at a time, since each may have records copied.
A block of a clause counts its records. If a cut would give a clause the 4097th, the clause is first
taken out of them and listed under its best predicate (`hash_deletion.py`), where it stays.
"""

from __future__ import annotations

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.common.pools import rows_left, span_capacity, spans_left
from matchmill.papers.ps_tree.access_predicates import Ranked
from matchmill.papers.ps_tree.clauses import block_words, write_block
from matchmill.papers.ps_tree.cuts import (
    MAX_KEY,
    add_key_cut,
    key_interval_leaves,
    plant,
)
from matchmill.papers.ps_tree.forest import (
    EXTRA_SIZE,
    KEY_ELEMENTS,
    LIST_ROOM,
    N_LIST,
    N_PREDICATES,
    NEXT,
    PREVIOUS,
    Forest,
    leaf_of_key,
)
from matchmill.papers.ps_tree.hash_deletion import (
    cells_to_list_instead,
    count_entries,
    list_instead,
    take_back_cuts,
)
from matchmill.papers.ps_tree.hash_records import (
    MOST_RECORDS,
    HashArrays,
    Records,
    copy_records,
    in_order,
    new_record,
    record_of,
    records_cells,
)
from matchmill.papers.ps_tree.leaf_lists import append_entry, copy_list

__all__ = ["N_NEEDED", "cut_clauses", "file_clauses"]

_ROWS_PER_CUT = 2 * KEY_ELEMENTS + 1

# What a call has no room for.
N_CUTS, N_LIST_CELLS, N_RECORDS, N_RECORD_CELLS, N_NARROW, N_WIDE, N_NEEDED = range(7)


@kernel
def _n_access(index: HashArrays, n_eligible: int) -> int:
    n = int(index.n_access[0])
    return n if n_eligible >= n else min(n_eligible, 1)


@kernel
def cut_clauses(
    index: HashArrays,
    ranked: Ranked,
    seen: np.ndarray,
    progress: np.ndarray,
    scratch: np.ndarray,
    covered: np.ndarray,
    out_needed: np.ndarray,
) -> bool:
    """Divide the spaces of clauses, with what is filed in them; False if there was no room.

    `progress` is the clause, and how many cuts were made for it.
    """
    table, order = ranked.table, ranked.order
    n_clauses = len(table.clause_ids)
    while progress[0] < n_clauses:
        i = progress[0]
        first = int(table.clause_offsets[i])
        n_cut = 0
        for j in range(first, first + _n_access(index, ranked.n_eligible[i])):
            p = order[j]
            dimension = table.dimensions[p]
            for k in range(table.interval_offsets[p], table.interval_offsets[p + 1]):
                for side in range(2 if table.highs[k] < MAX_KEY else 1):
                    n_cut += 1
                    if n_cut <= progress[1]:
                        continue
                    key = table.lows[k] if side == 0 else table.highs[k] + 1
                    if not _cut(index, seen, dimension, key, scratch, covered, out_needed):
                        return False
                    progress[1] += 1
        progress[0] += 1
        progress[1] = 0
    return True


@kernel
def _cut(
    index: HashArrays,
    seen: np.ndarray,
    dimension: int,
    key: int,
    scratch: np.ndarray,
    covered: np.ndarray,
    out_needed: np.ndarray,
) -> bool:
    """Cut just before a key, which is not 0; False if there was no room."""
    forest, lists, records = index.forest, index.lists, index.records
    trees, nodes, children = forest.trees, forest.nodes.cells, forest.children.cells
    leaves = forest.leaves.cells
    out_needed[:] = 0
    while True:
        leaf = leaf_of_key(trees, nodes, children, dimension, key)
        n_cells = n_records = n_record_cells = 0
        if leaf >= 0 and leaf_of_key(trees, nodes, children, dimension, key - 1) == leaf:
            n_cells = span_capacity(int(leaves[leaf, N_LIST]))
            n_records = int(leaves[leaf, EXTRA_SIZE])
            if n_records:
                n_record_cells = records_cells(records, leaves, leaf)
        if (
            min(rows_left(forest.nodes), rows_left(forest.children)) < _ROWS_PER_CUT
            or rows_left(forest.leaves) < 2
            or spans_left(lists) < n_cells
            or not _has_room(records, n_records, n_record_cells)
        ):
            out_needed[N_CUTS] = 1
            out_needed[N_LIST_CELLS] = n_cells
            out_needed[N_RECORDS] = n_records
            out_needed[N_RECORD_CELLS] = n_record_cells
            return False
        if n_records == 0:
            break
        place = count_entries(index, leaf, 1)
        if place < 0:
            break
        # One clause would have too many. Without its other cuts there may be another leaf here.
        count_entries(index, leaf, -1)
        n_cells = cells_to_list_instead(index, place)
        if spans_left(lists) < n_cells:
            out_needed[N_LIST_CELLS] = n_cells
            return False
        list_instead(index, seen, place, scratch, covered)
    new = add_key_cut(forest, dimension, key, scratch)
    if new >= 0:
        old = int(leaves[new, PREVIOUS])
        seen[new] = seen[old]
        copy_list(lists, leaves, old, new, 1)
        copy_records(records, leaves, old, new)
    return True


@kernel
def _has_room(records: Records, n: int, n_cells: int) -> bool:
    return bool(
        rows_left(records.rows) >= n
        and 2 * (records.table.n_used[0] + n) <= len(records.table.cells)
        and spans_left(records.lists) >= n_cells
    )


# -- covered leaves -------------------------------------------------------------------------------


@kernel
def _count_combinations(
    forest: Forest, ranked: Ranked, i: int, n_access: int, covered: np.ndarray
) -> int:
    """Write the leaves that each access predicate covers into `covered`; count combinations.

    The number of leaves comes first in a row. Returns MOST_RECORDS + 1 if there are more.
    """
    table, order = ranked.table, ranked.order
    leaves = forest.leaves.cells
    total = 1
    for j in range(n_access):
        p = order[table.clause_offsets[i] + j]
        n = 0
        for k in range(table.interval_offsets[p], table.interval_offsets[p + 1]):
            leaf, end = key_interval_leaves(
                forest, table.dimensions[p], table.lows[k], table.highs[k]
            )
            while leaf != end and n <= MOST_RECORDS:
                n += 1
                covered[j, n] = leaf
                leaf = int(leaves[leaf, NEXT])
        covered[j, 0] = n
        total = min(total * n, MOST_RECORDS + 1)
    for j in range(n_access, len(covered)):
        covered[j, 0] = 1
        covered[j, 1] = -1
    return total


@kernel
def file_clauses(
    index: HashArrays,
    ranked: Ranked,
    seen: np.ndarray,
    start: int,
    scratch: np.ndarray,
    covered: np.ndarray,
    out_needed: np.ndarray,
) -> int:
    """Store clauses from `start` on, whose cuts are made. Returns the first without room."""
    table, order = ranked.table, ranked.order
    forest, clauses, lists, records = index.forest, index.clauses, index.lists, index.records
    leaves = forest.leaves.cells
    for i in range(start, len(table.clause_ids)):
        first = int(table.clause_offsets[i])
        n_access = _n_access(index, int(ranked.n_eligible[i]))
        n_words, narrow = block_words(table, i)
        n_cells = n_records = n_record_cells = 0
        is_combined = n_access > 1
        if is_combined:
            n_records = _count_combinations(forest, ranked, i, n_access, covered)
            if n_records > MOST_RECORDS:
                is_combined = False
                n_records = 0
            else:
                n_record_cells = _cells_for(records, covered)
        if not is_combined:
            n_cells = _cells_to_list(index, ranked, i, min(n_access, 1))
        if (
            spans_left(clauses.narrow) < (n_words if narrow else 0)
            or spans_left(clauses.wide) < (0 if narrow else n_words)
            or 2 * (clauses.table.n_used[0] + 1) > len(clauses.table.cells)
            or spans_left(lists) < n_cells
            or not _has_room(records, n_records, n_record_cells)
            or min(rows_left(forest.leaves), rows_left(forest.nodes)) < ranked.n_eligible[i]
        ):
            out_needed[N_CUTS] = ranked.n_eligible[i]
            out_needed[N_NARROW] = n_words if narrow else 0
            out_needed[N_WIDE] = 0 if narrow else n_words
            out_needed[N_LIST_CELLS] = n_cells
            out_needed[N_RECORDS] = n_records
            out_needed[N_RECORD_CELLS] = n_record_cells
            return i
        n_filed_under = n_access if is_combined else min(n_access, 1)
        place = write_block(clauses, table, i, order, n_filed_under, n_records)
        if is_combined:
            _file_combinations(records, leaves, covered, place)
        elif n_access == 0:
            lists.cells[append_entry(lists, index.always, 0, 1)] = place
        for j in range(first, first + n_access):
            p = order[j]
            for k in range(table.interval_offsets[p], table.interval_offsets[p + 1]):
                low, high = table.lows[k], table.highs[k]
                if j > first and not is_combined:
                    take_back_cuts(index, seen, table.dimensions[p], low, high, scratch)
                    continue
                leaf, end = key_interval_leaves(forest, table.dimensions[p], low, high)
                while leaf != end:
                    leaves[leaf, N_PREDICATES] += 1
                    if not is_combined:
                        lists.cells[append_entry(lists, leaves, leaf, 1)] = place
                    leaf = int(leaves[leaf, NEXT])
        # Dimensions without cuts have one space, whose event counter tells what is known of them.
        for j in range(first, first + ranked.n_eligible[i]):
            plant(forest, table.dimensions[order[j]])
    return len(table.clause_ids)


@kernel
def _cells_to_list(index: HashArrays, ranked: Ranked, i: int, n_access: int) -> int:
    """Cells of lists that are taken to list a clause in the leaves of its best predicate."""
    if n_access == 0:
        return span_capacity(int(index.always[0, N_LIST]) + 1)
    table = ranked.table
    leaves = index.forest.leaves.cells
    p = ranked.order[table.clause_offsets[i]]
    n = 0
    for k in range(table.interval_offsets[p], table.interval_offsets[p + 1]):
        leaf, end = key_interval_leaves(
            index.forest, table.dimensions[p], table.lows[k], table.highs[k]
        )
        while leaf != end:
            if leaves[leaf, N_LIST] + 1 > leaves[leaf, LIST_ROOM]:
                n += span_capacity(int(leaves[leaf, N_LIST]) + 1)
            leaf = int(leaves[leaf, NEXT])
    return n


@kernel
def _cells_for(records: Records, covered: np.ndarray) -> int:
    """Cells of lists that records take when each combination gets one more clause."""
    rows = records.rows.cells
    n = 0
    for x in range(1, covered[0, 0] + 1):
        for y in range(1, covered[1, 0] + 1):
            for z in range(1, covered[2, 0] + 1):
                r = record_of(records, covered[0, x], covered[1, y], covered[2, z])
                if r < 0:
                    n += 1
                elif rows[r, N_LIST] + 1 > rows[r, LIST_ROOM]:
                    n += span_capacity(int(rows[r, N_LIST]) + 1)
    return n


@kernel
def _file_combinations(
    records: Records, leaves: np.ndarray, covered: np.ndarray, place: int
) -> None:
    for x in range(1, covered[0, 0] + 1):
        for y in range(1, covered[1, 0] + 1):
            for z in range(1, covered[2, 0] + 1):
                r = record_of(records, covered[0, x], covered[1, y], covered[2, z])
                if r < 0:
                    a, b, c = in_order(covered[0, x], covered[1, y], covered[2, z])
                    r = new_record(records, leaves, a, b, c)
                at = append_entry(records.lists, records.rows.cells, r, 1)
                records.lists.cells[at] = place
