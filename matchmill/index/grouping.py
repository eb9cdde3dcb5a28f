"""Which clauses are better off in a mask tree than in mill.

Clauses with the same dimensions are a group. For each large group the cost per event is estimated
for both structures, from the share p of events that satisfy each of its predicates:

    mill   an event looks at the clauses whose least likely predicate holds: n min(p) entries.
           Each costs a few nanoseconds if many clauses share their predicates, and six times
           as much if every clause has constants of its own
    tree   an event visits the leaves whose boxes it is in. A leaf is as wide as its clauses, and
           the n / 64 leaves divide the space among them:
           n / 64 Π min(1, p + (64 / n)^(1 / d)) leaves of d dimensions

Shares come from sampled events, or else from where a range is among the bounds of its group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable, take_clauses
from matchmill.index.base import Statistics
from matchmill.kernels.intrinsics import LANES

__all__ = ["Group", "tree_groups"]

_FEWEST = 256  # clauses of a tree
_MOST_DIMENSIONS = 8
_MOST_GROUPS = 16
_SAMPLE = 2048  # clauses that groups are looked for in
_LEAST_SHARE = 1 / 50  # of the clauses, for a group
_ESTIMATED = 512  # clauses of a group that its costs are estimated from
_BEST_SHARE = 1 / 250  # a byte tells no more values apart

# Nanoseconds, measured on workloads of one group each.
_SHARED_ENTRY, _OWN_ENTRY = 2.0, 12.0
_TREE, _LEAF, _LEAF_DIMENSION = 200.0, 10.0, 2.5
_ADVANTAGE = 1.5  # the tree has to be so much quicker


class Group(NamedTuple):
    """Clauses with the same dimensions, and what an event costs."""

    rows: np.ndarray  # int64, of the table
    dimensions: np.ndarray  # int32
    mill_ns: float
    tree_ns: float


def tree_groups(table: ConjunctionTable, statistics: Statistics | None) -> list[Group]:
    """Return the groups that a mask tree matches in less time than mill."""
    if table.n_clauses < _FEWEST:
        return []
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
        first = int(rows[0])
        dimensions = table.dimensions[table.clause_offsets[first] : table.clause_offsets[first + 1]]
        if len(rows) >= _FEWEST and 0 < len(dimensions) <= _MOST_DIMENSIONS:
            group = Group(rows, dimensions, *_costs(table, rows, len(dimensions), statistics))
            if group.tree_ns * _ADVANTAGE < group.mill_ns:
                groups.append(group)
    return groups


def _signatures(table: ConjunctionTable) -> np.ndarray:
    """Return a number per clause that is the same for the same dimensions."""
    mixed = (table.dimensions.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    total = np.concatenate(([np.uint64(0)], np.cumsum(mixed, dtype=np.uint64)))
    sums: np.ndarray = total[table.clause_offsets[1:]] - total[table.clause_offsets[:-1]]
    return sums


def _costs(
    table: ConjunctionTable, rows: np.ndarray, n_dimensions: int, statistics: Statistics | None
) -> tuple[float, float]:
    """Estimate the nanoseconds that an event costs in mill and in a tree."""
    n = len(rows)
    some = take_clauses(table, rows[:: max(1, n // _ESTIMATED)])
    columns = [_Column(some, k, n_dimensions) for k in range(n_dimensions)]
    shares = np.stack([c.shares(statistics) for c in columns], axis=1)
    own = sum(c.own_share for c in columns) / n_dimensions
    entry = _SHARED_ENTRY + (_OWN_ENTRY - _SHARED_ENTRY) * own
    mill = n * float(shares.min(axis=1).mean()) * entry
    leaf = (LANES / n) ** (1 / n_dimensions)
    boxes = np.minimum(1, np.maximum(shares, _BEST_SHARE) + leaf).prod(axis=1)
    leaves = max(1.0, n / LANES * float(boxes.mean()))
    return mill, _TREE + leaves * (_LEAF + _LEAF_DIMENSION * n_dimensions)


class _Column:
    """The predicates of a group on one of its dimensions, as ranges."""

    def __init__(self, table: ConjunctionTable, k: int, n_dimensions: int) -> None:
        predicates = np.arange(k, table.n_predicates, n_dimensions)
        self._dimension = int(table.dimensions[k])
        self._lows = table.lows[table.interval_offsets[predicates]]
        self._highs = table.highs[table.interval_offsets[predicates + 1] - 1]

    @property
    def own_share(self) -> float:
        """The share of clauses whose predicate no other one has."""
        ranges = np.stack((self._lows, self._highs), axis=1)
        _, counts = np.unique(ranges, axis=0, return_counts=True)
        return float((counts == 1).sum() / len(ranges))

    def shares(self, statistics: Statistics | None) -> np.ndarray:
        """Return the share of events that satisfy each predicate."""
        known, d = statistics, self._dimension
        if known is not None and d < len(known.sample_offsets) - 1:
            keys = known.sample_keys[known.sample_offsets[d] : known.sample_offsets[d + 1]]
            if len(keys):
                inside = _between(np.sort(keys), self._lows, self._highs) / len(keys)
                present = known.dimension_counts[d] / max(1, known.n_events)
                absent = np.where(self._lows <= 0, 1 - present, 0)
                return np.asarray(inside * present + absent)
        bounds = np.unique(np.concatenate((self._lows, self._highs)))
        return np.asarray(_between(bounds, self._lows, self._highs) / (len(bounds) + 1))


def _between(values: np.ndarray, lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
    """Count the values in each range."""
    return np.searchsorted(values, highs, "right") - np.searchsorted(values, lows, "left")
