"""Interval tree: a search tree by low, in which each node knows the largest high below it.

    cells[n]    left, right (nodes or -1), low, high, reach (the largest high in the subtree), id

Nodes are ordered by (low, id), which no two share, as the intervals of a predicate do not overlap.
A key goes left as long as the left subtree reaches it, and right as long as lows are not above it:
O(log n) nodes for each interval found.

The tree is kept in balance as a scapegoat tree (Galperin and Rivest): nothing but the links and
`reach` is stored for it. A new node deeper than log n to the base 3/2 has an ancestor that leans to
one side; the subtree of the lowest such one is linked again, perfectly balanced. A deleted node
stays for the way it shows, with high -1, until there are as many of them as of others; then, and
when many intervals come at once, the whole tree is built again.

PS-Tree compares with such a tree in section 7.5; it does not say which of its forms.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.predicate_index.base import Predicates, Satisfied
from matchmill.papers.predicate_index.interval_table import Intervals, KnownIntervals, collect

__all__ = ["IntervalTree"]

_LEFT, _RIGHT, _LOW, _HIGH, _REACH, _ID = range(6)
_ROOT, _N_NODES, _N_DEAD = range(3)
_MAX_DEPTH = 128  # log n to the base 3/2 is below 110 for all n that fit into memory


class IntervalTree:
    """A balanced tree of intervals."""

    name: ClassVar[str] = "interval_tree"

    def __init__(self) -> None:
        self._known = KnownIntervals()
        self._cells: np.ndarray
        self._state: np.ndarray
        self._build()

    @classmethod
    def build(cls, predicates: Predicates) -> IntervalTree:
        """Build the index from predicates."""
        tree = cls()
        tree.insert(predicates)
        return tree

    def insert(self, predicates: Predicates) -> None:
        """Insert predicates."""
        new = self._known.add(predicates)
        n_nodes, n_new = int(self._state[_N_NODES]), len(new.ids)
        if 4 * n_new > n_nodes:
            self._build()
            return
        if n_nodes + n_new > len(self._cells):
            wider = np.empty((n_nodes + n_nodes // 2, 6), np.int64)
            wider[:n_nodes] = self._cells[:n_nodes]
            self._cells = wider
        _insert(self._cells, self._state, new)

    def delete(self, ids: np.ndarray) -> None:
        """Delete predicates by their ids."""
        gone = self._known.remove(ids)
        _delete(self._cells, self._state, gone)
        if 2 * self._state[_N_DEAD] > self._state[_N_NODES]:
            self._build()

    def match(self, keys: np.ndarray) -> Satisfied:
        """Find the predicates that each key satisfies."""
        cells, state = self._cells, self._state
        return collect(
            len(keys),
            int(state[_N_NODES]),
            lambda start, offsets, out: _match(cells, state[0], keys, start, offsets, out),
        )

    @property
    def n_bytes(self) -> int:
        """Bytes of the arrays."""
        return self._known.n_bytes + self._cells.nbytes

    def _build(self) -> None:
        intervals = self._known.all()
        n = len(intervals.ids)
        order = np.lexsort((intervals.ids, intervals.lows))
        self._cells = np.empty((n, 6), np.int64)
        for column, values in ((_LOW, intervals.lows), (_HIGH, intervals.highs)):
            self._cells[:, column] = values[order]
        self._cells[:, _ID] = intervals.ids[order]
        self._state = np.array([-1, n, 0])
        self._state[_ROOT] = _link(self._cells, np.arange(n))


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _refresh(cells: np.ndarray, node: int) -> None:
    reach = cells[node, 3]
    for child in (cells[node, 0], cells[node, 1]):
        if child >= 0:
            reach = max(reach, cells[child, 4])
    cells[node, 4] = reach


@kernel
def _link(cells: np.ndarray, nodes: np.ndarray) -> int:
    """Make a balanced tree of nodes, given in their order; returns its root."""
    if len(nodes) == 0:
        return -1
    # Each part of `nodes` is (first, stop, parent, side); parents come out before children.
    parts = np.empty((_MAX_DEPTH, 4), np.int64)
    parts[0, 0], parts[0, 1], parts[0, 2], parts[0, 3] = 0, len(nodes), -1, 0
    n_parts = 1
    linked = np.empty(len(nodes), np.int64)
    n_linked = 0
    while n_parts:
        n_parts -= 1
        first, stop = parts[n_parts, 0], parts[n_parts, 1]
        parent, side = parts[n_parts, 2], parts[n_parts, 3]
        middle = (first + stop) >> 1
        node = nodes[middle]
        cells[node, 0] = cells[node, 1] = -1
        if parent >= 0:
            cells[parent, side] = node
        linked[n_linked] = node
        n_linked += 1
        for half in range(2):
            a, b = (first, middle) if half == 0 else (middle + 1, stop)
            if a < b:
                parts[n_parts, 0], parts[n_parts, 1] = a, b
                parts[n_parts, 2], parts[n_parts, 3] = node, half
                n_parts += 1
    for i in range(len(linked) - 1, -1, -1):
        _refresh(cells, linked[i])
    return int(linked[0])


@kernel
def _in_order(cells: np.ndarray, root: int, out: np.ndarray) -> int:
    """Write the nodes of a subtree in their order, as many as there is room for.

    Returns their number.
    """
    way = np.empty(_MAX_DEPTH, np.int64)
    depth = n = 0
    node = root
    while node >= 0 or depth:
        while node >= 0:
            way[depth] = node
            depth += 1
            node = cells[node, 0]
        depth -= 1
        if n < len(out):
            out[n] = way[depth]
        n += 1
        node = cells[way[depth], 1]
    return n


@kernel
def _find_way(cells: np.ndarray, root: int, low: int, id_: int, way: np.ndarray) -> int:
    """Write the nodes from the root to (low, id), or to where it would be; returns their number."""
    depth = 0
    node = root
    while node >= 0:
        way[depth] = node
        depth += 1
        if cells[node, 2] == low and cells[node, 5] == id_:
            break
        is_right = cells[node, 2] < low or (cells[node, 2] == low and cells[node, 5] < id_)
        node = cells[node, 1] if is_right else cells[node, 0]
    return depth


@kernel
def _is_there(cells: np.ndarray, way: np.ndarray, depth: int, low: int, id_: int) -> bool:
    """Whether a way ends at what was looked for."""
    return bool(depth > 0 and cells[way[depth - 1], 2] == low and cells[way[depth - 1], 5] == id_)


@kernel
def _rebalance(cells: np.ndarray, state: np.ndarray, way: np.ndarray, depth: int) -> None:
    """Balance the lowest subtree on a way that leans; there is one if the way is too deep."""
    none = np.empty(0, np.int64)
    size = 1
    for d in range(depth - 2, -1, -1):
        whole = _in_order(cells, way[d], none)
        if 3 * size > 2 * whole or d == 0:
            nodes = np.empty(whole, np.int64)
            _in_order(cells, way[d], nodes)
            top = _link(cells, nodes)
            if d == 0:
                state[0] = top
            else:
                above = way[d - 1]
                cells[above, 0 if cells[above, 0] == way[d] else 1] = top
            return
        size = whole


@kernel
def _insert(cells: np.ndarray, state: np.ndarray, new: Intervals) -> None:
    """There is room for all. The tree is not empty."""
    ids, lows, highs = new.ids, new.lows, new.highs
    way = np.empty(_MAX_DEPTH, np.int64)
    for i in range(len(ids)):
        low, high, id_ = lows[i], highs[i], ids[i]
        depth = _find_way(cells, state[0], low, id_, way)
        for d in range(depth):
            cells[way[d], 4] = max(cells[way[d], 4], high)
        last = way[depth - 1]
        if _is_there(cells, way, depth, low, id_):  # it was deleted, and comes back
            cells[last, 3] = high
            state[2] -= 1
            continue
        node = state[1]
        state[1] += 1
        cells[node, 0] = cells[node, 1] = -1
        cells[node, 2], cells[node, 3], cells[node, 4], cells[node, 5] = low, high, high, id_
        is_right = cells[last, 2] < low or (cells[last, 2] == low and cells[last, 5] < id_)
        cells[last, 1 if is_right else 0] = node
        way[depth] = node
        # Depth of the new node: `depth` steps below the root.
        if depth > np.log(state[1]) / np.log(1.5):
            _rebalance(cells, state, way, depth + 1)


@kernel
def _delete(cells: np.ndarray, state: np.ndarray, gone: Intervals) -> None:
    ids, lows = gone.ids, gone.lows
    way = np.empty(_MAX_DEPTH, np.int64)
    for i in range(len(ids)):
        depth = _find_way(cells, state[0], lows[i], ids[i], way)
        cells[way[depth - 1], 3] = -1
        state[2] += 1
        for d in range(depth - 1, -1, -1):
            _refresh(cells, way[d])


@kernel
def _match(
    cells: np.ndarray,
    root: int,
    keys: np.ndarray,
    start: int,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> int:
    later = np.empty(_MAX_DEPTH, np.int64)  # right subtrees that are still to be looked at
    n_out = out_offsets[start]
    for k in range(start, len(keys)):
        key = keys[k]
        n_later = 0
        node = root
        while True:
            if node < 0 or cells[node, 4] < key:
                if n_later == 0:
                    break
                n_later -= 1
                node = later[n_later]
                continue
            if cells[node, 2] <= key:
                if cells[node, 3] >= key:
                    if n_out == len(out):
                        return k
                    out[n_out] = cells[node, 5]
                    n_out += 1
                if cells[node, 1] >= 0:
                    later[n_later] = cells[node, 1]
                    n_later += 1
            node = cells[node, 0]
        out_offsets[k + 1] = n_out
    return len(keys)
