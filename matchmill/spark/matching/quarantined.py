"""Events that cannot be read: which, and why. `match` passes over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql.types import StringType, StructField, StructType

from matchmill.settings import DEFAULT_SETTINGS, Settings
from matchmill.spark.layouts import EventLayout, layout_of, prepared
from matchmill.spark.matching.tasks import bad_events

__all__ = ["quarantine"]


def quarantine(
    events: Any,
    *,
    layout: str | EventLayout = "wide",
    event_id: str | None = None,
    columns: str | Sequence[str] | None = None,
    settings: Settings = DEFAULT_SETTINGS,
) -> Any:
    """A DataFrame (event_id, reason) of the events that no subscription is compared with."""
    chosen = layout_of(layout, event_id, columns)
    cells = prepared(events, chosen)
    name = chosen.event_id
    schema = StructType([cells.schema[name], StructField("reason", StringType())])
    return cells.mapInArrow(bad_events((name, "reason"), settings), schema)
