"""Values: their types, their order, and how events become flat attribute → value maps.

All values of one attribute stand on one line, type after type; inside a type they stand in
their natural order. A place on that line is (region, domain value):

    ABSENT < BOOLEAN < LIST < NUMBER < DATE < TIMESTAMP < STRING
      0       false      3      …       days     ns since    by code
              true                               1970 UTC    point

Comparisons never cross a region, which is why a comparison between types is unknown.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import IntEnum
from typing import Any, TypeAlias

from matchmill.errors import EventError, ExpressionError
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = [
    "INT64_MAX",
    "INT64_MIN",
    "Domain",
    "EventValue",
    "FineTimestamp",
    "Region",
    "Value",
    "bad_scalar",
    "check_literal",
    "domain_value",
    "fine_timestamp",
    "flatten_event",
    "fold_case",
    "next_number",
    "read_date",
    "read_timestamp",
    "region_of",
]

Value: TypeAlias = bool | int | float | str | dt.date | dt.datetime
Domain: TypeAlias = bool | int | float | str
EventValue: TypeAlias = Value | list[Any]

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


class Region(IntEnum):
    """The types of values in their order on the line. END closes the last one."""

    ABSENT = 0
    BOOLEAN = 1
    LIST = 2
    NUMBER = 3
    DATE = 4
    TIMESTAMP = 5
    STRING = 6
    END = 7


def region_of(value: object) -> Region:
    """The type of a checked value. None and NaN are absent."""
    if isinstance(value, str):
        return Region.STRING
    if isinstance(value, bool):
        return Region.BOOLEAN
    if isinstance(value, int):
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
    raise TypeError(f"not a value: {value!r}")


def domain_value(value: Value) -> Domain:
    """What is compared: days for dates, nanoseconds since 1970 UTC for timestamps."""
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
        nanosecond = getattr(value, "nanosecond", 0)  # a pandas Timestamp has finer digits
        return ((aware - _EPOCH) // _MICROSECOND) * 1000 + int(nanosecond)
    if isinstance(value, dt.date):
        return value.toordinal() - _EPOCH_DAY
    return value


def fold_case(text: str) -> str:
    """Lower case, one character for one character, so that `_` keeps its meaning."""
    lowered = text.lower()
    if len(lowered) == len(text) and "Σ" not in text:
        return lowered
    return "".join("i" if c == "İ" else "σ" if c == "Σ" else c.lower() for c in text)


def next_number(value: int | float, direction: int) -> int | float:
    """The next number, above (1) or below (-1), among all 64-bit integers and doubles."""
    nearest = float(value)
    beyond = nearest > value if direction > 0 else nearest < value
    double = nearest if beyond else math.nextafter(nearest, direction * math.inf)
    whole = math.floor(value) + 1 if direction > 0 else math.ceil(value) - 1
    if not INT64_MIN <= whole <= INT64_MAX:
        return double
    return min(whole, double) if direction > 0 else max(whole, double)


# -- literals -------------------------------------------------------------------------------------


def bad_scalar(value: object) -> str | None:
    """Why a scalar cannot be used, or None if it can. NaN is left to the caller."""
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
        return "not a point in time" if value != value else None
    if isinstance(value, dt.date):
        return None
    return f"a value of type {type(value).__name__} is not supported"


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
    """`2013-01-31`."""
    if not _DATE.fullmatch(text):
        raise ValueError(text)
    return dt.date.fromisoformat(text)


def read_timestamp(text: str) -> dt.datetime:
    """`2013-01-31 10:00`, with seconds, a fraction of up to six digits and an offset if wanted.

    The result is naive and means UTC."""
    if not _TIMESTAMP.fullmatch(text):
        raise ValueError(text)
    value = dt.datetime.fromisoformat(text)
    if value.tzinfo is None:
        return value
    try:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    except OverflowError:
        raise ValueError(f"{text} is before the year 1 or after 9999 in UTC") from None


# -- events ---------------------------------------------------------------------------------------


def flatten_event(
    event: Mapping[str, Any], settings: Settings = DEFAULT_SETTINGS
) -> dict[str, EventValue]:
    """An event as a flat map of attribute → value, checked; absent values are left out.

    Nested objects become dotted names. A list of objects becomes one list per inner name, a list
    of lists one list. NumPy scalars become Python's, decimals the nearest double.
    """
    if not isinstance(event, Mapping):
        raise EventError(
            f"an event is a mapping of attributes to values, not {type(event).__name__}"
        )
    flat: dict[str, EventValue] = {}
    budget = _Budget(settings)
    for name, value in event.items():
        kind = type(value)
        if kind is str and value.isascii() and type(name) is str and name.isascii():
            if name in flat:
                raise EventError(f"attribute {name!r} is given twice (once as a nested object)")
            flat[name] = value
        else:
            _flatten_into(flat, _name(name, ""), value, 1, budget)
    if len(flat) > settings.max_event_values:
        budget.overrun()
    return flat


class _Budget:
    """Counts list elements and watches the depth, so that no event can exhaust the process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.n_values = 0

    def spend(self, depth: int) -> None:
        self.n_values += 1
        if self.n_values > self.settings.max_event_values:
            self.overrun()
        if depth > self.settings.max_event_depth:
            raise EventError(
                f"an event may be nested {self.settings.max_event_depth} deep"
                " (setting max_event_depth)"
            )

    def overrun(self) -> None:
        raise EventError(
            f"an event may hold {self.settings.max_event_values} values (setting max_event_values)"
        )


def _name(name: object, prefix: str) -> str:
    if not isinstance(name, str):
        raise EventError(f"attribute names are strings, not {name!r} ({type(name).__name__})")
    if not name.isascii() and bad_scalar(name):
        raise EventError(f"attribute {name!r}: {bad_scalar(name)}")
    return prefix + name


def _flatten_into(
    flat: dict[str, EventValue], name: str, value: object, depth: int, budget: _Budget
) -> None:
    budget.spend(depth)
    if type(value) not in _SCALAR_TYPES and isinstance(value, Mapping):
        for inner, inner_value in value.items():
            _flatten_into(flat, _name(inner, name + "."), inner_value, depth + 1, budget)
        return
    if type(value) not in _SCALAR_TYPES and _is_sequence(value):
        _flatten_list(flat, name, value, depth, budget)  # type: ignore[arg-type]
        return
    scalar = _scalar(name, value)
    if scalar is not None:
        _put(flat, name, scalar)


def _put(flat: dict[str, EventValue], name: str, value: EventValue) -> None:
    if name in flat:
        raise EventError(f"attribute {name!r} is given twice (once as a nested object)")
    flat[name] = value


def _flatten_list(
    flat: dict[str, EventValue], name: str, values: Sequence[object], depth: int, budget: _Budget
) -> None:
    gathered: dict[str, list[Any]] = {}
    _gather(gathered, name, values, depth, budget)
    if not gathered:
        gathered[name] = []
    for inner, elements in gathered.items():
        _put(flat, inner, elements)


def _gather(
    gathered: dict[str, list[Any]], name: str, value: object, depth: int, budget: _Budget
) -> None:
    budget.spend(depth)
    if type(value) not in _SCALAR_TYPES and isinstance(value, Mapping):
        for inner, inner_value in value.items():
            _gather(gathered, _name(inner, name + "."), inner_value, depth + 1, budget)
    elif type(value) not in _SCALAR_TYPES and _is_sequence(value):
        for element in value:  # type: ignore[attr-defined]
            _gather(gathered, name, element, depth + 1, budget)
    else:
        scalar = _scalar(name, value)
        elements = gathered.setdefault(name, [])
        if scalar is not None:
            elements.append(scalar)


_SCALAR_TYPES = frozenset({str, int, float, bool, type(None)})  # the common ones, quickly


def _is_sequence(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return True
    is_array = type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"
    return is_array and value.ndim > 0


def _scalar(name: str, value: object) -> Value | None:
    """A checked scalar, or None for an absent one."""
    kind = type(value)
    if kind is int:
        if INT64_MIN <= value <= INT64_MAX:  # type: ignore[operator]
            return value  # type: ignore[return-value]
    elif kind is float:
        if value - value == 0.0:  # type: ignore[operator]
            return value  # type: ignore[return-value]
    elif value is None or kind is bool or (kind is str and value.isascii()):  # type: ignore[attr-defined]
        return value  # type: ignore[return-value]
    return _unusual_scalar(name, value)


def _unusual_scalar(name: str, value: object) -> Value | None:
    if type(value).__module__ == "numpy":
        value = _from_numpy(name, value)
    if isinstance(value, Decimal):
        if value.is_nan():
            return None
        value = float(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if type(value).__name__ in ("NaTType", "NAType") and type(value).__module__.startswith(
        "pandas"
    ):
        return None
    problem = bad_scalar(value)
    if problem:
        raise EventError(f"attribute {name!r}: {problem}")
    return value  # type: ignore[return-value]


def _from_numpy(name: str, value: Any) -> object:
    if value.dtype.kind == "M":
        return _from_datetime64(name, value)
    if value.dtype.kind in "biuf" or value.dtype.kind == "U":
        return value.item()
    raise EventError(f"attribute {name!r}: a value of type {type(value).__name__} is not supported")


class FineTimestamp(dt.datetime):
    """A point in time with nanoseconds, as pandas' Timestamp has them."""

    nanosecond = 0

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return (fine_timestamp, (dt.datetime.combine(self.date(), self.timetz()), self.nanosecond))


def fine_timestamp(time: dt.datetime, nanosecond: int) -> dt.datetime:
    """The time, plus 0 to 999 nanoseconds."""
    if not nanosecond:
        return time
    fine = FineTimestamp.combine(time.date(), time.timetz())
    fine.nanosecond = nanosecond
    return fine


def _from_datetime64(name: str, value: Any) -> object:
    if str(value) == "NaT":
        return None
    if value.dtype == "datetime64[D]":
        result = value.item()
    else:
        coarse = value.astype("datetime64[us]")
        left = value.astype("int64").item() % 1000 if str(value.dtype) == "datetime64[ns]" else 0
        result = coarse.item()
        if isinstance(result, dt.datetime):
            result = fine_timestamp(result, left)
    if isinstance(result, int):
        raise EventError(f"attribute {name!r}: {value} is before the year 1 or after 9999")
    return result
