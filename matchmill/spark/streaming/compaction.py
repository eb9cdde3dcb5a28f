"""A version and what has changed since, built into the next version while the stream goes on.

    the version's shards, without ids that changed ─┐
                                                    ├─► build ─► published, as by `build` itself
    changed subscriptions that are there ───────────┘

The stream takes the new version at a batch of its choice. Until then nothing depends on it: one
that fails or is killed leaves the stream where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from matchmill.spark.building.driver import build
from matchmill.spark.published.open_version import opened
from matchmill.spark.published.versions import PublishedIndex
from matchmill.spark.published.worker_files import Shipped

__all__ = ["Compaction", "version_rows"]

_ROWS_A_BATCH = 1 << 14


class Compaction:
    """One build on its way, in a thread."""

    def __init__(
        self, spark: Any, index: PublishedIndex, changed: pa.Table, options: Mapping[str, Any]
    ) -> None:
        self._spark = spark
        self._index = index
        self._changed = changed
        self._options = options
        self._built: PublishedIndex | None = None
        self._error: BaseException | None = None
        # It may be cut short at any time, so it need not keep the process from ending.
        self._thread = Thread(target=self._run, name="matchmill compaction", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def result(self) -> PublishedIndex:
        """Wait for the new version; raises what went wrong."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._built is not None
        return self._built

    def _run(self) -> None:
        try:
            self._built = self._build()
        except BaseException as error:  # told by `result`
            self._error = error

    def _build(self) -> PublishedIndex:
        index, manifest = self._index, self._index.manifest
        rows = version_rows(self._spark, index)
        if self._changed.num_rows:
            changed = self._spark.createDataFrame(self._changed.select(["id", "expression"]))
            names = ["subscription_id", "expression"]
            rows = rows.join(changed.select("id"), rows.subscription_id == F.col("id"), "left_anti")
            rows = rows.unionByName(changed.filter("expression is not null").toDF(*names))
        return build(
            rows,
            index.path,
            index=manifest.index_name,
            operators=manifest.operator_modules,
            settings=index.settings,
            strict=True,
            **self._options,
        )


def version_rows(spark: Any, index: PublishedIndex) -> Any:
    """A DataFrame (subscription_id, expression) of all that is in a version."""
    n_shards = len(index.manifest.shards)
    schema = f"subscription_id {index.id_type}, expression string"
    if n_shards == 0:
        return spark.createDataFrame([], schema)
    shards = spark.range(0, n_shards, 1, n_shards)
    return shards.mapInArrow(_reader(index.shipped(), index.verify), schema)


def _reader(
    shipped: Shipped, verify: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        version = opened(shipped, verify)
        for batch in batches:
            for shard in batch.column(0).to_pylist():
                known = version.shards[shard].state.subscriptions
                texts = known.texts.texts
                buffers = [None, pa.py_buffer(texts.offsets), pa.py_buffer(texts.data)]
                all_texts = pa.Array.from_buffers(pa.large_string(), texts.n_texts, buffers)
                numbers = known.live_numbers()
                for start in range(0, len(numbers), _ROWS_A_BATCH):
                    some = numbers[start : start + _ROWS_A_BATCH]
                    ids = pc.cast(known.ids_of_numbers(some), version.id_type)
                    found = all_texts.take(pa.array(known.row_of_number.data[some]))
                    yield pa.RecordBatch.from_arrays(
                        [ids, found.cast(pa.string())], ["subscription_id", "expression"]
                    )

    return read
