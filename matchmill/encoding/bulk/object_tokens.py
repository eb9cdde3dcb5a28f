"""The tokens of decoded JSON patterns, which are Python objects; see `tokens.py`.

Objects of Python are written by `marshal`, in version 2 of its format, which has no references and
takes no subclass of a type: a dict is `{`, keys and values, `0`; a list `[` and its length; a text
`u`, its length, UTF-8; numbers are `i`, `l` (digits of 15 bits) and `g` (a double).
"""

from __future__ import annotations

import marshal
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

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
from matchmill.kernels.jit import int64, kernel

__all__ = ["tokens_of_objects"]

_MOST_OBJECTS = 64  # of one pattern, so that objects that share others cannot grow
_FORMAT = 2  # of marshal
_SCALARS = frozenset({str, int, float, bool, type(None)})


def tokens_of_objects(objects: Sequence[Any]) -> Tokens:
    """Return the tokens of decoded patterns."""
    written = [_written(node) for node in objects]
    offsets = np.array([0, *accumulate(map(len, written))], np.int64)
    data = np.frombuffer(bytearray().join(written), np.uint8)
    out = no_tokens(len(written), len(data))
    n_bytes = _read_objects(data, offsets, out.tokens, out.parts, out.row_tokens, out.data)
    return out._replace(n_bytes=n_bytes)


def _written(node: Any) -> bytes:
    """Return a decoded pattern as bytes; none if it is odd."""
    if not _is_ordinary(node):
        return b""
    try:
        return marshal.dumps(node, _FORMAT)
    except ValueError:  # of a type that no JSON has, or nested too deep
        return b""


def _is_ordinary(node: Any) -> bool:
    """Whether objects are nested as in good patterns; bounds what is written of them."""
    if type(node) is not dict:
        return False
    objects = [node]
    for some in objects:
        for value in some.values():
            if type(value) is dict:
                objects.append(value)
                if len(objects) > _MOST_OBJECTS:
                    return False
            elif type(value) is not list:
                return False
            elif not _SCALARS.issuperset(map(type, value)):
                if not all(type(one) in _SCALARS or _is_flat(one) for one in value):
                    return False
    return True


def _is_flat(match_type: Any) -> bool:
    """Whether a match type has values, a list of them, or one more object of them."""
    if type(match_type) is not dict:
        return False
    for value in match_type.values():
        if type(value) is dict:
            value = list(value.values())
        if not _SCALARS.issuperset(map(type, value) if type(value) is list else (type(value),)):
            return False
    return True


@kernel
def _little(data: np.ndarray, at: int, n: int) -> int:
    """Return an unsigned integer of n bytes, the least one first."""
    number = int64(0)
    for k in range(n - 1, -1, -1):
        number = number << 8 | int64(data[at + k])
    return int(number)


@kernel
def _signed(data: np.ndarray, at: int) -> int:
    """Return a signed integer of 32 bits."""
    number = _little(data, at, 4)
    return number - (1 << 32) if number >> 31 else number


@kernel
def _long(data: np.ndarray, at: int) -> tuple[int, int]:
    """Read digits of 15 bits: the place after them, or -1, and the integer."""
    n = _signed(data, at)
    size = abs(n)
    if size > 5 or (size == 5 and _little(data, at + 12, 2) > 7):
        return -1, 0
    number = int64(0)
    for k in range(size):
        number |= int64(_little(data, at + 4 + 2 * k, 2)) << 15 * k
    return at + 4 + 2 * size, -number if n < 0 else number


@kernel
def _copy_text(
    data: np.ndarray, at: int, n_bytes: int, out_data: np.ndarray, n: int
) -> tuple[int, int]:
    """Copy a text; the first place is -1 if half a character is in it."""
    for k in range(n_bytes):
        b = data[at + k]
        if b == 0xED and data[at + k + 1] >= 0xA0:
            return -1, n
        out_data[n + k] = b
    return at + n_bytes, n + n_bytes


@kernel
def _double_at(data: np.ndarray, at: int, bits: np.ndarray, values: np.ndarray) -> float:
    """Return a double; `bits` and `values` are the same eight bytes."""
    bits[0] = int64(_little(data, at, 7)) | int64(data[at + 7]) << 56
    return float(values[0])


@kernel
def _read_one_object(
    data: np.ndarray,
    at: int,
    stop: int,
    left: np.ndarray,
    bits: np.ndarray,
    values: np.ndarray,
    t: int,
    tokens: np.ndarray,
    parts: np.ndarray,
    out_data: np.ndarray,
    n: int,
) -> tuple[int, int]:
    """Read one object; return as `_read_one_json`. `left` is how much of each list is left."""
    depth = int64(0)
    is_key = False
    while at < stop or (depth > 0 and left[depth] == 0):
        tokens[t, 1] = n
        is_value = True
        b = int64(data[at]) if at < stop else int64(0)
        if depth > 0 and left[depth] == 0:
            tokens[t, 0] = END_OF_LIST
            depth -= 1
        elif is_key and b == 48:
            if tokens[t - 1, 0] == OBJECT:
                return -1, n
            at += 1
            tokens[t, 0] = END_OF_OBJECT
            depth -= 1
        elif is_key and b != 117:
            return -1, n
        elif b == 117:
            at, n = _copy_text(data, at + 5, _little(data, at + 1, 4), out_data, n)
            tokens[t, 0], tokens[t, 2] = KEY if is_key else TEXT, n
            is_value = not is_key
            is_key = False
        elif b == 123 or b == 91:
            depth += 1
            if depth > DEEPEST:
                return -1, n
            tokens[t, 0] = OBJECT if b == 123 else LIST
            left[depth] = -1
            at += 1
            if b == 91:
                left[depth] = _little(data, at, 4)
                at += 4
                if left[depth] == 0:
                    return -1, n
            is_key = b == 123
            is_value = False
        elif b == 105:
            tokens[t, 0], tokens[t, 1], parts[t] = WHOLE, _signed(data, at + 1), 0.0
            at += 5
        elif b == 108:
            at, whole = _long(data, at + 1)
            tokens[t, 0], tokens[t, 1], parts[t] = WHOLE, whole, 0.0
        elif b == 103:
            value = _double_at(data, at + 1, bits, values)
            is_odd = value - value != 0.0 or (value == 0.0 and bits[0] != 0)
            if is_odd:  # infinite, not a number, or -0.0, which is printed as it is
                return -1, n
            whole, part = pair_of_double(value)
            tokens[t, 0], tokens[t, 1], parts[t] = DOUBLE, whole, part
            at += 9
        elif b == 84 or b == 70 or b == 78:
            tokens[t, 0] = TRUE_TOKEN if b == 84 else FALSE_TOKEN if b == 70 else NULL
            at += 1
        else:
            return -1, n
        if at < 0:
            return -1, n
        t += 1
        if is_value:
            if depth == 0:
                return (t if at == stop else -1), n
            is_key = left[depth] < 0
            if left[depth] > 0:
                left[depth] -= 1
    return -1, n


@kernel
def _read_objects(
    data: np.ndarray,
    offsets: np.ndarray,
    out_tokens: np.ndarray,
    out_parts: np.ndarray,
    out_row_tokens: np.ndarray,
    out_data: np.ndarray,
) -> int:
    n = t = int64(0)
    left = np.zeros(DEEPEST + 1, np.int64)
    values = np.zeros(1, np.float64)
    bits = values.view(np.int64)
    for row in range(len(offsets) - 1):
        end, n_end = _read_one_object(
            data,
            offsets[row],
            offsets[row + 1],
            left,
            bits,
            values,
            t,
            out_tokens,
            out_parts,
            out_data,
            n,
        )
        if end >= 0:
            t, n = end, n_end
        out_row_tokens[row + 1] = t
    return int(n)
