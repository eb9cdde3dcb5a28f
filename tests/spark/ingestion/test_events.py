"""Events in every layout: what the matcher would reject is set aside, the rest comes through."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from matchmill.encoding.events.arrow_cells import read_cells
from matchmill.errors import InputError
from matchmill.language.flatten import flatten_event
from matchmill.spark.ingestion.events import ingest_events
from matchmill.spark.ingestion.ingested import Counts, Ingested
from matchmill.spark.layouts import EventLayout


def reasons(ingested: Ingested) -> dict[str | None, str]:
    return {row["id"]: row["reason"] for row in ingested.quarantine.collect()}


@pytest.mark.slow
def test_wide_tables_stay_wide(spark: Any) -> None:
    rows = [(1, 2.5, {"b": "x"}, [1, 2]), (2, float("inf"), None, None), (None, 1.0, None, [])]
    schema = "`event id` long, price double, a struct<b: string>, tags array<int>"
    df = spark.createDataFrame(rows, schema)
    with ingest_events(df, EventLayout(event_id="event id")) as ingested:
        assert ingested.accepted.columns == ["event_id", "price", "a", "tags"]
        assert [row.asDict(True) for row in ingested.accepted.collect()] == [
            {"event_id": 1, "price": 2.5, "a": {"b": "x"}, "tags": [1, 2]}
        ]
        found = reasons(ingested)
        assert "price" in found["2"]
        assert found[None] == "the event_id is missing"
        assert ingested.counts() == Counts(3, 1, 2)


@pytest.mark.slow
def test_maps_json_and_long_tables(spark: Any) -> None:
    maps = spark.createDataFrame(
        [("a", {"x": 1.0}), ("b", {"x": float("-inf")}), ("c", None)],
        "event_id string, attributes map<string, double>",
    )
    with ingest_events(maps, "map") as ingested:
        assert [tuple(row) for row in ingested.accepted.collect()] == [("a", {"x": 1.0})]
        found = reasons(ingested)
        assert "attribute 'x'" in found["b"]
        assert found["c"] == "the event is missing"

    texts = ['{"x": 1}', '{"x": ', "[]", None, " ", '{"x":\n {"y": 2}}', '{"x": "a\nb"}']
    df = spark.createDataFrame(list(enumerate(texts)), "event_id int, event string")
    with ingest_events(df, "json") as ingested:
        rows = {row["event_id"]: row["event"] for row in ingested.accepted.collect()}
        assert rows == {0: texts[0], 5: texts[5]}
        found = reasons(ingested)
        assert set(found) == {"1", "2", "3", "4", "6"}
        assert not any("line 1" in reason for reason in found.values())
        raws = {row["id"]: json.loads(row["raw"]) for row in ingested.quarantine.collect()}
        assert raws["1"] == {"event_id": 1, "event": texts[1]}
        assert ingested.counts() == Counts(7, 2, 5)

    pairs = [
        (1, "x", "1"),
        (1, "y", "2"),
        (2, "x", "1"),
        (2, "x", "3"),
        (3, None, "4"),
        (None, "x", "5"),
    ]
    df = spark.createDataFrame(pairs, "event_id int, attribute string, value string")
    with ingest_events(df, "long") as ingested:
        assert [tuple(row) for row in ingested.accepted.collect()] == [(1, {"x": "1", "y": "2"})]
        found = reasons(ingested)
        assert found["2"] == "an attribute is given twice"
        assert found["3"] == "the attribute of a row is null"
        assert found[None] == "the event_id is missing"
        assert ingested.counts() == Counts(4, 1, 3)


def test_wrong_columns_are_named(spark: Any) -> None:
    df = spark.sql("select 1 as event_id, 'x' as event")
    with pytest.raises(InputError, match="no column 'attributes'"):
        ingest_events(df, EventLayout("map", columns=("attributes",)))
    with pytest.raises(InputError, match="needs a map or struct or array, but 'event' is a string"):
        ingest_events(df, "map")
    with pytest.raises(InputError, match="in one column; name it"):
        ingest_events(df.selectExpr("*", "1 as x"), "json")
    with pytest.raises(InputError, match="no layout 'tall'"):
        ingest_events(df, "tall")


EVENTS = [
    {"a": 1, "b": "x"},
    {"b": "é", "c.d": 2},
    {},
    {"a": 9007199254740993},
]


def test_columns_are_read_as_events() -> None:
    """Structs, maps and texts, sliced too, are what `flatten_event` says."""
    numbers = [{k: v for k, v in e.items() if isinstance(v, int)} for e in EVENTS]
    maps = pa.array([[*e.items()] for e in numbers], pa.map_(pa.string(), pa.int64()))
    texts = pa.array([json.dumps(e, indent=1) for e in EVENTS])
    structs = pa.array(EVENTS)
    for array, expected in ((maps, numbers), (texts, EVENTS), (structs, EVENTS)):
        for start in (0, 1):
            events = read_cells(array.slice(start))
            found = [events.event(i) for i in range(events.n_events)]
            assert found == [flatten_event(e) for e in expected[start:]]
            names = {c.attribute for c in events.columns(lambda name: name != "b").columns}
            assert names == {k for e in expected[start:] for k in e} - {"b"}
