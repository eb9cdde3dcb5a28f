"""What a service returns, as Python has it: times are datetimes, counts are `n_*`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from matchmill.client.problems import error_of
from matchmill.io.reports import CheckReport as EngineCheckReport
from matchmill.io.reports import Finding, Rejected, html_table
from matchmill.io.reports import SubscribeReport as EngineReport
from matchmill.language.explanation import Explanation

__all__ = [
    "Backtest",
    "CheckReport",
    "DeadLetter",
    "Digest",
    "Dropped",
    "MailboxPage",
    "Match",
    "PublishReport",
    "Published",
    "Received",
    "SubscribeReport",
    "Subscription",
    "SubscriptionPage",
    "backtest",
    "check_report",
    "dead_letters",
    "entry",
    "explanation",
    "id_and_reason",
    "live_matches",
    "mailbox_page",
    "matched_ids",
    "n_retried",
    "published",
    "results",
    "subscription",
    "subscription_page",
]


@dataclass(frozen=True, slots=True, repr=False)
class Subscription:
    """A subscription as a service has it.

    Parameters
    ----------
    id, expression
        Its id and its text.
    created_at, expires_at
        From when and until when it is stored.
    ticket
        The secret that reads, renews and ends it; only in the result of `subscribe`.
    webhook, webhook_secret
        Where its matches are sent, and the secret that signs them; the secret only in the
        result of `subscribe`.
    max_per_minute
        The most matches per minute; more become a digest.
    n_pending
        How many matches wait in its mailbox.
    n_dropped, n_dead_letters
        How many matches were lost because the mailbox was full, and how many the webhook did
        not take; None in a list of several.

    Examples
    --------
    >>> made = client.subscribe("u42", "price < 20")  # doctest: +SKIP
    >>> made  # doctest: +SKIP
    <Subscription 'u42': price < 20, expires 2026-12-18 10:00:00>
    """

    id: str
    expression: str
    created_at: dt.datetime | None = None
    expires_at: dt.datetime | None = None
    ticket: str | None = None
    webhook: str | None = None
    webhook_secret: str | None = None
    max_per_minute: int | None = None
    n_pending: int = 0
    n_dropped: int | None = None
    n_dead_letters: int | None = None

    def __repr__(self) -> str:
        text = self.expression if len(self.expression) <= 60 else self.expression[:59] + "…"
        end = "" if self.expires_at is None else f", expires {self.expires_at:%Y-%m-%d %H:%M:%S}"
        return f"<Subscription {self.id!r}: {text}{end}>"

    def _repr_html_(self) -> str:
        rows = [
            ("expression", self.expression),
            ("expires", self.expires_at),
            ("pending matches", self.n_pending),
        ]
        return html_table(f"Subscription {self.id!r}", ("", ""), rows)


@dataclass(frozen=True, slots=True, repr=False)
class SubscribeReport(EngineReport):
    """What `subscribe_many` did: the report of an engine, with the new subscriptions.

    Parameters
    ----------
    n_accepted, n_replaced, rejected, warnings, ignored_columns
        As in the report of `matchmill.Engine.subscribe_many`.
    subscriptions
        Those that were accepted, in order, each with its ticket.

    Examples
    --------
    >>> report = client.subscribe_many({"a": "x = 1", "b": "x ="})  # doctest: +SKIP
    >>> report  # doctest: +SKIP
    <SubscribeReport: 1 accepted, 1 rejected>
    """

    subscriptions: list[Subscription] = field(default_factory=list)


class Published(NamedTuple):
    """An event that was published, and how many subscriptions it satisfied.

    Parameters
    ----------
    event_id
        The id by which a repeated event is recognized.
    n_matches
        How many subscriptions it satisfied.

    Examples
    --------
    >>> client.publish({"price": 7}, event_id="e1")  # doctest: +SKIP
    Published(event_id='e1', n_matches=2)
    """

    event_id: str
    n_matches: int


class PublishReport(NamedTuple):
    """What `publish_many` did.

    Parameters
    ----------
    n_published, n_matches
        How many events were published, and how many matches they made together.
    rejected
        The events that were not, each with its reason.

    Examples
    --------
    >>> client.publish_many([{"n": 1}, {"n": 2}])  # doctest: +SKIP
    <PublishReport: 2 published, 0 rejected, 3 matches>
    """

    n_published: int
    n_matches: int
    rejected: list[Rejected]

    @property
    def n_rejected(self) -> int:
        """How many events were not published."""
        return len(self.rejected)

    def __str__(self) -> str:
        return (
            f"{self.n_published:,} published, {self.n_rejected:,} rejected,"
            f" {self.n_matches:,} matches"
        )

    def __repr__(self) -> str:
        return f"<PublishReport: {self}>"

    def _repr_html_(self) -> str:
        rows = [(one.row, one.id, one.reason) for one in self.rejected]
        return html_table(str(self), ("row", "id", "reason"), rows)


class Match(NamedTuple):
    """An event that satisfied a subscription.

    Parameters
    ----------
    seq
        Its number in the mailbox, which an acknowledgement names; 0 in `live`.
    event_id, subscription_id
        Which event, and which subscription.
    event
        The event as it was published.
    matched_at
        When it was published.

    Examples
    --------
    >>> match = next(client.receive("u42", ticket=ticket))  # doctest: +SKIP
    >>> match.event["price"]  # doctest: +SKIP
    7
    """

    seq: int
    event_id: str
    subscription_id: str
    event: dict[str, Any]
    matched_at: dt.datetime


class Digest(NamedTuple):
    """How many matches there were beyond the most per minute.

    Parameters
    ----------
    seq
        Its number in the mailbox.
    n_matches
        How many there were.
    first_at, last_at
        When the first and the last of them were published.

    Examples
    --------
    >>> Digest(7, 120, first_at, last_at).n_matches  # doctest: +SKIP
    120
    """

    seq: int
    n_matches: int
    first_at: dt.datetime
    last_at: dt.datetime


class Dropped(NamedTuple):
    """Matches that are lost: the mailbox was full, or a reader of `live` too slow.

    Parameters
    ----------
    n_matches
        How many were lost.

    Examples
    --------
    >>> Dropped(9)
    Dropped(n_matches=9)
    """

    n_matches: int


Received: TypeAlias = Match | Digest | Dropped


class DeadLetter(NamedTuple):
    """A match that a webhook did not take.

    Parameters
    ----------
    entry
        The match, or the digest of several.
    n_attempts
        How often it was sent.
    reason
        What happened the last time.
    failed_at
        When that was.

    Examples
    --------
    >>> [one.reason for one in client.dead_letters("u42", ticket=ticket)]  # doctest: +SKIP
    ['the webhook responded 500']
    """

    entry: Match | Digest
    n_attempts: int
    reason: str
    failed_at: dt.datetime


@dataclass(frozen=True, slots=True, repr=False)
class CheckReport(EngineCheckReport):
    """What `check` found: what `mm.check` reports, and how the expression was understood.

    Parameters
    ----------
    n_subscriptions
        1 if the expression can be stored, 0 if not.
    n_events
        How many events it was compared with.
    rejected
        Why it cannot be stored, and events that could not be read.
    warnings
        Why it needs a second look although it can be stored.
    normalized
        The expression as it was understood, None if it was not.

    Examples
    --------
    >>> client.check("price<20").normalized  # doctest: +SKIP
    'price < 20'
    """

    normalized: str | None = None

    def __repr__(self) -> str:
        found = [one.reason for one in self.rejected] + [one.message for one in self.warnings]
        return f"<CheckReport: {'; '.join(found) or self.normalized}>"


class Backtest(NamedTuple):
    """What an expression would have matched among the latest events.

    Parameters
    ----------
    n_events, n_matches
        How many events were tried, and how many matched.
    event_ids
        The ids of the latest events that matched, a hundred at most.

    Examples
    --------
    >>> client.backtest("price < 20", last=1_000).n_matches  # doctest: +SKIP
    37
    """

    n_events: int
    n_matches: int
    event_ids: list[str]

    def __repr__(self) -> str:
        return f"<Backtest: {self.n_matches:,} of {self.n_events:,} events matched>"

    def _repr_html_(self) -> str:
        return html_table(repr(self)[1:-1], ("event_id",), [(one,) for one in self.event_ids])


# -- reading the values of responses --------------------------------------------------------------


class SubscriptionPage(NamedTuple):
    """Some subscriptions of a list, and where the next ones begin."""

    subscriptions: list[Subscription]
    next_cursor: str | None


class MailboxPage(NamedTuple):
    """Some entries of a mailbox, and how many matches it has lost so far."""

    entries: list[Match | Digest]
    n_dropped: int


def _moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


def subscription(response: dict[str, Any]) -> Subscription:
    """Read one subscription."""
    webhook = response.get("webhook")
    return Subscription(
        response["subscription_id"],
        response["expression"],
        created_at=_moment(response["created_at"]),
        expires_at=_moment(response["expires_at"]),
        ticket=response.get("ticket"),
        webhook=None if webhook is None else webhook["url"],
        webhook_secret=response.get("webhook_secret"),
        max_per_minute=response.get("max_per_minute"),
        n_pending=response["n_pending"],
        n_dropped=response.get("n_dropped"),
        n_dead_letters=response.get("n_dead_letters"),
    )


def subscription_page(response: dict[str, Any]) -> SubscriptionPage:
    """Read a page of subscriptions."""
    return SubscriptionPage(
        [subscription(one) for one in response["subscriptions"]], response.get("next_cursor")
    )


def results(response: dict[str, Any]) -> list[dict[str, Any]]:
    """Read the results of several items: what each is, or its problem."""
    found: list[dict[str, Any]] = response["results"]
    return found


def id_and_reason(problem: dict[str, Any]) -> tuple[str | None, str]:
    """Read the problem of one of several items: its id, and the reason in one line."""
    for record in problem.get("rejected", ()):
        return record["id"], record["reason"]
    return None, error_of(problem).summary


def published(response: dict[str, Any]) -> Published:
    """Read what became of an event."""
    return Published(response["event_id"], response["n_matches"])


def matched_ids(response: dict[str, Any]) -> set[str]:
    """Read the ids of matching subscriptions."""
    return {one["subscription_id"] for one in response["matches"]}


def explanation(response: dict[str, Any], id: str | None) -> Explanation:
    """Read the tree of an explanation."""
    return Explanation.from_dict({**response["tree"], "id": id})


def check_report(response: dict[str, Any]) -> CheckReport:
    """Read what the check of an expression found."""
    rejected = [
        Rejected(one["kind"], one["row"], None, None, one["id"], one["reason"])
        for one in response["rejected"]
    ]
    warnings = [
        Finding(None, one["kind"], one["message"], one["suggestion"])
        for one in response["warnings"]
    ]
    normalized = response.get("normalized")
    n_subscriptions = int(normalized is not None)
    return CheckReport(n_subscriptions, response["n_events"], rejected, warnings, normalized)


def backtest(response: dict[str, Any]) -> Backtest:
    """Read how many events an expression would have matched."""
    return Backtest(response["n_events"], response["n_matches"], response["event_ids"])


def entry(response: dict[str, Any]) -> Match | Digest:
    """Read one entry of a mailbox."""
    if "digest" in response:
        digest = response["digest"]
        first_at, last_at = _moment(digest["first_at"]), _moment(digest["last_at"])
        return Digest(response["seq"], digest["n_matches"], first_at, last_at)
    return Match(
        response["seq"],
        response["event_id"],
        response["subscription_id"],
        response["event"],
        _moment(response["matched_at"]),
    )


def live_matches(response: dict[str, Any]) -> Iterator[Match | Dropped]:
    """Read one event of the live stream: a match per subscription that is named."""
    for id in response["subscription_ids"]:
        yield Match(0, response["event_id"], id, response["event"], _moment(response["matched_at"]))
    n_more = response["n_matches"] - len(response["subscription_ids"])
    if n_more > 0:  # an event with very many matches names some of them
        yield Dropped(n_more)


def mailbox_page(response: dict[str, Any]) -> MailboxPage:
    """Read a page of a mailbox."""
    return MailboxPage([entry(one) for one in response["matches"]], response["n_dropped"])


def dead_letters(response: dict[str, Any]) -> list[DeadLetter]:
    """Read the matches that a webhook did not take."""
    return [
        DeadLetter(entry(one), one["n_attempts"], one["reason"], _moment(one["failed_at"]))
        for one in response["dead_letters"]
    ]


def n_retried(response: dict[str, Any]) -> int:
    """Read how many dead letters were put back."""
    count: int = response["n_retried"]
    return count
