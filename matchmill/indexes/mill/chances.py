"""How likely each predicate is to hold for an event to come.

    masses[edge_offsets[d] + d + c]    chance that an event has code c on dimension d, or has not
                                       the dimension at all if c is 0: one number a code

From statistics: how often each code occurred in a sample, and a little for those that did not. From
nothing: subscribers ask for what exists, so a dimension is as frequent as its share of the
predicates suggests, and a code as the predicates that are just this point.
"""

from __future__ import annotations

import numpy as np

from matchmill._jit import int64, kernel
from matchmill.indexes.base import Statistics
from matchmill.indexes.mill.dictionary import Dictionary, code_of

__all__ = ["code_masses", "predicate_chances"]

_UNSEEN = 0.5  # of one event, spread over the codes of a dimension that the sample had not
_ALIKE = 0.1
_EVENT_DIMENSIONS = 16.0  # how many dimensions an event of which nothing is known has


def code_masses(dictionary: Dictionary, statistics: Statistics | None) -> np.ndarray:
    n_codes = np.diff(dictionary.edge_offsets) + 1
    masses = np.empty(int(n_codes.sum()), np.float64)
    if statistics is None or statistics.n_events == 0:
        owner = np.repeat(np.arange(len(n_codes)), np.diff(dictionary.predicate_offsets))
        uses = np.bincount(owner, dictionary.uses, len(n_codes))
        share = uses / max(1.0, uses.sum())
        present = 1.0 - np.exp(-_EVENT_DIMENSIONS * share)
        _fill_prior(
            dictionary.dimensions,
            dictionary.uses,
            dictionary.interval_offsets,
            dictionary.lows,
            dictionary.highs,
            dictionary.edge_offsets,
            present,
            masses,
        )
    else:
        _count_sample(dictionary, statistics, masses)
    return masses


@kernel
def _fill_prior(
    dimensions: np.ndarray,
    uses: np.ndarray,
    interval_offsets: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    edge_offsets: np.ndarray,
    present: np.ndarray,
    out: np.ndarray,
) -> None:
    for c in range(len(out)):
        out[c] = 0.0
    for q in range(len(dimensions)):
        d = int64(dimensions[q])
        start = edge_offsets[d] + d
        for k in range(interval_offsets[q], interval_offsets[q + 1]):
            if lows[k] == highs[k] and lows[k] > 0:
                out[start + lows[k]] += uses[q]
    for d in range(len(edge_offsets) - 1):
        start = edge_offsets[d] + d
        n_codes = edge_offsets[d + 1] - edge_offsets[d] + 1
        total = 0.0
        for c in range(n_codes):
            total += out[start + c]
        alike = _ALIKE * total / n_codes + 1.0  # what a code gets that nobody asks for
        for c in range(n_codes):
            share = (out[start + c] + alike) / (total + alike * n_codes)
            out[start + c] = present[d] * share
        out[start] += 1.0 - present[d]


@kernel
def _count_sample(dictionary: Dictionary, statistics: Statistics, out: np.ndarray) -> None:
    n_known = len(statistics.sample_offsets) - 1
    for d in range(len(dictionary.edge_offsets) - 1):
        first, last = dictionary.edge_offsets[d], dictionary.edge_offsets[d + 1]
        start, n_codes = first + d, last - first + 1
        n_samples, n_present = 0, 0
        if d < n_known:
            n_samples = statistics.sample_offsets[d + 1] - statistics.sample_offsets[d]
            n_present = statistics.dimension_counts[d]
        out[start : start + n_codes] = _UNSEEN / n_codes
        weight = n_present / max(1, n_samples)
        for k in range(n_samples):
            key = statistics.sample_keys[statistics.sample_offsets[d] + k]
            out[start + code_of(dictionary.edges, first, last, key)] += weight
        out[start : start + n_codes] /= statistics.n_events + _UNSEEN
        out[start] += (statistics.n_events - n_present) / (statistics.n_events + _UNSEEN)


def predicate_chances(dictionary: Dictionary, masses: np.ndarray) -> np.ndarray:
    """The chance of each distinct predicate."""
    sums = np.concatenate((np.zeros(1), np.cumsum(masses)))
    chances = np.empty(dictionary.n_distinct, np.float32)
    _add_masses(
        dictionary.dimensions,
        dictionary.interval_offsets,
        dictionary.lows,
        dictionary.highs,
        dictionary.edge_offsets,
        sums,
        chances,
    )
    return chances


@kernel
def _add_masses(
    dimensions: np.ndarray,
    interval_offsets: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    edge_offsets: np.ndarray,
    sums: np.ndarray,
    out: np.ndarray,
) -> None:
    for q in range(len(dimensions)):
        d = int64(dimensions[q])
        start = edge_offsets[d] + d
        chance = 0.0
        for k in range(interval_offsets[q], interval_offsets[q + 1]):
            low, high = int64(lows[k]), int64(highs[k])
            chance += sums[start + high + 1] - sums[start + low]
        out[q] = chance if chance > 0.0 else 0.0
