"""Work on ranges in several threads. Kernels release the interpreter lock, so they run at once.

A task gets `start` and `stop` and writes to its own part of what is shared, so that the outcome
does not depend on how many threads there are.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np

__all__ = [
    "at_once",
    "in_advance",
    "n_processors",
    "n_threads",
    "on_ranges",
    "split_evenly",
    "split_weights",
]

_WORTH_A_THREAD = 1 << 16  # elements
_MOST_THREADS = 8

T = TypeVar("T")
U = TypeVar("U")


def n_processors() -> int:
    """Count the processors that this process may use; at least 1."""
    if hasattr(os, "sched_getaffinity"):  # macOS has none
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def n_threads(n: int) -> int:
    """Return how many threads are good for n elements."""
    return max(1, min(n_processors(), _MOST_THREADS, n // _WORTH_A_THREAD))


def split_evenly(n: int) -> list[int]:
    """Return where to cut 0 … n into one range per thread."""
    parts = n_threads(n)
    return [n * i // parts for i in range(parts + 1)]


def split_weights(offsets: np.ndarray) -> list[int]:
    """Return cuts of len(offsets) - 1 rows into ranges with about as many entries each."""
    total = int(offsets[-1])
    parts = n_threads(total)
    inner = np.searchsorted(offsets, [total * i // parts for i in range(1, parts)])
    return [0, *(int(i) for i in inner), len(offsets) - 1]


def on_ranges(task: Callable[[int, int], T], cuts: list[int]) -> list[T]:
    """Return what task(start, stop) returns for each range between two cuts."""
    if len(cuts) == 2:
        return [task(*cuts)]
    with ThreadPoolExecutor(len(cuts) - 1) as pool:
        return list(pool.map(lambda ends: task(*ends), pairwise(cuts)))


def in_advance(task: Callable[[U], T], items: Iterable[U]) -> Iterator[T]:
    """Yield task(item) for each item, in order; the next few are being computed meanwhile."""
    n_workers = min(n_processors(), _MOST_THREADS)
    if n_workers == 1:
        yield from map(task, items)
        return
    with ThreadPoolExecutor(n_workers) as pool:
        begun: deque[Future[T]] = deque()
        for item in items:
            begun.append(pool.submit(task, item))
            if len(begun) > n_workers:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()


def at_once(n: int, one: Callable[[], T], other: Callable[[], U]) -> tuple[T, U]:
    """Run two independent tasks on some n elements, at once if that pays; return both results."""
    if n_threads(n) == 1:
        return one(), other()
    with ThreadPoolExecutor(1) as pool:
        later = pool.submit(one)
        second = other()
        return later.result(), second
