"""Workers that write matches themselves write what Spark would write, and count it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
from matchmill import spark as ms
from matchmill.spark.layouts import layout_of
from matchmill.spark.matching import direct_output
from matchmill.spark.matching.direct_output import can_write_matches, write_matches
from matchmill.spark.pipeline.figures import match_figures, written_figures

SAME = ("n_matches", "n_by_subscription", "n_by_event", "n_matched_subscriptions")
SAME += ("n_matched_events", "n_matches_of_one_event", "histogram", "busiest")


@pytest.fixture(scope="module")
def events(spark: Any) -> Any:
    rows = [(i, i % 97, "JLE"[i % 3]) for i in range(3000)]
    return spark.createDataFrame(rows, "event_id bigint, x int, y string").repartition(3)


@pytest.mark.parametrize("ids", ["string", "int"])
def test_the_same_pairs_and_figures_as_sparks_own(
    ids: str, spark: Any, events: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        (i if ids == "int" else f"s{i}", f"x < {i % 90} and y = '{'JLE'[i % 3]}'")
        for i in range(60)
    ]
    frame = spark.createDataFrame(rows, f"subscription_id {ids}, expression string")
    engine = ms.build(frame, tmp_path / "engine", shards=3)
    plain = ms.match(engine, events)
    folder = tmp_path / "matches"
    assert can_write_matches(events, "event_id", str(folder))
    figures = write_matches(engine, events, str(folder), layout=layout_of("wide", "event_id", None))
    read = spark.read.parquet(str(folder))
    assert read.dtypes == plain.dtypes
    assert sorted(map(tuple, read.collect())) == sorted(map(tuple, plain.collect()))
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["_SUCCESS", *(f"part-{i:05d}.parquet" for i in range(3))]
    expected = match_figures(read, frame, per_event=False)
    found = written_figures(figures, frame, read.count())
    assert {name: found[name] for name in SAME} == {name: expected[name] for name in SAME}
    assert sum(n for _, n in found["tasks"]) == found["n_matches"] > 0


def test_an_event_without_matches_and_no_events_at_all(
    spark: Any, events: Any, tmp_path: Path
) -> None:
    frame = spark.createDataFrame([("s", "x < 0")], "subscription_id string, expression string")
    engine = ms.build(frame, tmp_path / "engine")
    layout = layout_of("wide", "event_id", None)
    for name, some in (("none", events), ("empty", events.where("false"))):
        figures = write_matches(engine, some, str(tmp_path / name), layout=layout)
        files = list((tmp_path / name).glob("*.parquet"))
        assert sum(pq.read_metadata(file).num_rows for file in files) == 0
        read = spark.read.parquet(str(tmp_path / name))
        found = written_figures(figures, frame, read.count())
        assert found["n_matches"] == found["n_matched_events"] == found["n_by_subscription"] == 0


def test_where_spark_has_to_write(spark: Any, events: Any) -> None:
    assert not can_write_matches(events, "event_id", "hdfs://somewhere/matches")
    dates = events.selectExpr("date '2026-01-01' as event_id")
    assert not can_write_matches(dates, "event_id", "/tmp/matches")


def test_pairs_are_written_some_at_a_time(
    spark: Any, events: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row groups of one shard follow each other, and each has the dictionary that it needs."""
    monkeypatch.setattr(direct_output, "_PAIRS_AT_ONCE", 500)  # here; workers have their own
    frame = spark.createDataFrame(
        [(f"s{i}", f"x > {i}") for i in range(50)], "subscription_id string, expression string"
    )
    engine = ms.build(frame, tmp_path / "engine", shards=2)
    cells = events.selectExpr("event_id", "struct(x, y) as event").toArrow().to_batches()
    task = direct_output._writing_task(engine.worker_files(()), False, str(tmp_path), "snappy", {})
    names = [batch.column("id")[0].as_py() for batch in task(cells)][:1]
    table = pq.read_table(tmp_path / names[0])
    assert pq.read_metadata(tmp_path / names[0]).num_row_groups > 4
    expected = {
        (row["event_id"], f"s{i}") for row in events.collect() for i in range(50) if row["x"] > i
    }
    found = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert len(found) == len(expected)
    assert set(found) == expected
