"""From a key of a dimension to the clauses with an interval that holds it.

    space   keys that no interval of the dimension tells apart; edges[edge_offsets[d]] … ascend,
            each is the first key of a space
    node    each space, and 8 in a row have one above them, as have 8 of those, up to a single one:
            from node_offsets[d] on first the spaces, then the level above, …
    run     rows[run_offsets[r]] …      clauses; run n is of node n, runs after those are lists
            links[link_offsets[n]] …    the lists that node n shares with other nodes

An interval stands at the fewest nodes that together make it up: O(log n), however wide it is. A key
passes one node per level, and finds an interval at most once. So wide ranges over many cut points
take little memory, and a small domain is nearly a table from values to clauses.

Clauses with the same interval are a list that nodes link to. Where the interval stands at one node
or belongs to one clause, as most do, writing its clauses out takes no more memory and saves a jump.
Intervals are shared, not whole predicates: `x != 3` and `x > 3` have one in common, and a predicate
of several intervals needs nothing else, since a key is in one of them at most.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.kernels.csr import offsets_of, take_ranges
from matchmill.kernels.jit import kernel
from matchmill.kernels.searches import first_above
from matchmill.papers.common.clause_intervals import MAX_KEY, ClauseIntervals

__all__ = ["MAX_LEVELS", "KeyPostings", "build_key_postings", "find_nodes", "stored_intervals"]

MAX_LEVELS = 22  # 8 ** 21 spaces are more than there are keys

# Clauses are written out where that takes at most so many times the memory of a list. With 2, 4, 8
# a million clauses over 400 dimensions took 50, 58, 100 bytes each, and an event 455, 427, 376 µs.
_SLACK = 4


class KeyPostings(NamedTuple):
    """From keys to the rows of clauses."""

    edge_offsets: np.ndarray  # int64, one more than there are dimensions
    edges: np.ndarray  # int64
    node_offsets: np.ndarray  # int64, one more than there are dimensions
    run_offsets: np.ndarray  # int64, one more than there are nodes and lists
    link_offsets: np.ndarray  # int64, one more than there are nodes
    links: np.ndarray  # int32
    rows: np.ndarray  # uint32: Numba looks for negative indices among signed ones


# -- building -------------------------------------------------------------------------------------


def build_key_postings(intervals: ClauseIntervals) -> KeyPostings:
    """Build the postings of intervals."""
    distinct, ids, rows = _find_distinct(intervals)
    edge_offsets, edges = _build_edges(distinct)
    node_offsets = offsets_of(_count_nodes(np.diff(edge_offsets)))
    n_nodes = int(node_offsets[-1])
    cover_offsets, cover = _build_cover(distinct, edge_offsets, edges, node_offsets)

    n_covering = np.diff(cover_offsets)
    n_rows = np.bincount(ids, minlength=len(n_covering))
    is_list = n_covering * n_rows > _SLACK * (n_covering + n_rows + 2)
    is_link = np.repeat(is_list, n_covering)
    lists = np.arange(n_nodes, n_nodes + int(is_list.sum()))
    links = np.repeat(lists, n_covering[is_list])
    link_nodes = cover[is_link]

    # The runs to write a clause to: those of all nodes that cover its interval, or of its list.
    is_run, runs = ~is_link, cover
    is_run[cover_offsets[:-1][is_list]] = True
    runs[cover_offsets[:-1][is_list]] = lists
    runs = runs[is_run]
    n_runs = np.where(is_list, 1, n_covering)
    lengths = np.bincount(runs, np.repeat(n_rows, n_runs), n_nodes + len(lists))
    run_offsets = offsets_of(lengths.astype(np.int64))
    out_rows = np.empty(run_offsets[-1], np.uint32)
    _fill_runs(ids, rows, offsets_of(n_runs), runs, run_offsets[:-1].copy(), out_rows)
    return KeyPostings(
        edge_offsets,
        edges,
        node_offsets,
        run_offsets,
        offsets_of(np.bincount(link_nodes, minlength=n_nodes)),
        links[np.argsort(link_nodes, kind="stable")].astype(np.int32),
        out_rows,
    )


def _find_distinct(intervals: ClauseIntervals) -> tuple[ClauseIntervals, np.ndarray, np.ndarray]:
    """Find distinct intervals, by dimension, each with a row that has it.

    Also returns the id and the row of each interval, by dimension.
    """
    counts = np.bincount(intervals.dimensions)
    offsets = offsets_of(counts)
    by_dimension = ClauseIntervals(*(np.empty_like(a) for a in intervals))
    _sort_by_dimension(intervals, offsets[:-1].copy(), by_dimension)
    ids = np.empty(len(intervals.rows), np.int32)
    firsts = np.empty(len(intervals.rows), np.int64)
    slots = np.empty(2 << int(counts.max(initial=1)).bit_length(), np.int32)
    n_distinct = _number_distinct(by_dimension, offsets, slots, ids, firsts)
    return by_dimension.take(firsts[:n_distinct]), ids, by_dimension.rows


def _build_edges(distinct: ClauseIntervals) -> tuple[np.ndarray, np.ndarray]:
    """Return the first keys of the spaces of each dimension, ascending."""
    n_dimensions = int(distinct.dimensions[-1]) + 1 if len(distinct.dimensions) else 0
    is_bounded = distinct.highs < MAX_KEY
    keys = np.concatenate((distinct.lows, distinct.highs[is_bounded] + 1))
    values = np.unique(keys)
    dimensions = np.concatenate((distinct.dimensions, distinct.dimensions[is_bounded]))
    # All dimensions on one line.
    places = dimensions.astype(np.int64) * len(values) + np.searchsorted(values, keys)
    places = np.unique(places)
    firsts = np.arange(n_dimensions + 1) * len(values)
    return np.searchsorted(places, firsts).astype(np.int64), values[places % max(len(values), 1)]


def _count_nodes(n_spaces: np.ndarray) -> np.ndarray:
    """How many nodes dimensions with so many spaces have."""
    level = total = n_spaces
    while (level > 1).any():
        level = np.where(level > 1, (level + 7) >> 3, 0)
        total = total + level
    return total


def _build_cover(
    distinct: ClauseIntervals, edge_offsets: np.ndarray, edges: np.ndarray, node_offsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes at which each interval stands."""
    offsets = np.zeros(len(distinct.rows) + 1, np.int64)
    cover = np.empty(0, np.int64)
    n = _cover_intervals(distinct, edge_offsets, edges, node_offsets, offsets, cover)
    cover = np.empty(n, np.int64)
    _cover_intervals(distinct, edge_offsets, edges, node_offsets, offsets, cover)
    return offsets, cover


# -- and back -------------------------------------------------------------------------------------


def stored_intervals(postings: KeyPostings) -> ClauseIntervals:
    """Return the intervals that postings were built from, by clause, dimension and key.

    Some are in pieces that touch.
    """
    dimensions, lows, highs = _bounds_of_runs(postings)
    order = np.lexsort((lows, dimensions))
    offsets, at = take_ranges(postings.run_offsets, order)
    runs = np.repeat(order, np.diff(offsets))
    rows = postings.rows[at].astype(np.int32)
    by_row = np.argsort(rows, kind="stable")
    runs = runs[by_row]
    return ClauseIntervals(rows[by_row], dimensions[runs], lows[runs], highs[runs])


def _bounds_of_runs(postings: KeyPostings) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the dimension and the first and last key of each node and list."""
    n_nodes = len(postings.link_offsets) - 1
    n_runs = len(postings.run_offsets) - 1
    n_dimensions = len(postings.edge_offsets) - 1
    dimensions = np.zeros(n_runs, np.int32)
    lows, highs = np.full(n_runs, MAX_KEY), np.zeros(n_runs, np.int64)
    dimensions[:n_nodes] = np.repeat(np.arange(n_dimensions), np.diff(postings.node_offsets))
    n_spaces = np.diff(postings.edge_offsets)
    level, n, width = postings.node_offsets[:-1], n_spaces, 1
    while n.any():
        owners = np.repeat(np.arange(n_dimensions), n)
        within = np.arange(len(owners)) - np.repeat(np.cumsum(n) - n, n)
        nodes = level[owners] + within
        first_edges = postings.edge_offsets[owners]
        stops = (within + 1) * width
        is_last = stops >= n_spaces[owners]
        lows[nodes] = postings.edges[first_edges + within * width]
        highs[nodes] = MAX_KEY
        highs[nodes[~is_last]] = postings.edges[(first_edges + stops)[~is_last]] - 1
        level, n, width = level + n, np.where(n > 1, (n + 7) >> 3, 0), 8 * width
    # A list stands at the nodes that make up its one interval.
    linking = np.repeat(np.arange(n_nodes), np.diff(postings.link_offsets))
    dimensions[postings.links] = dimensions[linking]
    np.minimum.at(lows, postings.links, lows[linking])
    np.maximum.at(highs, postings.links, highs[linking])
    return dimensions, lows, highs


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _sort_by_dimension(
    intervals: ClauseIntervals, cursors: np.ndarray, out: ClauseIntervals
) -> None:
    for k in range(len(intervals.rows)):
        dimension = intervals.dimensions[k]
        at = cursors[dimension]
        cursors[dimension] += 1
        out.rows[at] = intervals.rows[k]
        out.dimensions[at] = dimension
        out.lows[at] = intervals.lows[k]
        out.highs[at] = intervals.highs[k]


@kernel
def _hash(low: int, high: int) -> int:
    """Nothing overflows, with or without compilation."""
    a = (low ^ (low >> 31)) & 0x7FFFFFFF
    b = (high ^ (high >> 31)) & 0x7FFFFFFF
    h = a * 0x2545F491 + b * 0x1B873595
    h = ((h ^ (h >> 31)) & 0x7FFFFFFF) * 0x5BD1E995
    return int(h ^ (h >> 31))


@kernel
def _number_distinct(
    intervals: ClauseIntervals,
    offsets: np.ndarray,
    slots: np.ndarray,
    out_ids: np.ndarray,
    out_firsts: np.ndarray,
) -> int:
    """One dimension after the other, each with a hash table that is no larger than it needs."""
    n_distinct = 0
    for dimension in range(len(offsets) - 1):
        start, stop = offsets[dimension], offsets[dimension + 1]
        n_slots = 2
        while n_slots < 2 * (stop - start):
            n_slots <<= 1
        slots[:n_slots] = -1
        for k in range(start, stop):
            low, high = intervals.lows[k], intervals.highs[k]
            slot = _hash(low, high) & (n_slots - 1)
            while slots[slot] >= 0:
                first = out_firsts[slots[slot]]
                if intervals.lows[first] == low and intervals.highs[first] == high:
                    break
                slot = (slot + 1) & (n_slots - 1)
            if slots[slot] < 0:
                slots[slot] = n_distinct
                out_firsts[n_distinct] = k
                n_distinct += 1
            out_ids[k] = slots[slot]
    return n_distinct


@kernel
def find_nodes(postings: KeyPostings, dimension: int, key: int, out: np.ndarray) -> int:
    """Write the nodes that a key passes; returns their number, at most MAX_LEVELS."""
    if dimension >= len(postings.edge_offsets) - 1:
        return 0
    first, stop = postings.edge_offsets[dimension], postings.edge_offsets[dimension + 1]
    at = (first_above(postings.edges, key, first, stop) - first) - 1
    if at < 0:
        return 0
    level, n = postings.node_offsets[dimension], stop - first
    out[0] = level + at
    n_out = 1
    while n > 1:
        level += n
        n = (n + 7) >> 3
        at >>= 3
        out[n_out] = level + at
        n_out += 1
    return n_out


@kernel
def _cover_spaces(level: int, n: int, first: int, stop: int, out: np.ndarray, n_out: int) -> int:
    """Append the nodes that make up the spaces first … stop of n; `level` is the first node."""
    while True:
        while first < stop and (n == 1 or first & 7):
            if n_out < len(out):
                out[n_out] = level + first
            n_out += 1
            first += 1
        # The last node of a level is complete even if it stands for less than 8.
        while first < stop and stop != n and stop & 7:
            stop -= 1
            if n_out < len(out):
                out[n_out] = level + stop
            n_out += 1
        if first == stop:
            return n_out
        level += n
        n = (n + 7) >> 3
        first >>= 3
        stop = (stop + 7) >> 3


@kernel
def _cover_intervals(
    intervals: ClauseIntervals,
    edge_offsets: np.ndarray,
    edges: np.ndarray,
    node_offsets: np.ndarray,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> int:
    """Count the nodes of all intervals, and write those for which there is room."""
    n_out = 0
    for k in range(len(intervals.rows)):
        dimension = intervals.dimensions[k]
        e, f = edge_offsets[dimension], edge_offsets[dimension + 1]
        first = (first_above(edges, intervals.lows[k], e, f) - e) - 1
        stop = first_above(edges, intervals.highs[k], e, f) - e
        n_out = _cover_spaces(node_offsets[dimension], f - e, first, stop, out, n_out)
        out_offsets[k + 1] = n_out
    return n_out


@kernel
def _fill_runs(
    ids: np.ndarray,
    rows: np.ndarray,
    offsets: np.ndarray,
    runs: np.ndarray,
    cursors: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write each row to the runs of its interval."""
    for i in range(len(ids)):
        for k in range(offsets[ids[i]], offsets[ids[i] + 1]):
            out[cursors[runs[k]]] = rows[i]
            cursors[runs[k]] += 1
