"""What is filed under the spaces of a PS-Tree: a list of entries for each leaf.

    leaf     list (its first cell), n_list (entries), list_room (cells that it has)
    entry    `width` cells, of which the first says who it is

A list takes twice the room when it is full. It goes to a span of half the room when a quarter would
do and there is such a span: kernels that delete have no room made for them, so a list may have to
keep its span until something else is removed from it.
"""

from __future__ import annotations

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.common.pools import (
    Spans,
    can_take_span,
    give_span,
    span_capacity,
    take_span,
)
from matchmill.papers.ps_tree.forest import LIST, LIST_ROOM, N_LIST

__all__ = ["append_entry", "copy_list", "drop_list", "list_cells_needed", "remove_entry", "reserve"]


@kernel
def list_cells_needed(leaves: np.ndarray, leaf: int, width: int) -> int:
    """At most so many cells are taken while a leaf is divided twice and gets an entry."""
    return 3 * span_capacity((int(leaves[leaf, N_LIST]) + 2) * width)


@kernel
def reserve(spans: Spans, leaves: np.ndarray, leaf: int, n: int, width: int) -> None:
    """Move the list to a span for n entries, or more than it has."""
    start = take_span(spans, n * width)
    room = int(leaves[leaf, LIST_ROOM])
    if room:
        cells = spans.cells
        old = leaves[leaf, LIST]
        for k in range(leaves[leaf, N_LIST] * width):
            cells[start + k] = cells[old + k]
        give_span(spans, int(old), room)
    leaves[leaf, LIST] = start
    leaves[leaf, LIST_ROOM] = span_capacity(n * width)


@kernel
def append_entry(spans: Spans, leaves: np.ndarray, leaf: int, width: int) -> int:
    """Append an entry, and return its first cell, to be filled by the caller."""
    n = int(leaves[leaf, N_LIST])
    if (n + 1) * width > leaves[leaf, LIST_ROOM]:
        reserve(spans, leaves, leaf, n + 1, width)
    leaves[leaf, N_LIST] = n + 1
    return int(leaves[leaf, LIST]) + n * width


@kernel
def copy_list(spans: Spans, leaves: np.ndarray, old: int, new: int, width: int) -> None:
    """Give a leaf that was divided off a list of its own."""
    n = int(leaves[old, N_LIST])
    leaves[new, LIST_ROOM] = 0
    leaves[new, N_LIST] = n
    if n:
        start = take_span(spans, n * width)
        leaves[new, LIST] = start
        leaves[new, LIST_ROOM] = span_capacity(n * width)
        cells = spans.cells
        first = leaves[old, LIST]
        for k in range(n * width):
            cells[start + k] = cells[first + k]


@kernel
def remove_entry(spans: Spans, leaves: np.ndarray, leaf: int, width: int, who: int) -> None:
    """Remove an entry, which is there: the last one takes its place."""
    cells = spans.cells
    n = int(leaves[leaf, N_LIST]) - 1
    last = int(leaves[leaf, LIST]) + n * width
    at = int(leaves[leaf, LIST])
    while cells[at] != who:
        at += width
    for k in range(width):
        cells[at + k] = cells[last + k]
    leaves[leaf, N_LIST] = n
    if n == 0:
        drop_list(spans, leaves, leaf)
    elif 4 * n * width <= leaves[leaf, LIST_ROOM] and can_take_span(spans, 2 * n * width):
        reserve(spans, leaves, leaf, 2 * n, width)


@kernel
def drop_list(spans: Spans, leaves: np.ndarray, leaf: int) -> None:
    """Give back the list of a leaf."""
    if leaves[leaf, LIST_ROOM]:
        give_span(spans, int(leaves[leaf, LIST]), int(leaves[leaf, LIST_ROOM]))
    leaves[leaf, N_LIST] = 0
    leaves[leaf, LIST_ROOM] = 0
