"""The predicate lists of OpIndex: for each pivot and operator a block of cells (`list_block.py`).

    heads[pivot, operator]    the cell where the block of a list begins, or -1
    sizes[pivot]              entries in all lists of a pivot

The paper gives every list 32 segments. Most lists of a table with many dimensions are short, and a
directory would be larger than what it leads to; a list of n entries gets n / 8 segments, 32 at most
(option `segments`).

Blocks of the first build fit exactly; a block that outgrows its capacity moves into a span of the
pool. Few new entries are put in their place, one by one; many are merged with the old ones at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.common.pools import Spans, give_span, new_spans, span_capacity, take_span
from matchmill.papers.op_index.list_block import (
    CAPACITY,
    CODE_MASK,
    SHAPE,
    N,
    copy_entry,
    entries_of,
    entry_width,
    insert_entry,
    write_block,
)
from matchmill.papers.op_index.operator_kinds import OPERATORS

__all__ = ["Lists", "merge_entries", "new_lists", "room_for", "sweep_pivot"]

_PER_SEGMENT = 8
_FEW = 4  # entries that are put in one by one


class Lists(NamedTuple):
    """The lists of all pivots."""

    heads: np.ndarray  # int64, pivots × operators
    sizes: np.ndarray  # int64, entries of each pivot
    blocks: Spans


def new_lists() -> Lists:
    """Make lists for no pivot."""
    return Lists(
        np.empty((0, len(OPERATORS)), np.int64), np.empty(0, np.int64), new_spans(np.int64)
    )


@kernel
def _shape_for(n: int, max_segments: int) -> int:
    shape = 0
    while (1 << shape) < max_segments and (_PER_SEGMENT << shape) < n:
        shape += 1
    return shape


@kernel
def _block_cells(n: int, operator: int, shape: int) -> int:
    """Return the cells that a list of n entries takes."""
    return entries_of(0, shape) + entry_width(operator) * n


@kernel
def room_for(
    lists: Lists, operator: int, pivots: np.ndarray, counts: np.ndarray, max_segments: int
) -> tuple[int, int, int]:
    """Return what more entries may take.

    Cells if blocks fit exactly, cells of spans, and the cells of the longest list that moves.
    """
    cells = lists.blocks.cells
    n_exact = n_spans = n_longest = 0
    for g in range(len(pivots)):
        block = lists.heads[pivots[g], operator]
        n_old = cells[block + N] if block >= 0 else 0
        n = n_old + counts[g]
        shape = _shape_for(n, max_segments)
        if block >= 0:
            shape = max(shape, cells[block + SHAPE] & 255)
        n_cells = _block_cells(n, operator, shape)
        n_exact += n_cells
        n_longest = max(n_longest, entry_width(operator) * n_old)
        if block < 0 or cells[block + CAPACITY] < n_cells:
            n_spans += span_capacity(n_cells)
    return n_exact, n_spans, n_longest


@kernel
def merge_entries(
    lists: Lists,
    operator: int,
    pivots: np.ndarray,
    offsets: np.ndarray,
    new: np.ndarray,
    max_segments: int,
    has_signatures: bool,
    is_exact: bool,
    scratch: np.ndarray,
) -> None:
    """Add new[offsets[g] … offsets[g + 1]], by dimension and value, to the list of pivots[g].

    There is room for new blocks, and `scratch` is as long as the longest list that moves.
    """
    cells = lists.blocks.cells
    width = entry_width(operator)
    for g in range(len(pivots)):
        pivot, first, stop = pivots[g], offsets[g], offsets[g + 1]
        lists.sizes[pivot] += stop - first
        block = lists.heads[pivot, operator]
        n_old = cells[block + N] if block >= 0 else 0
        shape = _shape_for(n_old + stop - first, max_segments)
        if block >= 0:  # never fewer segments: those of a wider one would not be in order
            shape = max(shape, cells[block + SHAPE] & 255)
        n_cells = _block_cells(n_old + stop - first, operator, shape)
        fits = block >= 0 and cells[block + CAPACITY] >= n_cells
        if fits and stop - first <= _FEW and shape == (cells[block + SHAPE] & 255):
            for k in range(first, stop):
                insert_entry(cells, block, operator, new, k)
            continue
        if block >= 0:
            entries = entries_of(block, cells[block + SHAPE] & 255)
            for k in range(width * n_old):
                scratch[k] = cells[entries + k]
        if not fits:
            block = _moved(lists.blocks, block, n_cells, is_exact)
            lists.heads[pivot, operator] = block
        write_block(cells, block, operator, shape, scratch, n_old, new, first, stop, has_signatures)


@kernel
def _moved(blocks: Spans, block: int, n_cells: int, is_exact: bool) -> int:
    """Take a larger block instead of this one, if there was one."""
    if block >= 0:
        given = 1
        while 2 * given <= blocks.cells[block + CAPACITY]:
            given *= 2
        give_span(blocks, block, given)
    if is_exact:  # the pool is filled from one end; nothing is free in between
        start = int(blocks.state[0])
        blocks.state[0] += n_cells
        blocks.state[1] += n_cells
        blocks.cells[start + CAPACITY] = n_cells
    else:
        start = take_span(blocks, n_cells)
        blocks.cells[start + CAPACITY] = span_capacity(n_cells)
    return start


@kernel
def sweep_pivot(
    lists: Lists,
    pivot: int,
    initial: np.ndarray,
    dead: int,
    code_shift: int,
    has_signatures: bool,
) -> None:
    """Drop the entries whose row is dead: initial[code >> code_shift] says so."""
    cells = lists.blocks.cells
    for operator in range(lists.heads.shape[1]):
        block = lists.heads[pivot, operator]
        if block < 0:
            continue
        width = entry_width(operator)
        entries = entries_of(block, cells[block + SHAPE] & 255)
        kept = np.empty(width * cells[block + N], np.int64)
        n_kept = 0
        for k in range(cells[block + N]):
            code = cells[entries + width * k + 1] & CODE_MASK
            if initial[code >> code_shift] != dead:
                copy_entry(cells, entries + width * k, kept, width * n_kept, width)
                n_kept += 1
        lists.sizes[pivot] -= cells[block + N] - n_kept
        shape = cells[block + SHAPE] & 255
        write_block(cells, block, operator, shape, kept, n_kept, kept, 0, 0, has_signatures)
