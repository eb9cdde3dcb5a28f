"""Clauses of value sets become a ConjunctionTable of key intervals.

There are two passes. The first walks the clauses and gives every distinct cut point a *slot*; it
writes each interval bound as (slot, adjustment) or as a fixed key. The second adds the cut points
of each dimension at once, and fills the bounds from the labels:

    edge before v, as a lower bound    label         as an upper bound    label - 1
    edge after v                       label + 1                          label
    start of a region r                START_KEYS[r]                      LAST_KEYS[r]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from matchmill.encoding.conjunction_table import (
    DEEPEST_JOIN,
    JOIN_SHIFT,
    NONE,
    ONE_KEY,
    SOME,
    ConjunctionTable,
    used_quantifiers,
)
from matchmill.encoding.cut_points import (
    Relabelling,
    region_ceiling,
    region_floor,
    sorted_places,
)
from matchmill.encoding.dimensions import (
    LAST_KEYS,
    OBJECT_KEY,
    START_KEYS,
    TRUE_KEY,
    Dimensions,
)
from matchmill.kernels.csr import offsets_of
from matchmill.language.expression import Compare
from matchmill.language.normal_form import (
    AnyOf,
    Clause,
    Dimension,
    NoneOf,
    Some,
    Subject,
    dimension_of,
)
from matchmill.language.value_set import Edge, ValueSet
from matchmill.language.values import Domain, Region

__all__ = [
    "AddedCuts",
    "ClauseEncoder",
    "Condition",
    "Encoded",
    "encode_clauses",
    "relabel_table",
    "relabelled",
]

_FIXED = -1
_QUANTIFIERS: dict[type, int] = {Some: SOME, NoneOf: NONE}

# A dimension, for each interval slot and adjustment of its lower and its upper bound, a quantifier
# (in a nested clause with its join).
Condition: TypeAlias = tuple[int, tuple[tuple[int, int, int, int], ...], int]


def _is_any_of(item: tuple[Subject, ValueSet]) -> bool:
    return isinstance(item[0], AnyOf)


class Encoded(NamedTuple):
    """A table, its dimensions, and the relabellings that older tables need."""

    dimensions: Dimensions
    table: ConjunctionTable
    relabellings: dict[int, list[Relabelling]]


class AddedCuts:
    """Dimensions that cut points are added to. Where labels have to change, in a copy of them."""

    def __init__(self, dimensions: Dimensions) -> None:
        self.dimensions = dimensions
        self.relabellings: dict[int, list[Relabelling]] = {}

    def add(self, dimension_id: int, region: int, places: Any) -> np.ndarray:
        """Add a run of cut points, ascending and distinct; return the labels of all of them."""
        table = self.dimensions.table(dimension_id, region)
        wider, labels, relabelling = table.with_labels(places)
        if relabelling is not None:
            if not self.relabellings:
                self.dimensions = self.dimensions.copy()
            self.relabellings.setdefault(dimension_id, []).append(relabelling)
        if wider is not table:
            self.dimensions.set_table(dimension_id, wider)
        return labels


def encode_clauses(
    dimensions: Dimensions, clauses: Sequence[Clause], clause_ids: np.ndarray
) -> Encoded:
    """Return the table of some clauses."""
    encoder = ClauseEncoder(dimensions)
    encoder.add(clauses)
    return encoder.finish(clause_ids)


class ClauseEncoder:
    """Takes clauses one by one, so that a million of them are never in memory as objects."""

    def __init__(self, dimensions: Dimensions) -> None:
        self._dimensions = dimensions
        self._slots: dict[tuple[int, int], dict[Domain, int]] = {}
        self._n_slots = 0
        self._numbers: dict[str, int] = {}  # attribute → dimension of its value
        self._n_predicates: list[int] = []
        self._quantifiers: list[int] = []
        self._predicate_dimensions: list[int] = []
        self._n_intervals: list[int] = []
        self._bounds: list[tuple[int, int, int, int]] = []
        self._chunks: list[tuple[np.ndarray, ...]] = []

    def add(self, clauses: Iterable[Clause]) -> None:
        """Append clauses."""
        for clause in clauses:
            if any(isinstance(subject, AnyOf) for subject in clause):
                self._add_nested(clause)
            else:
                self.add_conditions([self.condition(s, values) for s, values in clause.items()])

    def _add_nested(self, clause: Clause) -> None:
        """Append a nested clause: conditions first, as few of them decide for many events."""
        leaves: list[Condition] = []
        self._add_leaves(leaves, clause.items(), 0, 0)
        self._n_predicates.append(len(leaves))
        self._append(leaves)

    def _add_leaves(
        self,
        leaves: list[Condition],
        items: Iterable[tuple[Subject, ValueSet]],
        depth: int,
        join: int,
    ) -> None:
        """Append the leaves of an `and` at a depth; the first meets what is before it at `join`."""
        assert depth <= DEEPEST_JOIN, "normal forms are not that high"
        for subject, values in sorted(items, key=_is_any_of):
            if isinstance(subject, AnyOf):
                for alternative in subject.alternatives:
                    self._add_leaves(leaves, alternative, depth + 2, join)
                    join = depth + 1
            else:
                number, bounds, quantifier = self.condition(subject, values)
                leaves.append((number, bounds, quantifier | join << JOIN_SHIFT))
            join = depth

    def add_disjunctions(self, groups: Iterable[Sequence[Compare]]) -> None:
        """Append the clause that one comparison of each group holds; see `disjunctions_of`.

        `add` makes the same of its normal form, in several times as long.
        """
        leaves: list[Condition] = []
        for group in groups:
            join = 0
            for comparison in group:
                number, bounds = self._comparison(comparison)
                leaves.append((number, bounds, join))
                join = 1 << JOIN_SHIFT
        self._n_predicates.append(len(leaves))
        self._append(leaves)

    def _comparison(self, comparison: Compare) -> tuple[int, tuple[tuple[int, int, int, int], ...]]:
        """Return the dimension of a comparison, and its intervals."""
        number = self._numbers.get(comparison.name)
        if number is None:
            number = self._dimensions.id_of(Dimension(comparison.name))
            self._numbers[comparison.name] = number
        value: Any = comparison.value
        region = Region.STRING if type(value) is str else Region.NUMBER
        if type(value) is float and value.is_integer() and -(2.0**63) <= value < 2.0**63:
            value = int(value)  # 3.0 and 3 are one value
        slot = self._slot(number, (region, value, 0))
        first, last = START_KEYS[region], LAST_KEYS[region + 1]
        op = comparison.op
        if op == "=":
            return number, ((slot, 0, slot, 0),)
        if op == "!=":
            return number, ((_FIXED, first, slot, -1), (slot, 1, _FIXED, last))
        if op == "<" or op == "<=":
            return number, ((_FIXED, first, slot, -1 if op == "<" else 0),)
        return number, ((slot, 1 if op == ">" else 0, _FIXED, last),)

    def condition(self, subject: Subject, values: ValueSet) -> Condition:
        """Return what `add_conditions` takes; it can be used any number of times."""
        number, edges = self._dimensions.id_of(dimension_of(subject)), values.edges
        bounds = tuple(
            (*self._low(number, edges[k]), *self._high(number, edges[k + 1]))
            for k in range(0, len(edges), 2)
        )
        return number, bounds, _QUANTIFIERS.get(type(subject), ONE_KEY)

    def add_conditions(self, conditions: list[Condition]) -> None:
        """Append a clause of conditions, no two of which are on one dimension of one value."""
        self._n_predicates.append(len(conditions))
        if len(conditions) > 1:
            conditions.sort()
        self._append(conditions)

    def _append(self, conditions: list[Condition]) -> None:
        for dimension_id, bounds, quantifier in conditions:
            self._predicate_dimensions.append(dimension_id)
            self._quantifiers.append(quantifier)
            self._n_intervals.append(len(bounds))
            self._bounds += bounds
        if len(self._bounds) > 200_000:
            self._pack()

    def _low(self, dimension_id: int, edge: Edge) -> tuple[int, int]:
        if len(edge) == 1:
            return _FIXED, START_KEYS[edge[0]]
        if edge[0] == Region.BOOLEAN:
            return _FIXED, TRUE_KEY
        if edge[0] == Region.LIST:
            return _FIXED, OBJECT_KEY
        return self._slot(dimension_id, edge), edge[2]

    def _high(self, dimension_id: int, edge: Edge) -> tuple[int, int]:
        if len(edge) == 1:
            return _FIXED, LAST_KEYS[edge[0]]
        if edge[0] == Region.BOOLEAN:
            return _FIXED, TRUE_KEY - 1
        if edge[0] == Region.LIST:
            return _FIXED, OBJECT_KEY - 1
        return self._slot(dimension_id, edge), edge[2] - 1

    def _slot(self, dimension_id: int, edge: Edge) -> int:
        place = (dimension_id, edge[0])
        slots = self._slots.get(place)
        if slots is None:
            slots = self._slots[place] = {}
        slot = slots.get(edge[1])
        if slot is None:
            slot = slots[edge[1]] = self._n_slots
            self._n_slots += 1
        return slot

    def _pack(self) -> None:
        """Turn the lists gathered so far into arrays."""
        self._chunks.append(
            (
                np.array(self._n_predicates, np.int32),
                np.array(self._predicate_dimensions, np.int32),
                np.array(self._n_intervals, np.int32),
                np.array(self._bounds, np.int64).reshape(-1, 4),
                np.array(self._quantifiers, np.uint8),
            )
        )
        self._n_predicates, self._predicate_dimensions = [], []
        self._n_intervals, self._bounds, self._quantifiers = [], [], []

    def finish(self, clause_ids: np.ndarray, cuts: AddedCuts | None = None) -> Encoded:
        """Add the cut points to the dimensions and resolve all bounds.

        `cuts` has the dimensions that others have added cut points to before.
        """
        self._pack()
        columns = list(zip(*self._chunks, strict=True))
        n_predicates, predicate_dimensions, n_intervals, bounds, quantifiers = map(
            np.concatenate, columns
        )
        cuts = AddedCuts(self._dimensions) if cuts is None else cuts
        labels = self._resolve(cuts)
        table = ConjunctionTable(
            clause_ids.astype(np.int64, copy=False),
            offsets_of(n_predicates),
            predicate_dimensions,
            offsets_of(n_intervals),
            labels[bounds[:, 0]] + bounds[:, 1],
            labels[bounds[:, 2]] + bounds[:, 3],
            used_quantifiers(quantifiers),
        )
        return Encoded(cuts.dimensions, table, cuts.relabellings)

    def _resolve(self, cuts: AddedCuts) -> np.ndarray:
        """Return the label of each slot."""
        labels = np.zeros(self._n_slots + 1, np.int64)  # the last one is for fixed bounds
        for (dimension_id, region), slots in self._slots.items():
            places, at = sorted_places(region, list(slots))
            found = cuts.add(dimension_id, region, places)
            labels[np.fromiter(slots.values(), np.int64, len(slots))] = found[at]
        return labels


def relabel_table(
    table: ConjunctionTable, relabellings: dict[int, list[Relabelling]]
) -> ConjunctionTable:
    """Return the same clauses in new labels. A low bound is L or L + 1, a high one L or L - 1."""
    per_interval = np.repeat(table.dimensions, np.diff(table.interval_offsets))
    lows, highs = table.lows.copy(), table.highs.copy()
    for dimension_id, changes in relabellings.items():
        on_dimension = per_interval == dimension_id
        for change in changes:
            lows[on_dimension] = relabelled(lows[on_dimension], change, is_low=True)
            highs[on_dimension] = relabelled(highs[on_dimension], change, is_low=False)
    return table._replace(lows=lows, highs=highs)


def relabelled(bounds: np.ndarray, change: Relabelling, *, is_low: bool) -> np.ndarray:
    """Return the bounds with those inside the region of a relabelling in its new labels."""
    inside = (bounds > region_floor(change.region)) & (bounds < region_ceiling(change.region))
    old = bounds[inside]
    if is_low:  # the label at or just below
        at = np.searchsorted(change.old, old, side="right") - 1
    else:  # the label at or just above
        at = np.searchsorted(change.old, old, side="left")
    out = bounds.copy()
    out[inside] = change.new[at] + (old - change.old[at])
    return out
