"""From a table to the arrays of a mask tree."""

from __future__ import annotations

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable, take_clauses
from matchmill.index.array_index import narrow_ids
from matchmill.index.base import Statistics
from matchmill.index.mask_tree.arrays import (
    LAST_KEY,
    NO_HIGH,
    NO_LOW,
    MaskTreeArrays,
)
from matchmill.index.mask_tree.codes import (
    Buckets,
    find_buckets,
    high_codes,
    low_codes,
    padded,
    positions,
)
from matchmill.index.mask_tree.order import order_boxes
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.intrinsics import LANES

__all__ = ["MOST_DIMENSIONS", "build_mask_tree"]

MOST_DIMENSIONS = 8


def build_mask_tree(
    table: ConjunctionTable, statistics: Statistics | None, n_dimensions: int = MOST_DIMENSIONS
) -> MaskTreeArrays:
    """Build the tree over the dimensions that most clauses ask for, at most `n_dimensions`."""
    chosen = _popular_dimensions(table, n_dimensions)
    lows, highs, is_general = _hulls(table, chosen)
    buckets = [
        find_buckets(lows[:, j], highs[:, j], _sampled_keys(statistics, int(d)))
        for j, d in enumerate(chosen)
    ]
    coded = [(low_codes(b, lows[:, j]), high_codes(b, highs[:, j])) for j, b in enumerate(buckets)]
    for j, (low, high) in enumerate(coded):  # no predicate: nothing is asked
        high[(low == NO_LOW) & (highs[:, j] == LAST_KEY)] = NO_HIGH
    by_width = np.argsort([(high.astype(int) - low).sum() for low, high in coded])
    chosen, buckets = chosen[by_width], [buckets[j] for j in by_width]
    lows, highs, coded = lows[:, by_width], highs[:, by_width], [coded[j] for j in by_width]
    order = order_boxes(_ends(buckets, lows, highs))
    n_leaves = max(1, -(-len(order) // LANES))
    blocks, levels = _blocks([(low[order], high[order]) for low, high in coded], n_leaves)
    padded_ids = np.full(n_leaves * LANES, -1, np.int64)
    padded_ids[: len(order)] = table.clause_ids[order]
    ids, clause_ids = narrow_ids(padded_ids)
    bounds = np.zeros((n_leaves * LANES, 2 * len(chosen)), np.int64)
    bounds[: len(order), ::2] = lows[order]
    bounds[: len(order), 1::2] = highs[order]
    places = np.flatnonzero(is_general[order])
    unsure = np.zeros(n_leaves * LANES, np.uint8)
    unsure[places] = 1
    slots = np.full(max(1, table.n_dimensions), -1, np.int32)
    slots[chosen] = np.arange(len(chosen))
    edges_and_codes = [padded(b) for b in buckets]
    general = take_clauses(table, order[places])
    return MaskTreeArrays(
        dimensions=chosen.astype(np.int32),
        slots=slots,
        edges=np.array([e for e, _ in edges_and_codes], np.int64).ravel(),
        codes=np.array([c for _, c in edges_and_codes], np.uint8).ravel(),
        levels=levels,
        blocks=blocks,
        ids=ids,
        clause_ids=clause_ids,
        bounds=bounds.ravel(),
        unsure=np.packbits(unsure, bitorder="little").view(np.uint64),
        general_places=places,
        general_offsets=general.clause_offsets,
        general_dimensions=general.dimensions,
        general_intervals=general.interval_offsets,
        general_lows=general.lows,
        general_highs=general.highs,
    )


def _popular_dimensions(table: ConjunctionTable, most: int) -> np.ndarray:
    counts = np.bincount(table.dimensions, minlength=1)
    popular = np.argsort(-counts, kind="stable")[:most]
    # Even if no clause asks for anything, there is one: its codes tell clauses from padding.
    return np.sort(popular[: max(1, int((counts > 0).sum()))])


def _hulls(
    table: ConjunctionTable, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the range of each clause on each chosen dimension, and which need more than that."""
    lows = np.zeros((table.n_clauses, len(chosen)), np.int64)
    highs = np.full((table.n_clauses, len(chosen)), LAST_KEY, np.int64)
    slot = np.full(table.n_dimensions + 1, -1, np.int64)
    slot[chosen] = np.arange(len(chosen))
    slots = slot[table.dimensions]
    n_intervals = np.diff(table.interval_offsets)
    is_odd = offsets_of((slots < 0) | (n_intervals != 1))
    is_general = is_odd[table.clause_offsets[1:]] > is_odd[table.clause_offsets[:-1]]
    clauses = np.repeat(np.arange(table.n_clauses), np.diff(table.clause_offsets))
    held = np.flatnonzero((slots >= 0) & (n_intervals > 0))
    lows[clauses[held], slots[held]] = table.lows[table.interval_offsets[held]]
    highs[clauses[held], slots[held]] = table.highs[table.interval_offsets[held + 1] - 1]
    return lows, highs, is_general


def _sampled_keys(statistics: Statistics | None, dimension: int) -> np.ndarray:
    if statistics is None or dimension >= len(statistics.sample_offsets) - 1:
        return np.empty(0, np.int64)
    start, stop = statistics.sample_offsets[dimension : dimension + 2]
    keys: np.ndarray = statistics.sample_keys[start:stop]
    return keys[keys > 0]


def _ends(buckets: list[Buckets], lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
    columns = [positions(b, lows[:, j]) for j, b in enumerate(buckets)]
    columns += [positions(b, highs[:, j]) for j, b in enumerate(buckets)]
    return np.stack(columns, axis=1)


def _blocks(
    codes: list[tuple[np.ndarray, np.ndarray]], n_leaves: int
) -> tuple[np.ndarray, np.ndarray]:
    """Lay out the codes of leaves and of all levels above them."""
    level = [(_filled(low, n_leaves, NO_HIGH), _filled(high, n_leaves, 0)) for low, high in codes]
    parts, levels = [], [0]
    while True:
        n_blocks = len(level[0][0])
        laid = [np.stack((low, high), axis=1) for low, high in level]
        parts.append(np.stack(laid, axis=1).ravel())
        levels.append(levels[-1] + n_blocks)
        if n_blocks == 1:
            break
        above = -(-n_blocks // LANES)
        level = [
            (_filled(low.min(axis=1), above, NO_HIGH), _filled(high.max(axis=1), above, 0))
            for low, high in level
        ]
    return np.concatenate(parts), np.array(levels, np.int64)


def _filled(codes: np.ndarray, n_blocks: int, padding: int) -> np.ndarray:
    out = np.full(n_blocks * LANES, padding, np.uint8)
    out[: len(codes)] = codes
    return out.reshape(n_blocks, LANES)
