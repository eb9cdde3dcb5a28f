"""Explanations: the truths are the oracle's, the notes say what was needed."""

from __future__ import annotations

import datetime as dt
import json
import math
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

import matchmill as mm
from matchmill.errors import ExpressionError
from matchmill.language.builder import attr
from matchmill.language.evaluate import Truth, evaluate
from matchmill.language.explain import MAX_TEXT, explain
from matchmill.language.explanation import MAX_LINES, Explanation
from matchmill.language.expression import (
    And,
    Between,
    Compare,
    Contains,
    Expression,
    In,
    Not,
    Operator,
    Or,
    Predicate,
)
from matchmill.language.parser import parse
from tests.support import strategies
from tests.support.generators import LITERALS, cases


def explained(text: str, event: dict[str, Any]) -> Explanation:
    return explain(parse(text), event)


# -- notes ----------------------------------------------------------------------------------------

DAY = dt.date(2013, 1, 31)
NOON = dt.datetime(2013, 1, 31, 12)

# text, event, the note of the one predicate, its distance
NOTES: list[tuple[str, dict[str, Any], str, float | None]] = [
    # satisfied: only what was found
    ("price <= 580", {"price": 580}, "price is 580", None),
    ("tags contains 'a'", {"tags": ["a", "b"]}, "tags is ['a', 'b']", None),
    ("gate is null", {}, "gate is missing", None),
    # numbers, every operator
    ("price = 580", {"price": 590}, "price is 590, needs = 580 (10 too much)", 10),
    ("price = 580", {"price": 570.5}, "price is 570.5, needs = 580 (9.5 too little)", 9.5),
    ("price != 580", {"price": 580.0}, "price is 580.0, needs != 580", 0),
    ("price < 580", {"price": 590}, "price is 590, needs < 580 (10 too much)", 10),
    ("price < 580", {"price": 580}, "price is 580, needs < 580 (it is at the bound)", 0),
    ("price <= 580", {"price": 590}, "price is 590, needs <= 580 (10 too much)", 10),
    ("price > 580", {"price": 570}, "price is 570, needs > 580 (10 too little)", 10),
    ("price > 580", {"price": 580}, "price is 580, needs > 580 (it is at the bound)", 0),
    ("price >= 580", {"price": 579.75}, "price is 579.75, needs >= 580 (0.25 too little)", 0.25),
    (
        "x = 9007199254740993",
        {"x": 2.0**53},
        "x is 9007199254740992.0, needs = 9007199254740993 (1 too little)",
        1.0,
    ),
    ("x = 0.3", {"x": 0.1}, "x is 0.1, needs = 0.3 (0.2 too little)", 0.3 - 0.1),
    # dates and timestamps
    (
        "d >= date '2013-02-01'",
        {"d": DAY},
        "d is date '2013-01-31', needs >= date '2013-02-01' (1 day too early)",
        1,
    ),
    (
        "d < date '2013-01-01'",
        {"d": DAY},
        "d is date '2013-01-31', needs < date '2013-01-01' (30 days too late)",
        30,
    ),
    (
        "t <= timestamp '2013-01-31 11:59'",
        {"t": NOON},
        "t is timestamp '2013-01-31 12:00:00', needs <= timestamp '2013-01-31 11:59:00'"
        " (60 seconds too late)",
        60,
    ),
    (
        "t > timestamp '2013-01-31 12:00:00.5'",
        {"t": NOON},
        "t is timestamp '2013-01-31 12:00:00', needs > timestamp '2013-01-31 12:00:00.500000'"
        " (0.5 seconds too early)",
        0.5,
    ),
    # between
    ("x between 10 and 20", {"x": 5}, "x is 5, needs between 10 and 20 (5 too little)", 5),
    ("x between 10 and 20", {"x": 22}, "x is 22, needs between 10 and 20 (2 too much)", 2),
    ("x between 20 and 10", {"x": 15}, "x is 15, needs between 20 and 10 (which nothing is)", None),
    (
        "x not between 1 and 6",
        {"x": 5},
        "x is 5, needs not between 1 and 6 (1 from the nearer end)",
        1,
    ),
    ("x not between 1 and 6", {"x": 6}, "x is 6, needs not between 1 and 6", 0),
    ("x between 'a' and 'c'", {"x": "d"}, "x is 'd', needs between 'a' and 'c'", None),
    # in
    ("x in (1, 5)", {"x": 7}, "x is 7, needs one of 5, 1 (the nearest: 2 too much)", 2),
    (
        "x in ('AA', 2)",
        {"x": "AB"},
        "x is 'AB', needs one of 'AA', 2 (the nearest: 1 edit away)",
        1,
    ),
    ("x in ('AA')", {"x": "UA"}, "x is 'UA', needs = 'AA' (the nearest: 1 edit away)", 1),
    ("x not in ('AA', 'UA')", {"x": "UA"}, "x is 'UA', needs none of 'UA', 'AA'", None),
    # text
    ("m = 'iphone5s'", {"m": "iphone5"}, "m is 'iphone5', needs = 'iphone5s' (1 edit away)", 1),
    ("m = 'kitten'", {"m": "sitting"}, "m is 'sitting', needs = 'kitten' (3 edits away)", 3),
    ("m < 'a'", {"m": "b"}, "m is 'b', needs < 'a'", None),
    ("m like 'a%'", {"m": "b"}, "m is 'b', needs like 'a%'", None),
    ("m not ilike 'B%'", {"m": "b"}, "m is 'b', needs not ilike 'B%'", None),
    ("m rlike '^a'", {"m": "b"}, "m is 'b', needs rlike '^a'", None),
    ("m in cidr ('10.0.0.0/8')", {"m": "::1"}, "m is '::1', needs in cidr '10.0.0.0/8'", None),
    # presence and booleans
    ("gate is null", {"gate": "A1"}, "gate is 'A1', needs to be missing", None),
    ("gate is not null", {}, "gate is missing, needs a value", None),
    ("open", {"open": False}, "open is false, needs true", None),
    ("open = true", {"open": False}, "open is false, needs = true", None),
    # lists
    ("tags contains 'b'", {"tags": ["a"]}, "tags is ['a'], needs 'b'", None),
    ("tags contains any ('b', 'c')", {"tags": []}, "tags is [], needs one of 'b', 'c'", None),
    ("tags contains all ('a', 'b')", {"tags": ["a"]}, "tags is ['a'], lacks 'b'", None),
    (
        "tags contains none ('a', 'b')",
        {"tags": ["a"]},
        "tags is ['a'], needs to be without 'a'",
        None,
    ),
    (
        "any(s) > 5",
        {"s": [1, 2.5, "a"]},
        "s is [1, 2.5, 'a'], needs an element > 5 (2.5 too little)",
        2.5,
    ),
    (
        "any(s) in (5, 6)",
        {"s": [1]},
        "s is [1], needs an element that is one of 5, 6 (the nearest: 4 too little)",
        4,
    ),
    ("any(s) > 5", {"s": ["a"]}, "s is ['a'], needs an element > 5", None),
    # unknown
    ("color = 'red'", {}, "color is missing", None),
    ("color = 'red'", {"color": None}, "color is missing", None),
    ("price < 1", {"price": math.nan}, "price is missing", None),
    ("price < 1", {"price": "abc"}, "price is text 'abc', needs a number", None),
    ("price < 1", {"price": True}, "price is the boolean true, needs a number", None),
    ("tags = 'a'", {"tags": ["a"]}, "tags is a list, needs text", None),
    ("tags contains 'a'", {"tags": "a"}, "tags is text 'a', needs a list", None),
    ("any(tags) = 'a'", {"tags": 5}, "tags is the number 5, needs a list", None),
    ("open", {"open": 1}, "open is the number 1, needs a boolean", None),
    ("x in (1, 'a')", {"x": DAY}, "x is date '2013-01-31', needs a number or text", None),
    ("m like '1%'", {"m": 1}, "m is the number 1, needs text", None),
    ("m in cidr ('::/0')", {"m": "home"}, "m is 'home', which is not an IP address", None),
    # names as they stand in text
    ('"odd name" = 1', {"odd name": 2}, '"odd name" is 2, needs = 1 (1 too much)', 1),
    ("geo.lat > 1", {"geo": {"lat": 0}}, "geo.lat is 0, needs > 1 (1 too little)", 1),
]


@pytest.mark.parametrize(("text", "event", "note", "distance"), NOTES)
def test_notes(text: str, event: dict[str, Any], note: str, distance: float | None) -> None:
    explanation = explained(text, event)
    assert explanation.note == note
    assert explanation.distance == distance


# Below a `not`, a predicate that is true stands in the way: the note asks for the opposite.
MIRRORED: list[tuple[str, dict[str, Any], str, float | None]] = [
    ("not price <= 580", {"price": 500}, "price is 500, needs > 580 (80 too little)", 80),
    ("not price < 580", {"price": 500}, "price is 500, needs >= 580 (80 too little)", 80),
    ("not price > 580", {"price": 590}, "price is 590, needs <= 580 (10 too much)", 10),
    ("not price >= 580", {"price": 580}, "price is 580, needs < 580 (it is at the bound)", 0),
    ("not price = 580", {"price": 580}, "price is 580, needs != 580", 0),
    ("not price != 580", {"price": 590}, "price is 590, needs = 580 (10 too much)", 10),
    (
        "not x between 1 and 9",
        {"x": 2},
        "x is 2, needs not between 1 and 9 (1 from the nearer end)",
        1,
    ),
    ("not x not between 1 and 9", {"x": 0}, "x is 0, needs between 1 and 9 (1 too little)", 1),
    ("not x in (1, 2)", {"x": 2}, "x is 2, needs none of 2, 1", None),
    ("not x not in (1, 2)", {"x": 4}, "x is 4, needs one of 2, 1 (the nearest: 2 too much)", 2),
    ("not m like 'a%'", {"m": "a"}, "m is 'a', needs not like 'a%'", None),
    ("not m not like 'a%'", {"m": "b"}, "m is 'b', needs like 'a%'", None),
    ("not gate is null", {}, "gate is missing, needs a value", None),
    ("not gate is not null", {"gate": 1}, "gate is 1, needs to be missing", None),
    ("not open", {"open": True}, "open is true, needs false", None),
    ("not true", {}, "always true", None),
    ("not tags contains 'a'", {"tags": ["a"]}, "tags is ['a'], needs to be without 'a'", None),
    ("not tags contains none ('a', 'b')", {"tags": []}, "tags is [], needs one of 'a', 'b'", None),
    (
        "not tags contains all ('a', 'b')",
        {"tags": ["a", "b"]},
        "tags is ['a', 'b'], needs to lack one of 'a', 'b'",
        None,
    ),
    ("not any(s) > 5", {"s": [6]}, "s is [6], needs no element > 5", None),
]


@pytest.mark.parametrize(("text", "event", "note", "distance"), MIRRORED)
def test_mirrored_notes(
    text: str, event: dict[str, Any], note: str, distance: float | None
) -> None:
    explanation = explained(text, event)
    (leaf,) = explanation.failures
    assert leaf is explanation.parts[0]
    assert leaf.note == note
    assert leaf.distance == distance


def test_a_distance_is_how_far_a_value_must_move() -> None:
    """For every operator and pair of numbers: moved by the distance, the value satisfies it."""
    rng = Random(8)
    operators: tuple[Operator, ...] = ("=", "<=", ">=", "<", ">", "!=")
    numbers = [n for n in LITERALS["int"] if abs(n) < 2**62]
    for _ in range(500):
        value, bound = rng.choice(numbers), rng.choice(numbers)
        op = rng.choice(operators)
        leaf = explain(Compare("x", op, bound), {"x": value})
        if leaf.truth:
            assert leaf.distance is None
            continue
        assert leaf.distance == abs(value - bound)
        step = 0 if op in ("=", "<=", ">=") else 1
        moved = [value + side * (abs(value - bound) + step) for side in (-1, 1)]
        assert any(evaluate(Compare("x", op, bound), {"x": m}) for m in moved)
        assert ("too much" in leaf.note) == (value > bound)
        assert ("too little" in leaf.note) == (value < bound)


def test_distances_are_never_zero_for_different_numbers_nor_infinite() -> None:
    numbers = LITERALS["number"]
    for value in numbers:
        for literal in numbers:
            distance = explain(Compare("x", "=", literal), {"x": value}).distance
            if value == literal:
                assert distance is None
            else:
                assert distance is not None
                assert 0 < distance < math.inf


# -- trees ----------------------------------------------------------------------------------------


def test_tree() -> None:
    explanation = explained(
        "origin = 'JFK' and (price <= 580 or not color = 'red') and carrier = 'AA'",
        {"origin": "JFK", "price": 590, "carrier": "AA"},
    )
    assert str(explanation).splitlines() == [
        "? origin = 'JFK' and (price <= 580 or not color = 'red') and carrier = 'AA'",
        "  ✓ origin = 'JFK': origin is 'JFK'",
        "  ? price <= 580 or not color = 'red'",
        "    ✗ price <= 580: price is 590, needs <= 580 (10 too much)",
        "    ? not color = 'red'",
        "      ? color = 'red': color is missing",
        "  ✓ carrier = 'AA': carrier is 'AA'",
    ]


@pytest.mark.parametrize(
    ("text", "truth", "failures", "missing"),
    [
        ("a = 1", True, [], 0),
        ("a = 2", False, ["a = 2"], 1),
        ("z = 2", None, ["z = 2"], 1),
        ("a = 1 and b = 1 and z = 1", False, ["b = 1", "z = 1"], 2),
        ("a = 1 or b = 1", True, [], 0),
        ("a = 2 or b = 1", False, ["a = 2", "b = 1"], 1),
        ("not a = 1", False, ["a = 1"], 1),
        ("not (a = 1 or b = 2)", False, ["a = 1", "b = 2"], 2),
        ("not (a = 1 and b = 2)", False, ["a = 1", "b = 2"], 1),
        ("not (a = 1 and z = 1)", None, ["a = 1", "z = 1"], 1),
        ("not (a = 1 or b = 1)", False, ["a = 1"], 1),
        ("not not a = 2", False, ["a = 2"], 1),
        ("(a = 2 and b = 1) or (a = 3 and b = 2)", False, ["a = 2", "b = 1", "a = 3"], 1),
        ("a = 1 and false", False, ["false"], 1),
    ],
)
def test_failures(text: str, truth: Truth, failures: list[str], missing: int) -> None:
    explanation = explained(text, {"a": 1, "b": 2})
    assert explanation.truth is truth
    assert [leaf.text for leaf in explanation.failures] == failures
    assert len(explanation.failures) == len(failures)
    assert explanation.n_missing == missing


def test_as_json() -> None:
    explanation = explained("price <= 580 and d = date '2013-01-01'", {"price": 590, "d": DAY})
    assert json.loads(json.dumps(explanation.to_dict(), allow_nan=False)) == {
        "matched": False,
        "n_missing": 2,
        "summary": "no match: price is 590, needs <= 580 (10 too much); d is date '2013-01-31',"
        " needs = date '2013-01-01' (30 days too late)",
        "kind": "and",
        "text": "price <= 580 and d = date '2013-01-01'",
        "truth": False,
        "note": "",
        "distance": None,
        "parts": [
            {
                "kind": "condition",
                "text": "price <= 580",
                "truth": False,
                "note": "price is 590, needs <= 580 (10 too much)",
                "distance": 10,
                "parts": [],
            },
            {
                "kind": "condition",
                "text": "d = date '2013-01-01'",
                "truth": False,
                "note": "d is date '2013-01-31', needs = date '2013-01-01' (30 days too late)",
                "distance": 30,
                "parts": [],
            },
        ],
    }


def test_as_json_and_back() -> None:
    explanation = replace(explained("not (a = 1 or b)", {"a": 1}), id="u42")
    answer = explanation.to_dict()
    assert answer["id"] == "u42"
    assert Explanation.from_dict(json.loads(json.dumps(answer))) == explanation


# -- as a result ----------------------------------------------------------------------------------


def test_truth_and_forms() -> None:
    event = {"price": 590, "origin": "JFK"}
    miss = explain("price <= 580 and origin = 'JFK'", event)
    assert not miss
    assert miss.matched is False
    assert miss.summary == "no match: price is 590, needs <= 580 (10 too much)"
    assert repr(miss) == f"<Explanation: {miss.summary}>"
    assert repr(replace(miss, id=7)) == f"<Explanation: 7: {miss.summary}>"
    hit = explain({"origin": ["JFK"]}, event)
    assert hit
    assert (hit.matched, hit.n_missing, hit.failures, hit.summary) == (True, 0, (), "match")
    unknown = explain("gate = 'A'", event)
    assert not unknown
    assert unknown.summary == "no match: gate is missing"
    assert "<pre>✗ price &lt;= 580 and origin" in miss._repr_html_()
    several = explain("a = 1 and b = 1 and c = 1 and d = 1", {})
    assert several.summary == "no match: a is missing; b is missing; and 2 more"
    assert len(repr(explain(" and ".join(f"{'x' * 60}{i} = 1" for i in range(9)), {}))) < 150


def test_an_engine_names_the_subscription() -> None:
    engine = mm.Engine({"u42": "price <= 580"})
    explanation = engine.explain("u42", {"price": 590})
    assert explanation.id == "u42"
    assert explanation.summary == "u42: no match: price is 590, needs <= 580 (10 too much)"
    assert explanation.to_dict()["id"] == "u42"


def test_what_stands_for_an_expression() -> None:
    event = {"a": True, "b": 5}
    for source in ("a", attr("a"), attr("a").is_true(), {"a": [True]}, '{"a": [true]}', " a "):
        assert explain(source, event).matched
        assert evaluate(source, event) is True
    for bad in (5, b"a", None):
        with pytest.raises(ExpressionError, match="an expression is text, a JSON pattern or"):
            explain(bad, event)  # type: ignore[arg-type]
        with pytest.raises(ExpressionError, match="an expression is text, a JSON pattern or"):
            evaluate(bad, event)  # type: ignore[arg-type]


def test_a_bare_name_is_a_boolean_attribute() -> None:
    hint = "(a name alone is a boolean attribute; compare it: u1 = 'x')"
    assert explain("u1", {"price": 5}).note == f"u1 is missing {hint}"
    assert explain("u1", {"u1": 5}).note == "u1 is the number 5, needs a boolean"
    assert explain("u1", {"u1": False}).note == "u1 is false, needs true"


@pytest.mark.parametrize(
    ("text", "value", "note"),
    [
        (
            "ts > timestamp '2013-01-31 10:00:00'",
            "2013-01-31 11:00:00",
            "ts is '2013-01-31 11:00:00'",
        ),
        (
            "ts = date '2013-01-31'",
            "2013-02-02",
            "ts is '2013-02-02', needs = date '2013-01-31' (2 days too late)",
        ),
        (
            "ts between timestamp '2013-01-01' and timestamp '2013-01-31'",
            "2013-01-31T00:00:01Z",
            "ts is '2013-01-31T00:00:01Z', needs between timestamp '2013-01-01 00:00:00' and"
            " timestamp '2013-01-31 00:00:00' (1 second too late)",
        ),
        (
            "ts > date '2013-01-31'",
            "soon",
            "ts is text 'soon', needs a date"
            " (text is read as one if it is written like 2013-01-31)",
        ),
        (
            "ts > timestamp '2013-01-31'",
            "2013-02-01",
            "ts is text '2013-02-01', needs a timestamp (this text is a date: compare it with date"
            " '…', or declare the type timestamp)",
        ),
        (
            "ts > date '2013-01-31'",
            "2013-02-01T00:00",
            "ts is text '2013-02-01T00:00', needs a date (this text is a timestamp: compare it with"
            " timestamp '…')",
        ),
        ("ts > 5", "2013-01-31", "ts is text '2013-01-31', needs a number"),
    ],
)
def test_the_text_of_a_time(text: str, value: str, note: str) -> None:
    assert explain(text, {"ts": value}).note == note


# -- size -----------------------------------------------------------------------------------------


def test_long_lists_show_the_nearest_values() -> None:
    names = tuple(f"{a}{b}" for a in "ABCDEFGHIJKL" for b in "0123456789")
    leaf = explain(In("carrier", names), {"carrier": "J55"})
    assert leaf.note == (
        "carrier is 'J55', needs one of 'J5', 'A5', 'B5', … (120 values) (the nearest: 1 edit away)"
    )
    leaf = explain(In("x", tuple(range(0, 1000, 10))), {"x": 123})
    assert leaf.note == (
        "x is 123, needs one of 120, 130, 110, … (100 values) (the nearest: 3 too much)"
    )
    leaf = explain(In("x", tuple(range(1000)), negated=True), {"x": 500})
    assert leaf.note == "x is 500, needs none of 500, 499, 501, … (1000 values)"


@pytest.mark.parametrize(
    ("expression", "event"),
    [
        (Compare("x", "=", "s" * 100_000), {"x": "t" * 100_000}),
        (Compare("n" * 100_000, "=", 1), {"n" * 100_000: 2}),
        (In("x", tuple(range(20_000))), {"x": 0.5}),
        (In("x", tuple("s" * (i % 60) + str(i) for i in range(20_000))), {"x": "s" * 30}),
        (Contains("x", "all", tuple("s" * i for i in range(100))), {"x": ["t" * 1000] * 100}),
        (Compare("x", "=", "abc", any_element=True), {"x": ["abd" * 10] * 10_000}),
        (Between("x", "a" * 10_000, "b" * 10_000), {"x": "c" * 10_000}),
    ],
)
def test_lines_stay_short(expression: Predicate, event: dict[str, Any]) -> None:
    explanation = explain(expression, event)
    assert explanation.truth is False
    assert len(explanation.text) <= MAX_TEXT
    assert len(explanation.note) <= 250


def test_long_trees_are_cut() -> None:
    wide = Or(tuple(Compare("x", "=", i) for i in range(1000)))
    lines = str(explain(wide, {"x": -1})).splitlines()
    assert len(lines) == MAX_LINES + 1
    assert lines[-1] == "… (801 more lines)"


def test_control_characters_are_spelt_out() -> None:
    text = str(explain(Compare("x", "=", "a\nb"), {"x": "\x1b[31m"}))
    assert text == r"✗ x = 'a\nb': x is '\x1b[31m', needs = 'a\nb' (5 edits away)"


# -- against the oracle ---------------------------------------------------------------------------


def check_agreement(expression: Expression, event: dict[str, Any]) -> None:
    explanation = explain(expression, event)
    assert explanation.truth is evaluate(expression, event)
    assert (explanation.n_missing == 0) == (explanation.truth is True)
    assert explanation.n_missing <= len(explanation.failures)
    assert (len(explanation.failures) == 0) == (explanation.truth is True)
    json.dumps(explanation.to_dict(), allow_nan=False)
    for leaf in explanation.failures:
        assert not leaf.parts
        assert leaf.note
    check_parts(expression, explanation, event)


def check_parts(expression: Expression, explanation: Explanation, event: dict[str, Any]) -> None:
    assert explanation.truth is evaluate(expression, event)
    assert len(explanation.parts) == len(expression.parts)
    for part, part_explanation in zip(expression.parts, explanation.parts, strict=True):
        check_parts(part, part_explanation, event)


@settings(max_examples=100, deadline=None)
@given(strategies.expressions(), strategies.events(objects=True))
def test_agrees_with_the_oracle(expression: Expression, event: dict[str, Any]) -> None:
    check_agreement(expression, event)


def test_agrees_with_the_oracle_on_generated_cases() -> None:
    expressions, events = cases(11, 150, 10)
    for expression in expressions:
        for event in events:
            check_agreement(expression, event)


def test_deep_trees() -> None:
    expression: Expression = Compare("x", "=", 1)
    for depth in range(60):
        expression = Not(expression) if depth % 2 else And((expression, Compare("y", "=", depth)))
    check_agreement(expression, {"x": 1, "y": 3})


# -- truth tests, and what decides ----------------------------------------------------------------


def test_truth_tests_say_what_they_need() -> None:
    hit = explained("(a = 1 or b = 1) is not true", {"a": "x"})
    assert str(hit) == (
        "✓ (a = 1 or b = 1) is not true: it is unknown\n"
        "  ? a = 1 or b = 1\n"
        "    ? a = 1: a is 'x'\n"
        "    ? b = 1: b is missing"
    )
    miss = explained("(a = 1 or b = 1) is not true", {"a": 1, "b": 1})
    assert [failure.note for failure in miss.failures] == [
        "a is 1, needs != 1",
        "b is 1, needs != 1",
    ]
    assert miss.n_missing == 2
    assert explained("(a = 1) is unknown", {"a": 2}).failures[0].note == (
        "a is 2, needs to be missing, or of another type"
    )
    assert explained("(a = 1) is false", {}).failures[0].note == "a is missing"
    assert explained("(a = 1 or b = 1) is not unknown", {}).n_missing == 1
    assert explained("(a = 1 and b = 1) is not unknown", {}).n_missing == 1
    assert explained("(a = 1 and b = 1) is unknown", {"a": 1, "b": 1}).n_missing == 1


def test_the_alternatives_that_decide_come_first() -> None:
    many = " or ".join(f"(a = {i} and b = 1)" for i in range(4000))
    lines = str(explained(many, {"a": 3990, "b": 1})).splitlines()
    assert lines[1] == "  ✓ a = 3990 and b = 1"
    assert lines[-1].endswith("more lines)")
    long = " and ".join(f"a{i} = 1" for i in range(400))
    lines = str(explained(long, {f"a{i}": 1 for i in range(399)})).splitlines()
    assert lines[1] == "  ? a399 = 1: a399 is missing"
