"""Events some of whose attributes have declared types: their columns are read as those types.

`language/attribute_types.py` says what is read as what. Texts become times by a kernel; other
values are read one by one.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np

from matchmill.encoding.events.columns import (
    Column,
    EventColumns,
    Events,
    Wanted,
    list_column,
    merge_columns,
    number_column,
    object_column,
)
from matchmill.encoding.events.dicts import checked_columns
from matchmill.encoding.numbers import exact_number
from matchmill.encoding.texts import texts_of
from matchmill.encoding.time_texts import IS_DATE, IS_TIMESTAMP, read_times
from matchmill.language.attribute_types import AttributeTypes, typed_event, typed_value
from matchmill.language.values import EventValue, Region, fine_timestamp
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = ["TypedEvents", "typed_events"]

_DAY = 86_400_000_000  # microseconds
_EPOCH = dt.datetime(1970, 1, 1)
_SAME = {
    "number": Region.NUMBER,
    "hex": Region.NUMBER,
    "text": Region.STRING,
    "boolean": Region.BOOLEAN,
}


def typed_events(
    events: Events, types: AttributeTypes, settings: Settings = DEFAULT_SETTINGS
) -> Events:
    """Return events whose attributes have these types."""
    return TypedEvents(events, types, settings) if types else events


class TypedEvents(Events):
    """Events that are read as declared."""

    def __init__(self, events: Events, types: AttributeTypes, settings: Settings) -> None:
        self.events = events
        self.types = types
        self._settings = settings
        self.n_events = events.n_events
        self.line_numbers = events.line_numbers

    def columns(self, wanted: Wanted = None) -> EventColumns:
        """Return all events as columns."""
        found = self.events.columns(wanted)
        columns: list[Column] = []
        for column in found.columns:
            kind = self.types.get(column.attribute)
            columns += [column] if kind is None else _typed_columns(column, kind)
        return found._replace(columns=merge_columns(columns))

    def column_names(self) -> list[str] | None:
        """Return the names of the columns of a table."""
        return self.events.column_names()

    def event(self, i: int) -> dict[str, EventValue]:
        """Return one event."""
        return typed_event(self.events.event(i), self.types, self._settings)


def _typed_columns(column: Column, kind: str) -> list[Column]:
    """Return the columns of the values of one, read as a type."""
    region = column.region
    if region == Region.OBJECT or _SAME.get(kind) == region:
        return [column]
    if kind.endswith("-or-text") and region not in (Region.STRING, Region.LIST):
        return [column]
    if region == Region.LIST:
        elements = [one for part in column.elements for one in _typed_columns(part, kind)]
        return [list_column(column.attribute, column.rows, elements)]
    if kind in ("timestamp", "date"):
        return _time_columns(column, kind)
    if column.text is not None:
        encoded = column.text.dictionary_encode()  # the same texts occur again and again
        distinct = [typed_value(text, kind) for text in encoded.dictionary.to_pylist()]
        values = [distinct[code] for code in encoded.indices.to_pylist()]
    else:
        values = [typed_value(value, kind) for value in _values(column)]
    return checked_columns(column.attribute, column.rows, values)


def _time_columns(column: Column, kind: str) -> list[Column]:
    name, rows, whole, part = column.attribute, column.rows, column.whole, column.part
    if column.region == Region.STRING:
        kinds, whole, part = read_times(texts_of(column.text))
    elif column.region == Region.DATE:
        kinds = np.full(len(rows), IS_DATE)
    elif column.region == Region.TIMESTAMP:
        kinds = np.full(len(rows), IS_TIMESTAMP)
    else:
        kinds = np.zeros(len(rows), np.int64)
    is_time, is_date = kinds > 0, kinds == IS_DATE
    if kind == "timestamp":
        whole, part = np.where(is_date, whole * _DAY, whole), np.where(is_date, 0.0, part)
        region = Region.TIMESTAMP
    else:
        whole, part = np.where(is_date, whole, whole // _DAY), np.zeros(len(rows))
        region = Region.DATE
    times = number_column(name, region, rows[is_time], whole[is_time], part[is_time])
    return [times, object_column(name, rows[~is_time])]


def _values(column: Column) -> list[Any]:
    """Return the values of a column of scalars."""
    if column.text is not None:
        texts: list[Any] = column.text.to_pylist()
        return texts
    whole = column.whole.tolist()
    if column.region == Region.BOOLEAN:
        return [bool(value) for value in whole]
    if column.region == Region.DATE:
        return [(_EPOCH + dt.timedelta(days=value)).date() for value in whole]
    pairs = zip(whole, column.part.tolist(), strict=True)
    if column.region == Region.TIMESTAMP:
        return [
            fine_timestamp(_EPOCH + dt.timedelta(microseconds=us), round(part * 1000))
            for us, part in pairs
        ]
    return [exact_number(*pair) for pair in pairs]
