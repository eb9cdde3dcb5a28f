"""Predicates that are the same, joins, constraints; all against a solver that tries everything."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.language.expression import And
from matchmill.language.operator_calls import Call, Constraint, Variable, holds
from matchmill.language.parser import parse
from matchmill.operators import bindings
from matchmill.operators.bindings import (
    JoinTooLarge,
    Relation,
    is_satisfiable,
    predicate_key,
    solutions,
)
from matchmill.operators.outcome import value_key


def call(text: str) -> Call:
    parsed = parse(text)
    assert isinstance(parsed, Call)
    return parsed


def constraint(text: str) -> Constraint:
    parsed = parse(text)
    assert isinstance(parsed, Constraint)
    return parsed


# -- the same predicate ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("p(?x, ?y)", "p(?a, ?b)"),
        ("p(?x, ?y)", "p(?y, ?x)"),
        ("p(?x, 'c', ?x)", "p(?z, 'c', ?z)"),
        ("p('a', 1)", "p('a', 1)"),
        ("p()", "p()"),
    ],
)
def test_predicates_that_unify_are_one(a: str, b: str) -> None:
    assert predicate_key(call(a)) == predicate_key(call(b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("p(?x, ?y)", "p(?x, ?x)"),
        ("p(?x, ?y, ?x)", "p(?x, ?y, ?y)"),
        ("p(?x)", "q(?x)"),
        ("p(?x)", "p('x')"),
        ("p('a')", "p('b')"),
        ("p(1)", "p(1.0)"),
        ("p(1)", "p(true)"),
        ("p(1)", "p('1')"),
        ("p('a')", "p('a', 'a')"),
        ("p(date '2013-01-31')", "p(timestamp '2013-01-31')"),
    ],
)
def test_others_are_not(a: str, b: str) -> None:
    assert predicate_key(call(a)) != predicate_key(call(b))


# -- constraints ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "values", "truth"),
    [
        ("?y > 2 * ?z", {"y": 5, "z": 2}, True),
        ("?y > 2 * ?z", {"y": 4, "z": 2}, False),
        ("?x = 9007199254740993", {"x": 9007199254740992.0}, False),
        ("?x / 3 * 3 = ?x", {"x": 9007199254740993}, True),
        ("?x / 2 = 0.5", {"x": 1}, True),
        ("?x / ?y > 1", {"x": 1, "y": 0}, False),
        ("?x / ?y <= 1", {"x": 1, "y": 0}, False),
        ("?x * ?x > 0", {"x": 1e308}, False),
        ("1 - ?x - 2 = -4", {"x": 3}, True),
        ("1 - (?x - 2) = 0", {"x": 3}, True),
        ("-?x * 2 = -6", {"x": 3}, True),
        ("?x = 'a'", {"x": "a"}, True),
        ("?x != 'a'", {"x": 1}, False),
        ("?x = 1", {"x": True}, False),
        ("?x + 1 > 0", {"x": "a"}, False),
        ("?x + 1 > 0", {"x": True}, False),
        ("?x > date '2013-01-31'", {"x": dt.date(2013, 2, 1)}, True),
        ("?x > date '2013-01-31'", {"x": dt.datetime(2014, 2, 1)}, False),
        ("?x < ?y", {"x": "a", "y": "b"}, True),
    ],
)
def test_constraints(text: str, values: dict[str, Any], truth: bool) -> None:
    assert holds(constraint(text), values) is truth


def test_a_constraint_and_its_negation_exclude_each_other_and_fail_together() -> None:
    for op in ("=", "!=", "<", "<=", ">", ">="):
        one = constraint(f"?x {op} 2")
        for value in (1, 2, 3):
            assert holds(one, {"x": value}) != holds(one.negated, {"x": value})
        for value in ("a", True):
            assert not holds(one, {"x": value})
            assert not holds(one.negated, {"x": value})


def test_numbers_do_not_grow_without_end() -> None:
    power = constraint(" * ".join(["?x"] * 100) + " > 0")
    assert not holds(power, {"x": 2**62})


# -- joins ----------------------------------------------------------------------------------------

VALUES = [0, 1, 2, 1.0, True, "a"]
NAMES = ["x", "y", "z", "w"]

values = st.sampled_from(VALUES)


@st.composite
def relations(draw: st.DrawFn) -> Relation:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    rows = draw(st.lists(st.tuples(*[values] * len(names)), max_size=6))
    return Relation(tuple(names), rows)


CONSTRAINTS = [
    constraint(text)
    for text in ("?x < ?y", "?x + ?y = 2", "?z > 2 * ?w - 1", "?y = 'a'", "?w != ?x", "?x >= 1")
]


def brute_force(parts: list[Relation], limits: list[Constraint]) -> set[tuple[Any, ...]]:
    """Every assignment of every value, tried."""
    names = sorted({name for part in parts for name in part.variables})
    found = set()
    for chosen in itertools.product(VALUES, repeat=len(names)):
        at = dict(zip(names, chosen, strict=True))
        keys = {name: value_key(value) for name, value in at.items()}
        if all(
            any(
                all(value_key(v) == keys[n] for n, v in zip(part.variables, row, strict=True))
                for row in part.rows
            )
            for part in parts
        ) and all(holds(limit, at) for limit in limits):
            found.add(tuple(keys[name] for name in names))
    return found


@given(st.lists(relations(), min_size=1, max_size=4), st.data())
def test_joins_are_those_of_a_solver_that_tries_everything(
    parts: list[Relation], data: st.DataObject
) -> None:
    bound = {name for part in parts for name in part.variables}
    possible = [c for c in CONSTRAINTS if bound.issuperset(c.variables)]
    limits = (
        data.draw(st.lists(st.sampled_from(possible), max_size=3, unique=True)) if possible else []
    )
    expected = brute_force(parts, limits)
    found = {
        tuple(value_key(solution[name]) for name in sorted(bound))
        for solution in solutions(parts, limits)
    }
    assert found == expected
    assert is_satisfiable(parts, limits) == bool(expected)


def test_parts_that_share_nothing_are_not_multiplied() -> None:
    many = [(n,) for n in range(2000)]
    parts = [Relation((name,), many) for name in "abcdef"]
    limits = [constraint(f"?{name} = 1999") for name in "abcde"]
    assert is_satisfiable(parts, limits)
    assert not is_satisfiable(parts, [*limits, constraint("?f > 1999")])


def test_a_join_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bindings, "_MOST_STEPS", 10_000)
    many = [(n,) for n in range(300)]
    parts = [Relation((name,), many) for name in "abc"]
    with pytest.raises(JoinTooLarge, match="more than 10000 bindings"):
        is_satisfiable(parts, [constraint("?a + ?b + ?c < 0")])


def test_variables_print_as_they_are_read() -> None:
    built = Call("p", (Variable("x"), 1, "it's")) & Constraint(Variable("x"), ">", 5)
    assert isinstance(built, And)
    assert parse(str(built)) == built
