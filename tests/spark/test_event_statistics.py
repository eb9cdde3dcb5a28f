"""Tables of statistics: true counts, and good enough to build an index from."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import matchmill as mm
from matchmill.encoding.event_encoder import encode_events
from matchmill.encoding.events.read import read_events
from matchmill.errors import InputError
from matchmill.index.event_sample import build_statistics, drift
from matchmill.spark import value_counts
from matchmill.spark.event_statistics import sample_events, statistics
from matchmill.spark.value_counts import read_value

WORDS = [f"w{n:03d}" for n in range(300)]


def history(n: int) -> list[dict[str, Any]]:
    random = np.random.default_rng(7)
    events = []
    for _ in range(n):
        event: dict[str, Any] = {"word": WORDS[int(random.zipf(1.5)) % 300]}
        if random.random() < 0.5:
            event["price"] = round(float(random.exponential(100)), 2)
        if random.random() < 0.1:
            event["late"] = bool(random.random() < 0.2)
            event["hour"] = int(random.integers(24))
        events.append(event)
    return events


EVENTS = history(2000)
EXPRESSIONS = ["word = 'w001' and price > 100", "price > 100", "late and hour between 3 and 5"]


@pytest.fixture(scope="module")
def table(spark: Any) -> Any:
    rows = [(n, json.dumps(event)) for n, event in enumerate(EVENTS)]
    events = spark.createDataFrame(rows, "event_id int, event string").repartition(3)
    expressions = spark.createDataFrame([(e,) for e in EXPRESSIONS], "expression string")
    return statistics(events, expressions, layout="json", max_values=60)


def rows_of(table: Any, kind: str) -> list[Any]:
    return [row for row in table.collect() if row["kind"] == kind]


@pytest.mark.slow
def test_counts_are_true(table: Any) -> None:
    assert [row["n"] for row in rows_of(table, "events")] == [2000]
    present = Counter(name for event in EVENTS for name in event)
    assert {row["attribute"]: row["n"] for row in rows_of(table, "attribute")} == present
    distinct = {name: len({e[name] for e in EVENTS if name in e}) for name in present}
    assert {row["attribute"]: row["n"] for row in rows_of(table, "distinct")} == distinct
    values = Counter((name, value) for event in EVENTS for name, value in event.items())
    others = rows_of(table, "other")
    sampled = [row for row in others if row["place"] is None]
    for row in rows_of(table, "value") + sampled:
        assert values[row["attribute"], read_value(row["type"], row["value"])] == row["n"]
    top = [row["n"] for row in rows_of(table, "value") if row["attribute"] == "word"]
    words = Counter(event["word"] for event in EVENTS)
    assert sorted(top) == sorted(n for _, n in words.most_common(60))
    assert sum(row["attribute"] == "word" for row in sampled) == min(31, len(words) - 60)
    assert sum(row["attribute"] == "price" for row in others) == 32  # quantiles


@pytest.mark.slow
def test_quantiles_pairs_and_selectivities(table: Any) -> None:
    prices = sorted(event["price"] for event in EVENTS if "price" in event)
    quantiles = {
        row["place"]: float(row["value"])
        for row in rows_of(table, "quantile")
        if row["attribute"] == "price"
    }
    assert len(quantiles) == 21
    assert (quantiles[0.0], quantiles[1.0]) == (prices[0], prices[-1])
    below = sum(price < quantiles[0.5] for price in prices)
    assert abs(below - len(prices) / 2) <= 1
    both = sum("price" in event and "hour" in event for event in EVENTS)
    pairs = {(row["attribute"], row["other"]): row["n"] for row in rows_of(table, "pair")}
    assert pairs["hour", "price"] == both
    truths = {row["value"]: row["n"] for row in rows_of(table, "condition")}
    assert set(truths) == {"word = 'w001'", "price > 100", "late", "hour between 3 and 5"}
    for text, n in truths.items():
        assert n == sum(mm.evaluate(mm.parse(text), event) is True for event in EVENTS)


@pytest.mark.slow
def test_an_index_learns_as_much_as_from_the_events(table: Any, tmp_path: Any) -> None:
    """Through a file and back; then no more drift from the real events than chance explains."""
    path = str(tmp_path / "statistics")
    table.write.parquet(path)
    table = table.sparkSession.read.parquet(path)
    engine = mm.Engine()
    engine.subscribe_many({f"{n}": f"word = '{w}' and price > {n}" for n, w in enumerate(WORDS)})
    engine.subscribe_many({f"h{n}": f"late and hour = {n}" for n in range(24)})
    dimensions = engine._store.state.dimensions
    sampled = sample_events(table, 4096)
    made = build_statistics(
        encode_events(dimensions, read_events(sampled).columns()),
        len(dimensions),
    )
    real = build_statistics(
        encode_events(dimensions, read_events(EVENTS).columns()),
        len(dimensions),
    )
    assert made.n_events == 4096
    shares = made.dimension_counts / made.n_events, real.dimension_counts / real.n_events
    assert np.abs(shares[0] - shares[1]).max() < 0.01
    assert drift(made, real) < 0.02
    others = history(4000)[2000:]
    shifted = [{**event, "word": "w200"} for event in others]
    moved = build_statistics(
        encode_events(dimensions, read_events(shifted).columns()),
        len(dimensions),
    )
    assert drift(made, moved) > 0.3

    sampled = sample_events(table, 500)
    assert sampled == sample_events(table, 500)
    engine.learn(sampled)
    engine.compact()
    assert engine.stats().n_sampled_events == 500
    expected = engine.match(EVENTS[0])
    assert expected == {
        i for i in engine if mm.evaluate(mm.parse(engine[i].expression), EVENTS[0]) is True
    }


@pytest.mark.slow
def test_layouts_count_alike(spark: Any) -> None:
    """Spark's own counting and the workers' agree."""
    rows = [
        (1, 5, 2.5, True, "x", dt.date(2026, 1, 1)),
        (2, 5, float("nan"), None, "x", None),
        (3, None, 1e300, False, "é", dt.date(2026, 1, 1)),
    ]
    schema = "event_id int, i int, d double, b boolean, s string, day date"
    wide = spark.createDataFrame(rows, schema)
    moment = dt.datetime(2026, 1, 1, 12)
    awkward = wide.selectExpr("*", f"timestamp_ntz'{moment}' as t", "array(i, 1) as l")
    plain, read = (
        {
            (row["attribute"], read_value(row["type"], row["value"]), row["n"])
            if row["type"] != "list"
            else (row["attribute"], row["n"])
            for row in statistics(df).collect()
            if row["kind"] == "value"
        }
        for df in (wide, awkward)
    )
    assert ("i", 5, 2) in plain
    assert plain < read
    assert read - plain == {("t", moment, 3), ("l", 2), ("l", 1)}
    maps = spark.createDataFrame(
        [(1, {"a": 1}), (2, {"a": 1, "b": 2})], "event_id int, m map<string, int>"
    )
    table = statistics(maps, layout="map")
    found = {(r["attribute"], r["value"]): r["n"] for r in table.where("kind = 'value'").collect()}
    assert found == {("a", "1"): 2, ("b", "2"): 1}
    pairs = [(1, "a", 1), (2, "a", 1), (2, "b", 2), (3, "a", 5), (3, "a", 6), (4, None, 7)]
    long = spark.createDataFrame(pairs, "event_id int, attribute string, value int")
    rows = statistics(long, layout="long").where("kind = 'value'").collect()
    assert {(r["attribute"], r["value"]): r["n"] for r in rows} == found


@pytest.mark.slow
def test_nothing_to_learn_from(spark: Any) -> None:
    empty = spark.createDataFrame([], "event_id int, a int")
    with pytest.raises(InputError, match="is of no events"):
        sample_events(statistics(empty))


@pytest.mark.parametrize(
    "value", [1, 2.5, "a", True, dt.date(2013, 1, 1), [1, 2], b"ab", [b"ab"], {"q": b"ab"}]
)
def test_a_value_of_any_type_is_counted_and_read_again(value: Any) -> None:
    """Objects too: a sample of events is made from what was counted."""
    batch = pa.RecordBatch.from_pylist([{"event": {"x": value}}])
    (counted,) = value_counts._read([batch])
    (row,) = counted.to_pylist()
    assert row["n"] == 1
    again = {row["attribute"]: read_value(row["type"], row["value"])}
    for text in ("x is null", "x.q is null", "x = 1", "x = 'a'", "x contains 2", "x"):
        assert mm.evaluate(text, again) is mm.evaluate(text, {"x": value}), text
