"""Checked arguments of the builder: values, networks and patterns as the parser reads them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from matchmill.errors import ExpressionError, shown
from matchmill.language.expression import Expression, network
from matchmill.language.terms import BuiltTerm
from matchmill.language.values import Value, check_literal, decimal_value

__all__ = ["network_texts", "pattern_text", "plain_value", "plain_values", "spread"]


def plain_value(value: object) -> Value:
    """Return a value as the parser would read it: plain Python types, timestamps naive in UTC."""
    if isinstance(value, (BuiltTerm, Expression)):
        raise ExpressionError(f"an attribute is compared with a value, not with {shown(value)}")
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


def spread(values: tuple[object, ...]) -> list[Any]:
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


def plain_values(values: tuple[object, ...]) -> tuple[Value, ...]:
    """Return several values, or those of one list, as the parser would read them."""
    return tuple(plain_value(value) for value in spread(values))


def network_texts(values: tuple[object, ...]) -> tuple[str, ...]:
    """Return the texts of networks; ExpressionError for what is none."""
    networks = []
    for value in spread(tuple(_network_text(value) for value in values)):
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


def pattern_text(pattern: object) -> str:
    """Return a pattern or a text as plain text."""
    if not isinstance(pattern, str):
        raise ExpressionError(f"a pattern is text, not {shown(pattern)}")
    check_literal(pattern)
    return str.__str__(pattern)
