"""Declared types of attributes: what a value of an attribute is read as.

    types = {"ts": "timestamp", "code": "text"}
    {"ts": "2013-01-31", "code": 7}  ──►  {"ts": timestamp '2013-01-31 00:00:00', "code": "7"}

| type        | is read as such                                                             |
|-------------|-----------------------------------------------------------------------------|
| `timestamp` | timestamps; dates, as their midnight; ISO 8601 text of either               |
| `date`      | dates; timestamps, as their day in UTC; ISO 8601 text of either             |
| `number`    | numbers; text of a decimal number: `7`, `-0.5`, `1e6`                       |
| `text`      | text; numbers, as `7` and `0.5`; booleans; times, in ISO 8601               |
| `boolean`   | booleans; the texts `true` and `false`, in any case; the numbers 0 and 1    |
| `hex`       | numbers; text of a hexadecimal number: `0x3e7`, `3E7`                       |
| `number-or-text`  | text of a decimal number, or of a hexadecimal one with `0x`, as a     |
|             | number; anything else as it is                                              |
| `boolean-or-text` | the texts `true` and `false`, in any case, as booleans; anything else |
|             | as it is                                                                    |

The last three *convert*: literals that an attribute is compared with are read in the same way
(`coercion`).

A value that cannot be read so is an object: present, and every comparison with it is unknown. Of a
list, each element is read.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

from matchmill.errors import InputError, did_you_mean, shown
from matchmill.language.flatten import FlatEvent, flatten_record
from matchmill.language.values import (
    INT64_MAX,
    INT64_MIN,
    EventValue,
    Opaque,
    Region,
    read_time,
    region_of,
)
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = ["CONVERTING", "TYPES", "AttributeTypes", "checked_types", "typed_event", "typed_value"]

AttributeTypes: TypeAlias = Mapping[str, str]


def checked_types(types: object) -> dict[str, str]:
    """Return declared types as a dict; InputError unless they are some."""
    if types is None:
        return {}
    if not isinstance(types, Mapping):
        raise InputError(f"types is a mapping such as {{'ts': 'timestamp'}}, not {shown(types)}")
    for name, kind in types.items():
        if not isinstance(name, str):
            raise InputError(f"types has names of attributes, not {shown(name)}")
        if not isinstance(kind, str) or kind not in TYPES:
            raise InputError(
                f"no type {shown(kind)} of {shown(name)}; there are: {', '.join(TYPES)}"
                + (did_you_mean(kind, TYPES) if isinstance(kind, str) else "")
            )
    return dict(types)


def typed_event(
    event: Any, types: AttributeTypes, settings: Settings = DEFAULT_SETTINGS
) -> dict[str, EventValue]:
    """Return an event as `flatten_event` does, with the attributes that have types read so."""
    flat = flatten_record(event, settings)
    declared = [name for name in types if name in flat]
    if not declared:
        return flat
    read = FlatEvent(flat, flat.whole, flat.record)
    for name in declared:
        value = flat[name]
        if isinstance(value, (list, tuple)):
            read[name] = [typed_value(element, types[name]) for element in value]
        else:
            read[name] = typed_value(value, types[name])
    return read


def typed_value(value: EventValue, kind: str) -> EventValue:
    """Return one value, no list, read as a type; an object if that cannot be."""
    if region_of(value) == Region.OBJECT:
        return value
    read = TYPES[kind](value)
    return Opaque(value, f"cannot be read as a {kind}") if read is None else read


def _timestamp(value: EventValue) -> EventValue | None:
    time = read_time(value) if isinstance(value, str) else value
    if isinstance(time, dt.datetime):
        return time
    return dt.datetime.combine(time, dt.time()) if isinstance(time, dt.date) else None


def _date(value: EventValue) -> EventValue | None:
    time = read_time(value) if isinstance(value, str) else value
    if isinstance(time, dt.datetime):
        return (time if time.tzinfo is None else time.astimezone(dt.UTC)).date()
    return time if isinstance(time, dt.date) else None


_NUMBER = re.compile(r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_INTEGER = re.compile(r"-?\d{1,19}", re.ASCII)


def _number(value: EventValue) -> EventValue | None:
    if not isinstance(value, str):
        return value if region_of(value) == Region.NUMBER else None
    if not _NUMBER.fullmatch(value):
        return None
    if _INTEGER.fullmatch(value) and INT64_MIN <= int(value) <= INT64_MAX:
        return int(value)
    number = float(value)
    return number if number - number == 0.0 else None


def _text(value: EventValue) -> EventValue | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        is_whole = value.is_integer() and abs(value) < 2.0**63
        return str(int(value)) if is_whole else repr(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, dt.datetime):
        utc = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
        nanosecond = getattr(value, "nanosecond", 0)
        plain = dt.datetime.combine(utc.date(), utc.time())
        if not nanosecond:
            return plain.isoformat()
        return f"{plain.isoformat(timespec='microseconds')}{nanosecond:03}"
    return value.isoformat() if isinstance(value, dt.date) else None


def _boolean(value: EventValue) -> EventValue | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower())
    if isinstance(value, bool):
        return value
    return bool(value) if region_of(value) == Region.NUMBER and value in (0, 1) else None


_HEX = re.compile(r"(?:0[xX])?[0-9a-fA-F]{1,16}", re.ASCII)


def _hex(value: EventValue) -> EventValue | None:
    if not isinstance(value, str):
        return value if region_of(value) == Region.NUMBER else None
    number = int(value, 16) if _HEX.fullmatch(value) else INT64_MAX + 1
    return number if number <= INT64_MAX else None


def _number_or_text(value: EventValue) -> EventValue | None:
    if not isinstance(value, str):
        return value
    number = _hex(value) if value[:2] in ("0x", "0X") else _number(value)
    return value if number is None else number


def _boolean_or_text(value: EventValue) -> EventValue | None:
    return {"true": True, "false": False}.get(value.lower(), value) if _is_word(value) else value


def _is_word(value: EventValue) -> bool:
    return isinstance(value, str) and len(value) in (4, 5)


TYPES: dict[str, Callable[[EventValue], EventValue | None]] = {
    "timestamp": _timestamp,
    "date": _date,
    "number": _number,
    "text": _text,
    "boolean": _boolean,
    "hex": _hex,
    "number-or-text": _number_or_text,
    "boolean-or-text": _boolean_or_text,
}
CONVERTING = frozenset(("hex", "number-or-text", "boolean-or-text"))
"""The types that literals are read as, too."""
