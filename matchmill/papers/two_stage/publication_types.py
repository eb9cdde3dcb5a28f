"""Publication types: attributes with declared domains, checked before an engine sees anything.

A publication type names the attributes that an event may have, and the domain of each: integers, a
range of integers, strings, or enumerated values. An event need not have all of them, but it has no
others, and each value is from the domain. A subscription compares an attribute with values of its
domain only.

    >>> import matchmill as mm
    >>> parcel = PublicationType(
    ...     {"weight": IntegerRange(1, 30), "service": Enumeration("next day", "standard")}
    ... )
    >>> engine = TypedEngine(mm.Engine(index="counting_bits"), parcel)
    >>> engine.subscribe("u1", "weight > 20 and service = 'next day'")
    >>> engine.match({"weight": 25, "service": "next day"})
    {'u1'}
    >>> engine.match({"weight": 31})
    Traceback (most recent call last):
    matchmill.errors.EventError: weight is 31, which is not a whole number from 1 to 30
    hint: send a value of the domain, or declare a wider domain for weight

Deviation: the paper's subscription is a conjunction. Here it is any expression of the language
whose conditions are about single values, because the engine takes those. Lists, list elements and
operators have no domain in the paper, so a typed engine rejects them.

Two-stage, section 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from matchmill.engine.engine import Engine
from matchmill.engine.matches import Matches
from matchmill.engine.subscription_table import Id
from matchmill.errors import EventError, ExpressionError, InputError, did_you_mean, shown
from matchmill.language.expression import (
    Between,
    Compare,
    Contains,
    Expression,
    In,
    InNetwork,
    IsNull,
    IsTrue,
    Like,
    Predicate,
    RLike,
    walk,
)
from matchmill.language.flatten import flatten_event
from matchmill.language.operator_calls import has_calls
from matchmill.language.read import read_expression
from matchmill.language.values import INT64_MAX, INT64_MIN

__all__ = [
    "Domain",
    "Enumeration",
    "IntegerRange",
    "Integers",
    "PublicationType",
    "Strings",
    "TypedEngine",
]


# -- domains --------------------------------------------------------------------------------------


class Domain(Protocol):
    """A set of values; its text completes the sentence "it is not …"."""

    def __contains__(self, value: object) -> bool: ...

    @property
    def has_texts(self) -> bool:
        """Whether patterns of texts may be asked for."""
        ...


@dataclass(frozen=True)
class IntegerRange:
    """The whole numbers from `low` to `high`, both included."""

    low: int
    high: int

    def __post_init__(self) -> None:
        for bound in (self.low, self.high):
            if type(bound) is not int:
                raise InputError(f"a bound of a range of integers is one, not {shown(bound)}")
        if self.low > self.high:
            raise InputError(
                f"a range of integers from {self.low} to {self.high} is empty; give the lower one "
                "first"
            )

    def __contains__(self, value: object) -> bool:
        return _is_whole(value) and self.low <= value <= self.high  # type: ignore[operator]

    def __str__(self) -> str:
        return f"a whole number from {self.low:,} to {self.high:,}"

    @property
    def has_texts(self) -> bool:
        """Whether patterns of texts may be asked for."""
        return False


@dataclass(frozen=True)
class Integers:
    """All whole numbers of 64 bits."""

    def __contains__(self, value: object) -> bool:
        return _is_whole(value) and INT64_MIN <= value <= INT64_MAX  # type: ignore[operator]

    def __str__(self) -> str:
        return "a whole number"

    @property
    def has_texts(self) -> bool:
        """Whether patterns of texts may be asked for."""
        return False


@dataclass(frozen=True)
class Strings:
    """All texts."""

    def __contains__(self, value: object) -> bool:
        return isinstance(value, str)

    def __str__(self) -> str:
        return "a text"

    @property
    def has_texts(self) -> bool:
        """Whether patterns of texts may be asked for."""
        return True


class Enumeration:
    """Some values: texts, whole numbers, True and False."""

    def __init__(self, *values: str | int) -> None:
        for value in values:
            if type(value) not in (str, int, bool):
                raise InputError(
                    f"enumerated values are texts, whole numbers, True and False, not "
                    f"{shown(value)}"
                )
        # True and 1 are equal to Python, and different values of an event.
        self._values = {(type(value), value): value for value in values}
        if not values:
            raise InputError("an enumeration needs values: Enumeration('red', 'blue')")
        if len(self._values) < len(values):
            raise InputError(f"a value is enumerated twice in {shown(values)}")

    def __contains__(self, value: object) -> bool:
        if _is_whole(value):
            value = int(value)  # type: ignore[call-overload]
        return isinstance(value, str | int) and (type(value), value) in self._values

    def __str__(self) -> str:
        return "one of " + shown(list(self._values.values()))[1:-1]

    @property
    def has_texts(self) -> bool:
        """Whether patterns of texts may be asked for."""
        return any(kind is str for kind, _ in self._values)


def _is_whole(value: object) -> bool:
    """Whether this is a whole number; 3.0 is one, as it equals 3."""
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


# -- types ----------------------------------------------------------------------------------------


class PublicationType:
    """Attributes with their domains. Both checks return what they were given."""

    def __init__(self, domains: Mapping[str, Domain]) -> None:
        for name, domain in domains.items():
            if not isinstance(name, str) or not name:
                raise InputError(f"the name of an attribute is a text, not {shown(name)}")
            if not isinstance(domain, IntegerRange | Integers | Strings | Enumeration):
                raise InputError(
                    f"the domain of {name} is {shown(domain)}; give Integers(), IntegerRange(low, "
                    "high), Strings() or Enumeration(value, …)"
                )
        self._domains = dict(domains)

    def check_event(self, event: Any) -> Any:
        """Raise EventError unless an event is of this type."""
        for name, value in flatten_event(event).items():
            domain = self._domains.get(name)
            if domain is None:
                raise EventError(
                    f"the publication type has no attribute {shown(name)}"
                    + did_you_mean(name, self._domains),
                    hint=f"leave it out, or declare its domain; there are: {self._names()}",
                )
            if value not in domain:
                raise EventError(
                    f"{name} is {shown(value)}, which is not {domain}",
                    hint=f"send a value of the domain, or declare a wider domain for {name}",
                )
        return event

    def check_subscription(self, expression: Any) -> Any:
        """Raise ExpressionError unless an expression is about values of the domains."""
        parsed = read_expression(expression)
        if has_calls(parsed):
            raise ExpressionError(
                "a subscription to a publication type calls no operators",
                hint="keep it in an engine without a publication type",
            )
        for node, _ in walk(parsed):
            if isinstance(node, Predicate):
                self._check_condition(node)
        return expression

    def _check_condition(self, condition: Predicate) -> None:
        name = condition.name
        domain = self._domains.get(name)
        if domain is None:
            raise ExpressionError(
                f"the publication type has no attribute {shown(name)}"
                + did_you_mean(name, self._domains)
                + f", in the condition {condition}",
                hint=f"there are: {self._names()}",
            )
        if isinstance(condition, Contains) or getattr(condition, "any_element", False):
            raise ExpressionError(
                f"{name} is {domain}, not a list, in the condition {condition}",
                hint=f"compare {name} with a value",
            )
        if isinstance(condition, Like | RLike | InNetwork) and not domain.has_texts:
            raise ExpressionError(
                f"{name} is {domain}, not a text, in the condition {condition}",
                hint=f"compare {name} with a value",
            )
        for value in _values_of(condition):
            if value not in domain:
                raise ExpressionError(
                    f"{shown(value)} is not {domain}, the domain of {name}, in the condition "
                    f"{condition}",
                    hint=f"take a value of the domain, or declare a wider domain for {name}",
                )

    def _names(self) -> str:
        return ", ".join(sorted(self._domains)) or "none"


def _values_of(condition: Expression) -> Iterator[object]:
    """Yield the values that a condition compares with. Patterns are no values."""
    if isinstance(condition, Compare):
        yield condition.value
    elif isinstance(condition, In):
        yield from condition.values
    elif isinstance(condition, Between):
        yield from (condition.low, condition.high)
    elif isinstance(condition, IsTrue):
        yield True
    else:
        assert isinstance(condition, IsNull | Like | RLike | InNetwork)


class TypedEngine:
    """An engine behind a publication type: what does not fit never reaches it."""

    def __init__(self, engine: Engine, publication_type: PublicationType) -> None:
        self.engine = engine
        self.publication_type = publication_type

    def subscribe(self, id: Id, expression: Any, *, replace: bool = False) -> None:
        """Store a subscription that fits."""
        self.publication_type.check_subscription(expression)
        self.engine.subscribe(id, expression, replace=replace)

    def match(self, event: Any) -> set[Id]:
        """Return the ids of all subscriptions that an event satisfies, which fits."""
        return self.engine.match(self.publication_type.check_event(event))

    def match_many(self, events: Iterable[Any]) -> Matches:
        """Return the matches of many events, all of which fit; the first that does not raises."""
        checked = []
        for n, event in enumerate(events):
            try:
                checked.append(self.publication_type.check_event(event))
            except EventError as error:
                error.message = f"event {n}: {error.message}"
                raise
        return self.engine.match_many(checked)
