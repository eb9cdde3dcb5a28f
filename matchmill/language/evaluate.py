"""The oracle: what an expression means, as plainly as possible.

`evaluate` returns True, False or None (unknown), by SQL's three-valued logic. It is slow and
obvious on purpose; everything else in the package is compared with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from matchmill.errors import ExpressionError
from matchmill.language.dialects.pattern import DialectPattern
from matchmill.language.expression import (
    COMPARE,
    And,
    Between,
    Compare,
    Constant,
    Contains,
    Expression,
    In,
    InNetwork,
    IsNull,
    IsTrue,
    Like,
    Not,
    Operator,
    Or,
    Predicate,
    RLike,
    within_the_stack,
)
from matchmill.language.flatten import Event, flatten_record
from matchmill.language.patterns import (
    address_text,
    compile_regex,
    like_matches,
    like_tokens,
    network_bounds,
)
from matchmill.language.read import ExpressionSource, read_expression
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

__all__ = ["Truth", "evaluate", "evaluate_flat", "evaluate_predicate"]

Truth = bool | None


@within_the_stack
def evaluate(expression: ExpressionSource, event: Event) -> Truth:
    """Return the truth of an expression for one event, by three-valued logic.

    Parameters
    ----------
    expression : str, mapping or Expression
        Text, a JSON pattern, or an Expression.
    event : mapping or other record
        One event; nested objects are allowed.

    Returns
    -------
    bool or None
        None is unknown: an attribute is missing, or of another type.

    Raises
    ------
    ExpressionError
        If the expression cannot be read.
    EventError
        If this is no event, or if a value cannot be used.

    Examples
    --------
    >>> import matchmill as mm
    >>> mm.evaluate("price < 580 and origin = 'JFK'", {"price": 75, "origin": "JFK"})
    True
    >>> print(mm.evaluate("price < 580", {}))
    None
    """
    if not isinstance(expression, Expression):
        expression = read_expression(expression)
    return evaluate_flat(expression, flatten_record(event))


def evaluate_flat(expression: Expression, event: Mapping[str, EventValue]) -> Truth:
    """Return the truth for an event that `flatten_event` or `flatten_record` returned."""
    if isinstance(expression, Constant):
        return expression.value
    if isinstance(expression, Not):
        truth = evaluate_flat(expression.operand, event)
        return None if truth is None else not truth
    if isinstance(expression, And):
        truths = [evaluate_flat(part, event) for part in expression.operands]
        return False if False in truths else None if None in truths else True
    if isinstance(expression, Or):
        truths = [evaluate_flat(part, event) for part in expression.operands]
        return True if True in truths else None if None in truths else False
    if isinstance(expression, DialectPattern):
        return expression.holds(event)
    if not isinstance(expression, Predicate):
        raise ExpressionError(
            f"`{expression}` calls an operator, which only an engine does",
            hint="subscribe to the expression and match the event, or use Engine.explain",
        )
    return evaluate_predicate(expression, event.get(expression.name))


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
