"""A guide into sorted numbers: one look-up tells about where a value is, a short search the rest.

    numbers      2   3   3.5   9          values get buckets by a function that never falls:
    bucket       0   2   3     7          here (value - 2) / 7 * 8, at most 7
    starts       0 1 1 2 3 3 3 3 4        of each bucket the first number that is not before it

    3.2 is in bucket 1  ─►  numbers 1 … 1: it is found at 1, without any comparison
    3   is in bucket 1, too

What is equal is in one bucket, what is larger is in the same one or a later one. So the first
number that is not below a value is among starts[bucket] … starts[bucket + 1], and a binary search
between these two is exact, whatever the function does to the values: whole numbers beyond 2**53 may
share a bucket. Buckets are cut evenly in the value or, where numbers crowd around 0, in its bits,
which are about its logarithm: whichever leaves less to be searched. If both leave much, there is no
guide.

Memory: two buckets of 4 bytes per number. A guide is made when enough values have been looked up
to pay for it, and is used until the run of numbers is another one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.kernels.jit import int64, kernel

__all__ = ["LEAST_GUIDED", "Guide", "build_guide", "guided_range", "ordered_bits"]

LEAST_GUIDED = 256
"""Numbers; of fewer a binary search is as quick."""

_MOST_STEPS = 6.0  # of the search in a bucket, on average
_MOST_NUMBERS = 1 << 30
_MAGNITUDE = 0x7FFFFFFFFFFFFFFF


class Guide(NamedTuple):
    """Where to search for a value."""

    starts: np.ndarray  # int32, one more than there are buckets
    by_bits: bool
    low: float  # what the buckets begin with, and how many there are per unit
    scale: float


def ordered_bits(doubles: np.ndarray) -> np.ndarray:
    """Return integers in the order of the doubles."""
    bits = (doubles + 0.0).view(np.int64)  # there is one zero
    return np.where(bits < 0, bits ^ _MAGNITUDE, bits)


def build_guide(doubles: np.ndarray) -> Guide | None:
    """Return a guide into ascending finite doubles; None if it would not help."""
    n = len(doubles)
    if n < LEAST_GUIDED or n > _MOST_NUMBERS:
        return None
    best: Guide | None = None
    least = _MOST_STEPS
    for by_bits in (False, True):
        positions = ordered_bits(doubles).astype(np.float64) if by_bits else doubles
        with np.errstate(over="ignore"):
            spread = float(positions[-1] - positions[0])
        scale = 2 * n / spread if spread > 0.0 else np.inf
        if not 0.0 < scale < np.inf:
            continue
        guide = Guide(np.empty(2 * n + 1, np.int32), by_bits, float(positions[0]), scale)
        buckets = np.minimum((positions - guide.low) * scale, 2 * n - 1).astype(np.int64)
        counts = np.bincount(buckets, minlength=2 * n)
        steps = float((counts * np.log2(counts + 1.0)).sum()) / n
        if steps < least:
            guide.starts[0] = 0
            np.cumsum(counts, out=guide.starts[1:])
            best, least = guide, steps
    return best


@kernel
def guided_range(guide: Guide, whole: int, part: float, bits: int) -> tuple[int, int]:
    """Return between which places the first number is that is not below a value.

    The value is whole + part; `bits` are those of this double, and only used if the guide does.
    """
    position = float(bits) if guide.by_bits else float(whole) + float(part)
    n_buckets = len(guide.starts) - 1
    place = (position - guide.low) * guide.scale
    bucket = int64(0)
    if place >= n_buckets - 1:
        bucket = int64(n_buckets - 1)
    elif place > 0.0:
        bucket = int64(place)
    return int64(guide.starts[bucket]), int64(guide.starts[bucket + 1])
