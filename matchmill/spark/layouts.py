"""How events come in a DataFrame, and the one form that all of them are brought to.

wide    event_id | origin | delay | …             every other column, or those named
map     event_id | attributes: map<string, …>     also structs, and arrays of (name, value)
json    event_id | event: string                  an object each
long    event_id | attribute | value              a row a pair; grouped first

──►     event_id | event                          `encoding/events/arrow_cells.py` reads these cells
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import functions as F

from matchmill.errors import InputError

__all__ = ["EventLayout", "layout_of", "prepared", "quoted"]

_KINDS = ("wide", "map", "json", "long")


@dataclass(frozen=True, slots=True)
class EventLayout:
    """`columns` are the attributes of a wide table (all but the id if none are named), or the one
    column with the events; `attribute` and `value` are those of a long table."""

    kind: str = "wide"
    event_id: str = "event_id"
    columns: tuple[str, ...] = ()
    attribute: str = "attribute"
    value: str = "value"

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise InputError(f"no layout {self.kind!r}; there are: {', '.join(_KINDS)}")


def layout_of(
    layout: str | EventLayout, event_id: str | None, columns: str | Sequence[str] | None
) -> EventLayout:
    """A layout from what a call says of it."""
    chosen = layout if isinstance(layout, EventLayout) else EventLayout(layout)
    if event_id is None and columns is None:
        return chosen
    named = (columns,) if isinstance(columns, str) else tuple(columns or chosen.columns)
    name = event_id or chosen.event_id
    return EventLayout(chosen.kind, name, named, chosen.attribute, chosen.value)


def prepared(events: Any, layout: EventLayout) -> Any:
    """A DataFrame of two columns: the id, under its own name, and `event`."""
    name = layout.event_id
    _check_columns(events, [name, *layout.columns])
    identifier = F.col(quoted(name))
    if layout.kind == "long":
        _check_columns(events, [layout.attribute, layout.value])
        pair = F.struct(
            F.col(quoted(layout.attribute)).cast("string").alias("name"),
            F.col(quoted(layout.value)).alias("value"),
        )
        return events.groupBy(identifier.alias(name)).agg(F.collect_list(pair).alias("event"))
    columns = list(layout.columns) or [c for c in events.columns if c != name]
    if layout.kind == "wide":
        if not columns:
            raise InputError(f"the events have no column besides {name!r}: nothing to match")
        cells = F.struct(*[F.col(quoted(column)) for column in columns])
    else:
        if len(columns) != 1:
            raise InputError(
                f"layout {layout.kind!r} has the events in one column; name it by columns=…, one"
                f" of: {', '.join(columns)}"
            )
        cells = F.col(quoted(columns[0]))
    return events.select(identifier.alias(name), cells.alias("event"))


def _check_columns(events: Any, names: Sequence[str]) -> None:
    for name in names:
        if events.columns.count(name) != 1:
            raise InputError(
                f"the DataFrame has no single column {name!r}; it has: {', '.join(events.columns)}"
            )


def quoted(name: str) -> str:
    """A column's name as Spark takes it literally."""
    return "`" + name.replace("`", "``") + "`"
