"""What events mean is the same in Spark's columns as in dicts; declared types hold there, too."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import matchmill as mm
from matchmill import spark as ms
from tests.support.event_forms import SCHEMA, random_condition, random_event

pytestmark = pytest.mark.slow


def lists_of(frame: Any) -> list[set[str]]:
    rows = sorted(frame.collect(), key=lambda row: row["event_id"])
    return [set(row["subscription_ids"]) for row in rows]


def test_structs_maps_and_json_agree_with_dicts(spark: Any, tmp_path: Path) -> None:
    """Lists of structs, nulls in them, dates, and ISO text."""
    rng = Random(3)
    events = [random_event(rng) for _ in range(300)]
    rules = {f"s{k}": random_condition(rng) for k in range(60)}
    engine = mm.Engine(rules)
    engine.save(tmp_path / "rules.mill")
    table = pa.Table.from_pylist(events, SCHEMA)
    ids = pa.array(range(len(events)))
    wide = spark.createDataFrame(table.add_column(0, "event_id", ids))
    texts = [json.dumps(event, default=lambda time: time.isoformat()) for event in events]
    lines = spark.createDataFrame(pa.table({"event_id": ids, "event": texts}))
    expected = list(engine.match_many(events))
    path = str(tmp_path / "rules.mill")
    names = [name for name in wide.columns if name != "event_id"]
    assert lists_of(ms.match(path, wide, attributes=names, per_event=True)) == expected
    assert lists_of(ms.match(path, lines, layout="json", per_event=True)) == expected


@pytest.mark.parametrize("plan", ["driver", "events"])
def test_declared_types(plan: Any, spark: Any) -> None:
    events = spark.createDataFrame([(1, "2013-02-01"), (2, "soon")], "event_id int, ts string")
    rules = [("late", "ts > timestamp '2013-01-01'"), ("text", "ts = 'soon'")]
    subscriptions = spark.createDataFrame(rules, "subscription_id string, expression string")
    types = {"ts": "timestamp"}
    found = ms.match(subscriptions, events, types=types, plan=plan).collect()
    assert [tuple(row) for row in found] == [(1, "late")]
    plain = ms.match(subscriptions, events, plan=plan).collect()
    assert [tuple(row) for row in plain] == [(2, "text")]
    pairs = events.select("event_id").crossJoin(subscriptions.select("subscription_id"))
    why = ms.explain(subscriptions, events, pairs, types=types).where("matched").collect()
    assert [(row["event_id"], row["subscription_id"]) for row in why] == [(1, "late")]
    with pytest.raises(mm.InputError, match="no type 'day'"):
        ms.match(subscriptions, events, types={"ts": "day"})
