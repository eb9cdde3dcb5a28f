"""Which predicates a clause is filed under: the most selective ones (PS-Tree, section 3.3).

Predicates of a clause are ranked by three figures, each for those equal in the ones before:

    events    how many past events satisfy it: counted in the sample of `Statistics` while building,
              in the event counters of the leaves that it covers afterwards; 0 without history
    class     its operator as far as its intervals tell: one point, points, a range with two ends, a
              range with one (`<`, `>`), several ranges (`not in`), all but one key (`!=`)
    width     how many keys it accepts

A range has one end if the other is that of a domain. Domains are all keys, 1 … MAX_KEY, and, in an
engine, those of one type, which it puts on one line: `x < 5` is the keys from the first number to
just before 5 (`encoding/dimensions.py`). Who turns keys into others, in which these ends cannot be
seen, says which predicates have one end (`one_sided`).

A predicate that accepts absence comes last and can never be an access predicate: an event without
the dimension satisfies it and would not find it. A leaf that a predicate cuts in two counts whole.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.cut_points import REGION_BITS
from matchmill.index.base import Statistics
from matchmill.kernels.jit import kernel
from matchmill.kernels.searches import first_above, first_at_least
from matchmill.papers.ps_tree.cuts import MAX_KEY
from matchmill.papers.ps_tree.forest import FIRST, N_EVENTS, NEXT, Forest, leaf_of_key

__all__ = [
    "Ranked",
    "count_history",
    "no_statistics",
    "one_sided_predicates",
    "rank_predicates",
    "ranked",
]

_SORTED_LENGTH = 64  # of longer clauses only the first few are ranked
_RANKED = 3
_REGION_MASK = (1 << REGION_BITS) - 1


class Ranked(NamedTuple):
    """Clauses, and their predicates by selectivity."""

    table: ConjunctionTable
    order: np.ndarray  # int64: predicates, clause by clause
    n_eligible: np.ndarray  # int64: so many of a clause do not accept absence


def ranked(
    table: ConjunctionTable,
    statistics: Statistics | None,
    forest: Forest,
    seen: np.ndarray,
    use_leaves: bool,
    one_sided: np.ndarray | None = None,
) -> Ranked:
    """Rank the predicates of each clause by how well they give access."""
    sides = one_sided_predicates(table) if one_sided is None else one_sided
    order = np.empty(table.n_predicates, np.int64)
    n_eligible = np.empty(table.n_clauses, np.int64)
    known = no_statistics() if statistics is None else statistics
    rank_predicates(table, known, sides, forest, seen, use_leaves, order, n_eligible)
    return Ranked(table, order, n_eligible)


def no_statistics() -> Statistics:
    """Return statistics of no events."""
    none = np.empty(0, np.int64)
    return Statistics(0, none, np.zeros(1, np.int64), none)


@kernel
def rank_predicates(
    table: ConjunctionTable,
    statistics: Statistics,
    one_sided: np.ndarray,
    forest: Forest,
    seen: np.ndarray,
    use_leaves: bool,
    out_order: np.ndarray,
    out_n_eligible: np.ndarray,
) -> None:
    """Orders the predicates of each clause; `out_n_eligible` of them do not accept absence."""
    offsets, lows, highs = table.interval_offsets, table.lows, table.highs
    length = 0
    for i in range(len(table.clause_ids)):
        length = max(length, int(table.clause_offsets[i + 1] - table.clause_offsets[i]))
    figures = np.zeros((length, 3), np.float64)
    for i in range(len(table.clause_ids)):
        first = int(table.clause_offsets[i])
        n = int(table.clause_offsets[i + 1]) - first
        n_eligible = 0
        for j in range(n):
            p = first + j
            a, b = int(offsets[p]), int(offsets[p + 1])
            out_order[p] = p
            kind, width = _operator(lows, highs, a, b, one_sided[p])
            figures[j, 1] = kind
            figures[j, 2] = width
            if a < b and lows[a] == 0:
                figures[j, 0] = np.inf
                continue
            n_eligible += 1
            if use_leaves:
                figures[j, 0] = _events_of_leaves(
                    forest, seen, table.dimensions[p], lows, highs, a, b
                )
            elif statistics.n_events > 0:
                figures[j, 0] = _events_of_sample(
                    statistics, table.dimensions[p], lows, highs, a, b
                )
            else:
                figures[j, 0] = 0.0
        out_n_eligible[i] = n_eligible
        _sort(figures, out_order, first, n)


@kernel
def _sort(figures: np.ndarray, order: np.ndarray, first: int, n: int) -> None:
    """By selection: clauses are short, and of long ones only the beginning matters."""
    for j in range(n if n <= _SORTED_LENGTH else _RANKED):
        best = j
        for k in range(j + 1, n):
            for c in range(3):
                if figures[k, c] != figures[best, c]:
                    if figures[k, c] < figures[best, c]:
                        best = k
                    break
        # The others keep their order, so that equal ones stay as the clause has them.
        p = order[first + best]
        e, o, w = figures[best, 0], figures[best, 1], figures[best, 2]
        for k in range(best, j, -1):
            order[first + k] = order[first + k - 1]
            for c in range(3):
                figures[k, c] = figures[k - 1, c]
        order[first + j] = p
        figures[j, 0] = e
        figures[j, 1] = o
        figures[j, 2] = w


@kernel
def _operator(
    lows: np.ndarray, highs: np.ndarray, a: int, b: int, is_one_sided: int
) -> tuple[int, float]:
    width = 0.0
    all_points = True
    for k in range(a, b):
        width += float(highs[k]) - float(lows[k]) + 1.0
        all_points = all_points and lows[k] == highs[k]
    n = b - a
    if all_points:
        return min(n, 2), width
    if n == 1:
        return (4 if is_one_sided else 3), width
    return (6 if n == 2 and lows[a + 1] - highs[a] == 2 else 5), width


def one_sided_predicates(table: ConjunctionTable) -> np.ndarray:
    """Tell for each predicate, as 0 or 1, whether it is one range with one end."""
    out = np.zeros(table.n_predicates, np.uint8)
    _find_one_sided(table.interval_offsets, table.lows, table.highs, out)
    return out


@kernel
def _find_one_sided(
    offsets: np.ndarray, lows: np.ndarray, highs: np.ndarray, out: np.ndarray
) -> None:
    for p in range(len(out)):
        a = int(offsets[p])
        if offsets[p + 1] - a == 1:
            low, high = lows[a], highs[a]
            starts_domain = low <= 1 or low & _REGION_MASK == 0
            ends_domain = high == MAX_KEY or (high + 1) & _REGION_MASK == 0
            out[p] = low < high and (starts_domain or ends_domain)


@kernel
def _events_of_sample(
    statistics: Statistics, dimension: int, lows: np.ndarray, highs: np.ndarray, a: int, b: int
) -> float:
    if dimension >= len(statistics.dimension_counts):
        return 0.0
    keys = statistics.sample_keys
    first = int(statistics.sample_offsets[dimension])
    end = int(statistics.sample_offsets[dimension + 1])
    count = float(statistics.dimension_counts[dimension])
    if first == end:
        return count
    n = 0
    for k in range(a, b):
        n += first_above(keys, highs[k], first, end) - first_at_least(keys, lows[k], first, end)
    return count * n / (end - first)


@kernel
def _events_of_leaves(
    forest: Forest,
    seen: np.ndarray,
    dimension: int,
    lows: np.ndarray,
    highs: np.ndarray,
    a: int,
    b: int,
) -> float:
    trees, nodes, children = forest.trees, forest.nodes.cells, forest.children.cells
    leaves = forest.leaves.cells
    n = 0
    if trees[dimension, 0] >= 0:
        for k in range(a, b):
            leaf = leaf_of_key(trees, nodes, children, dimension, lows[k])
            last = leaf_of_key(trees, nodes, children, dimension, highs[k])
            n += int(leaves[leaf, N_EVENTS] + seen[leaf])
            while leaf != last:
                leaf = int(leaves[leaf, NEXT])
                n += int(leaves[leaf, N_EVENTS] + seen[leaf])
    return float(n)


@kernel
def count_history(forest: Forest, statistics: Statistics) -> None:
    """Set the event counters of all leaves to what the statistics say."""
    trees, nodes, children = forest.trees, forest.nodes.cells, forest.children.cells
    leaves = forest.leaves.cells
    for tree in range(min(len(trees), len(statistics.dimension_counts))):
        if trees[tree, FIRST] < 0:
            continue
        first = int(statistics.sample_offsets[tree])
        end = int(statistics.sample_offsets[tree + 1])
        for k in range(first, end):
            leaf = leaf_of_key(trees, nodes, children, tree, statistics.sample_keys[k])
            leaves[leaf, N_EVENTS] += 1
        count = int(statistics.dimension_counts[tree])
        leaf = int(trees[tree, FIRST])
        while leaf >= 0:
            share = leaves[leaf, N_EVENTS] / (end - first) if end > first else 1.0
            leaves[leaf, N_EVENTS] = int(share * count)
            leaf = int(leaves[leaf, NEXT])
