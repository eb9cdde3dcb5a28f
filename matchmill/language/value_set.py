"""Sets of values of one attribute: unions of intervals, in the order of `values.py`.

A set is a sorted tuple of *edges* at which membership switches on, off, on, …

    (r,)        the start of region r
    (r, v, 0)   just before value v            x < 3   is  [(3,), (3, 3, 0))
    (r, v, 1)   just after value v             x = 3   is  [(3, 3, 0), (3, 3, 1))
    (2, 1, 0)   between lists and objects, each of which is one place

Edges compare as Python tuples do, so every operation is one merge of two sorted tuples. The form
is canonical: equal sets are equal tuples. Dates and booleans are discrete, so their edges are
brought to "just before" form; numbers, timestamps and strings are treated as dense.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from matchmill.language.values import Domain, Region, Value, domain_value, region_of

__all__ = [
    "Edge",
    "ValueSet",
    "intersect_all",
    "interval",
    "point",
    "points",
    "region",
    "string_prefix",
    "unite_all",
]

Edge: TypeAlias = tuple[Any, ...]

_START: Edge = (0,)
_END: Edge = (int(Region.END),)
_AFTER_LISTS: Edge = (int(Region.LIST), 1, 0)


class ValueSet(NamedTuple):
    """A canonical set; edges come in pairs (from, to)."""

    edges: tuple[Edge, ...]

    def complement(self) -> ValueSet:
        """Return all values, absent included, that are not in the set."""
        edges = self.edges
        if edges and edges[0] == _START:
            edges = edges[1:]
        else:
            edges = (_START, *edges)
        edges = edges[:-1] if edges and edges[-1] == _END else (*edges, _END)
        return ValueSet(edges)

    def intersect(self, other: ValueSet) -> ValueSet:
        """Return the values that are in both sets."""
        if self.edges == FULL.edges:
            return other
        return other if self is other else ValueSet(_merge(self.edges, other.edges, 2))

    def unite(self, other: ValueSet) -> ValueSet:
        """Return the values that are in one of the sets."""
        return self if self is other else ValueSet(_merge(self.edges, other.edges, 1))

    @property
    def is_empty(self) -> bool:
        """Whether no value is in the set."""
        return not self.edges

    @property
    def is_full(self) -> bool:
        """Whether every value is in the set, absent included."""
        return self.edges == FULL.edges

    def intervals(self) -> list[tuple[Edge, Edge]]:
        """Return the intervals as (from edge, to edge)."""
        return list(zip(self.edges[::2], self.edges[1::2], strict=True))

    def __contains__(self, value: object) -> bool:
        """Whether a value (None for absent) is in the set."""
        kind = region_of(value)
        if kind in (Region.ABSENT, Region.LIST):
            place: Edge = (int(kind), 0, 0)
        elif kind == Region.OBJECT:
            place = (int(Region.LIST), 1, 0.5)
        else:
            place = (int(kind), domain_value(value), 0.5)  # type: ignore[arg-type]
        return sum(edge < place for edge in self.edges) % 2 == 1


def _merge(a: tuple[Edge, ...], b: tuple[Edge, ...], needed: int) -> tuple[Edge, ...]:
    """Sweep over both; the result is on where at least `needed` of the two are on."""
    out: list[Edge] = []
    i = j = 0
    on_a = on_b = False
    on = False
    while i < len(a) or j < len(b):
        if j == len(b) or (i < len(a) and a[i] <= b[j]):
            edge = a[i]
        else:
            edge = b[j]
        if i < len(a) and a[i] == edge:
            on_a = not on_a
            i += 1
        if j < len(b) and b[j] == edge:
            on_b = not on_b
            j += 1
        now = on_a + on_b >= needed
        if now != on:
            out.append(edge)
            on = now
    return tuple(out)


def unite_all(sets: Sequence[ValueSet]) -> ValueSet:
    """Return the union of many sets in one sweep; pair by pair would take quadratic time."""
    return sets[0] if len(sets) == 1 else ValueSet(_sweep([s.edges for s in sets], 1))


def intersect_all(sets: Sequence[ValueSet]) -> ValueSet:
    """Return the intersection of many sets in one sweep."""
    return sets[0] if len(sets) == 1 else ValueSet(_sweep([s.edges for s in sets], len(sets)))


def _sweep(sets: list[tuple[Edge, ...]], needed: int) -> tuple[Edge, ...]:
    """Return the edges of the set that is on where at least `needed` of the sets are on."""
    steps: dict[Edge, int] = {}
    for edges in sets:
        for edge in edges[::2]:
            steps[edge] = steps.get(edge, 0) + 1
        for edge in edges[1::2]:
            steps[edge] = steps.get(edge, 0) - 1
    out: list[Edge] = []
    n_on = 0
    on = False
    for edge in sorted(steps):
        n_on += steps[edge]
        if (n_on >= needed) != on:
            on = not on
            out.append(edge)
    return tuple(out)


EMPTY = ValueSet(())
FULL = ValueSet((_START, _END))
ABSENT = ValueSet((_START, (1,)))
PRESENT = ValueSet(((1,), _END))
_REGIONS: dict[Region, ValueSet] = {
    r: ValueSet(((int(r),), (int(r) + 1,))) for r in Region if r < Region.END
} | {
    Region.LIST: ValueSet(((int(Region.LIST),), _AFTER_LISTS)),
    Region.OBJECT: ValueSet((_AFTER_LISTS, (int(Region.NUMBER),))),
}


def region(kind: Region) -> ValueSet:
    """Return all values of one type."""
    return _REGIONS[kind]


def _edge(kind: int, value: Domain, side: int) -> Edge:
    if kind == Region.DATE:
        return (kind, int(value) + side, 0)
    if kind == Region.BOOLEAN:
        ordinal = int(value) + side
        return ((kind,), (kind, True, 0), (kind + 1,))[ordinal]
    if kind == Region.NUMBER and isinstance(value, float) and value.is_integer():
        whole = int(value)  # 3.0 and 3 are one value, in one form
        if -(2**63) <= whole < 2**63:
            return (kind, whole, side)
    return (kind, value, side)


def point(value: Value) -> ValueSet:
    """Return the set of one value."""
    kind = int(region_of(value))
    inner = domain_value(value)
    return ValueSet((_edge(kind, inner, 0), _edge(kind, inner, 1)))


def points(values: Iterable[Value]) -> ValueSet:
    """Return the set of several values."""
    edges: list[Edge] = []
    pairs = sorted({point(v).edges for v in values})
    for low, high in pairs:
        if edges and edges[-1] == low:  # neighbours of a discrete type
            edges[-1] = high
        else:
            edges += (low, high)
    return ValueSet(tuple(edges))


def interval(
    kind: Region,
    low: Value | None = None,
    high: Value | None = None,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> ValueSet:
    """Return the values of one type between two ends; None is the end of the type."""
    r = int(kind)
    start = (r,) if low is None else _edge(r, domain_value(low), int(open_low))
    end = (r + 1,) if high is None else _edge(r, domain_value(high), int(not open_high))
    return ValueSet((start, end)) if start < end else EMPTY


def string_prefix(prefix: str) -> ValueSet:
    """Return all strings that begin with a text."""
    if not prefix:
        return region(Region.STRING)
    r = int(Region.STRING)
    start: Edge = (r, prefix, 0)
    stem = prefix.rstrip("\U0010ffff")
    if not stem:
        return ValueSet((start, (r + 1,)))
    following = ord(stem[-1]) + 1
    if following == 0xD800:  # surrogates are no characters
        following = 0xE000
    return ValueSet((start, (r, stem[:-1] + chr(following), 0)))
