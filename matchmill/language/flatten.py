"""What an event means: a flat map of attribute → value, from whatever holds the event.

    Flight(origin="JFK", geo=Geo(lat=40.6), tags=["a", "b"], gate=None)
    {"origin": "JFK", "geo": {"lat": 40.6}, "tags": ["a", "b"], "gate": None}
        ──►  {"origin": "JFK", "geo.lat": 40.6, "tags": ["a", "b"]}

An event is a *record*: a mapping, a dataclass, a named tuple, an object with `model_dump` (such as
a pydantic model), a Spark Row or a pandas Series. `flatten_event` is the definition; every faster
way into the engine agrees with it.

A value that is no scalar, no list and no record is an *object*, and stays as it is: bytes, an array
of two dimensions, an image, a model. So is, wrapped as `Opaque`, a value that cannot be compared:
an infinite number, an attribute that is given twice, what is nested too deep. No value rejects its
event, since nobody may have asked for it. Operators may want records and arrays untouched as well;
a `FlatEvent` has them beside what conditions see of them.

In a list, what is null is left out. A list in which nothing is left is an empty list:

    [{"y": 1}, {"z": null}, null]   ──►  x.y: [1]
    [{"y": []}]                     ──►  x.y: []
    [{"y": null}], [{}], [null]     ──►  x: []
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from matchmill.errors import EventError, shown
from matchmill.language.values import (
    INT64_MAX,
    INT64_MIN,
    EventValue,
    Opaque,
    Region,
    bad_scalar,
    decimal_value,
    fine_timestamp,
    region_of,
)
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = [
    "Event",
    "FlatEvent",
    "Pairs",
    "Record",
    "as_mapping",
    "flatten_event",
    "flatten_record",
    "is_record",
    "is_record_type",
    "nested_record",
    "nested_sequence",
    "plain_scalar",
]

Event: TypeAlias = Any  # any record; there is no type that all of them share


class Record(NamedTuple):
    """An event as it came, for patterns that look at more than its attributes."""

    event: Mapping[str, Any]
    has_nulls: bool  # a None is a null; in a table it is a missing value


class FlatEvent(dict[str, EventValue]):
    """A flat event that knows more than its attributes and their values."""

    __slots__ = ("fields", "record", "whole")

    def __init__(
        self,
        flat: Mapping[str, EventValue],
        whole: dict[str, Any],
        record: Record | None = None,
    ) -> None:
        super().__init__(flat)
        self.whole = whole  # attribute → what was an array, or a record that is no mapping
        self.record = record
        self.fields: Any = None  # of the record, once somebody needs them (`event_fields`)


def flatten_event(event: Event, settings: Settings = DEFAULT_SETTINGS) -> dict[str, EventValue]:
    """Return an event as a flat, checked map of attribute → value, without absent values.

    Nested objects become dotted names. A list of objects becomes one list per inner name, a list
    of lists becomes one list. NumPy scalars become Python scalars, decimals the nearest double.
    Objects stay as they are. What has a name that is no text is left out: nobody can ask for it.

    Raises
    ------
    EventError
        If this is no event, or has more values than `max_event_values`.
    """
    if isinstance(event, FlatEvent):
        return event
    if not isinstance(event, Mapping):
        event = as_mapping(event)
    flat: dict[str, EventValue] = {}
    budget = _Budget(settings)
    for name, value in event.items():
        kind = type(value)
        if kind is str and value.isascii() and type(name) is str and name.isascii():
            if name in flat:
                value = _given_twice(flat[name], value)
            flat[name] = value
        elif _is_name(name):
            _flatten_into(flat, name, value, 1, budget)
    if len(flat) > settings.max_event_values:
        budget.overrun()
    return FlatEvent(flat, budget.whole) if budget.whole else flat


def flatten_record(
    event: Event, settings: Settings = DEFAULT_SETTINGS, *, has_nulls: bool = True
) -> FlatEvent:
    """Return a flat event together with the record that it comes from.

    `has_nulls` tells whether a None is a null, as in JSON, or a missing value, as in a table.
    """
    if isinstance(event, FlatEvent) and event.record is not None:
        return event
    mapping = as_mapping(event)
    flat = flatten_event(mapping, settings)
    whole = flat.whole if isinstance(flat, FlatEvent) else {}
    return FlatEvent(flat, whole, Record(mapping, has_nulls))


# -- records --------------------------------------------------------------------------------------


class Pairs(Mapping[str, Any]):
    """A mapping that may hold a name twice, as a table may."""

    def __init__(self, pairs: Iterable[tuple[str, Any]]) -> None:
        self._pairs = list(pairs)

    def items(self) -> list[tuple[str, Any]]:  # type: ignore[override]
        """Return all pairs, including repeated names."""
        return self._pairs

    def __getitem__(self, name: str) -> Any:
        return dict(self._pairs)[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)


def as_mapping(event: Event) -> Mapping[str, Any]:
    """Return the mapping of attributes to values that a record stands for.

    Raises
    ------
    EventError
        If this is no record.
    """
    if isinstance(event, Mapping):
        return event
    kind: Any = type(event)
    if (open_record := _opener(kind)) is not None:
        opened = open_record(event)
        if isinstance(opened, Mapping):
            return opened
        raise EventError(  # a model with a root of another type
            f"an event has names of attributes; {kind.__name__} stands for"
            f" a {type(opened).__name__}, which has none"
        )
    if _is_series(kind):
        return _series(event)
    raise EventError(
        "an event is a mapping of attributes to values, or a dataclass, named tuple, pydantic model"
        f" or pandas Series, not {kind.__name__}{_advice(event)}"
    )


def is_record(value: object) -> bool:
    """Whether `as_mapping` takes this value."""
    return is_record_type(type(value))


def is_record_type(kind: Any) -> bool:
    """Whether `as_mapping` takes all values of this type."""
    return issubclass(kind, Mapping) or _opener(kind) is not None or _is_series(kind)


@lru_cache(maxsize=256)
def _opener(kind: Any) -> Callable[[Any], Mapping[str, Any]] | None:
    """Return the function that turns values of a type into mappings; None if they are no objects.

    Neither mappings, which need none, nor a Series, which inside an event would be a list.
    """
    if issubclass(kind, tuple):
        if hasattr(kind, "_fields"):
            return lambda value: value._asdict()
        return (lambda value: value.asDict()) if hasattr(kind, "asDict") else None
    if hasattr(kind, "__dataclass_fields__"):
        names = [field.name for field in dataclasses.fields(kind)]
        return lambda value: {name: getattr(value, name) for name in names}
    return (lambda value: value.model_dump()) if hasattr(kind, "model_dump") else None


def _series(series: Any) -> Pairs:
    pairs = Pairs(series.items())
    for name in pairs:
        if not isinstance(name, str):
            raise EventError(
                f"a Series is one event, with names of attributes as its index, not {shown(name)};"
                " several values of one attribute are a column: pass a DataFrame"
            )
    return pairs


def _is_series(kind: type) -> bool:
    """Whether this is a pandas Series; pandas need not be installed."""
    return any(
        base.__name__ == "Series" and base.__module__.partition(".")[0] == "pandas"
        for base in kind.__mro__
    )


def _advice(event: object) -> str:
    if isinstance(event, (str, bytes)):
        return "; JSON text is decoded first: json.loads(text)"
    if isinstance(event, (list, tuple)) or hasattr(event, "__arrow_c_stream__"):
        return "; several events go through match_many"
    return ""


# -- values ---------------------------------------------------------------------------------------


class _Budget:
    """Counts values, so that no event can exhaust the process; keeps what `FlatEvent` has, too."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.n_values = 0
        self.whole: dict[str, Any] = {}  # what was opened and is no mapping, by its name

    def spend(self) -> None:
        self.n_values += 1
        if self.n_values > self.settings.max_event_values:
            self.overrun()

    def too_deep(self, value: object) -> Opaque:
        return Opaque(
            value,
            f"is nested more than {self.settings.max_event_depth} deep (setting max_event_depth)",
        )

    def overrun(self) -> None:
        raise EventError(
            f"an event may hold {self.settings.max_event_values} values (setting max_event_values)"
        )


def _is_name(name: object) -> bool:
    """Whether this can be the name of an attribute; no expression can have any other."""
    return isinstance(name, str) and (name.isascii() or bad_scalar(name) is None)


def _flatten_into(
    flat: dict[str, EventValue], name: str, value: object, depth: int, budget: _Budget
) -> None:
    if value is None:
        return
    budget.spend()
    kind = type(value)
    if kind not in _SCALAR_TYPES:
        if kind not in _NO_RECORDS:
            given, value = value, _opened(value)
            if value is not given or _is_array(value):
                budget.whole[name] = given
        is_mapping = isinstance(value, Mapping)
        if is_mapping or _is_sequence(value):
            if depth >= budget.settings.max_event_depth:
                _put(flat, name, budget.too_deep(value))
            elif is_mapping:
                for inner, inner_value in value.items():  # type: ignore[attr-defined]
                    if _is_name(inner):
                        _flatten_into(flat, f"{name}.{inner}", inner_value, depth + 1, budget)
            else:
                gathered: dict[str, list[Any]] = {}
                _gather(gathered, name, value, depth, budget)
                for inner, elements in gathered.items():
                    _put(flat, inner, elements)
            return
    scalar = _scalar(value)
    if scalar is not None:
        _put(flat, name, scalar)


def _opened(value: object) -> object:
    """Return a nested dataclass, named tuple or model as a mapping, anything else as it is."""
    kind: Any = type(value)
    open_record = _opener(kind)
    return value if open_record is None else open_record(value)


def plain_scalar(name: str, value: object) -> EventValue | None:
    """Return a scalar inside of an event, checked; None if it is absent."""
    return _scalar(value)


def nested_record(value: object) -> Mapping[str, Any] | None:
    """Return a value inside of an event as a mapping; None if it is no record."""
    kind = type(value)
    if kind in _SCALAR_TYPES:
        return None
    opened = value if kind in _NO_RECORDS else _opened(value)
    return opened if isinstance(opened, Mapping) else None


def nested_sequence(value: object) -> Sequence[Any] | None:
    """Return a value inside of an event as a sequence; None if it is no list."""
    return value if type(value) not in _SCALAR_TYPES and _is_sequence(value) else None  # type: ignore[return-value]


def _put(flat: dict[str, EventValue], name: str, value: EventValue) -> None:
    flat[name] = _given_twice(flat[name], value) if name in flat else value


def _given_twice(first: EventValue, second: EventValue) -> Opaque:
    return Opaque((first, second), "is given twice (once as a nested object)")


def _gather(
    gathered: dict[str, list[Any]], name: str, value: object, depth: int, budget: _Budget
) -> bool:
    """Add what is inside a list, and return whether there was anything."""
    if value is None:
        return False
    budget.spend()
    kind = type(value)
    if kind not in _SCALAR_TYPES:
        if kind not in _NO_RECORDS:
            value = _opened(value)
        is_mapping = isinstance(value, Mapping)
        if is_mapping or _is_sequence(value):
            if depth >= budget.settings.max_event_depth:
                gathered.setdefault(name, []).append(budget.too_deep(value))
                return True
            found = False
            if is_mapping:
                for inner, inner_value in value.items():  # type: ignore[attr-defined]
                    if _is_name(inner):
                        inner_name = f"{name}.{inner}"
                        found |= _gather(gathered, inner_name, inner_value, depth + 1, budget)
                return found
            for element in value:  # type: ignore[attr-defined]
                found |= _gather(gathered, name, element, depth + 1, budget)
            if not found:
                gathered.setdefault(name, [])
            return True
    scalar = _scalar(value)
    if scalar is None:
        return False
    gathered.setdefault(name, []).append(scalar)
    return True


# The common types, to be recognised quickly.
_SCALAR_TYPES = frozenset({str, int, float, bool, type(None)})
_NO_RECORDS = frozenset({dict, list, tuple, dt.datetime, dt.date, Decimal})


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or _is_array(value)


def _is_array(value: Any) -> bool:
    """Whether this is an array of one dimension, which is a list; one of more is an object."""
    is_array = type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"
    return is_array and value.ndim == 1


def _scalar(value: object) -> EventValue | None:
    """Return a scalar or an object, or None for an absent value."""
    kind = type(value)
    if kind is int:
        if INT64_MIN <= value <= INT64_MAX:  # type: ignore[operator]
            return value
    elif kind is float:
        if value - value == 0.0:  # type: ignore[operator]
            return value
    elif value is None or kind is bool or (kind is str and value.isascii()):  # type: ignore[attr-defined]
        return value
    return _unusual_scalar(value)


def _unusual_scalar(value: object) -> EventValue | None:
    if isinstance(value, Opaque):
        return value
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        value = _from_numpy(value)
    if isinstance(value, Decimal):
        if value.is_nan():
            return None
        value = decimal_value(value)
        if isinstance(value, Decimal):
            return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if type(value).__name__ in ("NaTType", "NAType") and type(value).__module__.startswith(
        "pandas"
    ):
        return None
    if region_of(value) != Region.OBJECT and (problem := bad_scalar(value)):
        return Opaque(value, f"cannot be compared: {problem}")
    return value


def _from_numpy(value: Any) -> object:
    if value.dtype.kind == "M":
        return _from_datetime64(value)
    return value.item() if value.dtype.kind in "biufU" else value


def _from_datetime64(value: Any) -> object:
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
        return Opaque(value, "cannot be compared: it is before the year 1 or after 9999")
    return result
