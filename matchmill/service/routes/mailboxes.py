"""Mailboxes: long polls, streams, acknowledgements, dead letters, and the live view."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from matchmill.service.database.reads import Reads
from matchmill.service.database.rows import SECOND, Page
from matchmill.service.endpoint import Call, json_response, json_text_response
from matchmill.service.hub import Watcher
from matchmill.service.json_body import compact
from matchmill.service.problems import Problem
from matchmill.service.responses import dead_letter_text, entry_text, list_text
from matchmill.service.routes.subscriptions import no_such_subscription
from matchmill.service.secrets import TICKET_HEADER

__all__ = ["acknowledge", "dead_letters", "live", "matches", "retry_dead_letters"]

_ENTRIES_AT_ONCE = 200


async def _page(call: Call, after: int, limit: int) -> Page | None:
    """Return a page; None if the subscription has ended, or has another ticket by now."""
    service, about = call.service, call.about
    now, most = service.clock(), service.settings.max_page_size
    hashed = service.secret_key.hashed(call.request.headers[TICKET_HEADER])

    def question(reads: Reads) -> Page | None:
        if not reads.has_ticket(about.number, hashed):
            return None
        return reads.page(about.number, after, limit, now, most)

    return await call.read(question)


async def matches(call: Call) -> Response:
    """Read a mailbox: a page of it, or as a stream if the caller accepts only that."""
    if "text/event-stream" in call.request.headers.get("accept", ""):
        return _stream(call)
    after, limit, wait = call.query["after"], call.query["limit"], call.query["wait"]
    if wait:
        call.service.hub.check_room(call.tenant, call.about.number)
    page = await _page(call, after, limit)
    if wait and page is not None and not page.entries:
        page = await _waited(call, after, limit, time.monotonic() + wait)
    if page is None:
        raise no_such_subscription()
    call.service.metrics.delivered(len(page.entries), "poll")
    found = (entry_text(entry, call.about.id) for entry in page.entries)
    return await _list_response(call, "matches", found, {"n_dropped": page.n_dropped})


async def _list_response(
    call: Call, name: str, texts: Iterable[str], more: dict[str, Any] | None = None
) -> Response:
    return await call.work(lambda: json_text_response(list_text(name, texts, more)))


async def _waited(call: Call, after: int, limit: int, deadline: float) -> Page | None:
    hub = call.service.hub
    with hub.waiting(call.tenant, call.about.number) as changed:
        gone = asyncio.create_task(_disconnected(call, changed))
        try:
            while True:
                changed.clear()
                page = await _page(call, after, limit)
                left = deadline - time.monotonic()
                if page is None or page.entries or left <= 0 or hub.is_stopping:
                    return page
                if gone.done():  # nobody waits any more: the place is for others
                    raise ClientDisconnect
                await _changed(changed, _until(call, page, left))
        finally:
            gone.cancel()


async def _disconnected(call: Call, changed: asyncio.Event) -> None:
    """Set an event when the caller has closed the connection."""
    while (await call.request.receive())["type"] != "http.disconnect":
        pass
    changed.set()


def _until(call: Call, page: Page, longest: float) -> float:
    """Return the seconds until a digest can be read, between a few milliseconds and `longest`."""
    if page.next_digest_at is None:
        return longest
    return min(longest, max(0.005, (page.next_digest_at - call.service.clock()) / SECOND))


async def _changed(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event; return False if the time is over before."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def acknowledge(call: Call) -> Response:
    """Delete the entries up to a seq."""
    number, up_to = call.about.number, call.body["up_to"]
    await call.write(lambda w: w.acknowledge(number, up_to))
    return Response(status_code=204)


async def dead_letters(call: Call) -> Response:
    """List the matches that the webhook did not accept."""
    number = call.about.number
    after, limit = call.query["after"], call.query["limit"]
    most = call.service.settings.max_page_size
    letters = await call.read(lambda r: r.dead_letters(number, limit, after, most))
    found = (dead_letter_text(letter, call.about.id) for letter in letters)
    return await _list_response(call, "dead_letters", found)


async def retry_dead_letters(call: Call) -> Response:
    """Put dead letters back into the mailbox."""
    service, number = call.service, call.about.number
    now = service.clock()
    n_retried = await call.write(lambda w: w.retry_dead_letters(number, now))
    service.subscription_changed(number)
    service.webhooks.wake()
    return json_response({"n_retried": n_retried})


# -- streams --------------------------------------------------------------------------------------


def _event(name: str, text: str, seq: int | None = None) -> str:
    number = "" if seq is None else f"id: {seq}\n"
    return f"{number}event: {name}\ndata: {text}\n\n"


_HEARTBEAT = ": heartbeat\n\n"


class _EventStream(StreamingResponse):
    """Takes a place in the hub before the response begins, and leaves it when it ends."""

    def __init__(
        self, place: AbstractContextManager[Any], pieces: Callable[[Any], AsyncIterator[str]]
    ) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(_nothing(), media_type="text/event-stream", headers=headers)
        self._place = place
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the pieces, until there are no more or the caller is gone."""
        with self._place as place:
            self.body_iterator = self._pieces(place)
            await super().__call__(scope, receive, send)


async def _nothing() -> AsyncIterator[str]:
    return
    yield


def _stream(call: Call) -> Response:
    given = call.request.headers.get("last-event-id", str(call.query["after"]))
    if not (given.isascii() and given.isdigit() and len(given) < 19):
        message = "Last-Event-ID must be the seq of a match"
        raise Problem(400, "bad_request", message, field="Last-Event-ID")
    place = call.service.hub.waiting(call.tenant, call.about.number)
    return _EventStream(place, lambda changed: _entries(call, changed, int(given)))


async def _entries(call: Call, changed: asyncio.Event, after: int) -> AsyncIterator[str]:
    hub, heartbeat = call.service.hub, call.service.settings.heartbeat_seconds
    n_dropped = 0
    yield "retry: 1000\n\n"
    while not hub.is_stopping:
        changed.clear()
        page = await _page(call, after, _ENTRIES_AT_ONCE)
        if page is None:
            yield _event("end", compact({"reason": "unsubscribed or expired"}))
            return
        if page.n_dropped > n_dropped:
            n_dropped = page.n_dropped
            yield _event("dropped", compact({"n_dropped": n_dropped}))
        for entry in page.entries:
            name = "match" if entry.digest_count is None else "digest"
            yield _event(name, entry_text(entry, call.about.id), entry.seq)
        if page.entries:
            after = page.entries[-1].seq
            call.service.metrics.delivered(len(page.entries), "stream")
        elif not await _changed(changed, _until(call, page, heartbeat)):
            yield _HEARTBEAT


async def live(call: Call) -> Response:
    """Follow the matches of the tenant as they happen."""
    assert call.key is not None
    place = call.service.hub.watching(call.tenant, call.key.key_id)
    return _EventStream(place, lambda watcher: _live(call, watcher))


async def _live(call: Call, watcher: Watcher) -> AsyncIterator[str]:
    hub = call.service.hub
    yield "retry: 1000\n\n"
    while not hub.is_stopping:
        if watcher.is_revoked:
            yield _event("end", compact({"reason": "the key was revoked"}))
            return
        items, n_dropped = watcher.take()
        for item in items:
            yield _event("match", item)
        if n_dropped:
            yield _event("dropped", compact({"n_dropped": n_dropped}))
        if not items and not await _changed(
            watcher.changed, call.service.settings.heartbeat_seconds
        ):
            yield _HEARTBEAT
