"""Group commit: one thread writes, and many requests share a transaction.

    request ─► submit(work) ─► queue ─► one transaction runs all that has gathered ─► answers

Syncing the disk takes milliseconds, whatever is written; so what arrives while one transaction is
synced goes into the next one together. Answers are given after the commit, never before.

Work that refuses (a MatchmillError) has changed nothing, and its neighbours go on. If the store
fails, all of them do. Any other error undoes the transaction, and then each is tried alone.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from matchmill.errors import MatchmillError, StoreError
from matchmill.service.database.interface import Store, Writing

__all__ = ["Writer"]

T = TypeVar("T")
_MOST_AT_ONCE = 1_000

_Work = tuple[Callable[[Writing], Any], "Future[Any]"]


class Writer:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._queue: deque[_Work] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self.n_transactions = 0
        self.n_works = 0
        self._thread = threading.Thread(target=self._run, name="matchmill-write", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Writing], T]) -> Future[T]:
        """Have work done in a transaction; the future has its result when that is committed."""
        future: Future[T] = Future()
        with self._changed:
            if self._stopping:
                raise StoreError("the service is stopping")
            self._queue.append((work, future))
            self._changed.notify()
        return future

    def stop(self) -> None:
        """Finish what is queued, and end."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._stopping:
                    self._changed.wait()
                if not self._queue:
                    return
                n_works = min(len(self._queue), _MOST_AT_ONCE)
                taken = [self._queue.popleft() for _ in range(n_works)]
            # From here on nobody can cancel; who has done so before gets nothing done.
            works = [one for one in taken if one[1].set_running_or_notify_cancel()]
            try:
                self._commit(works)
            except StoreError as error:  # nobody knows whether it was committed
                for _, future in works:
                    future.set_exception(error)
            except Exception:
                for one in works:
                    self._commit_alone(one)

    def _commit(self, works: list[_Work]) -> None:
        outcomes: list[tuple[Any, MatchmillError | None]] = []
        with self._store.writing() as transaction:
            for work, _ in works:
                try:
                    outcomes.append((work(transaction), None))
                except MatchmillError as refusal:
                    outcomes.append((None, refusal))
        self.n_transactions += 1
        self.n_works += len(works)
        for (_, future), (result, problem) in zip(works, outcomes, strict=True):
            if problem is None:
                future.set_result(result)
            else:
                future.set_exception(problem)

    def _commit_alone(self, work: _Work) -> None:
        try:
            self._commit([work])
        except Exception as error:
            work[1].set_exception(error)
