"""Which of two ways of matching is quicker, found out from small batches: each is timed as a whole.

    batch      1     2     3     4     5     6     7     8
    way        64    one   64    one   64    one   64    one      the other way each time
    seconds    -     -     a     b     a     b     a     b        the first ones may compile kernels

A large batch is better divided: some of its blocks are matched in each way.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import TypeVar

__all__ = ["SmallBatches"]

_TIMED = 3  # batches in each way, after one that is not timed

Found = TypeVar("Found")


class SmallBatches:
    """Small batches that are being timed; any number of threads may do so."""

    def __init__(self) -> None:
        self._seconds: tuple[list[float], list[float]] = ([], [])  # per event

    def match(self, n_events: int, match: Callable[[bool], Found]) -> tuple[Found, bool | None]:
        """Match a batch in the way whose turn it is, and return whether that decides it.

        `match` gets whether to take 64 events at a time. The second result is None, or whether that
        is quicker; then it starts again.
        """
        one, many = self._seconds
        by_blocks = len(many) <= len(one)
        began = time.thread_time()
        found = match(by_blocks)
        (many if by_blocks else one).append((time.thread_time() - began) / n_events)
        if min(len(one), len(many)) <= _TIMED:
            return found, None
        self._seconds = ([], [])
        return found, median(many[1:]) < median(one[1:])
