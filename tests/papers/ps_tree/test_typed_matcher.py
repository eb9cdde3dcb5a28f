"""Typed values through PS-Trees into an index: all types and operators, against plain Python."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from matchmill.errors import InputError
from matchmill.papers.ps_tree.index_base import PSTIndex
from matchmill.papers.ps_tree.typed_matcher import TypedMatcher
from tests.support.operator_meanings import MEANINGS
from tests.support.ps_tree_checks import check_forest, check_index
from tests.support.tiers import first_cases

TYPES = {"b": "byte", "i": "int32", "l": "int64", "d": "double", "s": "string"}
INDEXES: list[tuple[str, dict[str, Any]]] = [
    ("pst_bloom", {}),
    ("pst_bloom", {"signatures": "all"}),
    ("pst_hash", {}),
    ("pst_hash", {"n_access": 3}),
    ("be_tree", {}),
]


def some_value(rng: Random, attribute: str) -> Any:
    small = rng.randrange(-6, 7)
    if attribute == "b":
        return rng.choice((small, -128, 127))
    if attribute == "i":
        return rng.choice((small, small * 1000, -(1 << 31), (1 << 31) - 1))
    if attribute == "l":
        return rng.choice((small, small << 40, -(1 << 63), (1 << 63) - 1))
    if attribute == "d":
        return rng.choice((small / 4, small * 1e300, 0.0, float("inf"), float("-inf")))
    return "".join(rng.choices("abé\U0001f600", k=rng.randrange(4)))


def some_subscription(rng: Random) -> list[tuple[Any, ...]]:
    found = []
    for attribute in rng.choices(sorted(TYPES), k=rng.choice((0, 1, 2, 2, 3, 4))):
        operator = rng.choice(sorted(MEANINGS))
        n = {"between": 2, "in": rng.randrange(4), "not in": rng.randrange(4)}.get(operator, 1)
        values = [some_value(rng, attribute) for _ in range(n)]
        if operator == "between" and rng.random() < 0.9:
            values.sort()
        found.append((attribute, operator, *values))
    return found


def some_event(rng: Random) -> dict[str, Any]:
    event = {a: some_value(rng, a) for a in TYPES if rng.random() < 0.75}
    return event | {"unknown": object()}


def holds(predicates: list[tuple[Any, ...]], event: dict[str, Any]) -> bool:
    return all(
        attribute in event and MEANINGS[operator](event[attribute], values)
        for attribute, operator, *values in predicates
    )


def check_matcher(matcher: TypedMatcher) -> None:
    for spaces in matcher._spaces.values():
        check_forest(spaces.tree.forest)
        numbers = [int(spaces._numbers[space.leaf]) for space in spaces.tree.spaces()]
        assert numbers == sorted(set(numbers)), "numbers follow the order of spaces"
        assert numbers[0] >= 1
    if isinstance(matcher._index, PSTIndex):
        check_index(matcher._index)


@pytest.mark.parametrize("seed", first_cases(2, range(40)))
@pytest.mark.parametrize(("index", "options"), INDEXES, ids=str)
def test_changes_and_matches_agree_with_plain_python(
    index: str, options: dict[str, Any], seed: int
) -> None:
    rng = Random(seed)
    matcher = TypedMatcher(TYPES, index=index, **options)
    live: dict[int, list[tuple[Any, ...]]] = {}
    for step in range(40):
        n = rng.choice((1, 1, 2, 10))
        if rng.random() < 0.6:
            new = {1000 * step + k: some_subscription(rng) for k in range(n)}
            matcher.insert(new)
            live |= new
        else:
            gone = rng.sample(sorted(live), min(n, len(live)))
            matcher.delete(gone)
            for i in gone:
                del live[i]
        assert len(matcher) == len(live)
        if step % 8 == 7:
            check_matcher(matcher)
            events = [some_event(rng) for _ in range(12)]
            expected = [sorted(i for i, p in live.items() if holds(p, e)) for e in events]
            assert matcher.match_many(events) == expected
    matcher.delete(live)
    check_matcher(matcher)
    assert [len(list(s.tree.spaces())) for s in matcher._spaces.values()] == [1] * len(TYPES)


@pytest.mark.parametrize("index", ["pst_bloom", "pst_hash"])
def test_the_example_of_the_docstring(index: str) -> None:
    types = {"age": "byte", "name": "string", "price": "double"}
    matcher = TypedMatcher(types, index=index)
    matcher.insert({7: [("age", ">=", 18), ("name", "between", "a", "m")]})
    assert matcher.match({"age": 20, "name": "bo", "price": 0.5}) == [7]
    assert matcher.match({"age": 17, "name": "bo"}) == []
    assert matcher.match({"age": 20}) == []
    assert matcher.stats().n_clauses == 1
    assert matcher.stats().n_bytes > 0


def test_spaces_get_new_numbers_where_there_is_none_left() -> None:
    """Each value is between the two before it, so that the gap is halved each time."""
    matcher = TypedMatcher({"x": "int64"})
    low, high = -(1 << 62), 1 << 62
    values = []
    for k in range(61):
        middle = (low + high) // 2
        values.append(middle)
        low, high = (middle, high) if k % 2 else (low, middle)
    numbers = set()
    for i, value in enumerate(values):
        matcher.insert({i: [("x", ">=", value)]})
        numbers.add(matcher._spaces["x"].number_of(values[0]))
    assert len(numbers) > 1, "they were given again"
    check_matcher(matcher)
    for value in (*values, low - 1, high + 1, low, high):
        expected = [i for i, v in enumerate(values) if value >= v]
        assert matcher.match({"x": value}) == expected


def test_operators_rank_access_predicates() -> None:
    """Only access predicates cut spaces in PSTHash: `between` is one, `>` and `<` are not."""
    matcher = TypedMatcher({"x": "int32", "y": "int32"}, index="pst_hash", n_access=1)
    matcher.insert({1: [("x", "between", 0, 1000), ("y", ">", 3)]})
    matcher.insert({2: [("x", "between", 500, 2000), ("y", "<", 3)]})
    index = matcher._index
    assert isinstance(index, PSTIndex)
    assert check_forest(index._arrays.forest) == [5, 1]


@pytest.mark.parametrize(
    ("subscription", "message"),
    [
        ([("y", "=", 1)], "has no type"),
        ([("x", "like", 1)], "unknown operator"),
        ([("x", "=", 1.5)], "no byte"),
        ([("x", "between", 1)], "takes 2"),
        ([("x",)], "no predicate"),
    ],
)
def test_wrong_subscriptions_change_nothing(
    subscription: list[tuple[Any, ...]], message: str
) -> None:
    matcher = TypedMatcher({"x": "byte"})
    matcher.insert({1: [("x", "<", 3)]})
    with pytest.raises(InputError, match=message):
        matcher.insert({2: [("x", "=", 1)], 3: subscription})
    with pytest.raises(InputError, match="is there already"):
        matcher.insert({2: [("x", "=", 1)], 1: []})
    with pytest.raises(InputError, match="no id"):
        matcher.insert({"2": [("x", "=", 1)]})  # type: ignore[dict-item]
    with pytest.raises(InputError, match="none was deleted"):
        matcher.delete([1, 2])
    assert matcher.match({"x": 1}) == [1]
    assert len(list(matcher._spaces["x"].tree.spaces())) == 2


def test_wrong_matchers_and_events() -> None:
    with pytest.raises(InputError, match="unknown type"):
        TypedMatcher({"x": "complex"})
    with pytest.raises(InputError, match="does not change in place"):
        TypedMatcher({"x": "byte"}, index="mill")
    with pytest.raises(InputError, match="has no option"):
        TypedMatcher({"x": "byte"}, index="pst_hash", signatures="all")
    with pytest.raises(InputError, match="no byte"):
        TypedMatcher({"x": "byte"}).match({"x": 1000})
