"""The tokens of JSON patterns in text; see `tokens.py`.

A text is read strictly: what is left to the parser is what Python's `json` rejects, or reads in a
way that is not worth it here. Numbers are read as `float` reads them, escapes become UTF-8.
"""

from __future__ import annotations

import numpy as np

from matchmill.encoding.bulk.decimals import NO_ANSWER, double_of, powers
from matchmill.encoding.bulk.tokens import (
    DEEPEST,
    DOUBLE,
    END_OF_LIST,
    END_OF_OBJECT,
    FALSE_TOKEN,
    KEY,
    LIST,
    NULL,
    OBJECT,
    TEXT,
    TRUE_TOKEN,
    WHOLE,
    Tokens,
    no_tokens,
    pair_of_double,
)
from matchmill.encoding.texts import Texts
from matchmill.kernels.jit import int64, kernel
from matchmill.language.values import INT64_MAX

__all__ = ["tokens_of_json"]

_MOST_DIGITS = INT64_MAX // 10


def tokens_of_json(texts: Texts, rows: np.ndarray) -> Tokens:
    """Return the tokens of some of these texts."""
    n_bytes = int((texts.offsets[rows + 1] - texts.offsets[rows]).sum())
    out = no_tokens(len(rows), n_bytes)
    fives, tens = powers()
    n_bytes = _read_json(
        texts.data,
        texts.offsets[rows],
        texts.offsets[rows + 1],
        fives,
        tens,
        out.tokens,
        out.parts,
        out.row_tokens,
        out.data,
    )
    return out._replace(n_bytes=n_bytes)


@kernel
def _json_number(
    data: np.ndarray, at: int, stop: int, fives: np.ndarray, tens: np.ndarray
) -> tuple[int, int, int, float]:
    """Read a number: the place after it, -1 if it is odd; WHOLE or DOUBLE; the pair."""
    bad = (-1, WHOLE, int64(0), 0.0)
    is_negative = data[at] == 45
    if is_negative:
        at += 1
    start = at
    digits, exponent = int64(0), int64(0)
    is_decimal = False
    while at < stop:
        b = int64(data[at])
        if 48 <= b <= 57:
            if digits > _MOST_DIGITS or (digits == _MOST_DIGITS and b > 55):
                return bad
            digits = 10 * digits + (b - 48)
            if is_decimal:
                exponent -= 1
        elif b == 46 and not is_decimal and at > start:
            is_decimal = True
        else:
            break
        at += 1
    if (
        at == start
        or data[at - 1] == 46
        or (data[start] == 48 and start + 1 < at and data[start + 1] != 46)
    ):
        return bad
    if at < stop and data[at] | 32 == 101:
        is_decimal = True
        at += 1
        is_down = at < stop and data[at] == 45
        if at < stop and (data[at] == 45 or data[at] == 43):
            at += 1
        start, power = at, int64(0)
        while at < stop and 48 <= data[at] <= 57 and at - start < 6:
            power = 10 * power + int64(data[at]) - 48
            at += 1
        if at == start:
            return bad
        exponent += -power if is_down else power
    if not is_decimal:
        return at, WHOLE, -digits if is_negative else digits, 0.0
    value = double_of(digits, exponent, fives, tens)
    if value == NO_ANSWER or (value == 0.0 and is_negative):  # -0.0 is printed as it is
        return bad
    whole, part = pair_of_double(-value if is_negative else value)
    return at, DOUBLE, whole, part


@kernel
def _four_digits(data: np.ndarray, at: int, stop: int) -> int:
    """Return the number of four hexadecimal digits; -1 if that is not what is here."""
    if at + 4 > stop:
        return -1
    number = int64(0)
    for k in range(at, at + 4):
        b = int64(data[k])
        if 48 <= b <= 57:
            b -= 48
        elif 97 <= b | 32 <= 102:
            b = (b | 32) - 87
        else:
            return -1
        number = 16 * number + b
    return int(number)


@kernel
def _put_character(code: int, out_data: np.ndarray, n: int) -> int:
    """Write a character as UTF-8; return where it ends."""
    if code < 0x80:
        out_data[n] = code
        return n + 1
    n_more = 1 if code < 0x800 else 2 if code < 0x10000 else 3
    out_data[n] = (0xFF << (7 - n_more) & 0xFF) | code >> 6 * n_more
    for k in range(n_more):
        out_data[n + 1 + k] = 0x80 | (code >> 6 * (n_more - 1 - k) & 0x3F)
    return n + 1 + n_more


@kernel
def _escaped(data: np.ndarray, at: int, stop: int) -> tuple[int, int]:
    """Read what follows a backslash: the place after it and a character; -1 if it is bad."""
    if at >= stop:
        return -1, 0
    b = int64(data[at])
    if b == 117:
        code = _four_digits(data, at + 1, stop)
        at += 5
        if 0xD800 <= code < 0xDC00 and at + 1 < stop and data[at] == 92 and data[at + 1] == 117:
            low = _four_digits(data, at + 2, stop)
            if low < 0xDC00 or low > 0xDFFF:
                return -1, 0
            return at + 6, 0x10000 + ((code - 0xD800) << 10 | (low - 0xDC00))
        return (-1 if code < 0 or 0xD800 <= code <= 0xDFFF else at), code
    if b == 34 or b == 92 or b == 47:
        return at + 1, b
    code = int64(-1)
    if b == 110:
        code = int64(10)
    elif b == 116:
        code = int64(9)
    elif b == 114:
        code = int64(13)
    elif b == 98:
        code = int64(8)
    elif b == 102:
        code = int64(12)
    return (at + 1 if code >= 0 else -1), code


@kernel
def _json_text(
    data: np.ndarray, at: int, stop: int, out_data: np.ndarray, n: int
) -> tuple[int, int]:
    """Copy a text from behind its first quote; return the places after it, here and there."""
    while at < stop:
        b = data[at]
        if b == 34:
            return at + 1, n
        if b < 32:
            return -1, n
        if b == 92:
            at, code = _escaped(data, at + 1, stop)
            if at < 0:
                return -1, n
            n = _put_character(code, out_data, n)
        else:
            out_data[n] = b
            n += 1
            at += 1
    return -1, n


@kernel
def _word_of_json(data: np.ndarray, at: int, stop: int) -> tuple[int, int]:
    """Read `true`, `false` or `null`: the place after it, and the token."""
    word = int64(0)
    for k in range(at, min(at + 4, stop)):
        word = word << 8 | int64(data[k])
    if word == 0x74727565:
        return at + 4, TRUE_TOKEN
    if word == 0x6E756C6C:
        return at + 4, NULL
    if word == 0x66616C73 and at + 4 < stop and data[at + 4] == 101:
        return at + 5, FALSE_TOKEN
    return -1, NULL


@kernel
def _after_space(data: np.ndarray, at: int, stop: int) -> int:
    while at < stop and (data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9):
        at += 1
    return at


@kernel
def _read_one_json(
    data: np.ndarray,
    at: int,
    stop: int,
    fives: np.ndarray,
    tens: np.ndarray,
    t: int,
    tokens: np.ndarray,
    parts: np.ndarray,
    out_data: np.ndarray,
    n: int,
) -> tuple[int, int]:
    """Read one text; return the ends of tokens and data. The first is -1 if it is odd."""
    depth, objects = int64(0), int64(0)  # a bit per depth: whether it is an object
    is_key = is_end = False  # what comes next, if not a value
    while True:
        at = _after_space(data, at, stop)
        if at >= stop:
            return -1, n
        b = data[at]
        tokens[t, 1] = n
        if is_end:
            is_object = objects >> depth & 1 == 1
            at += 1
            if b == 44:
                is_end, is_key = False, is_object
                continue
            if b != (125 if is_object else 93):
                return -1, n
            tokens[t, 0] = END_OF_OBJECT if is_object else END_OF_LIST
            depth -= 1
        elif is_key:
            if b != 34:
                return -1, n
            at, n = _json_text(data, at + 1, stop, out_data, n)
            if at < 0:
                return -1, n
            tokens[t, 0], tokens[t, 2] = KEY, n
            at = _after_space(data, at, stop)
            if at >= stop or data[at] != 58:
                return -1, n
            at += 1
        elif b == 123 or b == 91:
            depth += 1
            if depth > DEEPEST:
                return -1, n
            objects = (objects & ~(1 << depth)) | int64(b == 123) << depth
            tokens[t, 0] = OBJECT if b == 123 else LIST
            at += 1
        elif b == 34:
            at, n = _json_text(data, at + 1, stop, out_data, n)
            tokens[t, 0], tokens[t, 2] = TEXT, n
        elif b == 45 or 48 <= b <= 57:
            at, kind, whole, part = _json_number(data, at, stop, fives, tens)
            tokens[t, 0], tokens[t, 1], parts[t] = kind, whole, part
        else:
            at, kind = _word_of_json(data, at, stop)
            tokens[t, 0] = kind
        if at < 0:
            return -1, n
        kind = tokens[t, 0]
        t += 1
        if depth == 0:
            return (t if _after_space(data, at, stop) == stop else -1), n
        is_key = kind == OBJECT
        is_end = kind != OBJECT and kind != LIST and kind != KEY


@kernel
def _read_json(
    data: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    fives: np.ndarray,
    tens: np.ndarray,
    out_tokens: np.ndarray,
    out_parts: np.ndarray,
    out_row_tokens: np.ndarray,
    out_data: np.ndarray,
) -> int:
    n = t = int64(0)
    for row in range(len(starts)):
        end, n_end = _read_one_json(
            data, starts[row], stops[row], fives, tens, t, out_tokens, out_parts, out_data, n
        )
        if end >= 0:
            t, n = end, n_end
        out_row_tokens[row + 1] = t
    return int(n)
