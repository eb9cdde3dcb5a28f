"""Every call of the service, once for both clients: what is sent, and how the result is read."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

from matchmill.client import responses as read
from matchmill.client.messages import Request, Response
from matchmill.client.problems import not_matchmill
from matchmill.client.requests import compact, event_body, event_text, expression_value
from matchmill.client.responses import (
    Backtest,
    CheckReport,
    DeadLetter,
    MailboxPage,
    Published,
    Subscription,
    SubscriptionPage,
)
from matchmill.errors import InputError
from matchmill.language.dialects.registry import MATCHMILL, check_dialect
from matchmill.language.explanation import Explanation

__all__ = [
    "Call",
    "acknowledge",
    "backtest",
    "check",
    "dead_letters",
    "explain",
    "get",
    "list_page",
    "live",
    "mailbox_page",
    "match",
    "publish",
    "publish_batch",
    "renew",
    "retry_dead_letters",
    "stats",
    "subscribe",
    "subscribe_batch",
    "subscription_body",
    "unsubscribe",
    "update",
]

T = TypeVar("T")

_PAGE = 500
_MARGIN_SECONDS = 10.0  # for a response, beyond what the service was asked to wait


class Call(NamedTuple, Generic[T]):
    """A request, and the function that reads the value of its response."""

    request: Request
    read: Callable[[Any], T]

    def result(self, response: Response) -> T:
        """Read the response; ServiceError if it has another form than matchmill's."""
        try:
            return self.read(response.json())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise not_matchmill(response, self.request) from error


# -- subscriptions --------------------------------------------------------------------------------


def subscription_body(id: str | None, expression: object, options: Mapping[str, Any]) -> str:
    """Write a subscription as the service reads it; options that are None are left out."""
    given = _in_dialect(expression, options)
    body = _given(subscription_id=id, expression=expression_value(expression), **given)
    if "webhook" in body:
        body["webhook"] = {"url": body["webhook"]}
    text = compact(body)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise InputError(f"a text of the subscription has half of a character: {half!r}") from None
    return text


def subscribe(
    id: str | None, expression: object, replace: bool, options: Mapping[str, Any]
) -> Call[Subscription]:
    """Store one subscription; with `replace` a repeated call does no harm."""
    text = _text_of(expression)
    if replace:
        if id is None:
            raise InputError("replace=True needs the id of the subscription")
        body = subscription_body(None, expression, options)
        ticket = secrets.token_urlsafe(32)  # ours, so that a repeated request finds its own
        request = Request("PUT", _path(id), body, new_ticket=ticket, expression=text)
    else:
        body = subscription_body(id, expression, options)
        request = Request("POST", "/v1/subscriptions", body, is_repeatable=False, expression=text)
    return Call(request, read.subscription)


def subscribe_batch(bodies: list[str]) -> Call[list[Any]]:
    """Store several; the results stand in the order of the bodies."""
    body = f"[{','.join(bodies)}]"
    request = Request("POST", "/v1/subscriptions", body, is_repeatable=False)
    return Call(request, read.results)


def get(id: str, ticket: str | None) -> Call[Subscription]:
    """Read one subscription."""
    return Call(Request("GET", _path(id), ticket=ticket), read.subscription)


def list_page(cursor: str | None) -> Call[SubscriptionPage]:
    """Read one page of all subscriptions."""
    query = urlencode(_given(limit=_PAGE, cursor=cursor))
    return Call(Request("GET", f"/v1/subscriptions?{query}"), read.subscription_page)


def update(id: str, ticket: str | None, changes: Mapping[str, Any]) -> Call[Subscription]:
    """Change some fields of a subscription."""
    expression = changes.get("expression")
    given = _given(**_in_dialect(expression, changes))
    if expression is not None:
        given["expression"] = expression_value(expression)
    if "webhook" in given:
        given["webhook"] = {"url": given["webhook"]}
    if not given:
        raise InputError("update needs something to change")
    request = Request("PATCH", _path(id), compact(given), ticket, expression=_text_of(expression))
    return Call(request, read.subscription)


def renew(id: str, ticket: str | None, ttl_seconds: int | None) -> Call[Subscription]:
    """Have a subscription last longer; None is the service's default."""
    body = compact({"ttl_seconds": ttl_seconds})
    return Call(Request("PATCH", _path(id), body, ticket), read.subscription)


def unsubscribe(id: str, ticket: str | None) -> Call[None]:
    """End a subscription."""
    return Call(Request("DELETE", _path(id), ticket=ticket, is_repeatable=False), _nothing)


# -- events ---------------------------------------------------------------------------------------


def publish(event: Mapping[str, Any], event_id: str | None) -> Call[Published]:
    """Publish one event. It has an id, so that repeating the call does no harm."""
    return Call(Request("POST", "/v1/events", event_body(event, event_id)), read.published)


def publish_batch(bodies: list[str]) -> Call[list[Any]]:
    """Publish several events; the results stand in the order of the bodies."""
    return Call(Request("POST", "/v1/events", f"[{','.join(bodies)}]"), read.results)


def match(event: Mapping[str, Any]) -> Call[set[str]]:
    """Find the subscriptions that an event satisfies."""
    return Call(Request("POST", "/v1/match", _with_event(event)), read.matched_ids)


def explain(
    id: str | None, event: Mapping[str, Any], expression: object | None, dialect: str = MATCHMILL
) -> Call[Explanation]:
    """Explain why an event satisfies a subscription or an expression, or what is missing."""
    if (id is None) == (expression is None):
        raise InputError("explain takes the id of a subscription or an expression, not both")
    given = _given(
        subscription_id=id,
        expression=None if expression is None else expression_value(expression),
        **_in_dialect(expression, {"dialect": dialect}),
    )
    body = _with_event(event, given)
    request = Request("POST", "/v1/explain", body, expression=_text_of(expression))
    return Call(request, lambda response: read.explanation(response, id))


def check(
    expression: object,
    events: Iterable[Mapping[str, Any]] | None,
    dialect: str = MATCHMILL,
) -> Call[CheckReport]:
    """Check whether an expression can be stored, and whether it fits events."""
    asked = _in_dialect(expression, {"dialect": dialect})
    body = compact({"expression": expression_value(expression), **asked})
    if events is not None:
        texts = ",".join(event_text(event) for event in events)
        body = f'{body[:-1]},"events":[{texts}]}}'
    return Call(Request("POST", "/v1/check", body), read.check_report)


def backtest(expression: object, last: int, dialect: str = MATCHMILL) -> Call[Backtest]:
    """Count the latest events that an expression would have matched."""
    asked = _in_dialect(expression, {"last": last, "dialect": dialect})
    body = compact({"expression": expression_value(expression), **asked})
    request = Request("POST", "/v1/backtest", body, expression=_text_of(expression))
    return Call(request, read.backtest)


def stats() -> Call[dict[str, Any]]:
    """Read the figures of the tenant."""
    return Call(Request("GET", "/v1/stats"), dict)


# -- matches --------------------------------------------------------------------------------------


def mailbox_page(id: str, ticket: str, after: int, wait: int, timeout: float) -> Call[MailboxPage]:
    """Read the matches after a seq; the service waits for one if there is none."""
    query = urlencode({"after": after, "limit": _PAGE, "wait": wait})
    path = f"{_path(id, 'matches')}?{query}"
    timeout = max(timeout, wait + _MARGIN_SECONDS)
    return Call(Request("GET", path, ticket=ticket, timeout=timeout), read.mailbox_page)


def acknowledge(id: str, ticket: str, up_to: int) -> Call[None]:
    """Tell the service that the matches up to a seq have arrived."""
    body = compact({"up_to": up_to})
    return Call(Request("POST", _path(id, "acknowledge"), body, ticket), _nothing)


def live() -> Request:
    """Follow the matches of all subscriptions."""
    return Request("GET", "/v1/live")


def dead_letters(id: str, ticket: str) -> Call[list[DeadLetter]]:
    """Read the matches that a webhook did not take."""
    return Call(Request("GET", _path(id, "dead-letters"), ticket=ticket), read.dead_letters)


def retry_dead_letters(id: str, ticket: str) -> Call[int]:
    """Put dead letters back into the mailbox."""
    request = Request("POST", _path(id, "dead-letters/retry"), ticket=ticket)
    return Call(request, read.n_retried)


# -- helpers --------------------------------------------------------------------------------------


def _nothing(response: Any) -> None:
    return None


def _with_event(event: Mapping[str, Any], more: Mapping[str, Any] | None = None) -> str:
    rest = compact(more)[1:-1] if more else ""
    return f'{{"event":{event_text(event)}{"," if rest else ""}{rest}}}'


def _text_of(expression: object) -> str | None:
    """Return the text that the position of an error refers to."""
    if expression is None:
        return None
    value = expression_value(expression)
    return value if isinstance(value, str) else None


def _in_dialect(expression: object, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with a dialect only where text or a pattern is of another one than ours."""
    given = dict(options)
    dialect = check_dialect(given.pop("dialect", MATCHMILL))
    if dialect != MATCHMILL and isinstance(expression, str | Mapping):
        given["dialect"] = dialect
    return given


def _path(id: str, rest: str = "") -> str:
    if not isinstance(id, str) or not id:
        raise InputError(f"the id of a subscription is a text, not {id!r}")
    return f"/v1/subscriptions/{quote(id, safe='')}" + (f"/{rest}" if rest else "")


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
