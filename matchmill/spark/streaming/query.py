"""Streams of events in, a folder of matches a batch out, exactly once.

One query, one checkpoint: `stream_batches.py` is what it does for each batch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql.types import LongType, StringType, StructField, StructType

from matchmill.errors import InputError
from matchmill.spark.imports import import_operators
from matchmill.spark.layouts import EventLayout, layout_of, prepared
from matchmill.spark.published.versions import open_index
from matchmill.spark.sessions import is_connect
from matchmill.spark.streaming.batch_records import Records, record_place
from matchmill.spark.streaming.batches import Batches, Compacting, StreamPlan, as_text
from matchmill.spark.streaming.changes import ChangeColumns, mixed_stream, two_streams
from matchmill.spark.streaming.output import StreamOutput

__all__ = ["stream_matches"]


def stream_matches(
    events: Any,
    index_path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    checkpoint: str | os.PathLike[str],
    *,
    changes: Any = None,
    mixed: bool = False,
    change_columns: ChangeColumns | None = None,
    layout: str | EventLayout = "wide",
    event_id: str | None = None,
    columns: str | Sequence[str] | None = None,
    id_column: str = "subscription_id",
    format: str = "parquet",
    trigger: Mapping[str, Any] | None = None,
    name: str | None = None,
    compact_at: int = 20_000,
    delta_limit: int = 200_000,
    compact_in_background: bool = True,
    build_options: Mapping[str, Any] | None = None,
    now: Callable[[], datetime] | None = None,
) -> Any:
    """Start a StreamingQuery that writes the matches of a streaming DataFrame of events.

    Matches are files in `output`, in a folder `batch_id=N` for each batch. `changes` is a second
    streaming DataFrame (kind, subscription_id, expression, expires_at); with `mixed` they are rows
    among the events. The changes of a batch are made before its events are matched. `trigger` is
    what Spark's `DataStreamWriter.trigger` takes: `{"availableNow": True}` runs until all that is
    there is done.

    Without changes each batch takes the version of the index that is current then. With them the
    stream decides: when `compact_at` subscriptions have changed, a new version is built beside the
    stream, or between two batches unless `compact_in_background`; when `delta_limit` have, the
    stream waits for it. `build_options` are passed to `build`. `now` tells the time that ends of
    subscriptions go by.
    """
    _check_arguments(events, changes, mixed, compact_at, delta_limit)
    spark = events.sparkSession
    index = open_index(index_path, spark=spark)
    import_operators(index.manifest.operator_modules)
    chosen = layout_of(layout, event_id, columns)
    stream = events
    if changes is not None:
        stream = two_streams(events, changes, change_columns or ChangeColumns(), index.id_type)
    elif mixed:
        stream = mixed_stream(events, change_columns or ChangeColumns(), index.id_type)
    has_changes = mixed or changes is not None
    cells = prepared(stream.select("event.*") if has_changes else events, chosen)
    ids = LongType() if index.id_type == "bigint" else StringType()
    plan = StreamPlan(
        spark,
        Records(record_place(checkpoint, spark)),
        StreamOutput(spark, _for_spark(output), format),
        chosen,
        StructType([cells.schema[chosen.event_id], StructField(id_column, ids)]),
        has_changes,
        Compacting(compact_at, delta_limit, compact_in_background, dict(build_options or {})),
        now,
    )
    _prepare_folders(plan)
    writer = stream.writeStream.foreachBatch(Batches(plan, index))
    writer = writer.option("checkpointLocation", _for_spark(checkpoint))
    if name is not None:
        writer = writer.queryName(name)
    if trigger is not None:
        writer = writer.trigger(**trigger)
    return writer.start()


def _for_spark(path: str | os.PathLike[str]) -> str:
    """A folder by its full name: Spark's process may be elsewhere, or take it for one of HDFS."""
    text = os.fspath(path)
    return text if len(urlsplit(text).scheme) > 1 else f"file://{Path(text).absolute()}"


def _check_arguments(
    events: Any, changes: Any, mixed: bool, compact_at: int, delta_limit: int
) -> None:
    if is_connect(events.sparkSession):
        raise InputError("a stream of matches needs a classic Spark session, not Spark Connect")
    if not events.isStreaming:
        raise InputError("the events are no stream: read them by spark.readStream, or use match")
    if changes is not None and mixed:
        raise InputError("changes come as a DataFrame of their own, or mixed=True, not both")
    if not 1 <= compact_at <= delta_limit:
        raise InputError(
            "compact_at and delta_limit are numbers of subscriptions, the first at least 1 and at"
            f" most the second, not {compact_at!r} and {delta_limit!r}"
        )


def _prepare_folders(plan: StreamPlan) -> None:
    """See that checkpoint and output belong together; remove what was cut short."""
    with plan.records.place.locked():  # also makes the folder
        plan.records.check_output(as_text(plan.schema))
        plan.records.prune()
    if not plan.records.known():
        plan.output.check_unused()
    plan.output.remove_leftovers()
