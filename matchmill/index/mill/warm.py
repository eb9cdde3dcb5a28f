"""A small workload that needs every kernel of the index, so that all are compiled.

Kernels are compiled for the types of their arguments. Arrays that are mapped from a file are
read-only, which is a type of its own, so everything is done with both kinds of arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch, IntervalEvents, as_intervals
from matchmill.index.base import Statistics
from matchmill.index.event_sample import build_statistics

__all__ = ["WarmWorkload", "read_only", "warm_workload"]

_N_VALUES = 10
_N_PAIRS = 4000  # clauses with two equalities: enough for access through two predicates
_N_DISTINCT = 5000  # clauses with a predicate of their own: enough for a hash table to grow
_N_EVENTS = 2048  # enough for both ways of matching to be tried


class WarmWorkload(NamedTuple):
    """Clauses and events over three dimensions."""

    table: ConjunctionTable
    events: EventBatch
    intervals: IntervalEvents
    statistics: Statistics


def warm_workload() -> WarmWorkload:
    """Return clauses `a = x and b = y`, clauses `c = z`, and events with all three dimensions."""
    values = np.arange(_N_PAIRS)
    keys = np.stack((values % _N_VALUES, values // _N_VALUES % _N_VALUES), axis=1).ravel() + 1
    bounds = np.concatenate((keys, np.arange(1, _N_DISTINCT + 1)))
    dimensions = np.tile(np.array([0, 1], np.int32), _N_PAIRS)
    lengths = np.repeat([2, 1], [_N_PAIRS, _N_DISTINCT])
    table = ConjunctionTable(
        np.arange(_N_PAIRS + _N_DISTINCT),
        np.concatenate(([0], np.cumsum(lengths))),
        np.concatenate((dimensions, np.full(_N_DISTINCT, 2, np.int32))),
        np.arange(len(bounds) + 1),
        bounds,
        bounds.copy(),
    )
    numbers = np.arange(_N_EVENTS)
    pairs = np.stack((numbers % _N_VALUES, numbers // 3 % _N_VALUES, numbers), axis=1) + 1
    events = EventBatch(
        np.arange(0, 3 * _N_EVENTS + 1, 3),
        np.tile(np.arange(3, dtype=np.int32), _N_EVENTS),
        pairs.ravel(),
    )
    few = EventBatch(events.offsets[:3], events.dimensions[:6], events.keys[:6])
    return WarmWorkload(table, events, as_intervals(few), build_statistics(events, 3))


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a view as of a file that is mapped."""
    view = array.view()
    view.flags.writeable = False
    return view
