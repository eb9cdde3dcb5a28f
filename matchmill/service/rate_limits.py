"""Rate limits: buckets of tokens that fill steadily, and bytes in memory per tenant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from matchmill.service.problems import Problem

__all__ = ["BytesInMemory", "RateLimits"]

_MOST_BUCKETS = 10_000


class RateLimits:
    """The buckets of all keys, or of all tenants; used by one thread at a time."""

    def __init__(
        self, per_second: float, burst: float, seconds: Callable[[], float] = monotonic
    ) -> None:
        self.per_second = per_second
        self._burst = burst
        self._seconds = seconds
        self._buckets: dict[object, tuple[float, float]] = {}  # tokens, and when they were counted

    def wait(self, who: object) -> float:
        """Take a token; return 0, or the seconds until there is one."""
        tokens, now = self._counted(who)
        taken = tokens >= 1
        self._store(who, tokens - taken, now)
        return 0.0 if taken else (1 - tokens) / self.per_second

    def charge(self, who: object, n_tokens: float) -> float:
        """Take tokens for what is done already; return the seconds until the debt is paid."""
        tokens, now = self._counted(who)
        self._store(who, tokens - n_tokens, now)
        return max(0.0, n_tokens - tokens) / self.per_second

    def _counted(self, who: object) -> tuple[float, float]:
        now = self._seconds()
        tokens, then = self._buckets.pop(who, (self._burst, now))
        return min(self._burst, tokens + (now - then) * self.per_second), now

    def _store(self, who: object, tokens: float, now: float) -> None:
        self._buckets[who] = (tokens, now)  # the latest last
        if len(self._buckets) > _MOST_BUCKETS:
            self._forget(now)

    def _forget(self, now: float) -> None:
        """Drop buckets that are full again: those that were not used for longest."""
        full = self._burst / self.per_second
        for who, (_, then) in list(self._buckets.items()):
            if now - then < full:
                break
            del self._buckets[who]


class BytesInMemory:
    """What the requests of each tenant hold in memory; used on the event loop alone."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[int, int] = {}
        self._n_rejected: dict[int, int] = {}

    def of(self, tenant: int) -> int:
        """Return how many bytes a tenant holds."""
        return self._held.get(tenant, 0)

    def n_rejected(self, tenant: int) -> int:
        """Return how many requests of a tenant were rejected."""
        return self._n_rejected.get(tenant, 0)

    @contextmanager
    def holding(self, tenant: int, n_bytes: int) -> Iterator[None]:
        """Hold bytes while the block runs; Problem if the tenant holds too many."""
        held = self.of(tenant)
        # One request always passes, so the limit can be below the largest body.
        if held and n_bytes and held + n_bytes > self._limit:
            self._n_rejected[tenant] = self.n_rejected(tenant) + 1
            raise Problem(
                429,
                "busy",
                f"the requests of this tenant hold {held:,} bytes, and may hold {self._limit:,}",
                hint="nothing was done; send fewer at the same time, or again a little later",
                retry_after=1,
            )
        self._held[tenant] = held + n_bytes
        try:
            yield
        finally:
            self._held[tenant] = self.of(tenant) - n_bytes
            if not self._held[tenant]:
                del self._held[tenant]
