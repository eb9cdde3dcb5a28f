"""Workers keep what they have imported out of later collections."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")
from matchmill import spark as ms


def _figures(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield pa.record_batch([[gc.get_freeze_count()], [len(gc.get_objects())]], ["kept", "seen"])


def test_a_collection_after_a_task_visits_little(spark: Any) -> None:
    rows = [(n, f"x > {n}") for n in range(20)]
    subscriptions = spark.createDataFrame(rows, "subscription_id long, expression string")
    events = spark.createDataFrame([(n, n) for n in range(20)], "event_id long, x long")
    found = ms.match(subscriptions, events, plan="events")
    assert found.count() == 20 * 19 // 2
    workers = spark.range(0, 8, 1, 8).mapInArrow(_figures, "kept long, seen long").collect()
    used = [row for row in workers if row.kept]
    assert used, "no worker was used again"
    assert all(row.kept > 10 * row.seen for row in used), used
