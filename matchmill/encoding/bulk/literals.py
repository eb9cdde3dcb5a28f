"""Literals in the bytes of expressions: numbers, strings, booleans, dates and timestamps.

    literal      type      whole, part
    1e3          NUMBER    the pair of a number (`encoding/numbers.py`)
    'Rome'       STRING    where it begins, where it ends
    true         BOOLEAN   1
    date '2013-01-31'                     DATE        days since 1970
    timestamp '2013-01-31 10:00+01:00'    TIMESTAMP   microseconds since 1970 UTC

What could be wrong, and what `decimals.py` has no answer for, has no type: -1.
"""

from __future__ import annotations

import numpy as np

from matchmill.encoding.bulk.decimals import NO_ANSWER, double_of
from matchmill.encoding.bulk.words import (
    AND_WORD,
    DIGIT,
    FALSE_WORD,
    LETTER,
    TRUE_WORD,
    after_quoted,
    after_space,
    after_word,
    word,
    word_at,
)
from matchmill.encoding.time_texts import read_clock, read_day
from matchmill.kernels.jit import int64, kernel
from matchmill.language.values import INT64_MAX, INT64_MIN, Region

__all__ = ["LIST", "ONE", "PAIR", "literals"]

_NUMBER, _DATE, _TIMESTAMP = int(Region.NUMBER), int(Region.DATE), int(Region.TIMESTAMP)
_STRING, _BOOLEAN = int(Region.STRING), int(Region.BOOLEAN)
_MOST_DIGITS = INT64_MAX // 10
_DAY = 86_400_000_000  # microseconds
_FIRST_DAY, _LAST_DAY = -719162, 2932896  # of the years 1 and 9999, counted from 1970
_DATE_WORD, _TI_WORD, _MESTAMP_WORD = map(word, ("date", "ti", "mestamp"))  # seven letters at most

ONE, PAIR, LIST = range(3)  # how many literals


@kernel
def _number(
    data: np.ndarray,
    classes: np.ndarray,
    fives: np.ndarray,
    tens: np.ndarray,
    at: int,
    stop: int,
) -> tuple[int, int, int, float]:
    is_negative = data[at] == 45
    if is_negative:
        at += 1
    digits, exponent = int64(0), int64(0)
    is_decimal = has_digits = False
    while at < stop:
        b = int64(data[at])
        if 48 <= b <= 57:
            if digits > _MOST_DIGITS or (digits == _MOST_DIGITS and b > 55):
                return -1, at, 0, 0.0
            digits = 10 * digits + (b - 48)
            has_digits = True
            if is_decimal:
                exponent -= 1
        elif b == 46 and not is_decimal:
            is_decimal = True
        else:
            break
        at += 1
    if not has_digits:
        return -1, at, 0, 0.0
    if at < stop and data[at] | 32 == 101:
        is_decimal = True
        at += 1
        is_down = at < stop and data[at] == 45
        if at < stop and (data[at] == 45 or data[at] == 43):
            at += 1
        start, power = at, int64(0)
        while at < stop and classes[data[at]] == DIGIT and at - start < 6:
            power = 10 * power + int64(data[at]) - 48
            at += 1
        if at == start:
            return -1, at, 0, 0.0
        exponent += -power if is_down else power
    if at < stop and (classes[data[at]] & (LETTER | DIGIT) or data[at] == 46):
        return -1, at, 0, 0.0  # a number takes every letter that follows
    if not is_decimal:
        return _NUMBER, at, -digits if is_negative else digits, 0.0
    value = double_of(digits, exponent, fives, tens)
    if value == NO_ANSWER:
        return -1, at, 0, 0.0
    if is_negative:
        value = -value
    if value >= 9223372036854775808.0:
        return _NUMBER, at, INT64_MAX, value
    if value <= -9223372036854775808.0:
        is_least = value == -9223372036854775808.0
        return _NUMBER, at, INT64_MIN, 0.0 if is_least else value
    whole = int64(value)
    return _NUMBER, at, whole, value - float(whole)


@kernel
def _time(
    data: np.ndarray, classes: np.ndarray, word: int, at: int, end: int, stop: int
) -> tuple[int, int, int, float]:
    """Read `date '…'` or `timestamp '…'`, whose first word begins and ends at these places."""
    bad = (-1, at, int64(0), 0.0)
    is_date = word == _DATE_WORD
    if not is_date:
        if end - at != 9 or word_at(data, at, at + 2) != _TI_WORD:
            return bad
        if word_at(data, at + 2, end) != _MESTAMP_WORD:
            return bad
    at = after_space(data, classes, end, stop)
    if at >= stop or data[at] != 39:
        return bad
    start, end = at + 1, after_quoted(data, 39, at + 1, stop)
    if end - start < 10:
        return bad
    days = read_day(data, start)
    if days < _FIRST_DAY or (is_date and end - start != 10):
        return bad
    if is_date:
        return _DATE, end + 1, int64(days), 0.0
    time, good = int64(0), True
    if end - start > 10:
        time, _, good = read_clock(data, start + 10, end)
    n_decimals = int64(0)
    for k in range(start + 20, end):
        if n_decimals != k - start - 20 or data[k] < 48 or data[k] > 57:
            break
        n_decimals += 1
    time += days * _DAY
    if not good or n_decimals > 6 or time < _FIRST_DAY * _DAY or time >= (_LAST_DAY + 1) * _DAY:
        return bad
    return _TIMESTAMP, end + 1, int64(time), 0.0


@kernel
def _literal(
    data: np.ndarray,
    classes: np.ndarray,
    fives: np.ndarray,
    tens: np.ndarray,
    at: int,
    stop: int,
) -> tuple[int, int, int, float]:
    """Read a literal; a string is where it begins and where it ends."""
    at = after_space(data, classes, at, stop)
    if at >= stop:
        return -1, at, 0, 0.0
    b = data[at]
    if b == 39:
        end = after_quoted(data, 39, at + 1, stop)
        return (-1 if end < 0 else _STRING), end + 1, at + 1, float(end)
    if classes[b] != LETTER:
        if classes[b] == DIGIT or b == 45 or b == 46:
            return _number(data, classes, fives, tens, at, stop)
        return -1, at, 0, 0.0
    end = after_word(data, classes, at, stop)
    word = word_at(data, at, end)
    if word in (TRUE_WORD, FALSE_WORD):
        return _BOOLEAN, end, int64(word == TRUE_WORD), 0.0
    return _time(data, classes, word, at, end, stop)


@kernel
def literals(
    data: np.ndarray,
    classes: np.ndarray,
    fives: np.ndarray,
    tens: np.ndarray,
    form: int,
    at: int,
    stop: int,
    n: int,
    whole: np.ndarray,
    part: np.ndarray,
) -> tuple[int, int, int]:
    """Read `1`, `1 and 2` or `(1, 2, 3)`; return the place after it, the type, and how many.

    All have one type. The place is -1 if that is not what is there.
    """
    if form == LIST:
        at = after_space(data, classes, at, stop)
        if at >= stop or data[at] != 40:
            return -1, 0, 0
        at += 1
    kind, start = int64(-1), n
    while True:
        region, at, a, b = _literal(data, classes, fives, tens, at, stop)
        if region < 0 or (kind >= 0 and region != kind):
            return -1, 0, 0
        kind = int64(region)
        whole[n], part[n] = a, b
        n += 1
        if form == ONE or (form == PAIR and n == start + 2):
            return at, kind, n - start
        at = after_space(data, classes, at, stop)
        if form == PAIR:
            end = after_word(data, classes, at, stop)
            if word_at(data, at, end) != AND_WORD:
                return -1, 0, 0
            at = end
        elif at >= stop or (data[at] != 41 and data[at] != 44):
            return -1, 0, 0
        elif data[at] == 41:
            return at + 1, kind, n - start
        else:
            at += 1
