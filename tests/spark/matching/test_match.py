"""Matching by Spark: the oracle's pairs, whatever the layout, the shards and the partitions."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import matchmill as mm
from tests.support.spark_cases import case_of, oracle, pairs, subscriptions

pytest.importorskip("pyspark")
from pyspark.sql import functions as F

from matchmill import spark as ms

SUBSCRIPTIONS = "subscription_id string, expression string"
LAYOUTS = ("wide", "map", "json", "long")


@pytest.fixture(scope="module")
def index(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One of three shards, with the expressions that all layouts' cases begin with."""
    folder = tmp_path_factory.mktemp("index") / "i"
    return ms.build(subscriptions(spark, case_of("wide", 3, 150, 1).expressions), folder, shards=3)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_against_the_oracle(layout: str, spark: Any, index: Any) -> None:
    case = case_of(layout, 3, 150, 60)
    if layout == "json":  # its generator draws other expressions
        case = case._replace(expressions=case_of("wide", 3, 150, 1).expressions)
    events = spark.createDataFrame(case.table).repartition(3)
    assert pairs(ms.match(index, events, **case.layout)) == oracle(case)


@pytest.mark.parametrize("n_shards", [1, pytest.param(16, marks=pytest.mark.slow)])
def test_shards_and_types_against_the_oracle(n_shards: int, spark: Any, tmp_path: Path) -> None:
    case = case_of("json", 7, 120, 50)
    index = ms.build(subscriptions(spark, case.expressions), tmp_path / "i", shards=n_shards)
    assert 1 <= len(index.manifest.shards) <= n_shards
    events = spark.createDataFrame(case.table)
    assert pairs(ms.match(index, events, layout="json")) == oracle(case)


@pytest.mark.parametrize("n_partitions", [1, 7])
def test_partitions_do_not_matter(n_partitions: int, spark: Any, index: Any) -> None:
    case = case_of("wide", 3, 150, 40)
    events = spark.createDataFrame(case.table).repartition(n_partitions)
    assert pairs(ms.match(index, events)) == oracle(case)


def test_one_row_per_event(spark: Any, index: Any) -> None:
    case = case_of("wide", 3, 150, 40)
    none = pa.table({"event_id": ["none"]})
    table = pa.concat_tables([case.table, none], promote_options="default")
    events = spark.createDataFrame(table)
    found = ms.match(index, events, per_event=True)
    assert found.columns == ["event_id", "subscription_ids"]
    found = found.collect()
    exploded = {(row.event_id, s) for row in found for s in row.subscription_ids}
    wanted = oracle(case)
    assert {pair for pair in exploded if pair[0] != "none"} == wanted
    assert {row.event_id for row in found} == set(table["event_id"].to_pylist())
    transformed = events.transform(ms.matcher(index, per_event=True))
    assert sorted(transformed.collect()) == sorted(found)


def test_functions_in_select_and_in_sql(spark: Any, index: Any) -> None:
    case = case_of("map", 3, 150, 40)
    events = spark.createDataFrame(case.table)
    column = ms.match_udf(index)("attributes")
    selected = events.select("event_id", column.alias("found")).collect()
    events.createOrReplaceTempView("some_events")
    spark.udf.register("subscriptions_of", ms.match_udf(index))
    rows = spark.sql("select event_id, subscriptions_of(attributes) as found from some_events")
    wanted = oracle(case)
    for found in (selected, rows.collect()):
        assert {(row.event_id, s) for row in found for s in row.found} == wanted


def test_wide_columns_as_a_function(spark: Any, index: Any) -> None:
    case = case_of("wide", 3, 150, 20)
    names = [f"`{name}`" for name in case.table.column_names if name != "event_id"]
    events = spark.createDataFrame(case.table)
    column = ms.match_udf(index)(F.struct(*names))
    rows = events.select("event_id", column.alias("found")).collect()
    assert {(row.event_id, s) for row in rows for s in row.found} == oracle(case)


def test_an_event_without_matches_has_an_empty_list(spark: Any) -> None:
    rules = spark.createDataFrame([("a", "x > 1")], SUBSCRIPTIONS)
    events = spark.createDataFrame([(1, 1), (2, 2)], "event_id int, x int")
    for plan in ("driver", "events"):
        found = ms.match(rules, events, per_event=True, plan=plan).collect()
        assert sorted(map(tuple, found)) == [(1, []), (2, ["a"])]


# -- ids ------------------------------------------------------------------------------------------


def test_integer_ids_and_ids_of_events_of_any_type(spark: Any, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(7, "x > 1"), (-3, "x > 2")], "number int, rule string")
    index = ms.build(rows, tmp_path / "i", subscription_id="number", expression="rule")
    events = spark.sql(
        "select struct(d as day, n) as key, n as x"
        " from values (date'2020-01-01', 2), (date'2020-01-02', 3), (null, 9) as t(d, n)"
    )
    found = ms.match(index, events, event_id="key", attributes=["x"])
    assert dict(found.dtypes) == {"event_id": "struct<day:date,n:int>", "subscription_id": "bigint"}
    assert sorted((row.event_id.n, row.subscription_id) for row in found.collect()) == [
        (2, 7), (3, -3), (3, 7), (9, -3), (9, 7),
    ]  # fmt: skip


def test_the_id_of_a_wide_table_stays_an_attribute(spark: Any) -> None:
    """As in the library and on the command line."""
    rules = spark.createDataFrame([("a", "flight > 1"), ("b", "flight is null")], SUBSCRIPTIONS)
    flights = spark.createDataFrame([(1, 5), (2, 5)], "flight int, delay int")
    for plan in ("driver", "events"):
        found = ms.match(rules, flights, event_id="flight", plan=plan)
        assert found.columns == ["event_id", "subscription_id"]
        assert pairs(found) == {(2, "a")}
    assert pairs(ms.match(rules, flights, event_id="flight", attributes=["delay"])) == {
        (1, "b"), (2, "b")
    }  # fmt: skip


def test_rows_that_cannot_be_read_are_rejected_or_raise(spark: Any) -> None:
    """By default both sides go on without them; `strict` stops at the first."""
    rules = spark.createDataFrame([("a", "x > 0"), ("b", "x >")], SUBSCRIPTIONS)
    events = spark.createDataFrame([(1, '{"x": 1}'), (2, "{")], "event_id int, event string")
    for plan in ("driver", "events"):
        with pytest.warns(UserWarning, match="1 subscriptions cannot be read.*'b'"):
            found = ms.match(rules, events, layout="json", plan=plan)
        assert pairs(found) == {(1, "a")}
        with pytest.raises(mm.InputError, match="1 subscriptions cannot be read"):
            ms.match(rules, events, layout="json", plan=plan, strict=True)
        good = rules.where("subscription_id = 'a'")
        with pytest.raises(mm.EventError, match="event 2: "), ms.plain_errors():
            ms.match(good, events, layout="json", plan=plan, strict=True).collect()


# -- engines of the library -----------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    case = case_of("wide", 3, 60, 1)
    engine = mm.Engine()
    engine.subscribe_many([(f"s{k}", str(e)) for k, e in enumerate(case.expressions)])
    engine.save(tmp_path / "saved.mill")
    return tmp_path / "saved.mill"


def test_a_saved_engine_is_matched_as_it_is(spark: Any, saved: Path) -> None:
    case = case_of("wide", 3, 60, 40)
    events = spark.createDataFrame(case.table).repartition(3)
    assert pairs(ms.match(saved, events)) == oracle(case)
    engine = ms.open(saved)
    assert (len(engine), engine.is_saved_engine, engine.stats().n_shards) == (60, True, 1)
    assert pairs(ms.match(engine, events, per_event=False)) == oracle(case)
    column = ms.match_udf(engine)(F.struct("*")).alias("found")
    rows = events.select("event_id", column).collect()
    assert {(row.event_id, s) for row in rows for s in row.found} == oracle(case)
    with pytest.raises(mm.InputError, match="has no versions to hold"):
        engine.hold("me")
    with pytest.raises(mm.InputError, match="which has no versions; leave out version"):
        ms.open(saved, version="000001-0123456789ab")


def test_a_saved_engine_that_changes_is_no_mixture(spark: Any, saved: Path) -> None:
    events = spark.createDataFrame(case_of("wide", 3, 60, 4).table)
    plan = ms.match(saved, events)
    with mm.Engine.open(saved) as engine:
        engine.subscribe("later", "true")
    with pytest.raises(mm.FolderError, match="has been changed since"), ms.plain_errors():
        plan.collect()
    assert {s for _, s in pairs(ms.match(saved, events))} >= {"later"}


def test_engines_of_the_other_kind_are_named(spark: Any, saved: Path, index: Any) -> None:
    with pytest.raises(mm.FolderError, match=r"matchmill\.spark\.build.*matchmill\.spark\.open"):
        mm.Engine.open(index.path, create=True)
    with pytest.raises(mm.FolderError, match=r"matchmill\.spark\.build"):
        mm.Engine({"u1": "x = 1"}).save(index.path)
    with pytest.raises(mm.FolderError, match=r"an engine that Engine\.save made"):
        ms.build(spark.createDataFrame([("a", "x = 1")], SUBSCRIPTIONS), saved)
    with pytest.raises(mm.FolderError, match=r"neither current\.json.*nor manifest\.json"):
        ms.open(saved.parent)


# -- one call -------------------------------------------------------------------------------------


@pytest.mark.parametrize("plan", ["auto", "driver", pytest.param("events", marks=pytest.mark.slow)])
@pytest.mark.parametrize("per_event", [False, True])
def test_one_call_does_it_all(plan: Any, per_event: bool, spark: Any) -> None:
    case = case_of("wide", 3, 80, 30)
    found = ms.match(
        subscriptions(spark, case.expressions),
        spark.createDataFrame(case.table),
        plan=plan,
        per_event=per_event,
    )
    if per_event:
        assert found.count() == len(case.events)
        got = {(r.event_id, s) for r in found.collect() for s in r.subscription_ids}
    else:
        got = pairs(found)
    assert got == oracle(case)


def test_large_jobs_are_left_to_spark(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from matchmill.spark.matching import small_job

    case = case_of("map", 3, 30, 20)
    events = spark.createDataFrame(case.table)
    small = subscriptions(spark, case.expressions)
    monkeypatch.setattr(small_job, "MAX_EVENTS", 10)
    names = ("subscription_id", "expression")
    assert small_job.collected_job(small, events, names, force=False) is None
    assert pairs(ms.match(small, events, **case.layout)) == oracle(case)


# -- bad events -----------------------------------------------------------------------------------


def test_bad_events_match_nothing_and_are_in_quarantine(
    spark: Any, index: Any, tmp_path: Path
) -> None:
    rows = [(1, '{"x": 1}'), (2, '{"x": '), (3, None), (4, "  "), (5, '{"x":\n 1}'), (6, "[1]"),
            (7, '{"x": 1, "x": 2}'), (8, '{"x": "a\nb"}')]  # fmt: skip
    events = spark.createDataFrame(rows, "event_id int, event string")
    index = ms.build(
        spark.createDataFrame([("s", "x = 1 or x is null")], SUBSCRIPTIONS), tmp_path / "i"
    )
    assert pairs(ms.match(index, events, layout="json")) == {(1, "s"), (5, "s")}
    found = ms.quarantine(events, layout="json")
    assert found.columns == [*ms.Rejected._fields, "raw"]
    rows = found.collect()
    assert {row.kind for row in rows} == {"event"}
    aside = {int(row.id): row.reason for row in rows}
    assert set(aside) == {2, 3, 4, 6, 8}
    assert "not valid JSON" in aside[2]
    assert "not null" in aside[3]
    arrays = ms.match(index, events, layout="json", per_event=True)
    assert {row.event_id for row in arrays.collect()} == {1, 5, 7}
    column = events.select("event_id", ms.match_udf(index)("event").alias("found"))
    assert {row.event_id for row in column.collect() if row.found is None} == set(aside)


def test_an_attribute_given_twice_in_a_long_table_cannot_be_compared(
    spark: Any, index: Any
) -> None:
    rows = [("e0", "origin", "JFK"), ("e0", "origin", "UA"), ("e1", "origin", "JFK")]
    events = spark.createDataFrame(rows, "event_id string, attribute string, value string")
    assert ms.quarantine(events, layout="long").count() == 0
    case = case_of("wide", 3, 150, 1)._replace(events=[{"origin": object()}, {"origin": "JFK"}])
    assert pairs(ms.match(index, events, layout="long")) == oracle(case)


@pytest.mark.parametrize("plan", ["driver", "events"])
def test_rows_of_a_long_table_without_an_id_stay_apart(plan: Any, spark: Any) -> None:
    """Each is an event of its own: nothing is given twice, or added to another event."""
    rows = [(None, "a", 1), (None, "a", 2), (None, "b", 2), (7, "a", 1), (7, "b", 2)]
    events = spark.createDataFrame(rows, "event_id int, attribute string, value int")
    rules = spark.createDataFrame(
        [("one", "a = 1"), ("both", "a = 1 and b = 2"), ("b", "b = 2")], SUBSCRIPTIONS
    )
    for some in (events, events.repartition(3), events.unionByName(events.limit(0))):
        found = ms.match(rules, some, layout="long", plan=plan).collect()
        assert sorted(map(tuple, found), key=str) == [
            (7, "b"), (7, "both"), (7, "one"), (None, "b"), (None, "one")
        ]  # fmt: skip
        lists = ms.match(rules, some, layout="long", plan=plan, per_event=True).collect()
        assert len(lists) == 4
        assert ms.quarantine(some, layout="long").count() == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"event_id": "key"}, "no single column 'key'; it has: event_id"),
        ({"layout": "tall"}, "no layout 'tall'; there are: wide, map, json, long"),
        ({"layout": "long"}, "no single column 'attribute'"),
        ({"plan": "shards"}, "no plan 'shards'; there are: auto, driver, events"),
        ({"plan": "driver"}, "for subscriptions in a DataFrame"),
        ({"layout": "json"}, "name it by attributes"),
        ({"attributes": ["none"]}, "no single column 'none'"),
    ],
)
def test_calls_that_make_no_sense(
    options: dict[str, Any], words: str, spark: Any, index: Any
) -> None:
    events = spark.createDataFrame(case_of("wide", 3, 1, 2).table)
    with pytest.raises(mm.InputError, match=words):
        ms.match(index, events, **options)


def test_arguments_of_another_type(spark: Any, index: Any) -> None:
    events = spark.createDataFrame([(1, 1)], "event_id int, x int")
    with pytest.raises(mm.InputError, match="not a ShardedEngine; subscriptions come first"):
        ms.match(events, index)
    with pytest.raises(mm.InputError, match="the path of an engine, not a Engine"):
        ms.match(mm.Engine(), events)


# -- operators ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_operators_are_imported_by_workers(spark: Any, tmp_path: Path) -> None:
    module = tmp_path / "spark_test_operators.py"
    module.write_text(
        "from matchmill import operator\n\n\n"
        "@operator(cost_ms=1)\ndef is_multiple(event, n):\n    return event['x'] % n == 0\n"
    )
    spark.sparkContext.addPyFile(str(module))
    rules = [("a", "is_multiple(3)"), ("b", "x > 4 and is_multiple(2)"), ("c", "x > 7")]
    rows = spark.createDataFrame(rules, SUBSCRIPTIONS)
    events = spark.range(10).selectExpr("id as event_id", "id as x")
    wanted = {(x, "a") for x in range(0, 10, 3)} | {(6, "b"), (8, "b"), (8, "c"), (9, "c")}
    try:
        index = ms.build(rows, tmp_path / "i", operators="spark_test_operators")
        assert index.manifest.operators == ["is_multiple"]
        assert pairs(ms.match(index, events)) == wanted
    finally:
        mm.unregister_operator("is_multiple")
    with pytest.raises(mm.InputError, match=r"no_such_module.*cannot be imported"):
        ms.build(rows, tmp_path / "j", operators="no_such_module")


@pytest.mark.slow
def test_columns_that_nobody_asks_for_are_not_read(spark: Any, tmp_path: Path) -> None:
    """Spark's plan reads the id and what conditions, also inexact ones, mention."""
    rows = [(i, i % 7, f"t{i % 5}", (i % 3, i % 2), i, i) for i in range(40)]
    events = spark.createDataFrame(
        rows, "event_id int, a int, `b.c` string, d struct<e: int, f: int>, g int, h int"
    )
    events.write.parquet(str(tmp_path / "events"))
    read = spark.read.parquet(str(tmp_path / "events"))
    texts = {
        "u1": "a > 3",
        "u2": "b.c = 't1' or d.e = 2",
        "u3": "(a = 1 or d.e = 1) and (a = 2 or d.e = 0 or a = 1) and not b.c rlike 't[23]'",
    }
    subscriptions = spark.createDataFrame(
        list(texts.items()), "subscription_id string, expression string"
    )
    engine = ms.build(subscriptions, tmp_path / "engine")
    assert engine.manifest.attributes == ["a", "b.c", "d.e"]
    found = ms.match(engine, read)
    plan = found._jdf.queryExecution().executedPlan().toString()
    schema = plan[plan.index("ReadSchema:") :]
    assert "g:int" not in schema
    assert "h:int" not in schema
    expected = {
        (row["event_id"], id)
        for row in read.collect()
        for id, text in texts.items()
        if mm.evaluate(text, row.asDict(recursive=True)) is True
    }
    assert {tuple(row) for row in found.collect()} == expected
    for text, n_matches in (("true", 40), ("any attribute = 't1'", 8), ("a < h", 33)):
        one = spark.createDataFrame([("s", text)], "subscription_id string, expression string")
        other = ms.build(one, tmp_path / "one")
        names = other.manifest.attributes
        assert names == {"true": [], "a < h": ["a", "h"]}.get(text)
        assert ms.match(other, read).count() == n_matches, text


def test_the_library_opens_what_spark_published(spark: Any, tmp_path: Path) -> None:
    case = case_of("wide", 3, 60, 40)
    rules = [(f"s{k}", str(e)) for k, e in enumerate(case.expressions)]
    table = spark.createDataFrame(rules, "subscription_id string, expression string")
    ms.build(table, tmp_path / "sharded.mill", shards=2)
    with pytest.raises(mm.FolderError, match="open it with read_only=True, or with"):
        mm.Engine.open(tmp_path / "sharded.mill")
    with mm.Engine.open(tmp_path / "sharded.mill", read_only=True, verify=True) as engine:
        events = case.table.drop_columns("event_id")
        ids = case.table["event_id"].to_pylist()
        found = {(ids[i], s) for i, some in enumerate(engine.match_many(events)) for s in some}
        assert found == oracle(case)
        assert (len(engine), engine.path) == (60, tmp_path / "sharded.mill")
        assert pickle.loads(pickle.dumps(engine))["s0"] == engine["s0"]
        with pytest.raises(mm.ReadOnlyError, match=r"belongs to matchmill\.spark\.build"):
            engine.unsubscribe("s0")
        engine.save(tmp_path / "copy.mill")
    with mm.Engine.open(tmp_path / "copy.mill") as copy:
        copy.unsubscribe("s0")
    (tmp_path / "sharded.mill" / "current.json").write_bytes(b"half of")
    with pytest.raises(mm.FolderError, match=r"current.json is damaged"):
        mm.Engine.open(tmp_path / "sharded.mill", read_only=True)
