"""An event as the fields that JSON patterns of other systems see.

    {"id": 7, "e": [{"a": 1}, {"a": null, "b": [2, 3]}]}

    id     7     ()
    e.a    1     ((0, 0),)        array 0, element 0
    e.a    null  ((0, 1),)
    e.b    2     ((0, 1),)        an array of scalars does not tell its elements apart
    e.b    3     ((0, 1),)

Names are joined by dots. Each array of the event has a number. A value carries, for each array
above it, which element of that array it is inside of; values of different elements of one array
do not go together (`together`). Empty arrays and objects have no fields.

JSON tells null from a missing field; a table cannot: there a null is a missing field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from matchmill.errors import EventError
from matchmill.language.flatten import (
    FlatEvent,
    as_mapping,
    nested_record,
    nested_sequence,
    plain_scalar,
)
from matchmill.language.values import Opaque

__all__ = ["EventFields", "Membership", "event_fields", "has_list", "together"]

Membership: TypeAlias = tuple[tuple[int, int], ...]
EventFields: TypeAlias = dict[str, list[tuple[Any, Membership]]]

_PLAIN = frozenset((str, int, float, bool))
_NOTHING: Membership = ()


def event_fields(event: Mapping[str, Any]) -> EventFields:
    """Return the fields of an event; those of a `FlatEvent` are found once.

    A flat event without its record has fields, too, but nothing more is known of its arrays.
    """
    if not isinstance(event, FlatEvent):
        return _Walk(True).of(event)
    fields: EventFields | None = event.fields
    if fields is None:
        record = event.record
        if record is None:
            fields = _Walk(True).of(event)
        else:
            fields = _Walk(record.has_nulls).of(record.event)
        event.fields = fields
    return fields


def has_list(event: object) -> bool:
    """Whether some value of an event, at any depth of records, is a list."""
    mapping = as_mapping(event)
    return any(type(value) not in _PLAIN and _is_or_has_list(value) for value in mapping.values())


def _is_or_has_list(value: object) -> bool:
    mapping = nested_record(value)
    if mapping is not None:
        return any(map(_is_or_has_list, mapping.values()))
    return nested_sequence(value) is not None


def together(so_far: dict[int, int], membership: Membership) -> dict[int, int] | None:
    """Return which elements of arrays are taken with one more value; None if they differ."""
    if not membership:
        return so_far
    for array, element in membership:
        if so_far.get(array, element) != element:
            return None
    return {**so_far, **dict(membership)}


class _Walk:
    def __init__(self, has_nulls: bool) -> None:
        self._has_nulls = has_nulls
        self._fields: EventFields = {}
        self._n_arrays = 0

    def of(self, event: Mapping[str, Any]) -> EventFields:
        self._object(event, "", _NOTHING)
        return self._fields

    def _object(self, node: Mapping[str, Any], prefix: str, membership: Membership) -> None:
        for name, value in node.items():
            kind = type(value)
            if kind in _PLAIN and value == value:
                self._fields.setdefault(prefix + name, []).append((value, membership))
            else:
                self._value(prefix + name, value, membership)

    def _value(self, name: str, value: Any, membership: Membership) -> None:
        if value is None:
            if self._has_nulls:
                self._fields.setdefault(name, []).append((None, membership))
            return
        mapping = nested_record(value)
        if mapping is not None:
            self._object(mapping, name + ".", membership)
            return
        elements = nested_sequence(value)
        if elements is not None:
            self._array(name, elements, membership)
            return
        scalar = _scalar(name, value)
        if scalar is not None:
            self._fields.setdefault(name, []).append((scalar, membership))

    def _array(self, name: str, elements: Any, membership: Membership) -> None:
        array = self._n_arrays
        self._n_arrays += 1
        for i, element in enumerate(elements):
            if type(element) in _PLAIN and element == element:
                self._fields.setdefault(name, []).append((element, membership))
            elif nested_record(element) is None and nested_sequence(element) is None:
                self._value(name, element, membership)
            else:
                self._value(name, element, (*membership, (array, i)))


def _scalar(name: str, value: Any) -> Any:
    """Return a scalar as conditions see it; one that they cannot see is an object."""
    try:
        return plain_scalar(name, value)
    except EventError:
        return Opaque(value)
