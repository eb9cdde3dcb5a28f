"""Matching by Spark: the oracle's pairs, whatever the layout, the shards and the partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import matchmill as mm
from tests.support.spark_cases import case_of, oracle, pairs, subscriptions

pytest.importorskip("pyspark")
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
    assert pairs(ms.match(events, index, **case.layout)) == oracle(case)


@pytest.mark.parametrize("n_shards", [1, pytest.param(16, marks=pytest.mark.slow)])
def test_shards_and_types_against_the_oracle(n_shards: int, spark: Any, tmp_path: Path) -> None:
    case = case_of("json", 7, 120, 50)
    index = ms.build(subscriptions(spark, case.expressions), tmp_path / "i", shards=n_shards)
    assert 1 <= len(index.manifest.shards) <= n_shards
    events = spark.createDataFrame(case.table)
    assert pairs(ms.match(events, index, layout="json")) == oracle(case)


@pytest.mark.parametrize("n_partitions", [1, 7])
def test_partitions_do_not_matter(n_partitions: int, spark: Any, index: Any) -> None:
    case = case_of("wide", 3, 150, 40)
    events = spark.createDataFrame(case.table).repartition(n_partitions)
    assert pairs(ms.match(events, index)) == oracle(case)


def test_arrays(spark: Any, index: Any) -> None:
    case = case_of("wide", 3, 150, 40)
    none = pa.table({"event_id": ["none"]})
    table = pa.concat_tables([case.table, none], promote_options="default")
    events = spark.createDataFrame(table)
    found = ms.match(events, index, as_arrays=True, keep_empty=True).collect()
    exploded = {(row.event_id, s) for row in found for s in row.subscription_ids}
    wanted = oracle(case)
    assert {pair for pair in exploded if pair[0] != "none"} == wanted
    assert {row.event_id for row in found} == set(table["event_id"].to_pylist())
    only_matched = ms.match(events, index, as_arrays=True).collect()
    assert all(row.subscription_ids for row in only_matched)
    assert {e for e, _ in exploded} == {row.event_id for row in only_matched}


def test_functions_in_select_and_in_sql(spark: Any, index: Any) -> None:
    case = case_of("map", 3, 150, 40)
    events = spark.createDataFrame(case.table)
    column = ms.match_column(index, "attributes", layout="map")
    selected = events.select("event_id", column.alias("found")).collect()
    events.createOrReplaceTempView("some_events")
    ms.register_match(spark, "subscriptions_of", index)
    rows = spark.sql("select event_id, subscriptions_of(attributes) as found from some_events")
    wanted = oracle(case)
    for found in (selected, rows.collect()):
        assert {(row.event_id, s) for row in found for s in row.found} == wanted


def test_wide_columns_as_a_function(spark: Any, index: Any) -> None:
    case = case_of("wide", 3, 150, 20)
    names = [f"`{name}`" for name in case.table.column_names if name != "event_id"]
    events = spark.createDataFrame(case.table)
    rows = events.select("event_id", ms.match_column(index, *names).alias("found")).collect()
    assert {(row.event_id, s) for row in rows for s in row.found} == oracle(case)


# -- ids ------------------------------------------------------------------------------------------


def test_integer_ids_and_ids_of_events_of_any_type(spark: Any, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(7, "x > 1"), (-3, "x > 2")], "number int, rule string")
    index = ms.build(rows, tmp_path / "i", id_column="number", expression_column="rule")
    events = spark.sql(
        "select struct(d as day, n) as key, n as x"
        " from values (date'2020-01-01', 2), (date'2020-01-02', 3), (null, 9) as t(d, n)"
    )
    found = ms.match(events, index, event_id="key", columns=["x"])
    assert dict(found.dtypes) == {"key": "struct<day:date,n:int>", "subscription_id": "bigint"}
    assert sorted((row.key.n, row.subscription_id) for row in found.collect()) == [
        (2, 7), (3, -3), (3, 7), (9, -3), (9, 7),
    ]  # fmt: skip


# -- one call -------------------------------------------------------------------------------------


@pytest.mark.parametrize("distributed", [None, False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("as_arrays", [False, True])
def test_one_call_does_it_all(distributed: bool | None, as_arrays: bool, spark: Any) -> None:
    case = case_of("wide", 3, 80, 30)
    found = ms.match(
        spark.createDataFrame(case.table),
        subscriptions(spark, case.expressions),
        distributed=distributed,
        as_arrays=as_arrays,
    )
    if as_arrays:
        got = {(r.event_id, s) for r in found.collect() for s in r.subscription_ids}
    else:
        got = pairs(found)
    assert got == oracle(case)


def test_large_jobs_are_left_to_spark(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from matchmill.spark.matching import driver_match

    case = case_of("map", 3, 30, 20)
    events = spark.createDataFrame(case.table)
    small = subscriptions(spark, case.expressions)
    monkeypatch.setattr(driver_match, "MOST_EVENTS", 10)
    assert driver_match.collected_job(
        small, events, "subscription_id", "expression", force=False
    ) is None  # fmt: skip
    assert pairs(ms.match(events, small, **case.layout)) == oracle(case)


# -- bad events -----------------------------------------------------------------------------------


def test_bad_events_match_nothing_and_are_told_apart(
    spark: Any, index: Any, tmp_path: Path
) -> None:
    rows = [(1, '{"x": 1}'), (2, '{"x": '), (3, None), (4, "  "), (5, '{"x":\n 1}'), (6, "[1]"),
            (7, '{"x": 1, "x": 2}'), (8, '{"x": "a\nb"}')]  # fmt: skip
    events = spark.createDataFrame(rows, "event_id int, event string")
    index = ms.build(
        spark.createDataFrame([("s", "x = 1 or x is null")], SUBSCRIPTIONS), tmp_path / "i"
    )
    assert pairs(ms.match(events, index, layout="json")) == {(1, "s"), (5, "s")}
    aside = {row.event_id: row.reason for row in ms.quarantine(events, layout="json").collect()}
    assert set(aside) == {2, 3, 4, 6, 7, 8}
    assert "not valid JSON" in aside[2]
    assert "mapping" in aside[3]
    assert "twice" in aside[7]
    arrays = ms.match(events, index, layout="json", as_arrays=True, keep_empty=True)
    assert {row.event_id for row in arrays.collect()} == {1, 5}
    column = events.select(
        "event_id", ms.match_column(index, "event", layout="json").alias("found")
    )
    assert {row.event_id for row in column.collect() if row.found is None} == set(aside)


def test_an_attribute_given_twice_in_a_long_table(spark: Any, index: Any) -> None:
    rows = [("a", "origin", "JFK"), ("a", "origin", "UA"), ("b", "origin", "JFK")]
    events = spark.createDataFrame(rows, "event_id string, attribute string, value string")
    assert [row.event_id for row in ms.quarantine(events, layout="long").collect()] == ["a"]
    assert {row.event_id for row in ms.match(events, index, layout="long").collect()} == {"b"}


def test_a_type_that_cannot_be_compared(spark: Any, tmp_path: Path) -> None:
    rule = spark.createDataFrame([("s", "x = 'a'")], SUBSCRIPTIONS)
    index = ms.build(rule, tmp_path / "i")
    events = spark.sql("select 1 as event_id, cast('a' as binary) as x")
    with pytest.raises(mm.EventError, match=r"'x'.*binary"), ms.plain_errors():
        ms.match(events, index).collect()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"event_id": "key"}, "no single column 'key'; it has: event_id"),
        ({"layout": "tall"}, "no layout 'tall'; there are: wide, map, json, long"),
        ({"layout": "long"}, "no single column 'attribute'"),
        ({"layout": "json"}, "name it by columns"),
        ({"columns": ["none"]}, "no single column 'none'"),
    ],
)
def test_calls_that_make_no_sense(
    options: dict[str, Any], words: str, spark: Any, index: Any
) -> None:
    events = spark.createDataFrame(case_of("wide", 3, 1, 2).table)
    with pytest.raises(mm.InputError, match=words):
        ms.match(events, index, **options)


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
        assert pairs(ms.match(events, index)) == wanted
    finally:
        mm.unregister_operator("is_multiple")
    with pytest.raises(mm.InputError, match=r"no_such_module.*cannot be imported"):
        ms.build(rows, tmp_path / "j", operators="no_such_module")
