"""Expressions as objects: text, repr, attributes, operators."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pytest

import matchmill as mm
from matchmill.errors import ExpressionError
from matchmill.language.expression import (
    Between,
    Compare,
    Contains,
    Expression,
    In,
    InNetwork,
    Like,
    RLike,
    check_predicate,
)
from matchmill.language.parser import parse


def test_forms() -> None:
    expression = parse("""origin = 'JFK' and "dep delay" > 60""")
    assert str(expression) == """origin = 'JFK' and "dep delay" > 60"""
    assert repr(expression) == r"""Expression("origin = 'JFK' and \"dep delay\" > 60")"""
    assert expression._repr_html_() == "<code>origin = 'JFK' and \"dep delay\" &gt; 60</code>"
    assert repr(parse(r"x like 'a\%'")) == r"""Expression("x like 'a\\%'")"""
    assert repr(Compare("x", "=", "a\n\ud800")) == r"""Expression("x = 'a\n\ud800'")"""
    long = parse(" or ".join(f"x = {i}" for i in range(1000)))
    assert len(repr(long)) < 350
    assert repr(long).endswith('…")')
    for text in ("true", "not a", "a", "f('x', ?y) and ?y > 2", "tags contains all (1, 2)"):
        assert repr(parse(text)) == f'Expression("{text}")'


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("true", set()),
        ("a", {"a"}),
        ("a = 1 and (b.c > 2 or not a in (1, 2))", {"a", "b.c"}),
        ("any(tags) = 'x' or gate is null", {"tags", "gate"}),
        ("near(5, ?km) and ?km < 3 and city like 'N%'", {"city"}),
    ],
)
def test_attributes(text: str, names: set[str]) -> None:
    assert parse(text).attributes == names
    assert isinstance(parse(text).attributes, frozenset)


@pytest.mark.parametrize(
    ("text", "negated"),
    [
        ("x in (1, 2)", "x not in (1, 2)"),
        ("x not between 1 and 2", "x between 1 and 2"),
        ("x is null", "x is not null"),
        ("x like 'a'", "x not like 'a'"),
        ("x in cidr '::/0'", "x not in cidr '::/0'"),
        ("x = 1", "not x = 1"),
        ("any(x) in (1, 2)", "not any(x) in (1, 2)"),
        ("a and b", "not (a and b)"),
        ("x contains 'a'", "not x contains 'a'"),
        ("true", "not true"),
    ],
)
def test_negation(text: str, negated: str) -> None:
    assert ~parse(text) == parse(negated)


def test_parse_takes_patterns() -> None:
    expected = parse("origin = 'JFK' or origin contains 'JFK'")
    for pattern in ({"origin": ["JFK"]}, '{"origin": ["JFK"]}', ' \n{"origin": ["JFK"]}'):
        parsed: Expression = parse(pattern)
        assert parsed == expected
    for bad in (5, None, [1], b"a = 1"):
        with pytest.raises(ExpressionError, match="an expression is text or a JSON pattern, not"):
            parse(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "predicate",
    [
        Between("x", 1, "a"),
        InNetwork("x", ()),
        InNetwork("x", ("10.0.0.1/8",)),
        Compare("x", "~", 1),  # type: ignore[arg-type]
        Contains("x", "some", (1,)),  # type: ignore[arg-type]
        Like("x", "a\\"),
        RLike("x", "("),
        In("x", ()),
        In("x", (1, None)),  # type: ignore[arg-type]
        Compare("", "=", 1),
        Compare("x", "=", float("inf")),
        Compare("x", "=", float("nan")),
        Compare("x", "=", 2**63),
        Compare("x", "=", np.float64(1.5)),
        Compare("x", "=", dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
        Compare("x", "=", "\ud800"),
    ],
    ids=repr,
)
def test_predicates_that_no_text_could_give(predicate: Any) -> None:
    with pytest.raises(mm.ExpressionError):
        check_predicate(predicate)
    with pytest.raises(mm.ExpressionError):
        mm.Engine().subscribe("a", predicate)
