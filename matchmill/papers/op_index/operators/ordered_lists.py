"""Predicate lists of the operators that OpIndex has from the start: `=`, `<=`, `>=`, `in`.

    of an attribute    EqualList      value → predicates
                       AtMostList     (value, predicate), ascending: those from the value on
                       AtLeastList    the same: those up to the value
                       OneOfList      an EqualList with an entry per element

Values of different types are apart: a list is by attribute and type.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from matchmill.errors import InputError, shown
from matchmill.language.values import Region, domain_value, region_of

__all__ = ["AtLeastList", "AtMostList", "EqualList", "OneOfList"]

_Place: TypeAlias = tuple[str, Region]
_NOT_COMPARED = (Region.ABSENT, Region.LIST, Region.OBJECT)


def _operand(value: Any) -> tuple[Region, Any]:
    """Return type and place of an operand."""
    kind = region_of(value)
    if kind in _NOT_COMPARED:
        raise InputError(f"an operand is one value, not {shown(value)}")
    return kind, domain_value(value)


def _value(value: Any) -> tuple[Region, Any] | None:
    """Return type and place of an event's value; None if no operator here is defined for it."""
    kind = region_of(value)
    return None if kind in _NOT_COMPARED else (kind, domain_value(value))


class EqualList:
    """The values that predicates ask for."""

    def __init__(self) -> None:
        self._predicates: dict[tuple[str, Region, Any], list[int]] = {}

    def insert(self, predicate: int, attribute: str, operand: Any) -> None:
        """Add a predicate."""
        self._predicates.setdefault((attribute, *_operand(operand)), []).append(predicate)

    def delete(self, predicate: int, attribute: str, operand: Any) -> None:
        """Remove a predicate."""
        place = (attribute, *_operand(operand))
        self._predicates[place].remove(predicate)
        if not self._predicates[place]:
            del self._predicates[place]

    def match(self, attribute: str, value: Any) -> Iterable[int]:
        """Return the predicates that ask for a value."""
        found = _value(value)
        return () if found is None else self._predicates.get((attribute, *found), ())


class OneOfList:
    """As EqualList, for operands that are sets of values."""

    def __init__(self) -> None:
        self._elements = EqualList()

    def insert(self, predicate: int, attribute: str, operand: Any) -> None:
        """Add a predicate."""
        for value in _distinct(operand):
            self._elements.insert(predicate, attribute, value)

    def delete(self, predicate: int, attribute: str, operand: Any) -> None:
        """Remove a predicate."""
        for value in _distinct(operand):
            self._elements.delete(predicate, attribute, value)

    def match(self, attribute: str, value: Any) -> Iterable[int]:
        """Return the predicates that have a value among theirs."""
        return self._elements.match(attribute, value)


def _distinct(operand: Any) -> list[Any]:
    """Return the values of a set, all of which are operands."""
    if isinstance(operand, str) or not isinstance(operand, Sequence | set | frozenset):
        raise InputError(f"the operand of 'in' is several values, not {shown(operand)}")
    return list({_operand(value): value for value in operand}.values())


class _OrderedList:
    """Operands of each attribute and type in order."""

    def __init__(self) -> None:
        self._entries: dict[_Place, list[tuple[Any, int]]] = {}

    def insert(self, predicate: int, attribute: str, operand: Any) -> None:
        """Add a predicate."""
        kind, value = _operand(operand)
        insort(self._entries.setdefault((attribute, kind), []), (value, predicate))

    def delete(self, predicate: int, attribute: str, operand: Any) -> None:
        """Remove a predicate."""
        kind, value = _operand(operand)
        entries = self._entries[attribute, kind]
        del entries[bisect_left(entries, (value, predicate))]
        if not entries:
            del self._entries[attribute, kind]


class AtMostList(_OrderedList):
    """`attribute <= operand`."""

    def match(self, attribute: str, value: Any) -> Iterable[int]:
        """Return the predicates whose operand is not below a value."""
        found = _value(value)
        if found is None:
            return ()
        entries = self._entries.get((attribute, found[0]), [])
        first = bisect_left(entries, found[1], key=_first)
        return [predicate for _, predicate in entries[first:]]


class AtLeastList(_OrderedList):
    """`attribute >= operand`."""

    def match(self, attribute: str, value: Any) -> Iterable[int]:
        """Return the predicates whose operand is not above a value."""
        found = _value(value)
        if found is None:
            return ()
        entries = self._entries.get((attribute, found[0]), [])
        stop = bisect_right(entries, found[1], key=_first)
        return [predicate for _, predicate in entries[:stop]]


def _first(entry: tuple[Any, int]) -> Any:
    return entry[0]
