"""Predicate lists by operator: against the oracle, after pivots, and one that a user has added."""

from __future__ import annotations

import datetime as dt
import doctest
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from matchmill.errors import DuplicateIdError, InputError, UnknownIdError
from matchmill.language.evaluate import evaluate
from matchmill.language.parser import parse
from matchmill.papers.op_index import operators
from matchmill.papers.op_index.operators import OPERATORS, Condition, ExtensibleOpIndex
from matchmill.papers.op_index.operators.text_lists import PrefixList, RegexList, SuffixList

WORDS = ["", "a", "ab", "abc", "b", "ba", "cab", "c", "äb", "aab"]
REGEXES = ["^a", "b$", "a.*b", "c|^$", "(a|b){2}"]
NUMBERS = [0, 1, 2.5, 3, -1]


class RecordingList(PrefixList):
    """A list that notes what it was asked, as a costly operator of a user would want to."""

    asked: list[tuple[str, Any]]

    def match(self, attribute: str, value: Any) -> Any:
        self.asked.append((attribute, value))
        return super().match(attribute, value)


def text_of(condition: Condition) -> str:
    """The same in the language."""
    name, operator, operand = condition
    if operator == "in":
        return f"{name} in ({', '.join(map(repr, operand))})"
    if operator == "prefix":
        return f"{name} like '{operand}%'"
    if operator == "suffix":
        return f"{name} like '%{operand}'"
    if operator == "regex":
        return f"{name} rlike '{operand}'"
    return f"{name} {operator} {operand!r}"


def random_condition(rng: Random) -> Condition:
    name = rng.choice("pqrst")
    operator = rng.choice(list(OPERATORS))
    if operator in ("prefix", "suffix"):
        return Condition(name, operator, rng.choice(WORDS))
    if operator == "regex":
        return Condition(name, operator, rng.choice(REGEXES))
    values = rng.choice((WORDS, NUMBERS))
    if operator == "in":
        return Condition(name, operator, tuple(rng.sample(values, 3)))
    return Condition(name, operator, rng.choice(values))


def random_event(rng: Random) -> dict[str, Any]:
    values = [*WORDS, *NUMBERS, True, [1, "a"], dt.date(2026, 1, 1)]
    return {name: rng.choice(values) for name in "pqrstu" if rng.random() < 0.6}


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_the_oracle_while_subscriptions_come_and_go(seed: int) -> None:
    rng = Random(seed)
    frequencies = {"p": 9, "q": 1, "r": 5} if seed % 2 else None
    index = ExtensibleOpIndex(frequencies=frequencies)
    live: dict[int, Any] = {}
    n_matches = 0
    for step in range(300):
        if live and rng.random() < 0.3:
            gone = rng.choice(list(live))
            index.unsubscribe(gone)
            del live[gone]
        else:
            conditions = [random_condition(rng) for _ in range(rng.choice((1, 2, 2, 3)))]
            index.subscribe(step, conditions)
            live[step] = parse(" and ".join(map(text_of, conditions)))
        event = random_event(rng)
        expected = {i for i, parsed in live.items() if evaluate(parsed, event) is True}
        assert index.match(event) == expected
        n_matches += len(expected)
    assert len(index) == len(live)
    assert n_matches > 300
    for i in list(live):
        index.unsubscribe(i)
    assert index.match(event) == set()
    assert not index._owners
    assert not +index._frequencies


def test_lists_are_asked_after_pivot_pruning() -> None:
    """Those of a pivot that an event does not have are not asked at all."""
    RecordingList.asked = asked = []
    index = ExtensibleOpIndex({"costly": RecordingList}, frequencies={"name": 100, "size": 5})
    index.subscribe(1, [("name", "costly", "ab"), ("size", ">=", 3)])
    assert index.match({"name": "abc"}) == set()
    assert asked == []
    assert index.match({"name": "abc", "size": 3}) == {1}
    assert asked == [("name", "abc"), ("size", 3)]
    index.subscribe(2, [("name", "costly", "a")])
    assert index.match({"name": "abc"}) == {2}
    assert asked[2:] == [("name", "abc")]


def test_the_pivot_is_the_rarest_attribute() -> None:
    index = ExtensibleOpIndex()
    index.subscribe(1, [("a", "prefix", "x"), ("b", "=", 1)])  # both are new: the one with =
    index.subscribe(2, [("b", "=", 1), ("c", ">=", 1)])
    index.subscribe(3, [("b", "=", 1), ("a", "=", 1)])
    assert [index._filed[i].pivot for i in (1, 2, 3)] == ["b", "c", "a"]


def test_an_operand_that_is_rejected_leaves_nothing_behind() -> None:
    index = ExtensibleOpIndex()
    good = [("a", "prefix", "x"), ("a", "=", "xy")]
    for bad, message in (
        (("a", "regex", "("), "not a regular expression"),
        (("a", "prefix", 3), "is a text, not 3"),
        (("a", "=", [1]), r"one value, not \[1\]"),
        (("a", "<=", None), "one value, not None"),
        (("a", ">=", object), "one value, not"),
        (("a", "in", "xy"), "several values, not 'xy'"),
        (("a", "in", [1, []]), "one value"),
        (("a", "prefx", "x"), "no operator 'prefx'.*did you mean 'prefix'"),
        (("", "=", 1), "is a name"),
    ):
        with pytest.raises(InputError, match=message):
            index.subscribe(1, [*good, bad])
        assert len(index) == 0
        assert index.match({"a": "xy"}) == set()
    index.subscribe(1, good)
    with pytest.raises(DuplicateIdError, match="1 already"):
        index.subscribe(1, good)
    with pytest.raises(InputError, match="at least one condition"):
        index.subscribe(2, [])
    with pytest.raises(UnknownIdError, match="no subscription 2"):
        index.unsubscribe(2)
    assert index.match({"a": "xy"}) == {1}


def test_lists_forget_what_was_deleted() -> None:
    for kind, operand in ((PrefixList, "abc"), (SuffixList, "abc"), (RegexList, "abc")):
        predicates = kind()
        empty = str(_contents(predicates))
        for number in range(3):
            predicates.insert(number, "a", operand)
            predicates.insert(10 + number, "b", operand[:2])
        assert sorted(predicates.match("a", "abc")) == [0, 1, 2]
        for number in range(3):
            predicates.delete(number, "a", operand)
            predicates.delete(10 + number, "b", operand[:2])
            assert len(list(predicates.match("b", "ab"))) == 2 - number
        assert str(_contents(predicates)) == empty


def _contents(predicates: PrefixList | SuffixList | RegexList) -> object:
    if isinstance(predicates, SuffixList):
        predicates = predicates._reversed
    if isinstance(predicates, PrefixList):
        return predicates._root.children
    return predicates._predicates, predicates._compiled


class ContainsAll:
    """An operator on values that no other list is defined for: lists."""

    def __init__(self) -> None:
        self._wanted: dict[tuple[int, str], frozenset[Any]] = {}

    def insert(self, predicate: int, attribute: str, operand: Any) -> None:
        self._wanted[predicate, attribute] = frozenset(operand)

    def delete(self, predicate: int, attribute: str, operand: Any) -> None:
        del self._wanted[predicate, attribute]

    def match(self, attribute: str, value: Any) -> Iterable[int]:
        if isinstance(value, list | tuple):
            return [
                p for (p, a), some in self._wanted.items() if a == attribute and some <= {*value}
            ]
        return []


def test_an_operator_of_a_user() -> None:
    index = ExtensibleOpIndex({"has all": ContainsAll})
    index.subscribe("u", [("tags", "has all", ["x", "y"]), ("size", "<=", 3)])
    index.subscribe("v", [("tags", "has all", ["x"])])
    assert index.match({"tags": ["y", "x"], "size": 2}) == {"u", "v"}
    assert index.match({"tags": ["x"], "size": 2}) == {"v"}
    assert index.match({"tags": "x"}) == set()


def test_the_example() -> None:
    done = doctest.testmod(operators)
    assert done.attempted > 6
    assert done.failed == 0


def test_events_are_those_of_the_language() -> None:
    index = ExtensibleOpIndex()
    index.subscribe(1, [("geo.lat", ">=", 40)])
    assert index.match({"geo": {"lat": 40.6}, "x": None}) == {1}
    assert index.match({"geo": {"lat": float("inf")}}) == set()  # it cannot be compared
