"""How events stand in a DataFrame, and the one form that all of them are brought to.

    layout    columns                                       the event column
    wide      event_id | origin | delay | …                 a struct of all columns, or of some
    map       event_id | a map, a struct or pairs           as it is
    json      event_id | a JSON object as text              the text
    long      event_id | attribute | value, one per row     an array of (name, value)

    ──►       event_id | event                              read by `arrow_cells.read_cells`

The id of a wide table is one of its columns, and stays an attribute like the others. Values of
types that cannot be compared are objects without content (`attribute_types.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StringType, StructType

from matchmill.errors import InputError
from matchmill.language.attribute_types import checked_types
from matchmill.spark.attribute_types import (
    comparable_value,
    unsupported_parts,
    warn_of_unsupported,
)

__all__ = ["EventLayout", "asked_cells", "check_columns", "event_cells", "layout_of", "quoted"]

_KINDS = ("wide", "map", "json", "long")
_EVENT_ID = "event_id"


@dataclass(frozen=True, slots=True)
class EventLayout:
    """Say which columns of a DataFrame hold the events.

    Every function that takes events has the keywords `layout`, `event_id` and `attributes`. An
    `EventLayout` is needed only where the columns of a long table have other names.

    Parameters
    ----------
    kind
        "wide" (one column per attribute), "map" (one column with maps, structs or arrays of
        (name, value) structs), "json" (one column with JSON objects as text) or "long" (one row per
        attribute of an event).
    event_id
        The column with the ids of events.
    attributes
        For a wide table the columns that are attributes; by default all of them, the id included.
        For "map" and "json" the one column with the events.
    attribute, value
        For a long table, the columns with names and values.
    types
        Pairs of attributes and what they are read as: ``(("ts", "timestamp"),)``.

    Examples
    --------
    >>> from matchmill import spark as ms
    >>> ms.EventLayout("long", event_id="flight", attribute="name", value="reading")
    EventLayout(kind='long', event_id='flight', attributes=(), attribute='name', value='reading')
    """

    kind: str = "wide"
    event_id: str = _EVENT_ID
    attributes: tuple[str, ...] = ()
    attribute: str = "attribute"
    value: str = "value"
    types: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        """Check the kind and the types."""
        checked_types(dict(self.types))
        if self.kind not in _KINDS:
            raise InputError(f"no layout {self.kind!r}; there are: {', '.join(_KINDS)}")


def layout_of(
    layout: str | EventLayout,
    event_id: str,
    attributes: str | Sequence[str] | None,
    types: Mapping[str, str] | None = None,
) -> EventLayout:
    """Combine the keywords of a call into one layout."""
    chosen = layout if isinstance(layout, EventLayout) else EventLayout(layout)
    if event_id != _EVENT_ID:
        chosen = replace(chosen, event_id=event_id)
    if attributes is not None:
        names = (attributes,) if isinstance(attributes, str) else tuple(attributes)
        chosen = replace(chosen, attributes=names)
    if types is not None:
        chosen = replace(chosen, types=tuple(checked_types(types).items()))
    return chosen


def event_cells(
    events: Any, layout: EventLayout, *, warns: bool = True, keeps_all: bool = False
) -> Any:
    """Bring events of any layout to two columns, `event_id` and `event`.

    Values of types that are not supported are objects without content, and a warning names them;
    with `keeps_all` they stay, for those who copy events and compare nothing.
    """
    if not hasattr(events, "sparkSession"):
        raise InputError(
            f"events are a DataFrame, not a {type(events).__name__}; subscriptions come first"
        )
    check_columns(events, [layout.event_id, *layout.attributes])
    sources = _sources(events, layout)
    if not keeps_all:
        parts: list[str] = []
        for name in sources:
            kind = events.schema[name].dataType
            found = list(unsupported_parts(name, kind))
            if not found:
                continue
            sources[name] = comparable_value(sources[name], kind).alias(name)
            if name != layout.event_id or name in layout.attributes:
                parts += found
        if warns:
            warn_of_unsupported(parts, stacklevel=3)
    event_id = F.col(quoted(layout.event_id)).alias(_EVENT_ID)
    if layout.kind == "long":
        return _grouped(events, event_id, sources[layout.value], layout)
    if layout.kind == "wide":
        return events.select(event_id, F.struct(*sources.values()).alias("event"))
    (event,) = sources.values()
    return events.select(event_id, event.alias("event"))


def asked_cells(cells: Any, layout: EventLayout, attributes: Sequence[str] | None) -> Any:
    """Leave columns of a wide table out that hold no attribute that is asked for.

    Spark then does not read them. `attributes` None asks for all. A condition on a column that is
    left out cannot exist, so no answer changes.
    """
    if attributes is None or layout.kind != "wide":
        return cells
    names = [field.name for field in cells.schema["event"].dataType.fields]
    asked = set(attributes)
    roots = {name.split(".")[0] for name in asked if "." in name}
    kept = [name for name in names if name in asked or name.split(".")[0] in roots]
    if len(kept) == len(names):
        return cells
    if not kept:  # a struct needs a field
        event = F.struct(F.lit(None).cast("boolean").alias("nothing"))
    else:
        event = F.struct(*(F.col("event")[name].alias(name) for name in kept))
    return cells.select("event_id", event.alias("event"))


def _sources(events: Any, layout: EventLayout) -> dict[str, Any]:
    """Return the columns that events are read from, by name."""
    if layout.kind == "long":
        check_columns(events, [layout.attribute, layout.value])
        names: Sequence[str] = [layout.value]
    elif layout.kind == "wide":
        names = layout.attributes or events.columns
        check_columns(events, names)
    else:
        names = layout.attributes or [c for c in events.columns if c != layout.event_id]
        if len(names) != 1:
            raise InputError(
                f"layout {layout.kind!r} has the events in one column; name it by attributes=…, one"
                f" of: {', '.join(names)}"
            )
        _check_event_column(names[0], events.schema[names[0]].dataType, layout.kind)
    return {name: F.col(quoted(name)) for name in names}


def _check_event_column(name: str, found: Any, layout: str) -> None:
    """Raise InputError unless the layout can be read from a column of this type."""
    wanted = "a string"
    is_good = isinstance(found, StringType)
    if layout == "map":
        wanted = "a map from strings, a struct or an array of (name, value) structs"
        is_good = (
            isinstance(found, StructType)
            or (isinstance(found, MapType) and isinstance(found.keyType, StringType))
            or (isinstance(found, ArrayType) and _is_pair(found.elementType))
        )
    if not is_good:
        raise InputError(
            f"layout {layout!r} needs {wanted}, but {name!r} is a {found.simpleString()}"
        )


def _is_pair(kind: Any) -> bool:
    return (
        isinstance(kind, StructType)
        and len(kind.fields) == 2
        and isinstance(kind.fields[0].dataType, StringType)
    )


def _grouped(events: Any, event_id: Any, value: Any, layout: EventLayout) -> Any:
    """Collect the pairs of each event. Rows without an id stay apart from each other."""
    pair = F.struct(
        F.col(quoted(layout.attribute)).cast("string").alias("name"), value.alias("value")
    )
    apart = F.when(F.col(_EVENT_ID).isNull(), F.monotonically_increasing_id())
    pairs = events.select(event_id, pair.alias("pair"))
    grouped = pairs.groupBy(_EVENT_ID, apart.alias("apart"))
    return grouped.agg(F.collect_list("pair").alias("event")).select(_EVENT_ID, "event")


def check_columns(frame: Any, names: Sequence[str], what: str = "the DataFrame") -> None:
    """Raise InputError unless there is exactly one column of each name."""
    for name in names:
        if frame.columns.count(name) != 1:
            raise InputError(
                f"{what} has no single column {name!r}; it has: {', '.join(frame.columns)}"
            )


def quoted(name: str) -> str:
    """Quote a column's name so that Spark takes it literally."""
    return "`" + name.replace("`", "``") + "`"
