"""Mailboxes: long polls, streams, acknowledgements, dead letters, and the live view."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response, StreamingResponse

from matchmill.service.database.rows import SECOND, Page
from matchmill.service.endpoint import Call, json_response
from matchmill.service.json_body import compact
from matchmill.service.problems import Problem
from matchmill.service.responses import dead_letter_dict, entry_dict
from matchmill.service.routes.subscriptions import no_such_subscription

__all__ = ["acknowledge", "dead_letters", "live", "matches", "retry_dead_letters"]

_ENTRIES_AT_ONCE = 200
_MOST_LETTERS = 1_000


async def _page(call: Call, after: int, limit: int) -> Page | None:
    number, now = call.about.number, call.service.clock()
    return await call.service.read(lambda r: r.page(number, after, limit, now))


async def matches(call: Call) -> Response:
    """Read a mailbox: a page of it, or as a stream if the caller accepts only that."""
    if "text/event-stream" in call.request.headers.get("accept", ""):
        return await _stream(call)
    after, limit, wait = call.query["after"], call.query["limit"], call.query["wait"]
    page = await _page(call, after, limit)
    if wait and page is not None and not page.entries:
        page = await _waited(call, after, limit, time.monotonic() + wait)
    if page is None:
        raise no_such_subscription()
    call.service.metrics.delivered(len(page.entries), "poll")
    found = [entry_dict(entry, call.about.id) for entry in page.entries]
    return json_response({"matches": found, "n_dropped": page.n_dropped})


async def _waited(call: Call, after: int, limit: int, deadline: float) -> Page | None:
    hub = call.service.hub
    hub.check_room()
    with hub.waiting(call.about.number) as changed:
        while True:
            changed.clear()
            page = await _page(call, after, limit)
            left = deadline - time.monotonic()
            if page is None or page.entries or left <= 0 or hub.is_stopping:
                return page
            await _changed(changed, _until(call, page, left))


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
    await call.service.write(lambda w: w.acknowledge(number, up_to))
    return Response(status_code=204)


async def dead_letters(call: Call) -> Response:
    """List the matches that the webhook did not accept."""
    number = call.about.number
    letters = await call.service.read(lambda r: r.dead_letters(number, _MOST_LETTERS))
    found = [dead_letter_dict(letter, call.about.id) for letter in letters]
    return json_response({"dead_letters": found})


async def retry_dead_letters(call: Call) -> Response:
    """Put dead letters back into the mailbox."""
    service, number = call.service, call.about.number
    now = service.clock()
    n_retried = await service.write(lambda w: w.retry_dead_letters(number, now))
    service.subscription_changed(number)
    service.webhooks.wake()
    return json_response({"n_retried": n_retried})


# -- streams --------------------------------------------------------------------------------------


def _event(name: str, value: Any, seq: int | None = None) -> str:
    number = "" if seq is None else f"id: {seq}\n"
    return f"{number}event: {name}\ndata: {compact(value)}\n\n"


_HEARTBEAT = ": heartbeat\n\n"


def _streaming(pieces: AsyncIterator[str]) -> Response:
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(pieces, media_type="text/event-stream", headers=headers)


async def _stream(call: Call) -> Response:
    given = call.request.headers.get("last-event-id", str(call.query["after"]))
    if not (given.isascii() and given.isdigit() and len(given) < 19):
        message = "Last-Event-ID must be the seq of a match"
        raise Problem(400, "bad_request", message, field="Last-Event-ID")
    call.service.hub.check_room()
    return _streaming(_entries(call, int(given)))


async def _entries(call: Call, after: int) -> AsyncIterator[str]:
    hub, heartbeat = call.service.hub, call.service.settings.heartbeat_seconds
    n_dropped = 0
    with hub.waiting(call.about.number) as changed:
        yield "retry: 1000\n\n"
        while not hub.is_stopping:
            changed.clear()
            page = await _page(call, after, _ENTRIES_AT_ONCE)
            if page is None:
                yield _event("end", {"reason": "unsubscribed or expired"})
                return
            if page.n_dropped > n_dropped:
                n_dropped = page.n_dropped
                yield _event("dropped", {"n_dropped": n_dropped})
            for entry in page.entries:
                name = "match" if entry.digest_count is None else "digest"
                yield _event(name, entry_dict(entry, call.about.id), entry.seq)
            if page.entries:
                after = page.entries[-1].seq
                call.service.metrics.delivered(len(page.entries), "stream")
            elif not await _changed(changed, _until(call, page, heartbeat)):
                yield _HEARTBEAT


async def live(call: Call) -> Response:
    """Follow the matches of the tenant as they happen."""
    call.service.hub.check_room()
    return _streaming(_live(call))


async def _live(call: Call) -> AsyncIterator[str]:
    hub = call.service.hub
    with hub.watching(call.tenant) as watcher:
        yield "retry: 1000\n\n"
        while not hub.is_stopping:
            items, n_dropped = watcher.take()
            for item in items:
                yield _event("match", item)
            if n_dropped:
                yield _event("dropped", {"n_dropped": n_dropped})
            if not items and not await _changed(
                watcher.changed, call.service.settings.heartbeat_seconds
            ):
                yield _HEARTBEAT
