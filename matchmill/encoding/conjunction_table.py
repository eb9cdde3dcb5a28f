"""The one input of every index: clauses in flat arrays.

    clause i       clause_ids[i]; its predicates are clause_offsets[i] … clause_offsets[i + 1]
    predicate p    dimensions[p]; its intervals are interval_offsets[p] … interval_offsets[p + 1]
    interval k     lows[k] <= key <= highs[k]

A clause holds if each of its predicates does; a predicate holds if one of its intervals has the
event's key on that dimension. An event without the dimension has key 0 there, so a predicate that
accepts 0 accepts absence. A clause without predicates always holds. Inside a clause dimensions
ascend and occur once; inside a predicate intervals ascend and do not touch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from matchmill.kernels.csr import take_ranges
from matchmill.kernels.jit import kernel

__all__ = [
    "ABSENT_KEY",
    "ConjunctionTable",
    "clause_holds",
    "concatenate",
    "empty_table",
    "take_clauses",
]

ABSENT_KEY = 0


class ConjunctionTable(NamedTuple):
    """Clauses in flat arrays."""

    clause_ids: np.ndarray  # int64
    clause_offsets: np.ndarray  # int64
    dimensions: np.ndarray  # int32
    interval_offsets: np.ndarray  # int64
    lows: np.ndarray  # int64
    highs: np.ndarray  # int64

    @property
    def n_clauses(self) -> int:
        """The number of clauses."""
        return len(self.clause_ids)

    @property
    def n_predicates(self) -> int:
        """The number of predicates of all clauses."""
        return len(self.dimensions)

    @property
    def n_dimensions(self) -> int:
        """One more than the largest dimension used."""
        return int(self.dimensions.max()) + 1 if len(self.dimensions) else 0

    @property
    def n_bytes(self) -> int:
        """The bytes of all arrays."""
        return sum(a.nbytes for a in self)


def empty_table() -> ConjunctionTable:
    """Return a table without clauses."""
    none = np.empty(0, np.int64)
    return ConjunctionTable(
        none, np.zeros(1, np.int64), np.empty(0, np.int32), np.zeros(1, np.int64), none, none
    )


def concatenate(tables: Sequence[ConjunctionTable]) -> ConjunctionTable:
    """Return the clauses of several tables, one table after the other."""
    if len(tables) == 1:
        return tables[0]
    if not tables:
        return empty_table()
    return ConjunctionTable(
        np.concatenate([t.clause_ids for t in tables]),
        _joined_offsets([t.clause_offsets for t in tables]),
        np.concatenate([t.dimensions for t in tables]),
        _joined_offsets([t.interval_offsets for t in tables]),
        np.concatenate([t.lows for t in tables]),
        np.concatenate([t.highs for t in tables]),
    )


def _joined_offsets(offsets: list[np.ndarray]) -> np.ndarray:
    parts = [np.zeros(1, np.int64)]
    total = 0
    for o in offsets:
        parts.append(o[1:] + total)
        total += int(o[-1])
    return np.concatenate(parts)


def take_clauses(table: ConjunctionTable, rows: np.ndarray) -> ConjunctionTable:
    """Return some clauses, by their positions."""
    clause_offsets, predicates = take_ranges(table.clause_offsets, rows)
    interval_offsets, intervals = take_ranges(table.interval_offsets, predicates)
    return ConjunctionTable(
        table.clause_ids[rows],
        clause_offsets,
        table.dimensions[predicates],
        interval_offsets,
        table.lows[intervals],
        table.highs[intervals],
    )


@kernel
def clause_holds(table: ConjunctionTable, i: int, keys: np.ndarray) -> bool:
    """Whether clause i holds for an event given as one key per dimension (0 for absent)."""
    for p in range(table.clause_offsets[i], table.clause_offsets[i + 1]):
        key = keys[table.dimensions[p]]
        inside = False
        for k in range(table.interval_offsets[p], table.interval_offsets[p + 1]):
            if table.lows[k] <= key <= table.highs[k]:
                inside = True
                break
        if not inside:
            return False
    return True
