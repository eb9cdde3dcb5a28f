"""Predicates that are the same, joins, constraints; all against a solver that tries everything."""

from __future__ import annotations

import datetime as dt
import itertools
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.language.constraint_truth import holds
from matchmill.language.expression import And
from matchmill.language.operator_calls import Call, Constraint, Restriction, Variable
from matchmill.language.parser import parse
from matchmill.operators.bindings import (
    JoinBudget,
    JoinTooLarge,
    Relation,
    find_solution,
    predicate_key,
)
from matchmill.operators.outcome import value_key


def call(text: str) -> Call:
    parsed = parse(text)
    assert isinstance(parsed, Call)
    return parsed


def constraint(text: str) -> Any:
    parsed = parse(text)
    assert isinstance(parsed, Restriction)
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
            assert holds(one, {"x": value}) != holds(one.opposite, {"x": value})
        for value in ("a", True):
            assert not holds(one, {"x": value})
            assert not holds(one.opposite, {"x": value})


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
    for text in (
        *("?x < ?y", "?x + ?y = 2", "?z > 2 * ?w - 1", "?y = 'a'", "?w != ?x", "?x >= 1"),
        *("?x = ?y", "?z = ?x + 1", "?z - ?y = ?w", "?w >= ?z", "?y <= ?z", "2 / ?x > ?w"),
    )
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
    possible_keys = brute_force(parts, limits)
    found = find_solution(parts, limits, JoinBudget(10_000))
    assert (found is not None) == bool(possible_keys)
    if found is not None:
        assert tuple(value_key(found[name]) for name in sorted(bound)) in possible_keys
        assert all(holds(limit, found) for limit in limits)


def n_steps(parts: list[Relation], *limits: str) -> tuple[bool, int]:
    """Tell whether there is a solution, and how many steps that took."""
    budget = JoinBudget(1_000_000)
    found = find_solution(parts, [constraint(text) for text in limits], budget)
    return found is not None, budget.spent


def test_parts_that_share_nothing_are_not_multiplied() -> None:
    many = [(n,) for n in range(2000)]
    parts = [Relation((name,), many) for name in "abcdef"]
    limits = [f"?{name} = 1999" for name in "abcde"]
    assert n_steps(parts, *limits) == (True, 6 * 201 + 6)
    assert n_steps(parts, *limits, "?f > 1999") == (False, 6 * 201 + 5)


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        (["?a = ?b", "?b = ?c", "?a != ?c"], 1_000),  # every row at a key
        (["?b = ?a + 1", "?c = ?b * 2", "?a > ?c"], 3_000),
        (["?a < ?b", "?b < ?c", "?c < ?d", "?a + ?b < -5"], 200_000),
        (["?a < ?b", "?b < ?c", "?c < ?d", "?d < 3"], 1_000),
        (["?a > ?b", "?b = ?c", "?d < ?c", "?d > 298"], 1_000),
        # a chain: from each value of ?b only once on to ?c and ?d
        (["?a <= ?b", "?b <= ?c", "?c <= ?d", "?c + ?d = -1"], 300_000),
    ],
)
def test_a_join_uses_its_constraints_and_does_not_enumerate(limits: list[str], most: int) -> None:
    many = [(n,) for n in range(300)]
    found, steps = n_steps([Relation((name,), many) for name in "abcd"], *limits)
    assert not found
    assert steps < most  # enumerating all takes 300**3 at least


def test_a_long_chain_of_relations_is_no_deep_recursion() -> None:
    names = [f"v{n}" for n in range(300)]
    parts = [Relation((name,), [(0,), (1,)]) for name in names]
    limits = [f"?v{n} <= ?v{n + 1}" for n in range(299)]
    assert n_steps(parts, *limits)[0]
    assert not n_steps(parts, *limits, "?v0 > ?v299")[0]


def test_a_join_that_never_ends_is_given_up() -> None:
    many = [(n,) for n in range(300)]
    parts = [Relation((name,), many) for name in "abc"]
    limits = [constraint("?a % 7 + ?b % 7 + ?c % 7 < 0")]
    with pytest.raises(JoinTooLarge, match=r"more than 10,000 values.*max_join_steps"):
        find_solution(parts, limits, JoinBudget(10_000))


def test_the_plan_of_a_join_is_paid_for_too() -> None:
    parts = [Relation((f"v{n}",), [(0,)]) for n in range(2000)]
    limits = [constraint(f"?v0 + ?v{n} >= 0") for n in range(1, 2000)]
    with pytest.raises(JoinTooLarge):
        find_solution(parts, limits, JoinBudget(100_000))


def test_variables_print_as_they_are_read() -> None:
    built = Call("p", (Variable("x"), 1, "it's")) & Constraint(Variable("x"), ">", 5)
    assert isinstance(built, And)
    assert parse(str(built)) == built


# -- constraints that calculate -------------------------------------------------------------------


def test_a_sum_is_looked_up() -> None:
    """Two ranges of 1,200: a million pairs, of which one is tried."""
    many = [(n,) for n in range(1200)]
    parts = [Relation((name,), many) for name in "xy"]
    assert n_steps(parts, "?x + ?y = 2398")[0]
    for limits in (
        ["?x + ?y = 2398"],
        ["?x + ?y = 2399"],
        ["2398 - ?x = ?y"],
        ["?x * 2 - 3 * ?y = 2395"],
        ["?x * ?y = 1437601"],
        ["?y / 2 - ?x = 0.25"],
        ["?x + ?y between 2399 and 2400"],
        ["(?x + ?y) * 3 > 7194"],
        ["?x + ?y > 2398", "?x != 7"],
    ):
        assert n_steps(parts, *limits)[1] < 10_000, limits
    assert n_steps(parts, "?x * ?y = 1437601")[0]
    assert n_steps(parts, "?x * ?y = 1437602")[0] is False
    doubles = [Relation((name,), [(n / 10,) for n in range(1200)]) for name in "xy"]
    found, steps = n_steps(doubles, "?x + ?y = 239.8")
    assert found
    assert steps < 10_000
    three = [Relation((name,), many[:100]) for name in "xyz"]
    assert n_steps(three, "?x + ?y + ?z = 297")[0]
    assert n_steps(three, "?x + ?y + ?z = 298")[1] < 70_000


def test_rows_of_several_variables_are_sorted_by_their_sum() -> None:
    pairs = [(a, b) for a in range(30) for b in range(30)]
    parts = [Relation(("a", "b"), pairs), Relation(("c", "d"), pairs)]
    assert n_steps(parts, "?a + 2 * ?b = ?c - ?d + 87")[0] is True
    found, steps = n_steps(parts, "?a + 2 * ?b + 1 = 2 * ?c + 2 * ?d + ?a - 500000")
    assert not found
    assert steps < 10_000


ODD_NUMBERS = [
    *(0, 1, -1, 2, 3, 7, 2**53 + 1, 2**63 - 1, -(2**63), 0.1, 0.2, 0.3, -0.5, 1.5, 1e300, -1e300),
    *(5e-324, 1e-200, 2.0**53, 1 / 3, "a", True, dt.date(2013, 1, 31)),
]
SIGNS = st.sampled_from(["+", "-", "*", "/", "%"])


@st.composite
def odd_terms(draw: st.DrawFn) -> str:
    leaf = st.sampled_from(["?x", "?y", "?z", "?w", "1", "3", "0.1", "-2.5", "9007199254740993"])
    if draw(st.integers(0, 2)) == 0:
        return draw(leaf)
    left, right = draw(odd_terms()) if draw(st.booleans()) else draw(leaf), draw(leaf)
    made = f"({left} {draw(SIGNS)} {right})"
    return f"floor({made})" if draw(st.integers(0, 9)) == 0 else made


@st.composite
def odd_constraints(draw: st.DrawFn) -> str:
    left, right, third = draw(odd_terms()), draw(odd_terms()), draw(odd_terms())
    ops = st.sampled_from(["=", "=", "=", "<", "<=", ">", ">=", "!="])
    return draw(
        st.sampled_from(
            [f"{left} {draw(ops)} {right}"] * 4
            + [f"{left} between {right} and {third}", f"{left} in ({right}, {third})"]
        )
    )


@given(st.data())
def test_joins_with_odd_numbers_are_those_of_a_solver_that_tries_everything(
    data: st.DataObject,
) -> None:
    """Doubles that round, very large and very small numbers, other types."""
    odd = st.sampled_from(ODD_NUMBERS)
    names = [("x",), ("y", "z"), ("w",)]
    parts = [
        Relation(some, data.draw(st.lists(st.tuples(*[odd] * len(some)), min_size=1, max_size=8)))
        for some in names
    ]
    texts = data.draw(st.lists(odd_constraints(), min_size=1, max_size=3))
    limits = [constraint(text) for text in texts if "?" in text]
    rows = itertools.product(*(part.rows for part in parts))
    assignments = [dict(zip("xyzw", itertools.chain(*row), strict=True)) for row in rows]
    expected = any(all(holds(limit, at) for limit in limits) for at in assignments)
    found = find_solution(parts, limits, JoinBudget(100_000))
    assert (found is not None) == expected
    assert found is None or all(holds(limit, found) for limit in limits)


@pytest.mark.parametrize("seed", range(4))
def test_sums_of_doubles_that_round_are_found(seed: int) -> None:
    """For each pair, the constraint that its own rounded sum satisfies."""
    randoms = random.Random(seed)
    xs = [(randoms.uniform(-1, 1) * 10 ** randoms.randint(-8, 8),) for _ in range(40)]
    ys = [(randoms.uniform(-1, 1) * 10 ** randoms.randint(-8, 8),) for _ in range(40)]
    for _ in range(60):
        (x,), (y,) = randoms.choice(xs), randoms.choice(ys)
        total, product = x * 3 - y / 7, x * y * 0.1
        for text in (f"?x * 3 - ?y / 7 = {total!r}", f"?x * ?y * 0.1 >= {product!r}"):
            found = find_solution(
                [Relation(("x",), xs), Relation(("y",), ys)],
                [constraint(text.replace("- -", "+ "))],
                JoinBudget(10_000),
            )
            assert found is not None
