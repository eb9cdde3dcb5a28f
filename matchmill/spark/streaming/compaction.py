"""A version and what has changed since, built into the next version while the stream continues.

    the version's shards, without ids that changed ─┐
                                                    ├─► build ─► published, as by `build` itself
    changed subscriptions that are there ───────────┘

The stream switches to the new version at the start of a batch. Until then nothing depends on it: a
compaction that fails or is killed leaves the stream unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from multiprocessing.pool import ThreadPool
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from matchmill.spark.building.driver import build
from matchmill.spark.published.sharded_engine import ShardedEngine
from matchmill.spark.published.version_rows import version_rows

__all__ = ["Compaction"]


class Compaction:
    """One build, in a thread."""

    def __init__(
        self, spark: Any, engine: ShardedEngine, changed: pa.Table, options: Mapping[str, Any]
    ) -> None:
        self._spark = spark
        self._engine = engine
        self._changed = changed
        self._options = options
        self._done: Future[ShardedEngine] = Future()
        # Threads of this pool do not keep the process from ending: a build may be cut short.
        pool = ThreadPool(1)
        pool.apply_async(
            self._build,
            callback=self._done.set_result,
            error_callback=self._done.set_exception,
        )
        pool.close()

    @property
    def is_running(self) -> bool:
        """Whether the build is not done yet."""
        return not self._done.done()

    def error(self) -> BaseException | None:
        """Wait for the build; return what went wrong."""
        return self._done.exception()

    def result(self) -> ShardedEngine:
        """Wait for the new version; raise what went wrong."""
        return self._done.result()

    def _build(self) -> ShardedEngine:
        engine, manifest = self._engine, self._engine.manifest
        rows = version_rows(self._spark, engine)
        if self._changed.num_rows:
            changed = self._spark.createDataFrame(self._changed.select(["id", "expression"]))
            names = ["subscription_id", "expression"]
            rows = rows.join(changed.select("id"), rows.subscription_id == F.col("id"), "left_anti")
            rows = rows.unionByName(changed.filter("expression is not null").toDF(*names))
        return build(
            rows,
            engine.path,
            index=manifest.index_name,
            operators=manifest.operator_modules,
            settings=engine.settings,
            strict=True,
            **self._options,
        )
