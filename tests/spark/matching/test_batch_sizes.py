"""What leaves a worker, and what comes to the driver, is limited by bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")
from matchmill.engine.matches import ArrowIds
from matchmill.errors import EventError
from matchmill.settings import DEFAULT_SETTINGS
from matchmill.spark.matching import batch_sizes, small_job, tasks
from matchmill.spark.matching.batch_sizes import byte_sizes, cuts, pair_cuts
from matchmill.spark.published.open_version import EventSlice, SliceMatches
from tests.support.spark_cases import case_of, oracle, pairs, subscriptions


class Shards:
    """A matcher of many shards: every subscription of a shard matches every event."""

    settings = DEFAULT_SETTINGS
    id_type = pa.string()

    def __init__(self, n_shards: int, ids: pa.Array, rejected: tuple[int, ...] = ()) -> None:
        self.n_shards, self.ids, self.rejected = n_shards, ids, rejected

    def slices(self, cells: pa.Array, types: Any = None) -> Any:
        n = len(cells)
        rows = np.repeat(np.arange(n), len(self.ids))
        numbers = np.tile(np.arange(len(self.ids)), n)
        known = ArrowIds(self.ids)
        matches = (SliceMatches(rows, numbers, known, self.id_type) for _ in range(self.n_shards))
        yield EventSlice(0, n, dict.fromkeys(self.rejected, "bad"), matches)


def run(matcher: Any, n_events: int, *, per_event: bool, id_size: int = 8) -> list[pa.RecordBatch]:
    event_ids = pa.array([f"{k:0{id_size}d}" for k in range(n_events)])
    cells = pa.nulls(n_events)
    return list(tasks.matched(matcher, event_ids, cells, per_event=per_event, strict=False))


def test_pairs_come_in_batches_of_limited_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_sizes.pair_cuts, "__defaults__", (100_000,))
    ids = pa.array([f"s{k:098d}" for k in range(100)])
    found = run(Shards(3, ids), 20, per_event=False, id_size=500)
    assert len(found) >= 3 * 20 * 100 * 600 // 100_000
    assert max(batch.nbytes for batch in found) <= 110_000
    table = pa.Table.from_batches(found)
    assert table.num_rows == 3 * 20 * 100
    once = {(f"{e:0500d}", s) for e in range(20) for s in ids.to_pylist()}
    assert set(zip(*(c.to_pylist() for c in table.columns), strict=True)) == once


def test_lists_of_many_shards_exceed_no_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen shards whose ids together take more than 2 ** 31 bytes, in slices of one buffer."""
    ids = pa.array(["x" * 1_000_000])
    monkeypatch.setattr(tasks, "MOST_BYTES", 32 << 20)
    part = next(Shards(16, ids).slices(pa.nulls(150)))  # 2.4 GB of ids
    n_events = 0
    for lists in tasks.lists_of(Shards(16, ids), part):
        assert lists.values.nbytes <= 64 << 20
        assert set(lists.value_lengths().to_pylist()) == {16}
        n_events += len(lists)
    assert n_events == 150


def test_lists_keep_the_order_of_events_and_leave_out_the_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tasks.lists_of, "__kwdefaults__", {"mark_rejected": False, "most": 100})
    ids = pa.array(["a", "b"])
    found = pa.Table.from_batches(run(Shards(3, ids, (1, 5)), 9, per_event=True))
    assert found["event_id"].to_pylist() == [f"{k:08d}" for k in range(9) if k not in (1, 5)]
    assert found["subscription_ids"].to_pylist() == [["a", "b"] * 3] * 7


def test_an_event_with_more_matches_than_a_list_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_MOST_OFFSET", 1000)
    with pytest.raises(EventError, match="more than an array of Spark can hold"):
        run(Shards(3, pa.array(["x" * 500])), 2, per_event=True)


def test_cuts_are_complete_and_as_large_as_allowed() -> None:
    assert cuts(np.array([5, 5, 5, 20, 1, 1]), 10) == [0, 2, 3, 4, 6]
    assert cuts(np.empty(0, np.int64), 10) == [0]
    assert byte_sizes(pa.array(["", None, "abc"])).tolist() == [4, 4, 7]
    assert byte_sizes(pa.array([1, 2])).tolist() == [8, 8]
    assert list(pair_cuts(np.empty(0, np.int64), np.array([4]), pa.array([], pa.string()))) == []


# -- small jobs -----------------------------------------------------------------------------------


def test_large_rows_are_left_to_spark(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of("map", 3, 30, 20)
    events, small = spark.createDataFrame(case.table), subscriptions(spark, case.expressions)
    names = ("subscription_id", "expression")
    wide = events.selectExpr("event_id", "map('a', repeat('x', 1000)) as event")
    assert small_job.collected_job(small, wide, names, force=False) is not None
    monkeypatch.setattr(small_job, "MAX_BYTES", 10_000)
    assert small_job.collected_job(small.limit(2), wide, names, force=False) is None
    assert small_job.collected_job(small.limit(2), wide.limit(5), names, force=False) is not None
    assert small_job.collected_job(small.limit(2), wide, names, force=True) is not None
    assert pairs(ms_match(small, events, case.layout)) == oracle(case)


def ms_match(small: Any, events: Any, layout: dict[str, Any]) -> Any:
    from matchmill import spark as ms

    return ms.match(small, events, **layout)


def test_what_is_too_large_for_a_result_is_left_to_spark(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither `maxResultSize` nor many matches make a job fail that nobody asked the driver for."""
    from pyspark.errors import PySparkException
    from pyspark.sql.classic.dataframe import DataFrame

    case = case_of("map", 3, 30, 20)
    events, small = spark.createDataFrame(case.table), subscriptions(spark, case.expressions)

    def too_large(frame: Any) -> Any:
        raise PySparkException(
            "Total size … is bigger than spark.driver.maxResultSize (1024.0 MiB)"
        )

    with monkeypatch.context() as patched:
        patched.setattr(DataFrame, "toArrow", too_large)
        names = ("subscription_id", "expression")
        assert small_job.collected_job(small, events, names, force=False) is None
    monkeypatch.setattr(small_job, "_MAX_RESULT_BYTES", 10)
    assert pairs(ms_match(small, events, case.layout)) == oracle(case)
