"""Streams give what a plain replay of the same order gives."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
from pyspark.errors import StreamingQueryException

import matchmill as mm
from matchmill import spark as ms
from matchmill.spark.streaming.batch_records import Records
from matchmill.spark.streaming.compaction import Compaction
from matchmill.storage.folder_lock import FolderLock
from tests.support.stream_cases import (
    START,
    StreamCase,
    expected,
    found,
    stream_case,
    streams,
    write_files,
)

pytestmark = pytest.mark.slow
ALL_THERE = {"availableNow": True}


def clock(folder: Path) -> Any:
    """The time of each new batch, whatever is run again."""

    def now() -> datetime:
        last = ms.stream_progress(folder / "checkpoint")
        return datetime.fromtimestamp(START + (0 if last is None else last.batch_id + 1), UTC)

    return now


def build(spark: Any, case: StreamCase, folder: Path) -> ms.PublishedIndex:
    rows = spark.createDataFrame(
        list(case.base.items()), "subscription_id string, expression string"
    )
    return ms.build(rows, folder / "index", shards=2)


def finish(query: Any) -> None:
    with ms.plain_errors():
        query.awaitTermination()


@pytest.mark.parametrize("compact_at", [1000, 12])
def test_events_and_changes_of_two_sources(spark: Any, tmp_path: Path, compact_at: int) -> None:
    case = stream_case(5, 6, 60, 25, 8)
    write_files(case, tmp_path)
    first = build(spark, case, tmp_path)
    events, changes = streams(spark, tmp_path, case)
    query = ms.stream_matches(
        events, tmp_path / "index", tmp_path / "output", tmp_path / "checkpoint", changes=changes,
        trigger=ALL_THERE, compact_at=compact_at, compact_in_background=False, now=clock(tmp_path),
    )  # fmt: skip
    finish(query)
    wanted, refused = expected(case)
    assert found(tmp_path / "output") == (wanted, refused)
    assert refused
    read = spark.read.parquet(str(tmp_path / "output"))
    assert read.columns == ["event_id", "subscription_id", "batch_id"]
    assert read.count() == wanted.total()
    last = ms.stream_progress(tmp_path / "checkpoint")
    assert last is not None
    assert last.batch_id == 5
    assert (last.version == first.version) == (compact_at == 1000)
    assert min(last.n_fresh, last.n_expiring) > 0
    assert not list((tmp_path / "output").glob("_writing/*"))


def over_when_the_next_batch_asks(compaction: Any) -> bool:
    """Whether a compaction runs: when it is first asked, in the batch that began it, and then no
    more, since to ask again is to wait for it."""
    if not hasattr(compaction, "asked"):
        compaction.asked = True
        return True
    compaction._thread.join()
    return False


def test_compaction_beside_the_stream(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Compaction, "is_running", property(over_when_the_next_batch_asks))
    case = stream_case(6, 5, 60, 25, 8)
    write_files(case, tmp_path)
    build(spark, case, tmp_path)
    events, changes = streams(spark, tmp_path, case)
    seen: list[ms.BatchRecord] = []
    publish = Records.publish
    monkeypatch.setattr(
        Records, "publish", lambda self, record: (seen.append(record), publish(self, record))
    )
    query = ms.stream_matches(
        events, tmp_path / "index", tmp_path / "output", tmp_path / "checkpoint", changes=changes,
        trigger=ALL_THERE, compact_at=6, now=clock(tmp_path),
    )  # fmt: skip
    finish(query)
    assert found(tmp_path / "output") == expected(case)
    assert [record.compaction for record in seen] == ["idle", "running", "idle", "running", "idle"]
    versions = [record.version for record in seen]
    assert versions[0] == versions[1] != versions[2] == versions[3] != versions[4]
    # What changed while a version was built is still upon it.
    assert [record.n_changed for record in seen][2] > 8 >= seen[0].n_changed


def write_rows(spark: Any, rows: list[Any], schema: str, file: Path, time: int) -> None:
    """A file of a stream."""
    table = spark.createDataFrame(rows, schema).toArrow()
    file.parent.mkdir(exist_ok=True)
    pq.write_table(table, file)
    os.utime(file, (START + time, START + time))


MIXED = "kind string, event_id int, event string, subscription_id long, expression string, seq int"


def test_rows_of_every_kind_in_one_stream(spark: Any, tmp_path: Path) -> None:
    """From no subscription at all, with JSON in and out, an order, and bad rows of all kinds."""
    batches: list[list[Any]] = [
        [
            ("event", 1, '{"x": 5}', None, None, 0),
            ("event", 2, '{"x": ', None, None, 0),
            ("subscribe", None, None, 1, "x > 3", 1),
            ("subscribe", None, None, 2, "x > 3", 3),
            ("cancel", None, None, 2, None, 2),
            ("subscribe", None, None, 3, "x > 3", 1),
            ("cancel", None, None, 3, None, 2),
            ("subscribe", None, None, 4, "x > 3", 5),
            ("subscribe", None, None, 4, "x > 4", 5),
            ("subscribe", None, None, 5, "x >", 1),
            ("renew", None, None, 1, None, 9),
            (None, 3, '{"x": 5}', 1, None, 8),
            ("cancel", None, None, 1, None, None),
        ],
        [("event", 4, '{"x": 5}', None, None, 0), ("cancel", None, None, 2, None, 1)],
        [("event", 5, '{"x": 5}', None, None, 0), ("subscribe", None, None, 1, "x < 0", 1)],
    ]
    for n, rows in enumerate(batches):
        write_rows(spark, rows, MIXED, tmp_path / "rows" / f"{n}.parquet", n)
    nothing = spark.createDataFrame([], "subscription_id long, expression string")
    ms.build(nothing, tmp_path / "index")
    rows = spark.readStream.schema(MIXED).option("maxFilesPerTrigger", 1)
    query = ms.stream_matches(
        rows.parquet(str(tmp_path / "rows")), tmp_path / "index", tmp_path / "output",
        tmp_path / "checkpoint", mixed=True, change_columns=ms.ChangeColumns(order="seq"),
        layout="json", columns="event", format="json", trigger=ALL_THERE,
        compact_at=1, compact_in_background=False,
    )  # fmt: skip
    finish(query)
    read = spark.read.schema("event_id int, subscription_id long, batch_id int").json
    assert set(map(tuple, read(str(tmp_path / "output")).collect())) == {
        (1, 1, 0), (1, 2, 0), (4, 1, 1)
    }  # fmt: skip
    aside = tmp_path / "output" / "_quarantine"
    (bad,) = spark.read.json(str(aside / "events")).collect()
    assert (bad.event_id, bad.batch_id) == (2, 0)
    assert "not valid JSON" in bad.reason
    refused = spark.read.json(str(aside / "changes")).collect()
    assert sorted((row.subscription_id, row.reason.split(":")[0]) for row in refused) == [
        (1, "a change is of the kind subscribe or cancel, not 'renew'"),
        (1, "a change is of the kind subscribe or cancel, not None"),
        (1, "it has no order"),
        (4, "several changes of this id came in one batch, and which is the last cannot be known"),
        (4, "several changes of this id came in one batch, and which is the last cannot be known"),
        (5, "a literal is missing after `>` at line 1, column 4"),
    ]


PLAIN = "event_id int, x int"


def plain_stream(spark: Any, folder: Path) -> Any:
    return spark.readStream.schema(PLAIN).option("maxFilesPerTrigger", 1).parquet(str(folder))


def rules(spark: Any, **texts: str) -> Any:
    return spark.createDataFrame(list(texts.items()), "subscription_id string, expression string")


def test_without_changes_a_batch_takes_the_current_version(spark: Any, tmp_path: Path) -> None:
    folders = (tmp_path / "index", tmp_path / "output", tmp_path / "checkpoint")
    for n, version in enumerate(("a", "b")):
        write_rows(spark, [(n, 1)], PLAIN, tmp_path / "events" / f"{n}.parquet", n)
        # The version of the batch before is gone by then.
        ms.build(rules(spark, **{version: "x = 1"}), folders[0], keep=1)
        events = plain_stream(spark, tmp_path / "events")
        finish(ms.stream_matches(events, *folders, trigger=ALL_THERE))
    read = spark.read.parquet(str(folders[1]))
    assert set(map(tuple, read.collect())) == {(0, "a", 0), (1, "b", 1)}
    with pytest.raises(mm.InputError, match=r"holds batch_id=. already, and the checkpoint is new"):
        ms.stream_matches(events, *folders[:2], tmp_path / "other")
    texts = events.selectExpr("string(event_id) as event_id", "x")
    with pytest.raises(mm.InputError, match="keep the types"):
        ms.stream_matches(texts, *folders)
    (folders[2] / "matchmill" / "batch-000000001.json").unlink()
    write_rows(spark, [(2, 1)], PLAIN, tmp_path / "events" / "2.parquet", 2)
    with pytest.raises(mm.FolderError, match=r"batch-000000001\.json is missing"):
        finish(ms.stream_matches(events, *folders, trigger=ALL_THERE))


def test_a_file_of_another_schema(spark: Any, tmp_path: Path) -> None:
    """One more column is passed over; another type stops the stream, which then goes on."""
    ms.build(rules(spark, a="x = 1"), tmp_path / "index")
    folders = (tmp_path / "index", tmp_path / "output", tmp_path / "checkpoint")
    files = [tmp_path / "events" / f"{n}.parquet" for n in range(3)]
    write_rows(spark, [(0, 1)], PLAIN, files[0], 0)
    write_rows(spark, [(1, 1, 2)], f"{PLAIN}, y int", files[1], 1)
    write_rows(spark, [(2, "1")], "event_id int, x string", files[2], 2)
    events = plain_stream(spark, tmp_path / "events")
    with pytest.raises(StreamingQueryException) as caught:
        finish(ms.stream_matches(events, *folders, trigger=ALL_THERE))
    told = str(caught.value)
    assert all(word in told for word in ("events/2.parquet", "[x]", "int", "BINARY")), told
    assert set(map(tuple, spark.read.parquet(str(folders[1])).collect())) == {
        (0, "a", 0),
        (1, "a", 1),
    }
    write_rows(spark, [(2, 1)], PLAIN, files[2], 2)  # mended, under the same name
    finish(ms.stream_matches(events, *folders, trigger=ALL_THERE))
    assert spark.read.parquet(str(folders[1])).count() == 3


def test_a_source_that_makes_its_rows(spark: Any, tmp_path: Path) -> None:
    ms.build(rules(spark, a="x = 1", b="x > 1"), tmp_path / "index")
    made = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 6).load()
    events = made.selectExpr("value as event_id", "value % 3 as x")
    query = ms.stream_matches(
        events, tmp_path / "index", tmp_path / "output", tmp_path / "checkpoint", name="made"
    )
    assert query.name == "made"
    while query.lastProgress is None or query.lastProgress.batchId < 2:
        assert query.exception() is None
        query.awaitTermination(0.1)
    query.stop()
    read = spark.read.parquet(str(tmp_path / "output")).filter("batch_id < 3")
    assert sorted((row.event_id, row.subscription_id) for row in read.collect()) == [
        (k, "xab"[k % 3]) for k in range(18) if k % 3
    ]


def test_changes_that_cannot_be_built(spark: Any, tmp_path: Path) -> None:
    """Somebody else builds: the stream goes on until its limit, then stops, and then goes on."""
    index = ms.build(rules(spark, a="x = 1"), tmp_path / "index")
    changes = "kind string, subscription_id string, expression string"
    for n in range(4):
        write_rows(spark, [(n, 1)], PLAIN, tmp_path / "events" / f"{n}.parquet", n)
        some = [("subscribe", f"n{n}", "x = 1")]
        write_rows(spark, some, changes, tmp_path / "changes" / f"{n}.parquet", n)
    source = spark.readStream.schema(changes).option("maxFilesPerTrigger", 1)

    def start() -> Any:
        return ms.stream_matches(
            plain_stream(spark, tmp_path / "events"), index.path, tmp_path / "output",
            tmp_path / "checkpoint", changes=source.parquet(str(tmp_path / "changes")),
            trigger=ALL_THERE, compact_at=1, delta_limit=3,
        )  # fmt: skip

    lock = FolderLock(tmp_path / "index")
    with pytest.raises(mm.BackgroundError, match=r"3 subscriptions have changed.*is open for writ"):
        finish(start())
    last = ms.stream_progress(tmp_path / "checkpoint")
    assert last is not None
    assert (last.batch_id, last.version) == (2, index.version)
    lock.release()
    finish(start())
    last = ms.stream_progress(tmp_path / "checkpoint")
    assert last is not None
    assert (last.batch_id, last.n_changed) == (3, 1)
    assert last.version != index.version
    counts = spark.read.parquet(str(tmp_path / "output")).groupBy("event_id").count().collect()
    assert {row.event_id: row["count"] for row in counts} == {0: 2, 1: 3, 2: 4, 3: 5}


def test_arguments_that_make_no_sense(spark: Any, tmp_path: Path) -> None:
    index = ms.build(rules(spark, a="x = 1"), tmp_path / "index").path
    (tmp_path / "events").mkdir()
    events = plain_stream(spark, tmp_path / "events")
    folders = (index, tmp_path / "output", tmp_path / "checkpoint")
    table = spark.createDataFrame([(1, 1)], PLAIN)
    numbers = events.selectExpr("'cancel' as kind", "x as subscription_id", "'' as expression")
    for source, options, message in [
        (table, {}, "the events are no stream"),
        (events, {"changes": table}, "changes are a streaming DataFrame"),
        (events, {"changes": numbers}, "'subscription_id' of changes is int, and must be string"),
        (events, {"changes": events}, "no single column 'kind'"),
        (events, {"changes": numbers, "mixed": True}, "not both"),
        (events, {"format": "csv"}, "no format 'csv'"),
        (events, {"layout": "tall"}, "no layout 'tall'"),
        (events, {"event_id": "id"}, "no single column 'id'"),
        (events, {"compact_at": 5, "delta_limit": 4}, "not 5 and 4"),
    ]:
        with pytest.raises(mm.InputError, match=message):
            ms.stream_matches(source, *folders, **options)
