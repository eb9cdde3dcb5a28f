"""Readers: functions that take a value of one attribute and type and return its pairs as bytes.

    pairs   d0 k0 d1 k1 …      a dimension and a key, each an int64 of this machine

An absent value has no pairs. A value that has to be rejected, or that no reader here knows, is
*awkward*. Only Python's own types have readers, not types derived from them, which may compare or
print differently.

A `Memo` caches what a reader returned. It is dropped when it has grown large, because then values
hardly repeat, and caching takes longer than searching. Where searching is slow, the memo is emptied
instead.
"""

from __future__ import annotations

import datetime as dt
import sys
from bisect import bisect_right
from collections.abc import Callable
from struct import Struct
from typing import Any, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np

from matchmill.encoding.dimensions import FALSE_KEY, TRUE_KEY
from matchmill.encoding.single.key_search import EXACT_DOUBLES, KeySearch
from matchmill.encoding.text_patterns import PatternTiers
from matchmill.language.values import INT64_MAX, INT64_MIN, bad_scalar, domain_value, read_time

__all__ = [
    "IGNORING",
    "Awkward",
    "Memo",
    "Reader",
    "TextFlags",
    "TextLookup",
    "boolean_reader",
    "date_reader",
    "float_reader",
    "int_reader",
    "longest_text",
    "pair",
    "text_reader",
    "time_reader",
    "time_text_reader",
]

Reader: TypeAlias = Callable[[Any], bytes]

pair: Callable[[int, int], bytes] = Struct("=qq").pack

_MOST_KEPT = 1024
_LONGEST_KEPT = 64  # characters
_MOST_BYTES = 4  # of a character
_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=dt.UTC)
_EPOCH_DAY = _EPOCH.toordinal()
_MICROSECOND = dt.timedelta(microseconds=1)
_SAFE_ZONES = frozenset((type(None), dt.timezone, ZoneInfo))  # others may fail, or have no offset


class Awkward(Exception):
    """A value that no reader here can treat."""


class Memo(dict[Any, bytes]):
    """Value → pairs, for values that can be told apart by `==`."""

    __slots__ = ("_give_up", "_longest", "_read")

    def __init__(
        self,
        read: Reader,
        give_up: Callable[[Reader], None] | None,
        longest: int = _LONGEST_KEPT,
    ) -> None:
        """Cache a reader; `give_up` is called once, with the reader to be used from then on.

        Texts of more than `longest` characters are not kept.
        """
        super().__init__()
        self._read = read
        self._give_up = give_up
        self._longest = longest

    def __missing__(self, value: Any) -> bytes:
        pairs = self._read(value)
        if type(value) is not str or len(value) <= self._longest:
            self[value] = pairs
            if len(self) > _MOST_KEPT:
                self.clear()
                if self._give_up is not None:
                    self._give_up(self._read)
        return pairs


# -- numbers and times ----------------------------------------------------------------------------


def int_reader(dimension: int, search: KeySearch) -> Reader:
    """Return the reader of integers."""
    key_of = search.key_of

    def read(value: int) -> bytes:
        if -EXACT_DOUBLES < value < EXACT_DOUBLES:
            return pair(dimension, key_of(float(value)))  # doubles compare faster
        if INT64_MIN <= value <= INT64_MAX:
            return pair(dimension, key_of(value))
        raise Awkward

    return read


def float_reader(dimension: int, search: KeySearch) -> Reader:
    """Return the reader of floats."""
    key_of = search.key_of

    def read(value: float) -> bytes:
        if value - value == 0.0:
            return pair(dimension, key_of(value))
        return _not_finite(value)

    if len(search.slots) != 1:
        return read
    _, edges, keys = search.slots[0]

    def read_at_once(value: float) -> bytes:
        if value - value == 0.0:
            return pair(dimension, keys[bisect_right(edges, value)])
        return _not_finite(value)

    return read_at_once


def boolean_reader(dimension: int) -> Reader:
    """Return the reader of booleans."""
    false, true = pair(dimension, FALSE_KEY), pair(dimension, TRUE_KEY)
    return lambda value: true if value else false


def date_reader(dimension: int, search: KeySearch) -> Reader:
    """Return the reader of dates."""
    key_of = search.key_of
    return lambda value: pair(dimension, key_of(float(value.toordinal() - _EPOCH_DAY)))


def time_reader(dimension: int, search: KeySearch) -> Reader:
    """Return the reader of timestamps."""
    key_of = search.key_of

    def read(value: dt.datetime) -> bytes:
        if type(value.tzinfo) not in _SAFE_ZONES:
            raise Awkward
        since_1970 = value - (_EPOCH if value.tzinfo is None else _EPOCH_UTC)
        return pair(dimension, key_of(since_1970 // _MICROSECOND))

    return read


def time_text_reader(dimension: int, dates: KeySearch, timestamps: KeySearch) -> Reader:
    """Return the reader of texts that may stand for times; others have no pairs."""

    def read(text: str) -> bytes:
        time = read_time(text)
        if time is None:
            return b""
        if not isinstance(time, dt.datetime):
            return pair(dimension, dates.key_of(float(time.toordinal() - _EPOCH_DAY)))
        nanoseconds = int(domain_value(time))
        if nanoseconds % 1000 == 0:
            return pair(dimension, timestamps.key_of(nanoseconds // 1000))
        whole = np.array([nanoseconds // 1000], np.int64)
        part = np.array([nanoseconds % 1000 / 1000])
        return pair(dimension, int(timestamps.table.number_keys(whole, part)[0]))

    return read


def _not_finite(value: float) -> bytes:
    if value != value:
        return b""
    raise Awkward


# -- text -----------------------------------------------------------------------------------------


class TextLookup(NamedTuple):
    """A dimension whose key is that of a text made from the text; None is absent."""

    dimension: int
    made_from: Callable[[str], str | None]
    search: KeySearch


class TextFlags(NamedTuple):
    """Dimensions that tell which patterns are found, or not, in a text made from the text."""

    made_from: Callable[[str], str]
    matcher: PatternTiers
    dimensions: np.ndarray
    wants_misses: bool


def text_reader(
    value: TextLookup | None,
    made: list[TextLookup],
    flags: list[TextFlags],
    most_work: int,
    time: Reader | None = None,
) -> Reader:
    """Return the reader of texts; those that patterns might work on too long are awkward.

    `time` reads those that stand for times.
    """
    if value is not None and not made and not flags and time is None:
        return _plain_text_reader(value)
    lookups = made if value is None else [value, *made]
    longest = longest_text(sum(own.matcher.instructions for own in flags), most_work)

    def read(text: str) -> bytes:
        if len(text) > longest:
            raise Awkward
        _check_text(text)
        records = [] if time is None else [time(text)]
        for dimension, made_from, search in lookups:
            derived = made_from(text)
            if derived is not None:
                records.append(pair(dimension, search.key_of(derived)))
        for of_text, matcher, dimensions, wants_misses in flags:
            found = matcher.patterns_of(of_text(text))
            set_flags = np.delete(dimensions, found) if wants_misses else dimensions[found]
            records += [pair(dimension, TRUE_KEY) for dimension in set_flags.tolist()]
        return b"".join(records)

    return read


def longest_text(instructions: int, most_work: int) -> int:
    """Return how many characters are surely no more work than allowed; see `pattern_work`."""
    return most_work // (_MOST_BYTES * instructions) if instructions else sys.maxsize


def _plain_text_reader(value: TextLookup) -> Reader:
    dimension, key_of = value.dimension, value.search.key_of

    def read(text: str) -> bytes:
        if not text.isascii():
            _check_text(text)
        return pair(dimension, key_of(text))

    return read


def _check_text(text: str) -> None:
    if bad_scalar(text) is not None:
        raise Awkward


# -- values that no subscription uses -------------------------------------------------------------


def _ignore_text(value: str) -> bytes:
    if not value.isascii():
        _check_text(value)
    return b""


def _ignore_int(value: int) -> bytes:
    if INT64_MIN <= value <= INT64_MAX:
        return b""
    raise Awkward


def _ignore_float(value: float) -> bytes:
    return b"" if value - value == 0.0 else _not_finite(value)


def _ignore(value: object) -> bytes:
    return b""


IGNORING: dict[type, Reader] = {
    str: _ignore_text,
    int: _ignore_int,
    float: _ignore_float,
    bool: _ignore,
    type(None): _ignore,
    dt.date: _ignore,
    dt.datetime: _ignore,
}
