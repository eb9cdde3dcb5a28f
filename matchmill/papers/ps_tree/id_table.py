"""Where something is, by its id: a hash table in one array that changes in place.

cells[h]    id, place; an empty cell has place -1. An id stands in the first free cell from the
            one that its hash names, so there must be no gap before it: removing one moves up
            what follows. At most half of the cells are in use.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.kernels.jit import int64, kernel

__all__ = [
    "IdTable",
    "clear_cell",
    "find_id",
    "mix",
    "new_id_table",
    "put_id",
    "remove_id",
    "table_with_room",
]

_HALF = 0xFFFF_FFFF


class IdTable(NamedTuple):
    cells: np.ndarray  # int64, two columns
    n_used: np.ndarray  # int64, one


def new_id_table(n_cells: int = 16) -> IdTable:
    return IdTable(np.full((n_cells, 2), -1, np.int64), np.zeros(1, np.int64))


def table_with_room(table: IdTable, n: int) -> IdTable:
    """The same table, with room for n more ids."""
    n_cells = len(table.cells)
    needed = 2 * (int(table.n_used[0]) + n)
    if needed <= n_cells:
        return table
    while n_cells < needed:
        n_cells *= 2
    larger = new_id_table(n_cells)
    _put_all(table.cells, larger)
    return larger


@kernel
def mix(number: int) -> int:
    """31 bits that depend on all of a number; no product on the way passes 63 bits."""
    number = int64(number)
    n = (number ^ (number >> 32)) & _HALF
    n = ((n ^ (n >> 16)) * 0x45D9F3B) & _HALF
    n = ((n ^ (n >> 16)) * 0x45D9F3B) & _HALF
    return int((n ^ (n >> 16)) & 0x7FFF_FFFF)


@kernel
def find_id(cells: np.ndarray, wanted: int) -> int:
    """Its place, or -1."""
    last = len(cells) - 1
    h = mix(wanted) & last
    while cells[h, 1] >= 0:
        if cells[h, 0] == wanted:
            return int(cells[h, 1])
        h = (h + 1) & last
    return -1


@kernel
def put_id(table: IdTable, new: int, place: int) -> None:
    """An id that is not there."""
    cells = table.cells
    last = len(cells) - 1
    h = mix(new) & last
    while cells[h, 1] >= 0:
        h = (h + 1) & last
    cells[h, 0] = new
    cells[h, 1] = place
    table.n_used[0] += 1


@kernel
def _put_all(cells: np.ndarray, larger: IdTable) -> None:
    for h in range(len(cells)):
        if cells[h, 1] >= 0:
            put_id(larger, cells[h, 0], cells[h, 1])


@kernel
def remove_id(table: IdTable, gone: int) -> None:
    """An id that is there."""
    cells = table.cells
    last = len(cells) - 1
    h = mix(gone) & last
    while cells[h, 0] != gone or cells[h, 1] < 0:
        h = (h + 1) & last
    clear_cell(table, h)


@kernel
def clear_cell(table: IdTable, h: int) -> None:
    """Take out what is in a cell, and close the gap."""
    cells = table.cells
    last = len(cells) - 1
    table.n_used[0] -= 1
    following = (h + 1) & last
    while cells[following, 1] >= 0:
        home = mix(cells[following, 0]) & last
        # It may move up to the gap unless its own place lies between the two.
        if ((following - home) & last) >= ((following - h) & last):
            cells[h, 0] = cells[following, 0]
            cells[h, 1] = cells[following, 1]
            h = following
        following = (following + 1) & last
    cells[h, 1] = -1
