"""A few threads that all tenants share, by turns.

    submit(tenant, task) ─► the tenant's queue ─► whoever has used the least time ─► a thread

Three rules hold for each tenant: it is charged for the time of its tasks, and the one with the
least goes next; at most `most_running` of its tasks run at once, so a thread is left for others;
and at most `most_queued` wait, more get 429. All three are counted, for `/v1/stats`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

from matchmill.errors import StoreError
from matchmill.service.fair_queue import FairQueue
from matchmill.service.problems import Problem

__all__ = ["FairPool"]

logger = logging.getLogger("matchmill.service")

T = TypeVar("T")


class _Task(NamedTuple):
    run: Callable[[], Any]
    future: Future[Any]


class FairPool:
    """Any thread may submit.

    `what` names the tasks in the error of a tenant that has too many: "queries", "reads".
    """

    def __init__(
        self, what: str, threads: int, *, most_running: int, most_queued: int | None = None
    ) -> None:
        self._what = what
        self._most_queued = most_queued
        self._queue: FairQueue[_Task] = FairQueue(most_running)
        self._changed = threading.Condition()
        self._stopping = False
        self._seconds: dict[int, float] = {}
        self._n_rejected: dict[int, int] = {}
        self._threads = [
            threading.Thread(target=self._run, name=f"matchmill-{what}-{n}", daemon=True)
            for n in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, tenant: int, task: Callable[[], T]) -> Future[T]:
        """Queue a task; Problem if too many of this tenant's wait already."""
        future: Future[T] = Future()
        with self._changed:
            if self._stopping:
                raise StoreError("the service is stopping")
            n_waiting = self._queue.n_waiting(tenant)
            if self._most_queued is not None and n_waiting >= self._most_queued:
                if tenant >= 0:
                    self._n_rejected[tenant] = self._n_rejected.get(tenant, 0) + 1
                raise self._busy(n_waiting)
            self._queue.put(tenant, _Task(task, future))
            self._changed.notify()
        return future

    def _busy(self, n_waiting: int) -> Problem:
        return Problem(
            429,
            "busy",
            f"{n_waiting:,} {self._what} of this tenant wait already",
            hint="nothing was done; send fewer at the same time, or again a little later",
            retry_after=1,
        )

    def figures(self, tenant: int) -> dict[str, Any]:
        """Return what a tenant has waiting and running, and what it has used."""
        with self._changed:
            return {
                "n_queued": self._queue.n_waiting(tenant),
                "n_running": self._queue.n_running(tenant),
                "n_rejected": self._n_rejected.get(tenant, 0),
                "seconds": round(self._seconds.get(tenant, 0.0), 3),
            }

    def stop(self) -> None:
        """Finish what is queued, and end the threads."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                taken = self._queue.take()
                while taken is None:
                    if self._stopping and not len(self._queue):
                        return
                    self._changed.wait()
                    taken = self._queue.take()
            tenant, task = taken
            started = perf_counter()
            outcome = _outcome(task)
            seconds = perf_counter() - started
            with self._changed:
                self._queue.done(tenant, seconds)
                if tenant >= 0:  # a sender that is not known yet sees no figures
                    self._seconds[tenant] = self._seconds.get(tenant, 0.0) + seconds
                # One more task of this tenant may run now; at the end, all threads look again.
                self._changed.notify_all() if self._stopping else self._changed.notify()
            if (
                outcome is not None
            ):  # after it was charged: whoever gets the result finds it counted
                outcome()


def _outcome(task: _Task) -> Callable[[], None] | None:
    """Run a task; return what sets its result, or None if nobody waits for it any more."""
    if not task.future.set_running_or_notify_cancel():
        return None
    try:
        result = task.run()
    except BaseException as error:  # the thread goes on
        logger.debug("a task failed; the caller gets the error", exc_info=True)
        failure = error
        return lambda: task.future.set_exception(failure)
    return lambda: task.future.set_result(result)
