"""The arrays of `pst_hash`; its hash table from N-dimensional spaces to clauses (section 6.1).

    record    leaf, leaf, leaf (rows ascending, -1 if N is 2), the next record of each of them,
              a list of places of clauses (`leaf_lists.py`), the previous record of each
    leaf      extra: 1 + its first record, or 0; extra_size: how many records it is in
    table     the records by the sum of their leaves' hashes (`id_table.py`); whether the
              leaves are the same is asked of the record

A leaf knows its records so that they follow when its space is divided, and go when it is united.
A sum does not depend on the order in which an event has its dimensions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.kernels.hashing import mix31
from matchmill.kernels.jit import kernel
from matchmill.papers.common.id_table import IdTable, clear_cell, put_id
from matchmill.papers.common.pools import Rows, Spans, give_row, take_row
from matchmill.papers.ps_tree.clauses import Clauses
from matchmill.papers.ps_tree.forest import EXTRA, EXTRA_SIZE, LIST_ROOM, Forest
from matchmill.papers.ps_tree.leaf_lists import copy_list, drop_list

__all__ = [
    "MOST_RECORDS",
    "RECORD_WIDTH",
    "HashArrays",
    "Records",
    "copy_records",
    "drop_record",
    "drop_records",
    "find_record",
    "in_order",
    "leaf_hash",
    "new_record",
    "next_record",
    "record_of",
    "records_cells",
]

# Columns; the three of the list are where a leaf has them, so that both are lists.
FIRST_LEAF, FIRST_NEXT, FIRST_PREVIOUS = 0, 3, 9
RECORD_WIDTH = 12
_SLOTS = 3

MOST_RECORDS = 4096  # of one clause


class Records(NamedTuple):
    """Combinations of leaves, and their clauses."""

    rows: Rows  # int64
    lists: Spans  # int64
    table: IdTable


class HashArrays(NamedTuple):
    """The arrays of the index."""

    forest: Forest
    lists: Spans  # int64: of leaves
    records: Records
    clauses: Clauses
    always: np.ndarray  # int64: like a leaf; lists what no predicate leads to
    n_access: np.ndarray  # int64, one


@kernel
def leaf_hash(leaf: int) -> int:
    """61 bits; the sum of three has 63."""
    a = mix31(leaf + 1)
    return (a << 30) | (mix31(a ^ 0x5BD1E995) >> 1)


@kernel
def find_record(cells: np.ndarray, rows: np.ndarray, total: int, a: int, b: int, c: int) -> int:
    """Return the record of leaves a, b, c whose hashes sum up to `total`, or -1.

    The leaves are in the order of records.
    """
    last = len(cells) - 1
    h = mix31(total) & last
    while cells[h, 1] >= 0:
        if cells[h, 0] == total:
            r = int(cells[h, 1])
            if rows[r, 0] == a and rows[r, 1] == b and rows[r, 2] == c:
                return r
        h = (h + 1) & last
    return -1


@kernel
def record_of(records: Records, a: int, b: int, c: int) -> int:
    """Return the record of leaves in any order, of which c may be -1; or -1."""
    total = leaf_hash(a) + leaf_hash(b) + (leaf_hash(c) if c >= 0 else 0)
    a, b, c = in_order(a, b, c)
    return find_record(records.table.cells, records.rows.cells, total, a, b, c)


@kernel
def next_record(rows: np.ndarray, r: int, leaf: int) -> int:
    """Return the record after r among those of a leaf, or -1."""
    return int(rows[r, FIRST_NEXT + _slot(rows, r, leaf)])


@kernel
def new_record(records: Records, leaves: np.ndarray, a: int, b: int, c: int) -> int:
    """Make a record of leaves a < b < c, where c may be -1, that has no clauses yet."""
    r = take_row(records.rows)
    rows = records.rows.cells
    rows[r] = 0
    rows[r, 0] = a
    rows[r, 1] = b
    rows[r, 2] = c
    total = 0
    for slot in range(_SLOTS):
        leaf = int(rows[r, slot])
        if leaf >= 0:
            total += leaf_hash(leaf)
            head = int(leaves[leaf, EXTRA]) - 1
            rows[r, FIRST_NEXT + slot] = head
            rows[r, FIRST_PREVIOUS + slot] = -1
            if head >= 0:
                rows[head, FIRST_PREVIOUS + _slot(rows, head, leaf)] = r
            leaves[leaf, EXTRA] = r + 1
            leaves[leaf, EXTRA_SIZE] += 1
    put_id(records.table, total, r)
    return r


@kernel
def _slot(rows: np.ndarray, r: int, leaf: int) -> int:
    if rows[r, 0] == leaf:
        return 0
    return 1 if rows[r, 1] == leaf else 2


@kernel
def drop_record(records: Records, leaves: np.ndarray, r: int) -> None:
    """Remove a record that has no clauses."""
    rows = records.rows.cells
    total = 0
    for slot in range(_SLOTS):
        leaf = int(rows[r, slot])
        if leaf >= 0:
            total += leaf_hash(leaf)
            after, before = int(rows[r, FIRST_NEXT + slot]), int(rows[r, FIRST_PREVIOUS + slot])
            if after >= 0:
                rows[after, FIRST_PREVIOUS + _slot(rows, after, leaf)] = before
            if before >= 0:
                rows[before, FIRST_NEXT + _slot(rows, before, leaf)] = after
            else:
                leaves[leaf, EXTRA] = after + 1
            leaves[leaf, EXTRA_SIZE] -= 1
    cells = records.table.cells
    last = len(cells) - 1
    h = mix31(total) & last
    while cells[h, 1] != r:
        h = (h + 1) & last
    clear_cell(records.table, h)
    drop_list(records.lists, rows, r)
    give_row(records.rows, r)


@kernel
def records_cells(records: Records, leaves: np.ndarray, leaf: int) -> int:
    """Return the cells of all lists of a leaf's records."""
    rows = records.rows.cells
    n = 0
    r = int(leaves[leaf, EXTRA]) - 1
    while r >= 0:
        n += int(rows[r, LIST_ROOM])
        r = next_record(rows, r, leaf)
    return n


@kernel
def copy_records(records: Records, leaves: np.ndarray, old: int, new: int) -> None:
    """Give a leaf that was divided off records of its own, with the same clauses."""
    rows = records.rows.cells
    leaves[new, EXTRA] = 0
    leaves[new, EXTRA_SIZE] = 0
    r = int(leaves[old, EXTRA]) - 1
    while r >= 0:
        slot = _slot(rows, r, old)
        a, b, c = int(rows[r, 0]), int(rows[r, 1]), int(rows[r, 2])
        if slot == 0:
            a = new
        elif slot == 1:
            b = new
        else:
            c = new
        a, b, c = in_order(a, b, c)
        copy_list(records.lists, rows, r, new_record(records, leaves, a, b, c), 1)
        r = int(rows[r, FIRST_NEXT + slot])


@kernel
def in_order(a: int, b: int, c: int) -> tuple[int, int, int]:
    """Ascending, but for c = -1, which stays the last."""
    if a > b:
        a, b = b, a
    if c >= 0:
        if b > c:
            b, c = c, b
        if a > b:
            a, b = b, a
    return a, b, c


@kernel
def drop_records(records: Records, leaves: np.ndarray, leaf: int) -> None:
    """All records of a leaf."""
    while leaves[leaf, EXTRA]:
        drop_record(records, leaves, int(leaves[leaf, EXTRA]) - 1)
