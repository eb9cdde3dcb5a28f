"""`is [not] true`, `is [not] false`, `is [not] unknown`: every index, DuckDB, all ways of matching.

Generated expressions have truth tests anywhere; here all have one, and most at the top.
"""

from __future__ import annotations

from random import Random

import pytest

from matchmill import Engine, Settings
from matchmill.errors import ExpressionError
from matchmill.index.mixed import build_index
from matchmill.index.registry import INDEXES
from matchmill.language.evaluate import evaluate, evaluate_flat
from matchmill.language.expression import And, Expression, Not, Or, TruthTest
from matchmill.language.flatten import flatten_event
from matchmill.language.normal_form import normalize
from matchmill.language.parser import parse
from tests.support.conformance_kit import INDEX_NAMES, Encoded, check_against_oracle, encode
from tests.support.duckdb_sql import Judge
from tests.support.generators import random_event, random_expression

by_index = pytest.mark.parametrize("name", INDEX_NAMES)


def random_test(rng: Random, depth: int = 2) -> Expression:
    operand = random_expression(rng, depth=depth)
    test = TruthTest(operand, rng.choice([True, True, False, None]), rng.random() < 0.7)
    draw = rng.random()
    if draw < 0.5:
        return test
    if draw < 0.6:
        return Not(test)
    return rng.choice([And, Or])((test, random_expression(rng, depth=depth)))


def encoded_cases(seed: int, n_expressions: int, n_events: int, max_clauses: int = 64) -> Encoded:
    rng = Random(seed)
    expressions = [random_test(rng) for _ in range(n_expressions)]
    return encode(expressions, [random_event(rng) for _ in range(n_events)], max_clauses)


@pytest.fixture(scope="module")
def some() -> list[Encoded]:
    return [encoded_cases(1, 60, 40), encoded_cases(2, 25, 25, max_clauses=3)]


@pytest.fixture(scope="module")
def many() -> list[Encoded]:
    return [encoded_cases(3, 400, 120), encoded_cases(4, 50, 60, max_clauses=3)]


@by_index
def test_every_index(name: str, some: list[Encoded]) -> None:
    for case in some:
        check_against_oracle(build_index(INDEXES[name], case.table), case)
    assert some[0].is_exact.mean() > 0.9
    assert 0.2 < some[0].truth.mean() < 0.8


@by_index
@pytest.mark.long
def test_fifty_thousand_pairs_in_every_index(name: str, many: list[Encoded]) -> None:
    for case in many:
        check_against_oracle(build_index(INDEXES[name], case.table), case)
    assert sum(case.truth.size for case in many) >= 50_000


@pytest.mark.parametrize(
    ("n_expressions", "n_events"), [(60, 50), pytest.param(500, 100, marks=pytest.mark.long)]
)
def test_duckdb_agrees(n_expressions: int, n_events: int) -> None:
    rng = Random(5)
    expressions = [random_test(rng) for _ in range(n_expressions)]
    assert [parse(str(expression)) for expression in expressions] == expressions
    events = [random_event(rng) for _ in range(n_events)]
    with Judge(events) as judge:
        judged = judge.truths(expressions)
    flat = [flatten_event(event) for event in events]
    for expression, row in zip(expressions, judged, strict=True):
        for event, truth in zip(flat, row, strict=True):
            assert evaluate_flat(expression, event) is truth, f"{expression} on {event}"


@pytest.mark.parametrize("max_clauses", [2, 64])
def test_an_engine_matches_by_all_ways(max_clauses: int) -> None:
    rng = Random(max_clauses)
    expressions = {i: random_test(rng, 3) for i in range(60)}
    events = [random_event(rng) for _ in range(40)]
    engine = Engine(settings=Settings(max_clauses=max_clauses))
    for id, expression in expressions.items():
        engine.subscribe(id, expression)
    wanted = [{i for i, e in expressions.items() if evaluate(e, v) is True} for v in events]
    assert list(engine.match_many(events)) == wanted
    assert [engine.match(event) for event in events] == wanted


def test_a_complement_is_one_set() -> None:
    texts = [
        "x = 5 is not true",
        "x ilike '%a%' is not true",
        "x > 5 is unknown",
        "(x = 1 or y like '%b' or z rlike 'c+') is not true",
        "tags contains 'a' is not true",
        "x is not true",
    ]
    for text in texts:
        normal = normalize(parse(text))
        assert normal.exact
        assert len(normal.clauses) == 1, normal.clauses
    assert normalize(parse("(x is null) is unknown")).kind == "never"
    assert normalize(parse("((x = 1) is true) is not unknown")).kind == "always"


def test_an_element_that_is_and_is_not() -> None:
    """Sets of which some value and no value has to be are different subjects of one clause."""
    engine = Engine({"never": "tags contains 'a' and tags contains none ('a')"})
    assert engine.match({"tags": ["a"]}) == set()


def test_rules_with_a_missing_field() -> None:
    rule = "image like '%.exe' and (user = 'SYSTEM' or path like 'C:%') is not true"
    engine = Engine({"rule": rule})
    assert engine.match({"image": "a.exe"}) == {"rule"}
    assert engine.match({"image": "a.exe", "user": "SYSTEM"}) == set()
    assert engine.match({"image": "a.exe", "user": 5, "path": ["C:"]}) == {"rule"}


def test_events_that_are_expressions() -> None:
    engine = Engine(
        {
            "not_five": "x = 5 is not true",
            "no_prefix": "s like '%a' is not true",
            "no_list": "tags contains 'a' is not true",
            "unknown": "(x > 3 and y = 1) is unknown",
            "known": "(x > 3 and y = 1) is not unknown",
        }
    )
    assert engine.match_expression("x = 5") == {"no_prefix", "no_list", "unknown"}
    assert engine.match_expression("x = 2") == {"not_five", "no_prefix", "no_list", "known"}
    assert engine.match_expression("s = 'ba' and x in (5, 6)") == {"not_five", "no_list", "unknown"}
    assert "not_five" in engine.match_expression("x = 5 is not true")


def test_events_that_are_expressions_are_a_superset_of_their_events() -> None:
    rng = Random(8)
    expressions = {i: random_test(rng) for i in range(80)}
    engine = Engine()
    for id, expression in expressions.items():
        engine.subscribe(id, expression)
    for number in (0, 7, 580):
        event = {"flight": number, "origin": "ab"}
        wanted = {i for i, e in expressions.items() if evaluate(e, event) is True}
        assert engine.match_expression(f"flight = {number} and origin = 'ab'") == wanted


def test_operators_are_true_or_not() -> None:
    engine = Engine()
    for text in ("attribute('x', ?n) is not true", "not (?n > 5 and attribute('x', ?n)) is true"):
        with pytest.raises(ExpressionError, match="cannot be asked of operators"):
            engine.subscribe("a", text)
    engine.subscribe("a", "(attribute('x', ?n) and ?n > 5) is true and (y = 1) is not true")
    assert engine.match({"x": 6}) == {"a"}
    assert engine.match({"x": 6, "y": 1}) == set()


def test_nested_clauses_have_them() -> None:
    wide = " and ".join(f"(a{i} = 1 or b{i} like '%x%')" for i in range(12))
    engine = Engine({"wide": f"({wide}) is not false and c = 1"})
    assert normalize(parse(f"({wide}) is not false"), nested=True).is_nested
    assert engine.match({"c": 1}) == {"wide"}
    assert engine.match({"c": 1, "a3": 2, "b3": "y"}) == set()


@pytest.mark.slow
def test_loads_in_bulk_leave_them_to_the_parser() -> None:
    """Plain conditions are read by kernels, which must take no test for something else."""
    rng = Random(9)
    plain = ["x > 5", "cancelled", "y in (1, 2)", "s like 'a%'", "x = 1 and y is null", "not x = 3"]
    tests = ["is true", "is not true", "IS NOT FALSE", "is unknown", "is\tnot  unknown", ""]
    texts = []
    for i in range(9000):
        first, second = rng.choice(plain), rng.choice(plain)
        forms = [
            f"{first} {{}}",
            f"({first}) {{}}",
            f"z = {i} and {first} {{}}",
            f"({first} or {second}) {{}}",
            f"not {first} {{}} or z = {i}",
        ]
        texts.append(rng.choice(forms).format(rng.choice(tests)))
    engine = Engine()
    report = engine.subscribe_many(enumerate(texts))
    assert not report.rejected
    events = [{}, {"x": 3, "y": 2, "s": "ab"}, {"x": 9, "cancelled": True}, {"x": "a", "z": 5}]
    for event, found in zip(events, engine.match_many(events), strict=True):
        assert found == {i for i, text in enumerate(texts) if evaluate(text, event) is True}
