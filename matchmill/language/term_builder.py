"""Terms that are built in Python: what `var` and `attr` return can be calculated with.

attr("price") + attr("tax") > 5         price + tax > 5
var("n") - 1 > attr("berths")           ?n - 1 > berths
"""

from __future__ import annotations

from typing import NoReturn

from matchmill.language.expression import Expression, InNetwork, Like, Operator, RLike
from matchmill.language.operator_calls import (
    TESTED,
    Constraint,
    Membership,
    NullTest,
    Range,
    Restriction,
    TextTest,
    check_constraint,
)
from matchmill.language.parser import check_like_pattern
from matchmill.language.patterns import compile_regex
from matchmill.language.plain_values import network_texts, pattern_text, plain_value
from matchmill.language.terms import Applied, Arithmetic, BuiltTerm, Sign, Term

__all__ = ["Calculating", "TermBuilder", "term_of"]


class Calculating(BuiltTerm):
    """What can be calculated with: variables, attributes, and terms of them."""

    __slots__ = ()

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
        return TermBuilder(Arithmetic(sign, self.checked_term(), term_of(other)))

    def _behind(self, sign: Sign, other: object) -> TermBuilder:
        return TermBuilder(Arithmetic(sign, term_of(other), self.checked_term()))

    def apply(self, function: str, *others: object) -> TermBuilder:
        """Apply a function to this term, and to further arguments.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.var("x").apply("least", 5) > 2
        Expression("least(?x, 5) > 2")
        """
        return TermBuilder(Applied(function, (self.checked_term(), *map(term_of, others))))

    def _compared(self, op: Operator, other: object) -> Expression:
        return _checked(Constraint(self.checked_term(), op, term_of(other)))

    def _is_one_of(self, values: tuple[object, ...]) -> Expression:
        given = values[0] if len(values) == 1 and isinstance(values[0], (list, tuple)) else values
        return _checked(Membership(self.checked_term(), tuple(map(term_of, given))))

    def _is_between(self, low: object, high: object) -> Expression:
        return _checked(Range(self.checked_term(), term_of(low), term_of(high)))


class TermBuilder(Calculating):
    """A variable, or what is calculated from variables and attributes."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"term({str(self.checked_term())!r})"

    def __bool__(self) -> NoReturn:
        raise TypeError("a term has no truth value: compare it, and combine with & | ~")

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

    # -- tests

    def is_in(self, *values: object) -> Expression:
        """Require one of the values: literals, variables or attributes.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.var("x").is_in(1, mm.var("y"))
        Expression("?x in (1, ?y)")
        """
        return self._is_one_of(values)

    def between(self, low: object, high: object) -> Expression:
        """Require a value from low to high, both included.

        Examples
        --------
        >>> import matchmill as mm
        >>> ~mm.var("x").between(1, mm.attr("price"))
        Expression("not ?x between 1 and price")
        """
        return self._is_between(low, high)

    def like(self, pattern: str) -> Expression:
        """Require text that fits a pattern: `%` any text, `_` one character.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.var("name").like("a%")
        Expression("?name like 'a%'")
        """
        return self._tested(_like(pattern, ignore_case=False))

    def ilike(self, pattern: str) -> Expression:
        """Require text that fits a pattern, without regard to upper and lower case.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.var("name").ilike("a%")
        Expression("?name ilike 'a%'")
        """
        return self._tested(_like(pattern, ignore_case=True))

    def rlike(self, pattern: str) -> Expression:
        """Require text in which a regular expression is found.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.var("name").rlike("^a")
        Expression("?name rlike '^a'")
        """
        checked = pattern_text(pattern)
        compile_regex(checked)
        return self._tested(RLike(TESTED, checked))

    def in_cidr(self, *networks: object) -> Expression:
        """Require text that is an IP address of a network.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.var("host").in_cidr("10.0.0.0/8")
        Expression("?host in cidr ('10.0.0.0/8')")
        """
        return self._tested(InNetwork(TESTED, network_texts(networks)))

    def _tested(self, test: Like | RLike | InNetwork) -> Expression:
        return _checked(TextTest(self.checked_term(), test))

    def is_null(self) -> Expression:
        """Require that the term has no value.

        Examples
        --------
        >>> import matchmill as mm
        >>> (mm.var("x") / mm.attr("n")).is_null()
        Expression("?x / n is null")
        """
        return _checked(NullTest(self.checked_term()))

    def is_not_null(self) -> Expression:
        """Require that the term has a value.

        Examples
        --------
        >>> import matchmill as mm
        >>> (mm.var("x") + mm.attr("n")).is_not_null()
        Expression("?x + n is not null")
        """
        return _checked(NullTest(self.checked_term(), True))


def _like(pattern: str, *, ignore_case: bool) -> Like:
    checked = pattern_text(pattern)
    check_like_pattern(checked)
    return Like(TESTED, checked, False, ignore_case)


def _checked(constraint: Restriction) -> Expression:
    check_constraint(constraint)
    return constraint


def term_of(value: object) -> Term:
    """Return a built term, or a value as the parser would read it."""
    return value.checked_term() if isinstance(value, BuiltTerm) else plain_value(value)
