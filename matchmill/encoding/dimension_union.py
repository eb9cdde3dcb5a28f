"""Bring tables that were encoded separately to the same dimensions.

    table, own dimensions  ─┐
    table, own dimensions  ─┼─►  DimensionUnion  ─►  shared dimensions
    table, own dimensions  ─┘                              │
    table, own dimensions  ────────────────────────────────┴─►  the same table in shared keys

So shards of subscriptions are read in parallel and independently, and yet an event is encoded once
for all of them. Nothing is parsed again: a dimension gets another number and a cut point another
label, both by a lookup.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from matchmill.encoding.clause_encoder import relabelled
from matchmill.encoding.conjunction_table import ConjunctionTable, is_nested
from matchmill.encoding.cut_points import CutTable, Relabelling
from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.numbers import distinct_pairs
from matchmill.encoding.texts import Texts, arrow_of_texts, texts_of
from matchmill.kernels.csr import take_ranges
from matchmill.language.normal_form import Dimension
from matchmill.language.values import Region

__all__ = ["DimensionUnion", "ascending", "into_shared"]


class DimensionUnion:
    """Takes dimensions one by one; `finish` has all of them, each cut point once."""

    def __init__(self) -> None:
        self._cuts: dict[Dimension, dict[int, Any]] = {}  # by region: texts, or (whole, part)

    def add(self, dimensions: Dimensions) -> None:
        """Add the dimensions of one table, and their cut points."""
        for dimension, tables in zip(dimensions.keys, dimensions.tables, strict=True):
            cuts = self._cuts.setdefault(dimension, {})
            for region, table in tables.items():
                run = table.merged()
                new = _own_texts(run) if region == Region.STRING else (run.whole, run.part)
                known = cuts.get(region)
                cuts[region] = new if known is None else _united(region, known, new)

    def finish(self) -> Dimensions:
        """Return the union."""
        shared = Dimensions()
        for dimension, cuts in self._cuts.items():
            dimension_id = shared.id_of(dimension)
            for region, places in cuts.items():
                shared.set_table(dimension_id, _table(region, places))
        return shared


def _own_texts(run: Any) -> pa.Array:
    """Return the texts of a run as an Arrow array that shares no memory with it."""
    own = Texts(run.offsets.copy(), run.data.copy())
    return arrow_of_texts(own, pa.large_binary())


def _united(region: int, a: Any, b: Any) -> Any:
    if region == Region.STRING:
        return pa.concat_arrays([a, b]).unique()
    whole, part = (np.concatenate(pair) for pair in zip(a, b, strict=True))
    return distinct_pairs(whole, part)[:2]


def _table(region: int, places: Any) -> CutTable:
    if region == Region.STRING:
        places = texts_of(places.take(pc.array_sort_indices(places)))
    return CutTable(region).with_places(places)


# -- tables ---------------------------------------------------------------------------------------


def into_shared(table: ConjunctionTable, own: Dimensions, shared: Dimensions) -> ConjunctionTable:
    """Return a table in the keys of the union; its own dimensions are among those united."""
    per_interval = np.repeat(table.dimensions, np.diff(table.interval_offsets))
    order = np.argsort(per_interval, kind="stable")
    starts = np.searchsorted(per_interval[order], np.arange(len(own) + 1))
    lows, highs = table.lows.copy(), table.highs.copy()
    numbers = np.array([shared.ids[dimension] for dimension in own.keys], np.int32)
    for dimension_id, tables in enumerate(own.tables):
        intervals = order[starts[dimension_id] : starts[dimension_id + 1]]
        for region, cuts in tables.items():
            old = cuts.merged()
            new = shared.tables[int(numbers[dimension_id])][region].labels_of_run(old)
            assert new is not None, "the union has every cut point"
            change = Relabelling(region, old.labels, new)
            lows[intervals] = relabelled(lows[intervals], change, is_low=True)
            highs[intervals] = relabelled(highs[intervals], change, is_low=False)
    changed = table._replace(lows=lows, highs=highs, dimensions=numbers[table.dimensions])
    return ascending(changed)


def ascending(table: ConjunctionTable) -> ConjunctionTable:
    """Sort the predicates of each clause by dimension, as every index expects them.

    Those of nested clauses stay where they are.
    """
    clauses = np.repeat(np.arange(table.n_clauses), np.diff(table.clause_offsets))
    places = table.dimensions
    if table.has_lists:
        places = np.where(is_nested(table)[clauses], np.arange(len(clauses)), places)
    same_clause = clauses[1:] == clauses[:-1]
    if not (same_clause & (places[1:] < places[:-1])).any():
        return table
    order = np.lexsort((places, clauses))
    interval_offsets, intervals = take_ranges(table.interval_offsets, order)
    return table._replace(
        dimensions=table.dimensions[order],
        interval_offsets=interval_offsets,
        lows=table.lows[intervals],
        highs=table.highs[intervals],
        quantifiers=table.quantifiers[order] if table.has_lists else table.quantifiers,
    )
