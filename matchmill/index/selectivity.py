"""How likely each predicate is to hold for a coming event.

    masses[edge_offsets[d] + d + c]    chance that an event has code c on dimension d, or does not
                                       have the dimension if c is 0: one number per code

Without statistics: subscribers ask for what exists. So a dimension is as frequent as its share of
the predicates suggests, and a code as frequent as the predicates that are just this point, the less
so the more predicates of the dimension are ranges.

With statistics: a sample of some hundred events says little about a code that one in a thousand
events has. Clauses that were filed under what seems rare would be filed under what the sample
happened to miss. So what subscribers ask for is believed as long as the sample does not contradict
it: the codes of a dimension by a test on a few bins; the dimensions all together by how far they
are from it beyond chance. Where it is contradicted, the sample counts, and a little for what it did
not have.
"""

from __future__ import annotations

import numpy as np

from matchmill.index.base import Statistics
from matchmill.index.predicate_codes import Dictionary, code_of
from matchmill.kernels.jit import int64, kernel

__all__ = ["code_masses", "predicate_chances"]

_UNSEEN = 0.5  # of one event, spread over the codes of a dimension that the sample does not have
_POINT_SHARE, _RANGE_SHARE = 0.1, 0.2  # what points and ranges add to all codes, evenly
_LEAST_IN_BIN, _MOST_BINS = 4.0, 32.0
_SURPRISE = 2.5  # standard deviations
_EVENT_DIMENSIONS = 16.0  # how many dimensions an event of which nothing is known has


def code_masses(dictionary: Dictionary, statistics: Statistics | None) -> np.ndarray:
    """Return the chance of each code."""
    n_codes = np.diff(dictionary.edge_offsets) + 1
    masses = np.empty(int(n_codes.sum()), np.float64)
    owner = np.repeat(np.arange(len(n_codes)), np.diff(dictionary.predicate_offsets))
    uses = np.bincount(owner, dictionary.uses, len(n_codes))
    share = uses / max(1.0, uses.sum())
    is_known = statistics is not None and statistics.n_events > 0
    _fill_prior(
        dictionary,
        np.ones(len(n_codes)) if is_known else 1.0 - np.exp(-_EVENT_DIMENSIONS * share),
        masses,
    )
    if statistics is not None and is_known:
        present = np.zeros(len(n_codes))
        n_known = min(len(present), len(statistics.dimension_counts))
        present[:n_known] = statistics.dimension_counts[:n_known]
        _learn(dictionary, statistics, _smoothed(present, share, statistics.n_events), masses)
    return masses


def _smoothed(counts: np.ndarray, share: np.ndarray, n_events: int) -> np.ndarray:
    """Estimate how many events have each dimension, from counts and from what was expected.

    Such counts vary by chance; what they vary beyond it tells how many events the expectation is
    worth.
    """
    expected = share * (counts.sum() / max(1e-9, share.sum()))
    beyond = ((counts - expected) ** 2).sum() - expected.sum()
    worth = (expected**2).sum() / max(1e-9, beyond)
    smoothed = expected * (counts + worth) / np.maximum(1e-9, expected + worth)
    smoothed = np.minimum(np.maximum(smoothed, _UNSEEN), n_events)
    return np.asarray(smoothed)


@kernel
def _fill_prior(dictionary: Dictionary, present: np.ndarray, out: np.ndarray) -> None:
    """Write the chances of codes that follow from what subscribers ask for."""
    dimensions, uses, edge_offsets = (
        dictionary.dimensions, dictionary.uses, dictionary.edge_offsets,
    )  # fmt: skip
    interval_offsets, lows, highs = (
        dictionary.interval_offsets, dictionary.lows, dictionary.highs,
    )  # fmt: skip
    for c in range(len(out)):
        out[c] = 0.0
    wide = np.zeros(len(edge_offsets) - 1)
    for q in range(len(dimensions)):
        d = int64(dimensions[q])
        start = edge_offsets[d] + d
        for k in range(interval_offsets[q], interval_offsets[q + 1]):
            if lows[k] == highs[k] and lows[k] > 0:
                out[start + lows[k]] += uses[q]
            else:
                wide[d] += uses[q]
    for d in range(len(edge_offsets) - 1):
        start = edge_offsets[d] + d
        n_codes = edge_offsets[d + 1] - edge_offsets[d] + 1
        total = 0.0
        for c in range(n_codes):
            total += out[start + c]
        # What a code gets that nobody asks for.
        least = (_POINT_SHARE * total + _RANGE_SHARE * wide[d]) / n_codes + 1.0
        for c in range(n_codes):
            share = (out[start + c] + least) / (total + least * n_codes)
            out[start + c] = present[d] * share
        out[start] += 1.0 - present[d]


@kernel
def _learn(
    dictionary: Dictionary, statistics: Statistics, n_present: np.ndarray, masses: np.ndarray
) -> None:
    """Turn the shares of a dimension's codes into masses, by the sample where it differs."""
    n_known = len(statistics.sample_offsets) - 1
    for d in range(len(dictionary.edge_offsets) - 1):
        first, last = dictionary.edge_offsets[d], dictionary.edge_offsets[d + 1]
        start, n_codes = first + d, last - first + 1
        shares = masses[start : start + n_codes]
        counts = np.zeros(n_codes)
        n_samples = 0
        if d < n_known:
            n_samples = statistics.sample_offsets[d + 1] - statistics.sample_offsets[d]
        for k in range(n_samples):
            key = statistics.sample_keys[statistics.sample_offsets[d] + k]
            counts[code_of(dictionary.edges, first, last, key)] += 1.0
        if _differ(counts, shares, n_samples):
            for c in range(n_codes):
                shares[c] = (counts[c] + _UNSEEN / n_codes) / (n_samples + _UNSEEN)
        present = n_present[d] / statistics.n_events
        for c in range(n_codes):
            shares[c] *= present
        shares[0] += 1.0 - present


@kernel
def _differ(counts: np.ndarray, shares: np.ndarray, n: int) -> bool:
    """Return whether it is hardly chance that n keys have these codes.

    This is Pearson's test, on bins of neighbouring codes that should have about as many keys each.
    """
    n_bins = 0
    sum_of_squares = 0.0
    expected, counted = 0.0, 0.0
    least = max(_LEAST_IN_BIN, n / _MOST_BINS)
    for c in range(len(counts)):
        expected += n * shares[c]
        counted += counts[c]
        if expected >= least or c == len(counts) - 1:
            if expected > 0.0:
                sum_of_squares += (counted - expected) ** 2 / max(1.0, expected)
                n_bins += 1
            expected, counted = 0.0, 0.0
    return bool(sum_of_squares > n_bins + _SURPRISE * (2.0 * n_bins) ** 0.5)


def predicate_chances(dictionary: Dictionary, masses: np.ndarray) -> np.ndarray:
    """Return the chance of each distinct predicate."""
    sums = np.concatenate((np.zeros(1), np.cumsum(masses)))
    chances = np.empty(dictionary.n_distinct, np.float32)
    _add_masses(dictionary, sums, chances)
    return chances


@kernel
def _add_masses(dictionary: Dictionary, sums: np.ndarray, out: np.ndarray) -> None:
    """Add up the masses of the codes of each predicate."""
    dimensions, edge_offsets = dictionary.dimensions, dictionary.edge_offsets
    interval_offsets, lows, highs = (
        dictionary.interval_offsets, dictionary.lows, dictionary.highs,
    )  # fmt: skip
    for q in range(len(dimensions)):
        d = int64(dimensions[q])
        start = edge_offsets[d] + d
        chance = 0.0
        for k in range(interval_offsets[q], interval_offsets[q + 1]):
            low, high = int64(lows[k]), int64(highs[k])
            chance += sums[start + high + 1] - sums[start + low]
        out[q] = chance if chance > 0.0 else 0.0
