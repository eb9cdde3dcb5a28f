"""Events of any layout as two columns, event_id and event, in the driver.

    layout    columns                                      the event column
    wide      event_id and one column an attribute         a struct of them
    map       event_id, a map, a struct or pairs           as it is
    json      event_id, a JSON object as text              the text
    long      event_id, attribute, value, a row a pair     a map, after grouping by event_id

`layouts.prepared` does the same for matching, which passes over bad events. Here they are to be
told: what is wrong with the pairs of a long table has a column of its own. Workers read the event
column by `encoding/events/arrow_cells.py`, wherever it comes from.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F

from matchmill.errors import InputError
from matchmill.spark.layouts import EventLayout, quoted

__all__ = ["event_frame"]


def event_frame(df: Any, layout: str | EventLayout) -> Any:
    """Columns event_id and event; for a long table also problem, why it is no map, and pairs."""
    given = layout if isinstance(layout, EventLayout) else EventLayout(layout)
    identifier = F.col(quoted(_present(df, given.event_id))).alias("event_id")
    if given.kind == "long":
        return _grouped(df, identifier, given)
    others = [name for name in df.columns if name != given.event_id]
    chosen = [_present(df, name) for name in given.columns] or others
    if given.kind == "wide":
        if not chosen:
            raise InputError(f"there is no column of an attribute beside {given.event_id!r}")
        return df.select(identifier, F.struct(*map(quoted, chosen)).alias("event"))
    if len(chosen) != 1:
        raise InputError(
            f"layout {given.kind!r} has the events in one column; name it, as in"
            f" EventLayout({given.kind!r}, columns=('event',)); there are: {', '.join(chosen)}"
        )
    wanted = ("map", "struct", "array") if given.kind == "map" else ("string",)
    found = df.schema[chosen[0]].dataType.typeName()
    if found not in wanted:
        raise InputError(
            f"layout {given.kind!r} needs a {' or '.join(wanted)}, but {chosen[0]!r} is a {found}"
        )
    return df.select(identifier, F.col(quoted(chosen[0])).alias("event"))


def _grouped(df: Any, identifier: Any, layout: EventLayout) -> Any:
    """Pairs as a map an event. Rows without an event_id stay apart from each other."""
    attribute, value = (quoted(_present(df, n)) for n in (layout.attribute, layout.value))
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
