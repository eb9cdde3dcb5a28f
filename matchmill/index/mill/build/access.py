"""Through which predicate each clause is reached, and the slots under which it is filed.

    slot               one place to file clauses under; an event visits some slots
    node slots         dimension d, level l: one slot for each 2**l neighbouring codes; level 0
                       are the codes themselves (`cells`)
    pair slots         one for each two codes of some two dimensions (`pair_access.py`)
    group slots        one for each shared predicate
    the last slot      visited by every event

An event visits, on each dimension it has, the nodes of its code on all levels in use and the groups
of the shared predicates that hold. A clause is filed under all nodes that cover its access
predicate: its own points if there are few, else at most two nodes for a range and eight for a set,
which cover more than the predicate. Code 0 (also: absence) is visited on level 0 only, so a
predicate that accepts it is always filed under that cell too.

The cost of an access predicate is the chance of a visit times (1 + visit / clauses under the slot):
a visit costs as much as checking 75 clauses.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.index.mill.build.pair_access import Pairs, choose_pairs
from matchmill.index.mill.build.shared_predicates import SharedPredicates
from matchmill.index.mill.words import node_level, node_of, node_position
from matchmill.index.predicate_codes import Dictionary
from matchmill.kernels.jit import int64, kernel
from matchmill.kernels.threads import on_ranges, split_evenly

__all__ = ["AccessPlan", "choose_access", "cover_of", "node_place"]

NODES, GROUP = 0, 1
MOST_NODES = 9  # eight of a set, and the cell of absence
_RANGE_NODES, _SET_NODES = 2, 8
_VISIT = 75.0
_ROUNDS = 2
_EXTRA_NODE = 0.15  # what an additional entry costs in memory, as a share


class AccessPlan(NamedTuple):
    """Where each clause is filed, and all slots."""

    access: np.ndarray  # int32, one per clause: its distinct access predicate, -1 for none
    second: np.ndarray  # int32, one per clause: the other one of a pair, else -1
    pairs: Pairs
    pair_start: int
    kinds: np.ndarray  # uint8, one per distinct predicate: NODES or GROUP
    levels: np.ndarray  # uint8, one per distinct predicate: the level of its nodes
    node_starts: np.ndarray  # int64, one per dimension: its first slot
    used_levels: np.ndarray  # int64, one per dimension: bit l for level l; 0: no slots
    group_start: int
    n_slots: int


class _Search(NamedTuple):
    """What is known while access predicates are chosen; arrays have one per distinct predicate."""

    node_starts: np.ndarray  # int64, one per dimension: its nodes, if all levels were in use
    levels: np.ndarray  # uint8
    kinds: np.ndarray  # uint8: the cheaper way to file under it
    costs: np.ndarray  # float32
    sizes: np.ndarray  # float32, one per node: clauses filed there, if all use nodes
    mass_sums: np.ndarray  # float64: sums of the masses of all codes before


def choose_access(
    table: ConjunctionTable,
    dictionary: Dictionary,
    shared: SharedPredicates,
    masses: np.ndarray,
    chances: np.ndarray,
) -> AccessPlan:
    """Choose the access predicate of each clause, and number all slots."""
    n_distinct = dictionary.n_distinct
    access = np.empty(table.n_clauses, np.int32)
    mean_length = max(1.0, table.n_predicates / max(1, table.n_clauses))
    counts = dictionary.uses / mean_length  # first guess at how many are reached by each
    search = _start_search(dictionary, masses)
    for _ in range(_ROUNDS):
        _count_clauses(dictionary, counts, search)
        on_ranges(
            partial(_find_costs, dictionary, shared.numbers, chances, counts, search),
            split_evenly(n_distinct),
        )
        on_ranges(
            lambda start, stop: _choose(
                table.clause_offsets[start : stop + 1],
                dictionary.ids,
                search.costs,
                access[start:stop],
            ),
            split_evenly(table.n_clauses),
        )
        counts = _counted(access, n_distinct)

    pairs = choose_pairs(table, dictionary, masses, chances, search.costs, _VISIT)
    second = np.full(table.n_clauses, -1, np.int32)
    if len(pairs.first):
        _file_under_pairs(table, dictionary.ids, pairs, access, second)
        counts = _counted(access[second < 0], n_distinct)
    used_levels, n_nodes = _used_nodes(dictionary, counts, search)
    pair_start = int(n_nodes.sum())
    group_start = pair_start + pairs.n_cells
    return AccessPlan(
        access,
        second,
        pairs,
        pair_start,
        search.kinds,
        search.levels,
        np.cumsum(n_nodes) - n_nodes,
        used_levels,
        group_start,
        group_start + shared.n_shared + 1,
    )


def _start_search(dictionary: Dictionary, masses: np.ndarray) -> _Search:
    n_distinct = dictionary.n_distinct
    levels = np.zeros(n_distinct, np.uint8)
    on_ranges(
        lambda start, stop: _find_levels(
            dictionary.interval_offsets[start : stop + 1],
            dictionary.lows,
            dictionary.highs,
            levels[start:stop],
        ),
        split_evenly(n_distinct),
    )
    node_starts = _all_node_starts(dictionary, levels)
    return _Search(
        node_starts,
        levels,
        np.zeros(n_distinct, np.uint8),
        np.empty(n_distinct, np.float32),
        np.empty(node_starts[-1], np.float32),
        np.concatenate((np.zeros(1), np.cumsum(masses))),
    )


def _used_nodes(
    dictionary: Dictionary, counts: np.ndarray, search: _Search
) -> tuple[np.ndarray, np.ndarray]:
    """Return the levels in use of each dimension as bits, and the number of its nodes."""
    used_levels = np.zeros(dictionary.n_dimensions, np.int64)
    by_nodes = np.flatnonzero((counts > 0) & (search.kinds == NODES))
    np.bitwise_or.at(
        used_levels,
        dictionary.dimensions[by_nodes],
        (int64(1) << search.levels[by_nodes].astype(np.int64)) | 1,
    )
    n_nodes = np.zeros(dictionary.n_dimensions, np.int64)
    n_codes = np.diff(dictionary.edge_offsets) + 1
    for level in range(int(used_levels.max(initial=0)).bit_length()):
        reaches = used_levels >> level > 0
        n_nodes[reaches] += ((n_codes[reaches] - 1) >> level) + 1
    return used_levels, n_nodes


def _counted(access: np.ndarray, n_distinct: int) -> np.ndarray:
    """Count the clauses that are reached through each predicate."""
    return np.bincount(access + 1, minlength=n_distinct + 1)[1:].astype(np.float64)


@kernel
def _file_under_pairs(
    table: ConjunctionTable,
    ids: np.ndarray,
    pairs: Pairs,
    out_access: np.ndarray,
    out_second: np.ndarray,
) -> None:
    clause_offsets, dimensions = table.clause_offsets, table.dimensions
    for i in range(len(out_access)):
        pair = pairs.of_clause[i]
        if pair >= 0:
            for p in range(clause_offsets[i], clause_offsets[i + 1]):
                if dimensions[p] == pairs.first[pair]:
                    out_access[i] = ids[p]
                elif dimensions[p] == pairs.second[pair]:
                    out_second[i] = ids[p]


@kernel
def _count_nodes(
    lows: np.ndarray, highs: np.ndarray, start: int, stop: int, level: int, most: int
) -> int:
    """Count the nodes of a level that cover some intervals beyond code 0; stop beyond `most`."""
    n = 0
    last = int64(-1)
    for k in range(start, stop):
        low, high = max(int64(1), int64(lows[k])) >> level, int64(highs[k]) >> level
        if low == last:
            low += 1
        if high >= low:
            n += high - low + 1
            last = high
        if n > most:
            break
    return n


@kernel
def _find_levels(
    interval_offsets: np.ndarray, lows: np.ndarray, highs: np.ndarray, out_levels: np.ndarray
) -> None:
    for q in range(len(out_levels)):
        start, stop = interval_offsets[q], interval_offsets[q + 1]
        most = int64(_RANGE_NODES if stop - start == 1 else _SET_NODES)
        level = int64(0)
        while _count_nodes(lows, highs, start, stop, level, most) > most:
            level += 1
        out_levels[q] = level


@kernel
def cover_of(
    interval_offsets: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    q: int,
    level: int,
    out: np.ndarray,
) -> int:
    """Write the nodes (`words.py`) under which a predicate is filed; return how many."""
    n = 0
    last = int64(-1)
    for k in range(interval_offsets[q], interval_offsets[q + 1]):
        if lows[k] == 0:
            out[n] = 0
            n += 1
        low, high = max(int64(1), int64(lows[k])) >> level, int64(highs[k]) >> level
        if low == last:
            low += 1
        for place in range(low, high + 1):
            out[n] = node_of(level, place)
            n += 1
            last = place
    return n


def _all_node_starts(dictionary: Dictionary, levels: np.ndarray) -> np.ndarray:
    """Return where the nodes of each dimension would start if all levels were used."""
    n_codes = np.diff(dictionary.edge_offsets) + 1
    n_nodes = np.zeros(len(n_codes) + 1, np.int64)
    for level in range(int(levels.max(initial=0)) + 1):
        n_nodes[1:] += ((n_codes - 1) >> level) + 1
    return np.cumsum(n_nodes)


@kernel
def node_place(n_codes: int, node: int) -> int:
    """Return the place of a node (`words.py`) among all those of its dimension."""
    at = node_position(node)
    for level in range(node_level(node)):
        at += ((n_codes - 1) >> level) + 1
    return int(at)


@kernel
def _count_clauses(dictionary: Dictionary, counts: np.ndarray, search: _Search) -> None:
    """Count the clauses that would be filed under each node.

    `counts` says how many are reached by each predicate.
    """
    interval_offsets, lows, highs = (
        dictionary.interval_offsets, dictionary.lows, dictionary.highs,
    )  # fmt: skip
    dimensions, edge_offsets = dictionary.dimensions, dictionary.edge_offsets
    node_starts, levels, kinds = search.node_starts, search.levels, search.kinds
    out_sizes = search.sizes
    nodes = np.empty(MOST_NODES, np.int64)
    for node in range(len(out_sizes)):
        out_sizes[node] = 0
    for q in range(len(dimensions)):
        if kinds[q] == NODES and counts[q] > 0:
            d = int64(dimensions[q])
            n_codes = edge_offsets[d + 1] - edge_offsets[d] + 1
            for i in range(cover_of(interval_offsets, lows, highs, q, int64(levels[q]), nodes)):
                out_sizes[node_starts[d] + node_place(n_codes, nodes[i])] += counts[q]


@kernel
def _find_costs(
    dictionary: Dictionary,
    shared: np.ndarray,
    chances: np.ndarray,
    counts: np.ndarray,
    search: _Search,
    first: int,
    last: int,
) -> None:
    """Find the costs of access through some predicates, and the cheaper way to file under each."""
    interval_offsets, lows, highs = (
        dictionary.interval_offsets, dictionary.lows, dictionary.highs,
    )  # fmt: skip
    dimensions, edge_offsets = dictionary.dimensions, dictionary.edge_offsets
    node_starts, levels, sizes, sums = (
        search.node_starts, search.levels, search.sizes, search.mass_sums,
    )  # fmt: skip
    out_kinds, out_costs = search.kinds, search.costs
    nodes = np.empty(MOST_NODES, np.int64)
    for q in range(first, last):
        d = int64(dimensions[q])
        start = edge_offsets[d] + d
        n_codes = edge_offsets[d + 1] - edge_offsets[d] + 1
        level = int64(levels[q])
        n = cover_of(interval_offsets, lows, highs, q, level, nodes)
        cost = 0.0
        for i in range(n):
            place, own_level = node_position(nodes[i]), node_level(nodes[i])
            low, high = place << own_level, min(n_codes, (place + 1) << own_level)
            size = sizes[node_starts[d] + node_place(n_codes, nodes[i])]
            cost += (sums[start + high] - sums[start + low]) * (1.0 + _VISIT / (size + 1.0))
        cost *= 1.0 + _EXTRA_NODE * (n - 1)
        out_kinds[q] = NODES
        if shared[q] >= 0 and (level > 0 or n > 1):
            as_group = chances[q] * (1.0 + _VISIT / (counts[q] + 1.0))
            if as_group < cost:
                cost = as_group
                out_kinds[q] = GROUP
        out_costs[q] = cost


@kernel
def _choose(
    clause_offsets: np.ndarray, ids: np.ndarray, costs: np.ndarray, out_access: np.ndarray
) -> None:
    for i in range(len(out_access)):
        best = int64(-1)
        least = np.inf
        for p in range(clause_offsets[i], clause_offsets[i + 1]):
            if costs[ids[p]] < least:
                least = costs[ids[p]]
                best = int64(ids[p])
        out_access[i] = best
