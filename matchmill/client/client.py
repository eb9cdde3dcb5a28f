"""`Client`: every call of the service as a method."""

from __future__ import annotations

import datetime as dt
import ssl
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

from matchmill.client import publishing, receiving
from matchmill.client import responses as answers
from matchmill.client.publishing import AnyEvent
from matchmill.client.receiving import Received
from matchmill.client.requests import AnyExpression, batches, compact, event_text, expression_text
from matchmill.client.responses import (
    Backtest,
    Checked,
    DeadLetter,
    Dropped,
    Explained,
    LiveMatch,
    Published,
    PublishReport,
    Rejected,
    Subscribed,
    Subscription,
)
from matchmill.client.streams import LineStream, ServerEvent, follow
from matchmill.client.transport import Request, Transport
from matchmill.errors import InputError, ServiceError

__all__ = ["Client"]

_Many: TypeAlias = list[Subscribed | Rejected]  # inside of the class, `list` is a method
_Letters: TypeAlias = list[DeadLetter]
_Ids: TypeAlias = list[str]

_PAGE = 500
_EVENTS_AT_ONCE = 500
_SILENCE_SECONDS = 60.0  # a stream that says nothing for so long is broken
_MARGIN_SECONDS = 10.0  # for an answer, beyond what the service was asked to wait


class Client:
    """A service, by its address. Threads may share one.

    `key` is an API key; calls about one subscription take its ticket. A call waits `timeout`
    seconds for an answer, and is tried `retries` times more wherever that is safe.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = 30.0,
        retries: int = 5,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._key = None if key is None else _secret("key", key)
        self._transport = Transport(url, timeout=timeout, retries=retries, context=context)

    def __repr__(self) -> str:
        return f"Client({self._transport.url!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that are kept; another call would open new ones."""
        self._transport.close()

    # -- subscriptions ----------------------------------------------------------------------------

    def subscribe(
        self,
        expression: AnyExpression,
        *,
        id: str | None = None,
        valid_seconds: int | None = None,
        webhook: str | None = None,
        max_per_minute: int | None = None,
    ) -> Subscribed:
        """Subscribe. Keep the ticket: it is needed to read matches, to renew and to cancel."""
        text = expression_text(expression)
        body = _subscription(id, text, valid_seconds, webhook, max_per_minute)
        request = self._request("POST", "/v1/subscriptions", body)
        request = request._replace(is_repeatable=False, expression=text)
        return answers.read_subscribed(self._transport.ask(request))

    def subscribe_many(
        self,
        subscriptions: Mapping[str, AnyExpression] | Iterable[tuple[str | None, AnyExpression]],
        *,
        valid_seconds: int | None = None,
        max_per_minute: int | None = None,
    ) -> _Many:
        """Subscribe many, some at a time. What became of each stands at its place.

        If the service fails after it took some, those keep their tickets, and the rest is
        rejected with the error.
        """
        pairs = subscriptions.items() if isinstance(subscriptions, Mapping) else subscriptions
        given = [(one, expression_text(expression)) for one, expression in pairs]
        bodies = (
            _subscription(one, text, valid_seconds, None, max_per_minute) for one, text in given
        )
        results: _Many = []
        for batch in batches(bodies, lambda body: len(body.encode())):
            body = f'{{"subscriptions":[{",".join(batch)}]}}'
            request = self._request("POST", "/v1/subscriptions/batch", body)
            try:
                told = self._transport.ask(request._replace(is_repeatable=False))
            except ServiceError as error:
                if not any(isinstance(result, Subscribed) for result in results):
                    raise
                rest = enumerate(given[len(results) :], len(results))
                return results + [Rejected(row, one, error) for row, (one, _) in rest]
            for result in told["results"]:
                row = len(results)
                if "error" in result:
                    why = answers.error_of(result["error"], None, given[row][1])
                    results.append(Rejected(row, result.get("id"), why))
                else:
                    results.append(answers.read_subscribed(result))
        return results

    def get(self, id: str, ticket: str | None = None) -> Subscription:
        """One subscription, by the key or by its ticket."""
        return answers.read_subscription(self._ask("GET", _path(id), ticket=ticket))

    def list(self, *, after: str = "") -> Iterator[Subscription]:
        """All subscriptions of the tenant by id, page by page."""
        following: str | None = after
        while following is not None:
            query = urlencode({"limit": _PAGE} | ({"after": following} if following else {}))
            page = self._ask("GET", f"/v1/subscriptions?{query}")
            yield from map(answers.read_subscription, page["subscriptions"])
            following = page.get("next")

    def renew(self, id: str, ticket: str, valid_seconds: int | None = None) -> dt.datetime:
        """Have a subscription last longer, from now on; returns until when."""
        body = compact(_given(valid_seconds=valid_seconds))
        return answers.moment(self._ask("POST", _path(id, "renew"), body, ticket)["expires_at"])

    def unsubscribe(self, id: str, ticket: str | None = None) -> None:
        """Cancel a subscription, by its ticket or by a key with the scope admin."""
        request = self._request("DELETE", _path(id), None, ticket)
        self._transport.ask(request._replace(is_repeatable=False))

    # -- events -----------------------------------------------------------------------------------

    def publish(self, event: Mapping[str, Any], *, event_id: str | None = None) -> Published:
        """Publish an event. It has an id, so that trying again never delivers it twice."""
        body = publishing.event_body(event_id or publishing.new_event_id(), event)
        told = self._ask("POST", "/v1/events", body)
        return Published(told["event_id"], told["matched"])

    def publish_many(self, events: Iterable[AnyEvent]) -> PublishReport:
        """Publish all events, some hundred at a time; bad ones are set aside with the reason.

        An event is a dict, or a pair of its id and a dict.
        """

        def send(bodies: Sequence[str]) -> Sequence[dict[str, Any]]:
            body = f'{{"events":[{",".join(bodies)}]}}'
            results: Sequence[dict[str, Any]] = self._ask("POST", "/v1/events/batch", body)[
                "results"
            ]
            return results

        return publishing.report(publishing.published(send, events, _EVENTS_AT_ONCE))

    def publish_stream(
        self, events: Iterable[AnyEvent], *, at_once: int = _EVENTS_AT_ONCE
    ) -> Iterator[Published | Rejected]:
        """Publish events over one request, as they come; yields what became of each.

        Nothing is sent until the results are read. Events go in groups of `at_once`: 1 is the
        quickest for events that come slowly.
        """
        request = self._request("POST", "/v1/events/stream", None)
        headers = dict(request.headers) | {
            "Content-Type": "application/x-ndjson",
            "Transfer-Encoding": "chunked",
        }
        stream = LineStream(self._transport, request._replace(headers=headers))
        try:
            yield from publishing.published(stream.send, events, at_once)
        finally:
            stream.close()

    # -- questions --------------------------------------------------------------------------------

    def test(self, event: Mapping[str, Any]) -> _Ids:
        """The subscriptions that an event satisfies; nothing is stored or delivered."""
        matches: _Ids = self._ask("POST", "/v1/test", f'{{"event":{event_text(event)}}}')["matches"]
        return matches

    def explain(
        self,
        event: Mapping[str, Any],
        *,
        id: str | None = None,
        expression: AnyExpression | None = None,
    ) -> Explained:
        """Why an event satisfies a subscription or an expression, or what is missing."""
        text = None if expression is None else expression_text(expression)
        rest = compact(_given(id=id, expression=text)).removeprefix("{").removesuffix("}")
        body = f'{{"event":{event_text(event)}{"," if rest else ""}{rest}}}'
        request = self._request("POST", "/v1/explain", body)
        told = self._transport.ask(request._replace(expression=text))
        return Explained(told["matches"], told["tree"], told["text"])

    def check(self, expression: AnyExpression) -> Checked:
        """Whether an expression can be read, and how it reads; if not, where the mistake is."""
        text = expression_text(expression)
        told = self._ask("POST", "/v1/check", compact({"expression": text}))
        error = None if told["ok"] else answers.error_of(told["error"], None, text)
        return Checked(told["ok"], told.get("normalized"), error)

    def backtest(self, expression: AnyExpression, last: int = 1_000) -> Backtest:
        """How many of the latest events an expression would have matched."""
        text = expression_text(expression)
        body = compact({"expression": text, "last": last})
        request = self._request("POST", "/v1/backtest", body)
        told = self._transport.ask(request._replace(expression=text))
        return Backtest(told["events"], told["matched"], told["sample"])

    def stats(self) -> dict[str, Any]:
        """Rates, latencies and the most expensive subscriptions, as the service has them."""
        figures: dict[str, Any] = self._ask("GET", "/v1/stats")
        return figures

    # -- matches ----------------------------------------------------------------------------------

    def matches(
        self, id: str, ticket: str, *, after: int = 0, wait: int = 30, acknowledge_every: int = 1
    ) -> Iterator[Received]:
        """The matches in a mailbox, and those to come.

        A match counts as processed when the next one is asked for; then it is acknowledged, and
        never sent again. With `acknowledge_every=100` that is done for a hundred at a time, with 0
        only by `acknowledge`. So whoever stops, or crashes, gets the last ones once more. With
        `wait=0` it ends with the last match that is there.
        """

        def poll(seq: int) -> dict[str, Any]:
            query = urlencode({"after": seq, "limit": _PAGE, "wait": wait})
            request = self._request("GET", f"{_path(id, 'matches')}?{query}", None, ticket)
            timeout = max(self._transport.timeout, wait + _MARGIN_SECONDS)
            page: dict[str, Any] = self._transport.ask(request._replace(timeout=timeout))
            return page

        def acknowledge(seq: int) -> None:
            self.acknowledge(id, ticket, seq)

        return receiving.polled(poll, acknowledge, after, acknowledge_every, is_endless=wait > 0)

    def acknowledge(self, id: str, ticket: str, up_to: int) -> None:
        """Matches up to a seq have arrived: they are never sent again."""
        self._ask("POST", _path(id, "ack"), compact({"up_to": up_to}), ticket)

    def stream(self, id: str, ticket: str, *, after: int = 0) -> Iterator[Received]:
        """The same by server-sent events, opened again when it breaks; nothing is acknowledged.

        It ends when the subscription does.
        """
        return receiving.streamed(self._follow(_path(id, "stream"), ticket, str(after or "")))

    def live(self) -> Iterator[LiveMatch | Dropped]:
        """Matches of all subscriptions of the tenant from now on; none is kept for later."""
        return receiving.live(self._follow("/v1/live", None, ""))

    def dead_letters(self, id: str, ticket: str) -> _Letters:
        """Matches that the webhook would not take."""
        told = self._ask("GET", _path(id, "dead-letters"), None, ticket)["dead_letters"]
        return [
            DeadLetter(
                answers.read_entry(one),
                one["tries"],
                one["reason"],
                answers.moment(one["failed_at"]),
            )
            for one in told
        ]

    def retry_dead_letters(self, id: str, ticket: str) -> int:
        """Put dead letters back into the mailbox; returns how many."""
        retried: int = self._ask("POST", _path(id, "dead-letters/retry"), None, ticket)["retried"]
        return retried

    # -- requests ---------------------------------------------------------------------------------

    def _follow(self, path: str, ticket: str | None, last_id: str) -> Iterator[ServerEvent]:
        request = self._request("GET", path, None, ticket)
        timeout = max(self._transport.timeout, _SILENCE_SECONDS)
        return follow(self._transport, request._replace(timeout=timeout), last_id)

    def _ask(
        self, method: str, path: str, body: str | None = None, ticket: str | None = None
    ) -> Any:
        return self._transport.ask(self._request(method, path, body, ticket))

    def _request(
        self, method: str, path: str, body: str | None, ticket: str | None = None
    ) -> Request:
        headers = {"User-Agent": "matchmill", "Accept-Encoding": "identity"}
        if ticket is not None:
            headers["Matchmill-Ticket"] = _secret("ticket", ticket)
        elif self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        if body is None:
            return Request(method, path, headers)
        headers["Content-Type"] = "application/json"
        return Request(method, path, headers, _encoded(body))


def _encoded(body: str) -> bytes:
    try:
        return body.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"a text holds half of a character: {error.object[error.start]!r}"
        ) from None


def _secret(name: str, text: str) -> str:
    if not (text.isascii() and text.isprintable() and text and " " not in text):
        raise InputError(f"the {name} is empty, or has spaces or other characters that none has")
    return text


def _path(id: str, rest: str = "") -> str:
    if not isinstance(id, str) or not id:
        raise InputError(f"the id of a subscription is a text, not {id!r}")
    return f"/v1/subscriptions/{quote(id, safe='')}" + (f"/{rest}" if rest else "")


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _subscription(
    id: str | None,
    expression: str,
    valid_seconds: int | None,
    webhook: str | None,
    max_per_minute: int | None,
) -> str:
    body = _given(id=id, expression=expression, valid_seconds=valid_seconds)
    if webhook is not None:
        body["webhook"] = {"url": webhook}
    return compact(body | _given(max_per_minute=max_per_minute))
