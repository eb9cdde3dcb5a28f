"""Access through two predicates at once, where events have few dimensions and all of them.

    pair p      dimensions first[p] and second[p]; a slot for every two codes of theirs, in rows of
                widths[p] from starts[p] on

If every event has the same few dimensions, the best single predicate of a clause still lets many
events through. A clause with points on both dimensions of a pair is filed under all combinations
of them instead, which imply both. Each pair costs each event that has both one more visit, so
there are few: those that save most on a sample of the clauses, one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.index.predicate_codes import Dictionary
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.jit import int64, kernel
from matchmill.kernels.threads import on_ranges, split_evenly

__all__ = ["Pairs", "choose_pairs", "count_points"]

_MOST_PAIRS = 16
_MOST_DIMENSIONS = 48  # among which pairs are chosen; at most 63
_MOST_CELLS = 1 << 16  # of one pair
_MOST_COMBINATIONS = 8
_SAMPLE = 20_000
_WORTH = 2.0  # times the cost of the additional visits
_LEAST_SHARE = 0.003  # of what all clauses cost
_GROUPED = 2.0  # a combination costs its chance times this: the visit itself counts, too
_EXTRA_ENTRY = 1.0  # what an additional entry costs in memory, as a share


class Pairs(NamedTuple):
    """The chosen pairs, and the clauses that are filed under them."""

    first: np.ndarray  # int64
    second: np.ndarray
    widths: np.ndarray
    starts: np.ndarray
    of_clause: np.ndarray  # int16, one per clause: its pair or -1
    points: np.ndarray  # uint8, one per distinct predicate (`count_points`)

    @property
    def n_cells(self) -> int:
        """The number of slots of all pairs."""
        return int(self.starts[-1]) if len(self.starts) else 0


class _Clauses(NamedTuple):
    """The predicates of all clauses, as far as pairs are concerned."""

    offsets: np.ndarray  # int64, one more than there are clauses
    dimensions: np.ndarray  # int32, one per predicate
    ids: np.ndarray  # int32, one per predicate: the distinct one
    numbers: np.ndarray  # int64, one per dimension: its place among those in question, or -1
    points: np.ndarray  # uint8, one per distinct predicate (`count_points`)
    chances: np.ndarray  # float32, one per distinct predicate
    costs: np.ndarray  # float32, one per distinct predicate: of access through it alone


class _Sample(NamedTuple):
    """Some clauses, evenly spread: those of their predicates that may be one of a pair."""

    offsets: np.ndarray  # int64
    least: np.ndarray  # float64, one per clause: its cost with the pairs chosen so far
    numbers: np.ndarray  # int64: the dimension's place among those in question
    points: np.ndarray  # int64
    chances: np.ndarray  # float64


def choose_pairs(
    table: ConjunctionTable,
    dictionary: Dictionary,
    masses: np.ndarray,
    chances: np.ndarray,
    costs: np.ndarray,
    visit: float,
) -> Pairs:
    """Choose the pairs that pay, and the clauses that are better filed under one of them."""
    n_codes = np.diff(dictionary.edge_offsets) + 1
    starts = dictionary.edge_offsets[:-1] + np.arange(len(n_codes))
    present = 1.0 - masses[starts]
    points = np.zeros(dictionary.n_distinct, np.uint8)
    count_points(dictionary, points)
    weight = (
        np.bincount(dictionary.dimensions, dictionary.uses * (points > 0), len(n_codes)) * present
    )
    frequent = np.argsort(-weight, kind="stable")[:_MOST_DIMENSIONS]
    frequent = np.sort(frequent[(weight[frequent] > 0) & (n_codes[frequent] < _MOST_CELLS)])
    numbers = np.full(len(n_codes), -1, np.int64)
    numbers[frequent] = np.arange(len(frequent))
    chosen = np.zeros((len(frequent), len(frequent)), np.int64)  # number of the pair + 1
    step = max(1, table.n_clauses // _SAMPLE)
    clauses = _Clauses(
        table.clause_offsets, table.dimensions, dictionary.ids, numbers, points, chances, costs
    )
    sample = _sample_of(clauses, step)
    first: list[int] = []
    second: list[int] = []
    most_cells = (1 << 20) + table.n_clauses
    while len(first) < _MOST_PAIRS and len(frequent) > 1:
        saved = np.zeros(chosen.shape)
        _add_savings(sample, saved)
        price = _WORTH * visit * np.outer(present[frequent], present[frequent])
        total = float(sample.least.sum(dtype=np.float64))
        price = np.maximum(price, _LEAST_SHARE * total * step)
        cells = np.outer(n_codes[frequent], n_codes[frequent])
        saved[(chosen > 0) | (cells > min(_MOST_CELLS, most_cells))] = 0
        gain = saved * step - price
        a, b = divmod(int(np.argmax(gain)), len(frequent))
        if gain[a, b] <= 0:
            break
        first.append(int(frequent[a]))
        second.append(int(frequent[b]))
        chosen[a, b] = len(first)
        most_cells -= int(cells[a, b])
        _lower_costs(sample, a, b)
    of_clause = np.full(table.n_clauses, -1, np.int16)
    if first:
        on_ranges(
            lambda start, stop: _assign(start, stop, clauses, chosen, of_clause),
            split_evenly(table.n_clauses),
        )
    firsts, seconds = np.array(first, np.int64), np.array(second, np.int64)
    widths = n_codes[seconds]
    sizes = n_codes[firsts] * widths
    return Pairs(firsts, seconds, widths, offsets_of(sizes), of_clause, points)


@kernel
def count_points(dictionary: Dictionary, out: np.ndarray) -> None:
    """Count the codes of predicates that are a few codes, and not absence; 0 for all others."""
    interval_offsets, lows, highs = (
        dictionary.interval_offsets, dictionary.lows, dictionary.highs,
    )  # fmt: skip
    for q in range(len(out)):
        n = int64(0)
        first, last = interval_offsets[q], interval_offsets[q + 1]
        for k in range(first, last):
            n += int64(highs[k]) - lows[k] + 1
            if n > _MOST_COMBINATIONS:
                break
        out[q] = n if n <= _MOST_COMBINATIONS and lows[first] > 0 else 0


def _sample_of(clauses: _Clauses, step: int) -> _Sample:
    """Return every so many clauses."""
    lengths = np.diff(clauses.offsets)[::step]
    n_predicates = int(lengths.sum())
    sample = _Sample(
        np.zeros(len(lengths) + 1, np.int64),
        np.zeros(len(lengths), np.float64),
        np.empty(n_predicates, np.int64),
        np.empty(n_predicates, np.int64),
        np.empty(n_predicates, np.float64),
    )
    _fill_sample(clauses, step, sample)
    return sample


@kernel
def _fill_sample(clauses: _Clauses, step: int, out: _Sample) -> None:
    ids, points, numbers = clauses.ids, clauses.points, clauses.numbers
    n = 0
    for i in range(len(out.least)):
        first, last = clauses.offsets[i * step], clauses.offsets[i * step + 1]
        least = np.inf if last > first else 0.0
        for p in range(first, last):
            least = min(least, float(clauses.costs[ids[p]]))
            number = numbers[clauses.dimensions[p]]
            if number >= 0 and points[ids[p]] > 0:
                out.numbers[n] = number
                out.points[n] = points[ids[p]]
                out.chances[n] = clauses.chances[ids[p]]
                n += 1
        out.least[i] = least
        out.offsets[i + 1] = n


@kernel
def _pair_cost(n: int, one: float, other: float) -> float:
    """Return the cost of filing under n combinations of two predicates with these chances.

    It is infinite if there are too many.
    """
    if n > _MOST_COMBINATIONS:
        return np.inf
    return float(_GROUPED * one * other * (1.0 + _EXTRA_ENTRY * (n - 1)))


@kernel
def _add_savings(sample: _Sample, out_saved: np.ndarray) -> None:
    """Add up what each further pair would save on a sample."""
    offsets, least, numbers, points, chances = sample
    for i in range(len(least)):
        last = offsets[i + 1]
        for p in range(offsets[i], last):
            for r in range(p + 1, last):
                cost = _pair_cost(points[p] * points[r], chances[p], chances[r])
                out_saved[numbers[p], numbers[r]] += max(0.0, least[i] - cost)


@kernel
def _lower_costs(sample: _Sample, a: int, b: int) -> None:
    """Lower the costs of the clauses of a sample to those with one pair more."""
    offsets, least, numbers, points, chances = sample
    for i in range(len(least)):
        last = offsets[i + 1]
        for p in range(offsets[i], last):
            if numbers[p] == a:
                for r in range(p + 1, last):
                    if numbers[r] == b:
                        cost = _pair_cost(points[p] * points[r], chances[p], chances[r])
                        least[i] = min(least[i], cost)


@kernel
def _assign(
    first_clause: int, last_clause: int, clauses: _Clauses, chosen: np.ndarray, out: np.ndarray
) -> None:
    """Find the pair under which each clause is cheapest, if it beats every predicate alone."""
    offsets, dimensions, ids, numbers, points, chances, costs = clauses
    partners = np.zeros(len(chosen), np.int64)  # bits: the other dimensions of chosen pairs
    for a in range(len(chosen)):
        for b in range(len(chosen)):
            if chosen[a, b] > 0:
                partners[a] |= int64(1) << b
    for i in range(first_clause, last_clause):
        first, last = offsets[i], offsets[i + 1]
        least = np.inf
        best = int64(-1)
        there = int64(0)
        for p in range(first, last):
            if numbers[dimensions[p]] >= 0:
                there |= int64(1) << numbers[dimensions[p]]
        for p in range(first, last):
            a = numbers[dimensions[p]]
            if a < 0 or partners[a] & there == 0:
                continue
            for r in range(p + 1, last):
                b = numbers[dimensions[r]]
                if b >= 0 and chosen[a, b] > 0:
                    n = int64(points[ids[p]]) * int64(points[ids[r]])
                    if n > 0:
                        one, other = float(chances[ids[p]]), float(chances[ids[r]])
                        cost = _pair_cost(n, one, other)
                        if cost < least:
                            least = cost
                            best = chosen[a, b] - 1
        if best >= 0:
            for p in range(first, last):
                if costs[ids[p]] <= least:
                    best = int64(-1)
        out[i] = best
