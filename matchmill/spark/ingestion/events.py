"""Events into Spark: each is read once, as the matcher would read it; bad ones are set aside.

layout    accepted
wide      event_id and the columns of attributes, as they came
map       event_id, attributes (a map)
json      event_id, event (the text as it came)
long      event_id, attributes (a map: the pairs of one event_id together)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from matchmill.encoding.events.arrow_cells import read_cells
from matchmill.settings import DEFAULT_SETTINGS, Settings
from matchmill.spark.event_forms import event_frame
from matchmill.spark.ingestion.ingested import Ingested, came_in, keep, source_column
from matchmill.spark.layouts import EventLayout

__all__ = ["ingest_events"]


def ingest_events(
    df: Any,
    layout: str | EventLayout = "wide",
    *,
    work: str | None = None,
    settings: Settings = DEFAULT_SETTINGS,
) -> Ingested:
    """Check the events of a DataFrame. Ids keep their type.

    `accepted` is what the matcher takes, in the layout of the table above. `counts` counts events,
    which in the long layout are not rows.
    """
    kind = layout.kind if isinstance(layout, EventLayout) else layout
    events = event_frame(df, layout)
    if kind != "long":
        # A long table has lost it by grouping.
        events = events.withColumn("source", source_column(events))
    # As an object: a text would trip over unusual names of columns.
    given = events.schema
    schema = type(given)([*given.fields]).add("n_in", "long").add("reason", "string")

    def checked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            reasons = pa.array(_reasons(batch, settings), pa.string())
            yield pa.record_batch(
                [*batch.columns, came_in(batch.num_rows), reasons],
                [*batch.schema.names, "n_in", "reason"],
            )

    kept = keep(events.mapInArrow(checked, schema), work)
    good, bad = kept.where("reason is null"), kept.where("reason is not null")
    if kind == "wide":
        accepted = good.select("event_id", "event.*")
    else:
        name = "event" if kind == "json" else "attributes"
        accepted = good.select("event_id", F.col("event").alias(name))
    return Ingested(kept, accepted, _quarantine(bad, kind))


def _reasons(batch: pa.RecordBatch, settings: Settings) -> list[str | None]:
    """Why each event is bad; None for a good one."""
    events = read_cells(batch.column("event"), settings)
    reasons: list[str | None] = [None] * batch.num_rows
    # No column is wanted: whether an event is rejected does not depend on that.
    for i, reason in events.columns(lambda _: False).rejected.items():
        reasons[i] = reason
    for i, is_valid in enumerate(batch.column("event").is_valid().to_pylist()):
        if not is_valid:
            reasons[i] = "the event is missing"
    if "problem" in batch.schema.names:
        for i, problem in enumerate(batch.column("problem").to_pylist()):
            reasons[i] = problem or reasons[i]
    for i, is_valid in enumerate(batch.column("event_id").is_valid().to_pylist()):
        if not is_valid and reasons[i] is None:  # in JSON lines that are none, it is, too
            reasons[i] = "the event_id is missing"
    return reasons


def _quarantine(bad: Any, kind: str) -> Any:
    event = "pairs" if kind == "long" else "event"
    raw = F.to_json(
        F.struct("event_id", F.col(event).alias("event")), {"ignoreNullFields": "false"}
    )
    source = F.col("source") if kind != "long" else F.lit(None).cast("string")
    identifier = F.col("event_id").cast("string")
    return bad.select(identifier.alias("id"), "reason", raw.alias("raw"), source.alias("source"))
