"""The step `stream` of a pipeline: events as they come, until nothing is left or time is up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matchmill.errors import InputError
from matchmill.spark.errors import naming_files
from matchmill.spark.layouts import EventLayout
from matchmill.spark.streaming.query import stream

__all__ = ["run_stream"]

_FILES = ("csv", "json", "orc", "parquet")


def run_stream(
    spark: Any, given: dict[str, Any], layout: EventLayout, path: Callable[[str], str]
) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """Run the stream; return counts, and the figures of each batch.

    Matches and checkpoint stay, and the next run continues.
    """
    events, layout = _source(spark, given, layout)
    trigger = (
        {"availableNow": True}
        if given["trigger"] == "available-now"
        else {"processingTime": given["trigger"]}
    )
    query = stream(
        path("engine"), events, path("stream/matches"), path("stream/checkpoint"),
        layout=layout, trigger=trigger,
    )  # fmt: skip
    try:
        query.awaitTermination(given["stop_after_seconds"] or None)
    finally:
        query.stop()
    batches = [
        {
            "batch_id": progress["batchId"],
            "n_events": progress["numInputRows"],
            "seconds": progress["batchDuration"] / 1000,
        }
        for progress in query.recentProgress
        if progress["numInputRows"]
    ]
    counts = {"n_events": sum(b["n_events"] for b in batches), "n_batches": len(batches)}
    numbers = [b["batch_id"] for b in batches]
    output = path("stream/matches")
    counts["n_matches"] = _n_rows(spark, "parquet", output, numbers)
    counts["n_rejected"] = _n_rows(spark, "text", f"{output}/_quarantine/events", numbers)
    return counts, batches


def _n_rows(spark: Any, format_name: str, folder: str, batches: list[int]) -> int:
    """Count the rows of these batches; a batch without any may have no folder."""
    context = spark.sparkContext
    n_rows = 0
    for batch in batches:
        name = f"{folder}/batch_id={batch}"
        hadoop_path = context._jvm.org.apache.hadoop.fs.Path(name)
        system = hadoop_path.getFileSystem(context._jsc.hadoopConfiguration())
        if system.exists(hadoop_path):
            n_rows += spark.read.format(format_name).load(name).count()
    return n_rows


def _source(spark: Any, given: dict[str, Any], layout: EventLayout) -> tuple[Any, EventLayout]:
    reader = spark.readStream.options(**given["options"])
    name = given["format"]
    if name == "jsonl":
        lines = reader.format("text").load(given["path"])
        rows = lines.selectExpr(
            f"get_json_object(value, \"$['{layout.event_id}']\") as event_id", "value as event"
        )
        return rows, EventLayout("json", attributes=("event",))
    reader = reader.format(name)
    if name in _FILES:
        reader = reader.schema(_schema(spark, name, given))
    events = reader.load(given["path"]) if given["path"] else reader.load()
    return (events.selectExpr(*given["select"]) if given["select"] else events), layout


def _schema(spark: Any, name: str, given: dict[str, Any]) -> Any:
    """Return the schema of the files that are there: a stream of files must know it."""
    with naming_files():
        reader = spark.read.format(name)
        if name == "csv":
            reader = reader.option("header", True).option("inferSchema", True)
        schema = reader.load(given["path"]).schema
    if not schema.fields:
        raise InputError(f"{given['path']} has no files yet: their columns cannot be known")
    return schema
