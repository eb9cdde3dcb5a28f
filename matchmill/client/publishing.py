"""Many events to the service: in batches, or as lines of one long request.

Each event has an id, the caller's or a new one, so that what is sent twice is published once.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from matchmill.client.requests import batches, compact, event_text
from matchmill.client.responses import Published, PublishReport, Rejected, read_published
from matchmill.errors import EventError, ServiceError

__all__ = ["AnyEvent", "event_body", "new_event_id", "published", "report"]

AnyEvent: TypeAlias = Mapping[str, Any] | tuple[str, Mapping[str, Any]]  # the tuple has its id

Send: TypeAlias = Callable[[Sequence[str]], Sequence[dict[str, Any]]]


def new_event_id() -> str:
    """A name that nobody else has; later ones are greater, as a store likes them."""
    return f"{time.time_ns() // 1000:014x}{secrets.token_hex(8)}"


def event_body(event_id: str, event: Mapping[str, Any]) -> str:
    return f'{{"event":{event_text(event)},"event_id":{compact(event_id)}}}'


def published(send: Send, events: Iterable[AnyEvent], most: int) -> Iterator[Published | Rejected]:
    """What became of each event; they are sent at most so many at once."""
    row = 0
    for batch in batches(map(_prepared, events), _size, most):
        good = [one for one in batch if isinstance(one, str)]
        told = iter(send(good) if good else ())
        for one in batch:
            if isinstance(one, str):
                yield read_published(next(told), row)
            else:
                yield Rejected(row, None, ServiceError(str(one), code="bad_event", field="event"))
            row += 1


def _prepared(event: AnyEvent) -> str | EventError:
    event_id, inner = event if isinstance(event, tuple) else (new_event_id(), event)
    try:
        return event_body(event_id, inner)
    except EventError as error:
        return error


def _size(one: str | EventError) -> int:
    return len(one.encode(errors="surrogatepass")) if isinstance(one, str) else 0


def report(results: Iterator[Published | Rejected]) -> PublishReport:
    """All results in one; a ServiceError notes how far it had come."""
    n_published = n_matches = 0
    rejected = []
    try:
        for result in results:
            if isinstance(result, Published):
                n_published += 1
                n_matches += result.matched
            else:
                rejected.append(result)
    except ServiceError as error:
        error.add_note(f"{n_published:,} events had been published before")
        raise
    return PublishReport(n_published, n_matches, rejected)
