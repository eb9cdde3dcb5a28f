"""From keys to bytes: where the buckets of a tree dimension begin, and the codes of ranges.

Edges are quantiles of the bounds of clauses, half of them of the keys of sampled events where these
are known: a bucket should hold few bounds, and few events.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.index.mask_tree.arrays import (
    FIRST_BUCKET,
    FIRST_LOW,
    LAST_BUCKET,
    LAST_HIGH,
    LAST_KEY,
    N_EDGES,
    NO_LOW,
)

__all__ = ["Buckets", "find_buckets", "high_codes", "low_codes", "padded", "positions"]

_N_CODES = LAST_BUCKET - FIRST_BUCKET + 1
_SAMPLE = 1 << 16  # bounds that edges are chosen from
_HEAVY = 96  # an edge at which one in so many ranges begins or ends gets a gap


class Buckets(NamedTuple):
    """The buckets of one tree dimension."""

    edges: np.ndarray  # int64, ascending; bucket b begins at edges[b - 1]
    codes: np.ndarray  # uint8, of bucket 0 … len(edges)
    has_gap: np.ndarray  # bool, per edge: the code before its bucket stands for the edge


def find_buckets(lows: np.ndarray, highs: np.ndarray, event_keys: np.ndarray) -> Buckets:
    """Choose the buckets for these ranges and the keys of a sample of events."""
    cuts = np.concatenate((lows[lows > 1], highs[(highs > 0) & (highs < LAST_KEY)] + 1))
    if len(cuts) > _SAMPLE:
        cuts = np.random.default_rng(1).choice(cuts, _SAMPLE, replace=False)
    values, counts = np.unique(cuts, return_counts=True)
    if 2 * len(values) < _N_CODES:
        return _with_codes(values, np.ones(len(values), bool))
    heavy = values[counts > len(cuts) // _HEAVY]
    n_plain = _N_CODES - 1 - 2 * len(heavy)
    plain = [_quantiles(cuts, n_plain // 2 if len(event_keys) else n_plain)]
    if len(event_keys):
        plain.append(_quantiles(np.sort(event_keys), n_plain - n_plain // 2))
    edges = np.union1d(heavy, np.concatenate(plain))
    return _with_codes(edges, np.isin(edges, heavy))


def _quantiles(values: np.ndarray, n: int) -> np.ndarray:
    values = np.sort(values)
    return values[np.arange(1, n + 1) * len(values) // (n + 1)]


def _with_codes(edges: np.ndarray, has_gap: np.ndarray) -> Buckets:
    codes = np.empty(len(edges) + 1, np.uint8)
    codes[0] = FIRST_BUCKET
    codes[1:] = FIRST_BUCKET + np.cumsum(1 + has_gap)
    return Buckets(edges.astype(np.int64), codes, has_gap)


def low_codes(buckets: Buckets, lows: np.ndarray) -> np.ndarray:
    """Return the code of the beginning of each range; `lows` are keys, 0 includes absence."""
    codes = _codes_of(buckets, lows)
    codes[lows == 1] = FIRST_LOW
    codes[lows <= 0] = NO_LOW
    return codes


def high_codes(buckets: Buckets, highs: np.ndarray) -> np.ndarray:
    """Return the code of the end of each range; `highs` are keys, LAST_KEY has no end."""
    codes = _codes_of(buckets, np.where(highs < LAST_KEY, highs, 0) + 1, highs)
    codes[highs == 0] = FIRST_LOW  # absence alone
    codes[highs == LAST_KEY] = LAST_HIGH
    return codes


def _codes_of(buckets: Buckets, cuts: np.ndarray, keys: np.ndarray | None = None) -> np.ndarray:
    """Code a cut by its gap if it is such an edge, else by the bucket of the key beside it."""
    edges, codes, has_gap = buckets
    if len(edges) == 0:
        return np.full(len(cuts), FIRST_BUCKET, np.uint8)
    above = np.searchsorted(edges, cuts, "right")
    at = np.maximum(above - 1, 0)
    is_gap = (above > 0) & (edges[at] == cuts) & has_gap[at]
    if keys is not None:
        above = np.searchsorted(edges, keys, "right")
    coded: np.ndarray = np.where(is_gap, codes[at + 1] - 1, codes[above]).astype(np.uint8)
    return coded


def positions(buckets: Buckets, keys: np.ndarray) -> np.ndarray:
    """Return where keys are among the buckets, as numbers with fractions that keep their order."""
    edges = buckets.edges
    if len(edges) == 0:
        return np.zeros(len(keys), np.float32)
    above = np.searchsorted(edges, keys, "right")
    inside = (above > 0) & (above < len(edges))
    start = edges[np.where(inside, above - 1, 0)].astype(np.float64)
    stop = edges[np.where(inside, above, 0)].astype(np.float64)
    width = np.where(inside, np.maximum(stop - start, 1), 1)
    fraction = np.where(inside, (keys - start) / width, 0.5)
    found: np.ndarray = (above + np.clip(fraction, 0, 1)).astype(np.float32)
    return found


def padded(buckets: Buckets) -> tuple[np.ndarray, np.ndarray]:
    """Return edges and codes with room for N_EDGES of them."""
    edges = np.full(N_EDGES, LAST_KEY, np.int64)
    edges[: len(buckets.edges)] = buckets.edges
    codes = np.full(N_EDGES, buckets.codes[-1], np.uint8)
    codes[: len(buckets.codes)] = buckets.codes
    return edges, codes
