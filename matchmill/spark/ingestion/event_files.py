"""Files of events as a DataFrame that `ingest_events` takes; lines that are no rows stand apart.

    parquet, orc    the columns as they are
    csv             a header; types are inferred; a line with too many or too few columns is bad
    jsonl           event_id, a text, out of the object; event, the line

Of a folder, Spark leaves out files whose names begin with `_` or `.`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from matchmill.errors import InputError
from matchmill.spark.layouts import EventLayout, quoted
from matchmill.spark.read_errors import naming_files

__all__ = ["EventFiles", "read_event_files"]

_BAD_LINE = "_bad_line"


class EventFiles(NamedTuple):
    """Rows, how events stand in them, and bad lines as (id, reason, raw, source), if there can be
    any that are not rows."""

    rows: Any
    layout: EventLayout
    bad_lines: Any = None


def read_event_files(
    spark: Any,
    path: str,
    format: str,
    layout: str | EventLayout = "wide",
    options: Mapping[str, Any] | None = None,
) -> EventFiles:
    """Events in files: `path` is a file, a folder or a pattern; `options` are Spark's reader's."""
    given = layout if isinstance(layout, EventLayout) else EventLayout(layout)
    reader = spark.read.options(**dict(options or {}))
    if format in ("parquet", "orc"):
        with naming_files():
            return EventFiles(reader.format(format).load(path), given)
    if format == "jsonl":
        if given.kind != "json":
            raise InputError("JSON lines are events themselves: their layout is 'json'")
        with naming_files():
            return _json_lines(reader.text(path), given.event_id)
    if format == "csv":
        with naming_files():
            return _csv(reader, path, given)
    raise InputError(f"unknown format {format!r}; there are: csv, jsonl, orc, parquet")


def _json_lines(lines: Any, event_id: str) -> EventFiles:
    """The id is looked for at the top of the object, and is a text."""
    rows = lines.where(F.trim("value") != "").select(
        F.get_json_object("value", f"$['{event_id}']").alias("event_id"),
        F.col("value").alias("event"),
    )
    return EventFiles(rows, EventLayout("json", "event_id", ("event",)))


def _csv(reader: Any, path: str, layout: EventLayout) -> EventFiles:
    # Without columns cut off, a line is as good or as bad whatever is asked of it.
    reader = reader.option("header", True).option("escape", '"').option("columnPruning", False)
    inferred = reader.option("inferSchema", True).csv(path).schema
    schema = StructType([*inferred.fields]).add(_BAD_LINE, StringType())
    rows = (
        reader.schema(schema)
        .option("enforceSchema", False)  # files with other headers are an error
        .option("mode", "PERMISSIVE")
        .option("columnNameOfCorruptRecord", _BAD_LINE)
        .csv(path)
    )
    bad = F.col(_BAD_LINE)
    names = inferred.names
    reason = f"the line does not have {len(names)} columns, or a quote is not closed"
    first = F.col(quoted(layout.event_id if layout.event_id in names else names[0]))
    bad_lines = rows.where(bad.isNotNull()).select(
        first.cast("string").alias("id"),
        F.lit(reason).alias("reason"),
        F.to_json(F.struct(bad.alias("line"))).alias("raw"),
        F.input_file_name().alias("source"),
    )
    return EventFiles(rows.where(bad.isNull()).drop(_BAD_LINE), layout, bad_lines)
