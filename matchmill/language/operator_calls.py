"""Calls of operators, variables, and constraints on what variables are bound to.

    Call        locIn('Bronx'), mobPattern(?people): a registered operator, asked about the event.
                An argument is a literal, or a variable that the operator binds
    Constraint  ?y > 2 * ?z: a comparison of terms
    term        a literal, a Variable, or Arithmetic on two terms

Variables are local to an expression. It is true for an event if there is an assignment of values to
variables under which it is true; `operators/` finds it. This module only defines such conditions,
and the truth of a constraint for given values.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from matchmill.errors import ExpressionError, shown
from matchmill.language.expression import (
    COMPARE,
    OPPOSITES,
    Expression,
    Operator,
    literal_text,
    name_text,
    walk,
)
from matchmill.language.values import Region, Value, check_literal, domain_value, region_of

__all__ = [
    "MOST_SIGNS",
    "Arithmetic",
    "Call",
    "Constraint",
    "Sign",
    "Term",
    "Variable",
    "calls_of",
    "check_call",
    "check_constraint",
    "has_calls",
    "holds",
    "term_value",
    "variables_of_term",
]

Sign: TypeAlias = Literal["+", "-", "*", "/"]
Number: TypeAlias = int | float | Fraction

MOST_SIGNS = 100  # + - * / in one constraint: terms are walked by recursion
_MOST_BITS = 4096  # of an intermediate whole number; beyond it a term has no value


@dataclass(frozen=True, slots=True)
class Variable:
    """`?people`."""

    name: str

    def __str__(self) -> str:
        return f"?{self.name}"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`2 * ?z`."""

    sign: Sign
    left: Term
    right: Term

    def __str__(self) -> str:
        is_product = self.sign in "*/"
        left, right = _term_text(self.left), _term_text(self.right)
        if is_product and _is_sum(self.left):
            left = f"({left})"
        if isinstance(self.right, Arithmetic) and (is_product or _is_sum(self.right)):
            right = f"({right})"
        return f"{left} {self.sign} {right}"


Term: TypeAlias = Value | Variable | Arithmetic


def _term_text(term: Term) -> str:
    return str(term) if isinstance(term, (Variable, Arithmetic)) else literal_text(term)


def _is_sum(term: Term) -> bool:
    return isinstance(term, Arithmetic) and term.sign in "+-"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call(Expression):
    """`mobPattern(?people)`."""

    name: str
    arguments: tuple[Value | Variable, ...]

    @property
    def variables(self) -> tuple[str, ...]:
        """The distinct variables, in the order of their first occurrences."""
        named = (a.name for a in self.arguments if isinstance(a, Variable))
        return tuple(dict.fromkeys(named))

    def __str__(self) -> str:
        return f"{name_text(self.name)}({', '.join(map(_term_text, self.arguments))})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Constraint(Expression):
    """`?y > 2 * ?z`."""

    left: Term
    op: Operator
    right: Term

    @property
    def variables(self) -> tuple[str, ...]:
        """The distinct variables, in the order of their first occurrences."""
        both = (*variables_of_term(self.left), *variables_of_term(self.right))
        return tuple(dict.fromkeys(both))

    @property
    def negated(self) -> Constraint:
        """The constraint that is true where this one is false; both are unknown together."""
        return Constraint(self.left, OPPOSITES[self.op], self.right)

    def __str__(self) -> str:
        return f"{_term_text(self.left)} {self.op} {_term_text(self.right)}"


def variables_of_term(term: Term) -> Iterator[str]:
    """Yield the names of a term's variables, from left to right."""
    stack = [term]
    while stack:
        part = stack.pop()
        if isinstance(part, Variable):
            yield part.name
        elif isinstance(part, Arithmetic):
            stack += (part.right, part.left)


def calls_of(expression: Expression) -> Iterator[Call]:
    """Yield all calls in an expression."""
    return (node for node, _ in walk(expression) if isinstance(node, Call))


def has_calls(expression: Expression) -> bool:
    """Whether an expression has calls of operators, or constraints on their variables."""
    return any(isinstance(node, (Call, Constraint)) for node, _ in walk(expression))


# -- checks of what was built by hand -------------------------------------------------------------


def check_call(call: Call) -> None:
    """Raise ExpressionError for a call that no text could have given."""
    if not isinstance(call.name, str) or not call.name:
        raise ExpressionError(f"an operator's name is a non-empty string, not {shown(call.name)}")
    check_literal(call.name)
    for argument in call.arguments:
        _check_leaf(argument)


def check_constraint(constraint: Constraint) -> None:
    """Raise ExpressionError for a constraint that no text could have given."""
    if constraint.op not in OPPOSITES:
        raise ExpressionError(f"there is no operator {shown(constraint.op)}")
    if not constraint.variables:
        raise ExpressionError("a constraint compares at least one variable")
    stack = [constraint.left, constraint.right]
    n_signs = 0
    while stack:
        term = stack.pop()
        if not isinstance(term, Arithmetic):
            _check_leaf(term)
            continue
        if term.sign not in _SIGNS:
            raise ExpressionError(f"arithmetic is done with + - * /, not {shown(term.sign)}")
        n_signs += 1
        if n_signs > MOST_SIGNS:
            raise ExpressionError(f"a constraint has more than {MOST_SIGNS} signs + - * /")
        stack += (term.left, term.right)


def _check_leaf(leaf: Value | Variable) -> None:
    if not isinstance(leaf, Variable):
        check_literal(leaf)
    elif not leaf.name.isidentifier():
        raise ExpressionError(f"a variable's name is a word, not {shown(leaf.name)}")


# -- the truth of a constraint --------------------------------------------------------------------


def holds(constraint: Constraint, values: Mapping[str, Value]) -> bool:
    """Whether a constraint is TRUE for values of its variables.

    It is not where values of different types are compared, or where anything but numbers is
    calculated with.
    """
    left, right = term_value(constraint.left, values), term_value(constraint.right, values)
    if left is None or right is None:
        return False
    kinds = [Region.NUMBER if isinstance(v, Fraction) else region_of(v) for v in (left, right)]
    if kinds[0] != kinds[1]:
        return False
    a, b = (v if isinstance(v, Fraction) else domain_value(v) for v in (left, right))
    return COMPARE[constraint.op](a, b)


def term_value(term: Term, values: Mapping[str, Value]) -> Value | Fraction | None:
    """Return the value of a term for values of its variables; None if it has none."""
    if isinstance(term, Variable):
        return values[term.name]
    if not isinstance(term, Arithmetic):
        return term
    left = _number(term_value(term.left, values))
    right = _number(term_value(term.right, values))
    if left is None or right is None:
        return None
    try:
        result = _SIGNS[term.sign](left, right)
    except (ZeroDivisionError, OverflowError):
        return None
    return result if _is_usable(result) else None


def _number(value: Value | Decimal | Fraction | None) -> Number | None:
    if isinstance(value, Decimal):
        return Fraction(value)
    is_number = isinstance(value, (int, float, Fraction)) and not isinstance(value, bool)
    return value if is_number else None  # type: ignore[return-value]


def _is_usable(number: Number) -> bool:
    if isinstance(number, float):
        return math.isfinite(number)
    if isinstance(number, Fraction):
        return max(number.numerator.bit_length(), number.denominator.bit_length()) < _MOST_BITS
    return number.bit_length() < _MOST_BITS


def _divided(left: Number, right: Number) -> Number:
    """Divide, exactly for whole numbers: an id must not lose its last digits."""
    if isinstance(left, float) or isinstance(right, float):
        return left / right
    return Fraction(left) / right


_SIGNS: dict[Sign, Callable[[Any, Any], Number]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
}
