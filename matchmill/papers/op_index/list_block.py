"""The block of one predicate list of OpIndex: its directory of segments and their signatures.

    block                     n, capacity, shape, signatures, ends, entries
                  n           how many entries
                  capacity    cells that the block may fill
                  shape       the number of segments is 2 ** shape; FOREST is added if the
                              intervals of every dimension are nested or apart
    signatures                one per segment
    ends                      0, and then for each segment the entry that it ends before
    entry                     value, tag; for BETWEEN also high and back (prefix_trie.py)
                  tag         dimension << 32 | code; a code says what the entry counts for

A segment holds the dimensions that are equal modulo the number of segments, in the order of
(dimension, value). Bit h of its signature is set if it has an entry of that hash: of dimension and
value for EQUAL, of the dimension for others (paper, section 4.2). All of a list stands in one
block, so that one visit reads one piece of memory. OpIndex-BS has one segment and a signature that
excludes nothing.
"""

from __future__ import annotations

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.op_index.operator_kinds import BETWEEN, EQUAL
from matchmill.papers.op_index.prefix_trie import ENTRY, link_entries

__all__ = [
    "CAPACITY",
    "CODE_MASK",
    "DIMENSION_SHIFT",
    "FOREST",
    "HEAD",
    "SHAPE",
    "N",
    "copy_entry",
    "ends_of",
    "entries_of",
    "entry_width",
    "insert_entry",
    "signature_bit",
    "write_block",
]

N, CAPACITY, SHAPE, HEAD = range(4)
FOREST = 256
DIMENSION_SHIFT = 32
CODE_MASK = (1 << DIMENSION_SHIFT) - 1
_ALL_BITS = (1 << 63) - 1


@kernel
def entry_width(operator: int) -> int:
    """Return how many cells an entry takes."""
    return ENTRY if operator == BETWEEN else 2


@kernel
def ends_of(block: int, shape: int) -> int:
    """Return the cell of the 0 before the ends of a block.

    The end of segment s is s + 1 cells behind.
    """
    return block + HEAD + (1 << shape)


@kernel
def entries_of(block: int, shape: int) -> int:
    """Return the cell of the first entry of a block."""
    return block + HEAD + (2 << shape) + 1


@kernel
def signature_bit(operator: int, dimension: int, value: int) -> int:
    """From 0 to 62. Numbers stay below 2**63, so that nothing wraps with or without compilation."""
    h = (dimension * 0x2545F491) & 0x7FFFFFFF
    if operator == EQUAL:
        h ^= (value ^ (value >> 31)) & 0x7FFFFFFF
    h = ((h ^ (h >> 15)) * 0x1B873593) & 0x7FFFFFFF
    h = ((h ^ (h >> 13)) * 0x19D699A5) & 0x7FFFFFFF
    return (h * 63) >> 31


@kernel
def write_block(
    cells: np.ndarray,
    block: int,
    operator: int,
    shape: int,
    old: np.ndarray,
    n_old: int,
    new: np.ndarray,
    first: int,
    stop: int,
    has_signatures: bool,
) -> None:
    """Lay out a block. Within a segment the old entries and the new ones are in order already."""
    width = entry_width(operator)
    ends, entries = ends_of(block, shape), entries_of(block, shape)
    mask = (1 << shape) - 1
    cells[block + N] = n_old + stop - first
    cells[block + SHAPE] = shape
    cells[ends] = 0
    n_of_old = np.zeros(mask + 1, np.int64)
    n_of_new = np.zeros(mask + 1, np.int64)
    for k in range(n_old):
        n_of_old[(old[width * k + 1] >> DIMENSION_SHIFT) & mask] += 1
    for k in range(first, stop):
        n_of_new[(new[width * k + 1] >> DIMENSION_SHIFT) & mask] += 1
    end = 0
    for s in range(mask + 1):
        cells[block + HEAD + s] = 0 if has_signatures else _ALL_BITS
        end += n_of_old[s] + n_of_new[s]
        cells[ends + s + 1] = end
        n_of_new[s] = end - n_of_new[s]  # from now on: where the next entry goes
        n_of_old[s] = n_of_new[s] - n_of_old[s]
    for k in range(n_old):
        s = (old[width * k + 1] >> DIMENSION_SHIFT) & mask
        copy_entry(old, width * k, cells, entries + width * n_of_old[s], width)
        n_of_old[s] += 1
    for k in range(first, stop):
        s = (new[width * k + 1] >> DIMENSION_SHIFT) & mask
        copy_entry(new, width * k, cells, entries + width * n_of_new[s], width)
        n_of_new[s] += 1
    if n_old > 0 and stop > first:
        _merge_segments(cells, ends, entries, operator, n_of_old)
    for k in range(n_old + stop - first):
        dimension = cells[entries + width * k + 1] >> DIMENSION_SHIFT
        bit = signature_bit(operator, dimension, cells[entries + width * k])
        cells[block + HEAD + (dimension & mask)] |= 1 << bit
    if operator == BETWEEN:
        _link_block(cells, block)


@kernel
def copy_entry(source: np.ndarray, start: int, cells: np.ndarray, to: int, width: int) -> None:
    """Copy one entry."""
    for c in range(width):
        cells[to + c] = source[start + c]


@kernel
def _precedes(cells: np.ndarray, a: int, other: np.ndarray, b: int, operator: int) -> bool:
    """Whether an entry stands before another one."""
    dimension_a = cells[a + 1] >> DIMENSION_SHIFT
    dimension_b = other[b + 1] >> DIMENSION_SHIFT
    if dimension_a != dimension_b:
        return bool(dimension_a < dimension_b)
    if cells[a] != other[b] or operator != BETWEEN:
        return bool(cells[a] < other[b])
    return bool(cells[a + 2] > other[b + 2])


@kernel
def _merge_segments(
    cells: np.ndarray, ends: int, entries: int, operator: int, middles: np.ndarray
) -> None:
    """Each segment is two runs, both in order; the second one begins at its middle."""
    width = entry_width(operator)
    for s in range(len(middles)):
        start, end = cells[ends + s], cells[ends + s + 1]
        middle = middles[s]
        if start == middle or middle == end:
            continue
        second = cells[entries + width * middle : entries + width * end].copy()
        i, j, to = middle - 1, end - middle - 1, end - 1
        while j >= 0:
            if i >= start and _precedes(second, width * j, cells, entries + width * i, operator):
                copy_entry(cells, entries + width * i, cells, entries + width * to, width)
                i -= 1
            else:
                copy_entry(second, width * j, cells, entries + width * to, width)
                j -= 1
            to -= 1


@kernel
def _link_block(cells: np.ndarray, block: int) -> None:
    """Link the entries of each dimension in a block of intervals."""
    shape = cells[block + SHAPE] & 255
    entries = entries_of(block, shape)
    is_forest = True
    first = 0
    for k in range(1, cells[block + N] + 1):
        here = cells[entries + ENTRY * first + 1] >> DIMENSION_SHIFT
        if k == cells[block + N] or cells[entries + ENTRY * k + 1] >> DIMENSION_SHIFT != here:
            is_forest &= link_entries(cells, entries + ENTRY * first, k - first)
            first = k
    cells[block + SHAPE] = shape + FOREST if is_forest else shape


@kernel
def insert_entry(cells: np.ndarray, block: int, operator: int, new: np.ndarray, k: int) -> None:
    """Put one entry where it belongs; there is room, and the segments stay."""
    width = entry_width(operator)
    shape = cells[block + SHAPE] & 255
    dimension = new[width * k + 1] >> DIMENSION_SHIFT
    segment = dimension & ((1 << shape) - 1)
    ends, entries = ends_of(block, shape), entries_of(block, shape)
    low, high = cells[ends + segment], cells[ends + segment + 1]
    while low < high:
        middle = (low + high) >> 1
        if _precedes(new, width * k, cells, entries + width * middle, operator):
            high = middle
        else:
            low = middle + 1
    to = entries + width * low
    for c in range(entries + width * cells[block + N] - 1, to - 1, -1):
        cells[c + width] = cells[c]
    copy_entry(new, width * k, cells, to, width)
    cells[block + N] += 1
    for s in range(segment, 1 << shape):
        cells[ends + s + 1] += 1
    cells[block + HEAD + segment] |= 1 << signature_bit(operator, dimension, new[width * k])
    if operator == BETWEEN:
        _link_around(cells, block, entries, low, cells[ends + segment], cells[ends + segment + 1])


@kernel
def _link_around(cells: np.ndarray, block: int, entries: int, k: int, start: int, end: int) -> None:
    """Link the entries of the dimension of entry k, in a segment from `start` to `end`."""
    dimension = cells[entries + ENTRY * k + 1] >> DIMENSION_SHIFT
    first, stop = k, k + 1
    while first > start and cells[entries + ENTRY * first - 3] >> DIMENSION_SHIFT == dimension:
        first -= 1
    while stop < end and cells[entries + ENTRY * stop + 1] >> DIMENSION_SHIFT == dimension:
        stop += 1
    if not link_entries(cells, entries + ENTRY * first, stop - first):
        cells[block + SHAPE] &= 255
