"""One queue per tenant; whoever has used the least is served next.

    put ─► tenant 1: a a a a a a ┐
           tenant 2: b           ├─► take: b (tenant 2 has used less), a, a, c, a …
           tenant 3: c           ┘   done: what that has cost is charged to the tenant

This is fair queueing by cost. `_used` is what each tenant was charged. Who comes back after a pause
starts where the tenant served last stands: a pause earns no credit, and costs nothing. So a tenant
that asks for little waits for what runs at that moment, and never for the queue of another one.

Cost is whatever is scarce: seconds of a thread, rows of a transaction. It may be known only when
the work is done.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["FairQueue"]

Item = TypeVar("Item")

_MOST_REMEMBERED = 10_000


class FairQueue(Generic[Item]):
    """Not for several threads at once: the caller holds a lock.

    Of one tenant at most `most_running` items are taken and not yet done.
    """

    def __init__(self, most_running: int | None = None) -> None:
        self._most_running = most_running
        self._queues: dict[int, deque[Item]] = {}  # only of tenants that wait
        self._used: dict[int, float] = {}
        self._running: dict[int, int] = {}  # only of tenants that run
        self._ready: list[tuple[float, int]] = []  # a heap: what was used, and the tenant
        self._is_ready: set[int] = set()
        self._reached = 0.0  # by the tenant that was served last
        self._n_items = 0

    def __len__(self) -> int:
        return self._n_items

    def n_waiting(self, tenant: int) -> int:
        """Return how many items of a tenant wait."""
        return len(self._queues.get(tenant, ()))

    def n_running(self, tenant: int) -> int:
        """Return how many items of a tenant were taken and are not done."""
        return self._running.get(tenant, 0)

    def put(self, tenant: int, item: Item) -> None:
        """Queue an item."""
        if tenant not in self._queues and tenant not in self._running:
            self._used[tenant] = max(self._used.get(tenant, 0.0), self._reached)
        self._queues.setdefault(tenant, deque()).append(item)
        self._n_items += 1
        self._make_ready(tenant)

    def _make_ready(self, tenant: int) -> None:
        if tenant in self._is_ready or tenant not in self._queues:
            return
        if self._most_running is None or self.n_running(tenant) < self._most_running:
            self._is_ready.add(tenant)
            heapq.heappush(self._ready, (self._used[tenant], tenant))

    def take(self, fits: Callable[[Item], bool] | None = None) -> tuple[int, Item] | None:
        """Return the next item and its tenant; None if nothing may run now, or it does not fit."""
        while self._ready:
            used, tenant = heapq.heappop(self._ready)
            if used != self._used[tenant]:  # it was charged while it waited
                heapq.heappush(self._ready, (self._used[tenant], tenant))
                continue
            queue = self._queues[tenant]
            if fits is not None and not fits(queue[0]):
                heapq.heappush(self._ready, (used, tenant))
                return None
            self._is_ready.discard(tenant)
            self._reached = max(self._reached, used)
            item = queue.popleft()
            if not queue:
                del self._queues[tenant]
            self._n_items -= 1
            self._running[tenant] = self.n_running(tenant) + 1
            self._make_ready(tenant)
            return tenant, item
        return None

    def done(self, tenant: int, cost: float) -> None:
        """Charge a tenant for an item that was taken."""
        self._used[tenant] += cost
        left = self._running[tenant] - 1
        if left:
            self._running[tenant] = left
        else:
            del self._running[tenant]
        self._make_ready(tenant)
        if len(self._used) > _MOST_REMEMBERED:
            self._forget()

    def _forget(self) -> None:
        """Drop what idle tenants have used, where it makes no difference any more."""
        for tenant, used in list(self._used.items()):
            is_idle = tenant not in self._queues and tenant not in self._running
            if is_idle and used <= self._reached:
                del self._used[tenant]
