"""Drawing many things at once: ranks by popularity, distinct ones per group, in bounded memory."""

from __future__ import annotations

import numpy as np

from matchmill.errors import InputError
from matchmill.kernels.csr import offsets_of

__all__ = [
    "BLOCK",
    "distinct_per_group",
    "draw_ranks",
    "evenly",
    "picked",
    "words",
    "zipf_weights",
]

BLOCK = 1 << 20  # numbers drawn at a time: bounds the memory for what is passing
_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio
_ROUNDS = 300  # of drawing again what was drawn twice, before the exact way takes over


def zipf_weights(n: int, exponent: float) -> np.ndarray:
    """Weights of the ranks 1 … n, of which the first is 1."""
    return np.arange(1, n + 1, dtype=np.float64) ** -exponent


def draw_ranks(random: np.random.Generator, n: int, n_ranks: int, exponent: float) -> np.ndarray:
    """Draw n ranks, counted from 0."""
    if exponent == 0:
        return random.integers(n_ranks, size=n)
    return _Drawer(random, zipf_weights(n_ranks, exponent)).draw(n)


class _Drawer:
    """Draws numbers in proportion to weights."""

    def __init__(self, random: np.random.Generator, weights: np.ndarray) -> None:
        self.random = random
        self.weights = weights
        self.is_uniform = bool((weights == weights[0]).all())
        self.cumulative = np.cumsum(weights)
        self.cumulative /= self.cumulative[-1]

    def draw(self, n: int) -> np.ndarray:
        if self.is_uniform:
            return self.random.integers(len(self.weights), size=n)
        return np.searchsorted(self.cumulative, self.random.random(n), side="right")

    def draw_distinct(self, sizes: np.ndarray) -> np.ndarray:
        """For each group, that many different numbers in ascending order; exact but slow.

        The numbers with the smallest exponential(weight) variables are those that drawing one
        after the other without replacement gives.
        """
        n = len(self.weights)
        keys = self.random.standard_exponential((len(sizes), n)) / self.weights
        chosen = np.zeros(keys.shape, np.bool_)
        np.put_along_axis(chosen, np.argsort(keys, axis=1), np.arange(n) < sizes[:, None], axis=1)
        return np.nonzero(chosen)[1]


def distinct_per_group(
    random: np.random.Generator, sizes: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """For each group, so many different numbers below len(weights), ascending; flat.

    Numbers are drawn in proportion to their weights; those that a group has already are drawn
    again. Where groups take a good part of all numbers, that would take long, and a slower method
    is the faster one.
    """
    support = np.flatnonzero(weights > 0).astype(np.int32)
    largest = int(sizes.max(initial=0))
    if largest > len(support):
        raise InputError(f"{largest} different attributes are wanted, there are {len(support)}")
    drawer = _Drawer(random, weights[support])
    offsets = offsets_of(sizes)
    out = np.empty(offsets[-1], np.int32)
    is_dense = len(support) <= 4 * largest
    step = max(1, BLOCK // (len(support) if is_dense else max(1, largest)))
    for start in range(0, len(sizes), step):
        block = sizes[start : start + step]
        found = drawer.draw_distinct(block) if is_dense else _distinct_sparse(drawer, block)
        out[offsets[start] : offsets[start + len(block)]] = support[found]
    return out


def _distinct_sparse(drawer: _Drawer, sizes: np.ndarray) -> np.ndarray:
    n = len(drawer.weights)
    bases = np.repeat(np.arange(len(sizes)) * n, sizes)
    keys: np.ndarray = bases + drawer.draw(len(bases))
    keys.sort()
    slots = np.flatnonzero(_is_open(keys, bases))  # of the groups that have a number twice
    for _ in range(_ROUNDS):
        if not len(slots):
            break
        some = keys[slots]
        repeated = _repeated(some)
        some[repeated] = bases[slots[repeated]] + drawer.draw(len(repeated))
        some.sort()
        keys[slots] = some
        slots = slots[_is_open(some, bases[slots])]
    if len(slots):
        open_sizes, step = sizes[np.unique(bases[slots] // n)], max(1, BLOCK // n)
        blocks = [open_sizes[start : start + step] for start in range(0, len(open_sizes), step)]
        keys[slots] = bases[slots] + np.concatenate([drawer.draw_distinct(b) for b in blocks])
    keys -= bases
    return keys


def _is_open(keys: np.ndarray, bases: np.ndarray) -> np.ndarray:
    return np.isin(bases, bases[_repeated(keys)])


def _repeated(keys: np.ndarray) -> np.ndarray:
    return np.flatnonzero(keys[1:] == keys[:-1]) + 1


# -- whole numbers that are the same on every machine ----------------------------------------------


def words(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Draw random 32-bit words.

    Whole numbers are made from them by whole arithmetic, which is the same on every machine, and
    half the work of doubles.
    """
    drawn: np.ndarray = rng.integers(0, 2**32, size=shape, dtype=np.uint32)
    return drawn


def picked(drawn: np.ndarray, n: np.ndarray | int) -> np.ndarray:
    """Words to numbers below n."""
    product = drawn.astype(np.uint64) * np.asarray(n).astype(np.uint64)
    return (product >> np.uint64(32)).astype(np.int32)


def evenly(start: int, first: int, n: int) -> np.ndarray:
    """Members first … first + n - 1 of a sequence in [0, 1) that is even at any length."""
    steps = np.arange(first, first + n, dtype=np.uint64) * np.uint64(_GOLDEN) + np.uint64(start)
    return (steps >> np.uint64(11)) * 2.0**-53
