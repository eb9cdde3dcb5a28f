"""Calls and constraints as text: what is printed reads back, also inside of other conditions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchmill as mm
from matchmill.language.expression import Expression, InNetwork, Like, RLike
from matchmill.language.normal_form import normalize
from matchmill.language.operator_calls import (
    TESTED,
    Applied,
    Arithmetic,
    Call,
    Constraint,
    EventAttribute,
    Membership,
    NullTest,
    Range,
    Restriction,
    Term,
    TextTest,
    Variable,
    has_calls,
)
from tests.support.strategies import LIKE_PATTERNS, NETWORKS, RLIKE_PATTERNS, expressions

names = st.sampled_from(["x", "y", "people", "größe"])
variables = names.map(Variable)
numbers = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(-1e9, 1e9))
attributes = st.sampled_from(["price", "a.b", "in", "any", "date", 'say "hi"', "x"]).map(
    EventAttribute
)
functions = st.sampled_from(["lower", "f", "date", "or", "a b"])
terms: st.SearchStrategy[Term] = st.recursive(
    st.one_of(variables, numbers, attributes),
    lambda inner: st.one_of(
        st.builds(Arithmetic, st.sampled_from("+-*/%"), inner, inner),
        st.builds(Applied, functions, st.lists(inner, max_size=2).map(tuple)),
    ),
    max_leaves=6,
)
sides = st.one_of(terms, st.text("ab'? ", max_size=4))
comparisons = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
flags = st.booleans()
tests = st.one_of(
    st.builds(Like, st.just(TESTED), st.sampled_from(LIKE_PATTERNS), flags, flags),
    st.builds(RLike, st.just(TESTED), st.sampled_from(RLIKE_PATTERNS), flags),
    st.builds(InNetwork, st.just(TESTED), st.tuples(st.sampled_from(NETWORKS)), flags),
)


def _compares_a_sum_with_a_text(constraint: Restriction) -> bool:
    """Whether the parser would say that this cannot hold."""
    terms = constraint.terms
    is_sum = any(isinstance(term, Arithmetic) for term in terms)
    return is_sum and any(isinstance(term, str) for term in terms)


constraints = st.one_of(
    st.builds(Constraint, terms, comparisons, sides),
    st.builds(Range, terms, sides, sides, flags),
    st.builds(Membership, terms, st.lists(sides, min_size=1, max_size=3).map(tuple), flags),
    st.builds(TextTest, terms, tests),
    st.builds(NullTest, terms, flags),
).filter(lambda c: c.variables and not _compares_a_sum_with_a_text(c))
literals = st.one_of(numbers, st.booleans(), st.dates(), st.text("ab'(", max_size=4))
calls = st.builds(
    Call,
    st.sampled_from(["p", "locIn", "in", "any", "a b", "größe"]),
    st.lists(st.one_of(variables, literals), max_size=3).map(tuple),
)


@given(st.one_of(calls, constraints))
def test_what_is_printed_reads_back(expression: Expression) -> None:
    assert mm.parse(str(expression)) == expression


@given(st.one_of(calls, constraints), expressions(), st.one_of(calls, constraints))
def test_also_among_other_conditions(one: Expression, plain: Expression, other: Expression) -> None:
    for whole in (one & plain, plain | ~one, ~(plain & one) | other, (one | plain) & other):
        assert mm.parse(str(whole)) == whole
        assert has_calls(whole)
    assert not has_calls(plain)


@given(expressions())
def test_calls_leave_the_clauses_of_the_rest_as_they_are(plain: Expression) -> None:
    alone = normalize(plain)
    both = normalize(plain & Call("p", ()))
    assert both.clauses == alone.clauses
    assert both.has_calls == (not both.exact)
    assert not alone.has_calls
    assert normalize(plain | Call("p", ())).clauses == ({},)


@pytest.mark.parametrize(
    "text",
    ["p(" + "?x, " * 20_000 + "?x)", "p(?x) and " + "(" * 60 + "?x" + ")" * 60 + " > 1"],
    ids=["arguments", "parentheses"],
)
def test_large_ones_are_read(text: str) -> None:
    assert has_calls(mm.parse(text))


@pytest.mark.parametrize(
    "term",
    [
        "(" * 5000 + "1" + ")" * 5000,
        "- " * 5000 + "?x",
        " + ".join(["?x"] * 5000),
        "?x" + " * ?x" * 101,
    ],
    ids=["parentheses", "minus", "sum", "product"],
)
def test_arithmetic_without_end_is_rejected(term: str) -> None:
    with pytest.raises(mm.ExpressionError, match="more than 100 signs"):
        mm.parse(f"p(?x) and ?x > {term}")


def test_arithmetic_at_the_limit_can_be_used() -> None:
    mm.operator(name="one")(lambda event, x: 1)
    engine = mm.Engine()
    engine.subscribe("s", "one(?x) and " + " + ".join(["?x"] * 101) + " = 101")
    assert engine.match({"a": 1}) == {"s"}


def test_hand_made_ones_are_checked() -> None:
    x = Variable("x")
    term: Term = x
    for _ in range(5000):
        term = Arithmetic("+", term, 1)
    engine = mm.Engine()
    mm.operator(name="one")(lambda event, x: 1)
    for bad, words in (
        (Constraint(term, ">", 5), "more than 100 signs"),
        (Constraint(1, ">", 5), "at least one variable"),
        (Constraint(x, "~", 5), "no operator"),  # type: ignore[arg-type]
        (Constraint(Arithmetic("^", x, 1), ">", 5), "arithmetic is done with"),  # type: ignore[arg-type]
        (Constraint(Variable("a b"), ">", 5), "a word"),
        (Constraint(x, ">", float("nan")), "NaN"),
        (Call("", ()), "non-empty"),
        (Call("one", (None,)), "null"),  # type: ignore[arg-type]
    ):
        with pytest.raises(mm.ExpressionError, match=words):
            engine.subscribe("s", Call("one", (x,)) & bad)
    engine.subscribe("s", Call("one", (x,)) & Constraint(x, "=", 1))
    assert engine.match({}) == {"s"}
