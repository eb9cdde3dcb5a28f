"""Orders of evaluation as contenders: what they would evaluate if each predicate were an operator.

    condition    a distinct predicate of the table: its dimension and intervals
    chain        a clause: its conditions as a subscriber may have written them, in any order or,
                 by the option rare_first, the least popular first. Naive and Sequential take
                 them as they come, so it matters to them, and the paper does not say

`candidates` counts conditions that were evaluated, which is what the paper on expensive operators
measures (section 5.2). Chances are estimated from the statistics of training events; costs are
equal. In plain Python, as in an engine: operators would take all of the time.
"""

from __future__ import annotations

import random
import time
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import ClauseMatches, Index, IndexStats, Statistics
from matchmill.index.distinct_predicates import find_distinct
from matchmill.operators.adaptive import Adaptive
from matchmill.operators.orders import Strategy
from matchmill.papers.expensive_operators.greedy_path import GreedyPath
from matchmill.papers.expensive_operators.naive import Naive
from matchmill.papers.expensive_operators.sequential import Sequential
from matchmill.papers.expensive_operators.sub_order import SubOrder

__all__ = ["ORDERS"]

_SEED = 1
_UNKNOWN = 0.5


class _Condition(NamedTuple):
    dimension: int
    lows: list[int]
    highs: list[int]

    def accepts(self, key: int) -> bool:
        place = bisect_right(self.lows, key) - 1
        return place >= 0 and key <= self.highs[place]


class _Order:
    name: ClassVar[str]
    strategy: ClassVar[Callable[[], Strategy]]

    def __init__(self, table: ConjunctionTable, chances: np.ndarray, rare_first: bool) -> None:
        start = time.perf_counter()
        self._table = table
        self._chances = chances
        self._rare_first = rare_first
        dictionary = find_distinct(table)
        self._conditions = [_condition(table, first) for first in dictionary.firsts().tolist()]
        self._estimates = [(chance, 1.0) for chance in chances.tolist()]
        self._order = type(self).strategy()
        shuffled = random.Random(_SEED)
        ids, offsets = dictionary.ids.tolist(), table.clause_offsets.tolist()
        popularity = np.bincount(dictionary.ids, minlength=len(self._conditions)).tolist()
        for clause in range(table.n_clauses):
            chain = list(dict.fromkeys(ids[offsets[clause] : offsets[clause + 1]]))
            shuffled.shuffle(chain)
            if rare_first:
                chain.sort(key=popularity.__getitem__)
            self._order.add(clause, chain)
        self._candidates = 0
        self._build_seconds = time.perf_counter() - start

    @classmethod
    def build(
        cls,
        table: ConjunctionTable,
        statistics: Statistics | None = None,
        *,
        rare_first: bool = False,
        **options: Any,
    ) -> Self:
        firsts = find_distinct(table).firsts().tolist()
        conditions = [_condition(table, first) for first in firsts]
        chances = np.array([_chance(c, statistics) for c in conditions], np.float64)
        return cls(table, chances, rare_first)

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        found: list[int] = []
        offsets = np.zeros(events.n_events + 1, np.int64)
        for event in range(events.n_events):
            part = slice(int(events.offsets[event]), int(events.offsets[event + 1]))
            dimensions, keys = events.dimensions[part].tolist(), events.keys[part].tolist()
            self._match(dict(zip(dimensions, keys, strict=True)), found)
            offsets[event + 1] = len(found)
        return ClauseMatches(offsets, self._table.clause_ids[np.array(found, np.int64)])

    def _match(self, keys: dict[int, int], found: list[int]) -> None:
        known: dict[int, bool] = {}

        def complete(clause: int) -> tuple[int, ...]:
            found.append(clause)
            return ()

        clauses = range(self._table.n_clauses)
        conditions, estimate = self._conditions, self._estimates.__getitem__
        for number in self._order.walk(clauses, known, complete, estimate):
            condition = conditions[number]
            known[number] = condition.accepts(keys.get(condition.dimension, 0))
        self._candidates += len(known)

    def arrays(self) -> dict[str, np.ndarray]:
        rare_first = np.array([self._rare_first])
        return {**self._table._asdict(), "chances": self._chances, "rare_first": rare_first}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        table = ConjunctionTable(*(arrays[name] for name in ConjunctionTable._fields))
        return cls(table, arrays["chances"], bool(arrays["rare_first"][0]))

    def stats(self) -> IndexStats:
        n_bytes = sum(array.nbytes for array in self.arrays().values())
        return IndexStats(self._table.n_clauses, n_bytes, self._build_seconds, self._candidates)


def _condition(table: ConjunctionTable, predicate: int) -> _Condition:
    part = slice(*table.interval_offsets[predicate : predicate + 2].tolist())
    dimension = int(table.dimensions[predicate])
    return _Condition(dimension, table.lows[part].tolist(), table.highs[part].tolist())


def _chance(condition: _Condition, statistics: Statistics | None) -> float:
    """How often a condition is true, from a sample; above 0 and below 1."""
    d = condition.dimension
    if statistics is None or d >= len(statistics.dimension_counts) or not statistics.n_events:
        return _UNKNOWN
    n = statistics.n_events
    n_present = int(statistics.dimension_counts[d])
    keys = statistics.sample_keys[statistics.sample_offsets[d] : statistics.sample_offsets[d + 1]]
    below = np.searchsorted(keys, condition.lows, "left")
    n_inside = int((np.searchsorted(keys, condition.highs, "right") - below).sum())
    n_true = n_present * n_inside / max(1, len(keys))
    n_true += (n - n_present) * condition.accepts(0)
    return (n_true + _UNKNOWN) / (n + 1)


class _Naive(_Order):
    name = "naive"
    strategy = Naive


class _Sequential(_Order):
    name = "sequential"
    strategy = Sequential


class _SubOrder(_Order):
    name = "sub_order"
    strategy = SubOrder

    def __init__(self, table: ConjunctionTable, chances: np.ndarray, rare_first: bool) -> None:
        super().__init__(table, chances, rare_first)
        start = time.perf_counter()
        assert isinstance(self._order, SubOrder)
        self._order.prepare(range(table.n_clauses), self._estimates.__getitem__)
        self._build_seconds += time.perf_counter() - start


class _GreedyPath(_SubOrder):
    name = "greedy_path"
    strategy = GreedyPath


class _Adaptive(_Order):
    name = "adaptive"
    strategy = Adaptive


ORDERS: dict[str, type[Index]] = {
    order.name: order for order in (_Naive, _Sequential, _SubOrder, _GreedyPath, _Adaptive)
}
