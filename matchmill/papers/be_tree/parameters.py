"""What a tree is tuned by: two arrays that are saved with it.

    settings   int64: max_capacity, min_size, self_adjust, 1 + the largest dimension, rare_first,
               by_operations, reinsert, adjust_capacity, histogram_buckets, ahead, random
    weights    float64: alpha_subsumed, alpha_covered, beta, gamma, threshold, exploration,
               has_threshold

`random` is the state of a generator, so that a tree that was saved goes on as it would have.
Without a threshold the rule of `ranking.py` holds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.errors import InputError
from matchmill.kernels.jit import kernel

__all__ = ["Parameters", "check_positive", "draw", "explores", "padded_settings", "padded_weights"]

(
    MAX_CAPACITY,
    MIN_SIZE,
    SELF_ADJUST,
    N_DIMENSIONS,
    RARE_FIRST,
    BY_OPERATIONS,
    REINSERT,
    ADJUST_CAPACITY,
    HISTOGRAM_BUCKETS,
    AHEAD,
    RANDOM,
) = range(11)
ALPHA_SUBSUMED, ALPHA_COVERED, BETA, GAMMA, THRESHOLD, EXPLORATION, HAS_THRESHOLD = range(7)

_SEED = 1
_CHANCES = 1 << 20
_RANDOM_BITS = 31


class Parameters(NamedTuple):
    """All parameters with their defaults."""

    max_capacity: int = 20
    min_size: int = 3
    self_adjust: bool = True
    rare_first: bool = False
    by_operations: bool = False
    reinsert: bool = False
    adjust_capacity: bool = False
    histogram_buckets: int = 0
    ahead: bool = True
    alpha_subsumed: float = 1.0
    alpha_covered: float = 1.0
    beta: float = 1.0
    gamma: float = 1.0
    threshold: float | None = None
    exploration: float = 0.0

    def check(self) -> None:
        """Raise InputError for values that make no sense."""
        for name in ("max_capacity", "min_size"):
            check_positive(name, getattr(self, name))
        if self.histogram_buckets < 0:
            raise InputError(f"histogram_buckets is {self.histogram_buckets!r}; 0 is none")
        if self.histogram_buckets and self.rare_first:
            raise InputError("histogram_buckets estimate a rank; with first='rare' there is none")
        for name in ("alpha_subsumed", "alpha_covered", "beta", "gamma", "exploration"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise InputError(f"{name} is {value!r}; it is from 0 to 1")
        if self.threshold is not None and self.threshold != self.threshold:
            raise InputError("threshold is NaN; it must be a number or None")

    def settings(self) -> np.ndarray:
        """Return the array of whole numbers."""
        return np.array(
            [
                self.max_capacity,
                self.min_size,
                self.self_adjust,
                0,
                self.rare_first,
                self.by_operations,
                self.reinsert,
                self.adjust_capacity,
                self.histogram_buckets,
                self.ahead,
                _SEED,
            ],
            np.int64,
        )

    def weights(self) -> np.ndarray:
        """Return the array of numbers."""
        threshold = 0.0 if self.threshold is None else self.threshold
        return np.array(
            [
                self.alpha_subsumed,
                self.alpha_covered,
                self.beta,
                self.gamma,
                threshold,
                self.exploration,
                self.threshold is not None,
            ],
            np.float64,
        )


def check_positive(name: str, value: int) -> None:
    """Raise InputError unless a number is 1 or more."""
    if value < 1:
        raise InputError(f"{name} is {value!r}; it must be at least 1")


def padded_settings(saved: np.ndarray) -> np.ndarray:
    """Return settings that were saved, with defaults for those that there were not yet."""
    settings = Parameters().settings()
    settings[: len(saved)] = saved
    return settings


def padded_weights(saved: np.ndarray | None) -> np.ndarray:
    """Return weights that were saved, with defaults for those that there were not yet."""
    weights = Parameters().weights()
    if saved is not None:
        weights[: len(saved)] = saved
    return weights


@kernel
def draw(settings: np.ndarray, n: int) -> int:
    """Draw a number from 0 to n - 1, for n up to 2**31."""
    mask = (1 << _RANDOM_BITS) - 1
    settings[RANDOM] = (settings[RANDOM] * 1103515245 + 12345) & mask
    return int((settings[RANDOM] * n) >> _RANDOM_BITS)


@kernel
def explores(settings: np.ndarray, weights: np.ndarray) -> bool:
    """Tell whether the next choice is made at random instead of by rank."""
    share = weights[EXPLORATION]
    return bool(share > 0 and draw(settings, _CHANCES) < share * _CHANCES)
