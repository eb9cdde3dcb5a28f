"""Constraints that calculate, as ranges of sorted rows.

    ?x + ?y = 2398     with ?x bound:   1 * ?y + (?x - 2398) = 0     ?y in [2398 - ?x, 2398 - ?x]
    ?n * ?y < 3 * ?m   with ?n, ?m:     ?n * ?y + (0 - 3 * ?m) < 0   ?y below 3 * ?m / ?n

A constraint that is linear in the variables of one relation, its own, is brought to the form
Σ coefficient * own + rest, compared with 0, where coefficients and rest are terms of variables
bound before. Rows are sorted by the sum of own variables, so those that may satisfy the constraint
are a range of them. It is only ever too wide, never too narrow: sums are exact, and where doubles
are involved, which round, the range is wider by more than they can round. So the constraint itself
is checked on each row that is found.

Rows whose sum cannot be relied on (very large or very small doubles) are `loose`: they are always
tried. Rows whose own variables are no numbers never satisfy it and are left out.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple

from matchmill.language.constraint_truth import term_value
from matchmill.language.expression import Operator
from matchmill.language.operator_calls import Constraint, Restriction
from matchmill.language.terms import Applied, Arithmetic, Term, Variable, parts_of_terms
from matchmill.operators.outcome import Binding

__all__ = ["Linear", "SortedRows", "linear_form"]

_ROUNDING = Fraction(1, 2**44)  # of the largest number involved; 100 steps round less than that
# Doubles between these: products of a few neither overflow nor underflow.
_SMALLEST, _LARGEST = 2.0**-200, 2.0**200
_MOST_PRODUCTS = 4
_MIRRORED: dict[Operator, Operator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Linear(NamedTuple):
    """Σ coefficient * own + rest  op  0."""

    own: tuple[tuple[str, Term], ...]  # own variable, its coefficient
    rest: Term
    op: Operator


def linear_form(constraint: Restriction, own: Collection[str]) -> Linear | None:
    """Return the form of a constraint for a relation's own variables; None if it has none.

    With several own variables the coefficients have to be constants, so that rows can be sorted.
    """
    if not isinstance(constraint, Constraint) or constraint.op == "!=":
        return None
    sides = (constraint.left, constraint.right)
    if not any(isinstance(side, Arithmetic) for side in sides):
        return None  # it may compare texts
    if sum(isinstance(p, Arithmetic) and p.sign in "*/" for p in parts_of_terms(sides)) > (
        _MOST_PRODUCTS
    ):
        return None
    left, right = _form(sides[0], own), _form(sides[1], own)
    if left is None or right is None:
        return None
    coefficients, rest = _sum("-", left, right)
    if not coefficients:
        return None
    if len(coefficients) > 1 and any(map(_has_variables, coefficients.values())):
        return None
    return Linear(tuple(coefficients.items()), rest, constraint.op)


_Form = tuple[dict[str, Term], Term]


def _form(term: Term, own: Collection[str]) -> _Form | None:
    if isinstance(term, Variable) and term.name in own:
        return {term.name: 1}, 0
    if not any(isinstance(p, Variable) and p.name in own for p in parts_of_terms((term,))):
        return {}, term
    if not isinstance(term, Arithmetic) or term.sign == "%":
        return None
    left, right = _form(term.left, own), _form(term.right, own)
    if left is None or right is None:
        return None
    if term.sign in "+-":
        return _sum(term.sign, left, right)
    if not right[0]:
        return _scaled(left, term.sign, right[1])
    return _scaled(right, "*", left[1]) if term.sign == "*" and not left[0] else None


def _sum(sign: Any, left: _Form, right: _Form) -> _Form:
    coefficients = dict(left[0])
    for name, coefficient in right[0].items():
        coefficients[name] = Arithmetic(sign, coefficients.get(name, 0), coefficient)
    return coefficients, Arithmetic(sign, left[1], right[1])


def _scaled(form: _Form, sign: Any, factor: Term) -> _Form:
    scaled: dict[str, Term] = {name: Arithmetic(sign, c, factor) for name, c in form[0].items()}
    return scaled, Arithmetic(sign, form[1], factor)


def _has_variables(term: Term) -> bool:
    return any(isinstance(p, (Variable, Applied)) for p in parts_of_terms((term,)))


# -- exact values ---------------------------------------------------------------------------------


class _Exact(NamedTuple):
    """A number, and the largest that it was calculated from; doubles round relative to that."""

    value: Fraction
    size: Fraction
    is_rounded: bool  # by a calculation with doubles


class _Loose(Exception):
    """A value that is not known well enough."""


class _NoNumber(Exception):
    """A term that has no value: no constraint with it holds."""


def _exact(term: Term, values: Mapping[str, Any]) -> _Exact:
    if not isinstance(term, Arithmetic) or term.sign == "%":
        return _exact_number(term_value(term, values))
    left, right = _exact(term.left, values), _exact(term.right, values)
    is_rounded = left.is_rounded or right.is_rounded
    if term.sign == "+":
        return _Exact(left.value + right.value, left.size + right.size, is_rounded)
    if term.sign == "-":
        return _Exact(left.value - right.value, left.size + right.size, is_rounded)
    if term.sign == "*":
        return _Exact(left.value * right.value, left.size * right.size, is_rounded)
    if not right.value:
        raise _NoNumber
    if right.is_rounded and right.size != abs(right.value):
        raise _Loose  # a difference of doubles may be anything near zero
    divisor = abs(right.value)
    return _Exact(left.value / right.value, left.size / divisor, is_rounded)


def _exact_number(value: Any) -> _Exact:
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction, Decimal)):
        raise _NoNumber
    if isinstance(value, float) and value and not _SMALLEST <= abs(value) <= _LARGEST:
        raise _Loose
    number = Fraction(value)
    return _Exact(number, abs(number), isinstance(value, float))


# -- rows -----------------------------------------------------------------------------------------


class SortedRows:
    """Rows by the sum of their own variables."""

    def __init__(
        self, form: Linear, rows: Sequence[Binding], places: Mapping[str, int], new: Sequence[int]
    ) -> None:
        """Sort rows; what is found of them are the values at the places `new`."""
        self._form = form
        self._is_one = len(form.own) == 1
        found: list[tuple[Fraction, Binding]] = []
        self._loose: list[Binding] = []
        self._size, self._is_rounded = Fraction(0), False
        constant = () if self._is_one else tuple((places[n], _exact(c, {})) for n, c in form.own)
        for row in rows:
            kept = tuple(row[i] for i in new)
            try:
                if self._is_one:
                    total = _exact_number(row[places[form.own[0][0]]])
                else:
                    total = _total(row, constant)
            except _NoNumber:
                continue
            except _Loose:
                self._loose.append(kept)
                continue
            found.append((total.value, kept))
            self._size = max(self._size, total.size)
            self._is_rounded |= total.is_rounded
        found.sort(key=lambda pair: pair[0])
        self._keys = [_plain(key) for key, _ in found]
        self._rows = [row for _, row in found]

    def candidates(self, values: Mapping[str, Any]) -> Iterator[Binding]:
        """Return the rows that may satisfy the constraint for values of the other variables."""
        try:
            start, stop = self._range(values)
        except _NoNumber:
            return iter(())
        except _Loose:
            start, stop = 0, len(self._rows)
        return chain(self._rows[start:stop], self._loose)

    def _range(self, values: Mapping[str, Any]) -> tuple[int, int]:
        form, op = self._form, self._form.op
        rest = _exact(form.rest, values)
        factor = _exact(form.own[0][1], values) if self._is_one else _ONE
        is_rounded = self._is_rounded or rest.is_rounded or factor.is_rounded
        if abs(factor.value) <= (_ROUNDING * factor.size if factor.is_rounded else 0):
            raise _Loose  # the own variable hardly matters
        target, slack = -rest.value / factor.value, Fraction(0)
        if is_rounded:
            size = factor.size * self._size + rest.size
            slack = size * _ROUNDING / abs(factor.value)
        if factor.value < 0:
            op = _MIRRORED.get(op, op)
        low, high = _plain(target - slack), _plain(target + slack)
        start, stop = 0, len(self._keys)
        if op in ("=", ">", ">="):
            start = bisect_left(self._keys, low)
        if op in ("=", "<", "<="):
            stop = bisect_right(self._keys, high)
        return start, stop


_ONE = _Exact(Fraction(1), Fraction(1), False)


def _plain(number: Fraction) -> Any:
    """Return a whole number as int, which compares faster."""
    return number.numerator if number.denominator == 1 else number


def _total(row: Binding, coefficients: Sequence[tuple[int, _Exact]]) -> _Exact:
    value, size, is_rounded = Fraction(0), Fraction(0), False
    for place, coefficient in coefficients:
        own = _exact_number(row[place])
        value += own.value * coefficient.value
        size += own.size * coefficient.size
        is_rounded |= own.is_rounded or coefficient.is_rounded
    return _Exact(value, size, is_rounded)
