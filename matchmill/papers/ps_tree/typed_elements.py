"""Typed values as sequences of elements 0 … 15 that keep their order (PS-Tree, section 4.5).

    byte      the sign, 3 bits, 4 bits of the two's complement                3 elements
    int32     the sign, 3 bits, 7 times 4 bits                                9
    int64     the sign, 3 bits, 15 times 4 bits                              17
    double    the sign, the exponent (3, 4, 4 bits), 13 times 4 bits of the mantissa; a negative
              one has all bits but the sign inverted, as more means less there      17
    string    each byte of its UTF-8 form as two elements: order is that of code points, and the
              empty string comes first

The sign is 0 for negative values and 1 for others. A character is more than one element here, as a
node with a child for every character would be as large as Unicode.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from matchmill.errors import InputError

__all__ = ["KINDS", "elements_of", "value_of"]

_INTEGER_BITS = {"byte": 8, "int32": 32, "int64": 64}
_ONES = (1 << 63) - 1


def elements_of(kind: str, value: Any) -> np.ndarray:
    """Return the elements of a value, as uint8."""
    return np.frombuffer(bytes(KINDS[kind](value)), np.uint8)


def value_of(kind: str, elements: np.ndarray) -> Any:
    """Return the value that has these elements."""
    if kind == "string":
        return bytes(16 * a + b for a, b in elements.reshape(-1, 2).tolist()).decode()
    (sign, *digits) = elements.tolist()
    number = _number(digits)
    if kind == "double":
        bits = number if sign else (1 << 63) + (number ^ _ONES)
        return struct.unpack(">d", struct.pack(">Q", bits))[0]
    return number if sign else number - (1 << (_INTEGER_BITS[kind] - 1))


def _digits(number: int, n: int) -> list[int]:
    return [(number >> (4 * i)) & 15 for i in reversed(range(n))]


def _number(digits: list[int]) -> int:
    number = 0
    for digit in digits:
        number = 16 * number + digit
    return number


def _integer(kind: str) -> Callable[[Any], list[int]]:
    bits = _INTEGER_BITS[kind]
    least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def elements(value: Any) -> list[int]:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise InputError(f"{value!r} is no {kind}; give an int from {least} to {most}")
        return [int(value >= 0), *_digits(value & most, bits // 4)]

    return elements


def _double(value: Any) -> list[int]:
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise InputError(f"{value!r} is no double; give a number that is not NaN")
    (bits,) = struct.unpack(">Q", struct.pack(">d", float(value) + 0.0))  # -0.0 becomes 0.0
    is_negative = bits >> 63
    rest = bits & _ONES
    return [1 - is_negative, *_digits(rest ^ _ONES if is_negative else rest, 16)]


def _string(value: Any) -> list[int]:
    if not isinstance(value, str):
        raise InputError(f"{value!r} is no string; give a str")
    return [half for byte in value.encode() for half in (byte >> 4, byte & 15)]


KINDS: dict[str, Callable[[Any], list[int]]] = {
    **{kind: _integer(kind) for kind in _INTEGER_BITS},
    "double": _double,
    "string": _string,
}
