"""Workloads as flat arrays, and the same as text expressions and dicts.

    clause i       belongs to subscription owners[i]; predicates clause_offsets[i] … [i + 1]
    predicate p    attributes[p]; intervals interval_offsets[p] … interval_offsets[p + 1]
    interval k     lows[k] <= code <= highs[k]
    event e        attributes[offsets[e] … offsets[e + 1]], codes likewise

Codes are the values of an attribute, numbered 1, 2, 3, … in their order; 0 stands for absent. They
are keys already: an index takes these arrays as they are, without any encoding. Attributes ascend
and occur once inside a clause, and once inside an event; intervals ascend and do not touch.

A domain says how attributes and codes are written, so that every workload is also text and dicts
that mean exactly the same on the events of that workload.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from matchmill.lab.workloads.spec import WorkloadSpec
from matchmill.language.expression import literal_text, name_text

__all__ = [
    "Domain",
    "FlatEvents",
    "FlatSubscriptions",
    "IntegerDomain",
    "TextDomain",
    "Workload",
    "event_dicts",
    "predicate_text",
    "subscription_texts",
]


class FlatSubscriptions(NamedTuple):
    """Subscriptions as clauses, predicates and intervals."""

    owners: np.ndarray  # int64, ascending: several clauses of one subscription are a disjunction
    clause_offsets: np.ndarray  # int64
    attributes: np.ndarray  # int32
    interval_offsets: np.ndarray  # int64
    lows: np.ndarray  # int64
    highs: np.ndarray  # int64

    @property
    def n_clauses(self) -> int:
        """Number of clauses."""
        return len(self.owners)


class FlatEvents(NamedTuple):
    """Events as pairs of attributes and codes."""

    offsets: np.ndarray  # int64
    attributes: np.ndarray  # int32
    codes: np.ndarray  # int64

    @property
    def n_events(self) -> int:
        """Number of events."""
        return len(self.offsets) - 1


class Domain(Protocol):
    """How attributes and codes are written."""

    @property
    def n_attributes(self) -> int:
        """Number of attributes."""

    def name(self, attribute: int) -> str:
        """Return the name of an attribute."""

    def n_values(self, attribute: int) -> int:
        """Return how many values an attribute has."""

    def value(self, attribute: int, code: int) -> int | float | str | dt.datetime:
        """Return the value that a code stands for."""


class IntegerDomain(NamedTuple):
    """Attributes a0, a1, …, each with the integers 0 … cardinality - 1; code c is c - 1."""

    n_attributes: int
    cardinality: int

    def name(self, attribute: int) -> str:
        """Return the name of an attribute."""
        return f"a{attribute}"

    def n_values(self, attribute: int) -> int:
        """Return how many values an attribute has."""
        return self.cardinality

    def value(self, attribute: int, code: int) -> int:
        """Return the value that a code stands for."""
        return code - 1


class TextDomain(NamedTuple):
    """Named attributes with lists of values in ascending order."""

    names: list[str]
    values: list[list[str]] | list[list[int]]

    @property
    def n_attributes(self) -> int:
        """Number of attributes."""
        return len(self.names)

    def name(self, attribute: int) -> str:
        """Return the name of an attribute."""
        return self.names[attribute]

    def n_values(self, attribute: int) -> int:
        """Return how many values an attribute has."""
        return len(self.values[attribute])

    def value(self, attribute: int, code: int) -> int | str:
        """Return the value that a code stands for."""
        return self.values[attribute][code - 1]


class Workload(NamedTuple):
    """Subscriptions, the events to measure with, and others to learn statistics from."""

    spec: WorkloadSpec
    domain: Domain
    subscriptions: FlatSubscriptions
    events: FlatEvents
    training: FlatEvents


# -- text and dicts -------------------------------------------------------------------------------


def event_dicts(workload: Workload, events: FlatEvents | None = None) -> Iterator[dict[str, Any]]:
    """Events as dicts."""
    events = workload.events if events is None else events
    domain = workload.domain
    for e in range(events.n_events):
        span = slice(int(events.offsets[e]), int(events.offsets[e + 1]))
        pairs = zip(events.attributes[span].tolist(), events.codes[span].tolist(), strict=True)
        yield {domain.name(a): domain.value(a, c) for a, c in pairs}


def subscription_texts(
    workload: Workload, start: int = 0, stop: int | None = None
) -> Iterator[tuple[int, str]]:
    """Yield (number, expression) of the subscriptions start … stop."""
    flat = workload.subscriptions
    last = int(flat.owners[-1]) + 1 if flat.n_clauses else 0
    stop = last if stop is None else min(stop, last)
    first, end = np.searchsorted(flat.owners, [start, stop]).tolist()
    number, clauses = -1, list[str]()
    for i in range(first, end):
        owner = int(flat.owners[i])
        if owner != number and clauses:
            yield number, _joined(clauses)
            clauses = []
        number = owner
        clauses.append(_clause_text(workload, i))
    if clauses:
        yield number, _joined(clauses)


def _joined(clauses: list[str]) -> str:
    return clauses[0] if len(clauses) == 1 else " or ".join(f"({c})" for c in clauses)


def _clause_text(workload: Workload, i: int) -> str:
    flat = workload.subscriptions
    predicates = range(int(flat.clause_offsets[i]), int(flat.clause_offsets[i + 1]))
    return " and ".join(predicate_text(workload, p) for p in predicates) or "true"


def predicate_text(workload: Workload, p: int) -> str:
    """Return the text of one predicate."""
    flat, domain = workload.subscriptions, workload.domain
    attribute = int(flat.attributes[p])
    span = slice(int(flat.interval_offsets[p]), int(flat.interval_offsets[p + 1]))
    intervals = list(zip(flat.lows[span].tolist(), flat.highs[span].tolist(), strict=True))
    name, n_values = name_text(domain.name(attribute)), domain.n_values(attribute)

    def literal(code: int) -> str:
        return literal_text(domain.value(attribute, code))

    alternatives = []
    if intervals[0][0] == 0:  # accepts absence
        alternatives.append(f"{name} is null")
        intervals = [(max(low, 1), high) for low, high in intervals if high > 0]
    singles = [low for low, high in intervals if low == high]
    but = _all_but(intervals, n_values)
    if len(but) == 1:
        low, high = but[0]
        words = (
            f"!= {literal(low)}"
            if low == high
            else f"not between {literal(low)} and {literal(high)}"
        )
        return _any([*alternatives, f"{name} {words}"])
    if but and all(low == high for low, high in but):
        listed = ", ".join(literal(low) for low, _ in but)
        return _any([*alternatives, f"{name} not in ({listed})"])
    if len(singles) > 1:
        alternatives.append(f"{name} in ({', '.join(map(literal, singles))})")
    for low, high in intervals:
        if low == high:
            if len(singles) == 1:
                alternatives.append(f"{name} = {literal(low)}")
        elif low == 1 and high == n_values:
            alternatives.append(f"{name} is not null")
        elif low == 1:
            alternatives.append(f"{name} <= {literal(high)}")
        elif high == n_values:
            alternatives.append(f"{name} >= {literal(low)}")
        else:
            alternatives.append(f"{name} between {literal(low)} and {literal(high)}")
    return _any(alternatives)


def _all_but(intervals: list[tuple[int, int]], n_values: int) -> list[tuple[int, int]]:
    """Return the gaps of a set that reaches from the first value to the last; else none."""
    if not intervals or intervals[0][0] != 1 or intervals[-1][1] != n_values:
        return []
    return [(a[1] + 1, b[0] - 1) for a, b in pairwise(intervals)]


def _any(alternatives: list[str]) -> str:
    return alternatives[0] if len(alternatives) == 1 else f"({' or '.join(alternatives)})"
