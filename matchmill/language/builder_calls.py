"""Calls and constraints from Python: `call("boats", var("n")) & (var("n") > 2 * attr("guards"))`.

Everything is checked as the parser checks it, so whatever is built here can be printed and parsed
again.
"""

from __future__ import annotations

from typing import Any, Literal, NoReturn, cast

from matchmill.errors import ExpressionError, shown
from matchmill.language.builder import Attribute, plain_value
from matchmill.language.expression import Expression, InNetwork, Like, Operator, RLike
from matchmill.language.operator_calls import (
    TESTED,
    Call,
    Constraint,
    Membership,
    NullTest,
    Range,
    TextTest,
    check_call,
    check_constraint,
)
from matchmill.language.terms import (
    Applied,
    Arithmetic,
    BuiltTerm,
    EventAttribute,
    Sign,
    Term,
    Variable,
)

__all__ = ["TermBuilder", "call", "var"]


def call(operator: str, *arguments: object) -> Expression:
    """Return the call of an operator, as a condition.

    Parameters
    ----------
    operator
        The name of the operator.
    arguments
        Literals, and variables (`var`).

    Raises
    ------
    ExpressionError
        If the name or an argument cannot be used.

    Examples
    --------
    >>> import matchmill as mm
    >>> mm.call("boats", "tour", mm.var("n")) & (mm.var("n") > 3)
    Expression("boats('tour', ?n) and ?n > 3")
    """
    made = Call(operator, tuple(cast("Any", _term(argument)) for argument in arguments))
    check_call(made)
    return made


def var(name: str) -> TermBuilder:
    """Return the variable of this name, to build calls and constraints with.

    Parameters
    ----------
    name
        The name, without the question mark.

    Returns
    -------
    TermBuilder
        Calculate with `+`, `-`, `*`, `/`, `%`; compare with `==`, `!=`, `<`, `<=`, `>`, `>=`; or
        call one of its methods. The other operand may be a literal, a variable or an attribute
        (`attr`).

    Raises
    ------
    ExpressionError
        If the name is no word.

    Examples
    --------
    >>> import matchmill as mm
    >>> mm.var("y") > 2 * mm.var("z")
    Expression("?y > 2 * ?z")
    >>> mm.var("n").is_in(1, mm.attr("size")) | (mm.var("s").apply("lower") == "a")
    Expression("?n in (1, size) or lower(?s) = 'a'")
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ExpressionError(f"a variable's name is a word, not {shown(name)}")
    return TermBuilder(Variable(name))


class TermBuilder(BuiltTerm):
    """A variable, or what is calculated from it."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"term({str(self.term)!r})"

    def __bool__(self) -> NoReturn:
        raise TypeError("a term has no truth value: compare it, and combine with & | ~")

    # -- arithmetic

    def __add__(self, other: object) -> TermBuilder:
        return self._with("+", other)

    def __radd__(self, other: object) -> TermBuilder:
        return self._behind("+", other)

    def __sub__(self, other: object) -> TermBuilder:
        return self._with("-", other)

    def __rsub__(self, other: object) -> TermBuilder:
        return self._behind("-", other)

    def __mul__(self, other: object) -> TermBuilder:
        return self._with("*", other)

    def __rmul__(self, other: object) -> TermBuilder:
        return self._behind("*", other)

    def __truediv__(self, other: object) -> TermBuilder:
        return self._with("/", other)

    def __rtruediv__(self, other: object) -> TermBuilder:
        return self._behind("/", other)

    def __mod__(self, other: object) -> TermBuilder:
        return self._with("%", other)

    def __rmod__(self, other: object) -> TermBuilder:
        return self._behind("%", other)

    def __neg__(self) -> TermBuilder:
        return self._behind("*", -1)

    def _with(self, sign: Sign, other: object) -> TermBuilder:
        return TermBuilder(Arithmetic(sign, self.term, _term(other)))

    def _behind(self, sign: Sign, other: object) -> TermBuilder:
        return TermBuilder(Arithmetic(sign, _term(other), self.term))

    def apply(self, function: str, *others: object) -> TermBuilder:
        """Apply a function to this term, and to further arguments.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.var("x").apply("least", 5) > 2
        Expression("least(?x, 5) > 2")
        """
        return TermBuilder(Applied(function, (self.term, *map(_term, others))))

    # -- comparisons

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return self._compared("=", other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return self._compared("!=", other)

    def __lt__(self, other: object) -> Expression:
        return self._compared("<", other)

    def __le__(self, other: object) -> Expression:
        return self._compared("<=", other)

    def __gt__(self, other: object) -> Expression:
        return self._compared(">", other)

    def __ge__(self, other: object) -> Expression:
        return self._compared(">=", other)

    def _compared(self, op: Operator, other: object) -> Expression:
        return _checked(Constraint(self.term, op, _term(other)))

    # -- tests

    def is_in(self, *values: object) -> Expression:
        """Require one of the values: literals, variables or attributes.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.var("x").is_in(1, mm.var("y"))
        Expression("?x in (1, ?y)")
        """
        given = values[0] if len(values) == 1 and isinstance(values[0], (list, tuple)) else values
        return _checked(Membership(self.term, tuple(map(_term, given))))

    def between(self, low: object, high: object) -> Expression:
        """Require a value from low to high, both included.

        Examples
        --------
        >>> import matchmill as mm
        >>> ~mm.var("x").between(1, mm.attr("price"))
        Expression("not ?x between 1 and price")
        """
        return _checked(Range(self.term, _term(low), _term(high)))

    def like(self, pattern: str) -> Expression:
        """Require text that fits a pattern: `%` any text, `_` one character.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.var("name").like("a%")
        Expression("?name like 'a%'")
        """
        return self._tested("like", pattern)

    def ilike(self, pattern: str) -> Expression:
        """Require text that fits a pattern, without regard to upper and lower case.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.var("name").ilike("a%")
        Expression("?name ilike 'a%'")
        """
        return self._tested("ilike", pattern)

    def rlike(self, pattern: str) -> Expression:
        """Require text in which a regular expression is found.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.var("name").rlike("^a")
        Expression("?name rlike '^a'")
        """
        return self._tested("rlike", pattern)

    def in_cidr(self, *networks: object) -> Expression:
        """Require text that is an IP address of a network.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.var("host").in_cidr("10.0.0.0/8")
        Expression("?host in cidr ('10.0.0.0/8')")
        """
        made = Attribute(TESTED).in_cidr(*networks)
        assert isinstance(made, InNetwork)
        return _checked(TextTest(self.term, made))

    def _tested(self, word: Literal["like", "ilike", "rlike"], pattern: str) -> Expression:
        made = getattr(Attribute(TESTED), word)(pattern)
        assert isinstance(made, (Like, RLike))
        return _checked(TextTest(self.term, made))

    def is_null(self) -> Expression:
        """Require that the term has no value.

        Examples
        --------
        >>> import matchmill as mm
        >>> (mm.var("x") / mm.attr("n")).is_null()
        Expression("?x / n is null")
        """
        return _checked(NullTest(self.term))

    def is_not_null(self) -> Expression:
        """Require that the term has a value.

        Examples
        --------
        >>> import matchmill as mm
        >>> (mm.var("x") + mm.attr("n")).is_not_null()
        Expression("?x + n is not null")
        """
        return _checked(NullTest(self.term, True))


def _checked(constraint: Any) -> Expression:
    check_constraint(constraint)
    made: Expression = constraint
    return made


def _term(value: object) -> Term:
    if isinstance(value, BuiltTerm):
        return value.term
    if isinstance(value, Attribute):
        return EventAttribute(value.name)
    return plain_value(value)
