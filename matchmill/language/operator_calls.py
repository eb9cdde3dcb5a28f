"""Calls of operators, and constraints on what their variables are bound to.

    Call         locIn('Bronx'), mobPattern(?people): a registered operator, asked about the event.
                 An argument is a literal, or a variable that the operator binds
    Restriction  what is required of terms (`terms`), one of these:
      Constraint   ?y > 2 * ?z              a comparison
      Range        ?x between 1 and ?y      both ends included
      Membership   ?x in (1, price)
      TextTest     lower(?x) like 'a%'      also ilike, rlike, in cidr
      NullTest     ?x / ?y is null          the term has no value

A restriction without variables is about attributes of the event alone: `price + tax > 5`. It is a
condition like any other, which is evaluated on candidates.

Variables are local to an expression. It is true for an event if there is an assignment of values to
variables under which it is true; `operators/` finds it. This module only defines such conditions;
their truth for given values is `constraint_truth`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from matchmill.errors import ExpressionError, shown
from matchmill.language.expression import (
    OPPOSITES,
    Expression,
    InNetwork,
    Like,
    Operator,
    RLike,
    check_predicate,
    name_text,
    walk,
)
from matchmill.language.terms import (
    MOST_SIGNS,
    Applied,
    Arithmetic,
    EventAttribute,
    Sign,
    Term,
    Variable,
    check_leaf,
    check_terms,
    parts_of_terms,
    replace_attributes,
    term_text,
)
from matchmill.language.values import Value, check_literal

__all__ = [
    "MOST_SIGNS",
    "TESTED",
    "Applied",
    "Arithmetic",
    "Call",
    "Constraint",
    "EventAttribute",
    "Membership",
    "NullTest",
    "Range",
    "Restriction",
    "Sign",
    "Term",
    "TextTest",
    "Variable",
    "calls_of",
    "check_call",
    "check_constraint",
    "functions_of",
    "has_calls",
    "has_restrictions",
    "required_names",
]

TESTED = "x"  # the name in the condition of a TextTest, which stands for the term


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
        return f"{name_text(self.name)}({', '.join(map(term_text, self.arguments))})"


class Restriction(Expression):
    """What is required of terms."""

    __slots__ = ()

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms, in the order in which they are written."""
        raise NotImplementedError

    def with_terms(self, terms: tuple[Term, ...]) -> Restriction:
        """Return the same requirement of other terms."""
        raise NotImplementedError

    @property
    def opposite(self) -> Restriction:
        """What is true where this is false; both are unknown together."""
        return replace(self, negated=not self.negated)  # type: ignore[type-var, attr-defined]

    @property
    def variables(self) -> tuple[str, ...]:
        """The distinct variables, in the order of their first occurrences."""
        found = (p.name for p in parts_of_terms(self.terms) if isinstance(p, Variable))
        return tuple(dict.fromkeys(found))

    @property
    def event_attributes(self) -> frozenset[str]:
        """The attributes of the event that it looks at."""
        parts = parts_of_terms(self.terms)
        return frozenset(part.name for part in parts if isinstance(part, EventAttribute))

    @property
    def n_steps(self) -> int:
        """How much there is to calculate."""
        parts = parts_of_terms(self.terms)
        return len(self.terms) - 2 + sum(isinstance(p, (Arithmetic, Applied)) for p in parts)

    def for_event(self, value_of: Callable[[str], Any]) -> Restriction:
        """Return it with the values of an event in place of attributes."""
        if not self.event_attributes:
            return self
        return self.with_terms(tuple(replace_attributes(term, value_of) for term in self.terms))


def _not(negated: bool) -> str:
    return "not " if negated else ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Constraint(Restriction):
    """`?y > 2 * ?z`."""

    left: Term
    op: Operator
    right: Term

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms."""
        return self.left, self.right

    def with_terms(self, terms: tuple[Term, ...]) -> Constraint:
        """Return it about other terms."""
        return Constraint(terms[0], self.op, terms[1])

    @property
    def opposite(self) -> Constraint:
        """What is true where this is false."""
        return Constraint(self.left, OPPOSITES[self.op], self.right)

    def __str__(self) -> str:
        return f"{term_text(self.left)} {self.op} {term_text(self.right)}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Range(Restriction):
    """`?x between 1 and ?y`."""

    term: Term
    low: Term
    high: Term
    negated: bool = False

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms."""
        return self.term, self.low, self.high

    def with_terms(self, terms: tuple[Term, ...]) -> Range:
        """Return it about other terms."""
        term, low, high = terms
        return Range(term, low, high, self.negated)

    def __str__(self) -> str:
        ends = f"{term_text(self.low)} and {term_text(self.high)}"
        return f"{term_text(self.term)} {_not(self.negated)}between {ends}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Membership(Restriction):
    """`?x in (1, 2, price)`."""

    term: Term
    values: tuple[Term, ...]
    negated: bool = False

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms."""
        return self.term, *self.values

    def with_terms(self, terms: tuple[Term, ...]) -> Membership:
        """Return it about other terms."""
        return Membership(terms[0], terms[1:], self.negated)

    def __str__(self) -> str:
        values = ", ".join(map(term_text, self.values))
        return f"{term_text(self.term)} {_not(self.negated)}in ({values})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TextTest(Restriction):
    """`?x like 'a%'`; the test is a condition on an attribute that is called `TESTED`."""

    term: Term
    test: Like | RLike | InNetwork

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms."""
        return (self.term,)

    def with_terms(self, terms: tuple[Term, ...]) -> TextTest:
        """Return it about other terms."""
        return TextTest(terms[0], self.test)

    @property
    def opposite(self) -> TextTest:
        """What is true where this is false."""
        return TextTest(self.term, replace(self.test, negated=not self.test.negated))

    def __str__(self) -> str:
        return term_text(self.term) + str(self.test)[len(TESTED) :]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NullTest(Restriction):
    """`?x / ?y is null`; never unknown."""

    term: Term
    negated: bool = False

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms."""
        return (self.term,)

    def with_terms(self, terms: tuple[Term, ...]) -> NullTest:
        """Return it about other terms."""
        return NullTest(terms[0], self.negated)

    def __str__(self) -> str:
        return f"{term_text(self.term)} is {_not(self.negated)}null"


# -- what an expression needs ---------------------------------------------------------------------


def calls_of(expression: Expression) -> Iterator[Call]:
    """Yield all calls in an expression."""
    return (node for node, _ in walk(expression) if isinstance(node, Call))


def functions_of(expression: Expression) -> Iterator[Applied]:
    """Yield all functions of terms in an expression."""
    for node, _ in walk(expression):
        if isinstance(node, Restriction):
            yield from (p for p in parts_of_terms(node.terms) if isinstance(p, Applied))


def required_names(expression: Expression) -> set[str]:
    """Return the names of the operators, and of the functions with `()` behind, that it needs."""
    functions = {f"{applied.function}()" for applied in functions_of(expression)}
    return functions | {call.name for call in calls_of(expression)}


def has_calls(expression: Expression) -> bool:
    """Whether an expression has calls of operators, or constraints on their variables."""
    return any(_is_about_calls(node) for node, _ in walk(expression))


def _is_about_calls(node: Expression) -> bool:
    return isinstance(node, Call) or (isinstance(node, Restriction) and bool(node.variables))


def has_restrictions(expression: Expression) -> bool:
    """Whether an expression calculates or compares terms, of variables or of attributes."""
    return any(isinstance(node, Restriction) for node, _ in walk(expression))


# -- checks of what was built by hand -------------------------------------------------------------


def check_call(call: Call) -> None:
    """Raise ExpressionError for a call that no text could have given."""
    if not isinstance(call.name, str) or not call.name:
        raise ExpressionError(f"an operator's name is a non-empty string, not {shown(call.name)}")
    check_literal(call.name)
    for argument in call.arguments:
        if isinstance(argument, (Arithmetic, Applied, EventAttribute)):
            raise ExpressionError(f"an argument is a literal or a variable, not {argument}")
        check_leaf(argument)


def check_constraint(constraint: Restriction) -> None:
    """Raise ExpressionError for a constraint that no text could have given."""
    if isinstance(constraint, Constraint) and constraint.op not in OPPOSITES:
        raise ExpressionError(f"there is no operator {shown(constraint.op)}")
    if isinstance(constraint, Membership) and not constraint.values:
        raise ExpressionError("a list of values must not be empty")
    check_terms(constraint.terms)
    if not constraint.variables and not constraint.event_attributes:
        raise ExpressionError("a constraint is about at least one variable or attribute")
    if isinstance(constraint, TextTest):
        check_predicate(constraint.test)
