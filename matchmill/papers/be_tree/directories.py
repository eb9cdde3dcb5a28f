"""Partition directories (section 4.2): from a dimension to the top bucket of its p-node.

    directory    the logarithm of the number of places, then for each place
                 1 + the dimension (or 0) and the top bucket

Places are at most half full and probed one after the other. Entries that leave are filled up by
those behind them, so there are no marks of what has been deleted.
"""

from __future__ import annotations

import numpy as np

from matchmill.kernels.jit import int64, kernel
from matchmill.papers.be_tree.tree import DIRECTORY, N_PARTITIONS, P_DIMENSION, TOP, Tree
from matchmill.papers.common.pools import give_span, take_span

__all__ = [
    "add_partition",
    "directory_words",
    "find_entry",
    "find_partition",
    "remove_partition",
]


@kernel
def _first_place(dimension: int, log_places: int) -> int:
    """Fibonacci hashing: the upper bits of a product."""
    return int(((int64(dimension) * 2654435769) & 0xFFFFFFFF) >> (32 - log_places))


@kernel
def directory_words(log_places: int) -> int:
    """Return how many words a directory takes."""
    return 1 + (2 << log_places)


@kernel
def find_entry(directories: np.ndarray, start: int, dimension: int) -> int:
    """Where a dimension is, or the empty place where it would be."""
    log_places = directories[start]
    place = _first_place(dimension, log_places)
    mask = (1 << log_places) - 1
    while True:
        entry = start + 1 + 2 * place
        if directories[entry] == dimension + 1 or directories[entry] == 0:
            return entry
        place = (place + 1) & mask


@kernel
def find_partition(directories: np.ndarray, start: int, dimension: int) -> int:
    """Return the top bucket for a dimension, or -1."""
    entry = find_entry(directories, start, dimension)
    return int(directories[entry + 1]) if directories[entry] else -1


@kernel
def _put(directories: np.ndarray, start: int, dimension: int, top: int) -> None:
    entry = find_entry(directories, start, dimension)
    directories[entry] = dimension + 1
    directories[entry + 1] = top


@kernel
def add_partition(tree: Tree, node: int, partition: int) -> None:
    """Enter a p-node, which must be new there. There must be room for 32 words per entry."""
    row = tree.nodes.cells[node]
    cells = tree.directories.cells
    start = row[DIRECTORY]
    log_places = cells[start] if start >= 0 else 0
    if start < 0 or 2 * (row[N_PARTITIONS] + 1) > 1 << log_places:
        fresh = take_span(tree.directories, directory_words(log_places + 1))
        for k in range(directory_words(log_places + 1)):
            cells[fresh + k] = 0
        cells[fresh] = log_places + 1
        if start >= 0:
            for place in range(1 << log_places):
                entry = start + 1 + 2 * place
                if cells[entry]:
                    _put(cells, fresh, cells[entry] - 1, cells[entry + 1])
            give_span(tree.directories, start, directory_words(log_places))
        row[DIRECTORY] = fresh
    p = tree.partitions.cells[partition]
    _put(cells, row[DIRECTORY], p[P_DIMENSION], p[TOP])
    row[N_PARTITIONS] += 1


@kernel
def remove_partition(tree: Tree, node: int, dimension: int) -> None:
    """Take out a p-node, which must be there; a directory without entries is given back."""
    row = tree.nodes.cells[node]
    cells = tree.directories.cells
    start = row[DIRECTORY]
    log_places = cells[start]
    row[N_PARTITIONS] -= 1
    if row[N_PARTITIONS] == 0:
        give_span(tree.directories, start, directory_words(log_places))
        row[DIRECTORY] = -1
        return
    mask = (1 << log_places) - 1
    hole = (find_entry(cells, start, dimension) - start - 1) // 2
    place = hole
    while True:
        place = (place + 1) & mask
        entry = start + 1 + 2 * place
        if cells[entry] == 0:
            break
        wanted = _first_place(cells[entry] - 1, log_places)
        if (place - wanted) & mask >= (place - hole) & mask:
            cells[start + 1 + 2 * hole] = cells[entry]
            cells[start + 2 + 2 * hole] = cells[entry + 1]
            hole = place
    cells[start + 1 + 2 * hole] = 0
