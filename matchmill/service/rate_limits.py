"""Rate limits: a bucket of tokens for each key, filled steadily, of which a request takes one."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

__all__ = ["RateLimits"]

_MOST_BUCKETS = 10_000


class RateLimits:
    """Used on the event loop alone."""

    def __init__(
        self, per_second: float, burst: float, seconds: Callable[[], float] = monotonic
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._seconds = seconds
        self._buckets: dict[object, tuple[float, float]] = {}  # tokens, and when there were

    def wait(self, who: object) -> float:
        """Take a token; returns 0, or after how many seconds there will be one."""
        now = self._seconds()
        tokens, then = self._buckets.pop(who, (self._burst, now))
        tokens = min(self._burst, tokens + (now - then) * self._per_second)
        taken = tokens >= 1
        self._buckets[who] = (tokens - taken, now)  # the latest last
        if len(self._buckets) > _MOST_BUCKETS:
            self._forget(now)
        return 0.0 if taken else (1 - tokens) / self._per_second

    def _forget(self, now: float) -> None:
        """A bucket that is full again need not be kept; those longest unused are full."""
        full = self._burst / self._per_second
        for who, (_, then) in list(self._buckets.items()):
            if now - then < full:
                break
            del self._buckets[who]
