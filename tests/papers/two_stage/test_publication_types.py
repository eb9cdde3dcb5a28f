"""Publication types: what fits reaches the engine, and what does not is told why."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

import matchmill as mm
from matchmill.papers.two_stage import publication_types
from matchmill.papers.two_stage.publication_types import (
    Enumeration,
    IntegerRange,
    Integers,
    PublicationType,
    Strings,
    TypedEngine,
)

PARCEL = PublicationType(
    {
        "number": Integers(),
        "weight": IntegerRange(1, 30),
        "sender": Strings(),
        "service": Enumeration("next day", "standard"),
        "insured": Enumeration(True, False),
        "zone": Enumeration(1, 2, 3),
        "from.city": Strings(),
    }
)


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"number": -(2**63), "weight": 1, "sender": "", "service": "standard", "zone": 3},
        {"weight": 30.0, "insured": False, "from": {"city": "Ulm"}},
        {"weight": None},
    ],
)
def test_events_that_fit(event: dict[str, Any]) -> None:
    assert PARCEL.check_event(event) is event


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"weight": 31}, "weight is 31, which is not a whole number from 1 to 30\nhint: send a"),
        ({"weight": 2.5}, "weight is 2.5, which is not a whole number"),
        ({"weight": "2"}, "weight is '2', which is not a whole number"),
        ({"weight": True}, "weight is True, which is not"),
        ({"number": 0.5}, "number is 0.5, which is not a whole number"),
        ({"number": 2**64}, "number is 18446744073709551616, which is not a whole number"),
        ({"sender": 3}, "sender is 3, which is not a text"),
        ({"service": "Standard"}, "'Standard', which is not one of 'next day', 'standard'"),
        ({"insured": 1}, "insured is 1, which is not one of True, False"),
        ({"zone": True}, "zone is True, which is not one of 1, 2, 3"),
        ({"zone": [1]}, r"zone is \[1\], which is not one of 1, 2, 3"),
        ({"wieght": 3}, r"no attribute 'wieght'; did you mean 'weight'\?\nhint: leave it out"),
        ({"from": {"town": "Ulm"}}, "no attribute 'from.town'"),
    ],
)
def test_events_that_do_not_fit(event: dict[str, Any], message: str) -> None:
    with pytest.raises(mm.EventError, match=message):
        PARCEL.check_event(event)


@pytest.mark.parametrize(
    "text",
    [
        "weight > 20 and service = 'next day' and sender like 'A%'",
        "not (weight between 1 and 30) or zone in (1, 3) or insured",
        "from.city rlike '^U' and number != 5 and service like 'n%' and weight is not null",
        "zone = 2.0",
    ],
)
def test_subscriptions_that_fit(text: str) -> None:
    assert PARCEL.check_subscription(text) is text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("weight > 31", "31 is not a whole number from 1 to 30, the domain of weight, in the cond"),
        ("zone = 1 and weight between 0 and 5", "0 is not .* in the condition weight between 0"),
        ("service in ('standard', 'slow')", "'slow' is not one of 'next day', 'standard'"),
        ("zone", "True is not one of 1, 2, 3"),
        ("insured = 1", "1 is not one of True, False"),
        ("weight like '3%'", "weight is a whole number from 1 to 30, not a text"),
        ("sender contains 'x'", "sender is a text, not a list"),
        ("any(zone) = 1", "not a list"),
        ("not (weigth = 3)", r"no attribute 'weigth'; did you mean 'weight'\?"),
    ],
)
def test_subscriptions_that_do_not_fit(text: str, message: str) -> None:
    with pytest.raises(mm.ExpressionError, match=message):
        PARCEL.check_subscription(text)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: IntegerRange(3, 1), "is empty; give the lower one first"),
        (lambda: IntegerRange(1, 2.5), "is one, not 2.5"),  # type: ignore[arg-type]
        (Enumeration, "needs values"),
        (lambda: Enumeration("a", "a"), "enumerated twice"),
        (lambda: Enumeration(0.5), "not 0.5"),  # type: ignore[arg-type]
        (lambda: PublicationType({"a": int}), "the domain of a is"),  # type: ignore[dict-item]
        (lambda: PublicationType({3: Strings()}), "not 3"),  # type: ignore[dict-item]
    ],
)
def test_types_that_cannot_be(make: Any, message: str) -> None:
    with pytest.raises(mm.InputError, match=message):
        make()


def test_nothing_that_does_not_fit_reaches_the_engine() -> None:
    engine = TypedEngine(mm.Engine(index="counting_lists"), PARCEL)
    engine.subscribe(1, "weight > 20")
    with pytest.raises(mm.ExpressionError):
        engine.subscribe(2, "weight > 20 and height > 3")
    engine.subscribe(1, "weight > 25", replace=True)
    assert list(engine.engine) == [1]
    assert engine.match({"weight": 26}) == {1}
    assert [set(ids) for ids in engine.match_many([{"weight": 25}, {"weight": 26}])] == [set(), {1}]
    with pytest.raises(mm.EventError, match="event 1: weight is 0"):
        engine.match_many([{"weight": 25}, {"weight": 0}])


def test_the_example() -> None:
    flags = doctest.IGNORE_EXCEPTION_DETAIL
    assert doctest.testmod(publication_types, optionflags=flags).failed == 0
    assert doctest.testmod(publication_types, optionflags=flags).attempted >= 5
