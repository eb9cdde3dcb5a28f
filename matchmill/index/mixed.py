"""Any index for all clauses: its own, and beside it indexes of those that it does not take.

    table ─┬─► plain clauses                                ─► the index that was asked for
           ├─► clauses with multi-valued dimensions         ─► `lists`
           └─► nested clauses                               ─► `nested`

An index that takes multi-valued dimensions by itself says `takes_lists: ClassVar[bool] = True`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from matchmill.encoding.conjunction_table import (
    ConjunctionTable,
    divide,
    divide_nested,
    empty_table,
)
from matchmill.encoding.event_batch import EventBatch, IntervalEvents
from matchmill.index.base import (
    ClauseMatches,
    Combined,
    Configurable,
    Index,
    IndexStats,
    Statistics,
)
from matchmill.index.interval_scan import IntervalIndex, scan_intervals
from matchmill.index.joined_matches import joined_matches
from matchmill.index.lists import ListIndex
from matchmill.index.nested import NestedIndex

__all__ = ["MixedIndex", "build_index", "match_intervals", "open_index", "parts_of"]

_PLAIN, _LISTS, _NESTED = "plain", "lists", "nested"


class MixedIndex:
    """Several indexes, each with some of the clauses."""

    name: ClassVar[str] = "mixed"

    def __init__(self, index_class: type[Index], parts: Mapping[str, Index]) -> None:
        self.by_kind = dict(parts)
        self.name = index_class.name  # type: ignore[misc]
        self._first, *self._others = self.by_kind.values()

    @classmethod
    def build(
        cls, table: ConjunctionTable, statistics: Statistics | None = None, **options: Any
    ) -> MixedIndex:
        """Raise an error: `build_index` knows which index to build."""
        raise NotImplementedError

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Return the clauses that hold for each event."""
        found = self._first.match_batch(events)
        for part in self._others:
            found = joined_matches(found, part.match_batch(events))
        return found

    def match_pairs(self, pairs: bytes) -> np.ndarray:
        """Return the clauses that hold for one event, if the index has a way for single ones."""
        found: np.ndarray = self._first.match_pairs(pairs)  # type: ignore[attr-defined]
        for part in self._others:
            more: np.ndarray = part.match_pairs(pairs)  # type: ignore[attr-defined]
            if len(more):
                found = np.concatenate((found, more)) if len(found) else more
        return found

    def configure(self, **options: Any) -> None:
        """Set options again, after opening."""
        plain: Any = self.by_kind.get(_PLAIN)
        if isinstance(plain, Configurable):
            plain.configure(**options)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays, to be saved and mapped."""
        return {
            f"{kind}_{name}": array
            for kind, part in self.by_kind.items()
            for name, array in part.arrays().items()
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> MixedIndex:
        """Raise an error: `open_index` knows which index to open."""
        raise NotImplementedError

    def stats(self) -> IndexStats:
        """Return figures of all."""
        return IndexStats(
            *map(sum, zip(*(part.stats() for part in self.by_kind.values()), strict=True))
        )

    def parts(self) -> list[tuple[str, IndexStats, dict[str, float]]]:
        """Return the name and figures of each structure, as `Combined` has them."""
        found: list[tuple[str, IndexStats, dict[str, float]]] = []
        for part in self.by_kind.values():
            found += part.parts() if isinstance(part, Combined) else [(part.name, part.stats(), {})]
        return found


def _divided(
    index_class: type[Index], table: ConjunctionTable
) -> dict[str, tuple[type[Index], ConjunctionTable]]:
    """Return the kinds of clauses that a table has, each with the index that takes it."""
    rest, nested = divide_nested(table)
    takes_lists = getattr(index_class, "takes_lists", False)
    plain, lists = (rest, empty_table()) if takes_lists else divide(rest)
    kinds: dict[str, tuple[type[Index], ConjunctionTable]] = {
        _PLAIN: (index_class, plain),
        _LISTS: (ListIndex, lists),
        _NESTED: (NestedIndex, nested),
    }
    return {kind: own for kind, own in kinds.items() if own[1].n_clauses}


def build_index(
    index_class: type[Index],
    table: ConjunctionTable,
    statistics: Statistics | None = None,
    **options: Any,
) -> Index:
    """Build an index of all clauses of a table."""
    if not table.has_lists:
        return index_class.build(table, statistics, **options)
    divided = _divided(index_class, table)
    parts = {
        kind: own.build(clauses, statistics, **(options if kind == _PLAIN else {}))
        for kind, (own, clauses) in divided.items()
    }
    return parts[_PLAIN] if list(parts) == [_PLAIN] else MixedIndex(index_class, parts)


def open_index(index_class: type[Index], arrays: dict[str, np.ndarray]) -> Index:
    """Return an index that `build_index` made and that was saved."""
    kinds: dict[str, type[Index]] = {_PLAIN: index_class, _LISTS: ListIndex, _NESTED: NestedIndex}
    divided: dict[str, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        kind, _, own_name = name.partition("_")
        divided.setdefault(kind, {})[own_name] = array
    if not divided or not divided.keys() <= kinds.keys():
        return index_class.from_arrays(arrays)
    parts = {kind: own.from_arrays(divided[kind]) for kind, own in kinds.items() if kind in divided}
    return MixedIndex(index_class, parts)


def parts_of(built: Index, table: ConjunctionTable) -> list[tuple[Index, ConjunctionTable]]:
    """Return the indexes that a built one consists of, each with its clauses of the table."""
    if not isinstance(built, MixedIndex):
        return [(built, table)]
    rest, nested = divide_nested(table)
    plain, lists = divide(rest) if _LISTS in built.by_kind else (rest, empty_table())
    tables = {_PLAIN: plain, _LISTS: lists, _NESTED: nested}
    return [(part, tables[kind]) for kind, part in built.by_kind.items()]


def match_intervals(built: Index, table: ConjunctionTable, events: IntervalEvents) -> ClauseMatches:
    """Return the clauses of an index that events of intervals can satisfy; `table` has them."""
    found: ClauseMatches | None = None
    for part, clauses in parts_of(built, table):
        if isinstance(part, IntervalIndex):
            own = part.match_intervals(events)
        else:
            own = scan_intervals(clauses, events)
        found = own if found is None else joined_matches(found, own)
    assert found is not None
    return found
