"""Explanations of many pairs say what the library says of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import matchmill as mm
from matchmill import spark as ms
from matchmill.errors import InputError

EXPRESSIONS = {
    "u1": "origin = 'JFK' and delay > 60",
    "u2": "not (origin = 'JFK') or day = date '2026-01-01'",
    "u3": "tags contains 'late' and gate is null",
}
EVENTS = {
    1: {"origin": "JFK", "delay": 75, "tags": ["late"]},
    2: {"origin": "JFK", "delay": 45, "gate": "B2"},
    3: {"origin": "LGA", "delay": 45.5},
}


@pytest.fixture(scope="module")
def frames(spark: Any) -> tuple[Any, Any, Any]:
    pairs = [(e, s) for e in EVENTS for s in EXPRESSIONS] + [(9, "u1"), (1, "u9")]
    events = [(e, json.dumps(event)) for e, event in EVENTS.items()]
    return (
        spark.createDataFrame([*EXPRESSIONS.items()], "subscription_id string, expression string"),
        spark.createDataFrame(events, "event_id int, event string"),
        spark.createDataFrame(pairs, "event_id int, subscription_id string"),
    )


@pytest.mark.slow
def test_every_pair_is_explained_as_the_library_does(frames: tuple[Any, Any, Any]) -> None:
    found = ms.explain(*frames, layout="json")
    assert found.columns == [
        "event_id", "subscription_id", "matched", "n_missing", "text", "conditions", "problem",
    ]  # fmt: skip
    rows = {(row["event_id"], row["subscription_id"]): row for row in found.collect()}
    assert len(rows) == 11
    assert rows[9, "u1"]["problem"] == "there is no event 9"
    assert rows[1, "u9"]["problem"] == "there is no subscription 'u9'"
    assert rows[1, "u9"]["matched"] is None
    for (event, subscription), row in rows.items():
        if row["problem"] is not None:
            continue
        told = mm.explain(mm.parse(EXPRESSIONS[subscription]), EVENTS[event])
        assert row["matched"] == told.matched
        assert row["text"] == str(told)
        assert row["n_missing"] == told.n_missing
        needed = [c["condition"] for c in row["conditions"] if c["is_needed"]]
        assert needed == [part.text for part in told.failures]
    first = rows[1, "u1"]["conditions"]
    assert [(p["attribute"], p["value"], p["truth"]) for p in first] == [
        ("origin", '"JFK"', True),
        ("delay", "75", True),
    ]


@pytest.mark.slow
def test_near_misses_say_how_far(frames: tuple[Any, Any, Any]) -> None:
    misses = ms.near_misses(*frames, layout="json", max_missing=1).collect()
    found = {(row["event_id"], row["subscription_id"]): row for row in misses}
    near = found[2, "u1"]
    assert (near["condition"], near["value"], near["distance"]) == ("delay > 60", "45", 15.0)
    assert (1, "u1") not in found  # matches
    assert (3, "u1") not in found  # lacks two
    assert found[9, "u1"]["problem"] == "there is no event 9"


@pytest.mark.slow
def test_wide_events_and_an_engine(
    spark: Any, frames: tuple[Any, Any, Any], tmp_path: Path
) -> None:
    subscriptions, _, pairs = frames
    wide = spark.createDataFrame([(2, "JFK", 45)], "event_id int, origin string, delay int")
    two = pairs.where("event_id = 2 and subscription_id = 'u1'")
    told = str(mm.explain(mm.parse(EXPRESSIONS["u1"]), {"origin": "JFK", "delay": 45}))
    engine = ms.build(subscriptions, tmp_path / "i", shards=2)
    for source in (subscriptions, engine, engine.path):
        (row,) = ms.explain(source, wide, two).collect()
        assert row["text"] == told


def test_missing_columns_are_named(frames: tuple[Any, Any, Any]) -> None:
    subscriptions, events, pairs = frames
    with pytest.raises(InputError, match="pairs has no single column 'subscription_id'"):
        ms.explain(subscriptions, events, events, layout="json")
    with pytest.raises(InputError, match="subscriptions has no single column 'expression'"):
        ms.explain(pairs, events, pairs, layout="json")
