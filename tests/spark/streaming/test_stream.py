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
from tests.support.tiers import first_cases

pytestmark = pytest.mark.slow
ALL_THERE = {"availableNow": True}


def clock(folder: Path) -> Any:
    """The time of each new batch, whatever is run again."""

    def now() -> datetime:
        last = ms.progress(folder / "checkpoint")
        return datetime.fromtimestamp(START + (0 if last is None else last.batch_id + 1), UTC)

    return now


def build(spark: Any, case: StreamCase, folder: Path) -> ms.ShardedEngine:
    rows = spark.createDataFrame(
        list(case.base.items()), "subscription_id string, expression string"
    )
    return ms.build(rows, folder / "index", shards=2)


def finish(query: Any) -> None:
    with ms.plain_errors():
        query.awaitTermination()


@pytest.mark.parametrize("compact_at", first_cases(1, [12, 1000]))
def test_events_and_changes(spark: Any, tmp_path: Path, compact_at: int) -> None:
    case = stream_case(5, 6, 60, 25, 8)
    write_files(case, tmp_path)
    first = build(spark, case, tmp_path)
    events, changes = streams(spark, tmp_path, case)
    query = ms.stream(
        tmp_path / "index", events, tmp_path / "output", tmp_path / "checkpoint", changes=changes,
        trigger=ALL_THERE, compact_at=compact_at, compact_in_background=False, now=clock(tmp_path),
    )  # fmt: skip
    finish(query)
    wanted, rejected = expected(case)
    assert found(tmp_path / "output") == (wanted, rejected)
    assert rejected
    read = spark.read.parquet(str(tmp_path / "output"))
    assert read.columns == ["event_id", "subscription_id", "batch_id"]
    assert read.count() == wanted.total()
    last = ms.progress(tmp_path / "checkpoint")
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
    compaction.error()
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
    query = ms.stream(
        tmp_path / "index", events, tmp_path / "output", tmp_path / "checkpoint", changes=changes,
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


TEXTS = "event_id int, event string"
CHANGES = "change string, subscription_id long, expression string, sequence int"


def test_changes_with_a_sequence_and_bad_rows_of_all_kinds(spark: Any, tmp_path: Path) -> None:
    """From no subscription at all, with JSON in and out."""
    batches: list[tuple[list[Any], list[Any]]] = [
        (
            [(1, '{"x": 5}'), (2, '{"x": ')],
            [
                ("subscribe", 1, "x > 3", 1),
                ("subscribe", 2, "x > 3", 3),
                ("unsubscribe", 2, None, 2),
                ("subscribe", 3, "x > 3", 1),
                ("unsubscribe", 3, None, 2),
                ("subscribe", 4, "x > 3", 5),
                ("subscribe", 4, "x > 4", 5),
                ("subscribe", 5, "x >", 1),
                ("renew", 1, None, 9),
                (None, 1, None, 8),
                ("unsubscribe", 1, None, None),
            ],
        ),
        ([(4, '{"x": 5}')], [("unsubscribe", 2, None, 1)]),
        ([(5, '{"x": 5}')], [("update", 1, "x < 0", 1)]),
    ]
    for n, (events, changes) in enumerate(batches):
        write_rows(spark, events, TEXTS, tmp_path / "events" / f"{n}.parquet", n)
        write_rows(spark, changes, CHANGES, tmp_path / "changes" / f"{n}.parquet", n)
    nothing = spark.createDataFrame([], "subscription_id long, expression string")
    ms.build(nothing, tmp_path / "index")

    def source(schema: str, name: str) -> Any:
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(tmp_path / name))

    query = ms.stream(
        tmp_path / "index", source(TEXTS, "events"), tmp_path / "output", tmp_path / "checkpoint",
        changes=source(CHANGES, "changes"), layout="json", format="json", trigger=ALL_THERE,
        compact_at=1, compact_in_background=False,
    )  # fmt: skip
    finish(query)
    read = spark.read.schema("event_id int, subscription_id long, batch_id int").json
    assert set(map(tuple, read(str(tmp_path / "output")).collect())) == {
        (1, 1, 0), (1, 2, 0), (4, 1, 1)
    }  # fmt: skip
    quarantine = tmp_path / "output" / "_quarantine"
    (bad,) = spark.read.json(str(quarantine / "events")).collect()
    assert (bad.kind, bad.id, bad.batch_id) == ("event", "2", 0)
    assert "not valid JSON" in bad.reason
    rejected = spark.read.json(str(quarantine / "changes")).collect()
    assert {row.kind for row in rejected} == {"change"}
    several = "several changes of this id came in one batch, and which is the last cannot be known"
    assert sorted((row.id, row.reason.split(":")[0]) for row in rejected) == [
        ("1", "a change is subscribe, update or unsubscribe, not 'renew'"),
        ("1", "a change is subscribe, update or unsubscribe, not None"),
        ("1", "its sequence is null"),
        ("4", several),
        ("4", several),
        ("5", "a literal is missing after `>` at line 1, column 4"),
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
        finish(ms.stream(folders[0], events, *folders[1:], trigger=ALL_THERE))
    read = spark.read.parquet(str(folders[1]))
    assert set(map(tuple, read.collect())) == {(0, "a", 0), (1, "b", 1)}
    with pytest.raises(mm.InputError, match=r"holds batch_id=. already, and the checkpoint is new"):
        ms.stream(folders[0], events, folders[1], tmp_path / "other")
    texts = events.selectExpr("string(event_id) as event_id", "x")
    with pytest.raises(mm.InputError, match="keep the types"):
        ms.stream(folders[0], texts, *folders[1:])
    (folders[2] / "matchmill" / "batch-000000001.json").unlink()
    write_rows(spark, [(2, 1)], PLAIN, tmp_path / "events" / "2.parquet", 2)
    with pytest.raises(mm.FolderError, match=r"batch-000000001\.json is missing"):
        finish(ms.stream(folders[0], events, *folders[1:], trigger=ALL_THERE))


def test_every_way_to_name_a_published_engine(spark: Any, tmp_path: Path) -> None:
    built = ms.build(rules(spark, a="x = 1"), tmp_path / "index")
    write_rows(spark, [(1, 1)], PLAIN, tmp_path / "events" / "0.parquet", 0)
    named = (built, ms.open(tmp_path / "index"), tmp_path / "index", str(tmp_path / "index"),
             (tmp_path / "index").as_uri())  # fmt: skip
    for n, engine in enumerate(named):
        output = tmp_path / f"output{n}"
        events = plain_stream(spark, tmp_path / "events")
        finish(ms.stream(engine, events, output, tmp_path / f"c{n}", trigger=ALL_THERE))
        assert [tuple(row) for row in spark.read.parquet(str(output)).collect()] == [(1, "a", 0)]


def test_a_stream_on_hadoop_paths(spark: Any, tmp_path: Path) -> None:
    """Engine, checkpoint and output; each batch has a delta that workers fetch."""
    root = "viewfs://tests/data/stream"
    n_files = spark.sparkContext._jsc.sc().listFiles().size()  # other tests add modules
    ms.build(rules(spark, a="x = 1"), f"{root}/index")
    changes = "change string, subscription_id string, expression string"
    for n in range(4):
        write_rows(spark, [(n, 1)], PLAIN, tmp_path / "events" / f"{n}.parquet", n)
        some = [("subscribe", f"n{n}", "x = 1")]
        write_rows(spark, some, changes, tmp_path / "changes" / f"{n}.parquet", n)
    source = spark.readStream.schema(changes).option("maxFilesPerTrigger", 1)
    query = ms.stream(
        f"{root}/index", plain_stream(spark, tmp_path / "events"), f"{root}/output",
        f"{root}/checkpoint", changes=source.parquet(str(tmp_path / "changes")),
        trigger=ALL_THERE, compact_at=3, compact_in_background=False,
    )  # fmt: skip
    finish(query)
    counts = spark.read.parquet(f"{root}/output").groupBy("event_id").count().collect()
    assert {row.event_id: row["count"] for row in counts} == {0: 2, 1: 3, 2: 4, 3: 5}
    last = ms.progress(f"{root}/checkpoint", spark=spark)
    assert last is not None
    assert (last.batch_id, last.n_changed) == (3, 1)
    assert spark.sparkContext._jsc.sc().listFiles().size() == n_files


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
        finish(ms.stream(folders[0], events, *folders[1:], trigger=ALL_THERE))
    told = str(caught.value)
    assert all(word in told for word in ("events/2.parquet", "[x]", "int", "BINARY")), told
    assert set(map(tuple, spark.read.parquet(str(folders[1])).collect())) == {
        (0, "a", 0),
        (1, "a", 1),
    }
    write_rows(spark, [(2, 1)], PLAIN, files[2], 2)  # corrected, under the same name
    finish(ms.stream(folders[0], events, *folders[1:], trigger=ALL_THERE))
    assert spark.read.parquet(str(folders[1])).count() == 3


def test_a_source_that_makes_its_rows(spark: Any, tmp_path: Path) -> None:
    ms.build(rules(spark, a="x = 1", b="x > 1"), tmp_path / "index")
    made = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 6).load()
    events = made.selectExpr("value as event_id", "value % 3 as x")
    query = ms.stream(
        tmp_path / "index", events, tmp_path / "output", tmp_path / "checkpoint", name="made"
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
    changes = "change string, subscription_id string, expression string"
    for n in range(4):
        write_rows(spark, [(n, 1)], PLAIN, tmp_path / "events" / f"{n}.parquet", n)
        some = [("subscribe", f"n{n}", "x = 1")]
        write_rows(spark, some, changes, tmp_path / "changes" / f"{n}.parquet", n)
    source = spark.readStream.schema(changes).option("maxFilesPerTrigger", 1)

    def start() -> Any:
        return ms.stream(
            index.path, plain_stream(spark, tmp_path / "events"), tmp_path / "output",
            tmp_path / "checkpoint", changes=source.parquet(str(tmp_path / "changes")),
            trigger=ALL_THERE, compact_at=1, delta_limit=3,
        )  # fmt: skip

    lock = FolderLock(tmp_path / "index")
    with pytest.raises(mm.BackgroundError, match=r"3 subscriptions have changed.*is open for writ"):
        finish(start())
    last = ms.progress(tmp_path / "checkpoint")
    assert last is not None
    assert (last.batch_id, last.version) == (2, index.version)
    lock.release()
    finish(start())
    last = ms.progress(tmp_path / "checkpoint")
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
    numbers = events.selectExpr(
        "'unsubscribe' as change", "x as subscription_id", "'' as expression"
    )
    mm.Engine().save(tmp_path / "saved")
    with pytest.raises(mm.InputError, match="a stream needs one with versions"):
        ms.stream(tmp_path / "saved", events, *folders[1:])
    with pytest.raises(mm.InputError, match="a stream needs an engine, or its path"):
        ms.stream(table, events, *folders[1:])
    for source, options, message in [
        (table, {}, "the events are no stream"),
        (events, {"changes": table}, "changes are a streaming DataFrame"),
        (events, {"changes": numbers}, "'subscription_id' of changes is int, and must be string"),
        (events, {"changes": events}, "no single column 'change'"),
        (events, {"format": "csv"}, "no format 'csv'"),
        (events, {"layout": "tall"}, "no layout 'tall'"),
        (events, {"event_id": "id"}, "no single column 'id'"),
        (events, {"compact_at": 5, "delta_limit": 4}, "not 5 and 4"),
    ]:
        with pytest.raises(mm.InputError, match=message):
            ms.stream(folders[0], source, *folders[1:], **options)
