"""Commands on a folder: build, subscribe, unsubscribe, list, stats, backtest."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import matchmill as mm

Run = Callable[..., Any]


@pytest.fixture
def saved(run: Run) -> str:
    """Build the folder of an engine."""
    assert run("build", "subs.csv", "saved", "--quiet").code == 0
    return "saved"


def test_build_and_match(run: Run) -> None:
    result = run("build", "subs.csv", "saved")
    assert (result.code, result.out) == (0, "")
    assert "5 accepted" in result.err
    assert "saved in saved" in result.err
    result = run("match", "saved", "events.csv")
    assert result.code == 0
    assert len(result.out.splitlines()) == 8
    assert "subscriptions: 5 opened" in result.err
    Path("subs.csv").write_text("subscription_id,expression\nz,price > 580\nbad\n")
    assert run("build", "subs.csv", "saved", "--rejected", "r.jsonl").code == 3
    result = run("match", "saved", "events.csv", "--index", "scan", "--quiet")
    assert result.out.split() == ["event_id,subscription_id", "1,z"]
    assert json.loads(Path("r.jsonl").read_text()) == {
        "kind": "subscription",
        "row": 1,
        "line": 3,
        "source": "subs.csv",
        "id": "bad",
        "reason": "1 fields instead of 2",
    }


def test_build_with_events_and_an_index(run: Run) -> None:
    result = run("build", "subs.csv", "saved", "--learn", "events.csv", "--index", "scan")
    assert result.code == 0, result.err
    with mm.Engine.open("saved", read_only=True) as engine:
        assert engine.match({"price": 5}) == {"u1", "u4"}
    result = run("build", "subs.csv", "saved", "--index-option", "nonsense=1")
    assert (result.code, "nonsense" in result.err) == (2, True)
    assert "NAME=VALUE" in run("build", "subs.csv", "saved", "--index-option", "x").err


def test_build_mistakes(run: Run) -> None:
    assert "is a file" in run("build", "subs.csv", "events.csv").err
    assert "holds other files" in run("build", "subs.csv", ".").err


def test_a_folder_that_is_being_written_to_can_be_read(run: Run, saved: str) -> None:
    with mm.Engine.open(saved) as engine:
        engine.unsubscribe_many(list(engine))
        engine.subscribe("new", "price > 0")
        assert run("check", saved).out.startswith("1 subscriptions")
        assert run("match", saved, "events.csv", "--quiet").out.splitlines()[1].endswith("new")
        assert run("explain", saved, "new", '{"price": 1}').code == 0
        result = run("build", "subs.csv", saved)
        assert result.code == 2
        assert "is open for writing by process" in result.err


def test_subscribe_and_unsubscribe(run: Run, saved: str) -> None:
    assert run("subscribe", saved, "u9", "price > 100").code == 0
    assert "already; --replace replaces it" in run("subscribe", saved, "u9", "price > 200").err
    assert run("subscribe", saved, "u9", "price > 200", "--replace", "--quiet") == (0, "", "")
    assert "u9  price > 200" in run("list", saved).out.splitlines()
    assert run("unsubscribe", saved, "u9", "u8").code == 2
    assert "u9" in run("list", saved).out
    assert run("unsubscribe", saved, "u9", "u1") == (0, "", "")
    assert [line.split()[0] for line in run("list", saved).out.splitlines()] == [
        "u2",
        "u3",
        "u4",
        "u5",
    ]


def test_subscribe_a_file(run: Run, saved: str) -> None:
    Path("more.csv").write_text("subscription_id,expression\nu1,price < 1\nu8,price <\nu9,true\n")
    result = run("subscribe", saved, "--file", "more.csv")
    assert (result.code, result.out) == (3, "")
    assert "subscriptions: 1 accepted, 2 rejected" in result.err
    assert "  more.csv:2: u1: " in result.err
    assert "  more.csv:3: u8: " in result.err
    result = run("subscribe", saved, "--file", "more.csv", "--replace")
    assert "subscriptions: 2 accepted (2 replaced), 1 rejected" in result.err
    result = run("subscribe", saved, "--file", "more.csv", "--replace", "--strict")
    assert result.code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("saved", "u9"), "give either ID and EXPRESSION, or --file FILE"),
        (("saved",), "give either ID and EXPRESSION, or --file FILE"),
        (("saved", "u9", "x = 1", "--file", "more.csv"), "give either"),
        (("saved", "u9", "x = 1", "--ttl-seconds", "9"), "--ttl-seconds is for the URL"),
        (("saved", "--file", "subs.csv", "--webhook", "http://x"), "--webhook is for one"),
        (("nowhere", "u9", "x = 1"), "nowhere"),
    ],
)
def test_subscribe_mistakes(arguments: tuple[str, ...], message: str, run: Run, saved: str) -> None:
    result = run("subscribe", *arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err


def test_list(run: Run, saved: str) -> None:
    by_attribute = run("list", saved, "--attribute", "origin").out.splitlines()
    assert [line.split()[0] for line in by_attribute] == ["u2", "u5"]
    assert len(run("list", saved, "--limit", "2").out.splitlines()) == 2
    first = json.loads(run("list", saved, "--format", "jsonl").out.splitlines()[0])
    assert first == {"subscription_id": "u1", "expression": "price <= 580"}
    assert run("list", saved, "--limit", "0").code == 2


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_list_is_a_file_of_subscriptions(form: str, run: Run, saved: str) -> None:
    path = f"listed.{form}"
    assert run("list", saved, "--format", form, "--out", path).code == 0
    before = run("match", saved, "events.csv", "--quiet").out
    assert run("match", path, "events.csv", "--quiet").out == before
    if form == "csv":
        with open(path, newline="") as stream:
            assert next(csv.reader(stream)) == ["subscription_id", "expression"]
    elif form == "parquet":
        assert pq.read_table(path).column_names == ["subscription_id", "expression"]
        assert "Parquet needs a file" in run("list", saved, "--format", form).err


def test_stats(run: Run, saved: str) -> None:
    assert "n_subscriptions: 5\n" in run("stats", saved).out
    assert json.loads(run("stats", saved, "--format", "json").out)["n_subscriptions"] == 5
    assert run("stats", "nowhere").code == 2


def test_backtest(run: Run) -> None:
    assert run("backtest", "price > 580", "events.csv").out == "1 of 3 events match\n"
    result = run(
        "backtest", "origin is not null", "events.csv", "--event-id", "flight", "--format", "json"
    )
    found = json.loads(result.out)
    assert found == {"n_events": 3, "n_matches": 3, "event_ids": ["A1", "A2", "A3"]}
    assert run("backtest", "price >", "events.csv").code == 2
    assert "--last is for" in run("backtest", "price > 1", "events.csv", "--last", "3").err
