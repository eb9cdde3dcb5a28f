"""A version and what has changed since, built into the next version while the stream continues.

    the version's shards, without ids that changed ─┐
                                                    ├─► build ─► published, as by `build` itself
    changed subscriptions that are there ───────────┘

The stream switches to the new version at the start of a batch. Until then nothing depends on it: a
compaction that fails or is killed leaves the stream unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Thread
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
        self._built: ShardedEngine | None = None
        self._error: BaseException | None = None
        # It may be cut short at any time, so it need not keep the process from ending.
        self._thread = Thread(target=self._run, name="matchmill compaction", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether the build is not done yet."""
        return self._thread.is_alive()

    def result(self) -> ShardedEngine:
        """Wait for the new version; raise what went wrong."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._built is not None
        return self._built

    def _run(self) -> None:
        try:
            self._built = self._build()
        except BaseException as error:  # noqa: BLE001 - `result` raises it
            self._error = error

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
