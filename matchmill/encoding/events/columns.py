"""Events as typed columns: the one form into which every source of events is brought.

    event 0   {price: 580,   model: 'x'}         attribute  region  rows  whole     part       text
    event 1   {model: 'y'}                 ──►   price      NUMBER  0 2   580   12  0.0  0.5
    event 2   {price: 12.5,  model: null}        model      STRING  0 1                        x y

A column holds the values of one attribute that have one type, so an attribute of mixed types has
several columns; in each `rows` ascends, and no event occurs twice in the columns of an attribute.
An absent value (null, NaN) has no row. A list has one row, and its elements have columns of their
own, where `rows` names the event and so repeats. Of objects there are the rows only: no condition
looks at them.

A number is a pair of its whole part and the rest (`encoding/numbers`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from matchmill.encoding.events.asked import Wanted
from matchmill.kernels.csr import offsets_of
from matchmill.language.expression import ANY_ATTRIBUTE
from matchmill.language.values import EventValue, Region

__all__ = [
    "ChainedEvents",
    "Column",
    "EventColumns",
    "Events",
    "InterleavedEvents",
    "Wanted",
    "drop_rows",
    "list_column",
    "merge_columns",
    "number_column",
    "object_column",
    "text_column",
    "with_all_texts",
]

_NO_WHOLE = np.empty(0, np.int64)
_NO_PART = np.empty(0, np.float64)


class Column(NamedTuple):
    """The values of one attribute that have one type. Arrays may be shared: do not write."""

    attribute: str
    region: Region
    rows: np.ndarray  # int64, ascending
    whole: np.ndarray  # int64; empty for STRING and LIST
    part: np.ndarray  # float64; empty for STRING and LIST
    text: pa.LargeStringArray | None  # STRING only: one per row, no nulls
    elements: tuple[Column, ...]  # LIST only: the elements by type


class EventColumns(NamedTuple):
    """All events of a source as columns, and the rejected ones."""

    n_events: int
    columns: list[Column]
    rejected: dict[int, str]  # event → reason; such an event has no rows in any column


class Events(ABC):
    """A source of events."""

    n_events: int
    line_numbers: np.ndarray | None = None  # of text: the line of each event, from 1

    @abstractmethod
    def columns(self, wanted: Wanted = None) -> EventColumns:
        """Return all events as columns.

        `wanted` tells which attributes are of interest; others get no column. Whether an event
        is rejected never depends on it. A table's column of a type that has no values in the
        language has objects, with a warning if it is wanted.
        """

    @abstractmethod
    def event(self, i: int) -> dict[str, EventValue]:
        """Return one event as `flatten_record` does; raise EventError for a rejected one."""

    def column_names(self) -> list[str] | None:
        """Return the names of the columns of a table; None if each event has its own names."""
        return None

    def _check_index(self, i: int) -> None:
        if not 0 <= i < self.n_events:
            raise IndexError(f"there is no event {i}, only {self.n_events} events")


# -- building -------------------------------------------------------------------------------------


def number_column(
    attribute: str,
    region: Region,
    rows: np.ndarray,
    whole: np.ndarray,
    part: np.ndarray | None = None,
) -> Column:
    """Return a column of anything but text and lists. Without `part` the values are whole."""
    if part is None:
        part = np.zeros(len(whole), np.float64)
    return Column(attribute, region, rows, whole, part, None, ())


def text_column(attribute: str, rows: np.ndarray, text: pa.LargeStringArray) -> Column:
    """Return a column of text."""
    return Column(attribute, Region.STRING, rows, _NO_WHOLE, _NO_PART, text, ())


def object_column(attribute: str, rows: np.ndarray) -> Column:
    """Return a column of objects."""
    return number_column(attribute, Region.OBJECT, rows, np.zeros(len(rows), np.int64))


def list_column(attribute: str, rows: np.ndarray, elements: Iterable[Column]) -> Column:
    """Return a column of lists."""
    merged = tuple(merge_columns(elements))
    return Column(attribute, Region.LIST, rows, _NO_WHOLE, _NO_PART, None, merged)


def with_all_texts(events: EventColumns) -> list[Column]:
    """Return the columns with one more attribute: the list of all texts that an event has."""
    own = [column for column in events.columns if column.attribute != ANY_ATTRIBUTE]
    parts = (part for column in events.columns for part in (column, *column.elements))
    texts = [p._replace(attribute=ANY_ATTRIBUTE) for p in parts if p.region == Region.STRING]
    rows = np.setdiff1d(np.arange(events.n_events), np.array(list(events.rejected), np.int64))
    return [*own, list_column(ANY_ATTRIBUTE, rows, texts)]


# -- merging and filtering ------------------------------------------------------------------------


def merge_columns(columns: Iterable[Column]) -> list[Column]:
    """Return one column per attribute and type; leave out empty ones."""
    groups: dict[tuple[str, Region], list[Column]] = {}
    for column in columns:
        if len(column.rows):
            groups.setdefault((column.attribute, column.region), []).append(column)
    return [parts[0] if len(parts) == 1 else _merge(parts) for parts in groups.values()]


def _merge(parts: list[Column]) -> Column:
    first = parts[0]
    rows = np.concatenate([c.rows for c in parts])
    order = None
    if (rows[1:] < rows[:-1]).any():
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
    if first.region == Region.STRING:
        text = pa.concat_arrays([c.text for c in parts])
        return text_column(first.attribute, rows, text if order is None else text.take(order))
    if first.region == Region.LIST:
        return list_column(first.attribute, rows, (e for c in parts for e in c.elements))
    whole = np.concatenate([c.whole for c in parts])
    part = np.concatenate([c.part for c in parts])
    if order is not None:
        whole, part = whole[order], part[order]
    return number_column(first.attribute, first.region, rows, whole, part)


def drop_rows(columns: Iterable[Column], gone: np.ndarray) -> list[Column]:
    """Return the columns without some events; `gone` is a flag per event."""
    return [_drop(column, gone) for column in columns]


def _drop(column: Column, gone: np.ndarray) -> Column:
    keep = ~gone[column.rows]
    if keep.all():
        return column
    return column._replace(
        rows=column.rows[keep],
        whole=column.whole[keep] if len(column.whole) else column.whole,
        part=column.part[keep] if len(column.part) else column.part,
        text=None if column.text is None else column.text.filter(pa.array(keep)),
        elements=tuple(merge_columns(drop_rows(column.elements, gone))),
    )


def _shift(column: Column, n_rows: int) -> Column:
    elements = tuple(_shift(element, n_rows) for element in column.elements)
    return column._replace(rows=column.rows + n_rows, elements=elements)


# -- one source after the other -------------------------------------------------------------------


class ChainedEvents(Events):
    """The events of several sources, one source after the other."""

    def __init__(self, parts: Iterable[Events]) -> None:
        self._parts = list(parts)
        self._offsets = offsets_of(np.array([part.n_events for part in self._parts], np.int64))
        self.n_events = int(self._offsets[-1])

    def columns(self, wanted: Wanted = None) -> EventColumns:
        """Return all events as columns."""
        columns: list[Column] = []
        rejected: dict[int, str] = {}
        for offset, part in zip(self._offsets.tolist(), self._parts, strict=False):
            found = part.columns(wanted)
            columns += [_shift(column, offset) for column in found.columns]
            rejected |= {offset + i: reason for i, reason in found.rejected.items()}
        return EventColumns(self.n_events, merge_columns(columns), rejected)

    def column_names(self) -> list[str] | None:
        """Return the names of the columns of all parts."""
        names = [part.column_names() for part in self._parts]
        known = [some for some in names if some is not None]
        if not known or len(known) < len(names):
            return None
        return list(dict.fromkeys(name for some in known for name in some))

    def event(self, i: int) -> dict[str, EventValue]:
        """Return one event."""
        self._check_index(i)
        k = int(np.searchsorted(self._offsets, i, side="right")) - 1
        return self._parts[k].event(i - int(self._offsets[k]))


class InterleavedEvents(Events):
    """The events of several sources, mixed: each source comes with the places of its events."""

    def __init__(self, parts: Iterable[tuple[np.ndarray, Events]]) -> None:
        self.parts = list(parts)
        self.n_events = sum(len(rows) for rows, _ in self.parts)
        self._owner = np.empty(self.n_events, np.int64)
        self._place = np.empty(self.n_events, np.int64)
        for k, (rows, _) in enumerate(self.parts):
            self._owner[rows] = k
            self._place[rows] = np.arange(len(rows))

    def columns(self, wanted: Wanted = None) -> EventColumns:
        """Return all events as columns."""
        columns: list[Column] = []
        rejected: dict[int, str] = {}
        for rows, part in self.parts:
            found = part.columns(wanted)
            columns += [_placed(column, rows) for column in found.columns]
            rejected |= {int(rows[i]): reason for i, reason in found.rejected.items()}
        return EventColumns(self.n_events, merge_columns(columns), dict(sorted(rejected.items())))

    def event(self, i: int) -> dict[str, EventValue]:
        """Return one event."""
        self._check_index(i)
        return self.parts[int(self._owner[i])][1].event(int(self._place[i]))


def _placed(column: Column, rows: np.ndarray) -> Column:
    elements = tuple(_placed(element, rows) for element in column.elements)
    return column._replace(rows=rows[column.rows], elements=elements)
