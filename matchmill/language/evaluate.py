"""The oracle: what an expression means, as plainly as possible.

`evaluate` returns True, False or None (unknown), by SQL's three-valued logic. It is slow and
obvious on purpose; everything else in the package is compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from matchmill.errors import ExpressionError
from matchmill.language.constraint_truth import truth_of_constraint
from matchmill.language.dialects.pattern import DialectPattern
from matchmill.language.expression import (
    ANY_ATTRIBUTE,
    And,
    Constant,
    Expression,
    Not,
    Or,
    Predicate,
    TruthTest,
    within_the_stack,
)
from matchmill.language.flatten import Event, flatten_record
from matchmill.language.operator_calls import Restriction
from matchmill.language.predicate_truth import Truth, evaluate_predicate
from matchmill.language.read import ExpressionSource, read_expression
from matchmill.language.values import (
    EventValue,
)

__all__ = [
    "Truth",
    "attributes_of",
    "evaluate",
    "evaluate_flat",
    "evaluate_predicate",
    "texts_of_event",
    "value_of",
]


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
    if isinstance(expression, TruthTest):
        is_so = evaluate_flat(expression.operand, event) is expression.truth
        return is_so != expression.negated
    if isinstance(expression, DialectPattern):
        return expression.holds(event)
    if isinstance(expression, Restriction) and not expression.variables:
        return truth_of_constraint(expression.for_event(attributes_of(event)), {})
    if not isinstance(expression, Predicate):
        raise ExpressionError(
            f"`{expression}` calls an operator, which only an engine does",
            hint="subscribe to the expression and match the event, or use Engine.explain",
        )
    return evaluate_predicate(expression, value_of(event, expression.name))


def attributes_of(event: Mapping[str, EventValue]) -> Callable[[str], Any]:
    """Return the function from names to values that terms are calculated with."""

    def value(name: str) -> Any:
        found = event.get(name)
        return tuple(found) if isinstance(found, list) else found

    return value


def value_of(event: Mapping[str, EventValue], name: str) -> EventValue | None:
    """Return the value of an attribute; of any attribute, all texts of the event."""
    return texts_of_event(event) if name == ANY_ATTRIBUTE else event.get(name)


def texts_of_event(event: Mapping[str, EventValue]) -> list[str]:
    """Return all texts that a flat event has as values or as elements of lists."""
    texts: list[str] = []
    for value in event.values():
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, (list, tuple)):
            texts += (element for element in value if isinstance(element, str))
    return texts
