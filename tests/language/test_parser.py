"""The parser: what it reads, what it rejects and how it says so, and that nothing hangs it."""

from __future__ import annotations

import datetime as dt
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from matchmill import Engine
from matchmill.errors import ExpressionError, LimitError
from matchmill.language.expression import (
    And,
    Between,
    Compare,
    Constant,
    Contains,
    Expression,
    In,
    InNetwork,
    IsNull,
    IsTrue,
    Like,
    Not,
    Or,
    RLike,
)
from matchmill.language.parser import parse
from matchmill.settings import Settings
from tests.support.soon import ends_soon
from tests.support.strategies import any_names, expressions, literals

A, B, C = IsTrue("a"), IsTrue("b"), IsTrue("c")

GOOD: list[tuple[str, Expression]] = [
    # Comparisons
    ("x = 1", Compare("x", "=", 1)),
    ("x == 1", Compare("x", "=", 1)),
    ("x != 1", Compare("x", "!=", 1)),
    ("x <> 1", Compare("x", "!=", 1)),
    ("x<1", Compare("x", "<", 1)),
    ("x <=1", Compare("x", "<=", 1)),
    ("x> 1", Compare("x", ">", 1)),
    ("x>=-1", Compare("x", ">=", -1)),
    # The literal on the left
    ("580 >= price", Compare("price", "<=", 580)),
    ("1 < x", Compare("x", ">", 1)),
    ("1 <= x", Compare("x", ">=", 1)),
    ("1 > x", Compare("x", "<", 1)),
    ("'a' = x", Compare("x", "=", "a")),
    ("'a' <> x", Compare("x", "!=", "a")),
    ("true = x", Compare("x", "=", True)),
    ("date '2013-01-31' < x", Compare("x", ">", dt.date(2013, 1, 31))),
    ("5 < any(x)", Compare("x", ">", 5, True)),
    ("5 < any", Compare("any", ">", 5)),
    # Literals
    ("x = 'it''s'", Compare("x", "=", "it's")),
    ("x = ''", Compare("x", "=", "")),
    ("x = ''''", Compare("x", "=", "'")),
    ("x = 'a\nb'", Compare("x", "=", "a\nb")),
    ("x = 'a\0b'", Compare("x", "=", "a\0b")),
    ("x = '\\'", Compare("x", "=", "\\")),
    ("x = ')('", Compare("x", "=", ")(")),
    ("x = 007", Compare("x", "=", 7)),
    ("x = -0", Compare("x", "=", 0)),
    ("x = " + "0" * 30 + "5", Compare("x", "=", 5)),
    ("x = 9223372036854775807", Compare("x", "=", 2**63 - 1)),
    ("x = -9223372036854775808", Compare("x", "=", -(2**63))),
    ("x = .5", Compare("x", "=", 0.5)),
    ("x = -.5", Compare("x", "=", -0.5)),
    ("x = 5.", Compare("x", "=", 5.0)),
    ("x = 1e3", Compare("x", "=", 1000.0)),
    ("x = 1E+3", Compare("x", "=", 1000.0)),
    ("x = 1.5e-3", Compare("x", "=", 0.0015)),
    ("x = TRUE", Compare("x", "=", True)),
    ("x = False", Compare("x", "=", False)),
    ("x = Date '2013-01-31'", Compare("x", "=", dt.date(2013, 1, 31))),
    ("x = timestamp '2013-01-31 10:00'", Compare("x", "=", dt.datetime(2013, 1, 31, 10))),
    (
        "x = TIMESTAMP '2013-01-31T10:00:00.123456+02:00'",
        Compare("x", "=", dt.datetime(2013, 1, 31, 8, 0, 0, 123456)),
    ),
    # Lists, ranges, patterns, networks
    ("x in ('AA','UA')", In("x", ("AA", "UA"))),
    ("x NOT IN (1)", In("x", (1,), True)),
    (
        "x in (1, 'a', true, 2.5, date '2013-01-01')",
        In("x", (1, "a", True, 2.5, dt.date(2013, 1, 1))),
    ),
    ("x between 1 and 10", Between("x", 1, 10)),
    ("x between 1 and 2.5 and a", And((Between("x", 1, 2.5), A))),
    ("x not between 'b' and 'a'", Between("x", "b", "a", True)),
    ("x like 'a%'", Like("x", "a%")),
    ("x not like 'a\\%'", Like("x", "a\\%", True)),
    ("x like 'a\\\\'", Like("x", "a\\\\")),
    ("x ilike 'A%'", Like("x", "A%", False, True)),
    ("x not ilike '_'", Like("x", "_", True, True)),
    ("x rlike '^a+'", RLike("x", "^a+")),
    ("x not rlike 'a''b'", RLike("x", "a'b", True)),
    ("x in cidr '10.0.0.0/8'", InNetwork("x", ("10.0.0.0/8",))),
    (
        "x not in CIDR ('10.0.0.0/8', '::1/128')",
        InNetwork("x", ("10.0.0.0/8", "::1/128"), True),
    ),
    # Presence, truth, constants
    ("x is null", IsNull("x")),
    ("x IS NOT NULL", IsNull("x", True)),
    ("x", IsTrue("x")),
    ("true", Constant(True)),
    ("FALSE", Constant(False)),
    ("true or a", Or((Constant(True), A))),
    # Lists as values
    ("x contains 'a'", Contains("x", "any", ("a",))),
    ("x contains date '2013-01-01'", Contains("x", "any", (dt.date(2013, 1, 1),))),
    ("x contains any (1, 2)", Contains("x", "any", (1, 2))),
    ("x contains ALL ('a')", Contains("x", "all", ("a",))),
    ("x contains none (true)", Contains("x", "none", (True,))),
    ("any(x) = 1", Compare("x", "=", 1, True)),
    ("ANY ( x ) not in (1)", In("x", (1,), True, True)),
    ("any(x) between 1 and 2", Between("x", 1, 2, False, True)),
    ("any(x) not ilike 'a'", Like("x", "a", True, True, True)),
    ("any(x) rlike 'a'", RLike("x", "a", False, True)),
    ("any(x) in cidr '::/0'", InNetwork("x", ("::/0",), False, True)),
    ('any("x y") > 1', Compare("x y", ">", 1, True)),
    # Names
    ("detail.state = 1", Compare("detail.state", "=", 1)),
    ("größe = 1", Compare("größe", "=", 1)),
    ("名前 = 1", Compare("名前", "=", 1)),
    ("_x1 = 1", Compare("_x1", "=", 1)),
    ('"a ""b""" = 1', Compare('a "b"', "=", 1)),
    ('"in" = 1', Compare("in", "=", 1)),
    ("date = date '2013-01-01'", Compare("date", "=", dt.date(2013, 1, 1))),
    ("timestamp > 5", Compare("timestamp", ">", 5)),
    ("any = 1 and cidr = 1", And((Compare("any", "=", 1), Compare("cidr", "=", 1)))),
    ("contains contains 1", Contains("contains", "any", (1,))),
    ("cidr in cidr '::/0'", InNetwork("cidr", ("::/0",))),
    ("x.and = 1", Compare("x.and", "=", 1)),
    # Boolean form
    ("a and b and c", And((A, B, C))),
    ("a or b or c", Or((A, B, C))),
    ("a or b and c", Or((A, And((B, C))))),
    ("(a or b) and c", And((Or((A, B)), C))),
    ("a and (b and c)", And((A, B, C))),
    ("not a and b", And((Not(A), B))),
    ("not (a and b)", Not(And((A, B)))),
    ("not not a", Not(Not(A))),
    ("not a or not (not b)", Or((Not(A), Not(Not(B))))),
    ("not x in (1)", Not(In("x", (1,)))),
    ("(((a)))", A),
    ("(a)and(b)", And((A, B))),
    ("\n a\tAND\r\n b ", And((A, B))),
]


@pytest.mark.parametrize(("text", "expected"), GOOD, ids=[text[:40] for text, _ in GOOD])
def test_reads(text: str, expected: Expression) -> None:
    result = parse(text)
    assert result == expected
    assert parse(str(result)) == expected


def test_numbers_keep_their_type() -> None:
    whole, decimal = parse("x = 1"), parse("x = 1.0")
    assert isinstance(whole, Compare)
    assert isinstance(decimal, Compare)
    assert type(whole.value) is int
    assert type(decimal.value) is float


# -- round trips ----------------------------------------------------------------------------------


@given(expressions(max_leaves=20))
def test_printed_expressions_parse_back(expression: Expression) -> None:
    text = str(expression)
    again = parse(text)
    assert again == expression
    assert str(again) == text


@given(any_names(), literals())
@example("\0", "")
@example('"', "'")
@example("a.", -0.0)
@example("ª·", 1)
def test_every_name_and_literal_parses_back(name: str, value: Any) -> None:
    expression = And((Compare(name, "=", value), IsTrue(name), In(name, (value, "x"), False, True)))
    assert parse(str(expression)) == expression


def test_depth_that_is_allowed_parses_back() -> None:
    expression: Expression = A
    for level in range(63):
        expression = Not(expression) if level % 3 else And((expression, B))
    assert parse(str(expression)) == expression


# -- any text gives an expression or an ExpressionError -------------------------------------------

WORDS = """
    a b.c "d" x and or not in between like ilike rlike is null true false contains any all none cidr
    date timestamp ( ) ( ) , = == != <> < <= > >= === && ! 'a' 'a%' '\' '2013-01-01' '10.0.0.0/8'
    1 -5 2.5 1e400 ' " ; - . [ ‘ 😀
"""
FRAGMENTS = ["", " ", "\0", "\n", *WORDS.split()]


def check_total(text: str) -> None:
    problem = None
    try:
        result = parse(text)
    except ExpressionError as error:
        problem = error
    if problem is None:
        assert parse(str(result)) == result
    else:
        assert problem.message
        assert problem.position is None or 0 <= problem.position <= len(text)
        assert len(str(problem)) < 1000


@given(st.text())
def test_any_text(text: str) -> None:
    check_total(text)


@given(st.text(st.characters()))
def test_any_text_with_surrogates(text: str) -> None:
    check_total("x = '" + text + "'")


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14).map(" ".join))
def test_any_sequence_of_words(text: str) -> None:
    check_total(text)


@given(expressions(max_leaves=4).map(str), st.data())
def test_text_with_a_piece_cut_out_or_put_in(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 5)))
    check_total(text[:start] + data.draw(st.sampled_from(FRAGMENTS)) + text[end:])


# -- errors ---------------------------------------------------------------------------------------

BAD = json.loads((Path(__file__).parents[1] / "cases" / "bad_expressions.json").read_text("utf-8"))


@pytest.mark.parametrize("case", BAD, ids=[case["name"] for case in BAD])
def test_rejects(case: dict[str, Any]) -> None:
    with ends_soon(), pytest.raises(ExpressionError) as caught:
        parse(case["text"])
    error = caught.value
    assert case["message_contains"] in error.message
    assert case["hint_contains"] in error.hint
    if "position" in case:
        assert error.position == case["position"]
        assert error.text == case["text"]


def test_an_error_shows_the_line_and_a_caret() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse("origin = 'JFK'\n  and price => 5")
    assert str(caught.value).split("\n") == [
        "unknown operator `=>` (line 2, column 13)",
        "    and price => 5",
        "              ^",
        "hint: write `>=`",
    ]
    assert pickle.loads(pickle.dumps(caught.value)).position == caught.value.position


@pytest.mark.parametrize(
    ("given_value", "kind"),
    [(None, "NoneType"), (5, "int"), (b"a = 1", "bytes"), (["a"], "list"), (A, "IsTrue")],
)
def test_input_that_is_not_text(given_value: Any, kind: str) -> None:
    with pytest.raises(ExpressionError, match=f"not {kind}"):
        parse(given_value)


# -- limits ---------------------------------------------------------------------------------------

SMALL = Settings(
    max_expression_length=200,
    max_depth=5,
    max_conditions=4,
    max_values=6,
    max_pattern_length=8,
    max_pattern_program=12,
)

LIMITS = [
    ("a" * 200, "a" * 201, "max_expression_length"),
    ("((((a))))", "((((((a))))))", "max_depth"),
    ("not not not not a", "not not not not not not a", "max_depth"),
    ("not (not (a))", "not (not (not (a)))", "max_depth"),
    ("a or b and (c or a)", "a or b and (c or not not d)", "max_depth"),
    ("a or b or c or d", "a or b or c or d or e", "max_conditions"),
    ("x in (1, 2, 3, 4, 5, 6)", "x in (1, 2, 3, 4, 5, 6, 7)", "max_values"),
    (
        "x contains any (1, 2, 3, 4, 5, true)",
        "x contains any (1, 2, 3, 4, 5, 6, true)",
        "max_values",
    ),
    (
        "x in (" + "date '2013-01-01', " * 5 + "1)",
        "x in (" + "date '2013-01-01', " * 6 + "1)",
        "max_values",
    ),
    ("x in (1, 2, 3) and y in (1, 2, 3)", "x in (1, 2, 3) and y in (1, 2, 3, 4)", "max_values"),
    ("x in (1, 2, 3, 4) and a and b", "x in (1, 2, 3, 4) and a and b and c", "max_values"),
    (
        "x between 1 and 2 and x between 1 and 2 and x between 1 and 2",
        "x between 1 and 2 and x between 1 and 2 and x between 1 and 2 and a",
        "max_values",
    ),
    ("x like 'abcdefgh'", "x like 'abcdefghi'", "max_pattern_length"),
    ("x rlike 'abcdefgh'", "x rlike 'abcdefghijk'", "max_pattern_program"),
    ("x rlike '[a-z]{5}'", "x rlike '[a-z]{9}'", "max_pattern_program"),
]


@pytest.mark.parametrize(("fits", "too_large", "setting"), LIMITS)
def test_limits(fits: str, too_large: str, setting: str) -> None:
    parse(fits, SMALL)
    parse(too_large)
    with pytest.raises(LimitError) as caught:
        parse(too_large, SMALL)
    assert setting in caught.value.hint


N = 999_000
ENORMOUS = {
    "opening parentheses": "(" * N,
    "closing parentheses": ")" * N,
    "nots": "not " * (N // 4),
    "nots and parentheses": "not (" * (N // 5),
    "single quotes": "'" * N,
    "single quotes, odd": "x = " + "'" * (N - 1),
    "single quotes and spaces": "x = " + "' " * (N // 2 - 3),
    "double quotes, odd": '"' * (N - 1),
    "spaces": " " * N,
    "spaces around": " " * (N // 2) + "=" + " " * (N // 2),
    "digits": "x = " + "1" * (N - 4),
    "more digits than int() takes": "x = " + "1" * 5000,
    "digits before a point": "x = " + "1" * (N - 6) + ".5",
    "exponent": "x = 1e" + "9" * (N - 6),
    "exponents": "x = " + "1e" * (N // 2 - 4),
    "operators": "x " + "<" * (N - 2),
    "ampersands": "x " + "& " * (N // 2 - 1),
    "dots": "x" + "." * (N - 1),
    "control characters": "\0" * N,
    "beyond the BMP": "😀" * N,
    "commas": "x in (" + "," * (N - 7) + ")",
    "values": "x in (" + "1," * (N // 2 - 6) + "1)",
    "values of all types": "x in (" + "true,'a'," * (N // 9 - 6) + "1)",
    "lists within lists": "x in (" * (N // 6),
    "alternatives": "a or " * (N // 5 - 1) + "a",
    "conditions without and": "a = 1 " * (N // 6),
    "parentheses never closed": "(a and " * (N // 7),
    "pattern": "x like '" + "%" * (N - 9) + "'",
    "backslashes": "x like '" + "\\" * 9_999 + "'",
    "regular expression": "x rlike '" + "(" * 9_999 + "'",
    "regular expression that grows": "x rlike '(((a{100}){100}){100}){100}'",
    "regular expression of classes": "x rlike '\\pL{1000}'",
    "network": "x in cidr '" + "1" * (N - 13) + "'",
    "too long": "a" * 1_000_001,
}


@pytest.mark.parametrize("name", ENORMOUS)
def test_nothing_hangs(name: str) -> None:
    with ends_soon(), pytest.raises(ExpressionError) as caught:
        parse(ENORMOUS[name])
    assert len(str(caught.value)) < 1000


ENORMOUS_BUT_FINE = {
    "spaces after": "a" + " " * N,
    "name": "a" * N,
    "dotted name": "a" + ".a" * (N // 2 - 1),
    "quoted name": '"' * N,
    "text": "x = '" + "a" * (N - 6) + "'",
    "zeros": "x = " + "0" * (N - 5) + "1",
    "fraction": "x = 0." + "1" * (N - 6),
    "tiny": "x = 1e-" + "9" * (N - 7),
}


@pytest.mark.parametrize("name", ENORMOUS_BUT_FINE)
def test_nothing_hangs_when_it_is_right(name: str) -> None:
    with ends_soon():
        parse(ENORMOUS_BUT_FINE[name])


# -- comments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("a = 1 -- and b = 2", "a = 1"),
        ("-- first\na = 1 -- second\nand b = 2", "a = 1 and b = 2"),
        ("a /* x */ = /* y \n */ 1", "a = 1"),
        ("a = '--' and b = '/* c */' -- d", "a = '--' and b = '/* c */'"),
        ("\"--\" = 1 and \"/*\" = 'it''s -- 2'", "\"--\" = 1 and \"/*\" = 'it''s -- 2'"),
        ("a = 1 /**/ or b = 2 /***/", "a = 1 or b = 2"),
        ("a - -5 > 3", "a - -5 > 3"),
    ],
)
def test_comments(text: str, means: str) -> None:
    assert parse(text) == parse(means)
    engine = Engine()
    engine.subscribe("a", text)
    engine.subscribe_many({"b": text})
    assert parse(engine["b"].expression) == parse(engine["a"].expression) == parse(means)
    if "--" in text and "'" not in text and '"' not in text and "-5" not in text:
        assert "--" not in engine["a"].expression


def test_errors_about_comments() -> None:
    with pytest.raises(ExpressionError, match="the comment is never closed") as caught:
        parse("a = 1 /* b = 2")
    assert caught.value.position == 6
    with pytest.raises(ExpressionError, match="empty"):
        parse("-- nothing")
    with pytest.raises(ExpressionError) as caught:
        parse("a = 1 /* one */ b = 2")
    assert caught.value.position == 16


@pytest.mark.parametrize(("sign", "means"), [("≥", ">="), ("≤", "<="), ("≠", "!=")])
def test_signs_of_mathematics(sign: str, means: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(f"a {sign} 5")
    assert caught.value.hint == f"write `{means}`"
