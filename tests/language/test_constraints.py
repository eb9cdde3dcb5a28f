"""Constraints on variables: their truth is that of the same condition on an attribute."""

from __future__ import annotations

import datetime as dt
import logging
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchmill as mm
from matchmill import attr, call, var
from matchmill.language.constraint_truth import truth_of_constraint
from matchmill.language.evaluate import evaluate
from matchmill.language.operator_calls import Restriction
from tests.support.strategies import LIKE_PATTERNS, NETWORKS, NUMBERS, RLIKE_PATTERNS, STRINGS


def constraint(text: str) -> Restriction:
    parsed = mm.parse(text)
    assert isinstance(parsed, Restriction)
    return parsed


def truth(text: str, values: dict[str, Any], event: dict[str, Any] | None = None) -> bool | None:
    return truth_of_constraint(constraint(text).for_event((event or {}).get), values)


# -- against the oracle of conditions on attributes -----------------------------------------------

literals = st.sampled_from(
    [*NUMBERS, *STRINGS, True, False, dt.date(2013, 1, 31), dt.datetime(2013, 1, 31, 10)]
)
negations = st.sampled_from(["", "not "])


@st.composite
def conditions(draw: st.DrawFn) -> mm.Expression:
    """A condition on the attribute `v`, of any kind that a constraint can have."""
    v = attr("v")
    match draw(st.integers(0, 6)):
        case 0:
            made = v.is_in(draw(st.lists(literals, min_size=1, max_size=4)))
        case 1:
            low = draw(literals)
            high = draw(literals.filter(lambda high: type(high) is type(low)))
            made = v.between(low, high)
        case 2:
            made = v.like(draw(st.sampled_from(LIKE_PATTERNS)))
        case 3:
            made = v.ilike(draw(st.sampled_from(LIKE_PATTERNS)))
        case 4:
            made = v.rlike(draw(st.sampled_from(RLIKE_PATTERNS)))
        case 5:
            made = v.in_cidr(draw(st.sampled_from(NETWORKS)))
        case _:
            made = v.is_null()
    return ~made if draw(st.booleans()) else made


@given(conditions(), literals)
def test_the_truth_is_that_of_the_same_condition_on_an_attribute(
    condition: mm.Expression, value: Any
) -> None:
    text = str(condition)
    assert text.startswith("v ")
    same = constraint("?" + text)
    expected = evaluate(condition, {"v": value})
    assert truth_of_constraint(same, {"v": value}) is expected
    other = truth_of_constraint(same.opposite, {"v": value})
    assert other is (None if expected is None else not expected)
    assert mm.parse(str(same.opposite)) == same.opposite


# -- examples -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("?x in (1, ?y + 1, 'a')", {"x": 3, "y": 2}, True),
        ("?x in (1, ?y + 1, 'a')", {"x": 4, "y": 2}, False),
        ("?x in (1, ?y + 1, 'a')", {"x": True, "y": 2}, None),
        ("?x not in (?y, 'a')", {"x": "b", "y": 2}, True),
        ("1 in (?x, ?y)", {"x": 3, "y": 1}, True),
        ("?x between ?y and 2 * ?y", {"x": 3, "y": 2}, True),
        ("?x not between ?y and 2 * ?y", {"x": 5, "y": 2}, True),
        ("?x not between ?y and 'a'", {"x": 5, "y": 2}, None),
        ("?x not between ?y and 1 and 1 = 1", {"x": 5, "y": 6}, True),
        ("?x / ?y is null", {"x": 5, "y": 0}, True),
        ("?x + ?y is not null", {"x": 5, "y": "a"}, False),
        ("?x is null", {"x": 5}, False),
        ("?x % 3 = 1", {"x": 7}, True),
        ("?x % 3 = -1", {"x": -7}, True),  # the sign of what is divided, as in SQL
        ("?x % -3 = 1", {"x": 7}, True),
        ("?x % 0 is null", {"x": 7}, True),
        ("?x % 2.5 = 2", {"x": 7}, True),
        ("?x % 1 = 0.5", {"x": -0.5}, False),
        ("-?x % 4 = -3", {"x": 7}, True),
        ("?x - 7 % 4 = ?x - 3", {"x": 7}, True),
        ("10 * ?x % 7 = 0", {"x": 7}, True),
        ("9223372036854775807 % ?x = 7", {"x": 10}, True),
        ("abs(?x - ?y) <= 1", {"x": 1, "y": 2}, True),
        ("abs(?x) is null", {"x": "a"}, True),
        ("abs(?x) is null", {"x": True}, True),
        ("lower(?x) like 'a%'", {"x": "ABC"}, True),
        ("lower(?x) = upper(?x)", {"x": "1"}, True),
        ("lower(?x) is null", {"x": 1}, True),
        ("length(?x) = 3", {"x": "abc"}, True),
        ("floor(?x / 2) = 2 and 1 = 1", {"x": 5}, True),
        ("ceil(?x / 2) = 3", {"x": 5}, True),
        ("round(?x / 2) = 3", {"x": 5}, True),
        ("round(?x) = -3", {"x": -2.5}, True),
        ("greatest(?x, ?y, 3) = 5", {"x": 5, "y": 4}, True),
        ("least(?x, ?y) = 4", {"x": 5, "y": 4.0}, True),
        ("nope(?x) is null", {"x": 5}, True),
        ("(?x) in (5)", {"x": 5}, True),
        ("(?x + 1) * 2 between 12 and 12", {"x": 5}, True),
        ("?x in cidr ('10.0.0.0/8')", {"x": "10.1.2.3"}, True),
        ("?x rlike '^a'", {"x": 5}, None),
    ],
)
def test_examples(text: str, values: dict[str, Any], expected: bool | None) -> None:
    text = text.removesuffix(" and 1 = 1")
    assert truth(text, values) is expected
    assert mm.parse(str(constraint(text))) == constraint(text)


@pytest.mark.parametrize(
    ("text", "event", "expected"),
    [
        ("?x < price", {"price": 6}, True),
        ("price > ?x", {"price": 6}, True),
        ("price > ?x", {}, None),
        ("price > ?x", {"price": "6"}, None),
        ("price > ?x", {"price": (1, 2)}, None),
        ("price + ?x is null", {}, True),
        ("price between ?x and 10", {"price": 6}, True),
        ("price between 1 and ?x", {"price": 6}, False),
        ("price in (?x, 7)", {"price": 7}, True),
        ('"in".b = ?x + 1', {}, None),
        ('"in" * 2 = ?x + 1', {"in": 3}, True),
        ("length(tags) < ?x", {"tags": ("a", "b")}, True),
        ("date = ?x", {"date": 5}, True),
        ("?x = photo", {"photo": b"x"}, None),
        ("?x != photo", {"photo": object()}, None),
    ],
)
def test_attributes_of_the_event(text: str, event: dict[str, Any], expected: bool | None) -> None:
    if text.startswith('"in".b'):
        text = '"in.b" = ?x + 1'
    assert truth(text, {"x": 5}, event) is expected
    assert constraint(text).attributes


def test_a_constraint_names_the_attributes_that_it_looks_at() -> None:
    parsed = mm.parse("boats(?n) and ?n > price + least(?n, stock) and color = 'red'")
    assert parsed.attributes == {"price", "stock", "color"}


def test_what_has_no_variable_is_a_condition_as_before() -> None:
    for text in ("price between 1 and 5 and f(?n)", "a = '?' or b in (1, 2)", "f(?n) and price"):
        assert mm.parse(text) == mm.parse(str(mm.parse(text)))
        assert not any(isinstance(part, Restriction) for part in mm.parse(text).parts)
    parsed = mm.parse("f(?a) and price between 1 and ?a and stock > 5 and ?a is not null")
    assert [isinstance(part, Restriction) for part in parsed.parts] == [False, True, False, True]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("f(?x) and ?x in ()", "the list is empty"),
        ("f(?x) and ?x in 5", "takes a list"),
        ("f(?x) and ?x between 5", "`and` is expected"),
        ("f(?x) and ?x like 5", "takes a pattern"),
        ("f(?x) and ?x like 'a\\'", "single backslash"),
        ("f(?x) and ?x rlike '(a'", "missing )"),
        ("f(?x) and ?x in cidr 'a'", "not a network"),
        ("f(?x) and ?x is 5", "a comparison is expected"),
        ("f(?x) and ?x not 5", "a comparison is expected"),
        ("f(?x) and ?x contains 5", "a comparison is expected"),
        ("f(?x) and ?x = null", "null"),
        ("f(?x) and ?x = ", "missing"),
        ("f(?x) and ?x < lower(", "missing"),
        ("f(?x) and (7 + 1) * 2 > 7", "compares literals only"),
        ("f(?x) and ?x < 5 < 7", "chained"),
        ("any(tags) = ?x", "literal"),
        ("f(?x) and lower(price)", "argument"),
        ("f(?x) and ?x > " + "lower(" * 101 + "?x" + ")" * 101, "more than 100"),
    ],
)
def test_errors(text: str, words: str) -> None:
    with pytest.raises(mm.ExpressionError, match=words.replace("(", r"\(").replace(")", r"\)")):
        mm.parse(text)


# -- from Python ----------------------------------------------------------------------------------


def test_builders_and_texts_agree() -> None:
    x, y = var("x"), var("y")
    for built, text in (
        (call("boats", "tour", x) & (x > 3), "boats('tour', ?x) and ?x > 3"),
        (2 * x - y / 3 != 1, "2 * ?x - ?y / 3 != 1"),
        (-x % 7 == y, "-1 * ?x % 7 = ?y"),
        (1 - x >= y + 1, "1 - ?x >= ?y + 1"),
        (attr("price") < x, "?x > price"),
        (x == attr("price") * y, "?x = price * ?y"),
        (attr("price") == x, "?x = price"),
        (x.is_in(1, y, attr("z")), "?x in (1, ?y, z)"),
        (~x.is_in(["a", "b"]), "not ?x in ('a', 'b')"),
        ((x + y).between(1, attr("most")), "?x + ?y between 1 and most"),
        (x.like("a%") | x.ilike("a%"), "?x like 'a%' or ?x ilike 'a%'"),
        (x.rlike("^a") | x.in_cidr("::/0"), "?x rlike '^a' or ?x in cidr '::/0'"),
        (x.is_null() | (x / y).is_not_null(), "?x is null or ?x / ?y is not null"),
        (x.apply("lower") == "a", "lower(?x) = 'a'"),
        (1 / x + 5 % y + 3 * (x <= 1).variables.__len__() > 0, "1 / ?x + 5 % ?y + 3 > 0"),
    ):
        assert built == mm.parse(text), text
        assert mm.parse(str(built)) == built


def test_what_cannot_be_built() -> None:
    for bad, words in (
        (lambda: var("a b"), "a word"),
        (lambda: var("x") > attr("tags").any(), "any"),
        (lambda: var("x").like(5), "a pattern is text"),
        (lambda: var("x").is_in(), "must not be empty"),
        (lambda: var("x") > math.nan, "NaN"),  # noqa: PLW0177
        (lambda: call("", 1), "non-empty"),
        (lambda: call("f", attr("price")), "an argument is"),
        (lambda: call("f", var("x") + 1), "an argument is"),
        (lambda: attr("tags").any() > var("x"), "attribute|value"),
    ):
        with pytest.raises(mm.ExpressionError, match=words):
            bad()
    with pytest.raises(TypeError, match="no truth value"):
        bool(var("x"))


# -- functions ------------------------------------------------------------------------------------


@pytest.fixture
def half() -> Any:
    mm.function(name="half")(lambda x: x / 2)
    yield
    if "half" in mm.function_names():
        mm.unregister_function("half")


@pytest.mark.usefixtures("half")
def test_functions_of_the_users(caplog: pytest.LogCaptureFixture) -> None:
    assert truth("half(?x) = 2.5", {"x": 5}) is True
    assert truth("half(?x / 3) * 6 = ?x", {"x": 5}) is True
    assert mm.evaluate("attribute('n', ?x) and half(?x) > least", {"n": 5, "least": 2}) is True
    with caplog.at_level(logging.WARNING, "matchmill.operators"):
        for _ in range(12):
            assert truth("half(?x) is null", {"x": "a"}) is True
    texts = [record.getMessage() for record in caplog.records]
    assert [text.partition(":")[0] for text in texts] == [
        "function half, error 1",
        "function half, error 10",
    ]
    assert truth("half(?x) is null", {"x": "a"}) is True
    mm.unregister_function("half")
    assert truth("half(?x) is null", {"x": 5}) is True
    with pytest.raises(mm.InputError, match="no function 'half'"):
        mm.unregister_function("half")


@pytest.mark.parametrize(
    "returned",
    [None, float("nan"), 2**80, [1], pytest.param(object(), id="object"), b"x", float("inf")],
    ids=str,
)
def test_what_a_function_may_not_return_is_no_value(returned: Any) -> None:
    mm.function(name="odd_one")(lambda x: returned)
    try:
        assert truth("odd_one(?x) is null", {"x": 1}) is True
        assert truth("odd_one(?x) = odd_one(?x)", {"x": 1}) is None
    finally:
        mm.unregister_function("odd_one")


def test_a_function_that_raises_anything_ends_no_match() -> None:
    def ends(x: Any) -> Any:
        raise {1: GeneratorExit, 2: SystemExit, 3: KeyboardInterrupt}[x]

    mm.function(ends)
    try:
        assert truth("ends(?x) is null", {"x": 1}) is True
        assert truth("ends(?x) is null", {"x": 2}) is True
        with pytest.raises(KeyboardInterrupt):
            truth("ends(?x) is null", {"x": 3})
    finally:
        mm.unregister_function("ends")


@pytest.mark.usefixtures("half")
def test_names_of_functions() -> None:
    with pytest.raises(mm.InputError, match="there is a function 'half' already"):
        mm.function(name="half")(len)
    for bad in (5, None):
        with pytest.raises(mm.InputError, match="no function"):
            mm.function(name="other")(bad)  # type: ignore[type-var]
    with pytest.raises(mm.InputError, match="is a word"):
        mm.function(name="a\nb")(len)
    engine = mm.Engine()
    for text, words, position in (
        ("attribute('a', ?x) and nope(?x) = 1", "there is no function 'nope'", 23),
        ("attribute('a', ?x) and half(?x, 2) = 1", "'half' does not take 2 arguments", 23),
        ("attribute('a', ?x) and within_km(?x) = 1", "it is an operator", 23),
        ("attribute('a', ?x) and lowe(?x) = 1", "did you mean", 23),
    ):
        with pytest.raises(mm.ExpressionError) as caught:
            engine.subscribe("s", text)
        assert words in str(caught.value)
        assert caught.value.position == position


def test_exact_numbers() -> None:
    assert truth("?x / 3 * 3 = ?x", {"x": 9007199254740993}) is True
    assert truth("?x % 10 = 3", {"x": 9007199254740993}) is True
    assert truth("?x / 2 % 1 = 1 / ?y", {"x": 3, "y": 2}) is True
    assert truth("?x = ?y / 2", {"x": 0.5, "y": 1}) is True
    assert Fraction(1, 2) == 0.5
