"""The pivot of a clause: the dimension of it that the fewest events have (paper, section 4.1).

How often a dimension occurs is known from statistics, or else guessed from how often subscribers
ask for it. Of dimensions that occur as often the one with an equality is taken, and then the
first; the paper says nothing of ties, and this is what its Figure 4 shows.

A predicate that accepts absence is no pivot: events without the dimension would not find the
clause.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.index.base import Statistics
from matchmill.kernels.jit import kernel

__all__ = ["NO_PIVOT", "Frequencies", "choose_pivots", "frequencies_of", "frequencies_with"]

NO_PIVOT = 0  # dimension d is pivot d + 1


class Frequencies(NamedTuple):
    """How often each dimension occurs."""

    counts: np.ndarray  # int64, one per dimension
    are_events: bool  # else of subscriptions


def frequencies_of(statistics: Statistics | None) -> Frequencies:
    """Return the frequencies that statistics know, if there are any."""
    if statistics is None or statistics.n_events == 0:
        return Frequencies(np.zeros(0, np.int64), False)
    return Frequencies(np.asarray(statistics.dimension_counts, np.int64), True)


def frequencies_with(known: Frequencies, dimensions: np.ndarray, n_dimensions: int) -> Frequencies:
    """With as many dimensions, and with predicates on these counted if events are not known."""
    counts = known.counts
    if n_dimensions > len(counts):
        counts = np.concatenate((counts, np.zeros(n_dimensions - len(counts), np.int64)))
    if not known.are_events:
        counts = counts.copy()
        np.add.at(counts, dimensions, 1)
    return Frequencies(counts, known.are_events)


def choose_pivots(
    table: ConjunctionTable, frequencies: Frequencies, accepts_absence: np.ndarray
) -> np.ndarray:
    """Return the pivot of each clause."""
    is_point = (
        table.lows[table.interval_offsets[:-1]] == table.highs[table.interval_offsets[1:] - 1]
    )
    out = np.empty(table.n_clauses, np.int64)
    _choose(table, frequencies.counts, accepts_absence, is_point, out)
    return out


@kernel
def _choose(
    table: ConjunctionTable,
    counts: np.ndarray,
    accepts_absence: np.ndarray,
    is_point: np.ndarray,
    out: np.ndarray,
) -> None:
    for i in range(len(out)):
        out[i] = NO_PIVOT
        least = np.int64(0)
        for p in range(table.clause_offsets[i], table.clause_offsets[i + 1]):
            if not accepts_absence[p]:
                cost = 2 * counts[table.dimensions[p]] + (0 if is_point[p] else 1)
                if out[i] == NO_PIVOT or cost < least:
                    least = cost
                    out[i] = table.dimensions[p] + 1
