"""Numbers as pairs of an integer and a double, which together are exact.

A number is its whole part and the rest. Pairs are ordered as the numbers are, exactly, over all
int64 and all finite doubles mixed; one double for both would confuse 2**53 with 2**53 + 1.

    value           whole            part
    ints            the int          0.0
    doubles         towards zero     the rest, signed like the double
    … >= 2**63      INT64_MAX        the double itself
    … < -2**63      INT64_MIN        the double itself
    decimals        towards zero     the rest, rounded to a double; like doubles below 2**45
    booleans        0 or 1           0.0
    dates           days since 1970  0.0
    timestamps      microseconds     the nanoseconds below, as a fraction in [0, 1)
                    since 1970 UTC, rounded down
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from matchmill.language.values import INT64_MAX, INT64_MIN, Domain, Region, decimal_pair

__all__ = [
    "decimal_pairs",
    "distinct_pairs",
    "exact_number",
    "few_number_pairs",
    "number_pairs",
    "split_floats",
]

_INT64 = 2.0**63
_EXACT = 1 << 53  # doubles hold all integers below


def split_floats(x: np.ndarray | Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs (whole, part) of finite doubles."""
    x = np.asarray(x, np.float64)
    truncated = np.trunc(x)
    part = x - truncated  # exact: the digits after the point
    large = np.abs(x) >= 2.0**63
    if not large.any():
        return truncated.astype(np.int64), part
    whole = np.where(large, 0.0, truncated).astype(np.int64)
    whole[large] = np.where(x[large] > 0, INT64_MAX, INT64_MIN)
    part[large] = np.where(x[large] == -(2.0**63), 0.0, x[large])
    return whole, part


def number_pairs(region: int, values: Sequence[Domain]) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs (whole, part) of domain values of one region."""
    n = len(values)
    if region == Region.TIMESTAMP:
        whole = np.fromiter((v // 1000 for v in values), np.int64, n)  # type: ignore[operator]
        part = np.fromiter((v % 1000 / 1000 for v in values), np.float64, n)  # type: ignore[operator]
        return whole, part
    if not any(type(v) is float for v in values):
        return np.array(values, np.int64), np.zeros(n, np.float64)
    is_float = np.fromiter((type(v) is float for v in values), bool, n)
    whole, part = np.zeros(n, np.int64), np.zeros(n, np.float64)
    ints = [v for v in values if type(v) is not float]
    whole[~is_float] = np.array(ints, np.int64)
    floats = np.array([v for v in values if type(v) is float], np.float64)
    whole[is_float], part[is_float] = split_floats(floats)
    return whole, part


def decimal_pairs(values: Sequence[int | float | Decimal]) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs (whole, part) of what `decimal_value` returned."""
    whole, part = np.zeros(len(values), np.int64), np.zeros(len(values), np.float64)
    for i, value in enumerate(values):
        if type(value) is int:
            whole[i] = value
        elif isinstance(value, Decimal):
            whole[i], part[i] = decimal_pair(value)
        else:
            (whole[i],), (part[i],) = split_floats([value])
    return whole, part


def few_number_pairs(region: int, values: Sequence[Domain]) -> tuple[np.ndarray, np.ndarray]:
    """Return what `number_pairs` does, one by one: NumPy's fixed costs are higher for a few."""
    whole: list[int] = []
    part: list[float] = []
    for value in values:
        exact: Any = value
        if region == Region.TIMESTAMP:
            whole.append(exact // 1000)
            part.append(exact % 1000 / 1000)
        elif type(value) is not float:
            whole.append(exact)
            part.append(0.0)
        elif -_INT64 <= value < _INT64:
            whole.append(int(value))
            part.append(value - int(value))
        else:
            whole.append(INT64_MAX if value > 0 else INT64_MIN)
            part.append(value)
    return np.array(whole, np.int64), np.array(part, np.float64)


def distinct_pairs(
    whole: np.ndarray, part: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct pairs in ascending order, and the place of each pair among them."""
    if len(whole) == 1:
        return whole, part, np.zeros(1, np.int64)
    if not part.any():
        order = np.argsort(whole)
    else:
        value = whole + part
        is_exact = -_EXACT < int(whole.min()) and int(whole.max()) < _EXACT
        # Parts of nanoseconds are no doubles next to their whole microseconds.
        is_exact = is_exact and bool((value - whole == part).all())
        order = np.argsort(value) if is_exact else np.lexsort((part, whole))
    whole, part = whole[order], part[order]
    first = np.ones(len(whole), bool)
    first[1:] = (whole[1:] != whole[:-1]) | (part[1:] != part[:-1])
    at = np.empty(len(order), np.int64)
    at[order] = np.cumsum(first) - 1
    return whole[first], part[first], at


def exact_number(whole: int, part: float) -> int | float:
    """Return the number that a pair stands for."""
    if part == 0.0:
        return whole
    return part if whole in (INT64_MIN, INT64_MAX) else whole + part
