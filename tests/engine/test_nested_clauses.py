"""Expressions whose clauses would be too many: they become nested clauses."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from matchmill import Engine, Settings
from matchmill.encoding.conjunction_table import is_nested
from matchmill.engine.expression_input import read_expression
from matchmill.index.registry import INDEXES
from matchmill.language.evaluate import evaluate
from matchmill.language.normal_form import normalize

ATTRIBUTES = "abcdefgh"


def random_event(rng: Random) -> dict[str, Any]:
    values = [0, 1, 2, 3, "x", "xy", True, ["x", 2]]
    return {name: rng.choice(values) for name in ATTRIBUTES if rng.random() < 0.8}


def random_predicate(rng: Random) -> str:
    name, number = rng.choice(ATTRIBUTES), rng.randrange(4)
    return rng.choice(
        [
            f"{name} = {number}",
            f"{name} != {number}",
            f"{name} < {number}",
            f"{name} in ({number}, 'x')",
            f"{name} like '%y'",
            f"{name} contains 'x'",
            f"{name} is null",
            f"{name} is not null",
        ]
    )


def conjunction_of_disjunctions(rng: Random, n: int, width: int, depth: int = 0) -> str:
    """With a depth, conditions are such conjunctions in their turn."""

    def condition() -> str:
        if depth and rng.random() < 0.3:
            return f"({conjunction_of_disjunctions(rng, 3, width, depth - 1)})"
        return random_predicate(rng)

    groups = [" or ".join(condition() for _ in range(rng.randint(1, width))) for _ in range(n)]
    text = " and ".join(f"({group})" for group in groups)
    return f"not ({text})" if rng.random() < 0.2 else text


def random_subscriptions(rng: Random, n: int) -> dict[str, str]:
    return {
        str(i): conjunction_of_disjunctions(rng, rng.randint(1, 7), rng.randint(1, 6), i % 3)
        for i in range(n)
    }


def has_nested(engine: Engine) -> bool:
    segments = engine._store.state.snapshot.segments
    return any(is_nested(segment.table).any() for segment in segments)


def expected(subscriptions: dict[str, str], event: dict[str, Any]) -> set[str]:
    parsed = {name: read_expression(text) for name, text in subscriptions.items()}
    return {name for name, e in parsed.items() if evaluate(e, event) is True}


@pytest.mark.parametrize("seed", range(12))
def test_answers_are_those_of_the_oracle(seed: int) -> None:
    rng = Random(seed)
    subscriptions = random_subscriptions(rng, 40)
    engine = Engine(settings=Settings(max_clauses=rng.choice((1, 4, 64))))
    engine.subscribe_many(subscriptions)
    assert engine.stats().n_inexact == 0
    assert has_nested(engine)
    events = [random_event(rng) for _ in range(40)]
    wanted = [expected(subscriptions, event) for event in events]
    assert list(engine.match_many(events)) == wanted
    assert [engine.match(event) for event in events[:5]] == wanted[:5]
    assert list(engine.match_many(events, threads=2)) == wanted


@pytest.mark.parametrize("index", sorted(INDEXES))
def test_every_index_takes_them(index: str) -> None:
    rng = Random(index)
    subscriptions = random_subscriptions(rng, 30)
    engine = Engine(index=index)
    engine.subscribe_many(subscriptions)
    for event in (random_event(rng) for _ in range(20)):
        assert engine.match(event) == expected(subscriptions, event)


def test_they_come_and_go() -> None:
    rng = Random(4)
    engine = Engine()
    live: dict[str, str] = {}
    for step in range(60):
        if live and rng.random() < 0.4:
            name = rng.choice(sorted(live))
            del live[name]
            engine.unsubscribe(name)
        else:
            live[str(step)] = conjunction_of_disjunctions(rng, 5, 5)
            engine.subscribe(str(step), live[str(step)])
        if step == 40:
            engine.compact()
        event = random_event(rng)
        assert engine.match(event) == expected(live, event)


def test_they_are_saved_and_replayed(tmp_path: Path) -> None:
    rng = Random(5)
    subscriptions = random_subscriptions(rng, 30)
    events = [random_event(rng) for _ in range(20)]
    first, rest = dict(list(subscriptions.items())[:15]), dict(list(subscriptions.items())[15:])
    with Engine.open(tmp_path / "e", create=True) as engine:
        engine.subscribe_many(first)
        engine.save()
        engine.subscribe_many(rest)  # in the log only
    with Engine.open(tmp_path / "e") as engine:
        assert [engine.match(event) for event in events] == [
            expected(subscriptions, event) for event in events
        ]


def test_a_thousand_alternatives_of_many_attributes() -> None:
    engine = Engine()
    engine.subscribe("any", " or ".join(f"a{n} = {n} and b{n} = {n}" for n in range(1000)))
    engine.subscribe("all", " and ".join(f"(a{n} = 1 or b{n} = 1)" for n in range(1000)))
    assert engine.match({"a7": 7, "b7": 7}) == {"any"}
    assert engine.match({"a7": 7, "b8": 8}) == set()
    assert engine.match({f"{'ab'[n % 2]}{n}": 1 for n in range(1000)}) == {"all"}
    assert engine.match({f"{'ab'[n % 2]}{n}": 1 for n in range(2, 1000)}) == set()


def test_conditions_on_top_and_alternatives() -> None:
    groups = [f"(a{n} = 1 or b{n} = 1 or c{n} = 1)" for n in range(5)]
    engine = Engine()
    engine.subscribe_many({n: f"{' and '.join(groups)} and d = {n}" for n in range(50)})
    assert has_nested(engine)
    event = {**{f"b{n}": 1 for n in range(5)}, "d": 17}
    assert engine.match(event) == {17}


def test_small_products_are_multiplied_out() -> None:
    parsed = read_expression("(a = 1 or b = 2) and (c = 3 or d = 4)")
    normal = normalize(parsed, nested=True)
    assert len(normal.clauses) == 4
    assert not normal.is_nested


def test_events_that_are_expressions() -> None:
    engine = Engine()
    text = " and ".join(f"(a{n} = 1 or b{n} = 1 or c{n} = 1)" for n in range(5))
    engine.subscribe("s", text)
    assert has_nested(engine)
    possible = " and ".join(f"a{n} in (0, 1)" for n in range(5))
    assert engine.match_expression(possible) == {"s"}
    assert engine.match_expression(possible.replace("a3 in (0, 1)", "a3 = 0")) == set()


@pytest.mark.parametrize("seed", range(4))
def test_bulk_loads_of_conjunctions_of_disjunctions(seed: int) -> None:
    """Comparisons alone, which are encoded without a normal form; some are about one attribute."""
    rng = Random(seed)
    literals = ("0", "-0.0", "1", "1.5", "2", "9007199254740993", "'x'", "'xy'")

    def comparison() -> str:
        op = rng.choice(("=", "!=", "<", "<=", ">", ">="))
        return f"{rng.choice(ATTRIBUTES)} {op} {rng.choice(literals)}"

    subscriptions = {
        str(n): " and ".join(
            "(" + " or ".join(comparison() for _ in range(rng.randint(1, 4))) + ")"
            for _ in range(rng.randint(3, 6))
        )
        for n in range(150)
    }
    engine = Engine(subscriptions)
    assert has_nested(engine)
    for event in (random_event(rng) for _ in range(25)):
        assert engine.match(event) == expected(subscriptions, event)
