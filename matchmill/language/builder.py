"""Expressions from Python: `(attr("price") <= 580) & attr("model").like("iphone%")`.

Everything is checked as the parser checks it, so whatever is built here can be printed and parsed
again.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Literal, NoReturn, cast

from matchmill.errors import ExpressionError, shown
from matchmill.language.expression import (
    And,
    Between,
    Compare,
    Contains,
    Expression,
    In,
    InNetwork,
    IsNull,
    IsTrue,
    Like,
    Not,
    Operator,
    Or,
    RLike,
    network,
)
from matchmill.language.parser import check_bounds, check_like_pattern
from matchmill.language.patterns import compile_regex, escape_like
from matchmill.language.terms import BuiltTerm
from matchmill.language.values import Value, check_literal, decimal_value

__all__ = ["Attribute", "attr", "plain_value"]


def attr(name: str) -> Attribute:
    """Return the attribute of this name, to build an expression with.

    Parameters
    ----------
    name : str
        The name; the attributes of nested objects have dotted names (`"geo.lat"`).

    Returns
    -------
    Attribute
        Compare it with `==`, `!=`, `<`, `<=`, `>`, `>=`, or call one of its methods, which are the
        words of the language. Combine conditions with `&` and `|`; `~` negates.

    Raises
    ------
    ExpressionError
        If the name, or a value that it is compared with, cannot be used.

    Examples
    --------
    >>> import matchmill as mm
    >>> (mm.attr("price") <= 580) & mm.attr("model").like("iphone%")
    Expression("price <= 580 and model like 'iphone%'")
    >>> ~mm.attr("carrier").is_in("AA", "UA")
    Expression("carrier not in ('AA', 'UA')")
    """
    return Attribute(name)


class Attribute:
    """An attribute, or with `any()` the elements of a list. Alone it is a boolean attribute."""

    __slots__ = ("_any_element", "_name")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str, *, any_element: bool = False) -> None:
        if not isinstance(name, str) or not name:
            raise ExpressionError(f"an attribute's name is a non-empty string, not {shown(name)}")
        check_literal(name)
        self._name = str.__str__(name)
        self._any_element = any_element

    def __repr__(self) -> str:
        return f"attr({self._name!r})" + (".any()" if self._any_element else "")

    def any(self) -> Attribute:
        """Look at the elements of a list: some element has to satisfy the condition.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("tags").any().like("sale%")
        Expression("any(tags) like 'sale%'")
        """
        return Attribute(self._name, any_element=True)

    # -- comparisons

    def __eq__(self, value: object) -> Expression:  # type: ignore[override]
        return self._compare("=", value)

    def __ne__(self, value: object) -> Expression:  # type: ignore[override]
        return self._compare("!=", value)

    def __lt__(self, value: object) -> Expression:
        return self._compare("<", value)

    def __le__(self, value: object) -> Expression:
        return self._compare("<=", value)

    def __gt__(self, value: object) -> Expression:
        return self._compare(">", value)

    def __ge__(self, value: object) -> Expression:
        return self._compare(">=", value)

    def _compare(self, op: Operator, value: object) -> Expression:
        if isinstance(value, BuiltTerm) and not self._any_element:
            return cast("Expression", NotImplemented)  # the term compares itself with the attribute
        return Compare(self._name, op, plain_value(value), self._any_element)

    @property
    def name(self) -> str:
        """The name; raises ExpressionError for the elements of a list, which have none."""
        self._reject_any("a constraint")
        return self._name

    # -- sets and ranges

    def is_in(self, *values: object) -> Expression:
        """Require one of the values, given one by one or as one list.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("carrier").is_in(["AA", "UA"])
        Expression("carrier in ('AA', 'UA')")
        """
        return In(self._name, _literals(values), False, self._any_element)

    def between(self, low: object, high: object) -> Expression:
        """Require a value from low to high, both included.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("price").between(10, 20)
        Expression("price between 10 and 20")
        """
        first, last = plain_value(low), plain_value(high)
        check_bounds(first, last)
        return Between(self._name, first, last, False, self._any_element)

    # -- text

    def like(self, pattern: str) -> Expression:
        r"""Require text that fits a pattern as a whole.

        `%` stands for any text, `_` for one character, `\` takes the next character literally.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("model").like("iphone%")
        Expression("model like 'iphone%'")
        """
        return self._like(_pattern(pattern))

    def ilike(self, pattern: str) -> Expression:
        """Require text that fits a pattern, without regard to upper and lower case.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("model").ilike("iPhone%")
        Expression("model ilike 'iPhone%'")
        """
        return self._like(_pattern(pattern), ignore_case=True)

    def startswith(self, text: str) -> Expression:
        r"""Require text that begins with this text.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("code").startswith("50%")
        Expression("code like '50\\%%'")
        """
        return self._like(escape_like(_pattern(text)) + "%")

    def endswith(self, text: str) -> Expression:
        """Require text that ends with this text.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("file").endswith(".pdf")
        Expression("file like '%.pdf'")
        """
        return self._like("%" + escape_like(_pattern(text)))

    def _like(self, pattern: str, *, ignore_case: bool = False) -> Expression:
        check_like_pattern(pattern)
        return Like(self._name, pattern, False, ignore_case, self._any_element)

    def rlike(self, pattern: str) -> Expression:
        """Require text in which a regular expression (RE2) is found somewhere.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("message").rlike("time(d )?out")
        Expression("message rlike 'time(d )?out'")
        """
        checked = _pattern(pattern)
        compile_regex(checked)
        return RLike(self._name, checked, False, self._any_element)

    def in_cidr(self, *networks: object) -> Expression:
        """Require text that is an IP address of one of the networks.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("source").in_cidr("10.0.0.0/8", "::1/128")
        Expression("source in cidr ('10.0.0.0/8', '::1/128')")
        """
        return InNetwork(self._name, _networks(networks), False, self._any_element)

    # -- presence and truth

    def is_null(self) -> Expression:
        """Require that the attribute is missing, null or NaN.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("gate").is_null()
        Expression("gate is null")
        """
        self._reject_any("is null")
        return IsNull(self._name)

    def is_not_null(self) -> Expression:
        """Require that the attribute is present.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("gate").is_not_null()
        Expression("gate is not null")
        """
        self._reject_any("is not null")
        return IsNull(self._name, True)

    def is_true(self) -> Expression:
        """Require the value true, as the bare name does in text.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("cancelled").is_true()
        Expression("cancelled")
        """
        self._reject_any("a bare attribute")
        return IsTrue(self._name)

    # -- lists

    def contains(self, value: object) -> Expression:
        """Require a list that holds the value.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("tags").contains("sale")
        Expression("tags contains 'sale'")
        """
        return self._contains("any", (plain_value(value),))

    def contains_any(self, *values: object) -> Expression:
        """Require a list that holds at least one of the values.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("tags").contains_any("sale", "new")
        Expression("tags contains any ('sale', 'new')")
        """
        return self._contains("any", _literals(values))

    def contains_all(self, *values: object) -> Expression:
        """Require a list that holds all of the values.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("tags").contains_all("sale", "new")
        Expression("tags contains all ('sale', 'new')")
        """
        return self._contains("all", _literals(values))

    def contains_none(self, *values: object) -> Expression:
        """Require a list that holds none of the values.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.attr("tags").contains_none("sale", "new")
        Expression("tags contains none ('sale', 'new')")
        """
        return self._contains("none", _literals(values))

    def _contains(
        self, mode: Literal["any", "all", "none"], values: tuple[Value, ...]
    ) -> Expression:
        self._reject_any("contains")
        return Contains(self._name, mode, values)

    def _reject_any(self, what: str) -> None:
        if self._any_element:
            raise ExpressionError(
                f"any() takes a comparison, not {what}",
                hint=f"leave .any() out, or compare: {shown(self)} == 'x'",
            )

    # -- as a boolean attribute

    def __and__(self, other: object) -> Expression:
        right = _operand(other)
        return NotImplemented if right is None else And((self.is_true(), right))

    def __rand__(self, other: object) -> Expression:
        left = _operand(other)
        return NotImplemented if left is None else And((left, self.is_true()))

    def __or__(self, other: object) -> Expression:
        right = _operand(other)
        return NotImplemented if right is None else Or((self.is_true(), right))

    def __ror__(self, other: object) -> Expression:
        left = _operand(other)
        return NotImplemented if left is None else Or((left, self.is_true()))

    def __invert__(self) -> Expression:
        return Not(self.is_true())

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "an attribute has no truth value: combine with & | ~, not and, or, not;"
            " write .is_in(…), not in; and .between(10, 20), not 10 <= x <= 20"
        )

    def __contains__(self, value: object) -> NoReturn:
        raise TypeError(f"`in` cannot build an expression: write {self!r}.contains({shown(value)})")

    def __iter__(self) -> NoReturn:
        raise TypeError(f"{shown(self)} cannot be iterated over")


# -- checked arguments ----------------------------------------------------------------------------


def _operand(other: object) -> Expression | None:
    if isinstance(other, Attribute):
        return other.is_true()
    return other if isinstance(other, Expression) else None


def plain_value(value: object) -> Value:
    """Return a value as the parser would read it: plain Python types, timestamps naive in UTC."""
    if isinstance(value, (Attribute, Expression)):
        raise ExpressionError(
            f"an attribute is compared with a value, not with {shown(value)}",
            hint="two attributes cannot be compared",
        )
    if type(value).__module__ == "numpy":
        value = _from_numpy(value)
    if isinstance(value, Decimal):
        exact = math.nan if value.is_nan() else decimal_value(value)
        value = exact if isinstance(exact, int) else float(exact)
    check_literal(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # a subclass such as an enumeration prints otherwise
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, dt.datetime):
        return _naive(value)
    assert isinstance(value, dt.date)
    return dt.date(value.year, value.month, value.day)


def _from_numpy(value: Any) -> object:
    """Return a NumPy scalar as a Python scalar; leave arrays for `check_literal` to reject."""
    dtype = getattr(value, "dtype", None)
    if dtype is None or getattr(value, "shape", None) != ():
        return value
    if dtype.kind != "M":
        return value.item()
    if str(value) == "NaT":
        raise ExpressionError("not a point in time", hint="a missing value is `is null`")
    microseconds = value.astype("datetime64[us]")
    if microseconds != value:
        raise ExpressionError("a timestamp has at most six digits after the second")
    result = value.item() if dtype == "datetime64[D]" else microseconds.item()
    if not isinstance(result, dt.date):  # NumPy gives a bare number where Python's years end
        raise ExpressionError(f"{value} is before the year 1 or after 9999")
    return result


def _naive(value: dt.datetime) -> dt.datetime:
    if getattr(value, "nanosecond", 0):
        raise ExpressionError("a timestamp has at most six digits after the second")
    try:
        utc = value.astimezone(dt.UTC) if value.tzinfo is not None else value
    except OverflowError:
        raise ExpressionError(f"the timestamp {value} is out of range in UTC") from None
    except Exception as error:
        raise ExpressionError(f"the time zone of a timestamp fails: {shown(error)}") from error
    day = (utc.year, utc.month, utc.day)
    return dt.datetime(*day, utc.hour, utc.minute, utc.second, utc.microsecond)


def _spread(values: tuple[object, ...]) -> list[Any]:
    """Return several arguments, or the one list that was given; a set in a fixed order."""
    if len(values) != 1 or isinstance(values[0], (str, bytes)):
        given = list(values)
    elif isinstance(values[0], (set, frozenset)):
        given = sorted(values[0], key=lambda v: (type(v).__name__, repr(v)))
    else:
        given = list(values[0]) if isinstance(values[0], Iterable) else [values[0]]
    if not given:
        raise ExpressionError("the list of values is empty", hint="give at least one value")
    return given


def _literals(values: tuple[object, ...]) -> tuple[Value, ...]:
    return tuple(plain_value(value) for value in _spread(values))


def _networks(values: tuple[object, ...]) -> tuple[str, ...]:
    networks = []
    for value in _spread(tuple(_network_text(value) for value in values)):
        text = _network_text(value)
        if not isinstance(text, str):
            raise ExpressionError(
                f"a network is text, not {shown(value)}", hint="write '10.0.0.0/8'"
            )
        network(text)
        networks.append(str.__str__(text))
    return tuple(networks)


def _network_text(value: object) -> object:
    """Return the text of an `ipaddress` network, which otherwise is a list of its addresses."""
    return str(value) if type(value).__module__ == "ipaddress" else value


def _pattern(pattern: object) -> str:
    if not isinstance(pattern, str):
        raise ExpressionError(f"a pattern is text, not {shown(pattern)}")
    check_literal(pattern)
    return str.__str__(pattern)
