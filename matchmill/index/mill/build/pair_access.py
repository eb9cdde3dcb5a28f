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
from matchmill.kernels.jit import int64, kernel
from matchmill.kernels.threads import on_ranges, split_evenly

__all__ = ["Pairs", "choose_pairs", "count_points"]

_MOST_PAIRS = 16
_MOST_DIMENSIONS = 48  # among which pairs are looked for; at most 63
_MOST_CELLS = 1 << 16  # of one pair
_MOST_COMBINATIONS = 8
_SAMPLE = 20_000
_WORTH = 2.0  # times the cost of the additional visits
_LEAST_SHARE = 0.003  # of what all clauses cost
_GROUPED = 2.0  # a combination costs its chance times this: the visit itself counts, too
_EXTRA_ENTRY = 1.0  # what an additional entry costs in memory, as a share


class Pairs(NamedTuple):
    first: np.ndarray  # int64
    second: np.ndarray
    widths: np.ndarray
    starts: np.ndarray
    of_clause: np.ndarray  # int16, one a clause: its pair or -1
    points: np.ndarray  # uint8, one a distinct predicate (`count_points`)

    @property
    def n_cells(self) -> int:
        return int(self.starts[-1]) if len(self.starts) else 0


class _Sample(NamedTuple):
    """Some clauses, evenly spread: those of their predicates that may be one of a pair."""

    offsets: np.ndarray  # int64
    least: np.ndarray  # float64, one a clause: its cost with the pairs chosen so far
    numbers: np.ndarray  # int64: the dimension's place among those that pairs are looked for
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
    """The pairs that pay, and the clauses that are better filed under one of them."""
    n_codes = np.diff(dictionary.edge_offsets) + 1
    starts = dictionary.edge_offsets[:-1] + np.arange(len(n_codes))
    present = 1.0 - masses[starts]
    points = np.zeros(dictionary.n_distinct, np.uint8)
    count_points(
        dictionary.dimensions,
        dictionary.interval_offsets,
        dictionary.lows,
        dictionary.highs,
        points,
    )
    weight = (
        np.bincount(dictionary.dimensions, dictionary.uses * (points > 0), len(n_codes)) * present
    )
    frequent = np.argsort(-weight, kind="stable")[:_MOST_DIMENSIONS]
    frequent = np.sort(frequent[(weight[frequent] > 0) & (n_codes[frequent] < _MOST_CELLS)])
    numbers = np.full(len(n_codes), -1, np.int64)
    numbers[frequent] = np.arange(len(frequent))
    chosen = np.zeros((len(frequent), len(frequent)), np.int64)  # number of the pair + 1
    step = max(1, table.n_clauses // _SAMPLE)
    sample = _sample_of(table, dictionary.ids, numbers, points, chances, costs, step)
    first: list[int] = []
    second: list[int] = []
    most_cells = (1 << 20) + table.n_clauses
    while len(first) < _MOST_PAIRS and len(frequent) > 1:
        saved = np.zeros(chosen.shape)
        _add_savings(*sample, saved)
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
        _lower_costs(*sample, a, b)
    of_clause = np.full(table.n_clauses, -1, np.int16)
    if first:
        on_ranges(
            lambda start, stop: _assign(
                table.clause_offsets[start : stop + 1],
                table.dimensions,
                dictionary.ids,
                numbers,
                points,
                chances,
                costs,
                chosen,
                of_clause[start:stop],
            ),
            split_evenly(table.n_clauses),
        )
    firsts, seconds = np.array(first, np.int64), np.array(second, np.int64)
    widths = n_codes[seconds]
    sizes = n_codes[firsts] * widths
    ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    return Pairs(firsts, seconds, widths, ends, of_clause, points)


@kernel
def count_points(
    dimensions: np.ndarray,
    interval_offsets: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    out: np.ndarray,
) -> None:
    """The number of codes of predicates that are a few codes, and not absence; else 0."""
    for q in range(len(dimensions)):
        n = int64(0)
        first, last = interval_offsets[q], interval_offsets[q + 1]
        for k in range(first, last):
            n += int64(highs[k]) - lows[k] + 1
            if n > _MOST_COMBINATIONS:
                break
        out[q] = n if n <= _MOST_COMBINATIONS and lows[first] > 0 else 0


def _sample_of(
    table: ConjunctionTable,
    ids: np.ndarray,
    numbers: np.ndarray,
    points: np.ndarray,
    chances: np.ndarray,
    costs: np.ndarray,
    step: int,
) -> _Sample:
    n_clauses = len(range(0, table.n_clauses, step))
    longest = int(np.diff(table.clause_offsets)[::step].sum())
    sample = _Sample(
        np.zeros(n_clauses + 1, np.int64),
        np.zeros(n_clauses, np.float64),
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.empty(longest, np.float64),
    )
    _fill_sample(
        table.clause_offsets, table.dimensions, ids, numbers, points, chances, costs, step, *sample
    )
    return sample


@kernel
def _fill_sample(
    clause_offsets: np.ndarray,
    dimensions: np.ndarray,
    ids: np.ndarray,
    numbers: np.ndarray,
    points: np.ndarray,
    chances: np.ndarray,
    costs: np.ndarray,
    step: int,
    out_offsets: np.ndarray,
    out_least: np.ndarray,
    out_numbers: np.ndarray,
    out_points: np.ndarray,
    out_chances: np.ndarray,
) -> None:
    n = 0
    for i in range(len(out_least)):
        first, last = clause_offsets[i * step], clause_offsets[i * step + 1]
        least = np.inf if last > first else 0.0
        for p in range(first, last):
            least = min(least, float(costs[ids[p]]))
            number = numbers[dimensions[p]]
            if number >= 0 and points[ids[p]] > 0:
                out_numbers[n] = number
                out_points[n] = points[ids[p]]
                out_chances[n] = chances[ids[p]]
                n += 1
        out_least[i] = least
        out_offsets[i + 1] = n


@kernel
def _pair_cost(n: int, one: float, other: float) -> float:
    """The cost of filing under n combinations of two predicates with these chances; infinite if
    there are too many."""
    if n > _MOST_COMBINATIONS:
        return np.inf
    return float(_GROUPED * one * other * (1.0 + _EXTRA_ENTRY * (n - 1)))


@kernel
def _add_savings(
    offsets: np.ndarray,
    least: np.ndarray,
    numbers: np.ndarray,
    points: np.ndarray,
    chances: np.ndarray,
    out_saved: np.ndarray,
) -> None:
    """What each further pair would save on a sample."""
    for i in range(len(least)):
        last = offsets[i + 1]
        for p in range(offsets[i], last):
            for r in range(p + 1, last):
                cost = _pair_cost(points[p] * points[r], chances[p], chances[r])
                out_saved[numbers[p], numbers[r]] += max(0.0, least[i] - cost)


@kernel
def _lower_costs(
    offsets: np.ndarray,
    least: np.ndarray,
    numbers: np.ndarray,
    points: np.ndarray,
    chances: np.ndarray,
    a: int,
    b: int,
) -> None:
    """What the clauses of a sample cost with one pair more."""
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
    clause_offsets: np.ndarray,
    dimensions: np.ndarray,
    ids: np.ndarray,
    numbers: np.ndarray,
    points: np.ndarray,
    chances: np.ndarray,
    costs: np.ndarray,
    chosen: np.ndarray,
    out: np.ndarray,
) -> None:
    """The pair under which each clause is cheapest, if that is cheaper than any predicate alone."""
    partners = np.zeros(len(chosen), np.int64)  # bits: the other dimensions of chosen pairs
    for a in range(len(chosen)):
        for b in range(len(chosen)):
            if chosen[a, b] > 0:
                partners[a] |= int64(1) << b
    for i in range(len(out)):
        first, last = clause_offsets[i], clause_offsets[i + 1]
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
