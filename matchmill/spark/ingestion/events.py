"""`ingest_events`: each event is read once, as the matcher reads it; bad ones are rejected.

layout    accepted
wide      event_id and the columns of attributes, as they came
map       event_id, attributes (a map)
json      event_id, event (the text as it came)
long      event_id, attributes (a map: the pairs of one event_id together)

Of a folder, Spark leaves out files whose names begin with `_` or `.`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from matchmill.encoding.events.arrow_values import list_lengths
from matchmill.errors import InputError
from matchmill.settings import DEFAULT_SETTINGS, Settings
from matchmill.spark.errors import naming_files
from matchmill.spark.ingestion.ingested import Ingested, came_in, keep, source_column
from matchmill.spark.ingestion.text_files import (
    BAD_LINE,
    format_of,
    read_csv,
    read_lines,
    session_of,
)
from matchmill.spark.layouts import EventLayout, event_cells, layout_of, quoted
from matchmill.spark.matching.quarantined import quarantine_rows, raw_event
from matchmill.spark.matching.tasks import rejection_reasons
from matchmill.spark.worker_memory import worker_task

__all__ = ["EVENT_FORMATS", "ingest_events"]

EVENT_FORMATS = ("csv", "jsonl", "parquet", "orc")


def ingest_events(
    events: Any,
    *,
    layout: str | EventLayout = "wide",
    event_id: str = "event_id",
    attributes: str | Sequence[str] | None = None,
    format: str | None = None,
    options: Mapping[str, Any] | None = None,
    work: str | None = None,
    settings: Settings = DEFAULT_SETTINGS,
    spark: Any = None,
) -> Ingested:
    """Check events; accept those that the matcher can read, and keep the others with their reasons.

    Parameters
    ----------
    events
        A DataFrame, or the path of a file, a folder or a pattern.
    layout, event_id, attributes
        How the events stand in their table, as in `match`. In JSON lines the id is looked for in
        each object, and is a text.
    format
        Of files: "csv" (with a header; types are inferred), "jsonl", "parquet" or "orc"; by default
        what the path ends in.
    options
        Options of Spark's reader, such as `{"nullValue": "NA"}`.
    work
        A folder for what was checked; without it Spark keeps that.
    settings
        Limits of events.
    spark
        The session to read files with; by default the active one.

    Returns
    -------
    Ingested
        `accepted` has `event_id` and, by layout, the attributes ("wide"), `attributes` ("map" and
        "long") or `event` ("json"). Counts are of events, which in a long table are not rows.

    Examples
    --------
    >>> with ms.ingest_events("flights.csv", event_id="flight") as ingested:  # doctest: +SKIP
    ...     print(ingested.counts())
    Counts(n_in=1000, n_accepted=998, n_rejected=2)
    """
    chosen = layout_of(layout, event_id, attributes)
    bad_lines = None
    if isinstance(events, (str, os.PathLike)):
        path = os.fspath(events)
        form = format_of(path, format, EVENT_FORMATS)
        events, chosen, bad_lines = _read(session_of(spark), path, form, chosen, options)
    cells = event_cells(events, chosen, keeps_all=True)
    has_source = chosen.kind != "long"  # grouping loses it
    if has_source:
        cells = cells.withColumn("source", source_column(cells))
    # As an object: a text would fail on unusual names of columns.
    schema = type(cells.schema)([*cells.schema.fields]).add("n_in", "long").add("reason", "string")

    def checked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            reasons = pa.array(_reasons(batch, chosen.kind, settings), pa.string())
            yield pa.record_batch(
                [*batch.columns, came_in(batch.num_rows), reasons],
                [*batch.schema.names, "n_in", "reason"],
            )

    kept = keep(cells.mapInArrow(worker_task(checked), schema), work)
    bad = kept.where("reason is not null")
    quarantine = quarantine_rows(
        bad, "event", id="event_id", raw=raw_event(), source="source" if has_source else None
    )
    accepted = _accepted(kept.where("reason is null"), chosen)
    return Ingested(kept, accepted, quarantine, bad_rows=bad_lines)


def _accepted(good: Any, layout: EventLayout) -> Any:
    if layout.kind == "json":
        return good.select("event_id", "event")
    if layout.kind == "map":
        return good.select("event_id", F.col("event").alias("attributes"))
    if layout.kind == "long":
        return good.select("event_id", F.map_from_entries("event").alias("attributes"))
    names = good.schema["event"].dataType.names
    if "event_id" in names:
        if layout.event_id != "event_id":
            raise InputError(
                f"the id of events is {layout.event_id!r}, and another column is called 'event_id':"
                " rename that one"
            )
        return good.select("event.*")
    return good.select("event_id", "event.*")


def _reasons(batch: pa.RecordBatch, kind: str, settings: Settings) -> list[str | None]:
    """Say why each event is rejected; None for a good one."""
    reasons: list[str | None] = [None] * batch.num_rows
    if kind == "long":
        for i, reason in _unfit_for_maps(batch.column("event")):
            reasons[i] = reason
    for i, reason in rejection_reasons(batch.column("event"), settings).items():
        reasons[i] = reason
    for i, is_valid in enumerate(batch.column("event").is_valid().to_pylist()):
        if not is_valid:
            reasons[i] = "the event is missing"
    for i, is_valid in enumerate(batch.column("event_id").is_valid().to_pylist()):
        if not is_valid and reasons[i] is None:  # a line that is no JSON has no id either
            reasons[i] = "the event_id is missing"
    return reasons


def _unfit_for_maps(cells: pa.Array) -> Iterator[tuple[int, str]]:
    """Yield the pairs that Spark makes no map of: it has no null keys, and no key twice."""
    rows = np.repeat(np.arange(len(cells)), list_lengths(cells))
    names = cells.flatten().field(0)
    codes = names.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
    order = np.lexsort((codes, rows))
    rows, codes = rows[order], codes[order]
    for k in np.flatnonzero((rows[1:] == rows[:-1]) & (codes[1:] == codes[:-1])).tolist():
        yield int(rows[k]), f"attribute {names[int(order[k])].as_py()!r} is given twice"
    for row in rows[codes < 0].tolist():
        yield row, "a value has no name: the attribute is null"


# -- files ----------------------------------------------------------------------------------------


class _Files(NamedTuple):
    rows: Any
    layout: EventLayout
    bad_lines: Any = None  # in the schema of a quarantine


def _read(
    spark: Any, path: str, form: str, layout: EventLayout, options: Mapping[str, Any] | None
) -> _Files:
    if form == "csv":
        return _read_csv(spark, path, layout, options)
    if form != "jsonl":
        with naming_files():
            rows = spark.read.options(**dict(options or {})).format(form).load(path)
        return _Files(rows, layout)
    if layout.kind != "json":
        raise InputError("JSON lines are events themselves: their layout is 'json'")
    rows = read_lines(spark, path, options).select(
        F.get_json_object("value", f"$['{layout.event_id}']").alias("event_id"),
        F.col("value").alias("event"),
    )
    return _Files(rows, EventLayout("json", attributes=("event",)))


def _read_csv(
    spark: Any, path: str, layout: EventLayout, options: Mapping[str, Any] | None
) -> _Files:
    found = read_csv(spark, path, infer_types=True, options=options)
    bad = F.col(BAD_LINE)
    id_name = layout.event_id if layout.event_id in found.names else found.names[0]
    bad_lines = quarantine_rows(
        found.rows.where(bad.isNotNull()).withColumn("source", F.input_file_name()),
        "event", id=F.col(quoted(id_name)), raw=found.raw_line, source="source",
        reason=F.lit(found.problem),
    )  # fmt: skip
    return _Files(found.rows.where(bad.isNull()).drop(BAD_LINE), layout, bad_lines)
