"""Segment tree: the line cut at every bound, and a binary tree over the pieces.

    edges[s]       the first key of space s, ascending; the first is 0
    nodes[n]       start, number and most of the ids at node n. Node 1 is the root, 2 n and 2 n + 1
                   are below n, and space s is node `size + s`; size is a power of two
    ids            spans of ids (`common/pools.py`)
    levels[s]      bit k: the node k levels above space s may have ids; bit 62: the space has pieces
    pieces[s]      start, number and most of the intervals that begin or end inside space s
    piece_cells    spans of three numbers each: low, high, id

An interval stands at the O(log n) nodes that together make it up. A key finds its space by binary
search and then reads the nodes above it, of which `levels` leaves out those that are empty: most.

The edges are those of the intervals that there were when the tree was built. A later interval
stands at the nodes of the spaces that it covers, and as a piece in at most two spaces that it
covers in part; pieces are compared with the key. When there are half as many pieces as edges, the
tree is built again with all bounds, so that an insertion costs O(log n) built nodes on average. It
is built again, too, when three quarters of its intervals are gone. Deletion goes the way of
insertion and looks through the list of each node.

PS-Tree compares with such a tree in section 7.5; its tree does not change.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.common.pools import (
    Spans,
    give_span,
    new_spans,
    span_capacity,
    spans_left,
    spans_with_room,
    take_span,
)
from matchmill.papers.predicate_index.base import Predicates, Satisfied
from matchmill.papers.predicate_index.interval_table import Intervals, KnownIntervals, collect

__all__ = ["SegmentTree"]

_MAX_KEY = np.iinfo(np.int64).max
_HAS_PIECES = 1 << 62
_MAX_COVER = 128  # two nodes a level
_AT_ONCE = 32  # keys; one after the other takes nearly twice as long


class Tree(NamedTuple):
    edges: np.ndarray  # int64
    nodes: np.ndarray  # int64, three columns
    levels: np.ndarray  # int64
    pieces: np.ndarray  # int64, three columns
    ids: Spans
    piece_cells: Spans


class SegmentTree:
    """A tree over elementary spaces."""

    name: ClassVar[str] = "segment_tree"

    def __init__(self) -> None:
        self._known = KnownIntervals()
        self._tree: Tree
        self._build()

    @classmethod
    def build(cls, predicates: Predicates) -> SegmentTree:
        """Build the index from predicates."""
        tree = cls()
        tree.insert(predicates)
        return tree

    def insert(self, predicates: Predicates) -> None:
        """Insert predicates."""
        new = self._known.add(predicates)
        self._n_intervals += len(new.ids)
        if 4 * len(new.ids) > len(self._tree.edges):
            self._build()
            return
        done = 0
        while done < len(new.ids):
            done, n_pieces, n_cells, n_piece_cells = _insert(self._tree, new, done)
            self._n_pieces += n_pieces
            self._tree = self._tree._replace(
                ids=spans_with_room(self._tree.ids, n_cells),
                piece_cells=spans_with_room(self._tree.piece_cells, n_piece_cells),
            )
        if self._n_pieces > 32 + len(self._tree.edges) // 2:
            self._build()

    def delete(self, ids: np.ndarray) -> None:
        """Delete predicates by their ids."""
        gone = self._known.remove(ids)
        self._n_intervals -= len(gone.ids)
        if 32 + 4 * self._n_intervals < self._n_built:
            self._build()
            return
        self._n_pieces -= _delete(self._tree, gone)

    def match(self, keys: np.ndarray) -> Satisfied:
        """Find the predicates that each key satisfies."""
        tree = self._tree
        return collect(
            len(keys),
            self._n_intervals,
            lambda start, offsets, out: _match(tree, keys, start, offsets, out),
        )

    @property
    def n_bytes(self) -> int:
        """Bytes of the arrays."""
        tree = self._tree
        arrays = (tree.edges, tree.nodes, tree.levels, tree.pieces, *tree.ids, *tree.piece_cells)
        return self._known.n_bytes + sum(int(a.nbytes) for a in arrays)

    def _build(self) -> None:
        intervals = self._known.all()
        ends = intervals.highs[intervals.highs < _MAX_KEY] + 1
        edges = np.unique(np.concatenate((np.zeros(1, np.int64), intervals.lows, ends)))
        size = 1 << int(len(edges) - 1).bit_length()
        nodes = np.zeros((2 * size, 3), np.int64)
        n_cells = _count_ids(edges, nodes, intervals)
        levels = np.zeros(size, np.int64)
        spans = new_spans(np.int64, n_cells + 64)
        pieces = np.zeros((size, 3), np.int64)
        self._tree = Tree(edges, nodes, levels, pieces, spans, new_spans())
        self._n_intervals = self._n_built = len(intervals.ids)
        self._n_pieces = 0
        _fill(self._tree, intervals)


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _space(edges: np.ndarray, key: int) -> int:
    """Return the last edge that is not above a key; there is one."""
    base = 0
    n = len(edges)
    while n > 1:
        half = n >> 1
        base += half if edges[base + half] <= key else 0
        n -= half
    return base


@kernel
def _find_spaces(edges: np.ndarray, keys: np.ndarray, out: np.ndarray) -> None:
    """Do the same for several keys, step by step: memory answers all of them at once."""
    out[: len(keys)] = 0
    n = len(edges)
    while n > 1:
        half = n >> 1
        for k in range(len(keys)):
            out[k] += half if edges[out[k] + half] <= keys[k] else 0
        n -= half


@kernel
def _cover(size: int, first: int, stop: int, out: np.ndarray) -> int:
    """Write the nodes that make up the spaces first … stop; returns their number."""
    n = 0
    first += size
    stop += size
    while first < stop:
        if first & 1:
            out[n] = first
            n += 1
            first += 1
        if stop & 1:
            stop -= 1
            out[n] = stop
            n += 1
        first >>= 1
        stop >>= 1
    return n


@kernel
def _count_ids(edges: np.ndarray, nodes: np.ndarray, intervals: Intervals) -> int:
    """Count the ids of each node; returns the cells that they take."""
    lows, highs = intervals.lows, intervals.highs
    size = len(nodes) >> 1
    cover = np.empty(_MAX_COVER, np.int64)
    for i in range(len(lows)):
        n = _cover(size, _space(edges, lows[i]), _space(edges, highs[i]) + 1, cover)
        for j in range(n):
            nodes[cover[j], 1] += 1
    n_cells = 0
    for node in range(len(nodes)):
        if nodes[node, 1]:
            n_cells += span_capacity(nodes[node, 1])
    return n_cells


@kernel
def _fill(tree: Tree, intervals: Intervals) -> None:
    """Write the ids to their nodes, which have been counted; all bounds are edges."""
    edges, nodes, levels = tree.edges, tree.nodes, tree.levels
    ids, cells = tree.ids, tree.ids.cells
    size = len(nodes) >> 1
    above = np.zeros(len(nodes), np.int64)
    height = 0
    while 1 << height < size:
        height += 1
    level, first_below = height, 2
    for node in range(1, len(nodes)):
        if node == first_below:
            level -= 1
            first_below *= 2
        above[node] = above[node >> 1]
        if nodes[node, 1]:
            above[node] |= 1 << level
            nodes[node, 0] = take_span(ids, nodes[node, 1])
            nodes[node, 2] = span_capacity(nodes[node, 1])
            nodes[node, 1] = 0
    levels[:] = above[size:]
    cover = np.empty(_MAX_COVER, np.int64)
    for i in range(len(intervals.ids)):
        first, last = _space(edges, intervals.lows[i]), _space(edges, intervals.highs[i])
        n = _cover(size, first, last + 1, cover)
        for j in range(n):
            node = cover[j]
            cells[nodes[node, 0] + nodes[node, 1]] = intervals.ids[i]
            nodes[node, 1] += 1


@kernel
def _parts(edges: np.ndarray, low: int, high: int) -> tuple[int, int, int, int]:
    """Find the spaces first … stop that an interval covers as a whole.

    Also returns the two that it covers in part, or -1.
    """
    first, last = _space(edges, low), _space(edges, high)
    starts_whole = edges[first] == low
    next_edge = edges[last + 1] if last + 1 < len(edges) else 0
    stops_whole = next_edge - 1 == high if next_edge else high == _MAX_KEY
    if first == last:
        if starts_whole and stops_whole:
            return first, first + 1, -1, -1
        return 0, 0, first, -1
    left = -1 if starts_whole else first
    right = -1 if stops_whole else last
    return first + (left >= 0), last + 1 - (right >= 0), left, right


@kernel
def _append(spans: Spans, lists: np.ndarray, i: int, width: int) -> int:
    """Make list i one entry longer; returns where that entry is."""
    start, n, capacity = lists[i, 0], lists[i, 1], lists[i, 2]
    if n == capacity:
        wider = take_span(spans, max(2 * capacity, 1) * width)
        for k in range(n * width):
            spans.cells[wider + k] = spans.cells[start + k]
        if capacity:
            give_span(spans, start, capacity * width)
        start = wider
        lists[i, 0], lists[i, 2] = start, max(2 * capacity, 1)
    lists[i, 1] += 1
    return int(start + n * width)


@kernel
def _remove_id(tree: Tree, node: int, id_: int) -> None:
    """Remove an id from a node, which has it once at most.

    The intervals of a predicate do not overlap.
    """
    cells, nodes = tree.ids.cells, tree.nodes
    at = nodes[node, 0]
    while cells[at] != id_:
        at += 1
    nodes[node, 1] -= 1
    cells[at] = cells[nodes[node, 0] + nodes[node, 1]]


@kernel
def _remove_piece(tree: Tree, space: int, low: int, id_: int) -> None:
    """Several intervals of one predicate may be pieces of a space; they differ in their lows."""
    cells, pieces = tree.piece_cells.cells, tree.pieces
    at = pieces[space, 0]
    while cells[at] != low or cells[at + 2] != id_:
        at += 3
    pieces[space, 1] -= 1
    last = pieces[space, 0] + 3 * pieces[space, 1]
    for k in range(3):
        cells[at + k] = cells[last + k]


@kernel
def _insert(tree: Tree, new: Intervals, done: int) -> tuple[int, int, int, int]:
    """Insert intervals from `done` on.

    Returns how far it came, how many pieces it made, and the cells of both kinds that the next one
    needs.
    """
    edges, nodes, levels, pieces = tree.edges, tree.nodes, tree.levels, tree.pieces
    size = len(levels)
    cover = np.empty(_MAX_COVER, np.int64)
    n_pieces = 0
    for i in range(done, len(new.ids)):
        low, high, id_ = new.lows[i], new.highs[i], new.ids[i]
        first, stop, left, right = _parts(edges, low, high)
        n = _cover(size, first, stop, cover)
        n_cells = 0
        for j in range(n):
            if nodes[cover[j], 1] == nodes[cover[j], 2]:
                n_cells += 2 * nodes[cover[j], 2] + 1
        n_piece_cells = 0
        for space in (left, right):
            if space >= 0 and pieces[space, 1] == pieces[space, 2]:
                n_piece_cells += 4 * (2 * pieces[space, 2] + 1)
        if n_cells > spans_left(tree.ids) or n_piece_cells > spans_left(tree.piece_cells):
            return i, n_pieces, n_cells, n_piece_cells
        for j in range(n):
            node = cover[j]
            if nodes[node, 2] == 0:
                _mark_below(levels, node)
            tree.ids.cells[_append(tree.ids, nodes, node, 1)] = id_
        for space in (left, right):
            if space >= 0:
                levels[space] |= _HAS_PIECES
                at = _append(tree.piece_cells, pieces, space, 3)
                cells = tree.piece_cells.cells
                cells[at], cells[at + 1], cells[at + 2] = low, high, id_
                n_pieces += 1
    return len(new.ids), n_pieces, 0, 0


@kernel
def _mark_below(levels: np.ndarray, node: int) -> None:
    """Note in the spaces below that a node has ids for the first time since the tree was built."""
    level = 0
    first = node
    while first < len(levels):
        first *= 2
        level += 1
    first -= len(levels)
    for space in range(first, first + (1 << level)):
        levels[space] |= 1 << level


@kernel
def _delete(tree: Tree, gone: Intervals) -> int:
    """Return how many pieces are gone."""
    size = len(tree.levels)
    cover = np.empty(_MAX_COVER, np.int64)
    n_pieces = 0
    for i in range(len(gone.ids)):
        first, stop, left, right = _parts(tree.edges, gone.lows[i], gone.highs[i])
        n = _cover(size, first, stop, cover)
        for j in range(n):
            _remove_id(tree, cover[j], gone.ids[i])
        for space in (left, right):
            if space >= 0:
                n_pieces += 1
                _remove_piece(tree, space, gone.lows[i], gone.ids[i])
    return n_pieces


@kernel
def _match(
    tree: Tree, keys: np.ndarray, start: int, out_offsets: np.ndarray, out: np.ndarray
) -> int:
    edges, nodes, levels, pieces = tree.edges, tree.nodes, tree.levels, tree.pieces
    ids, cells = tree.ids.cells, tree.piece_cells.cells
    size = len(levels)
    n_out = out_offsets[start]
    spaces = np.empty(_AT_ONCE, np.int64)
    for k in range(start, len(keys)):
        if (k - start) % _AT_ONCE == 0:
            _find_spaces(edges, keys[k : k + _AT_ONCE], spaces)
        key = keys[k]
        space = spaces[(k - start) % _AT_ONCE]
        node = size + space
        left = levels[space]
        has_pieces = left >= _HAS_PIECES
        if has_pieces:
            left -= _HAS_PIECES
        while left:
            if left & 1:
                first, n = nodes[node, 0], nodes[node, 1]
                if n_out + n > len(out):
                    return k
                for i in range(n):
                    out[n_out + i] = ids[first + i]
                n_out += n
            left >>= 1
            node >>= 1
        if has_pieces:
            first, n = pieces[space, 0], pieces[space, 1]
            if n_out + n > len(out):
                return k
            for at in range(first, first + 3 * n, 3):
                if cells[at] <= key <= cells[at + 1]:
                    out[n_out] = cells[at + 2]
                    n_out += 1
        out_offsets[k + 1] = n_out
    return len(keys)
