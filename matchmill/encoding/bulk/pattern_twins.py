"""Whether a field of a JSON pattern has the same value, or perhaps the same set, twice."""

from __future__ import annotations

import numpy as np

from matchmill.encoding.bulk.constants import number_hash, text_hash
from matchmill.encoding.bulk.pattern_work import (
    AT_PREDICATE,
    Work,
    double_near,
)
from matchmill.encoding.bulk.predicates import (
    AFTER,
    BEFORE,
    FIRST,
    FIXED,
    HIGH_SIDE,
    LOW_SIDE,
    NOT_POINTS,
    POINTS,
    REGION,
    WHAT,
    N,
)
from matchmill.kernels.jit import int64, kernel
from matchmill.language.values import Region

__all__ = ["has_equal", "has_twins"]

_NUMBER = int(Region.NUMBER)
_FEW = 24  # values that are compared pair by pair


@kernel
def _is_equal(work: Work, n: int, other: int, is_text: bool) -> bool:
    """Whether two literals are equal."""
    whole, part, data = work.whole, work.part, work.data
    if not is_text:
        return bool(whole[n] == whole[other] and part[n] == part[other])
    length = int64(abs(part[n])) - whole[n]
    if int64(abs(part[other])) - whole[other] != length:
        return False
    for k in range(length):
        if data[whole[n] + k] != data[whole[other] + k]:
            return False
    return True


@kernel
def has_equal(work: Work, first: int, n: int, is_text: bool, base: int) -> bool:
    """Whether some of n literals are equal."""
    if n <= _FEW:
        for i in range(first + 1, first + n):
            for j in range(first, i):
                if _is_equal(work, i, j, is_text):
                    return True
        return False
    size = int64(4)
    while size < 2 * n:
        size *= 2
    slots = np.full(size, -1, np.int64)
    for i in range(first, first + n):
        if is_text:
            start, stop = work.whole[i], int64(work.part[i])
            last = int64(work.data[stop - 1]) if stop > start else int64(0)
            h = text_hash(work.data, start, stop, last, 0, base)
        else:
            h = number_hash(0, work.whole[i], int64(work.part[i] * 4503599627370496.0), base)
        slot = h & (size - 1)
        while slots[slot] >= 0:
            if _is_equal(work, i, slots[slot], is_text):
                return True
            slot = (slot + 1) & (size - 1)
        slots[slot] = i
    return False


@kernel
def _ends(work: Work, p: int) -> tuple[float, float]:
    """Return the numbers before which a range begins and ends, roughly for large ones."""
    what, first = work.predicates[p, WHAT], work.predicates[p, FIRST]
    last = first + work.predicates[p, N] - 1
    low, high = -np.inf, np.inf
    low_side, high_side = (what >> LOW_SIDE) & 3, (what >> HIGH_SIDE) & 3
    if what & 7 == POINTS:
        low_side, high_side = int64(BEFORE), int64(AFTER)
    if low_side:
        low = double_near(work.whole[first], work.part[first])
        if low_side == AFTER:
            low = np.nextafter(low, np.inf)
    if high_side:
        high = double_near(work.whole[last], work.part[last])
        if high_side == AFTER:
            high = np.nextafter(high, np.inf)
    return low, high


@kernel
def _may_be_equal(work: Work, p: int, q: int) -> bool:
    """Whether two predicates of one derivation could be the same set."""
    predicates = work.predicates
    what, other = predicates[p, WHAT], predicates[q, WHAT]
    region = (what >> REGION) & 15
    if what & 7 == FIXED or other & 7 == FIXED or region != (other >> REGION) & 15:
        return False
    if what & 7 == NOT_POINTS or other & 7 == NOT_POINTS:
        return bool(what & 7 == other & 7)
    if (what & 7 == POINTS and predicates[p, N] > 1) or (
        other & 7 == POINTS and predicates[q, N] > 1
    ):
        return False
    if region == _NUMBER:
        low, high = _ends(work, p)
        other_low, other_high = _ends(work, q)
        return bool(low == other_low and high == other_high)
    if predicates[p, N] != predicates[q, N]:
        return False
    return _is_equal(work, predicates[p, FIRST], predicates[q, FIRST], True)


@kernel
def has_twins(work: Work, first: int) -> bool:
    """Whether two predicates from one on could be the same set."""
    stop = work.cursor[AT_PREDICATE]
    for p in range(first + 1, stop):
        for q in range(first, p):
            if _may_be_equal(work, p, q):
                return True
    return False
