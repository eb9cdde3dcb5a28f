"""The one input of every index: clauses in flat arrays.

    clause i       clause_ids[i]; its predicates are clause_offsets[i] … clause_offsets[i + 1]
    predicate p    dimensions[p]; its intervals are interval_offsets[p] … interval_offsets[p + 1]
    interval k     lows[k] <= key <= highs[k]

A clause holds if each of its predicates does; a predicate holds if one of its intervals has the
event's key on that dimension. An event without the dimension has key 0 there, so a predicate that
accepts 0 accepts absence. A clause without predicates always holds. Inside a clause dimensions
ascend and occur once; inside a predicate intervals ascend and do not touch.

On a *multi-valued* dimension an event has any number of keys, also none. A predicate there has a
quantifier: `SOME` holds if one of its intervals has some key of the event, `NONE` if none of them
has any. Such a dimension may occur several times in a clause:

    tags contains all ('a', 'b')     each(tags) SOME [a, a]     each(tags) SOME [b, b]
    tags contains none ('a', 'b')    value(tags) [list]         each(tags) NONE [a, a] [b, b]

A *nested* clause is a tree of `and` and `or` over its predicates, as in

    a = 1 and (b = 2 or c > 3)       a [1, 1]     b [2, 2]     c (3, …]
    join                             0            0            1

Each predicate has a *join*: how deep in the tree it meets the predicate before it, at an `and` (an
even number) or at an `or` (an odd one). A clause all of whose joins are 0 is a conjunction. The
dimensions of a nested clause are in the order of its parts, and may occur several times.

`quantifiers` has both: quantifier | join << 2. A table whose predicates have neither has no
quantifiers: the array is empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from matchmill.kernels.csr import offsets_of, take_ranges
from matchmill.kernels.jit import kernel

__all__ = [
    "ABSENT_KEY",
    "DEEPEST_JOIN",
    "JOIN_SHIFT",
    "NONE",
    "NO_QUANTIFIERS",
    "ONE_KEY",
    "QUANTIFIER_BITS",
    "SOME",
    "ConjunctionTable",
    "chain_keys",
    "clause_holds",
    "concatenate",
    "divide",
    "divide_nested",
    "empty_table",
    "is_nested",
    "joins_of",
    "list_clause_holds",
    "quantifiers_of",
    "take_clauses",
    "take_predicates",
    "used_quantifiers",
    "without_joins",
]

ABSENT_KEY = 0
ONE_KEY, SOME, NONE = 0, 1, 2
NO_QUANTIFIERS = np.empty(0, np.uint8)
QUANTIFIER_BITS, JOIN_SHIFT, DEEPEST_JOIN = 3, 2, 63  # a join is above a quantifier


class ConjunctionTable(NamedTuple):
    """Clauses in flat arrays."""

    clause_ids: np.ndarray  # int64
    clause_offsets: np.ndarray  # int64
    dimensions: np.ndarray  # int32
    interval_offsets: np.ndarray  # int64
    lows: np.ndarray  # int64
    highs: np.ndarray  # int64
    quantifiers: np.ndarray = NO_QUANTIFIERS  # uint8 per predicate, with joins; empty if all are 0

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

    @property
    def has_lists(self) -> bool:
        """Whether some predicate is on a multi-valued dimension, or some clause is nested."""
        return len(self.quantifiers) > 0

    def all_quantifiers(self) -> np.ndarray:
        """Return the quantifier of each predicate, with its join."""
        return self.quantifiers if self.has_lists else np.zeros(self.n_predicates, np.uint8)


def used_quantifiers(quantifiers: np.ndarray) -> np.ndarray:
    """Return quantifiers as a table has them: nothing if all are ONE_KEY, without joins."""
    return quantifiers if quantifiers.any() else NO_QUANTIFIERS


def quantifiers_of(table: ConjunctionTable) -> np.ndarray:
    """Return the quantifier of each predicate, without its join."""
    return table.all_quantifiers() & QUANTIFIER_BITS


def joins_of(table: ConjunctionTable) -> np.ndarray:
    """Return the join of each predicate."""
    return table.all_quantifiers() >> JOIN_SHIFT


def is_nested(table: ConjunctionTable) -> np.ndarray:
    """Return which clauses are nested."""
    n_joined = offsets_of(joins_of(table) > 0)[table.clause_offsets]
    return np.asarray(n_joined[1:] > n_joined[:-1])


def without_joins(table: ConjunctionTable) -> ConjunctionTable:
    """Return the same predicates as clauses that are not nested."""
    if not table.has_lists:
        return table
    return table._replace(quantifiers=used_quantifiers(quantifiers_of(table)))


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
        np.concatenate([t.all_quantifiers() for t in tables])
        if any(t.has_lists for t in tables)
        else NO_QUANTIFIERS,
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
    taken = take_predicates(table, predicates)
    return taken._replace(clause_ids=table.clause_ids[rows], clause_offsets=clause_offsets)


def take_predicates(table: ConjunctionTable, predicates: np.ndarray) -> ConjunctionTable:
    """Return some predicates, by their positions, each as a clause by itself."""
    interval_offsets, intervals = take_ranges(table.interval_offsets, predicates)
    return ConjunctionTable(
        np.arange(len(predicates)),
        np.arange(len(predicates) + 1),
        table.dimensions[predicates],
        interval_offsets,
        table.lows[intervals],
        table.highs[intervals],
        used_quantifiers(table.quantifiers[predicates]) if table.has_lists else NO_QUANTIFIERS,
    )


def divide(table: ConjunctionTable) -> tuple[ConjunctionTable, ConjunctionTable]:
    """Return the plain clauses; and those that are nested or have multi-valued dimensions."""
    if not table.has_lists:
        return table, empty_table()
    n_quantified = offsets_of(table.quantifiers != ONE_KEY)[table.clause_offsets]
    has_some = n_quantified[1:] > n_quantified[:-1]
    if has_some.all():
        return empty_table(), table
    plain, lists = np.flatnonzero(~has_some), np.flatnonzero(has_some)
    return take_clauses(table, plain), take_clauses(table, lists)


def divide_nested(table: ConjunctionTable) -> tuple[ConjunctionTable, ConjunctionTable]:
    """Return the clauses that are not nested, and those that are."""
    if not table.has_lists:
        return table, empty_table()
    nested = is_nested(table)
    if not nested.any():
        return table, empty_table()
    return take_clauses(table, np.flatnonzero(~nested)), take_clauses(table, np.flatnonzero(nested))


@kernel
def clause_holds(table: ConjunctionTable, i: int, keys: np.ndarray) -> bool:
    """Whether clause i holds for an event given as one key per dimension (0 for absent).

    It has no predicate on a multi-valued dimension.
    """
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


@kernel
def chain_keys(
    dimensions: np.ndarray,
    start: int,
    stop: int,
    out_last: np.ndarray,
    out_earlier: np.ndarray,
) -> None:
    """Chain the pairs of each dimension of an event: the last one, and which came before each.

    `out_last` is -1 for all dimensions; those beyond it are left out. `out_earlier` has room for
    the pairs, the first of which has place 0.
    """
    for k in range(start, stop):
        if dimensions[k] < len(out_last):
            out_earlier[k - start] = out_last[dimensions[k]]
            out_last[dimensions[k]] = k - start


@kernel
def list_clause_holds(
    table: ConjunctionTable,
    i: int,
    keys: np.ndarray,
    start: int,
    last: np.ndarray,
    earlier: np.ndarray,
    absent: int,
) -> bool:
    """Whether clause i, of a table with quantifiers, holds for an event as `chain_keys` has it.

    It is not nested.

    `keys` begin at `start`; `absent` is the key where an event has none.
    """
    for p in range(table.clause_offsets[i], table.clause_offsets[i + 1]):
        quantifier = table.quantifiers[p]
        at = last[table.dimensions[p]]
        inside = False
        while True:
            if at >= 0:
                key = keys[start + at]
            elif quantifier == ONE_KEY:
                key = absent
            else:
                break
            for k in range(table.interval_offsets[p], table.interval_offsets[p + 1]):
                if table.lows[k] <= key <= table.highs[k]:
                    inside = True
                    break
            if inside or quantifier == ONE_KEY:
                break
            at = earlier[at]
        if inside == (quantifier == NONE):
            return False
    return True
