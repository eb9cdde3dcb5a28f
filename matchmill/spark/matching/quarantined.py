"""Rejected rows as a table: one schema for subscriptions, events and changes.

    kind | row | line | source | id | reason | raw

The columns of `Rejected`, ids as text, and the row as it came. Rows of a DataFrame have no position
and no line, so `row` and `line` are null; `source` is the file, where Spark knows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from matchmill.settings import DEFAULT_SETTINGS, Settings
from matchmill.spark.layouts import EventLayout, event_cells, layout_of
from matchmill.spark.matching.tasks import rejection_task
from matchmill.spark.worker_memory import worker_task

__all__ = ["QUARANTINE", "quarantine", "quarantine_of_batch", "quarantine_rows", "raw_event"]

QUARANTINE = (
    "kind string, row bigint, line bigint, source string, id string, reason string, raw string"
)


def quarantine_rows(
    rows: Any, kind: str, *, id: Any, raw: Any, source: Any = None, reason: Any = "reason"
) -> Any:
    """Bring rejected rows to the one schema; the keywords are columns or their names."""
    no_number = F.lit(None).cast("bigint")
    no_text = F.lit(None).cast("string")
    id, raw, reason = (F.col(c) if isinstance(c, str) else c for c in (id, raw, reason))
    return rows.select(
        F.lit(kind).alias("kind"),
        no_number.alias("row"),
        no_number.alias("line"),
        (no_text if source is None else F.col(source)).alias("source"),
        id.cast("string").alias("id"),
        reason.alias("reason"),
        raw.alias("raw"),
    )


def raw_event() -> Any:
    """Return the column that shows a cell, (event_id, event), as JSON."""
    return F.to_json(F.struct("event_id", "event"), {"ignoreNullFields": "false"})


def quarantine(
    events: Any,
    *,
    layout: str | EventLayout = "wide",
    event_id: str = "event_id",
    attributes: str | Sequence[str] | None = None,
    settings: Settings = DEFAULT_SETTINGS,
) -> Any:
    """List the events that cannot be read, with their reasons; `match` leaves them out.

    Parameters
    ----------
    events
        A DataFrame of events.
    layout, event_id, attributes
        How the events stand in their DataFrame, as in `match`.
    settings
        Limits of events.

    Returns
    -------
    DataFrame
        Columns `kind` ("event"), `row`, `line`, `source`, `id` (as text), `reason` and `raw` (the
        event as JSON).

    Examples
    --------
    >>> ms.quarantine(events, layout="json").select("id", "reason")  # doctest: +SKIP
    """
    return _quarantined(event_cells(events, layout_of(layout, event_id, attributes)), settings)


def quarantine_of_batch(batch: Any, layout: EventLayout, settings: Settings) -> Any:
    """List the events of a batch of a stream that cannot be read; a warning was given before."""
    return _quarantined(event_cells(batch, layout, warns=False), settings)


def _quarantined(cells: Any, settings: Settings) -> Any:
    schema = type(cells.schema)([*cells.schema.fields]).add("reason", StringType())
    found = cells.mapInArrow(worker_task(rejection_task(settings)), schema)
    return quarantine_rows(found, "event", id="event_id", raw=raw_event())
