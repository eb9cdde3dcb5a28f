"""Dimensions made again from the clauses that live: what nobody uses any more is left out.

    old      dimension 0  cut points  3   7   9  12      dimension 1 …      dimension 2 …
    used                              3       9          nobody's           flags of 40 patterns
    new      dimension 0  cut points  3       9                             dimension 1

Dimensions only grow while an engine lives. So compaction brings its clauses to new ones, part by
part: a dimension gets another number and a cut point another label, both by a lookup. Nothing is
parsed. The old dimensions stay as they are for readers that still use them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from matchmill.encoding.clause_encoder import relabelled
from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.cut_points import (
    CutTable,
    Relabelling,
    region_ceiling,
    region_floor,
    taken_places,
)
from matchmill.encoding.dimension_union import ascending
from matchmill.encoding.dimensions import Dimensions
from matchmill.language.values import Region

__all__ = ["LiveDimensions", "NoRoomError"]


class NoRoomError(Exception):
    """New cut points do not fit between those of earlier parts: start again."""


class LiveDimensions:
    """Takes tables one by one; `dimensions` has what they use."""

    def __init__(self, old: Dimensions) -> None:
        self.dimensions = Dimensions()
        self._old = old
        self.numbers: dict[int, int] = {}  # old dimension → new
        self._labels: dict[
            tuple[int, int], tuple[np.ndarray, np.ndarray]
        ] = {}  # old ones, new ones

    def translated(self, table: ConjunctionTable) -> ConjunctionTable:
        """Return a table in the new dimensions, which grow by what it uses.

        Raises
        ------
        NoRoomError
            If that would need a relabelling of tables that were returned before.
        """
        per_interval = np.repeat(table.dimensions, np.diff(table.interval_offsets))
        order = np.argsort(per_interval, kind="stable")
        used = np.unique(table.dimensions).tolist()
        starts = np.searchsorted(per_interval[order], [*used, np.iinfo(np.int32).max])
        lows, highs = table.lows.copy(), table.highs.copy()
        numbers = np.zeros(max(used, default=-1) + 1, np.int32)
        for n, dimension_id in enumerate(used):
            number = self.dimensions.id_of(self._old.keys[dimension_id])
            self.numbers[dimension_id] = numbers[dimension_id] = number
            intervals = order[starts[n] : starts[n + 1]]
            for cuts in self._old.tables[dimension_id].values():
                change = self._change(dimension_id, cuts, lows[intervals], highs[intervals])
                if change is not None:
                    lows[intervals] = relabelled(lows[intervals], change, is_low=True)
                    highs[intervals] = relabelled(highs[intervals], change, is_low=False)
        changed = table._replace(lows=lows, highs=highs, dimensions=numbers[table.dimensions])
        return ascending(changed)

    def _change(
        self, dimension_id: int, cuts: CutTable, lows: np.ndarray, highs: np.ndarray
    ) -> Relabelling | None:
        """Add the cut points that some bounds of one dimension use; None if they use none."""
        floor, ceiling, run = region_floor(cuts.region), region_ceiling(cuts.region), cuts.merged()
        lows = lows[(lows > floor) & (lows < ceiling)]
        highs = highs[(highs > floor) & (highs < ceiling)]
        at_lows = np.searchsorted(run.labels, lows, side="right") - 1
        at_highs = np.searchsorted(run.labels, highs, side="left")
        used = np.unique(np.concatenate((at_lows, at_highs)))
        if len(used) == 0:
            return None
        number = self.numbers[dimension_id]
        places = taken_places(run, used)
        table = self.dimensions.table(number, cuts.region).with_more_places(places)
        if table is None:
            raise NoRoomError
        self.dimensions.set_table(number, table)
        labels = table.labels_of_run(places)
        assert labels is not None, "they were added"
        self._note(dimension_id, cuts.region, run.labels[used], labels)
        return Relabelling(cuts.region, run.labels[used], labels)

    def _note(self, dimension_id: int, region: int, old: np.ndarray, new: np.ndarray) -> None:
        known = self._labels.get((dimension_id, region))
        if known is not None:
            old, first = np.unique(np.concatenate((known[0], old)), return_index=True)
            new = np.concatenate((known[1], new))[first]
        self._labels[dimension_id, region] = old, new

    # -- events

    def event_pairs(self, dimensions: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the pairs of events in the new dimensions, and the positions that have one."""
        numbers = np.full(len(self._old) + 1, -1, np.int64)
        for old, new in self.numbers.items():
            numbers[old] = new
        new_dimensions = numbers[np.minimum(dimensions, len(self._old))]
        kept = np.flatnonzero(new_dimensions >= 0)
        new_keys = keys.copy()
        order = kept[np.argsort(dimensions[kept], kind="stable")]
        bounds = np.flatnonzero(np.diff(dimensions[order], prepend=-1, append=-1))
        for start, stop in pairwise(bounds.tolist()):
            at = order[start:stop]
            new_keys[at] = self._event_keys(int(dimensions[at[0]]), keys[at])
        return new_dimensions[kept].astype(np.int32), new_keys[kept], kept

    def _event_keys(self, dimension_id: int, keys: np.ndarray) -> np.ndarray:
        """Return new keys: of a cut point that is left, or of the gap that a value is in now."""
        out = keys.copy()
        for region in range(Region.NUMBER, Region.END):
            floor = region_floor(region)
            inside = (keys >= floor) & (keys < region_ceiling(region))
            if not inside.any():
                continue
            labels: tuple[Any, Any] = self._labels.get((dimension_id, region), (keys[:0], keys[:0]))
            old, new = np.concatenate(([floor], labels[0])), np.concatenate(([floor], labels[1]))
            at = np.searchsorted(old, keys[inside], side="right") - 1
            out[inside] = new[at] + (keys[inside] != old[at])
        return out
