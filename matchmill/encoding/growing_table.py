"""A ConjunctionTable that grows at its end, as a value: an addition makes another one.

The two share their memory (`flat_dictionary.Growable`), so an addition costs what is added, whoever
has the older one sees nothing of it, and one that is given up needs no undoing.
"""

from __future__ import annotations

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable, used_quantifiers
from matchmill.encoding.flat_dictionary import Growable

__all__ = ["GrowingTable", "clauses_from"]


class GrowingTable:
    """Clauses, ascending by id, to which others with larger ids are added."""

    __slots__ = ("_columns", "table")

    def __init__(self, columns: tuple[Growable, ...]) -> None:
        self._columns = columns
        self.table = ConjunctionTable(*(column.array for column in columns))

    @classmethod
    def of(cls, table: ConjunctionTable) -> GrowingTable:
        """Begin with the clauses of a table, whose arrays nobody else may write to."""
        return cls(tuple(Growable(array.dtype, array) for array in table))

    def extended(self, more: ConjunctionTable) -> GrowingTable:
        """Return a table with these clauses at the end."""
        table = self.table
        n_predicates, n_intervals = len(table.dimensions), len(table.lows)
        columns = self._columns
        if more.has_lists and not table.has_lists:
            columns = (*columns[:-1], Growable(np.uint8, np.zeros(n_predicates, np.uint8)))
        has_lists = more.has_lists or table.has_lists
        added = (
            more.clause_ids,
            more.clause_offsets[1:] + n_predicates,
            more.dimensions,
            more.interval_offsets[1:] + n_intervals,
            more.lows,
            more.highs,
            more.all_quantifiers() if has_lists else more.quantifiers,
        )
        return GrowingTable(
            tuple(column.extended(a) for column, a in zip(columns, added, strict=True))
        )


def clauses_from(table: ConjunctionTable, start: int) -> ConjunctionTable:
    """Return the clauses of a table from a position on."""
    predicates = table.clause_offsets[start:]
    first = predicates[0]
    intervals = table.interval_offsets[first:]
    return ConjunctionTable(
        table.clause_ids[start:],
        predicates - first,
        table.dimensions[first:],
        intervals - intervals[0],
        table.lows[intervals[0] :],
        table.highs[intervals[0] :],
        used_quantifiers(table.quantifiers[first:]),
    )
