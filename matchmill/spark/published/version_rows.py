"""The subscriptions of an engine as a DataFrame, read by workers from its shards."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from matchmill.engine.subscription_table import Subscriptions, text_array
from matchmill.spark.building.subscription_columns import checked_subscriptions
from matchmill.spark.published.open_version import OpenEngine, OpenVersion, open_matcher
from matchmill.spark.published.sharded_engine import ShardedEngine
from matchmill.spark.published.sharded_engine import open as open_engine
from matchmill.spark.published.worker_files import WorkerFiles
from matchmill.spark.worker_memory import worker_task

__all__ = ["subscription_frame", "version_rows"]

_ROWS_PER_BATCH = 1 << 14


def subscription_frame(
    subscriptions: Any,
    spark: Any,
    *,
    subscription_id: str = "subscription_id",
    expression: str = "expression",
    operators: Sequence[str] = (),
) -> Any:
    """Return a DataFrame (subscription_id, expression) of a DataFrame, an engine or a path."""
    if isinstance(subscriptions, (str, os.PathLike)):
        subscriptions = open_engine(subscriptions, spark=spark)
    if isinstance(subscriptions, ShardedEngine):
        return version_rows(spark, subscriptions, operators)
    rows, _ = checked_subscriptions(subscriptions, subscription_id, expression)
    return rows.withColumnRenamed("id", "subscription_id")


def version_rows(spark: Any, engine: ShardedEngine, operators: Sequence[str] = ()) -> Any:
    """Return a DataFrame (subscription_id, expression) of all that is in an engine."""
    n_shards = len(engine.manifest.shards)
    schema = f"subscription_id {engine.id_type}, expression string"
    if n_shards == 0:
        return spark.createDataFrame([], schema)
    shards = spark.range(0, n_shards, 1, n_shards)
    task = _reader(engine.worker_files(operators), engine.verify)
    return shards.mapInArrow(worker_task(task), schema)


def _reader(
    files: WorkerFiles, verify: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher = open_matcher(files, verify)
        for batch in batches:
            for shard in batch.column(0).to_pylist():
                if isinstance(matcher, OpenVersion):
                    known = matcher.shards[shard].state.subscriptions
                else:
                    assert isinstance(matcher, OpenEngine)
                    known = matcher.engine._store.state.subscriptions
                yield from _rows(known, matcher.id_type)

    return read


def _rows(known: Subscriptions, id_type: pa.DataType) -> Iterator[pa.RecordBatch]:
    texts, numbers = text_array(known), known.live_numbers()
    for start in range(0, len(numbers), _ROWS_PER_BATCH):
        some = numbers[start : start + _ROWS_PER_BATCH]
        ids = pc.cast(known.ids_of_numbers(some), id_type)
        found = texts.take(pa.array(known.row_of_number.data[some]))
        yield pa.RecordBatch.from_arrays(
            [ids, found.cast(pa.string())], ["subscription_id", "expression"]
        )
