"""Events that are expressions, against a search through all events that they stand for."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest

from matchmill import Engine, EventError, Settings
from matchmill.engine.expression_input import read_expression
from matchmill.index.registry import INDEXES
from matchmill.language.evaluate import evaluate
from matchmill.language.expression import walk
from matchmill.language.expression_events import can_match

# Values next to, at and between all that the conditions below speak of.
NUMBERS = [-1, 0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4]
TEXTS = ["", "a", "aa", "ab", "abc", "ac", "b", "bx", "c", "ca", "d", "zx"]
VALUES: list[Any] = [None, True, False, *NUMBERS, *TEXTS]


def by_search(subscription: str, event: str) -> bool:
    """Whether one of the events that `event` stands for satisfies the subscription."""
    allowed = read_expression(event)
    names = sorted({node.name for node, _ in walk(allowed) if hasattr(node, "name")})
    for values in product(VALUES, repeat=len(names)):
        one = {n: v for n, v in zip(names, values, strict=True) if v is not None}
        if evaluate(allowed, one) is True and evaluate(read_expression(subscription), one) is True:
            return True
    return False


def random_condition(rng: Random, depth: int, name: str | None = None) -> str:
    if depth and rng.random() < 0.6:
        joint = rng.choice([" and ", " and ", " or "])
        parts = [random_condition(rng, depth - 1, name) for _ in range(rng.choice((2, 2, 3)))]
        text = "(" + joint.join(parts) + ")"
        return f"not {text}" if rng.random() < 0.2 else text
    attribute = name or rng.choice("uv")
    number, other = rng.randrange(4), rng.randrange(4)
    text = rng.choice(["a", "ab", "b", "c"])
    return rng.choice(
        [
            f"{attribute} = {number}",
            f"{attribute} != {number}",
            f"{attribute} < {number}",
            f"{attribute} >= {number}",
            f"{attribute} between {number} and {other}",
            f"{attribute} in ({number}, {other}, '{text}')",
            f"{attribute} is null",
            f"{attribute} is not null",
            f"{attribute} = '{text}'",
            f"{attribute} > '{text}'",
            f"{attribute} like '{text}%'",
            f"{attribute} = true",
        ]
    )


@pytest.mark.parametrize("seed", range(60))
def test_possible_is_what_a_search_finds(seed: int) -> None:
    rng = Random(seed)
    event = random_condition(rng, 2)
    for _ in range(25):
        condition = random_condition(rng, 2)
        possible = can_match(read_expression(condition), read_expression(event))
        assert possible == by_search(condition, event), (condition, event)


@pytest.mark.parametrize("index", sorted(INDEXES))
def test_every_index_finds_what_is_possible(index: str) -> None:
    rng = Random(index)
    conditions = {str(n): random_condition(rng, 2) for n in range(60)}
    engine = Engine(index=index)
    engine.subscribe_many(conditions)
    engine.compact()
    engine.subscribe("late", "u < 3 and v = 'ab'")  # not in the built segment
    engine.unsubscribe("7")
    conditions["late"] = "u < 3 and v = 'ab'"
    del conditions["7"]
    for _ in range(25):
        event = random_condition(rng, 2)
        parsed = read_expression(event)
        assert engine.match_expression(event) == {
            name for name, text in conditions.items() if can_match(read_expression(text), parsed)
        }


@pytest.mark.parametrize("seed", range(10))
def test_many_alternatives_are_confirmed(seed: int) -> None:
    rng = Random(seed)
    engine = Engine(settings=Settings(max_clauses=2))
    conditions = {str(n): random_condition(rng, 3) for n in range(15)}
    engine.subscribe_many(conditions)
    event = f"u between {rng.randrange(3)} and 3 and v in (1, 'ab')"
    expected = {name for name, text in conditions.items() if by_search(text, event)}
    assert engine.match_expression(event) == expected


@pytest.mark.parametrize(
    ("subscription", "event", "is_found"),
    [
        ("price < 30", "price between 20 and 40", True),
        ("price < 20", "price between 20 and 40", False),
        ("price > 25 and price < 28", "price between 20 and 40", True),
        ("price > 25 and price < 28", "price in (20, 40)", False),  # no single price does it
        ("price > 20 and stock > 0", "price between 20 and 40", False),  # it has no stock
        ("stock is null", "price between 20 and 40", True),
        ("genre = 'classics'", "price = 5 and genre = 'classics'", True),
        ("name like '%x'", "name in ('ax', 'b')", True),
        ("name like '%y'", "name in ('ax', 'b')", False),
        ("name like 'a%' and name like '%x'", "name in ('ab', 'cx')", False),
        ("name like 'a%' and name like '%x'", "name in ('ab', 'ax')", True),
        ("name rlike 'b+'", "name in ('abb', 'c')", True),
        ("name like '%x'", "name > 'a'", True),
        ("name like '%x'", "name > 5", False),
        ("tags contains 'a'", "tags is not null", True),
        ("tags contains 'a'", "tags = 'a'", False),
        ('{"address": [{"cidr": "10.0.0.0/8"}]}', "address = '10.1.1.1'", True),
        ('{"address": [{"cidr": "10.0.0.0/8"}]}', "address = '11.1.1.1'", False),
        ("day > date '2024-01-31'", "day between date '2024-01-01' and date '2024-02-01'", True),
        ("day > date '2024-02-01'", "day between date '2024-01-01' and date '2024-02-01'", False),
        ("price = 5", "false", False),
        ("price is null", "true", True),
    ],
)
def test_named_cases(subscription: str, event: str, is_found: bool) -> None:
    engine = Engine()
    engine.subscribe("s", subscription)
    assert engine.match_expression(event) == ({"s"} if is_found else set())


def test_a_point_on_every_attribute_is_an_ordinary_event() -> None:
    engine = Engine()
    rng = Random(3)
    engine.subscribe_many({n: random_condition(rng, 2) for n in range(200)})
    for u, v in product([0, 1.5, "ab"], [2, "b"]):
        event = f"u = {u!r} and v = {v!r}"
        assert engine.match_expression(event) == engine.match({"u": u, "v": v})


@pytest.mark.parametrize("event", ["tags contains 'a'", "name like '%x'", "name rlike 'a'"])
def test_what_a_text_contains_is_no_event(event: str) -> None:
    with pytest.raises(EventError, match="not by what a text or a list contains"):
        Engine().match_expression(event)


def test_too_many_alternatives() -> None:
    event = " and ".join(f"(a{n} = 1 or b{n} = 1)" for n in range(8))
    with pytest.raises(EventError, match="more than 64 alternatives"):
        Engine().match_expression(event)
