"""Events that are expressions become intervals of keys.

    edge before v    as a lower bound: v's key          as an upper bound: the key below, L - 1
    edge after v     as a lower bound: the key above    as an upper bound: v's key

A value that is no cut point has the key of its gap on both sides: predicates cover a gap as a whole
or not at all. Dimensions that are made from a text or a list may have any key: there the expression
itself has to be evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matchmill.encoding.cut_points import CutTable
from matchmill.encoding.dimensions import (
    LAST_KEYS,
    OBJECT_KEY,
    START_KEYS,
    TRUE_KEY,
    Dimensions,
)
from matchmill.encoding.event_batch import IntervalEvents
from matchmill.language.expression_events import EventClause
from matchmill.language.value_set import Edge
from matchmill.language.values import Region

__all__ = ["encode_event_clauses"]

_ANY_KEY = (0, START_KEYS[Region.END] - 1)


def encode_event_clauses(dimensions: Dimensions, clauses: Sequence[EventClause]) -> IntervalEvents:
    """Return each clause as one event, without attributes that no subscription uses."""
    offsets, pair_dimensions, interval_offsets = [0], [], [0]
    intervals: list[tuple[int, int]] = []
    for clause in clauses:
        for attribute, values in clause.items():
            plan = dimensions.plans.get(attribute)
            if plan is None:
                continue
            if plan.value >= 0:
                pair_dimensions.append(plan.value)
                intervals += _intervals(dimensions, plan.value, values.edges)
                interval_offsets.append(len(intervals))
            for dimension_id in plan.made():
                pair_dimensions.append(dimension_id)
                intervals.append(_ANY_KEY)
                interval_offsets.append(len(intervals))
        offsets.append(len(pair_dimensions))
    bounds = np.array(intervals, np.int64).reshape(-1, 2)
    return IntervalEvents(
        np.array(offsets, np.int64),
        np.array(pair_dimensions, np.int32),
        np.array(interval_offsets, np.int64),
        bounds[:, 0].copy(),
        bounds[:, 1].copy(),
    )


def _intervals(
    dimensions: Dimensions, dimension_id: int, edges: tuple[Edge, ...]
) -> list[tuple[int, int]]:
    """Return intervals of keys, ascending; intervals that share a gap become one."""
    out: list[tuple[int, int]] = []
    for k in range(0, len(edges), 2):
        low = _low(dimensions, dimension_id, edges[k])
        high = _high(dimensions, dimension_id, edges[k + 1])
        if out and low <= out[-1][1] + 1:
            low, _ = out.pop()
        out.append((low, high))
    return out


def _low(dimensions: Dimensions, dimension_id: int, edge: Edge) -> int:
    if len(edge) == 1:
        return START_KEYS[edge[0]]
    if edge[0] == Region.BOOLEAN:
        return TRUE_KEY
    if edge[0] == Region.LIST:
        return OBJECT_KEY
    key, is_cut = _place(dimensions.table(dimension_id, edge[0]), edge)
    return key + 1 if is_cut and edge[2] == 1 else key


def _high(dimensions: Dimensions, dimension_id: int, edge: Edge) -> int:
    if len(edge) == 1:
        return LAST_KEYS[edge[0]]
    if edge[0] == Region.BOOLEAN:
        return TRUE_KEY - 1
    if edge[0] == Region.LIST:
        return OBJECT_KEY - 1
    key, is_cut = _place(dimensions.table(dimension_id, edge[0]), edge)
    return key - 1 if is_cut and edge[2] == 0 else key


def _place(table: CutTable, edge: Edge) -> tuple[int, bool]:
    """Return the key of an edge's value, and whether the value is a cut point."""
    is_cut = table.labels_of([edge[1]]) is not None
    return int(table.keys_of([edge[1]])[0]), is_cut
