"""The oracle's conditions: the truth of one condition for the value of its attribute."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from matchmill.language.expression import (
    COMPARE,
    Between,
    Compare,
    Contains,
    In,
    InNetwork,
    IsNull,
    IsTrue,
    Like,
    Operator,
    Predicate,
    RLike,
)
from matchmill.language.patterns import (
    address_text,
    compile_regex,
    like_matches,
    like_tokens,
    network_bounds,
)
from matchmill.language.values import (
    TIMES,
    EventValue,
    Region,
    Value,
    domain_value,
    fold_case,
    read_time,
    region_of,
)

__all__ = ["Truth", "evaluate_predicate"]

Truth = bool | None


def evaluate_predicate(predicate: Predicate, value: EventValue | None) -> Truth:
    """Return the truth of a condition for the value of its attribute; None means absent."""
    region = region_of(value)
    if isinstance(predicate, IsNull):
        return (region == Region.ABSENT) != predicate.negated
    if value is None or region == Region.ABSENT:
        return None
    if isinstance(predicate, IsTrue):
        return bool(value) if region == Region.BOOLEAN else None
    if isinstance(predicate, Contains):
        return _contains(predicate, value) if isinstance(value, (list, tuple)) else None
    if getattr(predicate, "any_element", False):
        if not isinstance(value, (list, tuple)):
            return None
        return any(_on_value(predicate, element) is True for element in value)
    return None if isinstance(value, (list, tuple)) else _on_value(predicate, value)


def _contains(predicate: Contains, elements: list[Any] | tuple[Any, ...]) -> bool:
    found = [any(_equal(e, value) is True for e in elements) for value in predicate.values]
    if predicate.mode == "all":
        return all(found)
    return any(found) if predicate.mode == "any" else not any(found)


def _on_value(predicate: Predicate, value: Value | Decimal) -> Truth:
    """Return the truth of a condition for one present scalar."""
    if isinstance(predicate, Compare):
        return _compare(predicate.op, value, predicate.value)
    if isinstance(predicate, In):
        truths = [_equal(value, v) for v in predicate.values]
        known = [t for t in truths if t is not None]  # values of other types are left out
        return (any(known) != predicate.negated) if known else None
    if isinstance(predicate, Between):
        above = _compare(">=", value, predicate.low)
        below = _compare("<=", value, predicate.high)
        if above is None or below is None:
            return None
        return (above and below) != predicate.negated
    if not isinstance(value, str):
        return None
    if isinstance(predicate, Like):
        if predicate.ignore_case:
            fits = like_matches(like_tokens(fold_case(predicate.pattern)), fold_case(value))
        else:
            fits = like_matches(like_tokens(predicate.pattern), value)
        return fits != predicate.negated
    if isinstance(predicate, RLike):
        return bool(compile_regex(predicate.pattern).search(value)) != predicate.negated
    assert isinstance(predicate, InNetwork)
    address = address_text(value)
    if address is None:
        return None
    bounds = [network_bounds(n) for n in predicate.networks]
    return any(low <= address <= high for low, high in bounds) != predicate.negated


def _equal(a: Value | Decimal, b: Value) -> Truth:
    return _compare("=", a, b)


def _compare(op: Operator, a: Value | Decimal, b: Value) -> Truth:
    if isinstance(a, str) and region_of(b) in TIMES:
        time = read_time(a)  # a text in ISO 8601 is compared as the time that it stands for
        if time is None:
            return None
        a = time
    if region_of(a) != region_of(b):
        return None
    return COMPARE[op](domain_value(a), domain_value(b))
