"""Group commit: one thread writes, and many requests share a transaction.

    request ─► submit(work) ─► queue ─► one transaction does all that has gathered ─► responses

Syncing the disk takes milliseconds, whatever is written; so what arrives while one transaction is
synced goes into the next one together. Futures get their results after the commit, never before.

Work that raises a MatchmillError has changed nothing, and the rest of its transaction goes on. If
the store fails, all of it does. Any other error undoes the transaction; then each is tried alone.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from matchmill.errors import MatchmillError, StoreError
from matchmill.service.batch_thread import BatchThread, QueueClosed, Queued
from matchmill.service.database.store import Store
from matchmill.service.database.writes import Writes

__all__ = ["Writer"]

logger = logging.getLogger("matchmill.service")

T = TypeVar("T")
_MOST_AT_ONCE = 2_000  # rows in one transaction, unless one part alone has more

_Work = Callable[[Writes], Any]


class Writer:
    """The one thread that changes a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.n_transactions = 0
        self.n_works = 0
        self._n_rows: Counter[int] = Counter()
        self._thread: BatchThread[_Work] = BatchThread(
            "matchmill-write", self._write, most_at_once=_MOST_AT_ONCE
        )

    def submit(self, work: Callable[[Writes], T], tenant: int = 0, n_rows: int = 1) -> Future[T]:
        """Have work done in a transaction; the future has its result when that is committed.

        `n_rows` is about how much it writes: tenants take turns by it, and a transaction ends when
        there are enough.
        """
        try:
            future = self._thread.submit(work, n_rows, tenant)
        except QueueClosed:
            raise StoreError("the service is stopping") from None
        self._n_rows[tenant] += n_rows  # a figure to show: two threads may lose one
        return future

    def run(self, work: Callable[[Writes], T], tenant: int = 0) -> T:
        """Have work done in a transaction, and wait until it is committed."""
        return self.submit(work, tenant).result()

    def figures(self, tenant: int) -> dict[str, int]:
        """Return what a tenant has waiting, and how many rows it had written."""
        return {"n_queued": self._thread.n_waiting(tenant), "n_rows": self._n_rows[tenant]}

    def stop(self) -> None:
        """Finish what is queued, and end."""
        self._thread.stop()

    def _write(self, works: list[Queued[_Work]]) -> None:
        try:
            self._commit(works)
        except StoreError:  # whether it was committed is not known
            raise
        except Exception:
            logger.debug("a transaction failed; each part is tried alone", exc_info=True)
            for one in works:
                self._commit_alone(one)

    def _commit(self, works: list[Queued[_Work]]) -> None:
        outcomes: list[tuple[Any, MatchmillError | None]] = []
        with self._store.writing() as transaction:
            for one in works:
                try:
                    outcomes.append((one.item(transaction), None))
                except MatchmillError as error:
                    outcomes.append((None, error))
        self.n_transactions += 1
        self.n_works += len(works)
        for one, (result, rejection) in zip(works, outcomes, strict=True):
            if rejection is None:
                one.future.set_result(result)
            else:
                one.future.set_exception(rejection)

    def _commit_alone(self, work: Queued[_Work]) -> None:
        try:
            self._commit([work])
        except Exception as error:  # the thread goes on
            logger.debug("a write failed; the caller gets the error", exc_info=True)
            work.future.set_exception(error)
