"""Publishes events: matches them in slices, tenants by turns, and has the writer store them.

    requests ─► the tenant's queue ─► a thread: catch up, match a slice ─► writer ─► responses
                                      (of one tenant one at a time)        (a part of the slice)

Requests of a tenant that arrive together are matched as one batch, so it does not matter much how
many events one request holds. An event is matched with all changes that were committed before it
arrived.

No tenant stops another one. A slice has as many events as took about 20 milliseconds before; then
it is the turn of whoever has used less time. What a slice matches is stored in transactions of a
few thousand rows. A tenant's next slice waits until most of that is stored, so little is in memory,
and until its matches per second are back within their limit.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from time import perf_counter
from typing import Any, NamedTuple

from matchmill.errors import StoreError
from matchmill.service.database.rows import Publication, Published
from matchmill.service.database.writes import Writes
from matchmill.service.fair_pool import FairPool
from matchmill.service.group_commit import Writer
from matchmill.service.problems import Problem
from matchmill.service.rate_limits import RateLimits
from matchmill.service.settings import ServiceSettings
from matchmill.service.tenant_engines import TenantEngines

__all__ = ["Incoming", "Outcome", "Publisher"]

_MOST_EVENTS = 4_096  # in a slice
_FIRST_EVENTS = 4  # in the first slice of a tenant, whose events may take long
_SLICE_SECONDS = 0.02
_MOST_ROWS = 2_000  # in one part of a transaction, unless a single event has more
_MOST_ROWS_UNSTORED = 8_000  # of one tenant
_MOST_EVENTS_UNSTORED = 8_192
_THREADS = 2  # a tenant has one at most

logger = logging.getLogger("matchmill.service")


class Incoming(NamedTuple):
    """An event to publish."""

    event_id: str
    event: Mapping[str, Any]
    body: str
    is_named: bool  # by its sender, who may send it again


Outcome = Published | Problem | str  # or why the event cannot be matched


class _Request:
    """The events of one request, and what became of them so far."""

    def __init__(self, events: Sequence[Incoming]) -> None:
        self.events = events
        self.outcomes: list[Outcome | None] = [None] * len(events)
        self.n_taken = 0
        self.n_left = len(events)
        self.n_bytes = sum(len(one.body) for one in events)
        self.future: Future[list[Outcome]] = Future()


class _Place(NamedTuple):
    """Where an event of a slice stands in its request."""

    request: _Request
    row: int

    @property
    def incoming(self) -> Incoming:
        return self.request.events[self.row]


class _Tenant:
    """What waits of one tenant, and what it takes to match."""

    def __init__(self) -> None:
        self.requests: deque[_Request] = deque()
        self.n_events = 0  # without an outcome
        self.n_bytes = 0
        self.n_rows_unstored = 0
        self.n_events_unstored = 0
        self.n_slice = _FIRST_EVENTS
        self.is_matching = False  # or waits for its turn
        self.pause: threading.Timer | None = None
        self.n_rejected = 0
        self.n_pauses = 0

    @property
    def may_match(self) -> bool:
        return (
            bool(self.requests)
            and not self.is_matching
            and self.pause is None
            and self.n_rows_unstored < _MOST_ROWS_UNSTORED
            and self.n_events_unstored < _MOST_EVENTS_UNSTORED
        )


class Publisher:
    """The few threads that match published events."""

    def __init__(
        self,
        engines: TenantEngines,
        writer: Writer,
        clock: Callable[[], int],
        settings: ServiceSettings,
        *,
        committed: Callable[[int, list[tuple[Incoming, Published]], int], None],
    ) -> None:
        self._engines = engines
        self._writer = writer
        self._clock = clock
        self._settings = settings
        self._committed = committed
        self._tenants: dict[int, _Tenant] = {}
        self._changed = threading.Condition()
        self._stopping = False
        per_second = settings.matches_per_second
        self._rows = RateLimits(per_second, settings.matches_burst)
        self._pool = FairPool("match", _THREADS, most_running=1)
        self.n_queued = 0  # events without an outcome, of all tenants

    # -- for requests -----------------------------------------------------------------------------

    def publish(self, tenant: int, events: Sequence[Incoming]) -> Future[list[Outcome]]:
        """Match and store events; the future has an outcome for each, when they are safe."""
        request = _Request(events)
        with self._changed:
            if self._stopping or self.n_queued + len(events) > self._settings.max_queued_events:
                raise self._overloaded()
            of = self._tenants.setdefault(tenant, _Tenant())
            self._check_room(of, request)
            of.requests.append(request)
            of.n_events += len(events)
            of.n_bytes += request.n_bytes
            self.n_queued += len(events)
            self._go_on(tenant, of)
        return request.future

    def _overloaded(self) -> Problem:
        return Problem(
            503,
            "overloaded",
            f"{self.n_queued:,} events wait to be matched",
            hint="nothing was published; send it again a little later",
            retry_after=1,
        )

    def _check_room(self, of: _Tenant, request: _Request) -> None:
        """Raise Problem if too much of this tenant waits; one request always fits."""
        settings = self._settings
        if not of.n_events:
            return
        if of.n_events + len(request.events) > settings.max_tenant_events:
            waiting, most = f"{of.n_events:,} events", f"{settings.max_tenant_events:,}"
        elif of.n_bytes + request.n_bytes > settings.max_tenant_bytes:
            waiting, most = f"{of.n_bytes:,} bytes of events", f"{settings.max_tenant_bytes:,}"
        else:
            return
        of.n_rejected += 1
        raise Problem(
            429,
            "busy",
            f"{waiting} of this tenant wait to be matched or stored, and there may be {most}",
            hint="nothing was published; send it again a little later",
            retry_after=1,
        )

    def figures(self, tenant: int) -> dict[str, Any]:
        """Return what a tenant has waiting, and what it has used."""
        used = self._pool.figures(tenant)
        with self._changed:
            of = self._tenants.get(tenant) or _Tenant()
            return {
                "n_queued": of.n_events,
                "n_queued_bytes": of.n_bytes,
                "n_rejected": of.n_rejected,
                "n_pauses": of.n_pauses,
                "seconds": used["seconds"],
            }

    def stop(self) -> None:
        """Finish what is queued, and end."""
        with self._changed:
            self._stopping = True
            for tenant, of in self._tenants.items():
                if of.pause is not None:
                    of.pause.cancel()
                    of.pause = None
                self._go_on(tenant, of)
            while self.n_queued:
                self._changed.wait()
        self._pool.stop()

    # -- slices -----------------------------------------------------------------------------------

    def _go_on(self, tenant: int, of: _Tenant) -> None:
        """Have the next slice of a tenant matched, if it may be; called with the lock."""
        if of.may_match:
            of.is_matching = True
            self._pool.submit(tenant, lambda: self._match_slice(tenant, of))

    def _match_slice(self, tenant: int, of: _Tenant) -> None:
        with self._changed:
            places = self._taken(of)
        try:
            if places:
                self._match(tenant, of, places)
        except Exception as error:  # those who wait get the error; other tenants go on
            logger.debug("matching failed", exc_info=True)
            self._fail(of, places, error)
        finally:
            with self._changed:
                of.is_matching = False
                self._go_on(tenant, of)

    def _taken(self, of: _Tenant) -> list[_Place]:
        """Return the next events of a tenant."""
        places: list[_Place] = []
        while of.requests and len(places) < of.n_slice:
            request = of.requests[0]
            if request.n_taken == 0 and not request.future.set_running_or_notify_cancel():
                of.requests.popleft()  # given up before it began
                self._settle(of, request, len(request.events))
                continue
            last = min(len(request.events), request.n_taken + of.n_slice - len(places))
            places += (_Place(request, row) for row in range(request.n_taken, last))
            request.n_taken = last
            if last == len(request.events):
                of.requests.popleft()
        return places

    def _match(self, tenant: int, of: _Tenant, places: list[_Place]) -> None:
        engine = self._engines.of(tenant)
        started = perf_counter()
        matched = engine.match([place.incoming.event for place in places])
        n_matches = sum(map(len, matched.numbers))
        self._learn(of, len(places), n_matches, perf_counter() - started)
        part: list[tuple[_Place, list[int]]] = []
        n_rows = 0
        for k, (place, numbers) in enumerate(zip(places, matched.numbers, strict=True)):
            if k in matched.rejected:
                self._finish(of, place, matched.rejected[k])
                continue
            if len(numbers) > self._settings.max_matches:
                self._finish(of, place, self._too_many_matches(len(numbers)))
                continue
            if part and n_rows + 1 + len(numbers) > _MOST_ROWS:
                self._store(tenant, of, part, n_rows)
                part, n_rows = [], 0
            part.append((place, numbers))
            n_rows += 1 + len(numbers)
        if part:
            self._store(tenant, of, part, n_rows)

    def _learn(self, of: _Tenant, n_events: int, n_matches: int, seconds: float) -> None:
        """Choose how many events the next slice has: by their time, and by their matches."""
        share = min(_SLICE_SECONDS / max(seconds, 1e-6), _MOST_ROWS_UNSTORED / max(n_matches, 1))
        fitting = int(n_events * share)
        of.n_slice = max(1, min(fitting, 2 * of.n_slice, _MOST_EVENTS))

    def _too_many_matches(self, n_matches: int) -> Problem:
        most = self._settings.max_matches
        return Problem(
            422,
            "too_many_matches",
            f"the event satisfies {n_matches:,} subscriptions, and one event may satisfy {most:,}",
            hint="nothing was published; the setting is max_matches",
            field="event",
        )

    # -- storing ----------------------------------------------------------------------------------

    def _store(
        self, tenant: int, of: _Tenant, part: list[tuple[_Place, list[int]]], n_rows: int
    ) -> None:
        publications = [
            Publication(one.incoming.event_id, one.incoming.body, numbers, one.incoming.is_named)
            for one, numbers in part
        ]
        places = [place for place, _ in part]

        def store(transaction: Writes) -> tuple[list[Published], int]:
            now = self._clock()
            limit = self._settings.max_mailbox
            return transaction.publish(tenant, publications, now, limit), now

        def stored(future: Future[tuple[list[Published], int]]) -> None:
            error = future.exception()
            if error is not None:
                self._fail(of, places, error)
            else:
                self._stored(tenant, of, places, *future.result())
            with self._changed:
                of.n_rows_unstored -= n_rows
                of.n_events_unstored -= len(places)
                self._go_on(tenant, of)

        with self._changed:
            of.n_rows_unstored += n_rows
            of.n_events_unstored += len(places)
            n_matches = n_rows - len(places)
            self._pause(tenant, of, self._rows.charge(tenant, n_matches) if n_matches else 0.0)
        try:
            self._writer.submit(store, tenant, n_rows).add_done_callback(stored)
        except StoreError:
            with self._changed:
                of.n_rows_unstored -= n_rows
                of.n_events_unstored -= len(places)
            raise

    def _pause(self, tenant: int, of: _Tenant, seconds: float) -> None:
        """Have a tenant wait that has had more matches than its share; called with the lock."""
        if not seconds or of.pause is not None or self._stopping:
            return

        def end() -> None:
            with self._changed:
                of.pause = None
                self._go_on(tenant, of)

        of.n_pauses += 1
        of.pause = threading.Timer(seconds, end)
        of.pause.daemon = True
        of.pause.start()

    def _stored(
        self, tenant: int, of: _Tenant, places: list[_Place], published: list[Published], now: int
    ) -> None:
        pairs = [
            (place.incoming, one)
            for place, one in zip(places, published, strict=True)
            if one.receivers
        ]
        for place, one in zip(places, published, strict=True):
            # Thousands of receivers per event would be kept until the request is answered.
            self._finish(of, place, one._replace(receivers=[]))
        self._committed(tenant, pairs, now)

    # -- outcomes ---------------------------------------------------------------------------------

    def _finish(self, of: _Tenant, place: _Place, outcome: Outcome) -> None:
        """Note what became of an event; the last one answers the request."""
        request = place.request
        with self._changed:
            if request.outcomes[place.row] is not None:
                return  # it has failed with the rest of its request
            request.outcomes[place.row] = outcome
            is_last = request.n_left == 1
            self._settle(of, request, 1)
        if is_last:
            request.future.set_result([one for one in request.outcomes if one is not None])

    def _settle(self, of: _Tenant, request: _Request, n_events: int) -> None:
        """Count events that have their outcome; called with the lock."""
        request.n_left -= n_events
        of.n_events -= n_events
        self.n_queued -= n_events
        if not request.n_left:
            of.n_bytes -= request.n_bytes
        self._changed.notify_all()

    def _fail(self, of: _Tenant, places: list[_Place], error: BaseException) -> None:
        """Give the error to all requests that have events among these."""
        for request in {id(place.request): place.request for place in places}.values():
            with self._changed:
                if not request.n_left:
                    continue
                if request in of.requests:
                    of.requests.remove(request)
                for row, outcome in enumerate(request.outcomes):
                    if outcome is None:
                        request.outcomes[row] = "the request failed"
                self._settle(of, request, request.n_left)
            request.future.set_exception(error)
