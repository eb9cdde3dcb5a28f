"""Publishes events: matches them in batches in one thread, and has the writer store them.

    requests ─► queue ─► catch up, match what has gathered ─► writer ─► responses
                         (next batch is matched while this one is synced)

Requests that arrive together are matched as one batch, so it does not matter much how many events
one request holds. An event is matched with all changes that were committed before it arrived.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from itertools import chain
from typing import Any, NamedTuple

from matchmill.service.batch_thread import BatchThread, QueueClosed, Queued, QueueFull
from matchmill.service.database.rows import Publication, Published
from matchmill.service.database.writes import Writes
from matchmill.service.group_commit import Writer
from matchmill.service.problems import Problem
from matchmill.service.tenant_engines import TenantEngines

__all__ = ["Incoming", "Outcome", "Publisher"]

_MOST_AT_ONCE = 4_096

logger = logging.getLogger("matchmill.service")


class Incoming(NamedTuple):
    """An event to publish."""

    event_id: str
    event: Mapping[str, Any]
    body: str
    is_named: bool  # by its sender, who may send it again


Outcome = Published | str  # or why the event cannot be matched


class _Request(NamedTuple):
    tenant: int
    events: Sequence[Incoming]


class Publisher:
    """The one thread that matches published events."""

    def __init__(
        self,
        engines: TenantEngines,
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
        self._committed = committed
        self._thread: BatchThread[_Request] = BatchThread(
            "matchmill-match", self._match_all, most_at_once=_MOST_AT_ONCE, limit=most_queued
        )

    @property
    def n_queued(self) -> int:
        """Return how many events wait to be matched or stored."""
        return self._thread.n_queued

    def publish(self, tenant: int, events: Sequence[Incoming]) -> Future[list[Outcome]]:
        """Match and store events; the future has an outcome for each, when they are safe."""
        try:
            return self._thread.submit(_Request(tenant, events), len(events))
        except (QueueClosed, QueueFull):
            raise Problem(
                503,
                "overloaded",
                f"{self.n_queued:,} events wait to be matched",
                hint="nothing was published; send it again a little later",
                retry_after=1,
            ) from None

    def stop(self) -> None:
        """Finish what is queued, and end."""
        self._thread.stop()

    def _match_all(self, requests: list[Queued[_Request]]) -> None:
        by_tenant: dict[int, list[Queued[_Request]]] = {}
        for request in requests:
            by_tenant.setdefault(request.item.tenant, []).append(request)
        for tenant, group in by_tenant.items():
            try:
                self._match(tenant, group)
            except Exception as error:  # other tenants go on
                logger.debug("matching failed; those who wait get the error", exc_info=True)
                _fail(group, error)

    def _match(self, tenant: int, group: list[Queued[_Request]]) -> None:
        events = list(chain.from_iterable(request.item.events for request in group))
        matched = self._engines.of(tenant).match([incoming.event for incoming in events])
        good = [i for i in range(len(events)) if i not in matched.rejected]
        publications = [
            Publication(events[i].event_id, events[i].body, matched.numbers[i], events[i].is_named)
            for i in good
        ]

        def store(transaction: Writes) -> tuple[list[Published], int]:
            now = self._clock()
            return transaction.publish(tenant, publications, now, self._mailbox_limit), now

        def stored(future: Future[tuple[list[Published], int]]) -> None:
            error = future.exception()
            if error is not None:
                _fail(group, error)
                return
            published, now = future.result()
            outcomes: dict[int, Outcome] = dict(matched.rejected)
            outcomes.update(zip(good, published, strict=True))
            _answer(group, outcomes)
            pairs = [
                (events[i], one) for i, one in zip(good, published, strict=True) if one.receivers
            ]
            self._committed(tenant, pairs, now)

        self._writer.submit(store).add_done_callback(stored)


def _answer(group: list[Queued[_Request]], outcomes: dict[int, Outcome]) -> None:
    first = 0
    for request in group:
        last = first + len(request.item.events)
        request.future.set_result([outcomes[i] for i in range(first, last)])
        first = last


def _fail(group: list[Queued[_Request]], error: BaseException) -> None:
    for request in group:
        request.future.set_exception(error)
