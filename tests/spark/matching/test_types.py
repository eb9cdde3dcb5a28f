"""Columns of every type: no subscription can make a job or a stream fail."""

from __future__ import annotations

import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import matchmill as mm
from tests.support.spark_cases import pairs

pytest.importorskip("pyspark")
from pyspark.sql import functions as F

from matchmill import spark as ms

SUBSCRIPTIONS = "subscription_id string, expression string"
UNSUPPORTED = {
    "blob": "binary('a')",
    "at": "time'10:00:00'",
    "days": "interval '1' day",
    "months": "interval '1' month",
    "span": "make_interval(1)",
    "numbered": "map(1, 2)",
    "keyed": "map(struct(1 as a), 2)",
    "free": "parse_json('5')",
    "blobs": "array(binary('a'))",
    "place": "st_geomfromwkb(X'0101000000000000000000F03F0000000000000040')",
}
NESTED = {
    "s": "named_struct('p', 1, 'q', binary('a'), 'm', interval '1' month)",
    "m": "map('k', binary('a'))",
    "n": "map('k', named_struct('p', 1, 'q', binary('a')))",
    "l": "array(named_struct('p', 1, 'q', binary('a'), 'm', map(1, 2)))",
}
OBJECTS = [*UNSUPPORTED, "s.q", "s.m", "m.k", "n.k.q", "l.q", "l.m"]
WANTED = {"x", "s.p", "n.k.p", "l.p"} | {f"{name} not null" for name in OBJECTS}


def every_type(spark: Any) -> Any:
    columns = ", ".join(f"{e} as {name}" for name, e in (UNSUPPORTED | NESTED).items())
    return spark.sql(f"select 1 as event_id, 5 as x, {columns}")


def every_question(spark: Any) -> Any:
    """Subscriptions to each column: comparisons that are unknown, and one that is true."""
    rows = [(f"{name} {k}", text) for name in OBJECTS for k, text in enumerate(
        (f"{name} is null", f"{name} = 1", f"{name} != 'a'", f"{name} contains 1")
    )]  # fmt: skip
    rows += [(f"{name} not null", f"{name} is not null") for name in OBJECTS]
    rows += [("x", "x = 5"), ("s.p", "s.p = 1"), ("n.k.p", "n.k.p = 1"), ("l.p", "l.p contains 1")]
    return spark.createDataFrame(rows, SUBSCRIPTIONS)


def no_values(spark: Any) -> Any:
    """The same columns, in which everything but `x` is null; Spark cannot join columns of times."""
    nothing = every_type(spark).drop("event_id", "x", "at").where("false")
    return every_type(spark).select("event_id", "x").join(nothing, how="left", on=F.lit(True))


@pytest.mark.parametrize("plan", ["driver", "events"])
def test_values_that_cannot_be_compared_are_objects_with_one_warning(plan: Any, spark: Any) -> None:
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        found = ms.match(every_question(spark), every_type(spark), plan=plan)
        null = ms.match(every_question(spark), no_values(spark), plan=plan)
    assert pairs(found) == {(1, name) for name in WANTED}
    text, _ = [str(one.message) for one in given if "cannot be compared" in str(one.message)]
    assert pairs(null) == {(1, "x")} | {(1, f"{name} 0") for name in OBJECTS}
    for name in (*UNSUPPORTED, "s.q", "s.m", "m.*", "n.*.q", "l.q", "l.m"):
        assert f"{name} (" in text
    assert given[0].filename == __file__


def test_nested_in_one_column_and_in_a_long_table(spark: Any) -> None:
    """The other layouts have the same rule."""
    rules = spark.createDataFrame(
        [("p", "p = 1"), ("q", "q is not null"), ("k", "k = 'a'")], SUBSCRIPTIONS
    )
    columns = {
        "named_struct('p', 1, 'q', binary('a'))": {(1, "p"), (1, "q")},
        "map('q', binary('a'))": {(1, "q")},
        "array(named_struct('name', 'q', 'value', binary('a')))": {(1, "q")},
        "map('k', 'a')": {(1, "k")},
    }
    for plan in ("driver", "events"):
        for text, wanted in columns.items():
            events = spark.sql(f"select 1 as event_id, {text} as event")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert pairs(ms.match(rules, events, layout="map", plan=plan)) == wanted
        long = spark.sql("select 1 as event_id, 'q' as attribute, binary('a') as value")
        with pytest.warns(UserWarning, match=r"compared: value \(binary\)"):
            assert pairs(ms.match(rules, long, layout="long", plan=plan)) == {(1, "q")}
    numbered = spark.sql("select 1 as event_id, map(1, 2) as event")
    with pytest.raises(mm.InputError, match=r"a map from strings.*is a map<int,int>"):
        ms.match(rules, numbered, layout="map")


@pytest.mark.slow
def test_a_stream_goes_on(spark: Any, tmp_path: Path) -> None:
    """A type that the file format has; both sources, so that events are packed and unpacked."""
    events = every_type(spark).select("event_id", "x", "blob", "numbered", "s.q", "n")
    events.write.parquet(str(tmp_path / "events"))
    rules = spark.createDataFrame([("x", "x = 5"), ("p", "n.k.p = 1")], SUBSCRIPTIONS)
    ms.build(rules, tmp_path / "i")
    more = [("subscribe", f"s{k}", f"{name} is not null") for k, name in
            enumerate(("blob", "numbered", "q", "n.k.q"))]  # fmt: skip
    changes = "change string, subscription_id string, expression string"
    spark.createDataFrame(more, changes).write.parquet(str(tmp_path / "changes"))
    source = spark.readStream.schema(events.schema).parquet(str(tmp_path / "events"))
    with pytest.warns(UserWarning, match="compared: blob") as given:
        query = ms.stream(
            tmp_path / "i", source, tmp_path / "output", tmp_path / "checkpoint",
            trigger={"availableNow": True},
            changes=spark.readStream.schema(changes).parquet(str(tmp_path / "changes")),
        )  # fmt: skip
    query.awaitTermination()
    assert len([one for one in given if "cannot be compared" in str(one.message)]) == 1
    read = spark.read.parquet(str(tmp_path / "output")).select("event_id", "subscription_id")
    assert pairs(read) == {(1, "x"), (1, "p"), (1, "s0"), (1, "s1"), (1, "s2"), (1, "s3")}


DECIMALS = {
    "decimal(18,0)": ("123456789012345678", "123456789012345679"),
    "decimal(20,2)": ("123456789012345678.01", "123456789012345678.02"),
    "decimal(38,10)": ("1234567890123456.0000000001", "1234567890123456.0000000002"),
}
NEEDS_EXACT_DECIMALS = pytest.mark.skipif(
    mm.evaluate("x = 123456789012345678", {"x": Decimal("123456789012345678")}) is not True,
    reason="the library reads decimals as doubles",
)


@NEEDS_EXACT_DECIMALS
@pytest.mark.parametrize("plan", ["driver", "events"])
def test_decimals_are_compared_exactly(plan: Any, spark: Any) -> None:
    """A whole number equals its literal; of two neighbours one is beyond and one is not."""
    columns = [
        f"cast('{text}' as {kind}) as d{k}"
        for k, (kind, texts) in enumerate(DECIMALS.items())
        for text in texts[:1]
    ]
    larger = [f"cast('{texts[1]}' as {kind})" for kind, texts in DECIMALS.items()]
    events = spark.sql(
        f"select 1 as event_id, {', '.join(columns)} union all select 2, {', '.join(larger)}"
    )
    rules = [("whole", "d0 = 123456789012345678"), ("next", "d0 = 123456789012345679"),
             ("part", "d1 > 123456789012345678"), ("all", "d2 > 1234567890123456")]  # fmt: skip
    found = ms.match(spark.createDataFrame(rules, SUBSCRIPTIONS), events, plan=plan)
    assert pairs(found) == {(1, "whole"), (2, "next")} | {
        (event, name) for event in (1, 2) for name in ("part", "all")
    }
