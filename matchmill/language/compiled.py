"""Expressions as functions of an event, for candidates that an index is not sure of.

    a > b + 1 and c = 'x'   ──►   all_of(greater(a, plus(b, 1)), equals(c, 'x'))

Each node becomes a closure once, so that an event costs calls and no look at the tree. Numbers,
which are nearly all, are calculated and compared directly; everything else is left to the oracle's
own functions (`constraint_truth`, `predicate_truth`), which say what it means. `and` and `or` end
with the first operand that decides.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from matchmill.language.constraint_truth import calculated, truth_of_constraint
from matchmill.language.evaluate import evaluate_flat, value_of
from matchmill.language.expression import COMPARE, And, Expression, Not, Or, Predicate, TruthTest
from matchmill.language.operator_calls import Constraint, Restriction
from matchmill.language.predicate_truth import Truth, evaluate_predicate
from matchmill.language.term_functions import apply_function
from matchmill.language.terms import Applied, Arithmetic, EventAttribute, Given, Term

__all__ = ["Judgement", "compiled"]

Judgement: TypeAlias = Callable[[Mapping[str, Any]], Truth]
_Value: TypeAlias = Callable[[Mapping[str, Any]], Any]

_NUMBERS = frozenset((int, float))
_QUICK = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_MOST = 1 << 128  # of whole numbers that are calculated with directly
_LARGEST = 1.7976931348623157e308


def compiled(expression: Expression) -> Judgement:
    """Return the function that judges events which `flatten_record` returned."""
    if isinstance(expression, And):
        return _all_of([compiled(part) for part in expression.operands])
    if isinstance(expression, Or):
        return _any_of([compiled(part) for part in expression.operands])
    if isinstance(expression, Not):
        return _opposite(compiled(expression.operand))
    if isinstance(expression, TruthTest):
        return _test(compiled(expression.operand), expression.truth, expression.negated)
    if isinstance(expression, Predicate):
        return _condition(expression)
    if isinstance(expression, Constraint) and not expression.variables:
        return _comparison(expression)
    if isinstance(expression, Restriction) and not expression.variables:
        return _restriction(expression)
    return lambda event: evaluate_flat(expression, event)


def _all_of(parts: list[Judgement]) -> Judgement:
    def judge(event: Mapping[str, Any]) -> Truth:
        truth: Truth = True
        for part in parts:
            one = part(event)
            if one is False:
                return False
            if one is None:
                truth = None
        return truth

    return judge


def _any_of(parts: list[Judgement]) -> Judgement:
    def judge(event: Mapping[str, Any]) -> Truth:
        truth: Truth = False
        for part in parts:
            one = part(event)
            if one is True:
                return True
            if one is None:
                truth = None
        return truth

    return judge


def _opposite(part: Judgement) -> Judgement:
    def judge(event: Mapping[str, Any]) -> Truth:
        truth = part(event)
        return None if truth is None else not truth

    return judge


def _test(part: Judgement, wanted: Truth, negated: bool) -> Judgement:
    return lambda event: (part(event) is wanted) != negated


def _condition(predicate: Predicate) -> Judgement:
    name = predicate.name
    return lambda event: evaluate_predicate(predicate, value_of(event, name))


def _comparison(constraint: Constraint) -> Judgement:
    left, right = _value(constraint.left), _value(constraint.right)
    op, compare = constraint.op, COMPARE[constraint.op]

    def judge(event: Mapping[str, Any]) -> Truth:
        a, b = left(event), right(event)
        if type(a) in _NUMBERS and type(b) in _NUMBERS and a == a and b == b:
            return compare(a, b)
        return truth_of_constraint(Constraint(Given(a), op, Given(b)), {})

    return judge


def _restriction(restriction: Restriction) -> Judgement:
    values = [_value(term) for term in restriction.terms]

    def judge(event: Mapping[str, Any]) -> Truth:
        given = tuple(Given(value(event)) for value in values)
        return truth_of_constraint(restriction.with_terms(given), {})

    return judge


# -- terms ----------------------------------------------------------------------------------------


def _value(term: Term) -> _Value:
    if isinstance(term, EventAttribute):
        return _attribute(term.name)
    if isinstance(term, Arithmetic):
        return _arithmetic(term)
    if isinstance(term, Applied):
        return _applied(term)
    return lambda event: term


def _attribute(name: str) -> _Value:
    def value(event: Mapping[str, Any]) -> Any:
        found = event.get(name)
        return tuple(found) if type(found) is list else found

    return value


def _arithmetic(term: Arithmetic) -> _Value:
    left, right, sign = _value(term.left), _value(term.right), term.sign
    quick = _QUICK.get(sign)

    def value(event: Mapping[str, Any]) -> Any:
        a, b = left(event), right(event)
        if quick is not None and type(a) in _NUMBERS and type(b) in _NUMBERS:
            if type(a) is not type(b):  # a whole number may be too large for a double
                return calculated(sign, a, b)
            result = quick(a, b)
            if type(result) is float:
                return result if -_LARGEST <= result <= _LARGEST else None
            if -_MOST < result < _MOST:
                return result
        return calculated(sign, a, b)

    return value


def _applied(term: Applied) -> _Value:
    arguments = [_value(argument) for argument in term.arguments]

    def value(event: Mapping[str, Any]) -> Any:
        given = [argument(event) for argument in arguments]
        return None if any(one is None for one in given) else apply_function(term, given)

    return value
