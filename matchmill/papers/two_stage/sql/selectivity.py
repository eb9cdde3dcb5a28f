"""How many events an interval lets through, guessed from a sample of keys.

    key k of the sample    dimensions[k], keys[k]
    dimension d            a share frequencies[d] of all events has it; one that is not listed: all

Where nothing is known of the events, the bounds of the clauses stand for their keys: a value that
many subscribers ask for is taken to occur often.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.index.base import Statistics

__all__ = [
    "KeySample",
    "interval_shares",
    "sample_of_clauses",
    "sample_of_keys",
    "sample_of_statistics",
]

_MOST_KEYS = 200_000


class KeySample(NamedTuple):
    """A sample of keys per dimension."""

    dimensions: np.ndarray  # int64
    keys: np.ndarray  # int64
    frequencies: np.ndarray  # float64


def sample_of_statistics(statistics: Statistics) -> KeySample:
    """Return the sample that statistics have."""
    counts = np.diff(statistics.sample_offsets)
    frequencies = (statistics.dimension_counts + 0.5) / (statistics.n_events + 1)
    return KeySample(
        np.repeat(np.arange(len(counts)), counts),
        statistics.sample_keys,
        np.minimum(frequencies, 1.0),
    )


def sample_of_keys(dimensions: np.ndarray, keys: np.ndarray) -> KeySample:
    """Of keys that were met, evenly thinned out if they are many."""
    step = len(keys) // _MOST_KEYS + 1
    return KeySample(dimensions[::step].astype(np.int64), keys[::step], np.empty(0))


def sample_of_clauses(table: ConjunctionTable) -> KeySample:
    """Return a sample made from what clauses ask for."""
    dimensions = np.repeat(table.dimensions, np.diff(table.interval_offsets))
    return sample_of_keys(dimensions, table.lows)


def interval_shares(
    sample: KeySample, dimensions: np.ndarray, lows: np.ndarray, highs: np.ndarray
) -> np.ndarray:
    """Return the share of all events that has a key in each interval; never quite 0."""
    below = _rank(sample, dimensions, lows, with_equal=False)
    inside = _rank(sample, dimensions, highs, with_equal=True) - below
    sizes = np.bincount(sample.dimensions, minlength=int(dimensions.max(initial=0)) + 1)
    n_keys = np.where(dimensions >= 0, sizes[dimensions], 0)
    listed = (dimensions >= 0) & (dimensions < len(sample.frequencies))
    frequency = np.ones(len(dimensions))
    frequency[listed] = sample.frequencies[dimensions[listed]]
    shares: np.ndarray = frequency * (np.maximum(inside, 0) + 0.5) / (n_keys + 1)
    return shares


def _rank(
    sample: KeySample, dimensions: np.ndarray, keys: np.ndarray, *, with_equal: bool
) -> np.ndarray:
    """How much of the sample stands before each (dimension, key)."""
    n_sample = len(sample.keys)
    is_asked = np.arange(n_sample + len(keys)) >= n_sample
    order = np.lexsort(
        (
            is_asked == with_equal,
            np.concatenate((sample.keys, keys)),
            np.concatenate((sample.dimensions, dimensions)),
        )
    )
    asked = is_asked[order]
    out = np.empty(len(keys), np.int64)
    out[order[asked] - n_sample] = np.cumsum(~asked)[asked]
    return out
