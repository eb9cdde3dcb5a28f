"""Normal forms: what is found, how large it gets, and what it means."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from matchmill.language.evaluate import evaluate
from matchmill.language.expression import Expression
from matchmill.language.flatten import flatten_event
from matchmill.language.json_pattern import parse_json_pattern
from matchmill.language.normal_form import Dimension, NoneOf, Some, dimension_of, normalize
from matchmill.language.parser import parse
from matchmill.language.value_set import ABSENT, point, points, region
from matchmill.language.values import Region
from tests.support.strategies import events, expressions


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("x = 1", "ordinary"),
        ("x = 1 and x = 2", "never"),
        ("x = 1 and x = 'a'", "never"),
        ("x > 5 and x < 3", "never"),
        ("x > 3 and x < 3.0", "never"),
        ("x is null and x = 1", "never"),
        ("x between 3 and 1", "never"),
        ("d > date '2013-01-01' and d < date '2013-01-02'", "never"),
        ("b and not b", "never"),
        ("b > true", "never"),
        ("s like 'a%' and s like 'b%'", "never"),
        ("s like 'ab' and s not like 'a%'", "never"),
        ("x in (1, 2) and x not in (2, 1, 3)", "never"),
        ("tags = 1 and tags contains 1 and tags is null", "never"),
        ("false", "never"),
        ("not true", "never"),
        ("true", "always"),
        ("x is null or x is not null", "always"),
        ("not (x = 1 and x = 2)", "ordinary"),  # unknown where x is missing
        ("x = 1 or x != 1", "ordinary"),
        ("x > 1 or x <= 1 or x is null", "ordinary"),  # text is neither
        ("x is not null or (x is null and true)", "always"),
        ("y = 1 or true", "always"),
        ("(x = 1 or y = 1) and (x = 2 or z = 1)", "ordinary"),
    ],
)
def test_contradictions_and_tautologies(text: str, kind: str) -> None:
    assert normalize(parse(text)).kind == kind


def test_one_constraint_per_dimension() -> None:
    (clause,) = normalize(parse("x > 1 and x <= 5 and x != 3 and y = 1")).clauses
    assert sorted(d.attribute for d in clause) == ["x", "y"]
    assert len(clause[Dimension("x")].edges) == 4


def test_or_on_one_attribute_is_one_set() -> None:
    (clause,) = normalize(parse("x = 1 or x = 'a' or x = 2 or x is null")).clauses
    assert clause == {Dimension("x"): points([1, 2, "a"]).unite(ABSENT)}


@pytest.mark.parametrize(
    ("text", "derivation"),
    [
        ("s like 'ab%'", "value"),
        ("s like 'ab'", "value"),
        ("s like '%ab'", "reversed"),
        ("s like '%ab%'", "substring"),
        ("s like 'a%b'", "like"),
        ("s like 'a_'", "like"),
        ("s ilike 'ab%'", "lower"),
        ("s ilike '%ab'", "lower_reversed"),
        ("s ilike '%ab%'", "lower_substring"),
        ("s ilike 'a_b'", "lower_like"),
        ("s rlike 'ab'", "regex"),
        ("s in cidr '10.0.0.0/8'", "address"),
        ("s contains 'a'", "each"),
        ("any(s) > 3", "each"),
        ("any(s) like '%a'", "each.reversed"),
        ("any(s) ilike '%a%'", "each.lower_substring"),
        ("any(s) not like '%a%'", "each.without_substring"),
        ("any(s) not rlike 'a+'", "each.without_regex"),
        ("any(s) in cidr '10.0.0.0/8'", "each.address"),
        ("s = 'a' or s contains 'a'", "values"),
        ("s like '%a' or any(s) like '%a'", "values.reversed"),
        ("s not like '%a%' or any(s) not like '%a%'", "values.without_substring"),
    ],
)
def test_derivations(text: str, derivation: str) -> None:
    (clause,) = normalize(parse(text)).clauses
    assert [dimension_of(subject).derivation for subject in clause] == [derivation]


def test_equal_predicates_on_elements_are_one_set() -> None:
    texts = (
        "s contains any ('a', 'b')",
        "any(s) in ('b', 'a', 'b')",
        "not s contains none ('a', 'b')",
        "s contains 'a' or s contains 'b'",
    )
    dimension, values = Dimension("s", "each"), points(["a", "b"])
    for text in texts:
        assert normalize(parse(text)).clauses == ({Some(dimension, values): values},)


def test_and_does_not_intersect_sets_about_lists() -> None:
    each, a, b = Dimension("s", "each"), point("a"), point("b")
    both = {Some(each, a): a, Some(each, b): b}
    for text in ("s contains all ('a', 'b', 'a')", "s contains 'a' and s contains 'b'"):
        assert normalize(parse(text)).clauses == (both,)
    is_list = {Dimension("s"): region(Region.LIST)}
    for text in ("s contains none ('a', 'b')", "not s contains any ('a', 'b')"):
        united = points(["a", "b"])
        assert normalize(parse(text)).clauses == ({**is_list, NoneOf(each, united): united},)
    (first, second) = normalize(parse("not s contains all ('a', 'b')")).clauses
    assert [first, second] == [{**is_list, NoneOf(each, v): v} for v in (a, b)]
    assert not normalize(parse("any(s) between 5 and 1")).clauses
    assert normalize(parse("not any(s) between 5 and 1")).clauses == (is_list,)


def test_what_many_alternatives_about_lists_imply() -> None:
    tall = " or ".join(f"(s contains {i} and s contains {-i} and d{i} = 1)" for i in range(100))
    (clause,) = normalize(parse(tall), 64).clauses
    values = points(range(100))
    assert clause == {Some(Dimension("s", "each"), values): values}


def test_the_clause_limit_holds() -> None:
    wide = " and ".join(f"(a{i} = 1 or b{i} = 1)" for i in range(30))
    normal = normalize(parse(f"c = 5 and {wide}"), 64)
    assert len(normal.clauses) == 64
    assert not normal.exact
    assert all(clause[Dimension("c")] == point(5) for clause in normal.clauses)
    tall = " or ".join(f"(c = {i} and d{i} = 1)" for i in range(100))
    (clause,) = normalize(parse(tall), 64).clauses
    assert clause == {Dimension("c"): points(range(100))}  # what all of them imply


def test_a_field_of_a_json_pattern_is_one_clause() -> None:
    """The value or some element: with two clauses a field, ten fields would make a thousand."""
    pattern = {
        "exact": ["x", "y"],
        "prefix": [{"prefix": "y"}],
        "suffix": [{"suffix": ".png"}],
        "range": [{"numeric": [">", 0, "<=", 5]}],
        "above": [{"numeric": [">", 0.5]}],
        "but": [{"anything-but": ["q", "r"]}],
        "case": [{"equals-ignore-case": "Ab"}],
        "number": [1],
        "outer": {"inner": [True]},
        "wildcard": [{"wildcard": "a*b*c"}],
        "address": [{"cidr": "10.0.0.0/8"}],
        "several": ["x", {"prefix": "y"}, {"numeric": ["<", 3]}],
        "without": [{"anything-but": {"wildcard": "a*b"}}],
    }
    normal = normalize(parse_json_pattern(pattern))
    assert len(normal.clauses) == 1
    assert normal.exact


@given(expressions(max_leaves=8), events(objects=True))
def test_clauses_mean_what_the_expression_means(
    expression: Expression, event: dict[str, Any]
) -> None:
    """On expressions about plain values, clauses can be checked without any encoding."""
    for limit in (64, 2):
        normal = normalize(expression, limit)
        if any(dimension_of(s).derivation != "value" for clause in normal.clauses for s in clause):
            continue
        flat = flatten_event(event)
        holds = any(
            all(flat.get(d.attribute) in values for d, values in clause.items())
            for clause in normal.clauses
        )
        truth = evaluate(expression, event) is True
        assert holds == truth if normal.exact else holds or not truth
