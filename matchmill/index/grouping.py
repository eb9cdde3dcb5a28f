"""Which clauses go to which structure.

Clauses with the same dimensions are a group. For each large group, and for all other clauses
together, the cost per event is estimated in every structure (`cost_model.py`). What costs less than
mill by a clear margin is taken. A single event pays for each structure that it visits. So there is
one mill and one index of bitmaps, and trees are given up for bitmaps if these are cheaper together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable, take_clauses
from matchmill.index.base import Statistics
from matchmill.index.cost_model import Costs, estimated_costs, estimated_shares

__all__ = ["BITMAPS", "MILL", "TREE", "Group", "find_groups"]

MILL, TREE, BITMAPS = Costs._fields

_FEWEST = 256  # clauses of a structure other than mill
_MOST_DIMENSIONS = 8  # of a tree
_MOST_SLOTS = 128  # dimensions with bitmaps
_SLOTS_SHARE = 0.95  # of the predicates, on those
_MOST_GROUPS = 16
_SAMPLE = 2048  # clauses that groups are looked for in
_LEAST_SHARE = 1 / 50  # of the clauses, for a group
_ESTIMATED = 512  # clauses of a group that its costs are estimated from
_FEW_STRUCTURES = 2
_STRUCTURE = 1500.0  # nanoseconds of a single event for one structure more
_ADVANTAGE = 1.5  # another structure has to be so much quicker than mill


class Group(NamedTuple):
    """Some clauses, the structure for them, and what an event costs in each."""

    structure: str
    rows: np.ndarray  # int64, of the table
    costs: Costs


def find_groups(table: ConjunctionTable, statistics: Statistics | None) -> list[Group]:
    """Divide the clauses; the groups of mill and of bitmaps come first, one of each at most."""
    n = table.n_clauses
    if n < _FEWEST:
        return [Group(MILL, np.arange(n), Costs(0.0, np.inf, np.inf))]
    groups = _same_dimensions(table, statistics)
    is_other = np.ones(n, bool)
    for group in groups:
        is_other[group.rows] = False
    others = np.flatnonzero(is_other)
    if len(others):
        groups.append(_others(table, others, statistics))
    return _few_structures(table, groups, statistics)


def _few_structures(
    table: ConjunctionTable, groups: list[Group], statistics: Statistics | None
) -> list[Group]:
    """Merge what needs no structure of its own."""
    mill = [group for group in groups if group.structure == MILL]
    trees = [group for group in groups if group.structure == TREE]
    bitmaps = [group for group in groups if group.structure == BITMAPS]
    if len(trees) + len(bitmaps) > _FEW_STRUCTURES:
        rows = np.sort(np.concatenate([group.rows for group in trees + bitmaps]))
        together = _others(table, rows, statistics)
        apart = sum(g.costs.mask_tree + _STRUCTURE for g in trees)
        apart += sum(g.costs.bitmaps for g in bitmaps)
        if together.structure == BITMAPS and together.costs.bitmaps < apart:
            trees, bitmaps = [], [together]
    return _merged(mill) + _merged(bitmaps) + trees


def _merged(own: list[Group]) -> list[Group]:
    if len(own) < 2:
        return own
    structure = own[0].structure
    rows = np.sort(np.concatenate([group.rows for group in own]))
    sums = (sum(costs) for costs in zip(*(group.costs for group in own), strict=True))
    return [Group(structure, rows, Costs(*sums))]


def _same_dimensions(table: ConjunctionTable, statistics: Statistics | None) -> list[Group]:
    """Return the large groups of clauses with the same few dimensions."""
    step = max(1, table.n_clauses // _SAMPLE)
    sampled = np.arange(0, table.n_clauses, step)
    some = _signatures(take_clauses(table, sampled) if step > 1 else table)
    popular, counts = np.unique(some, return_counts=True)
    popular = popular[counts >= max(2, _LEAST_SHARE * len(some))][:_MOST_GROUPS]
    if len(popular) == 0:
        return []
    signatures = _signatures(table) if step > 1 else some
    groups = []
    for signature in popular:
        rows = np.flatnonzero(signatures == signature)
        n_dimensions = int(np.diff(table.clause_offsets[rows[0] : rows[0] + 2])[0])
        if len(rows) >= _FEWEST and 0 < n_dimensions <= _MOST_DIMENSIONS:
            groups.append(_cheapest(table, rows, statistics, _ESTIMATED, same_dimensions=True))
    return groups


def _others(table: ConjunctionTable, rows: np.ndarray, statistics: Statistics | None) -> Group:
    """Return all clauses that are in no group, as one."""
    some = take_clauses(table, rows[:: max(1, len(rows) // _SAMPLE)])
    counts = np.sort(np.bincount(some.dimensions, minlength=1))[::-1]
    in_slots = counts[:_MOST_SLOTS].sum()
    if len(rows) < _FEWEST or in_slots == 0 or in_slots < _SLOTS_SHARE * counts.sum():
        return Group(MILL, rows, Costs(0.0, np.inf, np.inf))
    return _cheapest(table, rows, statistics, _SAMPLE, same_dimensions=False)


def _cheapest(
    table: ConjunctionTable,
    rows: np.ndarray,
    statistics: Statistics | None,
    n_estimated: int,
    *,
    same_dimensions: bool,
) -> Group:
    some = take_clauses(table, rows[:: max(1, len(rows) // n_estimated)])
    if (some.lows == some.highs).all():  # equalities alone: looked up, in mill
        return Group(MILL, rows, Costs(0.0, np.inf, np.inf))
    shares = estimated_shares(some, statistics)
    costs = estimated_costs(some, shares, len(rows), same_dimensions=same_dimensions)
    others = costs._replace(mill=np.inf)
    best = Costs._fields[int(np.argmin(others))]
    saved = costs.mill - min(others)
    is_better = min(others) * _ADVANTAGE < costs.mill
    if len(rows) < table.n_clauses:  # it is a structure more
        is_better &= saved > _STRUCTURE
    return Group(best if is_better else MILL, rows, costs)


def _signatures(table: ConjunctionTable) -> np.ndarray:
    """Return a number per clause that is the same for the same dimensions."""
    mixed = (table.dimensions.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    total = np.concatenate(([np.uint64(0)], np.cumsum(mixed, dtype=np.uint64)))
    sums: np.ndarray = total[table.clause_offsets[1:]] - total[table.clause_offsets[:-1]]
    return sums
