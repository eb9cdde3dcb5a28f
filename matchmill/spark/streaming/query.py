"""`stream`: streams of events in, one folder of matches per batch out, exactly once.

One query, one checkpoint; `batches.py` is what is done for each batch.
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
from matchmill.operators.modules import import_operators
from matchmill.spark.layouts import EventLayout, event_cells, layout_of
from matchmill.spark.published.sharded_engine import ShardedEngine
from matchmill.spark.published.sharded_engine import open as open_engine
from matchmill.spark.sessions import is_connect
from matchmill.spark.streaming.batch_records import Records, record_location
from matchmill.spark.streaming.batches import Batches, Compacting, StreamPlan, as_text
from matchmill.spark.streaming.changes import with_changes
from matchmill.spark.streaming.output import StreamOutput

__all__ = ["stream"]


def stream(
    subscriptions: ShardedEngine | str | os.PathLike[str],
    events: Any,
    output: str | os.PathLike[str],
    checkpoint: str | os.PathLike[str],
    *,
    changes: Any = None,
    trigger: Mapping[str, Any] | None = None,
    layout: str | EventLayout = "wide",
    event_id: str = "event_id",
    attributes: str | Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    format: str = "parquet",
    name: str | None = None,
    compact_at: int = 20_000,
    delta_limit: int = 200_000,
    compact_in_background: bool = True,
    build_options: Mapping[str, Any] | None = None,
    now: Callable[[], datetime] | None = None,
) -> Any:
    """Start a StreamingQuery that writes the matches of a streaming DataFrame of events.

    The changes of a batch are made before its events are matched. Without changes each batch takes
    the version of the engine that is current then. With them the stream is the engine's only
    writer: it builds new versions when enough has changed.

    Parameters
    ----------
    subscriptions
        An engine that `build` made, or its path.
    events
        A streaming DataFrame.
    output
        The folder, or Hadoop path, of the matches: a folder `batch_id=N` for each batch, with the
        columns `event_id` and `subscription_id`. What was rejected is in `_quarantine`.
    checkpoint
        The folder, or Hadoop path, of what the stream remembers.
    changes
        A second streaming DataFrame with the columns `change` ("subscribe", "update" or
        "unsubscribe"), `subscription_id`, `expression`, and if needed `expires_at` and `sequence`.
    trigger
        What Spark's `DataStreamWriter.trigger` takes: `{"availableNow": True}` runs until all that
        is there is done.
    layout, event_id, attributes, types
        How the events stand in their DataFrame, and what they are read as, as in `match`.
    format
        The format of the output: "parquet" or "json".
    name
        The name of the query.
    compact_at
        Build a new version when so many subscriptions have changed.
    delta_limit
        Wait for the new version when so many have changed.
    compact_in_background
        Build beside the stream, and not between two batches.
    build_options
        Options of `build` for new versions.
    now
        Tells the time that ends of subscriptions go by; by default the driver's clock.

    Returns
    -------
    StreamingQuery
        Spark's own object.

    Examples
    --------
    >>> flights = spark.readStream.schema(schema).parquet("incoming")  # doctest: +SKIP
    >>> query = ms.stream("alerts.mill", flights, "matches", "checkpoint")  # doctest: +SKIP
    """
    _check_arguments(events, compact_at, delta_limit)
    spark = events.sparkSession
    engine = _engine(subscriptions, spark)
    import_operators(engine.manifest.operator_modules)
    chosen = layout_of(layout, event_id, attributes, types)
    cells = event_cells(events, chosen)
    source = events if changes is None else with_changes(events, changes, engine.id_type)
    ids = LongType() if engine.id_type == "bigint" else StringType()
    plan = StreamPlan(
        spark,
        Records(record_location(checkpoint, spark)),
        StreamOutput(spark, _for_spark(output), format),
        chosen,
        StructType([cells.schema["event_id"], StructField("subscription_id", ids)]),
        changes is not None,
        Compacting(compact_at, delta_limit, compact_in_background, dict(build_options or {})),
        now,
    )
    _prepare_folders(plan)
    writer = source.writeStream.foreachBatch(Batches(plan, engine))
    writer = writer.option("checkpointLocation", _for_spark(checkpoint))
    if name is not None:
        writer = writer.queryName(name)
    if trigger is not None:
        writer = writer.trigger(**trigger)
    return writer.start()


def _engine(subscriptions: Any, spark: Any) -> ShardedEngine:
    if isinstance(subscriptions, (str, os.PathLike)):
        subscriptions = open_engine(subscriptions, spark=spark)
    if not isinstance(subscriptions, ShardedEngine):
        raise InputError(
            "a stream needs an engine, or its path: build one with matchmill.spark.build"
        )
    if subscriptions.is_saved_engine:
        raise InputError(
            f"{subscriptions.path} is an engine that Engine.save made, and a stream needs one with"
            " versions: build it with matchmill.spark.build from"
            " spark.read.format('matchmill').load(path)"
        )
    return subscriptions


def _for_spark(path: str | os.PathLike[str]) -> str:
    """Write a folder by its full name: Spark's process may be elsewhere, or take it for HDFS."""
    text = os.fspath(path)
    return text if len(urlsplit(text).scheme) > 1 else f"file://{Path(text).absolute()}"


def _check_arguments(events: Any, compact_at: int, delta_limit: int) -> None:
    if is_connect(events.sparkSession):
        raise InputError("a stream of matches needs a classic Spark session, not Spark Connect")
    if not events.isStreaming:
        raise InputError("the events are no stream: read them by spark.readStream, or use match")
    if not 1 <= compact_at <= delta_limit:
        raise InputError(
            "compact_at and delta_limit are numbers of subscriptions, the first at least 1 and at"
            f" most the second, not {compact_at!r} and {delta_limit!r}"
        )


def _prepare_folders(plan: StreamPlan) -> None:
    """Check that checkpoint and output belong together; remove what was cut short."""
    with plan.records.location.locked():  # also makes the folder
        plan.records.check_output(as_text(plan.schema))
        plan.records.prune()
    if not plan.records.known():
        plan.output.check_unused()
    plan.output.remove_leftovers(plan.records.all_written())
