"""Conjunctions of disjunctions mean what the expression does, and are as small as estimated."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from matchmill.errors import LimitError
from matchmill.language.expression import Expression
from matchmill.language.normal_form import Dimension, NormalForm, normalize
from matchmill.language.parser import parse
from matchmill.language.value_set import point, points
from matchmill.papers.op_index.cnf.normal_form import (
    Disjunction,
    FormSize,
    estimate,
    prefers_cnf,
    to_cnf,
)
from tests.support.generators import random_expression


def eq(name: str, value: Any) -> Disjunction:
    return {Dimension(name): point(value)}


# -- the form -------------------------------------------------------------------------------------


def test_a_conjunction_is_one_disjunction_a_predicate() -> None:
    assert to_cnf(parse("a = 1 and b = 2")) == (eq("a", 1), eq("b", 2))


def test_a_disjunction_is_one() -> None:
    assert to_cnf(parse("a = 1 or b = 2 or a = 3")) == (
        {Dimension("a"): points((1, 3)), Dimension("b"): point(2)},
    )


def test_a_disjunction_of_conjunctions_is_multiplied_out() -> None:
    made = to_cnf(parse("(a = 1 and b = 1) or (c = 1 and d = 1)"))
    names = sorted("".join(sorted(d.attribute for d in disjunction)) for disjunction in made)
    assert names == ["ac", "ad", "bc", "bd"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", ()),
        ("false", ({},)),
        ("a = 1 and false", ({},)),
        ("a = 1 or true", ()),
        ("a is null or a is not null", ()),
        ("a = 1 and a = 2", ({},)),
        ("not (a = 1 or b = 1) and a = 1", ({},)),
        ("a between 3 and 1", ({},)),
    ],
)
def test_what_holds_always_or_never(text: str, expected: tuple[Disjunction, ...]) -> None:
    assert to_cnf(parse(text)) == expected


def test_negation_is_pushed_to_the_predicates() -> None:
    assert set(map(str, to_cnf(parse("not (a = 1 or b < 2)")))) == set(
        map(str, to_cnf(parse("a != 1 and b >= 2")))
    )
    assert to_cnf(parse("not (a = 1 and b < 2)")) == to_cnf(parse("a != 1 or b >= 2"))


# -- sizes ----------------------------------------------------------------------------------------


def sizes_of(clauses: tuple[dict[Any, Any], ...]) -> tuple[int, int]:
    return len(clauses), sum(map(len, clauses))


@pytest.mark.parametrize("seed", range(4))
def test_no_form_is_larger_than_estimated(seed: int) -> None:
    rng = Random(seed)
    n_compared = 0
    for _ in range(300):
        expression = random_expression(rng)
        dnf, cnf = estimate(expression)
        if cnf.n_sets <= 2000:
            n_clauses, n_sets = sizes_of(to_cnf(expression))
            assert n_clauses <= max(cnf.n_clauses, 1)
            assert n_sets <= cnf.n_sets
        if dnf.n_sets <= 2000:
            made: NormalForm = normalize(expression, max_clauses=2000)
            n_clauses, n_sets = sizes_of(made.clauses)
            assert n_clauses <= dnf.n_clauses
            assert n_sets <= dnf.n_sets
            n_compared += 1
    assert n_compared > 200


def test_sizes_of_products() -> None:
    wide = parse(" and ".join(f"(a{k} = 1 or b{k} = 1)" for k in range(10)))
    dnf, cnf = estimate(wide)
    assert dnf == FormSize(1024, 10240, 10)
    assert cnf == FormSize(10, 20, 2)
    negated = ~wide
    assert estimate(negated).dnf == FormSize(10, 20, 2)
    assert estimate(negated).cnf == FormSize(1024, 10240, 10)


def test_the_size_of_a_giant_is_estimated_and_the_form_refused() -> None:
    giant = parse(" or ".join(f"(a{k} = 1 and b{k} = 1)" for k in range(3000)))
    assert estimate(giant).cnf.n_clauses == 2**3000
    with pytest.raises(LimitError, match="more than 10000 sets"):
        to_cnf(giant)
    assert not prefers_cnf(giant)


def pairs(n: int) -> Expression:
    return parse(" and ".join(f"(a{k} = 1 or b{k} = 1)" for k in range(n)))


def test_when_the_conjunctive_form_is_far_smaller() -> None:
    # n disjunctions of two: 2 n sets, stored under two pivots; n 2**n sets in the other form.
    assert not prefers_cnf(pairs(3))  # 12 against 24
    assert prefers_cnf(pairs(4))  # 16 against 64
    assert prefers_cnf(pairs(64))
    assert not prefers_cnf(pairs(65))
    assert prefers_cnf(pairs(65), max_clauses=65)
    assert not prefers_cnf(~pairs(4))
    for text in ("true", "false", "a = 1", "a = 1 and b = 1", "a = 1 or b = 1"):
        assert not prefers_cnf(parse(text))
