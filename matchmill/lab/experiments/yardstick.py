"""How fast the machine is right now, by some work that has nothing to do with any index.

A neighbour on the same core slows all down for a while, every round of a short race; no
statistics over the rounds can tell that from a slower index. So a fixed piece of work is timed
beside each round, and comparisons of runs look at both. It is a loop full of branches, as matching
is. With a busy neighbour a scan took 1.5 to 1.7 times as long, this loop 1.5 to 1.9 times, sorting
1.3 times, and a loop without branches no longer than before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np

from matchmill.kernels.jit import kernel

__all__ = ["yardstick_seconds"]

_VALUES = np.random.Generator(np.random.PCG64(1)).permutation(20_000)
_CUTS = np.array([1_500, 4_000, 6_000, 9_500, 11_000, 14_000, 18_000, 20_000])


def yardstick_seconds(clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of the fixed work, the median of a few times."""
    samples = []
    for _ in range(7):
        start = clock()
        _walk(_VALUES, _CUTS)
        samples.append(clock() - start)
    return median(samples)


@kernel
def _walk(values: np.ndarray, cuts: np.ndarray) -> int:
    n = 0
    for value in values:
        for i in range(len(cuts)):
            if value < cuts[i]:
                n += i
                break
    return n
