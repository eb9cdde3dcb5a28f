"""What the service answers, as Python has it: moments are datetimes, refusals are errors."""

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple

from matchmill.errors import ServiceError

__all__ = [
    "Backtest",
    "Checked",
    "DeadLetter",
    "Digest",
    "Dropped",
    "Explained",
    "LiveMatch",
    "Match",
    "PublishReport",
    "Published",
    "Rejected",
    "Subscribed",
    "Subscription",
    "error_of",
    "moment",
    "read_entry",
    "read_live",
    "read_published",
    "read_subscribed",
    "read_subscription",
]


class Subscribed(NamedTuple):
    """A new subscription. The ticket is told this once; so is the secret of its webhook."""

    id: str
    ticket: str
    expires_at: dt.datetime
    webhook_secret: str | None = None


class Rejected(NamedTuple):
    """One of many that the service would not take; `row` counts from 0."""

    row: int
    id: str | None
    error: ServiceError


class Subscription(NamedTuple):
    """A stored subscription; the last four are known of a single one, not in a list."""

    id: str
    expression: str
    created_at: dt.datetime
    expires_at: dt.datetime
    pending: int
    webhook: str | None = None
    max_per_minute: int | None = None
    dropped: int | None = None
    dead_letters: int | None = None


class Published(NamedTuple):
    event_id: str
    matched: int


class PublishReport(NamedTuple):
    n_published: int
    n_matches: int
    rejected: list[Rejected]


class Match(NamedTuple):
    """An event that satisfied a subscription; `seq` goes into an acknowledgement."""

    seq: int
    event_id: str
    event: dict[str, Any]
    matched_at: dt.datetime


class Digest(NamedTuple):
    """Matches beyond the most per minute: only how many there were."""

    seq: int
    n_matches: int
    first_at: dt.datetime
    last_at: dt.datetime


class Dropped(NamedTuple):
    """Matches that are lost: a mailbox was full, or a reader of live matches too slow."""

    n_matches: int


class DeadLetter(NamedTuple):
    """A match that the webhook would not take."""

    entry: Match | Digest
    tries: int
    reason: str
    failed_at: dt.datetime


class LiveMatch(NamedTuple):
    """An event as it was published, and some of the `matched` subscriptions that it satisfied."""

    event_id: str
    event: dict[str, Any]
    matched_at: dt.datetime
    matched: int
    subscriptions: list[str]


class Checked(NamedTuple):
    ok: bool
    normalized: str | None
    error: ServiceError | None


class Explained(NamedTuple):
    """`tree` has `kind`, `text`, `truth`, `note`, `distance` and `parts`; `text` shows it."""

    matches: bool
    tree: dict[str, Any]
    text: str


class Backtest(NamedTuple):
    """Of the latest `events` so many would have matched; `sample` has ids of some of them."""

    events: int
    matched: int
    sample: list[str]


def moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


def error_of(
    told: dict[str, Any],
    status: int | None,
    text: str | None = None,
    retry_after: float | None = None,
) -> ServiceError:
    """The `error` of an answer; `text` is the expression that was sent."""
    return ServiceError(
        told["message"],
        status=status,
        code=told["code"],
        hint=told.get("hint", ""),
        field=told.get("field"),
        position=told.get("position"),
        text=text,
        retry_after=retry_after,
    )


def read_subscribed(told: dict[str, Any]) -> Subscribed:
    return Subscribed(
        told["id"], told["ticket"], moment(told["expires_at"]), told.get("webhook_secret")
    )


def read_subscription(told: dict[str, Any]) -> Subscription:
    webhook = told.get("webhook")
    return Subscription(
        told["id"],
        told["expression"],
        moment(told["created_at"]),
        moment(told["expires_at"]),
        told["pending"],
        None if webhook is None else webhook["url"],
        told.get("max_per_minute"),
        told.get("dropped"),
        told.get("dead_letters"),
    )


def read_published(told: dict[str, Any], row: int) -> Published | Rejected:
    if "error" in told:
        return Rejected(row, told.get("event_id"), error_of(told["error"], None))
    return Published(told["event_id"], told["matched"])


def read_entry(told: dict[str, Any]) -> Match | Digest:
    if "digest" in told:
        digest = told["digest"]
        first_at, last_at = moment(digest["first_at"]), moment(digest["last_at"])
        return Digest(told["seq"], digest["count"], first_at, last_at)
    return Match(told["seq"], told["event_id"], told["event"], moment(told["matched_at"]))


def read_live(told: dict[str, Any]) -> LiveMatch:
    return LiveMatch(
        told["event_id"],
        told["event"],
        moment(told["matched_at"]),
        told["matched"],
        told["subscriptions"],
    )
