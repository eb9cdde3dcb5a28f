"""Terms: what a constraint calculates from variables, literals and attributes of the event.

    580, 'a'                 a literal
    ?people                  a Variable, which a call of an operator binds
    price                    an EventAttribute: the value that the event has, if it has one
    2 * ?z % 7               Arithmetic on two terms
    lower(?name)             Applied: a function of terms (`term_functions`)

`Given` stands in place of an EventAttribute once the event is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from matchmill.errors import ExpressionError, shown
from matchmill.language.expression import literal_text, name_text
from matchmill.language.values import Value, check_literal

__all__ = [
    "MOST_SIGNS",
    "Applied",
    "Arithmetic",
    "BuiltTerm",
    "EventAttribute",
    "Given",
    "Sign",
    "Term",
    "Variable",
    "check_terms",
    "parts_of_terms",
    "replace_attributes",
    "term_text",
]

Sign: TypeAlias = Literal["+", "-", "*", "/", "%"]

MOST_SIGNS = 100  # signs and functions in one constraint: terms are walked by recursion
_SUMS, _PRODUCTS = "+-", "*/%"


@dataclass(frozen=True, slots=True)
class Variable:
    """`?people`."""

    name: str

    def __str__(self) -> str:
        return f"?{self.name}"


@dataclass(frozen=True, slots=True)
class EventAttribute:
    """`price`."""

    name: str

    def __str__(self) -> str:
        return name_text(self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """The value that an event has for an attribute, or None. No text has it."""

    value: Any

    def __str__(self) -> str:
        return "a value of the event"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`2 * ?z`."""

    sign: Sign
    left: Term
    right: Term

    def __str__(self) -> str:
        is_product = self.sign in _PRODUCTS
        left, right = term_text(self.left), term_text(self.right)
        if is_product and _is_sum(self.left):
            left = f"({left})"
        if isinstance(self.right, Arithmetic) and (is_product or _is_sum(self.right)):
            right = f"({right})"
        return f"{left} {self.sign} {right}"


@dataclass(frozen=True, slots=True)
class Applied:
    """`lower(?name)`."""

    function: str
    arguments: tuple[Term, ...]

    def __str__(self) -> str:
        return f"{name_text(self.function)}({', '.join(map(term_text, self.arguments))})"


Term: TypeAlias = Value | Variable | EventAttribute | Given | Arithmetic | Applied


class BuiltTerm:
    """A term that is being built in Python (`term_builder`)."""

    __slots__ = ("term",)

    def __init__(self, term: Term) -> None:
        self.term = term

    def checked_term(self) -> Term:
        """Return the term; ExpressionError if it is none that has a value."""
        return self.term


def term_text(term: Term) -> str:
    """Return a term as it is written in an expression."""
    is_literal = not isinstance(term, (Variable, EventAttribute, Given, Arithmetic, Applied))
    return literal_text(term) if is_literal else str(term)  # type: ignore[arg-type]


def _is_sum(term: Term) -> bool:
    return isinstance(term, Arithmetic) and term.sign in _SUMS


def _below(term: Term) -> tuple[Term, ...]:
    if isinstance(term, Arithmetic):
        return term.left, term.right
    return term.arguments if isinstance(term, Applied) else ()


def parts_of_terms(terms: Iterable[Term]) -> Iterator[Term]:
    """Yield terms and all that they are made of, from left to right."""
    stack = list(terms)[::-1]
    while stack:
        term = stack.pop()
        yield term
        stack += _below(term)[::-1]


def replace_attributes(term: Term, value_of: Callable[[str], Any]) -> Term:
    """Return a term with the values of an event in place of its attributes."""
    if isinstance(term, EventAttribute):
        return Given(value_of(term.name))
    if isinstance(term, Arithmetic):
        left, right = (replace_attributes(part, value_of) for part in (term.left, term.right))
        return Arithmetic(term.sign, left, right)
    if isinstance(term, Applied):
        parts = tuple(replace_attributes(part, value_of) for part in term.arguments)
        return Applied(term.function, parts)
    return term


# -- checks of what was built by hand -------------------------------------------------------------


def check_terms(terms: Iterable[Term]) -> None:
    """Raise ExpressionError for terms that no text could have given."""
    n_signs = 0
    for term in parts_of_terms(terms):
        if isinstance(term, (Arithmetic, Applied)):
            n_signs += 1
            if n_signs > MOST_SIGNS:
                raise ExpressionError(
                    f"a constraint has more than {MOST_SIGNS} signs + - * / % and functions"
                )
            if isinstance(term, Arithmetic) and term.sign not in ("+", "-", "*", "/", "%"):
                raise ExpressionError(f"arithmetic is done with + - * / %, not {shown(term.sign)}")
        check_leaf(term)


def check_leaf(term: Any) -> None:
    """Raise ExpressionError for a variable, name or literal that no text could have given."""
    if isinstance(term, Variable):
        if not isinstance(term.name, str) or not term.name.isidentifier():
            raise ExpressionError(f"a variable's name is a word, not {shown(term.name)}")
    elif isinstance(term, (EventAttribute, Applied)):
        name = term.name if isinstance(term, EventAttribute) else term.function
        if not isinstance(name, str) or not name:
            raise ExpressionError(
                f"a name in a constraint is a non-empty string, not {shown(name)}"
            )
        check_literal(name)
    elif not isinstance(term, Arithmetic):
        check_literal(term)
