"""Events on their way in: matched in batches in one thread, stored by the writer.

    requests ─► queue ─► catch up, match what has gathered ─► writer ─► answers
                         (next batch is matched while this one is synced)

Requests that arrive together are matched as one batch, so what a request holds does not matter
much. An event is matched with all changes that were committed before it arrived.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from itertools import chain
from typing import Any, NamedTuple

from matchmill.service.database.interface import Publication, Published, Writing
from matchmill.service.group_commit import Writer
from matchmill.service.problems import Problem
from matchmill.service.tenant_engines import Engines

__all__ = ["Incoming", "Outcome", "Publisher"]

_MOST_AT_ONCE = 4_096


class Incoming(NamedTuple):
    event_id: str
    event: Mapping[str, Any]
    body: str
    is_named: bool  # by its sender, who may send it again


Outcome = Published | str  # or why the event cannot be matched


class _Request(NamedTuple):
    tenant: int
    events: Sequence[Incoming]
    answer: Future[list[Outcome]]


class Publisher:
    def __init__(
        self,
        engines: Engines,
        writer: Writer,
        clock: Callable[[], int],
        *,
        mailbox_limit: int,
        most_queued: int,
        committed: Callable[[int, list[tuple[Incoming, Published]], int], None],
    ) -> None:
        self._engines = engines
        self._writer = writer
        self._clock = clock
        self._mailbox_limit = mailbox_limit
        self._most_queued = most_queued
        self._committed = committed
        self._queue: deque[_Request] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self.n_queued = 0
        self._thread = threading.Thread(target=self._run, name="matchmill-match", daemon=True)
        self._thread.start()

    def publish(self, tenant: int, events: Sequence[Incoming]) -> Future[list[Outcome]]:
        """Match and store events; the future has an outcome for each, when they are safe."""
        request = _Request(tenant, events, Future())
        with self._changed:
            if self._stopping or self.n_queued + len(events) > self._most_queued:
                raise Problem(
                    503,
                    "overloaded",
                    f"{self.n_queued:,} events wait to be matched",
                    hint="nothing was done; send them again a little later",
                    retry_after=1,
                )
            self.n_queued += len(events)
            self._queue.append(request)
            self._changed.notify()
        return request.answer

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
                requests = self._taken()
            by_tenant: dict[int, list[_Request]] = {}
            for request in requests:
                by_tenant.setdefault(request.tenant, []).append(request)
            for tenant, group in by_tenant.items():
                try:
                    self._match(tenant, group)
                except Exception as error:
                    self._fail(group, error)

    def _taken(self) -> list[_Request]:
        requests: list[_Request] = []
        n_events = 0
        while self._queue and n_events < _MOST_AT_ONCE:
            request = self._queue.popleft()
            if request.answer.set_running_or_notify_cancel():  # nobody can cancel it any more
                requests.append(request)
                n_events += len(request.events)
            else:
                self.n_queued -= len(request.events)
        return requests

    def _match(self, tenant: int, group: list[_Request]) -> None:
        events = list(chain.from_iterable(request.events for request in group))
        matched = self._engines.of(tenant).match([incoming.event for incoming in events])
        good = [i for i in range(len(events)) if i not in matched.rejected]
        publications = [
            Publication(events[i].event_id, events[i].body, matched.numbers[i], events[i].is_named)
            for i in good
        ]

        def store(transaction: Writing) -> tuple[list[Published], int]:
            now = self._clock()
            return transaction.publish(tenant, publications, now, self._mailbox_limit), now

        def stored(future: Future[tuple[list[Published], int]]) -> None:
            error = future.exception()
            if error is not None:
                self._fail(group, error)
                return
            published, now = future.result()
            outcomes: dict[int, Outcome] = dict(matched.rejected)
            outcomes.update(zip(good, published, strict=True))
            self._answer(group, outcomes)
            pairs = [
                (events[i], one) for i, one in zip(good, published, strict=True) if one.receivers
            ]
            self._committed(tenant, pairs, now)

        self._writer.submit(store).add_done_callback(stored)

    def _answer(self, group: list[_Request], outcomes: dict[int, Outcome]) -> None:
        first = 0
        for request in group:
            n_events = len(request.events)
            self._done(n_events)
            request.answer.set_result([outcomes[i] for i in range(first, first + n_events)])
            first += n_events

    def _fail(self, group: list[_Request], error: BaseException) -> None:
        for request in group:
            self._done(len(request.events))
            request.answer.set_exception(error)

    def _done(self, n_events: int) -> None:
        with self._changed:
            self.n_queued -= n_events
