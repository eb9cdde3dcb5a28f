"""Conditions on one attribute become one predicate: ranges are narrowed, lists are joined."""

from __future__ import annotations

import numpy as np

from matchmill.encoding.bulk.predicates import (
    DERIVATION,
    FIRST,
    FIXED,
    HIGH_SIDE,
    IS_FOREIGN,
    LOW_SIDE,
    NAME,
    NAME_STOP,
    NOT_POINTS,
    NOT_RANGE,
    POINT,
    POINTS,
    RANGE,
    REGION,
    WHAT,
    N,
)
from matchmill.kernels.jit import int64, kernel
from matchmill.language.values import Region

__all__ = ["negated", "number_order", "same_dimension", "united"]

_STRING = int(Region.STRING)
_SIDES_OF_POINT = POINT >> LOW_SIDE


@kernel
def number_order(whole: int, part: float, other_whole: int, other_part: float) -> int:
    """Return -1, 0 or 1: how two numbers compare."""
    if whole != other_whole:
        return -1 if whole < other_whole else 1
    return 0 if part == other_part else -1 if part < other_part else 1


@kernel
def _narrowed(
    predicates: np.ndarray, whole: np.ndarray, part: np.ndarray, p: int, q: int, n: int
) -> int:
    """Narrow range p of numbers to what is in range q, too; return how many literals there are.

    The ends are written behind the first n literals. -1 if nothing is left.
    """
    new = n
    sides = int64(0)
    for is_high in range(2):
        shift = HIGH_SIDE if is_high else LOW_SIDE
        best = best_side = int64(-1)
        for k in range(2):
            i = q if k else p
            side = (predicates[i, WHAT] >> shift) & 3
            if side == 0:
                continue
            at = predicates[i, FIRST] + (predicates[i, N] - 1 if is_high else 0)
            order = int64(1)
            if best >= 0:
                order = number_order(whole[at], part[at], whole[best], part[best])
                if order == 0:
                    order = side - best_side
                if is_high:
                    order = -order
            if order > 0:
                best, best_side = at, side
        if best >= 0:
            whole[new], part[new] = whole[best], part[best]
            sides |= best_side << shift
            new += 1
    if new - n == 2:
        order = number_order(whole[n], part[n], whole[n + 1], part[n + 1])
        if order > 0 or (order == 0 and sides != POINT):
            return -1
    kept = predicates[p, WHAT] & ~(3 << LOW_SIDE | 3 << HIGH_SIDE)
    predicates[p, WHAT] = kept | sides
    predicates[p, FIRST], predicates[p, N] = n, new - n
    return new


@kernel
def _joined(
    predicates: np.ndarray, whole: np.ndarray, part: np.ndarray, p: int, q: int, n: int, most: int
) -> int:
    """Give predicate p the literals of q, too; return as `_narrowed`."""
    first, n_p, n_q = predicates[p, FIRST], predicates[p, N], predicates[q, N]
    predicates[p, N] = n_p + n_q
    if first + n_p == predicates[q, FIRST]:
        return n
    if n + n_p + n_q > most:
        return -1
    predicates[p, FIRST] = n
    for k in range(n_p + n_q):
        at = first + k if k < n_p else predicates[q, FIRST] + k - n_p
        whole[n + k], part[n + k] = whole[at], part[at]
    return int(n + n_p + n_q)


@kernel
def _is_list(predicates: np.ndarray, p: int, kind: int) -> bool:
    """Whether a predicate is a list of points, or without them, or about a single one."""
    what = predicates[p, WHAT]
    if what & 7 == kind:
        return True
    is_single = predicates[p, N] == 1 and (what >> LOW_SIDE) & 15 == _SIDES_OF_POINT
    return bool(is_single and what & 7 == (RANGE if kind == POINTS else NOT_RANGE))


@kernel
def united(
    predicates: np.ndarray,
    whole: np.ndarray,
    part: np.ndarray,
    p: int,
    q: int,
    is_any: bool,
    n: int,
    most: int,
) -> int:
    """Make one predicate p of two on one attribute, as alternatives or as conditions.

    Return how many literals there are; -1 if that is left to the parser.
    """
    what, other = predicates[p, WHAT], predicates[q, WHAT]
    region = (what >> REGION) & 15
    if what & 7 == FIXED or other & 7 == FIXED or region != (other >> REGION) & 15:
        return -1
    if (what ^ other) & IS_FOREIGN:
        return -1
    if is_any:
        if _is_list(predicates, p, POINTS) and _is_list(predicates, q, POINTS):
            predicates[p, WHAT] = POINTS | region << REGION | what & IS_FOREIGN
            return _joined(predicates, whole, part, p, q, n, most)
        return -1
    if _is_list(predicates, p, NOT_POINTS) and _is_list(predicates, q, NOT_POINTS):
        predicates[p, WHAT] = NOT_POINTS | region << REGION | what & IS_FOREIGN
        return _joined(predicates, whole, part, p, q, n, most)
    if what & 7 != RANGE or other & 7 != RANGE or region == _STRING or n + 2 > most:
        return -1
    return _narrowed(predicates, whole, part, p, q, n)


@kernel
def negated(what: int) -> int:
    """Return when a predicate is FALSE."""
    kind = what & 7
    if kind == FIXED:
        return what ^ (1 << REGION)  # absent and present, false and true
    low, high = (what >> LOW_SIDE) & 3, (what >> HIGH_SIDE) & 3
    if kind == RANGE and (low == 0 or high == 0):
        ends = 3 << LOW_SIDE | 3 << HIGH_SIDE
        return (what & ~ends) | high << LOW_SIDE | low << HIGH_SIDE
    if kind in (POINTS, NOT_POINTS):
        return what + (NOT_POINTS - POINTS if kind == POINTS else POINTS - NOT_POINTS)
    return what + (NOT_RANGE - RANGE if kind == RANGE else RANGE - NOT_RANGE)


@kernel
def same_dimension(data: np.ndarray, predicates: np.ndarray, p: int, q: int) -> bool:
    """Whether two predicates are about the same, so that they are one."""
    if predicates[p, WHAT] >> DERIVATION != predicates[q, WHAT] >> DERIVATION:
        return False
    start, other = predicates[p, NAME], predicates[q, NAME]
    length = predicates[p, NAME_STOP] - start
    if predicates[q, NAME_STOP] - other != length:
        return False
    for k in range(length):
        if data[start + k] != data[other + k]:
            return False
    return True
