"""The builder says what the parser says, and rejects what the parser rejects."""

from __future__ import annotations

import datetime as dt
import enum
import ipaddress
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from matchmill.errors import ExpressionError
from matchmill.language.builder import Attribute, attr
from matchmill.language.expression import Compare, Contains, Expression, In, IsTrue, Not
from matchmill.language.parser import parse
from tests.support.strategies import any_names, literals

X = attr("x")
DAY = dt.date(2013, 1, 31)
MOMENT = dt.datetime(2013, 1, 31, 10, 0, 0, 5)

SAME: list[tuple[Expression, str]] = [
    (X == 1, "x = 1"),
    (X != "it's", "x != 'it''s'"),
    (X < 1.5, "x < 1.5"),
    (X <= DAY, "x <= date '2013-01-31'"),
    (X > MOMENT, "x > timestamp '2013-01-31 10:00:00.000005'"),
    (X >= True, "x >= true"),
    (5 < X, "x > 5"),
    (5 >= X, "x <= 5"),
    ("a" == X, "x = 'a'"),
    ("a" != X, "x != 'a'"),
    (X.is_in("a", "b"), "x in ('a', 'b')"),
    (X.is_in(["a", 1, True]), "x in ('a', 1, true)"),
    (X.is_in("abc"), "x in ('abc')"),
    (X.is_in(5), "x in (5)"),
    (X.is_in({3, 1, 2}), "x in (1, 2, 3)"),
    (X.is_in(range(3)), "x in (0, 1, 2)"),
    (X.is_in(np.array([1, 2])), "x in (1, 2)"),
    (~X.is_in("a"), "x not in ('a')"),
    (X.between(1, 2.5), "x between 1 and 2.5"),
    (~X.between("a", "b"), "x not between 'a' and 'b'"),
    (X.like("a%"), "x like 'a%'"),
    (~X.like("a\\%"), "x not like 'a\\%'"),
    (X.ilike("A"), "x ilike 'A'"),
    (~X.ilike("A"), "x not ilike 'A'"),
    (X.startswith("a_%\\"), r"x like 'a\_\%\\%'"),
    (~X.endswith(".pdf"), "x not like '%.pdf'"),
    (X.any().startswith(""), "any(x) like '%'"),
    (X.rlike("^a"), "x rlike '^a'"),
    (~X.rlike("^a"), "x not rlike '^a'"),
    (X.in_cidr("10.0.0.0/8"), "x in cidr '10.0.0.0/8'"),
    (X.in_cidr(["10.0.0.0/8", "::/0"]), "x in cidr ('10.0.0.0/8', '::/0')"),
    (X.in_cidr(ipaddress.ip_network("10.0.0.0/8")), "x in cidr '10.0.0.0/8'"),
    (~X.in_cidr("10.0.0.0/8"), "x not in cidr '10.0.0.0/8'"),
    (X.is_null(), "x is null"),
    (X.is_not_null(), "x is not null"),
    (X.alone(), "x"),
    (X.is_true(), "x is true"),
    (~X.is_true(), "x is not true"),
    (X.is_not_true(), "x is not true"),
    (X.is_false() | X.is_not_false(), "x is false or x is not false"),
    (X.is_unknown() & X.is_not_unknown(), "x is unknown and x is not unknown"),
    ((X > 1).is_not_true(), "(x > 1) is not true"),
    (((X > 1) | X).is_unknown().is_false(), "((x > 1 or x) is unknown) is false"),
    (Not(X.is_true()), "not (x is true)"),
    (X.contains("a"), "x contains 'a'"),
    (X.contains_any("a", "b"), "x contains any ('a', 'b')"),
    (X.contains_all(["a"]), "x contains all ('a')"),
    (X.contains_none(1, 2), "x contains none (1, 2)"),
    (X.any() == 1, "any(x) = 1"),
    (X.any().is_in(1, 2), "any(x) in (1, 2)"),
    (~X.any().between(1, 2), "not any(x) between 1 and 2"),
    (~X.any().ilike("a"), "not any(x) ilike 'a'"),
    (X.any().rlike("a"), "any(x) rlike 'a'"),
    (X.any().in_cidr("::/0"), "any(x) in cidr '::/0'"),
    (X & (attr("y") == 1), "x and y = 1"),
    ((attr("y") == 1) & X, "y = 1 and x"),
    (X & attr("y"), "x and y"),
    (X | (attr("y") == 1), "x or y = 1"),
    ((attr("y") == 1) | X, "y = 1 or x"),
    (X | ~attr("y"), "x or not y"),
    (~~(X | attr("y")), "not not (x or y)"),
    (~~X.is_in(1), "x in (1)"),
    (~(X > 1), "not x > 1"),
    (~X.is_null(), "x is not null"),
    (~X.contains("a"), "not x contains 'a'"),
    (~(X | attr("y")) & (attr("z") < 3), "not (x or y) and z < 3"),
    (attr('a "b"') == 1, '"a ""b""" = 1'),
]


@pytest.mark.parametrize(("built", "text"), SAME, ids=[text for _, text in SAME])
def test_says_what_the_text_says(built: Expression, text: str) -> None:
    assert built == parse(text)
    assert parse(str(built)) == built


@given(any_names(), literals())
def test_everything_built_parses_back(name: str, value: Any) -> None:
    attribute = attr(name)
    expression = (
        (attribute == value) & attribute.is_in(value, 1) & attribute.any().between(value, value)
        | attribute.contains_all(value)
        | ~attribute
    )
    assert parse(str(expression)) == expression


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


CONVERTED: list[tuple[Any, Any]] = [
    (np.int64(5), 5),
    (np.uint8(5), 5),
    (np.float64(0.5), 0.5),
    (np.float32(0.1), float(np.float32(0.1))),
    (np.bool_(True), True),
    (np.str_("a"), "a"),
    (np.datetime64("2013-01-31"), DAY),
    (np.datetime64("2013-01-31T10:00:00.000005"), MOMENT),
    (np.datetime64("2013-01-31T10:00:00.000005000"), MOMENT),
    (np.datetime64("2013-01-31T10", "h"), dt.datetime(2013, 1, 31, 10)),
    (np.array(5), 5),
    (pd.Timestamp(MOMENT), MOMENT),
    (MOMENT.replace(tzinfo=dt.timezone(dt.timedelta(hours=2))), MOMENT - dt.timedelta(hours=2)),
    (Decimal("9.99"), 9.99),
    (Colour.RED, "red"),
    (Level.HIGH, 3),
]


@pytest.mark.parametrize(("given_value", "expected"), CONVERTED)
def test_literals_become_plain_values(given_value: Any, expected: Any) -> None:
    built = attr("x") == given_value
    assert isinstance(built, Compare)
    assert built.value == expected
    assert type(built.value) is type(expected)
    assert parse(str(built)) == built
    if not isinstance(given_value, np.ndarray):
        contained, listed = X.contains(given_value), X.is_in(given_value)
        assert isinstance(contained, Contains)
        assert isinstance(listed, In)
        assert contained.values == listed.values == (expected,)


BAD_LITERALS: list[tuple[Any, str]] = [
    (None, "null cannot be compared"),
    (math.nan, "NaN cannot be compared"),
    (math.inf, "infinite"),
    (2**63, "beyond 64 bits"),
    (-(2**63) - 1, "beyond 64 bits"),
    ("\ud800", "surrogate"),
    (b"a", "bytes"),
    ([1], "list"),
    (1j, "complex"),
    (attr("y").is_null(), "compared with a value"),
    (np.array([1, 2]), "ndarray"),
    (np.datetime64("NaT", "us"), "point in time"),
    (np.datetime64("2013-01-31T10:00:00.000000005"), "six digits"),
    (np.datetime64("20000-01-01"), "after 9999"),
    (np.datetime64("20000-01-01T00:00", "s"), "after 9999"),
    (np.timedelta64(5, "s"), "timedelta"),
    (np.float64(math.nan), "NaN cannot be compared"),
    (pd.Timestamp("2013-01-31 10:00:00.000000005"), "six digits"),
    (pd.NaT, "point in time"),
    (Decimal("sNaN"), "NaN cannot be compared"),
    (Decimal("1e400"), "infinite"),
    (dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=14))), "out of range"),
]


@pytest.mark.parametrize(("value", "message"), BAD_LITERALS)
def test_rejects_literals(value: Any, message: str) -> None:
    for build in (
        X.__eq__,
        X.__lt__,
        X.contains,
        lambda v: X.is_in(1, v),
        lambda v: X.between(1, v),
    ):
        with pytest.raises(ExpressionError, match=message):
            build(value)


BAD_USES: list[tuple[Callable[[], object], str]] = [
    (lambda: attr(""), "non-empty"),
    (lambda: attr(5), "non-empty"),  # type: ignore[arg-type]
    (lambda: attr("\udfff"), "surrogate"),
    (X.is_in, "empty"),
    (lambda: X.is_in([]), "empty"),
    (X.contains_all, "empty"),
    (X.in_cidr, "empty"),
    (lambda: X.in_cidr("10.0.0.1/8"), "host bits"),
    (lambda: X.in_cidr(5), "a network is text"),
    (lambda: X.between(1, "a"), "different types"),
    (lambda: X.between(DAY, MOMENT), "different types"),
    (lambda: X.like(5), "a pattern is text"),  # type: ignore[arg-type]
    (lambda: X.like("a\\"), "single backslash"),
    (lambda: X.ilike("\\\\\\"), "single backslash"),
    (lambda: X.rlike("("), "missing"),
    (lambda: X.rlike("\ud800"), "surrogate"),
    (lambda: X.any().is_null(), "any"),
    (lambda: X.any().is_not_null(), "any"),
    (lambda: X.any().is_true(), "any"),
    (lambda: X.any().alone(), "any"),
    (lambda: X.any().contains("a"), "any"),
    (lambda: ~X.any(), "any"),
    (lambda: X.any() & X, "any"),
]


@pytest.mark.parametrize(("use", "message"), BAD_USES)
def test_rejects(use: Callable[[], object], message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        use()


PYTHON_MISTAKES: list[Callable[[], object]] = [
    lambda: bool(X),
    lambda: X and (X == 1),
    lambda: not X,
    lambda: 1 < X < 5,
    lambda: "a" in X,
    lambda: list(X),
    lambda: {X},
    lambda: X & 5,
    lambda: 5 | X,
]


@pytest.mark.parametrize("mistake", PYTHON_MISTAKES)
def test_python_operators_that_cannot_work_say_so(mistake: Callable[[], object]) -> None:
    with pytest.raises(TypeError):
        mistake()


def test_the_truth_value_error_helps() -> None:
    with pytest.raises(TypeError, match=r"combine with & \| ~"):
        bool(X)


def test_attributes_show_themselves() -> None:
    assert repr(X) == "attr('x')"
    assert repr(X.any()) == "attr('x').any()"
    assert isinstance(X, Attribute)
    assert not isinstance(X, Expression)
    assert (X | X) == (IsTrue("x") | IsTrue("x"))
