"""The buckets of each slot, the rows of each interval, and how likely an event is in each row.

Edges are quantiles of the bounds of clauses, half of them of the keys of sampled events where these
are known: a bucket should hold few bounds, and few events. If there are no more bounds than edges,
every bound is an edge.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.index.base import Statistics
from matchmill.index.bitmaps.arrays import LAST_KEY, MOST_SLOTS, N_EDGES
from matchmill.kernels.csr import offsets_of, take_ranges
from matchmill.kernels.jit import int64, kernel

__all__ = ["HIGH_UNSURE", "LOW_UNSURE", "Slots", "Spans", "find_slots", "find_spans", "row_masses"]

_SAMPLE = 1 << 18  # predicates that edges are chosen from
_ROWS_OF_ALL = 2048  # of all slots together, as long as a slot has no fewer than the least
_LEAST_ROWS, _MOST_ROWS = 16, 64
LOW_UNSURE, HIGH_UNSURE = 1, 2


class Slots(NamedTuple):
    """The dimensions with bitmaps, and their buckets."""

    dimensions: np.ndarray  # int32
    of_dimension: np.ndarray  # int32, one per dimension of the table, or -1
    edges: np.ndarray  # int64, N_EDGES per slot
    row_starts: np.ndarray  # int64

    @property
    def n_rows(self) -> int:
        """The rows of one chunk."""
        return int(self.row_starts[-1])

    def edges_of(self, slot: int) -> np.ndarray:
        """Return the edges of a slot."""
        n_edges = int(self.row_starts[slot + 1] - self.row_starts[slot]) - 2
        edges: np.ndarray = self.edges[slot * N_EDGES : slot * N_EDGES + n_edges]
        return edges


class Spans(NamedTuple):
    """Of each interval on a slot: its first and its last row, and which of them are unsure."""

    first: np.ndarray  # uint8
    last: np.ndarray  # uint8
    unsure: np.ndarray  # uint8


def find_slots(table: ConjunctionTable, statistics: Statistics | None) -> Slots:
    """Choose the dimensions that most clauses ask for, and their edges."""
    counts = np.bincount(table.dimensions, minlength=1)
    popular = np.argsort(-counts, kind="stable")[:MOST_SLOTS]
    dimensions = np.sort(popular[: max(1, int((counts > 0).sum()))])
    of_dimension = np.full(len(counts), -1, np.int32)
    of_dimension[dimensions] = np.arange(len(dimensions))
    n_edges = min(_MOST_ROWS, max(_LEAST_ROWS, _ROWS_OF_ALL // len(dimensions))) - 2
    step = max(1, table.n_predicates // _SAMPLE)
    predicates = np.arange(0, table.n_predicates, step)
    slots = of_dimension[table.dimensions[predicates]]
    predicates = predicates[np.argsort(slots.astype(np.int16), kind="stable")]
    starts = offsets_of(np.bincount(slots + 1, minlength=len(dimensions) + 1))[1:]
    parts = [
        _edges(table, predicates[start:stop], _sampled_keys(statistics, int(d)), n_edges)
        for d, start, stop in zip(dimensions, starts[:-1], starts[1:], strict=True)
    ]
    edges = np.full((len(dimensions), N_EDGES), LAST_KEY, np.int64)
    for row, part in zip(edges, parts, strict=True):
        row[: len(part)] = part
    n_rows = np.array([len(part) + 2 for part in parts], np.int64)
    return Slots(dimensions.astype(np.int32), of_dimension, edges.ravel(), offsets_of(n_rows))


def _edges(
    table: ConjunctionTable, predicates: np.ndarray, event_keys: np.ndarray, n: int
) -> np.ndarray:
    _, intervals = take_ranges(table.interval_offsets, predicates)
    lows, highs = table.lows[intervals], table.highs[intervals]
    cuts = np.concatenate((lows[lows > 1], highs[(highs > 0) & (highs < LAST_KEY)] + 1))
    values = np.unique(cuts)
    if len(values) <= n:
        return values
    n_plain = n // 2 if len(event_keys) else n
    edges = [_quantiles(cuts, n_plain)]
    if len(event_keys):
        edges.append(_quantiles(event_keys, n - n_plain))
    return np.unique(np.concatenate(edges))


def _quantiles(values: np.ndarray, n: int) -> np.ndarray:
    values = np.sort(values)
    return values[np.arange(1, n + 1) * len(values) // (n + 1)]


def _sampled_keys(statistics: Statistics | None, dimension: int) -> np.ndarray:
    if statistics is None or dimension >= len(statistics.sample_offsets) - 1:
        return np.empty(0, np.int64)
    start, stop = statistics.sample_offsets[dimension : dimension + 2]
    keys: np.ndarray = statistics.sample_keys[start:stop]
    return keys[keys > 1]


def find_spans(table: ConjunctionTable, slots: Slots) -> Spans:
    """Find the rows of all intervals; those on no slot are left undefined."""
    n = len(table.lows)
    spans = Spans(np.zeros(n, np.uint8), np.zeros(n, np.uint8), np.zeros(n, np.uint8))
    _find_spans(table, slots, spans)
    return spans


@kernel
def _find_spans(table: ConjunctionTable, slots: Slots, out: Spans) -> None:
    for p in range(len(table.dimensions)):
        slot = int64(slots.of_dimension[table.dimensions[p]])
        if slot < 0:
            continue
        n_edges = slots.row_starts[slot + 1] - slots.row_starts[slot] - 2
        start = slot * N_EDGES
        for k in range(table.interval_offsets[p], table.interval_offsets[p + 1]):
            low, high = table.lows[k], table.highs[k]
            unsure = 0
            first = last = 0
            if low > 0:
                bucket = _bucket(slots.edges, start, n_edges, low)
                first = bucket + 1
                if low > 1 and (bucket == 0 or slots.edges[start + bucket - 1] != low):
                    unsure |= LOW_UNSURE
            if high == LAST_KEY:
                last = n_edges + 1
            elif high > 0:
                bucket = _bucket(slots.edges, start, n_edges, high)
                last = bucket + 1
                if bucket == n_edges or slots.edges[start + bucket] != high + 1:
                    unsure |= HIGH_UNSURE
            out.first[k], out.last[k], out.unsure[k] = first, last, unsure


@kernel
def _bucket(edges: np.ndarray, start: int, n: int, key: int) -> int:
    """Return how many of the n edges from `start` on are at or below a key."""
    low, high = 0, n
    while low < high:
        middle = (low + high) >> 1
        if edges[start + middle] <= key:
            low = middle + 1
        else:
            high = middle
    return low


def row_masses(slots: Slots, statistics: Statistics | None) -> np.ndarray:
    """Return how likely an event is in each row; without statistics, each bucket is as likely."""
    masses = np.zeros(slots.n_rows)
    for slot, d in enumerate(slots.dimensions.tolist()):
        start, stop = slots.row_starts[slot : slot + 2]
        n_buckets = stop - start - 1
        keys = _sampled_keys(statistics, d)
        masses[start + 1 : stop] = 1 / n_buckets
        if statistics is None or d >= len(statistics.dimension_counts):
            continue
        if len(keys):
            at = np.searchsorted(slots.edges_of(slot), keys, "right")
            counts = np.bincount(at, minlength=n_buckets) + 0.5 / n_buckets
            masses[start + 1 : stop] = counts / counts.sum()
        present = statistics.dimension_counts[d] / max(1, statistics.n_events)
        masses[start + 1 : stop] *= present
        masses[start] = 1 - present
    return masses
