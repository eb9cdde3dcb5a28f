"""From ids to places: a hash table in one array that changes in place.

    cells[h]    id, place; an empty cell has place -1

A place is any number from 0 on: what it means is the caller's business. An id stands in the first
free cell from its home on, the cell that its hash names. So there may be no gap between the two,
and a removal moves up what follows. At most half of the cells are in use:

    8 cells     ids 5, 13 and 2 whose homes are 3, 3 and 4

    h            0    1    2    3     4     5    6    7
    id, place    –    –    –    5, 0  13, 1 2, 2 –    –

    remove 5    13 moves up to its home 3; then 2 moves up to its home 4; cell 5 becomes empty

Kernels look up and change single ids (`find_id`, `put_id`, `remove_id`); `find_ids`, `with_ids`
and `without_ids` do the same for arrays. Structures with tables of their own (BE-Tree's slots, the
intervals of predicates) use the same hash and the rule `moves_up`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.errors import InputError
from matchmill.kernels.hashing import mix31
from matchmill.kernels.jit import kernel

__all__ = [
    "IdTable",
    "check_known",
    "check_new",
    "clear_cell",
    "find_id",
    "find_ids",
    "moves_up",
    "new_id_table",
    "put_id",
    "remove_id",
    "table_with_room",
    "with_ids",
    "without_ids",
]


class IdTable(NamedTuple):
    """The cells, and how many of them are in use."""

    cells: np.ndarray  # int64, two columns
    n_used: np.ndarray  # int64, one

    @property
    def n_bytes(self) -> int:
        """Bytes of the cells."""
        return int(self.cells.nbytes)


def new_id_table(n_cells: int = 16) -> IdTable:
    """Make an empty table; the number of cells is a power of two."""
    return IdTable(np.full((n_cells, 2), -1, np.int64), np.zeros(1, np.int64))


def table_with_room(table: IdTable, n: int) -> IdTable:
    """Return the same table, with room for n more ids."""
    n_cells = len(table.cells)
    needed = 2 * (int(table.n_used[0]) + n)
    if needed <= n_cells:
        return table
    while n_cells < needed:
        n_cells *= 2
    larger = new_id_table(n_cells)
    _put_all(table.cells, larger)
    return larger


def with_ids(table: IdTable, ids: np.ndarray, places: np.ndarray) -> IdTable:
    """Put ids that are not there, and return the table, which may be a larger one."""
    table = table_with_room(table, len(ids))
    _put_ids(table, ids, places)
    return table


def find_ids(table: IdTable, ids: np.ndarray) -> np.ndarray:
    """Return the place of each id, or -1."""
    out = np.empty(len(ids), np.int64)
    _find_ids(table.cells, ids, out)
    return out


def without_ids(table: IdTable, ids: np.ndarray) -> None:
    """Remove ids that are there."""
    _remove_ids(table, ids)


# -- checks ---------------------------------------------------------------------------------------


def check_new(places: np.ndarray, ids: np.ndarray, what: str = "clauses") -> None:
    """Raise unless no id has a place yet, and no id is given twice."""
    n_known = int((places >= 0).sum())
    if n_known or (len(ids) > 1 and len(np.unique(ids)) < len(ids)):
        raise InputError(
            f"{n_known} of these {len(ids)} {what} are in the index already, or an id is given "
            "twice; none was inserted: delete the old ones first, or give other ids"
        )


def check_known(places: np.ndarray, what: str = "clauses") -> None:
    """Raise unless every id has a place."""
    n_missing = int((places < 0).sum())
    if n_missing:
        raise InputError(
            f"{n_missing} of these {len(places)} {what} are not in the index; none was deleted"
        )


# -- kernels --------------------------------------------------------------------------------------


@kernel
def moves_up(home: int, gap: int, at: int, last: int) -> bool:
    """Tell whether what stands at a cell may fill the gap before it: not if its home is between."""
    return ((at - home) & last) >= ((at - gap) & last)


@kernel
def find_id(cells: np.ndarray, wanted: int) -> int:
    """Return the place of an id, or -1."""
    last = len(cells) - 1
    h = mix31(wanted) & last
    while cells[h, 1] >= 0:
        if cells[h, 0] == wanted:
            return int(cells[h, 1])
        h = (h + 1) & last
    return -1


@kernel
def put_id(table: IdTable, new: int, place: int) -> None:
    """Put an id, for which there is room. It may be there already: then it is there twice."""
    cells = table.cells
    last = len(cells) - 1
    h = mix31(new) & last
    while cells[h, 1] >= 0:
        h = (h + 1) & last
    cells[h, 0] = new
    cells[h, 1] = place
    table.n_used[0] += 1


@kernel
def remove_id(table: IdTable, gone: int) -> None:
    """Remove an id that is there."""
    cells = table.cells
    last = len(cells) - 1
    h = mix31(gone) & last
    while cells[h, 0] != gone or cells[h, 1] < 0:
        h = (h + 1) & last
    clear_cell(table, h)


@kernel
def clear_cell(table: IdTable, h: int) -> None:
    """Remove what is in a cell, and close the gap."""
    cells = table.cells
    last = len(cells) - 1
    table.n_used[0] -= 1
    following = (h + 1) & last
    while cells[following, 1] >= 0:
        if moves_up(mix31(cells[following, 0]) & last, h, following, last):
            cells[h, 0] = cells[following, 0]
            cells[h, 1] = cells[following, 1]
            h = following
        following = (following + 1) & last
    cells[h, 1] = -1


@kernel
def _put_all(cells: np.ndarray, larger: IdTable) -> None:
    for h in range(len(cells)):
        if cells[h, 1] >= 0:
            put_id(larger, cells[h, 0], cells[h, 1])


@kernel
def _put_ids(table: IdTable, ids: np.ndarray, places: np.ndarray) -> None:
    for k in range(len(ids)):
        put_id(table, ids[k], places[k])


@kernel
def _find_ids(cells: np.ndarray, ids: np.ndarray, out: np.ndarray) -> None:
    for k in range(len(ids)):
        out[k] = find_id(cells, ids[k])


@kernel
def _remove_ids(table: IdTable, ids: np.ndarray) -> None:
    for k in range(len(ids)):
        remove_id(table, ids[k])
