"""The alerts and flights of the demo as a flat workload.

    tailnum like 'N1%' and dep_delay > 20         the text of an alert
      →  tailnum: ['N1', 'N2')  dep_delay: (20, …   clauses of value sets (language.normal_form)
      →  attribute 7: codes 12 … 96                 the values of an attribute, numbered

The values of an attribute are those of the flights taken, and for each cut point of an alert the
values next to it, so that an interval of values is an interval of codes. What no alert names is
not part of the events. A suffix (`tailnum like '%AA'`) is a prefix of the reversed text; that is an
attribute of its own, "tailnum reversed", in the events as well. So matches are exactly those of an
engine that is given the alerts and the flights.

A clause that no value can satisfy is left out, and a subscription without a clause has none.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from matchmill.errors import InputError
from matchmill.lab.workloads.datasets import row_offsets, split_rows
from matchmill.lab.workloads.flat import FlatEvents, FlatSubscriptions, TextDomain, Workload
from matchmill.lab.workloads.flight_alerts import flight_alerts, load_flights
from matchmill.lab.workloads.parameters import read_parameters
from matchmill.lab.workloads.spec import WorkloadSpec
from matchmill.language.normal_form import Dimension, normalize
from matchmill.language.parser import parse
from matchmill.language.value_set import Edge, ValueSet
from matchmill.language.values import Region

__all__ = ["flights"]

_MAX_CLAUSES = 4096  # far beyond any alert, so that clauses are exact


def flights(spec: WorkloadSpec) -> Workload:
    """Make the workload "flights": `flight_alerts` of the seed, and flights drawn at random."""
    read_parameters(spec, {})
    clauses = _read_alerts(text for _, text in flight_alerts(spec.n_subscriptions, spec.seed))
    table = load_flights()
    measured, training = split_rows(spec, table.num_rows, "flights")
    taken = table.take(pa.array(np.concatenate([measured, training])))
    columns = [_column(taken, dimension) for dimension in clauses.dimensions]
    values = [
        _values(column, sets) for column, sets in zip(columns, clauses.value_sets, strict=True)
    ]
    domain = TextDomain([_name(dimension) for dimension in clauses.dimensions], values)
    coded = _code_columns(columns, values, taken.num_rows)
    return Workload(
        spec,
        domain,
        _code_clauses(clauses, values),
        _events(coded[: len(measured)]),
        _events(coded[len(measured) :]),
    )


def _name(dimension: Dimension) -> str:
    derived = "" if dimension.derivation == "value" else f" {dimension.derivation}"
    return dimension.attribute + derived


# -- alerts ---------------------------------------------------------------------------------------


class _Clauses(NamedTuple):
    """Clauses of numbers: predicate p of a clause is one of the distinct sets on one dimension."""

    owners: list[int]
    offsets: list[int]
    predicate_dimensions: list[int]  # ascending inside a clause
    predicate_sets: list[int]  # place in value_sets[dimension]
    dimensions: list[Dimension]
    value_sets: list[list[ValueSet]]


def _read_alerts(texts: Iterable[str]) -> _Clauses:
    numbers: dict[Dimension, dict[ValueSet, int]] = {}
    owners: list[int] = []
    clauses: list[list[tuple[Dimension, int]]] = []
    for owner, text in enumerate(texts):
        form = normalize(parse(text), _MAX_CLAUSES)
        assert form.exact
        for clause in form.clauses:
            owners.append(owner)
            predicates = []
            for dimension, values in clause.items():
                assert isinstance(dimension, Dimension)  # alerts do not ask for lists
                known = numbers.setdefault(dimension, {})
                predicates.append((dimension, known.setdefault(values, len(known))))
            clauses.append(predicates)
    dimensions = sorted(numbers)
    place = {dimension: i for i, dimension in enumerate(dimensions)}
    flat = [sorted((place[d], number) for d, number in clause) for clause in clauses]
    return _Clauses(
        owners,
        np.cumsum([0, *map(len, flat)]).tolist(),
        [dimension for clause in flat for dimension, _ in clause],
        [number for clause in flat for _, number in clause],
        dimensions,
        [list(numbers[dimension]) for dimension in dimensions],
    )


# -- values ---------------------------------------------------------------------------------------


def _column(table: pa.Table, dimension: Dimension) -> list[Any]:
    """Return a flight's values of a dimension; None for absent."""
    if dimension.attribute not in table.column_names:
        raise InputError(f"flights have no column {dimension.attribute!r}")
    column: list[Any] = table[dimension.attribute].to_pylist()
    if dimension.derivation == "value":
        return column
    if dimension.derivation == "reversed":
        return [None if text is None else text[::-1] for text in column]
    raise InputError(f"alerts on flights do not use {dimension.derivation!r} of an attribute")


def _values(column: list[Any], sets: list[ValueSet]) -> list[Any]:
    """Return what occurs, and each cut point; of whole numbers both neighbours too.

    So an interval holds a value even if no flight taken has one, and its text is exact.
    """
    values = {value for value in column if value is not None}
    for _, cut, *_ in (edge for s in sets for edge in s.edges if len(edge) > 1):
        values.add(cut)
        if isinstance(cut, int):
            values |= {cut - 1, cut + 1}
    return sorted(values)


def _code_columns(columns: list[list[Any]], values: list[list[Any]], n_rows: int) -> np.ndarray:
    """Flights × attributes: codes, 0 for absent."""
    coded = np.zeros((n_rows, len(columns)), np.int64)
    for a, (column, known) in enumerate(zip(columns, values, strict=True)):
        code_of = {value: code for code, value in enumerate(known, 1)}
        code_of[None] = 0
        coded[:, a] = [code_of[value] for value in column]
    return coded


def _events(coded: np.ndarray) -> FlatEvents:
    rows, attributes = np.nonzero(coded)
    offsets = row_offsets(rows, len(coded))
    return FlatEvents(offsets, attributes.astype(np.int32), coded[rows, attributes])


# -- clauses --------------------------------------------------------------------------------------


def _code_clauses(clauses: _Clauses, values: list[list[Any]]) -> FlatSubscriptions:
    intervals = [
        [_code_intervals(values_set, known) for values_set in sets]
        for sets, known in zip(clauses.value_sets, values, strict=True)
    ]
    owners: list[int] = []
    offsets, attributes, interval_offsets = [0], list[int](), [0]
    bounds: list[tuple[int, int]] = []
    for owner, start, end in zip(
        clauses.owners, clauses.offsets, clauses.offsets[1:], strict=False
    ):
        span = slice(start, end)
        pairs = zip(clauses.predicate_dimensions[span], clauses.predicate_sets[span], strict=True)
        coded = [(attribute, intervals[attribute][number]) for attribute, number in pairs]
        if not all(found for _, found in coded):
            continue
        owners.append(owner)
        for attribute, found in coded:
            attributes.append(attribute)
            bounds += found
            interval_offsets.append(len(bounds))
        offsets.append(len(attributes))
    lows_highs = np.array(bounds, np.int64).reshape(-1, 2)
    return FlatSubscriptions(
        np.array(owners, np.int64),
        np.array(offsets, np.int64),
        np.array(attributes, np.int32),
        np.array(interval_offsets, np.int64),
        lows_highs[:, 0].copy(),
        lows_highs[:, 1].copy(),
    )


def _code_intervals(values_set: ValueSet, values: list[Any]) -> list[tuple[int, int]]:
    """Return the intervals of codes, ascending, not touching."""
    region = Region.STRING if values and isinstance(values[0], str) else Region.NUMBER
    intervals: list[tuple[int, int]] = []
    for start, end in values_set.intervals():
        low, high = _code(start, values, region), _code(end, values, region) - 1
        if intervals and intervals[-1][1] + 1 >= low:
            low = intervals.pop()[0]
        if low <= high:
            intervals.append((low, high))
    return intervals


def _code(edge: Edge, values: list[Any], region: Region) -> int:
    """Return the first code after an edge."""
    if edge[0] == region and len(edge) > 1:
        return 1 + (bisect_right if edge[2] else bisect_left)(values, edge[1])
    if edge[0] == Region.ABSENT:
        return 0
    return 1 if edge[0] <= region else len(values) + 1
