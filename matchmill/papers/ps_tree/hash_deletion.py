"""How clauses leave `pst_hash`, or leave its records to be listed under one predicate.

First no record and no list has the clause any more, then its cuts are taken back, and spaces that
are no longer divided become one again; what is filed in the two is the same by then. (The paper
leaves deletion to a report of its own.)
"""

from __future__ import annotations

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.common.id_table import find_id
from matchmill.papers.common.pools import give_row, span_capacity
from matchmill.papers.ps_tree.clauses import (
    HEADER,
    TOP,
    add_records,
    give_block,
    n_access_of,
    next_predicate,
)
from matchmill.papers.ps_tree.cuts import MAX_KEY, key_interval_leaves, remove_key_cut
from matchmill.papers.ps_tree.forest import (
    EXTRA,
    LIST,
    LIST_ROOM,
    N_LIST,
    N_PREDICATES,
    NEXT,
    PREVIOUS,
    Forest,
)
from matchmill.papers.ps_tree.hash_records import (
    MOST_RECORDS,
    HashArrays,
    drop_record,
    drop_records,
    next_record,
    record_of,
)
from matchmill.papers.ps_tree.leaf_lists import append_entry, drop_list, remove_entry

__all__ = [
    "cells_to_list_instead",
    "count_entries",
    "list_instead",
    "take_back_cuts",
    "unfile_clauses",
]


@kernel
def count_entries(index: HashArrays, leaf: int, n: int) -> int:
    """Count n records more for each clause, as often as it is in records of a leaf.

    Returns the place of one that has more than MOST_RECORDS now, or -1.
    """
    rows, entries = index.records.rows.cells, index.records.lists.cells
    found = -1
    r = int(index.forest.leaves.cells[leaf, EXTRA]) - 1
    while r >= 0:
        for at in range(rows[r, LIST], rows[r, LIST] + rows[r, N_LIST]):
            if add_records(index.clauses, entries[at], n) > MOST_RECORDS:
                found = int(entries[at])
        r = next_record(rows, r, leaf)
    return found


@kernel
def take_back_cuts(
    index: HashArrays,
    seen: np.ndarray,
    dimension: int,
    low: int,
    high: int,
    scratch: np.ndarray,
) -> None:
    """Take back the cuts of an interval.

    A leaf that is no longer divided off has what its neighbour has, and can go.
    """
    leaves = index.forest.leaves.cells
    for side in range(2 if high < MAX_KEY else 1):
        key = low if side == 0 else high + 1
        gone = remove_key_cut(index.forest, dimension, key, scratch)
        if gone >= 0:
            kept = leaves[gone, PREVIOUS]
            seen[kept] = max(seen[kept], seen[gone])
            seen[gone] = 0
            count_entries(index, gone, -1)
            drop_list(index.lists, leaves, gone)
            drop_records(index.records, leaves, gone)
            give_row(index.forest.leaves, gone)


# -- blocks ---------------------------------------------------------------------------------------


@kernel
def _first_access(words: np.ndarray, start: int) -> int:
    """Return where the access predicates of a block begin."""
    at = start + HEADER
    for _ in range(words[start + 2]):
        _, _, at = next_predicate(words, at)
    return at


@kernel
def _leaves_of(
    forest: Forest, words: np.ndarray, dimension: int, at: int, top: int
) -> tuple[int, int]:
    """Return the first leaf of the interval at `at`, and the one after its last, or -1."""
    high = int(words[at + 1])
    return key_interval_leaves(forest, dimension, int(words[at]), high if high < top else MAX_KEY)


@kernel
def _remove_combinations(
    index: HashArrays, words: np.ndarray, place: int, top: int, covered: np.ndarray
) -> None:
    """Remove a clause from all of its records.

    A row of `covered` is long enough: the number of records is the product of those of covered
    leaves. If that is 0, there is nothing to remove.
    """
    records, leaves = index.records, index.forest.leaves.cells
    start = place >> 1
    n_access = n_access_of(words, start)
    at = _first_access(words, start)
    for j in range(n_access, len(covered)):
        covered[j, 0] = 1
        covered[j, 1] = -1
    for j in range(n_access):
        dimension, at, end = next_predicate(words, at)
        n = 0
        while at < end:
            leaf, last = _leaves_of(index.forest, words, dimension, at, top)
            while leaf != last and n <= MOST_RECORDS:
                n += 1
                covered[j, n] = leaf
                leaf = int(leaves[leaf, NEXT])
            at += 2
        covered[j, 0] = n
        if n == 0:
            return
    if words[start + 3] >> 2 == 0:
        return
    for x in range(1, covered[0, 0] + 1):
        for y in range(1, covered[1, 0] + 1):
            for z in range(1, covered[2, 0] + 1):
                r = record_of(records, covered[0, x], covered[1, y], covered[2, z])
                remove_entry(records.lists, records.rows.cells, r, 1, place)
                if records.rows.cells[r, N_LIST] == 0:
                    drop_record(records, leaves, r)


@kernel
def _uncover(
    index: HashArrays, words: np.ndarray, place: int, at: int, top: int, is_listed: bool
) -> int:
    """Count one predicate, at `at`, less in the leaves that it covers; returns where it ends."""
    leaves = index.forest.leaves.cells
    dimension, at, end = next_predicate(words, at)
    while at < end:
        leaf, last = _leaves_of(index.forest, words, dimension, at, top)
        while leaf != last:
            leaves[leaf, N_PREDICATES] -= 1
            if is_listed:
                remove_entry(index.lists, leaves, leaf, 1, place)
            leaf = int(leaves[leaf, NEXT])
        at += 2
    return end


@kernel
def _uncut(
    index: HashArrays, seen: np.ndarray, words: np.ndarray, at: int, top: int, scratch: np.ndarray
) -> int:
    """Take back the cuts of the predicate at `at`; returns where it ends."""
    dimension, at, end = next_predicate(words, at)
    while at < end:
        high = int(words[at + 1])
        high = high if high < top else MAX_KEY
        take_back_cuts(index, seen, dimension, int(words[at]), high, scratch)
        at += 2
    return end


# -- leaving --------------------------------------------------------------------------------------


@kernel
def unfile_clauses(
    index: HashArrays,
    seen: np.ndarray,
    ids: np.ndarray,
    scratch: np.ndarray,
    covered: np.ndarray,
) -> None:
    """Clauses that are there leave without a trace."""
    clauses = index.clauses
    for k in range(len(ids)):
        place = find_id(clauses.table.cells, ids[k])
        if place & 1:
            _unfile(index, seen, clauses.wide.cells, place, MAX_KEY, scratch, covered)
        else:
            _unfile(index, seen, clauses.narrow.cells, place, TOP, scratch, covered)
        give_block(clauses, place)


@kernel
def _unfile(
    index: HashArrays,
    seen: np.ndarray,
    words: np.ndarray,
    place: int,
    top: int,
    scratch: np.ndarray,
    covered: np.ndarray,
) -> None:
    n_access = n_access_of(words, place >> 1)
    if n_access == 0:
        remove_entry(index.lists, index.always, 0, 1, place)
        return
    if n_access > 1:
        _remove_combinations(index, words, place, top, covered)
    first_access = at = _first_access(words, place >> 1)
    for _ in range(n_access):
        at = _uncover(index, words, place, at, top, n_access == 1)
    at = first_access
    for _ in range(n_access):
        at = _uncut(index, seen, words, at, top, scratch)


# -- from records to lists ------------------------------------------------------------------------


@kernel
def cells_to_list_instead(index: HashArrays, place: int) -> int:
    """Return the cells of lists that `list_instead` takes."""
    clauses = index.clauses
    if place & 1:
        return _cells_to_list(index, clauses.wide.cells, place >> 1, MAX_KEY)
    return _cells_to_list(index, clauses.narrow.cells, place >> 1, TOP)


@kernel
def _cells_to_list(index: HashArrays, words: np.ndarray, start: int, top: int) -> int:
    leaves = index.forest.leaves.cells
    dimension, at, end = next_predicate(words, _first_access(words, start))
    n = 0
    while at < end:
        leaf, last = _leaves_of(index.forest, words, dimension, at, top)
        while leaf != last:
            if leaves[leaf, N_LIST] + 1 > leaves[leaf, LIST_ROOM]:
                n += span_capacity(int(leaves[leaf, N_LIST]) + 1)
            leaf = int(leaves[leaf, NEXT])
        at += 2
    return n


@kernel
def list_instead(
    index: HashArrays, seen: np.ndarray, place: int, scratch: np.ndarray, covered: np.ndarray
) -> None:
    """Take a clause out of its records and list it under its best predicate; there is room."""
    clauses = index.clauses
    if place & 1:
        _list_instead(index, seen, clauses.wide.cells, place, MAX_KEY, scratch, covered)
    else:
        _list_instead(index, seen, clauses.narrow.cells, place, TOP, scratch, covered)


@kernel
def _list_instead(
    index: HashArrays,
    seen: np.ndarray,
    words: np.ndarray,
    place: int,
    top: int,
    scratch: np.ndarray,
    covered: np.ndarray,
) -> None:
    leaves = index.forest.leaves.cells
    _remove_combinations(index, words, place, top, covered)
    start = place >> 1
    n_others = n_access_of(words, start) - 1
    # The best access predicate goes behind the others, which are checked from now on.
    first = _first_access(words, start)
    _, _, middle = next_predicate(words, first)
    end = middle
    for _ in range(n_others):
        _, _, end = next_predicate(words, end)
    _reverse(words, first, middle)
    _reverse(words, middle, end)
    _reverse(words, first, end)
    words[start + 2] += n_others
    words[start + 3] = 1
    at = first
    for _ in range(n_others):
        at = _uncover(index, words, place, at, top, False)
    dimension, at, end = next_predicate(words, at)
    while at < end:
        leaf, last = _leaves_of(index.forest, words, dimension, at, top)
        while leaf != last:
            index.lists.cells[append_entry(index.lists, leaves, leaf, 1)] = place
            leaf = int(leaves[leaf, NEXT])
        at += 2
    at = first
    for _ in range(n_others):
        at = _uncut(index, seen, words, at, top, scratch)


@kernel
def _reverse(words: np.ndarray, first: int, end: int) -> None:
    while first < end - 1:
        end -= 1
        words[first], words[end] = words[end], words[first]
        first += 1
