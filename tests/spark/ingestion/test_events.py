"""Events in every layout: what the matcher would reject is rejected, the rest comes through."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from matchmill.encoding.events.arrow_cells import read_cells
from matchmill.errors import InputError
from matchmill.language.flatten import flatten_event
from matchmill.spark import Counts, EventLayout, Ingested, ingest_events


def reasons(ingested: Ingested) -> dict[str | None, str]:
    return {row["id"]: row["reason"] for row in ingested.quarantine.collect()}


@pytest.mark.slow
def test_wide_tables_stay_wide(spark: Any) -> None:
    rows = [(1, 2.5, {"b": "x"}, [1, 2]), (2, float("inf"), None, None), (None, 1.0, None, [])]
    schema = "`event id` long, price double, a struct<b: string>, tags array<int>"
    df = spark.createDataFrame(rows, schema)
    with ingest_events(df, event_id="event id") as ingested:
        assert ingested.accepted.columns == ["event_id", "event id", "price", "a", "tags"]
        first, second = sorted(
            (row.asDict(True) for row in ingested.accepted.collect()),
            key=lambda row: row["event_id"],
        )
        assert first == {
            "event_id": 1, "event id": 1, "price": 2.5, "a": {"b": "x"}, "tags": [1, 2]
        }  # fmt: skip
        assert (second["event_id"], second["price"]) == (2, float("inf"))
        assert reasons(ingested) == {None: "the event_id is missing"}
        assert ingested.counts() == Counts(3, 2, 1)


@pytest.mark.slow
def test_maps_json_and_long_tables(spark: Any) -> None:
    maps = spark.createDataFrame(
        [("a", {"x": 1.0}), ("b", {"x": float("-inf")}), ("c", None)],
        "event_id string, attributes map<string, double>",
    )
    with ingest_events(maps, layout="map") as ingested:
        assert sorted(tuple(row) for row in ingested.accepted.collect()) == [
            ("a", {"x": 1.0}),
            ("b", {"x": float("-inf")}),
        ]
        assert reasons(ingested) == {"c": "the event is missing"}

    texts = ['{"x": 1}', '{"x": ', "[]", None, " ", '{"x":\n {"y": 2}}', '{"x": "a\nb"}']
    df = spark.createDataFrame(list(enumerate(texts)), "event_id int, event string")
    with ingest_events(df, layout="json") as ingested:
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
    with ingest_events(df, layout="long") as ingested:
        assert [tuple(row) for row in ingested.accepted.collect()] == [(1, {"x": "1", "y": "2"})]
        found = reasons(ingested)
        assert "twice" in found["2"]
        assert found["3"]
        assert found[None] == "the event_id is missing"
        assert ingested.counts() == Counts(4, 1, 3)


@pytest.mark.slow
def test_files(spark: Any, tmp_path: Path) -> None:
    """CSV with lines that are no rows, and JSON lines."""
    lines = ["event_id,origin,delay", "1,JFK,5", "2,LGA", "3,LGA,6,7", "4,EWR,"]
    (tmp_path / "e.csv").write_text("\n".join(lines), encoding="utf-8")
    with ingest_events(tmp_path / "e.csv", spark=spark) as ingested:
        assert sorted(map(tuple, ingested.accepted.collect())) == [
            (1, "JFK", 5), (4, "EWR", None)
        ]  # fmt: skip
        assert ingested.counts() == Counts(4, 2, 2)
        rows = {row["id"]: row for row in ingested.quarantine.collect()}
        assert json.loads(rows["2"]["raw"]) == {"line": "2,LGA"}
        assert rows["3"]["source"].endswith("e.csv")
        assert "does not have 3 columns" in rows["3"]["reason"]
    (tmp_path / "e.jsonl").write_text('{"event_id": 7, "x": 1}\n\n{"x": \n', encoding="utf-8")
    with ingest_events(tmp_path / "e.jsonl", layout="json", spark=spark) as ingested:
        assert ingested.counts() == Counts(2, 1, 1)
        assert [row["event_id"] for row in ingested.accepted.collect()] == ["7"]
    with pytest.raises(InputError, match="their layout is 'json'"):
        ingest_events(tmp_path / "e.jsonl", spark=spark)
    with pytest.raises(InputError, match="unknown format 'txt'; give format=…, one of: csv"):
        ingest_events(tmp_path / "e.txt", spark=spark)


def test_wrong_columns_are_named(spark: Any) -> None:
    df = spark.sql("select 1 as event_id, 'x' as event")
    with pytest.raises(InputError, match="no single column 'attributes'"):
        ingest_events(df, layout=EventLayout("map", attributes=("attributes",)))
    with pytest.raises(
        InputError,
        match=r"needs a map from strings, a struct or an array of .* but 'event' is a string",
    ):
        ingest_events(df, layout="map")
    with pytest.raises(InputError, match="in one column; name it"):
        ingest_events(df.selectExpr("*", "1 as x"), layout="json")
    with pytest.raises(InputError, match="no layout 'tall'"):
        ingest_events(df, layout="tall")


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
