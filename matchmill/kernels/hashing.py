"""Hashes of integers.

The kernels work on 31-bit pieces: no product passes 63 bits, so nothing overflows, compiled or
not, and the result is the same in both cases.
"""

from __future__ import annotations

import numpy as np

from matchmill.kernels.jit import int64, kernel

__all__ = ["combine31", "mix31", "mix64"]

_HALF = 0xFFFF_FFFF


@kernel
def mix31(number: int) -> int:
    """Return 31 bits that depend on all bits of a number."""
    number = int64(number)
    n = (number ^ (number >> 32)) & _HALF
    n = ((n ^ (n >> 16)) * 0x45D9F3B) & _HALF
    n = ((n ^ (n >> 16)) * 0x45D9F3B) & _HALF
    return int((n ^ (n >> 16)) & 0x7FFF_FFFF)


@kernel
def combine31(h: int, number: int) -> int:
    """Add a number to a hash of 31 bits."""
    x = ((h ^ (number & 0x7FFFFFFF) ^ (number >> 29)) & 0x7FFFFFFF) * 0x5851F42D
    return (x ^ (x >> 29)) & 0x7FFFFFFF


def mix64(words: np.ndarray) -> np.ndarray:
    """Mix 64-bit words so that every bit depends on every other (the finaliser of SplitMix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = words ^ (words >> np.uint64(31))
    return mixed
