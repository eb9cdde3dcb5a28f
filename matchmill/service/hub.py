"""Wakes readers that wait for matches, and shows matches to those who watch; on the event loop.

Nothing here is durable, and nothing grows: a reader that waits is woken and reads from the store; a
watcher has a bounded queue, and what does not fit is counted and reported.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager

from matchmill.service.problems import Problem

__all__ = ["Hub", "Watcher"]

_MOST_BYTES = 4 << 20  # of the matches that one watcher has not taken


class Watcher:
    """One reader of the live matches of a tenant."""

    def __init__(self, limit: int, key_id: str = "", most_bytes: int = _MOST_BYTES) -> None:
        self._limit = limit
        self._most_bytes = most_bytes
        self._n_bytes = 0
        self._items: deque[str] = deque()
        self._n_dropped = 0
        self.key_id = key_id
        self.is_revoked = False
        self.changed = asyncio.Event()

    def put(self, item: str) -> None:
        """Queue a match, or count it if the queue is full."""
        is_room = not self._items or self._n_bytes + len(item) <= self._most_bytes
        if len(self._items) < self._limit and is_room:
            self._items.append(item)
            self._n_bytes += len(item)
        else:
            self._n_dropped += 1
        self.changed.set()

    def take(self) -> tuple[list[str], int]:
        """Return the matches since the last call, and how many were dropped."""
        items, n_dropped = list(self._items), self._n_dropped
        self._items.clear()
        self._n_dropped = self._n_bytes = 0
        self.changed.clear()
        return items, n_dropped


class Hub:
    """All readers that wait, and all watchers, of one process.

    Each takes a place. There are so many of them in all, for one tenant, and for one subscription,
    so nobody can take all of them.
    """

    def __init__(
        self, most_streams: int, most_live: int, *, most_of_tenant: int, most_of_subscription: int
    ) -> None:
        self._most_streams = most_streams
        self._most_live = most_live
        self._most_of_tenant = most_of_tenant
        self._most_of_subscription = most_of_subscription
        self._waiting: dict[int, set[asyncio.Event]] = {}
        self._watching: dict[int, set[Watcher]] = {}
        self._n_of_tenant: Counter[int] = Counter()
        self._n_rejected: Counter[int] = Counter()
        self.n_streams = 0
        self.is_stopping = False

    def n_of_tenant(self, tenant: int) -> int:
        """Return how many streams and long polls a tenant has open."""
        return self._n_of_tenant[tenant]

    def n_rejected(self, tenant: int) -> int:
        """Return how many streams and long polls of a tenant were rejected."""
        return self._n_rejected[tenant]

    def check_room(self, tenant: int, number: int | None = None) -> None:
        """Raise Problem if there is no place for one more, of a tenant and a subscription."""
        if self.n_streams >= self._most_streams or self.is_stopping:
            raise _full(503, f"{self.n_streams:,} streams are open")
        n_of_tenant = self._n_of_tenant[tenant]
        n_of_subscription = 0 if number is None else len(self._waiting.get(number, ()))
        if n_of_tenant >= self._most_of_tenant:
            self._n_rejected[tenant] += 1
            raise _full(429, f"{n_of_tenant:,} streams of this tenant are open")
        if n_of_subscription >= self._most_of_subscription:
            self._n_rejected[tenant] += 1
            raise _full(429, f"{n_of_subscription:,} streams of this subscription are open")

    @contextmanager
    def _stream(self, tenant: int) -> Iterator[None]:
        self.n_streams += 1
        self._n_of_tenant[tenant] += 1
        try:
            yield
        finally:
            self.n_streams -= 1
            self._n_of_tenant[tenant] -= 1
            if not self._n_of_tenant[tenant]:
                del self._n_of_tenant[tenant]

    @contextmanager
    def waiting(self, tenant: int, number: int) -> Iterator[asyncio.Event]:
        """Give an event that is set when something happens to a subscription.

        Problem if there is no place.
        """
        self.check_room(tenant, number)
        changed = asyncio.Event()
        with self._stream(tenant):
            self._waiting.setdefault(number, set()).add(changed)
            try:
                yield changed
            finally:
                others = self._waiting[number]
                others.discard(changed)
                if not others:
                    del self._waiting[number]

    @contextmanager
    def watching(self, tenant: int, key_id: str) -> Iterator[Watcher]:
        """Give a watcher of all matches of a tenant, until its key is revoked.

        Problem if there is no place.
        """
        self.check_room(tenant)
        watcher = Watcher(self._most_live, key_id)
        with self._stream(tenant):
            self._watching.setdefault(tenant, set()).add(watcher)
            try:
                yield watcher
            finally:
                others = self._watching[tenant]
                others.discard(watcher)
                if not others:
                    del self._watching[tenant]

    def watched_tenants(self) -> list[int]:
        """Return the tenants that somebody watches."""
        return list(self._watching)

    def keep_keys(self, tenant: int, key_ids: Container[str]) -> None:
        """End the watchers of a tenant whose key is not among these: it was revoked."""
        for watcher in self._watching.get(tenant, ()):
            if watcher.key_id not in key_ids:
                watcher.is_revoked = True
                watcher.changed.set()

    def wake(self, numbers: Iterable[int]) -> None:
        """Wake those who wait for some subscriptions."""
        for number in numbers:
            for changed in self._waiting.get(number, ()):
                changed.set()

    def wake_all(self) -> None:
        """Wake all who wait or watch."""
        for number in list(self._waiting):
            self.wake([number])
        for watchers in self._watching.values():
            for watcher in watchers:
                watcher.changed.set()

    def is_watched(self, tenant: int) -> bool:
        """Return whether somebody watches a tenant."""
        return bool(self._watching.get(tenant))

    def show(self, tenant: int, items: list[str]) -> None:
        """Give matches to the watchers of a tenant."""
        for watcher in self._watching.get(tenant, ()):
            for item in items:
                watcher.put(item)

    def stop(self) -> None:
        """End all streams."""
        self.is_stopping = True
        self.wake_all()


def _full(status: int, what: str) -> Problem:
    return Problem(
        status,
        "too_many_streams",
        f"{what}, and no more are allowed",
        hint="try again a little later, or without wait",
        retry_after=5,
    )
