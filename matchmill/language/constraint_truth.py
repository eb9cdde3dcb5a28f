"""The truth of a constraint for given values of its variables: TRUE, FALSE or UNKNOWN.

A term has no value where anything but numbers is calculated with, where a number is divided by
zero, where a function fails, and where the event does not have the attribute. What compares such a
term, or values of different types, is unknown, as for conditions on attributes (`evaluate`).

Whole numbers are exact, also when they are divided: an id must not lose its last digits.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from matchmill.language.expression import COMPARE, Operator
from matchmill.language.operator_calls import (
    Constraint,
    Membership,
    NullTest,
    Range,
    Restriction,
    TextTest,
)
from matchmill.language.predicate_truth import Truth, evaluate_predicate
from matchmill.language.term_functions import apply_function
from matchmill.language.terms import (
    Applied,
    Arithmetic,
    EventAttribute,
    Given,
    Sign,
    Term,
    Variable,
)
from matchmill.language.values import Region, domain_value, region_of

__all__ = ["calculated", "holds", "term_value", "truth_of_constraint"]

Number: TypeAlias = int | float | Fraction

_MOST_BITS = 4096  # of an intermediate whole number; beyond it a term has no value


def holds(constraint: Restriction, values: Mapping[str, Any]) -> bool:
    """Whether a constraint is TRUE for values of its variables."""
    return truth_of_constraint(constraint, values) is True


def truth_of_constraint(constraint: Restriction, values: Mapping[str, Any]) -> Truth:
    """Return the truth of a constraint, without attributes of the event, for values."""
    first, *others = [term_value(term, values) for term in constraint.terms]
    if isinstance(constraint, Constraint):
        return _compared(constraint.op, first, others[0])
    if isinstance(constraint, NullTest):
        return (first is None) != constraint.negated
    if isinstance(constraint, Range):
        above, below = _compared(">=", first, others[0]), _compared("<=", first, others[1])
        if False in (above, below):  # as in SQL, also if the other end has no value
            return constraint.negated
        return None if None in (above, below) else not constraint.negated
    if isinstance(constraint, Membership):
        truths = [_compared("=", first, value) for value in others]
        known = [truth for truth in truths if truth is not None]
        return (any(known) != constraint.negated) if known else None
    assert isinstance(constraint, TextTest)
    return evaluate_predicate(constraint.test, None if isinstance(first, Fraction) else first)


def _compared(op: Operator, left: Any, right: Any) -> Truth:
    if left is None or right is None:
        return None
    kinds = [Region.NUMBER if isinstance(v, Fraction) else region_of(v) for v in (left, right)]
    if kinds[0] != kinds[1] or kinds[0] in (Region.LIST, Region.OBJECT):
        return None
    a, b = (v if isinstance(v, Fraction) else domain_value(v) for v in (left, right))
    return COMPARE[op](a, b)


# -- the value of a term --------------------------------------------------------------------------


def term_value(term: Term, values: Mapping[str, Any]) -> Any:
    """Return the value of a term, maybe a Fraction, for values of its variables; None if none."""
    if isinstance(term, Variable):
        return values[term.name]
    if isinstance(term, Given):
        return term.value
    if isinstance(term, Arithmetic):
        one, other = term_value(term.left, values), term_value(term.right, values)
        return calculated(term.sign, one, other)
    if isinstance(term, Applied):
        arguments = [term_value(argument, values) for argument in term.arguments]
        return None if None in map(_or_none, arguments) else apply_function(term, arguments)
    assert not isinstance(term, EventAttribute), "the event is known by now"
    return term


def _or_none(value: Any) -> bool | None:
    return None if value is None else True  # objects may compare as they like


def calculated(sign: Sign, one: Any, other: Any) -> Number | None:
    """Return the result of a sign between two values; None if it has none."""
    left, right = _number(one), _number(other)
    if left is None or right is None:
        return None
    try:
        result = _SIGNS[sign](left, right)
    except (ZeroDivisionError, OverflowError, ValueError):
        return None
    return result if _is_usable(result) else None


def _number(value: Any) -> Number | None:
    if isinstance(value, Decimal):
        return Fraction(value)
    is_number = isinstance(value, (int, float, Fraction)) and not isinstance(value, bool)
    return value if is_number else None


def _is_usable(number: Number) -> bool:
    if isinstance(number, float):
        return math.isfinite(number)
    if isinstance(number, Fraction):
        return max(number.numerator.bit_length(), number.denominator.bit_length()) < _MOST_BITS
    return number.bit_length() < _MOST_BITS


def _divided(left: Number, right: Number) -> Number:
    if isinstance(left, float) or isinstance(right, float):
        return left / right
    return Fraction(left) / right


def _remainder(left: Any, right: Any) -> Number:
    """Return what is left of a division, with the sign of what is divided, as in SQL."""
    if isinstance(left, float) or isinstance(right, float):
        return math.fmod(left, right)
    rest: int | Fraction = abs(left) % abs(right)
    return -rest if left < 0 else rest


_SIGNS: dict[Sign, Callable[[Any, Any], Number]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
    "%": _remainder,
}
