"""How events stand in a DataFrame, and how a worker reads them from Arrow.

    layout    columns                                      the event column
    wide      event_id and one column an attribute         a struct of them
    map       event_id, a map of attribute → value         the map
    json      event_id, a JSON object as text              the text
    long      event_id, attribute, value, a row a pair     a map, after grouping by event_id

`event_frame` makes two columns of any of them, event_id and event; `read_event_column` reads the
second one in a worker. What an event means is said by `flatten_event`, as everywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from matchmill.encoding.arrow_events import TableEvents
from matchmill.encoding.event_columns import EventColumns, Events, Wanted
from matchmill.encoding.json_events import read_json_lines
from matchmill.errors import EventError, InputError
from matchmill.language.values import EventValue
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = ["LAYOUTS", "EventLayout", "event_frame", "read_event_column"]

LAYOUTS = ("wide", "map", "json", "long")

_MAP_NAME = "m"  # any name: it is taken off again
_JSON_STRING_OR_BREAK = re.compile(r'"(?:[^"\\]|\\.)*"|[\r\n]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class EventLayout:
    """`columns` are the attributes of a wide table, all others than the id if none are named, or
    the one column with the events; `attribute` and `value` are those of a long table."""

    kind: str = "wide"
    event_id: str = "event_id"
    columns: tuple[str, ...] = ()
    attribute: str = "attribute"
    value: str = "value"

    def __post_init__(self) -> None:
        if self.kind not in LAYOUTS:
            raise InputError(f"unknown layout {self.kind!r}; there are: {', '.join(LAYOUTS)}")


# -- in the driver --------------------------------------------------------------------------------


def event_frame(df: Any, layout: str | EventLayout) -> Any:
    """Columns event_id and event; for a long table also problem, why it is no map, and pairs."""
    given = layout if isinstance(layout, EventLayout) else EventLayout(layout)
    identifier = F.col(_quoted(_present(df, given.event_id))).alias("event_id")
    if given.kind == "long":
        return _grouped(df, identifier, given)
    others = [name for name in df.columns if name != given.event_id]
    chosen = [_present(df, name) for name in given.columns] or others
    if given.kind == "wide":
        if not chosen:
            raise InputError(f"there is no column of an attribute beside {given.event_id!r}")
        return df.select(identifier, F.struct(*map(_quoted, chosen)).alias("event"))
    if len(chosen) != 1:
        raise InputError(
            f"layout {given.kind!r} has the events in one column; name it, as in"
            f" EventLayout({given.kind!r}, columns=('event',)); there are: {', '.join(chosen)}"
        )
    wanted = "map" if given.kind == "map" else "string"
    found = df.schema[chosen[0]].dataType.typeName()
    if found != wanted:
        raise InputError(f"layout {given.kind!r} needs a {wanted}, but {chosen[0]!r} is a {found}")
    return df.select(identifier, F.col(_quoted(chosen[0])).alias("event"))


def _grouped(df: Any, identifier: Any, layout: EventLayout) -> Any:
    """Pairs as a map an event. Rows without an event_id stay apart from each other."""
    attribute, value = (_quoted(_present(df, n)) for n in (layout.attribute, layout.value))
    apart = F.when(F.col("event_id").isNull(), F.monotonically_increasing_id())
    pairs = df.select(identifier, F.struct(F.col(attribute), F.col(value)).alias("pair"))
    grouped = pairs.groupBy("event_id", apart.alias("apart")).agg(
        F.collect_list("pair").alias("pairs")
    )
    given = F.col("pairs").getField(layout.attribute)
    problem = (
        F.when(F.exists(given, lambda name: name.isNull()), "the attribute of a row is null")
        .when(F.size(F.array_distinct(given)) < F.size(given), "an attribute is given twice")
        .otherwise(F.lit(None))
    )
    # A map of such pairs would be an error of the whole job.
    as_map = F.when(problem.isNull(), F.map_from_entries("pairs"))
    return grouped.select("event_id", as_map.alias("event"), problem.alias("problem"), "pairs")


def _present(df: Any, name: str) -> str:
    if name not in df.columns:
        raise InputError(f"there is no column {name!r}; there are: {', '.join(df.columns)}")
    return name


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


# -- in a worker ----------------------------------------------------------------------------------


def read_event_column(array: pa.Array, settings: Settings = DEFAULT_SETTINGS) -> Events:
    """The events of an Arrow column: structs, maps or JSON texts."""
    kind = array.type
    if pa.types.is_struct(kind):
        sources = [(f.name, a) for f, a in zip(kind, array.flatten(), strict=True)]
        return TableEvents(sources, len(array), settings)
    if pa.types.is_map(kind):
        return _MapEvents(array, settings)
    return _JsonColumn(array, settings)


class _MapEvents(Events):
    """Maps. Read as a column of maps, of which the column's name is taken off."""

    def __init__(self, array: pa.MapArray, settings: Settings) -> None:
        self._table = TableEvents([(_MAP_NAME, array)], len(array), settings)
        self.n_events = len(array)

    def columns(self, wanted: Wanted = None) -> EventColumns:
        inner = None if wanted is None else (lambda name: wanted(_own(name)))
        found = self._table.columns(inner)
        own = [column._replace(attribute=_own(column.attribute)) for column in found.columns]
        rejected = {i: _own_reason(reason) for i, reason in found.rejected.items()}
        return EventColumns(found.n_events, own, rejected)

    def event(self, i: int) -> dict[str, EventValue]:
        try:
            return {_own(name): value for name, value in self._table.event(i).items()}
        except EventError as error:
            raise EventError(_own_reason(str(error))) from None


def _own(name: str) -> str:
    return name[len(_MAP_NAME) + 1 :]


def _own_reason(reason: str) -> str:
    return reason.replace(f"attribute '{_MAP_NAME}.", "attribute '", 1)


class _JsonColumn(Events):
    """JSON texts, one a row; a row without text is rejected."""

    def __init__(self, array: pa.Array, settings: Settings) -> None:
        lines = "\n".join(map(_one_line, array.to_pylist()))
        self._events = read_json_lines(lines, settings)
        self.n_events = len(array)

    def columns(self, wanted: Wanted = None) -> EventColumns:
        found = self._events.columns(wanted)
        rejected = {i: self._reason(i, reason) for i, reason in found.rejected.items()}
        return found._replace(rejected=rejected)

    def event(self, i: int) -> dict[str, EventValue]:
        try:
            return self._events.event(i)
        except EventError as error:
            raise EventError(self._reason(i, str(error))) from None

    def _reason(self, i: int, reason: str) -> str:
        return reason.removeprefix(f"line {i + 1}: ")


def _one_line(text: str | None) -> str:
    """A JSON text on one line, as good or as bad as it was; `null` for none."""
    if text is None or not text.strip():
        return "null"
    if "\n" not in text and "\r" not in text:
        return text.removeprefix("\ufeff")
    return _JSON_STRING_OR_BREAK.sub(_unbroken, text)


def _unbroken(found: re.Match[str]) -> str:
    part = found.group()
    if part[0] != '"':
        return " "
    return "\x00" if "\n" in part or "\r" in part else part  # a break in a string is no JSON
