"""Decimals to the nearest double, exactly, as `float` reads them; or no answer.

digits × 10**exponent      digits: an integer below 2**63

few digits, small exponent   one product or quotient of two exact doubles
all else                     the algorithm of Eisel and Lemire (D. Lemire, Number parsing at a
gigabyte per second, 2021): digits times the first 128 bits of
5**exponent; where those are not enough, and beyond the normal
doubles, there is no answer

fives    [2 × (exponent + 342)], [… + 1]     the 128 bits of 5**exponent, high and low
tens     1, 10, … 10**22                     exact doubles
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from matchmill.kernels.jit import int64, kernel, uint64

__all__ = ["NO_ANSWER", "Powers", "double_of", "powers"]

NO_ANSWER = -1.0
_LEAST, _MOST = -342, 308
_EXACT_TEN = 22
_EXACT_DIGITS = 1 << 53
_HALF = 0xFFFFFFFF
_UNSURE = 0x1FF  # low bits of the product, all of them set
_ALL = 0xFFFF_FFFF_FFFF_FFFF


class Powers(NamedTuple):
    """Powers of five and of ten."""

    fives: np.ndarray  # uint64
    tens: np.ndarray  # float64


@cache
def powers() -> Powers:
    """Return the tables, made once per process."""
    fives = [half for e in range(_LEAST, _MOST + 1) for half in divmod(_five(e), 1 << 64)]
    return Powers(np.array(fives, np.uint64), 10.0 ** np.arange(_EXACT_TEN + 1))


def _five(exponent: int) -> int:
    """Return the first 128 bits of a power of five; of one below 1, rounded up."""
    if exponent >= 0:
        power: int = 5**exponent
        shift = power.bit_length() - 128
        return power >> shift if shift > 0 else power << -shift
    power = 5**-exponent
    n_bits: int = (power - 1).bit_length()
    quotient: int = (1 << (n_bits + 127 if exponent >= -27 else 2 * n_bits + 128)) // power + 1
    return quotient >> max(0, quotient.bit_length() - 128)


@kernel
def _product(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the high and the low word of a product; no step overflows."""
    half, shift = uint64(_HALF), uint64(32)
    a_high, a_low, b_high, b_low = a >> shift, a & half, b >> shift, b & half
    low, middle, other = a_low * b_low, a_high * b_low, a_low * b_high
    carried = (low >> shift) + (middle & half) + (other & half)
    high = a_high * b_high + (middle >> shift) + (other >> shift) + (carried >> shift)
    return high, ((carried & half) << shift) | (low & half)


@kernel
def double_of(digits: int, exponent: int, fives: np.ndarray, tens: np.ndarray) -> float:
    """Return the double nearest to digits × 10**exponent; NO_ANSWER if it is not sure."""
    if digits == 0:
        return 0.0
    if digits < _EXACT_DIGITS and -_EXACT_TEN <= exponent <= _EXACT_TEN:
        if exponent < 0:
            return float(digits / tens[-exponent])
        return float(digits * tens[exponent])
    if exponent < _LEAST or exponent > _MOST:
        return NO_ANSWER
    n_zeros = int64(0)  # above the digits
    shifted = uint64(digits)
    for width in (32, 16, 8, 4, 2, 1):
        if shifted >> uint64(64 - width) == uint64(0):
            shifted = shifted << uint64(width)
            n_zeros += width
    at = 2 * (exponent - _LEAST)
    high, low = _product(shifted, fives[at])
    if high & uint64(_UNSURE) == uint64(_UNSURE):
        more, _ = _product(shifted, fives[at + 1])
        if low > uint64(_ALL) - more:
            high = high + uint64(1)
            low = low - (uint64(_ALL) - more) - uint64(1)
        else:
            low = low + more
    if low == uint64(_ALL):
        return NO_ANSWER
    upper = int64(high >> uint64(63))
    shift = upper + 9
    mantissa = int64(high >> uint64(shift))
    power = ((217706 * exponent) >> 16) + 63 + upper - n_zeros + 1023
    if power <= 0:
        return NO_ANSWER
    is_between = low <= uint64(1) and -4 <= exponent <= 23 and mantissa & 3 == 1
    if is_between and uint64(mantissa) << uint64(shift) == high:
        mantissa &= ~1  # exactly between two doubles: to the even one
    mantissa += mantissa & 1
    mantissa >>= 1
    if mantissa >= 1 << 53:
        mantissa = int64(1 << 52)
        power += 1
    if power >= 0x7FF:
        return NO_ANSWER
    return math.ldexp(float(mantissa), int(power - 1075))
