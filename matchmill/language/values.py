"""Values: their types, their order, and the literals that stand for them.

All values of one attribute are in one order: by type first, and inside a type in the natural
order of the type. A position in this order is (region, domain value):

    ABSENT < BOOLEAN < LIST < OBJECT < NUMBER < DATE < TIMESTAMP < STRING
      0       false     one     one      …       days     ns since    by code
              true     place   place                      1970 UTC    point

A comparison never crosses a region: a comparison between types is unknown.

An *object* is any value that is nothing else of this: bytes, an image, a model. It is present, and
every condition on it but `is null` is unknown. Only operators look at it.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any, TypeAlias

from matchmill.errors import ExpressionError, shown

__all__ = [
    "INT64_MAX",
    "INT64_MIN",
    "TIMES",
    "Domain",
    "EventValue",
    "FineTimestamp",
    "Opaque",
    "Region",
    "Value",
    "bad_scalar",
    "check_literal",
    "decimal_pair",
    "decimal_value",
    "domain_value",
    "fine_timestamp",
    "fold_case",
    "next_number",
    "read_date",
    "read_time",
    "read_timestamp",
    "region_of",
    "visible",
]

Value: TypeAlias = bool | int | float | str | dt.date | dt.datetime
Domain: TypeAlias = bool | int | float | str | Fraction
EventValue: TypeAlias = Any  # a Value, a Decimal, a list of these, or an object

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1
_ROUGH_DECIMALS = 2**45  # from here on, doubles are too far apart for cents
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


class Region(IntEnum):
    """The types of values in their order. END marks the end of the last one.

    OBJECT has a number of its own, because saved engines use the others; its place is that after
    LIST (`value_set.region`).
    """

    ABSENT = 0
    BOOLEAN = 1
    LIST = 2
    NUMBER = 3
    DATE = 4
    TIMESTAMP = 5
    STRING = 6
    END = 7
    OBJECT = 8


TIMES = (Region.DATE, Region.TIMESTAMP)


class Opaque:
    """A value that is an object whatever its type says, such as a tuple that is an Arrow interval.

    `problem` says why a value of a comparable type cannot be compared, such as an infinite number.
    """

    __slots__ = ("problem", "value")

    def __init__(self, value: Any, problem: str = "") -> None:
        self.value = value
        self.problem = problem

    def __repr__(self) -> str:
        return repr(self.value)

    def __str__(self) -> str:
        return str(self.value).encode("utf-8", "backslashreplace").decode()


def region_of(value: object) -> Region:
    """Return the type of a value. None and NaN are absent."""
    if isinstance(value, str):
        return Region.STRING
    if isinstance(value, bool):
        return Region.BOOLEAN
    if isinstance(value, (int, Decimal)):
        return Region.NUMBER
    if isinstance(value, float):
        return Region.ABSENT if value != value else Region.NUMBER
    if value is None:
        return Region.ABSENT
    if isinstance(value, dt.datetime):
        return Region.TIMESTAMP
    if isinstance(value, dt.date):
        return Region.DATE
    if isinstance(value, (list, tuple)):
        return Region.LIST
    return Region.OBJECT


def domain_value(value: Value | Decimal) -> Domain:
    """Return what is compared: days for dates, nanoseconds since 1970 UTC for timestamps."""
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
        nanosecond = getattr(value, "nanosecond", 0)  # a pandas Timestamp has finer digits
        return ((aware - _EPOCH) // _MICROSECOND) * 1000 + int(nanosecond)
    if isinstance(value, dt.date):
        return value.toordinal() - _EPOCH_DAY
    if isinstance(value, Decimal):
        whole, part = decimal_pair(value)
        return whole + Fraction(part)
    return value


def fold_case(text: str) -> str:
    """Lower the case, one character for one character, so that `_` keeps its meaning."""
    lowered = text.lower()
    if len(lowered) == len(text) and "Σ" not in text:
        return lowered
    return "".join("i" if c == "İ" else "σ" if c == "Σ" else c.lower() for c in text)


def visible(text: str) -> str:
    """Spell out control characters, so that a line is a line and no terminal is misled."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def next_number(value: int | float, direction: int) -> int | float:
    """Return the next number, above (1) or below (-1), among all 64-bit integers and doubles."""
    nearest = float(value)
    beyond = nearest > value if direction > 0 else nearest < value
    double = nearest if beyond else math.nextafter(nearest, direction * math.inf)
    whole = math.floor(value) + 1 if direction > 0 else math.ceil(value) - 1
    if not INT64_MIN <= whole <= INT64_MAX:
        return double
    return min(whole, double) if direction > 0 else max(whole, double)


# -- decimals -------------------------------------------------------------------------------------


def decimal_value(value: Decimal) -> int | float | Decimal:
    """Return what a decimal, which is not NaN, is compared as.

    A whole number is an integer. Any other is the nearest double, as a literal is that is written
    with a point; but a large one stays, because its nearest double has lost the digits after the
    point. Beyond 64 bits all are doubles.
    """
    if not value.is_finite() or not INT64_MIN <= value < INT64_MAX:
        return float(value)
    whole = int(value)
    if value == whole:
        return whole
    return float(value) if -_ROUGH_DECIMALS < value < _ROUGH_DECIMALS else value


def decimal_pair(value: Decimal) -> tuple[int, float]:
    """Return the whole part and the rest, as a double, of a decimal within 64 bits."""
    whole = int(value)
    return whole, float(Fraction(value) - whole)


# -- literals -------------------------------------------------------------------------------------


def bad_scalar(value: object) -> str | None:
    """Say why a scalar cannot be used; None if it can. NaN is left to the caller."""
    if isinstance(value, str):
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                return f"text with a lone surrogate at character {error.start} is not valid Unicode"
        return None
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        if INT64_MIN <= value <= INT64_MAX:
            return None
        shown = str(value) if value.bit_length() < 200 else f"of {value.bit_length()} bits"
        return f"the integer {shown} is beyond 64 bits"
    if isinstance(value, float):
        return "infinite numbers cannot be compared" if math.isinf(value) else None
    if isinstance(value, dt.datetime):
        return "not a point in time" if value != value else _bad_time_zone(value)
    if isinstance(value, dt.date):
        return None
    return f"a value of type {type(value).__name__} is not supported"


def _bad_time_zone(value: dt.datetime) -> str | None:
    if value.tzinfo is not None:
        try:
            value.utcoffset()
        except Exception as error:  # noqa: BLE001 - code of the user
            return f"its time zone fails: {shown(error)}"
    return None


def check_literal(value: object) -> None:
    """Raise unless the value can stand in an expression."""
    if value is None:
        raise ExpressionError("null cannot be compared", hint="write `is null` or `is not null`")
    if isinstance(value, float) and math.isnan(value):
        raise ExpressionError("NaN cannot be compared", hint="a missing value is `is null`")
    problem = bad_scalar(value)
    if problem:
        hint = "write the number as a decimal (1e20)" if "beyond 64 bits" in problem else ""
        raise ExpressionError(problem, hint=hint)


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIMESTAMP = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?)?",
    re.ASCII,
)


def read_date(text: str) -> dt.date:
    """Read `2013-01-31`."""
    if not _DATE.fullmatch(text):
        raise ValueError(text)
    return dt.date.fromisoformat(text)


def read_timestamp(text: str) -> dt.datetime:
    """Read `2013-01-31 10:00`, optionally with seconds, up to six decimals, and an offset.

    The result is naive and means UTC.
    """
    if not _TIMESTAMP.fullmatch(text):
        raise ValueError(text)
    value = dt.datetime.fromisoformat(text)
    if value.tzinfo is None:
        return value
    try:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    except OverflowError:
        raise ValueError(f"{text} is before the year 1 or after 9999 in UTC") from None


# -- times in the texts of events -----------------------------------------------------------------

_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})"
    r"(?:[ T]((?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d)?)(?:(?<=:..:..)\.(\d{1,9}))?"
    r"(Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?)?",
    re.ASCII,
)


def read_time(text: str) -> dt.date | dt.datetime | None:
    """Return the date or timestamp that a text in ISO 8601 stands for; None for any other text.

    `2013-01-31` is a date, `2013-01-31T10:00:00.000000001+02:00` a timestamp. After the minutes all
    may be left out. Without an offset it means UTC; the result is naive.
    """
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    day, clock, fraction, offset = found.groups()
    try:
        if clock is None:
            return dt.date.fromisoformat(day)
        time = dt.datetime.fromisoformat(f"{day}T{clock}{offset or 'Z'}")
        utc = time.astimezone(dt.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    nanoseconds = int((fraction or "0").ljust(9, "0"))
    return fine_timestamp(utc.replace(microsecond=nanoseconds // 1000), nanoseconds % 1000)


# -- timestamps with nanoseconds ------------------------------------------------------------------


class FineTimestamp(dt.datetime):
    """A point in time with nanoseconds, like the Timestamp of pandas."""

    nanosecond = 0

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return (fine_timestamp, (dt.datetime.combine(self.date(), self.timetz()), self.nanosecond))


def fine_timestamp(time: dt.datetime, nanosecond: int) -> dt.datetime:
    """Return the time plus 0 to 999 nanoseconds."""
    if not nanosecond:
        return time
    fine = FineTimestamp.combine(time.date(), time.timetz())
    fine.nanosecond = nanosecond
    return fine
