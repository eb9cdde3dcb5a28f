"""What an event means: a flat map of attribute → value, from whatever holds the event.

    Flight(origin="JFK", geo=Geo(lat=40.6), tags=["a", "b"], gate=None)
    {"origin": "JFK", "geo": {"lat": 40.6}, "tags": ["a", "b"], "gate": None}
        ──►  {"origin": "JFK", "geo.lat": 40.6, "tags": ["a", "b"]}

An event is a *record*: a mapping, a dataclass, a named tuple, an object with `model_dump` (such as
a pydantic model), a Spark Row or a pandas Series. `flatten_event` is the definition; every faster
way into the engine agrees with it.

A value that is no scalar, no list and no record is an *object*, and stays as it is: bytes, an array
of two dimensions, an image, a model. Operators may want records and arrays untouched as well; a
`FlatEvent` has them beside what conditions see of them.
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
    Objects stay as they are.

    Raises
    ------
    EventError
        If this is no event, or if a value cannot be used.
    """
    if not isinstance(event, Mapping):
        event = as_mapping(event)
    flat: dict[str, EventValue] = {}
    budget = _Budget(settings)
    for name, value in event.items():
        kind = type(value)
        if kind is str and value.isascii() and type(name) is str and name.isascii():
            if name in flat:
                raise _repeated(name)
            flat[name] = value
        else:
            _flatten_into(flat, _name(name, ""), value, 1, budget)
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
    """A mapping that may hold a name twice, as a table may; `flatten_event` then complains."""

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
        return open_record(event)
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
    """Counts list elements and watches the depth, so that no event can exhaust the process.

    Keeps what `FlatEvent` has, too.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.n_values = 0
        self.whole: dict[str, Any] = {}  # what was opened and is no mapping, by its name

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
        raise EventError(f"attribute names are strings, not {shown(name)} ({type(name).__name__})")
    if not name.isascii() and bad_scalar(name):
        raise EventError(f"attribute {shown(name)}: {bad_scalar(name)}")
    return prefix + name


def _flatten_into(
    flat: dict[str, EventValue], name: str, value: object, depth: int, budget: _Budget
) -> None:
    budget.spend(depth)
    kind = type(value)
    if kind not in _SCALAR_TYPES:
        if kind not in _NO_RECORDS:
            given, value = value, _opened(value)
            if value is not given or _is_array(value):
                budget.whole[name] = given
        if isinstance(value, Mapping):
            for inner, inner_value in value.items():
                _flatten_into(flat, _name(inner, name + "."), inner_value, depth + 1, budget)
            return
        if _is_sequence(value):
            _flatten_list(flat, name, value, depth, budget)  # type: ignore[arg-type]
            return
    scalar = _scalar(name, value)
    if scalar is not None:
        _put(flat, name, scalar)


def _opened(value: object) -> object:
    """Return a nested dataclass, named tuple or model as a mapping, anything else as it is."""
    kind: Any = type(value)
    open_record = _opener(kind)
    return value if open_record is None else open_record(value)


def plain_scalar(name: str, value: object) -> EventValue | None:
    """Return a scalar inside of an event, checked; None if it is absent."""
    return _scalar(name, value)


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


def _repeated(name: str) -> EventError:
    return EventError(f"attribute {shown(name)} is given twice (once as a nested object)")


def _put(flat: dict[str, EventValue], name: str, value: EventValue) -> None:
    if name in flat:
        raise _repeated(name)
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
    kind = type(value)
    if kind not in _SCALAR_TYPES:
        if kind not in _NO_RECORDS:
            value = _opened(value)
        if isinstance(value, Mapping):
            for inner, inner_value in value.items():
                _gather(gathered, _name(inner, name + "."), inner_value, depth + 1, budget)
            return
        if _is_sequence(value):
            for element in value:  # type: ignore[attr-defined]
                _gather(gathered, name, element, depth + 1, budget)
            return
    scalar = _scalar(name, value)
    elements = gathered.setdefault(name, [])
    if scalar is not None:
        elements.append(scalar)


# The common types, to be recognised quickly.
_SCALAR_TYPES = frozenset({str, int, float, bool, type(None)})
_NO_RECORDS = frozenset({dict, list, tuple, dt.datetime, dt.date, Decimal})


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or _is_array(value)


def _is_array(value: Any) -> bool:
    """Whether this is an array of one dimension, which is a list; one of more is an object."""
    is_array = type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"
    return is_array and value.ndim == 1


def _scalar(name: str, value: object) -> EventValue | None:
    """Return a checked scalar or an object, or None for an absent value."""
    kind = type(value)
    if kind is int:
        if INT64_MIN <= value <= INT64_MAX:  # type: ignore[operator]
            return value
    elif kind is float:
        if value - value == 0.0:  # type: ignore[operator]
            return value
    elif value is None or kind is bool or (kind is str and value.isascii()):  # type: ignore[attr-defined]
        return value
    return _unusual_scalar(name, value)


def _unusual_scalar(name: str, value: object) -> EventValue | None:
    if isinstance(value, Opaque):
        return value
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        value = _from_numpy(name, value)
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
        raise EventError(f"attribute {shown(name)}: {problem}")
    return value


def _from_numpy(name: str, value: Any) -> object:
    if value.dtype.kind == "M":
        return _from_datetime64(name, value)
    return value.item() if value.dtype.kind in "biufU" else value


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
        raise EventError(f"attribute {shown(name)}: {value} is before the year 1 or after 9999")
    return result
