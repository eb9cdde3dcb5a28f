"""`check`: what it finds, against the oracle, and what it must not say of small samples."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import matchmill as mm
from matchmill.encoding.events.read import read_events
from matchmill.engine.distinct_conditions import Conditions, count_true
from matchmill.engine.seen_events import SeenEvents, see_events
from matchmill.errors import EventError
from matchmill.io.event_files import EventChunk
from matchmill.language.evaluate import evaluate_predicate
from matchmill.language.expression import Contains, Predicate, walk
from matchmill.language.flatten import flatten_event
from matchmill.settings import DEFAULT_SETTINGS
from tests.support.generators import cases


def events_of(n: int) -> list[dict[str, Any]]:
    rng = Random(1)
    return [
        {
            "price": rng.randrange(1000) / 10,
            "origin": rng.choice(["JFK", "EWR", "LGA"]),
            "tags": ["a", "b"][: rng.randrange(3)],
            "number": i,
            "open": True,
            "geo": {"lat": i},
            "ts": "2013-01-31",
        }
        for i in range(n)
    ]


def found(subscriptions: dict[Any, Any], events: Any = None) -> dict[Any, list[str]]:
    """The kinds of findings of each subscription that has any."""
    kinds: dict[Any, list[str]] = {}
    for one in mm.check(subscriptions, events).warnings:
        kinds.setdefault(one.id, []).append(one.kind)
    return kinds


# -- without events -------------------------------------------------------------------------------


def test_without_events() -> None:
    report = mm.check(
        {
            "never": "a = 1 and a = 2",
            "always": "a is null or a is not null",
            "first": "b in (1, 2)",
            "second": "b = 2 or b = 1",
            "twice": "c < 20 and c < 30",
            "either": "f < 20 or f < 10",
            "equal": "c < 20 and d = 1 and c < 20",
            "slow": "e rlike '(abcdefghij){110}'",
            "bad": "a =",
        }
    )
    assert [(one.kind, one.id) for one in report.warnings] == [
        ("never", "never"),
        ("always", "always"),
        ("slow_pattern", "slow"),
        ("duplicate", "second"),
        ("contained", "twice"),
        ("contained", "either"),
        ("contained", "equal"),
    ]
    messages = {one.id: one.message for one in report.warnings}
    assert messages["second"] == "it asks for the same as 'first'"
    assert messages["twice"] == "`c < 30` adds nothing to `c < 20`"
    assert messages["either"] == "`f < 10` adds nothing to `f < 20`"
    assert messages["equal"] == "`c < 20` is there twice"
    assert [one.id for one in report.rejected] == ["bad"]
    assert (report.ok, report.n_subscriptions, report.n_events) == (False, 8, 0)


def test_what_only_costs_time_is_no_mistake() -> None:
    report = mm.check({1: "a = 1", 2: "a = 1"})
    assert report.ok
    assert len(report.warnings) == 1
    assert not mm.check({1: "a = 1 and a = 2"}).ok
    assert mm.check({}).ok


# -- attributes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [19, 20, 99, 100])
def test_unknown_attributes_need_enough_events(n: int) -> None:
    asked = {
        "typo": "prize < 20",
        "strange": "qqqqqq = 1",
        "inside": "geo = 1",
        "fine": "price < 1",
    }
    expected = {id for id, least in (("typo", 20), ("inside", 20), ("strange", 100)) if n >= least}
    kinds = found(asked, events_of(n))
    assert {id for id, some in kinds.items() if some == ["unknown_attribute"]} == expected
    if n >= 20:
        suggestions = {one.id: one.suggestion for one in mm.check(asked, events_of(n)).warnings}
        assert suggestions["typo"] == "did you mean 'price'?"
        assert suggestions["inside"] == "its attributes are geo.lat"


def test_the_columns_of_a_table_are_known() -> None:
    table = pa.table({"price": [1.5], "gate": pa.nulls(1), "geo": [{"lat": 1}]})
    asked = {"typo": "prize < 20", "null": "gate = 'A'", "inside": "geo.lat > 0 and geo.city = 'x'"}
    assert found(asked, table) == {"typo": ["unknown_attribute"]}


def test_columns_of_csv_without_a_value_are_known(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("price,gate\n1,\n")
    assert found({"typo": "prize < 20", "null": "gate = 'A'"}, path) == {
        "typo": ["unknown_attribute"]
    }


def test_attributes_that_constraints_look_at() -> None:
    @mm.operator
    def check_area(event: Any, x: Any) -> list[Any]:
        return []

    try:
        asked = {1: "check_area(?x) and ?x < prize", 2: "check_area(?x) and ?x < price"}
        assert found(asked, events_of(100)) == {1: ["unknown_attribute"]}
    finally:
        mm.unregister_operator("check_area")


# -- types ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [19, 20])
def test_wrong_types(n: int) -> None:
    asked = {
        "text": "price = '20'",
        "number": "origin = 20",
        "list": "tags = 'a'",
        "single": "origin contains 'JFK'",
        "element": "tags contains 1",
        "time": "ts > timestamp '2013-01-01'",
        "boolean": "price",
        "one of them": "price in (20, 'twenty', 7)",
        "either": "price = 20 or price = 'twenty'",
        "pattern": {"price": [{"numeric": ["<", 20]}], "tags": ["a"]},
        "null": "price is not null",
    }
    wrong = {id: kinds for id, kinds in found(asked, events_of(n)).items() if id != "null"}
    names = ["text", "number", "list", "single", "element", "time", "boolean"] if n >= 20 else []
    assert wrong == {id: ["wrong_type"] for id in names}
    if n >= 20:
        said = {one.id: str(one) for one in mm.check(asked, events_of(n)).warnings}
        assert said["text"] == (
            "text: `price = '20'` needs text, but price is a number in all 20 events that have it;"
            " write the value without quotes"
        )
        assert said["list"].endswith("of a list, write `any(tags) = 'a'`")
        assert "a number in the list, but tags has none" in said["element"]


def test_times_in_text_are_judged_as_the_language_does() -> None:
    events = [{"day": f"2013-01-{1 + n % 28:02}", "seen": f"2013-{n:04}"} for n in range(1000)]
    asked = {"a": "day > date '2013-01-10'", "b": "seen = date '2013-02-01'"}
    is_known = mm.evaluate(asked["a"], events[0]) is not None
    wrong = {"b": ["wrong_type"]}
    assert found(asked, events) == (wrong if is_known else {"a": ["wrong_type"], **wrong})


# -- truth ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [999, 1000])
def test_never_and_always_true(n: int) -> None:
    asked = {
        "typo": "origin = 'JFX'",
        "high": "price > 200",
        "low": "price >= 0",
        "rare": "number = -7",
        "not rare": "number != -7",
        "beyond": "number > 5000",
        "fine": "origin = 'JFK' and price between 10 and 20",
        "present": "price is not null",
        "pattern": {"origin": ["JFX"]},
        "tag": "tags contains 'c'",
    }
    kinds = found(asked, events_of(n))
    never = {id: ["never"] for id in ("typo", "high", "beyond", "pattern")}
    assert kinds == (never | {"low": ["always"]} if n >= 1000 else {})
    if n >= 1000:
        kinds = found(asked, events_of(2000))
        assert kinds == never | {"low": ["always"], "tag": ["never"]}
        said = {one.id: one.suggestion for one in mm.check(asked, events_of(n)).warnings}
        assert said["typo"] == "did you mean 'JFK'?"
        assert said["high"] == "the numbers go from 0 to 99.9"


def test_values_that_hardly_repeat_say_nothing_about_others() -> None:
    events = [{"flight": f"UA{n}", "gate": f"G{n % 9}"} for n in range(2000)]
    asked = {
        1: "flight = 'UA99999'",
        2: "gate = 'G77'",
        3: "flight like '%QQ%'",
        4: "gate != 'G77'",
    }
    assert found(asked, events) == {2: ["never"], 4: ["always"]}


@pytest.mark.parametrize("seed", range(6))
def test_counts_are_those_of_the_oracle(seed: int) -> None:
    expressions, events = cases(seed, 80, 60)
    conditions = Conditions()
    asked = [conditions.read(str(expression)) for expression in expressions]
    for expression, one in zip(expressions, asked, strict=True):
        own = {str(node) for node, _ in walk(expression) if isinstance(node, Predicate)}
        assert {str(conditions.predicates[k]) for k in one.conditions} == own
    flat = []
    for event in events:
        try:
            flat.append(flatten_event(event))
        except EventError:
            continue
    chunks = [read_events(events[:17]).columns(), read_events(events[17:]).columns()]
    counts, n_events = count_true(conditions.predicates, chunks, DEFAULT_SETTINGS)
    assert n_events == len(flat)
    for predicate, count in zip(conditions.predicates, counts.tolist(), strict=True):
        truths = [evaluate_predicate(predicate, event.get(predicate.name)) for event in flat]
        assert count == sum(truth is True for truth in truths), str(predicate)


def test_lists_that_contain_all() -> None:
    events = [{"tags": ["a", "b"]}, {"tags": ["a"]}, {"tags": ["b", "a", "c"]}, {}, {"tags": []}]
    asked = [
        Contains("tags", mode, values)  # type: ignore[arg-type]
        for mode in ("any", "all", "none")
        for values in (("a", "b"), ("a",), ("c", "b", "a"))
    ]
    counts, _ = count_true(asked, [read_events(events).columns()], DEFAULT_SETTINGS)
    truths = [[evaluate_predicate(one, e.get("tags")) for e in events] for one in asked]
    assert counts.tolist() == [sum(truth is True for truth in some) for some in truths]


# -- which events ---------------------------------------------------------------------------------


def test_a_long_stream_is_sampled_evenly() -> None:
    seen = SeenEvents(most_chunks=4)
    for start in range(0, 1000, 10):
        events = read_events([{"n": n} for n in range(start, start + 10)])
        seen.add(EventChunk(start, events))
    firsts = [int(chunk.columns[0].whole[0]) for chunk in seen.chunks]
    assert seen.n_read == 1000
    assert 2 <= len(firsts) <= 4
    assert firsts[0] == 0
    assert len({b - a for a, b in pairwise(firsts)}) == 1
    assert seen.n_events == 10 * len(firsts)


def test_any_source_of_events(tmp_path: Path) -> None:
    events = [{"price": n, "origin": "JFK"} for n in range(100)]
    path = tmp_path / "events.csv"
    path.write_text("price,origin\n" + "\n".join(f"{n},JFK" for n in range(100)) + "\n")
    for source in (events, iter(events), pa.Table.from_pylist(events), path, mm.read_events(path)):
        report = mm.check({"typo": "prize < 20", "type": "origin < 3"}, source)
        assert [one.kind for one in report.warnings] == ["unknown_attribute", "wrong_type"]
        assert report.n_events == 100


def test_events_that_cannot_be_read_are_reported() -> None:
    report = mm.check({1: "a = 1"}, b'{"a": 1}\n{"a": }\n{"a": 3}\n')
    assert report.n_events == 2
    assert [(one.kind, one.row) for one in report.rejected] == [("event", 1)]
    assert not report.ok
    assert mm.check({1: "a = 1"}, []).ok


def test_what_was_learned_is_the_default() -> None:
    engine = mm.Engine({"typo": "prize < 20"})
    assert engine.check().warnings == []
    report = engine.subscribe_many({"other": "orign = 'JFK'"})
    assert report.warnings == []
    engine.learn(iter(events_of(300)))
    assert [one.kind for one in engine.check().warnings] == ["unknown_attribute"] * 2
    assert engine.check().n_events == 300
    engine.learn(events_of(10))
    assert engine.check().n_events == 310
    asked = {
        "a": "price < 3",
        "b": "orign = 'JFK'",
        "c": '"prize" > 3 and price < 3',
        "d": "(price = 1 or orign = 'b') and (price = 3 or geo.lat = 4) and (open or number = 1)",
    }
    # Many texts are looked through for names; a few are read.
    for more in ({}, {n: f"price < {n}" for n in map(str, range(100))}):
        report = engine.subscribe_many(asked | more, replace=True)
        assert [(one.id, one.kind) for one in report.warnings] == [
            (id, "unknown_attribute") for id in "bcd"
        ]
        assert report.warnings[0].suggestion == "did you mean 'origin'?"
    assert engine.subscribe_many({"e": "price < 4"}).warnings == []


def test_costly_subscriptions_are_named() -> None:
    many = {n: f"place = {n} and price > 1" for n in range(2000)}
    engine = mm.Engine(many | {9999: "weight > 3 and price > 98"})
    engine.compact()
    rng = Random(2)
    events = [
        {"place": rng.randrange(2000), "price": rng.randrange(100), "weight": 4 + n % 3}
        for n in range(300)
    ]
    assert engine.check(events[:100]).warnings == []
    costly = [one for one in engine.check(events).warnings if one.kind == "costly"]
    assert [one.id for one in costly] in ([], [9999])
    engine.match_many(events)
    assert [one.id for one in engine.check().warnings] == [one.id for one in costly]


def test_reports_are_readable() -> None:
    report = mm.check({"u1": "prize < 20", "u2": "a ="}, events_of(100))
    assert repr(report) == "<CheckReport: 1 subscriptions, 100 events, 1 rejected, 1 warnings>"
    assert "unknown_attribute: u1: none of the 100 events has prize; did you mean" in str(report)
    assert "did you mean &#x27;price&#x27;?" in report._repr_html_()
    as_json = report.to_dict()
    assert as_json["n_events"] == 100
    assert mm.check(mm.Engine({"u1": "prize < 20"}), events_of(100)).warnings == report.warnings


def test_a_sample_without_events_is_none() -> None:
    assert see_events([]).n_events == 0
    assert see_events([]).column_names() is None


def test_text_that_stands_for_times_is_of_that_type() -> None:
    asked = {"day": "day > date '2013-01-01'", "ts": "ts > timestamp '2013-01-01'"}
    events = [{"day": "2013-01-31", "ts": "2013-01-31"} for _ in range(50)]
    report = mm.check(asked, events)
    assert [(one.id, one.kind) for one in report.warnings] == [("ts", "wrong_type")]
    assert "declared type" in str(report.warnings[0])
    assert mm.Engine(asked, types={"ts": "timestamp"}).check(events).warnings == []
