"""What an event costs in each structure, in nanoseconds, estimated from some clauses of many.

p is the share of events that satisfy a predicate. It comes from sampled events, or else from where
a range is among the bounds of its dimension. Of n clauses on d dimensions, with b bounds each:

    mill       an event looks at the clauses whose least likely predicate holds, and tests their
               predicates until one fails: n p₁ (1 + p₂ + p₂ p₃ + …). A test costs far less
               than a nanosecond if many clauses share their predicates, since 64 events are tested
               at once, and six if every clause has constants of its own
    mask_tree  an event visits the leaves whose boxes it is in. A leaf is as wide as its clauses,
               and n / 64 of them divide the space: n / 64 Π min(1, p + (64 / n)^(1 / d)) leaves
    bitmaps    an event reads rows of each of n / 512 chunks, and then looks at the bounds of the
               n Π (p + 1 / rows) clauses that are left, or at all bounds in the buckets of its
               values, which are as many in every chunk

All of them pay for each match as well.

The constants were measured on workloads of one structure each, interleaved, on one machine. They
are not measured again where the library runs. That would take seconds, and structures would depend
on what else the machine was doing. Structures differ by factors of two to a hundred, so it is the
counts that decide, not the constants. What is close goes to mill.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.index.base import Statistics
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.intrinsics import LANES, ROW_WORDS

__all__ = ["Costs", "Shares", "estimated_costs", "estimated_shares"]

_CHUNK = 64 * ROW_WORDS
_SHARED_TEST, _OWN_TEST, _MILL_MATCH = 0.1, 6.0, 4.0
_TREE, _LEAF, _LEAF_DIMENSION, _TREE_MATCH = 200.0, 10.0, 2.5, 4.0
_CHUNK_START, _CHUNK_ROW, _BITMAP_MATCH = 30.0, 2.5, 1.5
_LEFT, _LEFT_BOUND, _TAIL = 36.0, 3.0, 32.0
_ROWS = 48  # of a slot of bitmaps
_BYTE_SHARE = 1 / 250  # a byte tells no more values apart
_EVENT_DIMENSIONS = 16.0  # of events of which nothing is known, or more if clauses have many
_DIMENSIONS_PER_PREDICATE = 4.0


class Costs(NamedTuple):
    """Nanoseconds per event; infinite where a structure is not for such clauses."""

    mill: float
    mask_tree: float
    bitmaps: float


class Shares(NamedTuple):
    """How often predicates of some clauses hold, and which of them nobody shares."""

    holds: np.ndarray  # float64, the share of events
    is_own: np.ndarray  # bool: no other clause of them has the same predicate


def estimated_costs(
    table: ConjunctionTable, shares: Shares, n: int, *, same_dimensions: bool
) -> Costs:
    """Estimate the costs of n clauses, of which the table has some."""
    counts = np.diff(table.clause_offsets)
    if table.n_clauses == 0 or len(shares.holds) == 0:
        return Costs(0.0, np.inf, np.inf)
    by_share, starts = _sorted_rows(shares.holds, table.clause_offsets)
    sums = _products(by_share, starts, counts)
    least, tests = np.exp(sums.first), sums.series
    test = _SHARED_TEST + (_OWN_TEST - _SHARED_TEST) * float(shares.is_own.mean())
    mill = n * float((least * tests).mean()) * test
    matches = n * float(np.exp(sums.last).mean())
    n_dimensions = len(np.unique(table.dimensions))
    tree = _tree(shares, starts, counts, n, n_dimensions) if same_dimensions else np.inf
    return Costs(
        mill + _MILL_MATCH * matches,
        tree + _TREE_MATCH * matches,
        _bitmaps(shares, starts, counts, n, n_dimensions) + _BITMAP_MATCH * matches,
    )


def _tree(
    shares: Shares, starts: np.ndarray, counts: np.ndarray, n: int, n_dimensions: int
) -> float:
    side = (LANES / n) ** (1 / n_dimensions)
    boxes = _product(np.minimum(1, np.maximum(shares.holds, _BYTE_SHARE) + side), starts, counts)
    leaves = max(1.0, n / LANES * float(boxes.mean()))
    return _TREE + leaves * (_LEAF + _LEAF_DIMENSION * n_dimensions)


def _bitmaps(shares: Shares, starts: np.ndarray, counts: np.ndarray, n: int, n_slots: int) -> float:
    chunks = max(1.0, n / _CHUNK)
    left = n * float(_product(np.minimum(1, shares.holds + 1 / _ROWS), starts, counts).mean())
    bounds = _LEFT + _LEFT_BOUND * float(counts.mean())
    exact = min(left * bounds, chunks * n_slots * _TAIL)
    return chunks * (_CHUNK_START + _CHUNK_ROW * n_slots) + exact


class _Products(NamedTuple):
    """Of each clause, with its predicates from the least likely on; logarithms of products."""

    first: np.ndarray
    last: np.ndarray
    series: np.ndarray  # 1 + p₂ + p₂ p₃ + …


def _sorted_rows(holds: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    clauses = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return holds[np.lexsort((holds, clauses))], offsets[:-1]


def _products(holds: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> _Products:
    logs = np.log(np.clip(holds, 1e-9, 1))
    sums = np.concatenate(([0.0], np.cumsum(logs)))
    owners = np.repeat(np.arange(len(counts)), counts)
    first = np.zeros(len(counts))
    first[counts > 0] = logs[starts[counts > 0]]
    # Each test is made if all before it held; the first was answered by finding the clause.
    before = np.exp(sums[:-1] - sums[starts][owners] - first[owners])
    before[starts[counts > 0]] = 1.0
    series = np.bincount(owners, before, len(counts))
    return _Products(first, sums[starts + counts] - sums[starts], np.maximum(1.0, series))


def _product(factors: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    sums = np.concatenate(([0.0], np.cumsum(np.log(np.maximum(factors, 1e-9)))))
    product: np.ndarray = np.exp(sums[starts + counts] - sums[starts])
    return product


# -- shares ---------------------------------------------------------------------------------------


def estimated_shares(table: ConjunctionTable, statistics: Statistics | None) -> Shares:
    """Estimate the share of events that satisfy each predicate of some clauses."""
    n_intervals = np.diff(table.interval_offsets)
    owners = np.repeat(np.arange(table.n_predicates), n_intervals)
    dimensions = table.dimensions[owners]
    order = np.argsort(dimensions, kind="stable")
    found, starts = np.unique(dimensions[order], return_index=True)
    inside = np.zeros(len(table.lows))
    present = _present(table, found, statistics)
    for d, at, share in zip(found.tolist(), np.split(order, starts[1:]), present, strict=True):
        lows, highs = table.lows[at], table.highs[at]
        keys = _keys(d, statistics)
        if len(keys):
            inside[at] = share * _between(keys, lows, highs) / (len(keys) + 1)
        else:
            bounds = np.unique(np.concatenate((lows, highs)))
            held = _between(bounds, lows, highs) / (len(bounds) + 1)
            inside[at] = share * np.where(lows == highs, _point_share(lows[lows == highs]), held)
        inside[at] += np.where(lows <= 0, 1 - share, 0)
    holds = np.minimum(1, np.bincount(owners, inside, table.n_predicates))
    return Shares(holds, _is_own(table, n_intervals))


def _between(values: np.ndarray, lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
    """Count the values in each range."""
    return np.searchsorted(values, highs, "right") - np.searchsorted(values, lows, "left")


def _point_share(points: np.ndarray) -> float:
    """Return the share of one value, if all that clauses ask for are as likely.

    How many there are, some of which these clauses do not have, is estimated as Chao did (1984).
    """
    _, counts = np.unique(points, return_counts=True)
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    n_values = len(counts) + once * (once - 1) / (2 * (twice + 1))
    return 1 / max(1.0, n_values)


def _keys(dimension: int, known: Statistics | None) -> np.ndarray:
    """Return the keys of sampled events, in ascending order."""
    if known is None or dimension >= len(known.sample_offsets) - 1:
        return np.empty(0, np.int64)
    first, stop = known.sample_offsets[dimension : dimension + 2]
    return np.sort(known.sample_keys[first:stop])


def _present(table: ConjunctionTable, found: np.ndarray, known: Statistics | None) -> np.ndarray:
    """Return the share of events that have each of some dimensions."""
    if known is not None and known.n_events:
        counts = np.zeros(len(found))
        is_known = found < len(known.dimension_counts)
        counts[is_known] = known.dimension_counts[found[is_known]]
        return np.asarray(counts / known.n_events)
    uses = np.bincount(table.dimensions)[found]
    per_clause = table.n_predicates / max(1, table.n_clauses)
    expected = max(_EVENT_DIMENSIONS, _DIMENSIONS_PER_PREDICATE * per_clause)
    return np.asarray(1 - np.exp(-expected * uses / max(1, uses.sum())))


def _is_own(table: ConjunctionTable, n_intervals: np.ndarray) -> np.ndarray:
    """Return which predicates no other clause has, by dimension, number of intervals and hull."""
    held = np.flatnonzero(n_intervals > 0)
    sums = offsets_of(n_intervals)
    keys = np.stack(
        (
            table.dimensions[held].astype(np.int64) << 32 | n_intervals[held],
            table.lows[sums[held]],
            table.highs[sums[held + 1] - 1],
        ),
        axis=1,
    )
    _, numbers, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    is_own = np.zeros(table.n_predicates, bool)
    is_own[held] = counts[numbers.ravel()] == 1
    return is_own
