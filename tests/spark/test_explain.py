"""Explanations of many pairs say what the library says of each."""

from __future__ import annotations

import json
from typing import Any

import pytest

import matchmill as mm
from matchmill.errors import InputError
from matchmill.spark.explaining import explain, near_misses

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
        spark.createDataFrame(pairs, "event_id int, subscription_id string"),
        spark.createDataFrame(events, "event_id int, event string"),
        spark.createDataFrame([*EXPRESSIONS.items()], "subscription_id string, expression string"),
    )


@pytest.mark.slow
def test_every_pair_is_explained_as_the_library_does(frames: tuple[Any, Any, Any]) -> None:
    rows = {
        (row["event_id"], row["subscription_id"]): row
        for row in explain(*frames, layout="json").collect()
    }
    assert len(rows) == 11
    assert rows[9, "u1"]["problem"] == "there is no event 9"
    assert rows[1, "u9"]["problem"] == "there is no subscription 'u9'"
    assert rows[1, "u9"]["matched"] is None
    for (event, subscription), row in rows.items():
        if row["problem"] is not None:
            continue
        told = mm.explain(mm.parse(EXPRESSIONS[subscription]), EVENTS[event])
        assert row["matched"] == (told.truth is True)
        assert row["explanation"] == str(told)
        assert row["missing"] == told.n_missing
        needed = [p["predicate"] for p in row["predicates"] if p["is_needed"]]
        assert needed == [part.text for part in told.failures]
    first = rows[1, "u1"]["predicates"]
    assert [(p["attribute"], p["value"], p["truth"]) for p in first] == [
        ("origin", '"JFK"', True),
        ("delay", "75", True),
    ]


@pytest.mark.slow
def test_near_misses_say_how_far(frames: tuple[Any, Any, Any]) -> None:
    misses = near_misses(*frames, layout="json", most_missing=1).collect()
    found = {(row["event_id"], row["subscription_id"]): row for row in misses}
    near = found[2, "u1"]
    assert (near["predicate"], near["value"], near["distance"]) == ("delay > 60", "45", 15.0)
    assert (1, "u1") not in found  # matches
    assert (3, "u1") not in found  # lacks two
    assert found[9, "u1"]["problem"] == "there is no event 9"


@pytest.mark.slow
def test_wide_events(spark: Any, frames: tuple[Any, Any, Any]) -> None:
    pairs, _, subscriptions = frames
    wide = spark.createDataFrame([(2, "JFK", 45)], "event_id int, origin string, delay int")
    two = pairs.where("event_id = 2 and subscription_id = 'u1'")
    (row,) = explain(two, wide, subscriptions).collect()
    assert row["explanation"] == str(
        mm.explain(mm.parse(EXPRESSIONS["u1"]), {"origin": "JFK", "delay": 45})
    )


def test_missing_columns_are_named(frames: tuple[Any, Any, Any]) -> None:
    pairs, events, subscriptions = frames
    with pytest.raises(InputError, match="the pairs have no column 'subscription_id'"):
        explain(events, events, subscriptions)
    with pytest.raises(InputError, match="the subscriptions have no column 'expression'"):
        explain(pairs, events, pairs)
