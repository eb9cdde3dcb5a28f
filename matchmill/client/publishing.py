"""Many events: sent in batches, reported by row."""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping
from typing import Any, NamedTuple

from matchmill.client import responses
from matchmill.client.event_sources import EventRow, event_rows
from matchmill.client.requests import batches, event_body
from matchmill.client.responses import PublishReport
from matchmill.errors import EventError
from matchmill.io.reports import Rejected

__all__ = ["NOTHING", "Batch", "Batching", "added", "read_batch"]

NOTHING = PublishReport(0, 0, [])


class Batch(NamedTuple):
    """Some events that go into one request, and those before and among them that are rejected."""

    sent: list[Prepared]
    rejected: list[Rejected]

    @property
    def bodies(self) -> list[str]:
        """The events as the service reads them."""
        return [one.body for one in self.sent]


class Prepared(NamedTuple):
    """One event as a body, with its place in the source; `rejected` if it cannot be sent."""

    place: tuple[int, int | None, str | None]
    body: str
    rejected: Rejected | None = None


class Batching:
    """Divides events into requests; `event_id` names the attribute that has an event's id."""

    def __init__(self, event_id: str | None, at_once: int) -> None:
        self._event_id = event_id
        self._at_once = at_once
        self._path: str | None = None
        self._n_rows = 0

    def batches(self, events: Any) -> Iterator[Batch]:
        """Yield the requests of all events of a source."""
        if isinstance(events, str | os.PathLike):
            self._path = os.fspath(events)
        rows = map(self._prepared, event_rows(events))
        for some in batches(rows, _size, self._at_once):
            yield _batch(some)

    async def batches_of_stream(self, events: AsyncIterable[Any]) -> AsyncIterator[Batch]:
        """Yield the requests of events that arrive one by one."""
        some: list[Prepared] = []
        async for event in events:
            some.append(self._prepared(EventRow(event)))
            if len(some) >= self._at_once:
                for batch in batches(some, _size):
                    yield _batch(batch)
                some = []
        for batch in batches(some, _size):
            yield _batch(batch)

    def _prepared(self, row: EventRow) -> Prepared:
        place = (self._n_rows, row.line, self._path)
        self._n_rows += 1
        name = None
        try:
            if row.problem is not None:
                raise EventError(row.problem)
            if self._event_id is not None:
                name = _id_of(row.event, self._event_id)
            return Prepared(place, event_body(row.event, name))
        except EventError as error:
            return Prepared(place, "", Rejected("event", *place, name, error.summary))


def _id_of(event: Any, event_id: str) -> str:
    found = event.get(event_id) if isinstance(event, Mapping) else None
    if found is None or found == "":
        raise EventError(f"the event has no {event_id!r}, which is its event_id")
    return str(found)


def _batch(some: list[Prepared]) -> Batch:
    return Batch(
        [one for one in some if one.rejected is None],
        [one.rejected for one in some if one.rejected is not None],
    )


def _size(one: Prepared) -> int:
    return len(one.body.encode(errors="surrogatepass"))


def read_batch(batch: Batch, results: list[dict[str, Any]]) -> PublishReport:
    """Make the report of one request from its results."""
    n_published = n_matches = 0
    rejected = list(batch.rejected)
    for one, result in zip(batch.sent, results, strict=True):
        if "code" in result:
            rejected.append(Rejected("event", *one.place, *responses.id_and_reason(result)))
        else:
            n_published += 1
            n_matches += result["n_matches"]
    return PublishReport(n_published, n_matches, sorted(rejected, key=lambda one: one.row))


def added(total: PublishReport, more: PublishReport) -> PublishReport:
    """Make one report of two."""
    return PublishReport(
        total.n_published + more.n_published,
        total.n_matches + more.n_matches,
        total.rejected + more.rejected,
    )
