"""Dates and timestamps out of texts in ISO 8601, as `language.values.read_time` reads one text.

    2013-01-31                          a date
    2013-01-31T10:00[:00[.000000001]]   a timestamp; a space for the T, and then Z, +02, +0200 or
                                        +02:00, or nothing, which means UTC

What is read is a pair as in `numbers.py`: days, or microseconds and the rest.
"""

from __future__ import annotations

import numpy as np

from matchmill.encoding.texts import Texts
from matchmill.kernels.jit import int64, kernel

__all__ = ["IS_DATE", "IS_TIMESTAMP", "read_clock", "read_day", "read_times"]

IS_DATE, IS_TIMESTAMP = 1, 2

_MINUTE = 60_000_000  # microseconds
_DAY = 1440 * _MINUTE
_FIRST_DAY, _LAST_DAY = -719162, 2932896  # of the years 1 and 9999, counted from 1970


@kernel
def read_times(texts: Texts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return for each text what it is (IS_DATE, IS_TIMESTAMP or 0), its whole number and rest."""
    n = len(texts.offsets) - 1
    kinds = np.zeros(n, np.uint8)
    whole = np.zeros(n, np.int64)
    part = np.zeros(n, np.float64)
    for i in range(n):
        start, stop = texts.offsets[i], texts.offsets[i + 1]
        if stop - start < 10:
            continue
        days = read_day(texts.data, start)
        if days < _FIRST_DAY:
            continue
        if stop - start == 10:
            kinds[i], whole[i] = IS_DATE, days
            continue
        time, nanoseconds, good = read_clock(texts.data, start + 10, stop)
        time += days * _DAY
        if good and _FIRST_DAY * _DAY <= time < (_LAST_DAY + 1) * _DAY:
            kinds[i], whole[i], part[i] = IS_TIMESTAMP, time, nanoseconds / 1000.0
    return kinds, whole, part


@kernel
def read_day(data: np.ndarray, at: int) -> int:
    """Return the days since 1970 of ten bytes `2013-01-31`; less than the first day if bad."""
    bad = _FIRST_DAY - 1
    century, in_century = _digits(data, at), _digits(data, at + 2)
    month, day = _digits(data, at + 5), _digits(data, at + 8)
    if century < 0 or in_century < 0 or data[at + 4] != 45 or data[at + 7] != 45:
        return bad
    year = 100 * century + in_century
    if year < 1 or month < 1 or month > 12 or day < 1 or day > 31:
        return bad
    if day > 28:
        is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        if month == 2 and day > 28 + is_leap:
            return bad
        if day > 30 and (month == 4 or month == 6 or month == 9 or month == 11):
            return bad
    # Years begin in March here, so that the day that leap years add is the last one.
    if month <= 2:
        year -= 1
        month += 12
    return (
        365 * year + year // 4 - year // 100 + year // 400 + (153 * month - 457) // 5 + day - 719469
    )


@kernel
def read_clock(data: np.ndarray, at: int, stop: int) -> tuple[int, int, bool]:
    """Return the microseconds of ` 10:00:00.000000001+02:00`, the nanoseconds left, success."""
    bad = (0, 0, False)
    if stop - at < 6 or (data[at] != 84 and data[at] != 32) or data[at + 3] != 58:  # T, space, :
        return bad
    hour, minute = _digits(data, at + 1), _digits(data, at + 4)
    if hour < 0 or hour > 23 or minute < 0 or minute > 59:
        return bad
    time = (60 * hour + minute) * _MINUTE
    nanoseconds = 0
    at += 6
    if at < stop and data[at] == 58:
        second = _digits(data, at + 1) if at + 3 <= stop else -1
        if second < 0 or second > 59:
            return bad
        time += second * 1_000_000
        at += 3
        if at < stop and data[at] == 46:  # a point
            at += 1
            scale = 100_000_000
            start = at
            while at < stop and 48 <= data[at] <= 57 and at - start < 10:
                nanoseconds += (int64(data[at]) - 48) * scale
                scale //= 10
                at += 1
            if at == start or at - start > 9:
                return bad
            time += nanoseconds // 1000
            nanoseconds %= 1000
    if at == stop or (data[at] == 90 and at + 1 == stop):  # Z
        return time, nanoseconds, True
    sign = 1 if data[at] == 43 else -1 if data[at] == 45 else 0
    length = stop - at
    if sign == 0 or (length != 3 and length != 5 and length != 6):
        return bad
    hours, minutes = _digits(data, at + 1), 0
    if length > 3:
        minutes = _digits(data, stop - 2)
    if length == 6 and data[at + 3] != 58:
        return bad
    if hours < 0 or hours > 23 or minutes < 0 or minutes > 59:
        return bad
    return time - sign * (60 * hours + minutes) * _MINUTE, nanoseconds, True


@kernel
def _digits(data: np.ndarray, at: int) -> int:
    """Return the number of two digits, or -1."""
    tens, ones = data[at], data[at + 1]
    if tens < 48 or tens > 57 or ones < 48 or ones > 57:
        return -1
    return 10 * (int(tens) - 48) + int(ones) - 48
