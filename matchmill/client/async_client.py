"""`AsyncClient`: the methods of `Client`, awaited; its iterators are asynchronous."""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping
from typing import Any, TypeVar

from matchmill.client import calls, publishing, receiving, subscribing
from matchmill.client.calls import Call
from matchmill.client.client import EVENTS_AT_ONCE, Client, url_and_key
from matchmill.client.publishing import Batch, Batching
from matchmill.client.receiving import MailboxReader
from matchmill.client.requests import AnyExpression
from matchmill.client.responses import (
    Backtest,
    CheckReport,
    DeadLetter,
    Dropped,
    Match,
    Published,
    PublishReport,
    Received,
    SubscribeReport,
    Subscription,
)
from matchmill.client.transport import AsyncTransport
from matchmill.errors import MatchmillError
from matchmill.io.progress import Progress
from matchmill.language.dialects.registry import MATCHMILL
from matchmill.language.explanation import Explanation

__all__ = ["AsyncClient"]

T = TypeVar("T")
Method = TypeVar("Method", bound=Callable[..., Any])


def _as(method: Callable[..., Any]) -> Callable[[Method], Method]:
    """Give a method the documentation of the client's, with `await` in its examples."""

    def documented(own: Method) -> Method:
        text = method.__doc__ or ""
        text = re.sub(r"(>>> |\.\.\. +)for (.* in client\.)", r"\1async for \2", text)
        own.__doc__ = re.sub(r"(?<! in )client\.(\w+\()", r"await client.\1", text)
        return own

    return documented


class AsyncClient:
    """Use a service from asyncio, with the names of `Client`.

    Parameters
    ----------
    url, key, timeout, retries, ssl_context
        As for `Client`.

    Examples
    --------
    >>> import matchmill as mm
    >>> async with mm.AsyncClient("http://127.0.0.1:8080", key="…") as client:  # doctest: +SKIP
    ...     made = await client.subscribe("u42", "price < 20")
    ...     await client.publish({"price": 7})
    ...     async for match in client.receive("u42", ticket=made.ticket, wait=0):
    ...         print(match.event)
    {'price': 7}
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        timeout: float = 30.0,
        retries: int = 5,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        url, key = url_and_key(url, key)
        self._transport = AsyncTransport(
            url, key=key, timeout=timeout, retries=retries, ssl_context=ssl_context
        )

    def __repr__(self) -> str:
        return f"<matchmill.AsyncClient: {self._transport.url}>"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @_as(Client.close)
    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    # -- subscriptions ----------------------------------------------------------------------------

    @_as(Client.subscribe)
    async def subscribe(
        self,
        id: str | None,
        expression: AnyExpression,
        *,
        dialect: str = MATCHMILL,
        ttl_seconds: int | None = None,
        webhook: str | None = None,
        max_per_minute: int | None = None,
        replace: bool = False,
    ) -> Subscription:
        """Store a subscription."""
        options = {
            "dialect": dialect,
            "ttl_seconds": ttl_seconds,
            "webhook": webhook,
            "max_per_minute": max_per_minute,
        }
        return await self._run(calls.subscribe(id, expression, replace, options))

    @_as(Client.subscribe_many)
    async def subscribe_many(
        self,
        source: Any,
        *,
        subscription_id: str = "subscription_id",
        expression: str = "expression",
        dialect: str = MATCHMILL,
        ttl_seconds: int | None = None,
        max_per_minute: int | None = None,
        replace: bool = False,
        strict: bool = False,
        progress: Progress = False,
    ) -> SubscribeReport:
        """Store many subscriptions; bad ones are rejected."""
        options = {
            "dialect": dialect,
            "ttl_seconds": ttl_seconds,
            "max_per_minute": max_per_minute,
        }
        asked = subscribing.Many(source, subscription_id, expression, replace, strict, options)
        flow = subscribing.subscribing(asked, progress)
        try:
            call = next(flow)
            while True:
                try:
                    value = await self._run(call)
                except MatchmillError as error:
                    call = flow.throw(error)
                else:
                    call = flow.send(value)
        except StopIteration as stop:
            report: SubscribeReport = stop.value
            return report

    @_as(Client.get)
    async def get(self, id: str, *, ticket: str | None = None) -> Subscription:
        """Read one subscription."""
        return await self._run(calls.get(id, ticket))

    @_as(Client.subscriptions)
    async def subscriptions(self, *, attribute: str | None = None) -> AsyncIterator[Subscription]:
        """Yield all subscriptions of the tenant."""
        mentions = subscribing.mentions(attribute)
        cursor: str | None = None
        while True:
            page = await self._run(calls.list_page(cursor))
            for subscription in filter(mentions, page.subscriptions):
                yield subscription
            cursor = page.next_cursor
            if cursor is None:
                return

    @_as(Client.renew)
    async def renew(
        self, id: str, *, ttl_seconds: int | None = None, ticket: str | None = None
    ) -> Subscription:
        """Have a subscription last longer, from now on."""
        return await self._run(calls.renew(id, ticket, ttl_seconds))

    @_as(Client.update)
    async def update(
        self,
        id: str,
        *,
        expression: AnyExpression | None = None,
        dialect: str = MATCHMILL,
        ttl_seconds: int | None = None,
        webhook: str | None = None,
        max_per_minute: int | None = None,
        ticket: str | None = None,
    ) -> Subscription:
        """Change what is given of a subscription."""
        changes = {
            "expression": expression,
            "dialect": dialect,
            "ttl_seconds": ttl_seconds,
            "webhook": webhook,
            "max_per_minute": max_per_minute,
        }
        return await self._run(calls.update(id, ticket, changes))

    @_as(Client.unsubscribe)
    async def unsubscribe(self, id: str, *, ticket: str | None = None) -> None:
        """End a subscription."""
        await self._run(calls.unsubscribe(id, ticket))

    # -- events -----------------------------------------------------------------------------------

    @_as(Client.publish)
    async def publish(self, event: Mapping[str, Any], *, event_id: str | None = None) -> Published:
        """Publish an event."""
        return await self._run(calls.publish(event, event_id))

    @_as(Client.publish_many)
    async def publish_many(self, events: Any, *, event_id: str | None = None) -> PublishReport:
        """Publish many events; bad ones are rejected."""
        total = publishing.NOTHING
        try:
            async for report in self.publish_batches(events, event_id=event_id):
                total = publishing.added(total, report)
        except MatchmillError as error:
            error.add_note(f"{total.n_published:,} events had been published before")
            raise
        return total

    @_as(Client.publish_batches)
    async def publish_batches(
        self, events: Any, *, event_id: str | None = None, batch_size: int = EVENTS_AT_ONCE
    ) -> AsyncIterator[PublishReport]:
        """Publish events as they come; an asynchronous iterable of mappings will do, too."""
        batching = Batching(event_id, batch_size)
        if isinstance(events, AsyncIterable):
            async for batch in batching.batches_of_stream(events):
                yield await self._publish_batch(batch)
        else:
            for batch in batching.batches(events):
                yield await self._publish_batch(batch)

    async def _publish_batch(self, batch: Batch) -> PublishReport:
        results = await self._run(calls.publish_batch(batch.bodies)) if batch.sent else []
        return publishing.read_batch(batch, results)

    @_as(Client.match)
    async def match(self, event: Mapping[str, Any]) -> set[str]:
        """Find the subscriptions that an event satisfies."""
        return await self._run(calls.match(event))

    @_as(Client.explain)
    async def explain(
        self,
        id: str | None,
        event: Mapping[str, Any],
        *,
        expression: AnyExpression | None = None,
        dialect: str = MATCHMILL,
    ) -> Explanation:
        """Explain why an event satisfies a subscription, or what is missing."""
        return await self._run(calls.explain(id, event, expression, dialect))

    @_as(Client.check)
    async def check(
        self,
        expression: AnyExpression,
        events: Iterable[Mapping[str, Any]] | None = None,
        *,
        dialect: str = MATCHMILL,
    ) -> CheckReport:
        """Check whether an expression can be stored, and whether it fits events."""
        return await self._run(calls.check(expression, events, dialect))

    @_as(Client.backtest)
    async def backtest(
        self, expression: AnyExpression, last: int = 1_000, *, dialect: str = MATCHMILL
    ) -> Backtest:
        """Count how many of the latest events an expression would have matched."""
        return await self._run(calls.backtest(expression, last, dialect))

    @_as(Client.stats)
    async def stats(self) -> dict[str, Any]:
        """Return the figures of the tenant."""
        return await self._run(calls.stats())

    # -- matches ----------------------------------------------------------------------------------

    @_as(Client.receive)
    async def receive(
        self,
        id: str,
        *,
        ticket: str,
        after: int = 0,
        wait: int = 30,
        acknowledge_every: int = 1,
    ) -> AsyncIterator[Received]:
        """Yield the matches of a subscription, and those to come."""
        reader = MailboxReader(after, acknowledge_every)
        try:
            while True:
                page = await self._run(
                    calls.mailbox_page(id, ticket, reader.after, wait, self._transport.timeout)
                )
                for item in reader.items(page):
                    yield item
                    if reader.processed(item):
                        await self._acknowledge(id, ticket, reader)
                if reader.is_due:
                    await self._acknowledge(id, ticket, reader)
                if not page.entries and wait == 0:
                    return
        except GeneratorExit:
            if reader.is_due:
                await self._acknowledge(id, ticket, reader)
            raise

    async def _acknowledge(self, id: str, ticket: str, reader: MailboxReader) -> None:
        await self.acknowledge(id, reader.after, ticket=ticket)
        reader.acknowledged()

    @_as(Client.acknowledge)
    async def acknowledge(self, id: str, up_to: int, *, ticket: str) -> None:
        """Acknowledge the matches up to a `seq`."""
        await self._run(calls.acknowledge(id, ticket, up_to))

    @_as(Client.live)
    async def live(self) -> AsyncIterator[Match | Dropped]:
        """Yield the matches of all subscriptions of the tenant from now on."""
        async for event in self._transport.events(calls.live()):
            for item in receiving.live_items(event):
                yield item

    @_as(Client.dead_letters)
    async def dead_letters(self, id: str, *, ticket: str) -> list[DeadLetter]:
        """Return the matches that a webhook did not take."""
        return await self._run(calls.dead_letters(id, ticket))

    @_as(Client.retry_dead_letters)
    async def retry_dead_letters(self, id: str, *, ticket: str) -> int:
        """Put dead letters back into the mailbox."""
        return await self._run(calls.retry_dead_letters(id, ticket))

    async def _run(self, call: Call[T]) -> T:
        return call.result(await self._transport.send(call.request))
