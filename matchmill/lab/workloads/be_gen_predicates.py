"""The predicates of BE-Gen (BE-Tree, section 7.1, Table 2): what replaces `attribute = code`.

    kinds     the operator of each predicate, as often as Table 2(a) has it
    derived   a predicate that the equality implies: Table 2(b)
    Block     some subscriptions, with their predicates and intervals one after the other

Deviations: a derived predicate is never a single value, nor all values: `a < 2` is `a = 1` once it
is a set, and the share of equality would not be what was asked for. Lists have 2 to 6 values, no
two of them neighbours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.kernels.csr import offsets_of
from matchmill.lab.workloads.flat import FlatSubscriptions
from matchmill.lab.workloads.sampling import picked, words

__all__ = [
    "ABOVE",
    "BELOW",
    "BETWEEN",
    "EQUAL",
    "IN",
    "NOT_EQUAL",
    "NOT_IN",
    "Block",
    "Shape",
    "derived",
    "joined",
    "subsets",
    "widths_of",
]

EQUAL, BELOW, ABOVE, BETWEEN, IN, NOT_EQUAL, NOT_IN = range(7)


class Shape(NamedTuple):
    """What derivation needs to know of the parameters."""

    cardinalities: np.ndarray  # int32, of each attribute
    rarities: np.ndarray  # float64, of each attribute: one over its popularity
    value_zipf: float
    equality_ratio: float
    predicate_range: float
    operators: np.ndarray  # int8, what equality is replaced by, each as often
    min_size: int  # of subscriptions
    max_size: int
    base_size: int
    min_extras: int  # pairs of an event beside its base
    max_extras: int


class Block(NamedTuple):
    """Some subscriptions; small integers, since they are many."""

    sizes: np.ndarray  # predicates of each
    attributes: np.ndarray
    n_intervals: np.ndarray  # of each predicate
    lows: np.ndarray
    highs: np.ndarray


def subsets(
    rng: np.random.Generator, sizes: np.ndarray, n_columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Choose, for each row, so many of its first n columns, evenly; as (rows, columns).

    Column by column: taken with the probability wanted / left, which meets the size exactly and
    leaves the columns in order.
    """
    width = int(n_columns.max(initial=1))
    drawn = words(rng, width, len(sizes))
    taken = np.empty((width, len(sizes)), np.bool_)
    wanted, left = sizes.astype(np.int32), n_columns.astype(np.int32)
    for column in range(width):
        np.less(picked(drawn[column], left), wanted, out=taken[column])
        wanted = wanted - taken[column]
        left = np.maximum(left - 1, 0)
    rows, columns = np.nonzero(np.ascontiguousarray(taken.T))
    return rows, columns


def derived(
    rng: np.random.Generator,
    shape: Shape,
    attributes: np.ndarray,
    codes: np.ndarray,
    narrow: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predicates that `attribute = code` implies: (intervals of each, lows, highs).

    BE-Tree, Table 2(b). Where `narrow` is set, what is wider than a list becomes equality.
    """
    n_values = shape.cardinalities[attributes]
    kinds = _kinds(rng, shape, codes, n_values)
    if narrow is not None:
        kinds[narrow & (kinds != IN)] = EQUAL
    drawn, widths = words(rng, len(codes)), words(rng, len(codes))
    lows, highs = codes.copy(), codes.copy()

    at = np.flatnonzero(kinds == BELOW)
    lows[at] = 1
    highs[at] = np.maximum(codes[at], 2)
    highs[at] += picked(drawn[at], n_values[at] - highs[at])

    at = np.flatnonzero(kinds == ABOVE)
    highs[at] = n_values[at]
    lows[at] = 2 + picked(drawn[at], np.minimum(codes[at], n_values[at] - 1) - 1)

    at = np.flatnonzero(kinds == BETWEEN)
    width = widths_of(widths[at], n_values[at], shape.predicate_range)
    least = np.maximum(codes[at] - width + 1, 1)
    most = np.minimum(codes[at], n_values[at] - width + 1)
    lows[at] = least + picked(drawn[at], most - least + 1)
    highs[at] = lows[at] + width - 1

    listed = np.flatnonzero(kinds == IN)
    inner = _lists(rng, codes[listed], n_values[listed])
    excluding = np.flatnonzero(kinds >= NOT_EQUAL)
    outer = _exclusions(rng, codes[excluding], n_values[excluding], kinds[excluding])
    return _merged(len(codes), (lows, highs), [(listed, *inner), (excluding, *outer)])


def _kinds(
    rng: np.random.Generator, shape: Shape, codes: np.ndarray, n_values: np.ndarray
) -> np.ndarray:
    """Draw the operator of each predicate; change it where it would accept one value, or all."""
    equal = words(rng, len(codes)).astype(np.float64) < shape.equality_ratio * 2.0**32
    kinds = np.full(len(codes), EQUAL, np.int8)
    if len(shape.operators):
        drawn = shape.operators[picked(words(rng, len(codes)), len(shape.operators))]
        kinds = np.where(equal | (n_values < 3), kinds, drawn)
    short = n_values == 3
    kinds[short & ((kinds == IN) | (kinds == NOT_IN))] = BELOW
    kinds[short & (kinds == NOT_EQUAL) & (codes == 2)] = BELOW
    below, above = kinds == BELOW, kinds == ABOVE
    kinds[below & (codes == n_values)] = ABOVE
    kinds[above & (codes == 1)] = BELOW
    return kinds


def widths_of(drawn: np.ndarray, n_values: np.ndarray, share: float) -> np.ndarray:
    """Numbers of values with this share as their mean, from 2 to all but one."""
    most = n_values - 1.0
    mean = np.clip(share * n_values, 2, most)
    spread = np.minimum(mean - 2, most - mean)
    exact = mean + spread * (drawn * 2.0**-31 - 1)
    # Round by chance, with the low bits of the same word, so that the mean stays.
    return np.floor(exact + (drawn & np.uint32(0xFFFF)) * 2.0**-16).astype(np.int32)


def _lists(
    rng: np.random.Generator, codes: np.ndarray, n_values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """2 to 6 values with the code among them, no neighbours, going round from the code."""
    steps, valid = _steps(rng, n_values, 5, fixed=1)
    values = (codes[:, None] - 1 + 2 + steps) % n_values[:, None] + 1
    values = np.concatenate([codes[:, None], values], axis=1).astype(np.int32)
    valid = np.concatenate([np.ones((len(codes), 1), np.bool_), valid], axis=1)
    values[~valid] = np.iinfo(np.int32).max
    values = np.sort(values, axis=1)
    return values, values, values < np.iinfo(np.int32).max


def _exclusions(
    rng: np.random.Generator, codes: np.ndarray, n_values: np.ndarray, kinds: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All values but one that is neither the first, the last nor the code; or but 2 to 6."""
    steps, valid = _steps(rng, n_values, 6, fixed=0)
    values = ((codes[:, None] + steps) % n_values[:, None] + 1).astype(np.int32)
    inside = (codes > 1) & (codes < n_values)
    one = 2 + picked(words(rng, len(codes)), n_values - 2 - inside)
    one += inside & (one >= codes)
    single = kinds == NOT_EQUAL
    values[single, 0] = one[single]
    valid[single] = np.arange(6) == 0
    beyond = (n_values + 1)[:, None]
    values = np.sort(np.where(valid, values, beyond), axis=1)
    before, after = np.zeros_like(beyond), beyond
    lows = np.concatenate([before, values], axis=1) + 1
    highs = np.concatenate([values, after], axis=1) - 1
    return lows, highs, lows <= highs


def _steps(
    rng: np.random.Generator, n_values: np.ndarray, width: int, *, fixed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Ascending steps at least 2 apart, and which of them count.

    With m places on a ring of n, each with a free value behind it, n - 2m values are left over; a
    step is 2 for every place before it, and the number of left-over values before it. The code
    itself is the first place (`fixed=1`), or lies before it (`fixed=0`).
    """
    n_places = 2 + picked(words(rng, len(n_values)), np.minimum(6, n_values // 2) - 1)
    spare = n_values - 2 * n_places
    drawn = picked(words(rng, len(n_values), width), (spare + 1)[:, None])
    places = np.arange(width)
    valid = places < (n_places - fixed)[:, None]
    drawn[~valid] = np.iinfo(np.int32).max
    steps = np.sort(drawn, axis=1).astype(np.int64) + 2 * places
    return steps, valid


def _merged(
    n: int,
    ends: tuple[np.ndarray, np.ndarray],
    several: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predicates with one interval, and those with several in rows of a matrix, in order."""
    counts = np.ones(n, np.int32)
    for at, _, _, valid in several:
        counts[at] = np.count_nonzero(valid, axis=1)
    starts = offsets_of(counts)
    out_lows, out_highs = np.repeat(ends[0], counts), np.repeat(ends[1], counts)
    for at, lows, highs, valid in several:
        places = starts[at][:, None] + np.cumsum(valid, axis=1) - 1
        out_lows[places[valid]] = lows[valid]
        out_highs[places[valid]] = highs[valid]
    return counts, out_lows, out_highs


def joined(blocks: list[Block], n: int) -> FlatSubscriptions:
    """Blocks one after another, the first n subscriptions of them."""
    clause_offsets = offsets_of(_joined_column([b.sizes for b in blocks], np.int32)[:n])
    n_predicates = int(clause_offsets[-1])
    counts = _joined_column([b.n_intervals for b in blocks], np.int32)[:n_predicates]
    interval_offsets = offsets_of(counts)
    n_intervals = int(interval_offsets[-1])
    return FlatSubscriptions(
        np.arange(n, dtype=np.int64),
        clause_offsets,
        _joined_column([b.attributes for b in blocks], np.int32)[:n_predicates],
        interval_offsets,
        _joined_column([b.lows for b in blocks], np.int64)[:n_intervals],
        _joined_column([b.highs for b in blocks], np.int64)[:n_intervals],
    )


def _joined_column(parts: list[np.ndarray], dtype: type) -> np.ndarray:
    if not parts:
        return np.empty(0, dtype)
    return np.concatenate(parts, dtype=dtype)
