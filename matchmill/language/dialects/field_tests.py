"""The alternatives of one field of an EventBridge pattern, as a test and as an expression.

    ["running", {"prefix": "stop"}, {"numeric": [">", 5]}, {"anything-but": "init"}, null]

A `FieldTest` gathers them. `accepts` tells whether one value of the event satisfies one of them,
`superset` returns an expression on the flat event that holds whenever some value does. The two are
built side by side, so that for most alternatives they say the same.

Numbers are compared as doubles, as event-ruler does: an integer counts as the double next to it. So
a number is the interval of all numbers that round to one double, and beyond 2^53 that is wider than
a point.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeAlias

from matchmill.language.dialects.pattern import Places
from matchmill.language.expression import (
    Between,
    Compare,
    Constant,
    Contains,
    Expression,
    In,
    InNetwork,
    Like,
    Operator,
    Or,
    Predicate,
)
from matchmill.language.json_nodes import Number
from matchmill.language.normal_form import Dimension, predicate_clauses
from matchmill.language.patterns import (
    address_text,
    escape_like,
    like_matches,
    like_tokens,
    network_bounds,
)
from matchmill.language.value_set import ABSENT, ValueSet, region, unite_all
from matchmill.language.values import (
    INT64_MAX,
    INT64_MIN,
    Region,
    domain_value,
    fold_case,
    next_number,
)

__all__ = ["FieldTest", "LetterCase"]

_TextTest: TypeAlias = Callable[[str], bool]

_EXACT_INTEGERS = 2**53
_ABSENT_OR_LIST = ABSENT.unite(region(Region.LIST))


class FieldTest:
    """Alternatives, one of which a value of the field has to satisfy."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alternatives: Any = None  # as they were written
        self.may_be_absent = False  # `{"exists": false}`
        self.is_exact = True  # whether the superset says all
        self._is_any = False
        self._has_null = False
        self._texts: set[str] = set()
        self._booleans: set[bool] = set()
        self._numbers: set[Number] = set()
        self._intervals: list[tuple[Number, Number]] = []
        self._prefixes: tuple[str, ...] = ()
        self._suffixes: tuple[str, ...] = ()
        self._text_tests: list[_TextTest] = []
        self._excluded: list[FieldTest] = []
        self._networks: list[str] = []
        self._pairs: list[Predicate] = []  # each of them also holds for an element of a list

    # -- alternatives

    def add_text(self, text: str) -> None:
        """Accept a text; of an IP address every way to write it."""
        if address_text(text) is None:
            self._texts.add(text)
        else:
            self.add_network(f"{text}/{128 if ':' in text else 32}")

    def add_exactly(self, text: str) -> None:
        """Accept a text, whatever it says."""
        self._texts.add(text)

    def add_boolean(self, value: bool) -> None:
        """Accept true or false."""
        self._booleans.add(value)

    def add_number(self, value: Number) -> None:
        """Accept a number."""
        low, high = _rounding_to(value)
        if low == high:
            self._numbers.add(low)
        else:
            self.add_interval(low, high)

    def add_comparison(self, op: Operator, value: Number) -> None:
        """Accept numbers above or below a bound."""
        if op == "=":
            self.add_number(value)
            return
        bound = _bound(op, value)
        self._pairs.append(Compare(self.name, op, bound))
        low, high = -math.inf, math.inf
        if op in (">", ">="):
            low = bound if op == ">=" else next_number(bound, 1)
        else:
            high = bound if op == "<=" else next_number(bound, -1)
        self._intervals.append((low, high))

    def add_range(self, low: tuple[Operator, Number], high: tuple[Operator, Number]) -> None:
        """Accept numbers between two bounds."""
        first, last = _bound(*low), _bound(*high)
        if low[0] == ">":
            first = next_number(first, 1)
        if high[0] == "<":
            last = next_number(last, -1)
        self.add_interval(first, last)

    def add_interval(self, low: Number, high: Number) -> None:
        """Accept numbers from `low` to `high`."""
        self._intervals.append((low, high))
        self._pairs.append(Between(self.name, low, high))

    def add_network(self, text: str) -> None:
        """Accept the addresses of a network."""
        low, high = network_bounds(text)
        self._networks.append(text)
        self._text_tests.append(_InNetwork(low, high))

    def add_prefixes(self, texts: Iterable[str]) -> None:
        """Accept text that begins with one of some texts."""
        new = tuple(texts)
        self._prefixes += new
        self._pairs += [Like(self.name, escape_like(text) + "%") for text in new]

    def add_suffixes(self, texts: Iterable[str]) -> None:
        """Accept text that ends with one of some texts."""
        new = tuple(texts)
        self._suffixes += new
        self._pairs += [Like(self.name, "%" + escape_like(text)) for text in new]

    def add_like(self, pattern: str) -> None:
        """Accept text that fits a like pattern."""
        tokens = like_tokens(pattern)
        self._text_tests.append(lambda text: like_matches(tokens, text))
        self._pairs.append(Like(self.name, pattern))

    def add_letter_case(self, case: LetterCase) -> None:
        """Accept text in upper and lower case."""
        self._text_tests.append(case.fits)
        self._pairs.append(Like(self.name, case.superset, ignore_case=True))
        self.is_exact = self.is_exact and case.is_exact

    def add_excluded(self, excluded: FieldTest) -> None:
        """Accept whatever another test does not."""
        self._excluded.append(excluded)
        self.is_exact = False

    def add_null(self) -> None:
        """Accept null."""
        self._has_null = True
        self.is_exact = False

    def add_presence(self, is_present: bool) -> None:
        """Accept any value at all, or that there is none."""
        self.is_exact = False
        if is_present:
            self._is_any = True
        else:
            self.may_be_absent = True

    # -- the test

    def accepts(self, value: object) -> bool:
        """Whether one value satisfies one alternative."""
        if self._is_any or self._has(value):
            return True
        return any(not excluded.accepts(value) for excluded in self._excluded)

    def _has(self, value: object) -> bool:
        if isinstance(value, str):
            return (
                value in self._texts
                or value.startswith(self._prefixes)
                or value.endswith(self._suffixes)
                or any(test(value) for test in self._text_tests)
            )
        if value is None:
            return self._has_null
        if isinstance(value, bool):
            return value in self._booleans
        if isinstance(value, (int, float, Decimal)):
            number: Any = domain_value(value)
            return number in self._numbers or any(a <= number <= b for a, b in self._intervals)
        return False

    # -- the superset

    def superset(self) -> Expression:
        """Return an expression that holds for every event with a value that is accepted."""
        if self._is_any:
            return Constant(True)
        parts: list[Expression] = []
        values = (*sorted(self._texts), *sorted(self._numbers), *sorted(self._booleans))
        if values:
            is_one = len(values) == 1
            parts.append(Compare(self.name, "=", values[0]) if is_one else In(self.name, values))
            parts.append(Contains(self.name, "any", values))
        if self._networks:
            networks = tuple(dict.fromkeys(self._networks))
            parts += [InNetwork(self.name, networks, any_element=any_) for any_ in (False, True)]
        for predicate in self._pairs:
            parts += (predicate, _of_element(predicate))
        for excluded in self._excluded:
            parts.append(excluded.opposite())
        if self._has_null or self.may_be_absent:
            parts.append(Places(self.name, ((Dimension(self.name), _ABSENT_OR_LIST),)))
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def opposite(self) -> Expression:
        """Return an expression that holds unless a single value is accepted for certain."""
        if not self.is_exact:
            return Constant(True)
        conditions: list[Predicate] = list(self._pairs)
        if values := (*self._texts, *self._numbers):
            conditions.append(In(self.name, values))
        excluded: dict[Dimension, list[ValueSet]] = {}
        for condition in conditions:
            for clause in predicate_clauses(condition, True):
                ((dimension, own),) = clause.items()
                assert isinstance(dimension, Dimension)  # no condition is about elements
                excluded.setdefault(dimension, []).append(own)
        sets = ((dimension, unite_all(own).complement()) for dimension, own in excluded.items())
        return Places(self.name, tuple(sets))


class _InNetwork:
    """Whether text is an address between two others."""

    def __init__(self, low: str, high: str) -> None:
        self._low, self._high = low, high

    def __call__(self, text: str) -> bool:
        address = address_text(text)
        return address is not None and self._low <= address <= self._high


def _of_element(predicate: Predicate) -> Predicate:
    """Return the same predicate about some element of a list."""
    if isinstance(predicate, Compare):
        return Compare(predicate.name, predicate.op, predicate.value, True)
    if isinstance(predicate, Between):
        return Between(predicate.name, predicate.low, predicate.high, False, True)
    assert isinstance(predicate, Like)
    return Like(predicate.name, predicate.pattern, False, predicate.ignore_case, True)


# -- numbers --------------------------------------------------------------------------------------


def _rounding_to(value: Number) -> tuple[Number, Number]:
    """Return the least and the largest number that rounds to the same double as this one."""
    double = float(value)
    if abs(double) < _EXACT_INTEGERS:
        return value, value
    return -_most(-double), _most(double)


def _most(double: float) -> Number:
    """Return the largest number, of 64-bit integers and doubles, that rounds to a double."""
    following = math.nextafter(double, math.inf)
    if math.isinf(following):
        return double
    middle = (int(double) + int(following)) // 2
    most = middle if float(middle) == double else middle - 1
    return most if INT64_MIN < most <= INT64_MAX else double


def _bound(op: Operator, value: Number) -> Number:
    """Return the end that a comparison of doubles has among all numbers."""
    low, high = _rounding_to(value)
    return low if op in ("<", ">=") else high


# -- upper and lower case -------------------------------------------------------------------------


class LetterCase:
    """Text, a prefix or a suffix in which each character stands for its upper and lower case."""

    def __init__(self, text: str, before: str = "", after: str = "") -> None:
        """Read a text; `before` and `after` are `%` where any text may stand."""
        letters = "".join(_either_case(c) for c in text)
        tail = "" if after else r"\Z"
        regex = re.compile(letters + tail, re.DOTALL)
        self._find = regex.search if before else regex.match
        self.superset = before + "".join(map(_superset, text)) + after
        self.is_exact = text.isascii() and _FOLDED_FROM_OTHERS.isdisjoint(text)

    def fits(self, text: str) -> bool:
        """Whether a text is like this one."""
        return self._find(text) is not None


# U+212A and U+0130 have these in lower case, so that `ilike` finds them too.
_FOLDED_FROM_OTHERS = frozenset("kKiI")


@lru_cache(maxsize=4096)
def _either_case(c: str) -> str:
    forms = dict.fromkeys((c.lower(), c.upper()))
    return "|".join(map(re.escape, forms)).join(("(?:", ")"))


@lru_cache(maxsize=4096)
def _superset(c: str) -> str:
    """Return a pattern of `ilike` that fits both cases of a character."""
    forms = (c.lower(), c.upper())
    are_alike = all(len(form) == 1 and fold_case(form) == fold_case(c) for form in forms)
    return escape_like(c) if are_alike else "%"
