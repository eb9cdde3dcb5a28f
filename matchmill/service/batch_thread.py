"""A queue and one thread that works off what has gathered in it, in batches.

    submit(item) ─► queue ─► one thread: work(what has gathered) ─► the futures of the items

What arrives while one batch is being worked on becomes the next batch. A batch has a largest size,
and tenants take turns: one with many items does not delay another one's single item by more than
the batch that runs, and its own.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, NamedTuple, TypeVar

from matchmill.service.fair_queue import FairQueue

logger = logging.getLogger("matchmill.service")

__all__ = ["BatchThread", "QueueClosed", "QueueFull", "Queued"]

Item = TypeVar("Item")


class QueueClosed(Exception):
    """Nothing can be submitted any more."""


class QueueFull(Exception):
    """More is waiting than the limit allows."""


class Queued(NamedTuple, Generic[Item]):
    """An item, and the future that gets its result."""

    item: Item
    size: int
    future: Future[Any]


class BatchThread(Generic[Item]):
    """Any thread may submit.

    `work` gets the items of a batch and sets the result of every future. If it raises, those that
    have none get the error, and the thread goes on.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[list[Queued[Item]]], None],
        *,
        most_at_once: int,
        limit: int | None = None,
    ) -> None:
        self._work = work
        self._most_at_once = most_at_once
        self._limit = limit
        self._queue: FairQueue[Queued[Item]] = FairQueue()
        self._changed = threading.Condition()
        self._stopping = False
        self.n_queued = 0  # the sizes of all items without a result
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, item: Item, size: int = 1, tenant: int = 0) -> Future[Any]:
        """Queue an item of a tenant; QueueFull or QueueClosed if it cannot be."""
        queued = Queued(item, size, Future[Any]())
        with self._changed:
            if self._stopping:
                raise QueueClosed
            if self._limit is not None and self.n_queued + size > self._limit:
                raise QueueFull
            self.n_queued += size
            # The first callback of this future: whoever gets its result finds `n_queued` reduced.
            queued.future.add_done_callback(lambda _: self._done(size))
            self._queue.put(tenant, queued)
            self._changed.notify()
        return queued.future

    def n_waiting(self, tenant: int) -> int:
        """Return how many items of a tenant wait for the next batches."""
        with self._changed:
            return self._queue.n_waiting(tenant)

    def _done(self, size: int) -> None:
        with self._changed:
            self.n_queued -= size

    def stop(self) -> None:
        """Finish what is queued, and end the thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not len(self._queue) and not self._stopping:
                    self._changed.wait()
                if not len(self._queue):
                    return
                taken = self._taken()
            # From here on a future cannot be cancelled; one that was before is left out.
            batch = [one for one in taken if one.future.set_running_or_notify_cancel()]
            try:
                self._work(batch)
            except Exception as error:  # the thread goes on
                logger.debug("a batch failed; those who wait get the error", exc_info=True)
                for one in batch:
                    if not one.future.done():
                        one.future.set_exception(error)

    def _taken(self) -> list[Queued[Item]]:
        taken: list[Queued[Item]] = []
        size = 0

        def fits(one: Queued[Item]) -> bool:
            return not size or size + one.size <= self._most_at_once

        while (found := self._queue.take(fits)) is not None:
            tenant, item = found
            self._queue.done(tenant, item.size)
            taken.append(item)
            size += item.size
        return taken
