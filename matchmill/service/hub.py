"""Wakes readers that wait for matches, and shows matches to those who watch; on the event loop.

Nothing here is durable, and nothing grows: a reader that waits is woken and reads from the store; a
watcher has a bounded queue, and what does not fit is counted and reported.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from matchmill.service.problems import Problem

__all__ = ["Hub", "Watcher"]


class Watcher:
    """One reader of the live matches of a tenant."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: deque[dict[str, Any]] = deque()
        self._n_dropped = 0
        self.changed = asyncio.Event()

    def put(self, item: dict[str, Any]) -> None:
        """Queue a match, or count it if the queue is full."""
        if len(self._items) < self._limit:
            self._items.append(item)
        else:
            self._n_dropped += 1
        self.changed.set()

    def take(self) -> tuple[list[dict[str, Any]], int]:
        """Return the matches since the last call, and how many were dropped."""
        items, n_dropped = list(self._items), self._n_dropped
        self._items.clear()
        self._n_dropped = 0
        self.changed.clear()
        return items, n_dropped


class Hub:
    """All readers that wait, and all watchers, of one process."""

    def __init__(self, most_streams: int, most_live: int) -> None:
        self._most_streams = most_streams
        self._most_live = most_live
        self._waiting: dict[int, set[asyncio.Event]] = {}
        self._watching: dict[int, set[Watcher]] = {}
        self.n_streams = 0
        self.is_stopping = False

    def check_room(self) -> None:
        """Raise Problem if there are too many streams for one more."""
        if self.n_streams >= self._most_streams or self.is_stopping:
            raise Problem(
                503,
                "too_many_streams",
                f"{self.n_streams:,} streams are open, and no more are allowed",
                hint="try again a little later, or without wait",
                retry_after=5,
            )

    @contextmanager
    def _stream(self) -> Iterator[None]:
        self.n_streams += 1
        try:
            yield
        finally:
            self.n_streams -= 1

    @contextmanager
    def waiting(self, number: int) -> Iterator[asyncio.Event]:
        """Give an event that is set when something happens to a subscription."""
        changed = asyncio.Event()
        with self._stream():
            self._waiting.setdefault(number, set()).add(changed)
            try:
                yield changed
            finally:
                others = self._waiting[number]
                others.discard(changed)
                if not others:
                    del self._waiting[number]

    @contextmanager
    def watching(self, tenant: int) -> Iterator[Watcher]:
        """Give a watcher of all matches of a tenant."""
        watcher = Watcher(self._most_live)
        with self._stream():
            self._watching.setdefault(tenant, set()).add(watcher)
            try:
                yield watcher
            finally:
                self._watching[tenant].discard(watcher)

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

    def show(self, tenant: int, items: list[dict[str, Any]]) -> None:
        """Give matches to the watchers of a tenant."""
        for watcher in self._watching.get(tenant, ()):
            for item in items:
                watcher.put(item)

    def stop(self) -> None:
        """End all streams."""
        self.is_stopping = True
        self.wake_all()
