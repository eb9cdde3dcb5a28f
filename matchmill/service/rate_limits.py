"""Rate limits: each key has a bucket of tokens that fills steadily; a request takes one."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

__all__ = ["RateLimits"]

_MOST_BUCKETS = 10_000


class RateLimits:
    """The buckets of all keys; used on the event loop alone."""

    def __init__(
        self, per_second: float, burst: float, seconds: Callable[[], float] = monotonic
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._seconds = seconds
        self._buckets: dict[object, tuple[float, float]] = {}  # tokens, and when they were counted

    def wait(self, who: object) -> float:
        """Take a token; return 0, or the seconds until there is one."""
        now = self._seconds()
        tokens, then = self._buckets.pop(who, (self._burst, now))
        tokens = min(self._burst, tokens + (now - then) * self._per_second)
        taken = tokens >= 1
        self._buckets[who] = (tokens - taken, now)  # the latest last
        if len(self._buckets) > _MOST_BUCKETS:
            self._forget(now)
        return 0.0 if taken else (1 - tokens) / self._per_second

    def _forget(self, now: float) -> None:
        """Drop buckets that are full again: those that were not used for longest."""
        full = self._burst / self._per_second
        for who, (_, then) in list(self._buckets.items()):
            if now - then < full:
                break
            del self._buckets[who]
