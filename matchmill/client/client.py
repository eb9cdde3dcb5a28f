"""`Client`: every call of a service as a method, with the names of `Engine`."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from matchmill.client import calls, publishing, receiving, subscribing
from matchmill.client.calls import Call
from matchmill.client.publishing import Batching
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
from matchmill.client.transport import Transport
from matchmill.errors import InputError, MatchmillError
from matchmill.io.progress import Progress
from matchmill.language.dialects.registry import MATCHMILL
from matchmill.language.explanation import Explanation

__all__ = ["Client", "url_and_key"]

T = TypeVar("T")
EVENTS_AT_ONCE = 500


def url_and_key(url: str | None, key: str | None) -> tuple[str, str | None]:
    """Return the address and the key, by default those of the environment."""
    found = url if url is not None else os.environ.get("MATCHMILL_URL")
    if not found:
        raise InputError(
            "there is no address of a service; give it as url, or set MATCHMILL_URL",
            hint="for example http://127.0.0.1:8080",
        )
    return found, key if key is not None else os.environ.get("MATCHMILL_KEY") or None


class Client:
    """Use a service as if it were an engine. Threads may share a client.

    Parameters
    ----------
    url
        The address of the service; by default the variable MATCHMILL_URL.
    key
        An API key of a tenant; by default the variable MATCHMILL_KEY.
    timeout
        Seconds to wait for a response.
    retries
        How often a call is repeated where that is safe: nothing was sent, the service did
        nothing, or doing it twice is the same as doing it once.
    ssl_context
        Which certificates to trust; by default those of the system.

    Examples
    --------
    >>> import matchmill as mm
    >>> with mm.Client("http://127.0.0.1:8080", key="…") as client:  # doctest: +SKIP
    ...     made = client.subscribe("u42", "origin = 'JFK' and dep_delay > 60")
    ...     client.publish({"origin": "JFK", "dep_delay": 75})
    ...     for match in client.receive("u42", ticket=made.ticket, wait=0):
    ...         print(match.event)
    Published(event_id='…', n_matches=1)
    {'origin': 'JFK', 'dep_delay': 75}
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
        self._transport = Transport(
            url, key=key, timeout=timeout, retries=retries, ssl_context=ssl_context
        )

    def __repr__(self) -> str:
        return f"<matchmill.Client: {self._transport.url}>"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; leaving a `with` block does it, too.

        Examples
        --------
        >>> client.close()  # doctest: +SKIP
        """
        self._transport.close()

    # -- subscriptions ----------------------------------------------------------------------------

    def subscribe(
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
        """Store a subscription. Keep the ticket of the result: it is shown only once.

        Parameters
        ----------
        id
            The id of the subscription; None to have the service choose one.
        expression
            Text, an `Expression`, or a JSON pattern as a dict.
        dialect
            The language of text and patterns, as for `Engine.subscribe`.
        ttl_seconds
            After how many seconds it expires; by default a setting of the service.
        webhook
            A URL to which matches are sent.
        max_per_minute
            The most matches per minute; more become a digest.
        replace
            Whether to replace a subscription with this id; otherwise that is an error.

        Returns
        -------
        Subscription
            With the ticket that reads its matches, renews it and ends it.

        Raises
        ------
        ExpressionError
            If the expression cannot be read.
        DuplicateIdError
            If there is a subscription with this id, and `replace` is False.

        Examples
        --------
        >>> made = client.subscribe("u42", "price < 20", ttl_seconds=3600)  # doctest: +SKIP
        >>> made.ticket  # doctest: +SKIP
        '…'
        """
        options = {
            "dialect": dialect,
            "ttl_seconds": ttl_seconds,
            "webhook": webhook,
            "max_per_minute": max_per_minute,
        }
        return self._run(calls.subscribe(id, expression, replace, options))

    def subscribe_many(
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
        """Store many subscriptions, some hundred per request; bad ones are rejected.

        If the service fails after it accepted some, the rest is rejected with the error.

        Parameters
        ----------
        source
            As for `Engine.subscribe_many`: a path, an Arrow table, a pandas or polars frame, a
            mapping of ids to expressions, or an iterable of (id, expression) pairs or mappings.
        subscription_id, expression
            The names of the columns that have them.
        dialect, ttl_seconds, max_per_minute
            As for `subscribe`, for all of them.
        replace
            Whether to replace subscriptions with the same ids; otherwise they are rejected.
        strict
            Whether to raise the first problem; then no subscription of this call is kept.
        progress
            True to show it, or a function that is called with the numbers done and in all.

        Returns
        -------
        SubscribeReport
            What was accepted, with tickets in `subscriptions`, and what was rejected and why.

        Examples
        --------
        >>> report = client.subscribe_many("alerts.csv")  # doctest: +SKIP
        >>> {one.id: one.ticket for one in report.subscriptions}  # doctest: +SKIP
        {'u1': '…', 'u2': '…'}
        """
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
                    value = self._run(call)
                except MatchmillError as error:
                    call = flow.throw(error)
                else:
                    call = flow.send(value)
        except StopIteration as stop:
            report: SubscribeReport = stop.value
            return report

    def get(self, id: str, *, ticket: str | None = None) -> Subscription:
        """Read one subscription.

        Parameters
        ----------
        id
            Its id.
        ticket
            Its ticket; by default the key is sent.

        Raises
        ------
        UnknownIdError
            If there is none, or the ticket is not its own.

        Examples
        --------
        >>> client.get("u42").n_pending  # doctest: +SKIP
        3
        """
        return self._run(calls.get(id, ticket))

    def subscriptions(self, *, attribute: str | None = None) -> Iterator[Subscription]:
        """Yield all subscriptions of the tenant by id, page by page.

        Parameters
        ----------
        attribute
            Only those whose expression mentions this attribute.

        Examples
        --------
        >>> [one.id for one in client.subscriptions(attribute="price")]  # doctest: +SKIP
        ['u42']
        """
        mentions = subscribing.mentions(attribute)
        cursor: str | None = None
        while True:
            page = self._run(calls.list_page(cursor))
            yield from filter(mentions, page.subscriptions)
            cursor = page.next_cursor
            if cursor is None:
                return

    def renew(
        self, id: str, *, ttl_seconds: int | None = None, ticket: str | None = None
    ) -> Subscription:
        """Have a subscription last longer, from now on.

        Parameters
        ----------
        id
            Its id.
        ttl_seconds
            After how many seconds it expires; by default a setting of the service.
        ticket
            Its ticket; without one the key must have the scope admin.

        Examples
        --------
        >>> client.renew("u42", ttl_seconds=3600, ticket=ticket).expires_at  # doctest: +SKIP
        datetime.datetime(…)
        """
        return self._run(calls.renew(id, ticket, ttl_seconds))

    def update(
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
        """Change what is given of a subscription, and nothing else.

        Parameters
        ----------
        id
            Its id.
        expression, dialect, ttl_seconds, webhook, max_per_minute
            As for `subscribe`; None leaves it as it is.
        ticket
            Its ticket; without one the key must have the scope admin.

        Raises
        ------
        UnknownIdError
            If there is none.

        Examples
        --------
        >>> client.update("u42", expression="price < 15", ticket=ticket)  # doctest: +SKIP
        <Subscription 'u42': price < 15, expires 2026-12-18 10:00:00>
        """
        changes = {
            "expression": expression,
            "dialect": dialect,
            "ttl_seconds": ttl_seconds,
            "webhook": webhook,
            "max_per_minute": max_per_minute,
        }
        return self._run(calls.update(id, ticket, changes))

    def unsubscribe(self, id: str, *, ticket: str | None = None) -> None:
        """End a subscription; its mailbox is deleted, too.

        Parameters
        ----------
        id
            Its id.
        ticket
            Its ticket; without one the key must have the scope admin.

        Raises
        ------
        UnknownIdError
            If there is none.

        Examples
        --------
        >>> client.unsubscribe("u42", ticket=ticket)  # doctest: +SKIP
        """
        self._run(calls.unsubscribe(id, ticket))

    # -- events -----------------------------------------------------------------------------------

    def publish(self, event: Mapping[str, Any], *, event_id: str | None = None) -> Published:
        """Publish an event: those whose subscriptions it satisfies receive it.

        Parameters
        ----------
        event
            A mapping of attributes to values. Dates and times are sent as text in ISO form.
        event_id
            An id; the service publishes an event with the same id only once. By default a new
            one is made, so that a repeated call does not deliver twice.

        Raises
        ------
        EventError
            If the event has a value that no event can have.

        Examples
        --------
        >>> client.publish({"price": 7}, event_id="e1")  # doctest: +SKIP
        Published(event_id='e1', n_matches=2)
        """
        return self._run(calls.publish(event, event_id))

    def publish_many(self, events: Any, *, event_id: str | None = None) -> PublishReport:
        """Publish many events, some hundred per request; bad ones are rejected.

        Parameters
        ----------
        events
            A path, an Arrow table, a pandas or polars frame, or an iterable of mappings.
        event_id
            The name of the attribute that has the id of an event; it stays an attribute.

        Returns
        -------
        PublishReport
            How many were published and matched, and which were rejected and why.

        Examples
        --------
        >>> client.publish_many("flights.csv", event_id="flight")  # doctest: +SKIP
        <PublishReport: 1,000 published, 0 rejected, 37 matches>
        """
        total = publishing.NOTHING
        try:
            for report in self.publish_batches(events, event_id=event_id):
                total = publishing.added(total, report)
        except MatchmillError as error:
            error.add_note(f"{total.n_published:,} events had been published before")
            raise
        return total

    def publish_batches(
        self, events: Any, *, event_id: str | None = None, batch_size: int = EVENTS_AT_ONCE
    ) -> Iterator[PublishReport]:
        """Publish events as they come, and yield a report per batch.

        Nothing is sent until the reports are read.

        Parameters
        ----------
        events, event_id
            As for `publish_many`.
        batch_size
            The most events per request; 1 is right for events that come slowly.

        Examples
        --------
        >>> for report in client.publish_batches(sensor(), batch_size=1):  # doctest: +SKIP
        ...     print(report)
        1 published, 0 rejected, 2 matches
        """
        for batch in Batching(event_id, batch_size).batches(events):
            results = self._run(calls.publish_batch(batch.bodies)) if batch.sent else []
            yield publishing.read_batch(batch, results)

    def match(self, event: Mapping[str, Any]) -> set[str]:
        """Find the subscriptions that an event satisfies; nothing is stored or delivered.

        Parameters
        ----------
        event
            As for `publish`.

        Examples
        --------
        >>> client.match({"price": 7})  # doctest: +SKIP
        {'u42'}
        """
        return self._run(calls.match(event))

    def explain(
        self,
        id: str | None,
        event: Mapping[str, Any],
        *,
        expression: AnyExpression | None = None,
        dialect: str = MATCHMILL,
    ) -> Explanation:
        """Explain why an event satisfies a subscription, or what is missing.

        Parameters
        ----------
        id
            The id of the subscription; None with `expression`.
        event
            As for `publish`.
        expression, dialect
            An expression in place of a subscription, and its language.

        Returns
        -------
        Explanation
            The tree that `Engine.explain` returns.

        Examples
        --------
        >>> print(client.explain("u42", {"price": 25}))  # doctest: +SKIP
        ✗ price < 20: price is 25, needs < 20 (5 too much)
        """
        return self._run(calls.explain(id, event, expression, dialect))

    def check(
        self,
        expression: AnyExpression,
        events: Iterable[Mapping[str, Any]] | None = None,
        *,
        dialect: str = MATCHMILL,
    ) -> CheckReport:
        """Check whether an expression can be stored, how it is understood, and whether it fits.

        Parameters
        ----------
        expression, dialect
            As for `subscribe`.
        events
            Events to compare it with; by default the latest that were published, if the key may
            read them. [What is found](guides/CHECKING.md).

        Examples
        --------
        >>> client.check("price<20").normalized  # doctest: +SKIP
        'price < 20'
        """
        return self._run(calls.check(expression, events, dialect))

    def backtest(
        self, expression: AnyExpression, last: int = 1_000, *, dialect: str = MATCHMILL
    ) -> Backtest:
        """Count how many of the latest events an expression would have matched.

        Parameters
        ----------
        expression, dialect
            As for `subscribe`.
        last
            How many of the events that the service keeps to try.

        Examples
        --------
        >>> client.backtest("price < 20")  # doctest: +SKIP
        <Backtest: 37 of 1,000 events matched>
        """
        return self._run(calls.backtest(expression, last, dialect))

    def stats(self) -> dict[str, Any]:
        """Return counts, rates, times and the most expensive subscriptions of the tenant.

        Examples
        --------
        >>> client.stats()["n_subscriptions"]  # doctest: +SKIP
        3
        """
        return self._run(calls.stats())

    # -- matches ----------------------------------------------------------------------------------

    def receive(
        self,
        id: str,
        *,
        ticket: str,
        after: int = 0,
        wait: int = 30,
        acknowledge_every: int = 1,
    ) -> Iterator[Received]:
        """Yield the matches of a subscription, and those to come.

        A match counts as processed when the next one is asked for. Then it is acknowledged, and
        never sent again. A program that stops or crashes gets the last ones again.

        Parameters
        ----------
        id, ticket
            The subscription and its ticket.
        after
            The `seq` after which to begin; 0 for the oldest match.
        wait
            Seconds to wait for a match per request; with 0 the iterator ends with the last
            match that is there.
        acknowledge_every
            How many matches to acknowledge at a time; 0 leaves it to `acknowledge`.

        Yields
        ------
        Match, Digest or Dropped
            A `Digest` stands for matches beyond the most per minute, `Dropped` for matches
            that were lost because the mailbox was full.

        Examples
        --------
        >>> for match in client.receive("u42", ticket=ticket):  # doctest: +SKIP
        ...     print(match.event)
        {'price': 7}
        """
        reader = MailboxReader(after, acknowledge_every)
        try:
            while True:
                page = self._run(
                    calls.mailbox_page(id, ticket, reader.after, wait, self._transport.timeout)
                )
                for item in reader.items(page):
                    yield item
                    if reader.processed(item):
                        self._acknowledge(id, ticket, reader)
                if reader.is_due:  # before the next wait, which may be long
                    self._acknowledge(id, ticket, reader)
                if not page.entries and wait == 0:
                    return
        except GeneratorExit:
            if reader.is_due:
                self._acknowledge(id, ticket, reader)
            raise

    def _acknowledge(self, id: str, ticket: str, reader: MailboxReader) -> None:
        self.acknowledge(id, reader.after, ticket=ticket)
        reader.acknowledged()

    def acknowledge(self, id: str, up_to: int, *, ticket: str) -> None:
        """Acknowledge the matches up to a `seq`: they are never sent again.

        Parameters
        ----------
        id, ticket
            The subscription and its ticket.
        up_to
            The `seq` of the last match that has arrived.

        Examples
        --------
        >>> client.acknowledge("u42", match.seq, ticket=ticket)  # doctest: +SKIP
        """
        self._run(calls.acknowledge(id, ticket, up_to))

    def live(self) -> Iterator[Match | Dropped]:
        """Yield the matches of all subscriptions of the tenant from now on; none is kept.

        Examples
        --------
        >>> for match in client.live():  # doctest: +SKIP
        ...     print(match.subscription_id, match.event)
        u42 {'price': 7}
        """
        for event in self._transport.events(calls.live()):
            yield from receiving.live_items(event)

    def dead_letters(self, id: str, *, ticket: str) -> list[DeadLetter]:
        """Return the matches that the webhook of a subscription did not take.

        Parameters
        ----------
        id, ticket
            The subscription and its ticket.

        Examples
        --------
        >>> client.dead_letters("u42", ticket=ticket)  # doctest: +SKIP
        []
        """
        return self._run(calls.dead_letters(id, ticket))

    def retry_dead_letters(self, id: str, *, ticket: str) -> int:
        """Put dead letters back into the mailbox, and return how many there were.

        Parameters
        ----------
        id, ticket
            The subscription and its ticket.

        Examples
        --------
        >>> client.retry_dead_letters("u42", ticket=ticket)  # doctest: +SKIP
        2
        """
        return self._run(calls.retry_dead_letters(id, ticket))

    def _run(self, call: Call[T]) -> T:
        return call.result(self._transport.send(call.request))
