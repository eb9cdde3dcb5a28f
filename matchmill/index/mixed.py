"""Any index for tables with multi-valued dimensions: its own clauses, and beside it those.

    table ─┬─► clauses without multi-valued dimensions ─► the index that was asked for
           └─► clauses with some                       ─► `lists`

An index that takes all clauses by itself says `takes_lists: ClassVar[bool] = True`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable, divide
from matchmill.encoding.event_batch import EventBatch, IntervalEvents
from matchmill.index.base import ClauseMatches, Configurable, Index, IndexStats, Statistics
from matchmill.index.interval_scan import IntervalIndex, scan_intervals
from matchmill.index.joined_matches import joined_matches
from matchmill.index.lists import ListIndex

__all__ = ["MixedIndex", "build_index", "match_intervals", "open_index", "parts_of"]

_PLAIN, _LISTS = "plain_", "lists_"


class MixedIndex:
    """An index, and the index of lists for the clauses that it does not take."""

    name: ClassVar[str] = "mixed"

    def __init__(self, plain: Index, lists: ListIndex) -> None:
        self.plain = plain
        self.lists = lists
        self.name = plain.name  # type: ignore[misc]

    @classmethod
    def build(
        cls, table: ConjunctionTable, statistics: Statistics | None = None, **options: Any
    ) -> MixedIndex:
        """Raise an error: `build_index` knows which index to build."""
        raise NotImplementedError

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Return the clauses that hold for each event."""
        return joined_matches(self.plain.match_batch(events), self.lists.match_batch(events))

    def match_pairs(self, pairs: bytes) -> np.ndarray:
        """Return the clauses that hold for one event, if the index has a way for single ones."""
        plain: np.ndarray = self.plain.match_pairs(pairs)  # type: ignore[attr-defined]
        lists = self.lists.match_pairs(pairs)
        return np.concatenate((plain, lists)) if len(plain) else lists

    def configure(self, **options: Any) -> None:
        """Set options again, after opening."""
        if isinstance(self.plain, Configurable):
            self.plain.configure(**options)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays, to be saved and mapped."""
        plain = {_PLAIN + name: array for name, array in self.plain.arrays().items()}
        return plain | {_LISTS + name: array for name, array in self.lists.arrays().items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> MixedIndex:
        """Raise an error: `open_index` knows which index to open."""
        raise NotImplementedError

    def stats(self) -> IndexStats:
        """Return figures of both."""
        return self.plain.stats().plus(self.lists.stats())


def build_index(
    index_class: type[Index],
    table: ConjunctionTable,
    statistics: Statistics | None = None,
    **options: Any,
) -> Index:
    """Build an index of all clauses of a table."""
    if not table.has_lists or getattr(index_class, "takes_lists", False):
        return index_class.build(table, statistics, **options)
    plain, lists = divide(table)
    return MixedIndex(
        index_class.build(plain, statistics, **options), ListIndex.build(lists, statistics)
    )


def open_index(index_class: type[Index], arrays: dict[str, np.ndarray]) -> Index:
    """Return an index that `build_index` made and that was saved."""
    if not any(name.startswith(_LISTS) for name in arrays) or (
        getattr(index_class, "takes_lists", False)
    ):
        return index_class.from_arrays(arrays)
    plain, lists = (
        {name.removeprefix(part): a for name, a in arrays.items() if name.startswith(part)}
        for part in (_PLAIN, _LISTS)
    )
    return MixedIndex(index_class.from_arrays(plain), ListIndex.from_arrays(lists))


def parts_of(built: Index, table: ConjunctionTable) -> list[tuple[Index, ConjunctionTable]]:
    """Return the indexes that a built one consists of, each with its clauses of the table."""
    if not isinstance(built, MixedIndex):
        return [(built, table)]
    plain, lists = divide(table)
    return [(built.plain, plain), (built.lists, lists)]


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
