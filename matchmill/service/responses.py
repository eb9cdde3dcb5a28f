"""How stored rows look in a response."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from matchmill.service.database.rows import DeadLetter, Entry, Key, Listed, Subscription
from matchmill.service.json_body import compact, iso

__all__ = [
    "dead_letter_text",
    "entry_text",
    "key_dict",
    "list_text",
    "listed_dict",
    "subscription_dict",
    "with_event",
]


def entry_text(entry: Entry, subscription_id: str, more: dict[str, Any] | None = None) -> str:
    """Return a match, or a digest of many, as JSON, with more fields at the end.

    The event is JSON already, as it was stored: it is neither read nor written again.
    """
    first: dict[str, Any] = {"seq": entry.seq}
    last: dict[str, Any] = more or {}
    if entry.digest_count is not None:
        digest = {
            "n_matches": entry.digest_count,
            "first_at": iso(entry.matched_at),
            "last_at": iso(entry.digest_last_at or entry.matched_at),
        }
        return compact(first | {"subscription_id": subscription_id, "digest": digest} | last)
    first |= {"event_id": entry.event_id, "subscription_id": subscription_id}
    last = {"matched_at": iso(entry.matched_at)} | last
    return with_event(first, entry.body, last)


def with_event(first: dict[str, Any], body: str | None, last: dict[str, Any]) -> str:
    """Return an object as JSON, with an event that is JSON already between other fields."""
    return f'{compact(first)[:-1]},"event":{body or "null"},{compact(last)[1:]}'


def dead_letter_text(letter: DeadLetter, subscription_id: str) -> str:
    """Return a match that a webhook did not accept, as JSON."""
    more = {
        "n_attempts": letter.n_attempts,
        "reason": letter.reason,
        "failed_at": iso(letter.failed_at),
    }
    return entry_text(letter.entry, subscription_id, more)


def list_text(name: str, items: Iterable[str], more: dict[str, Any] | None = None) -> str:
    """Return an object with a list of values that are JSON already."""
    rest = f",{compact(more)[1:]}" if more else "}"
    return f'{{"{name}":[{",".join(items)}]{rest}'


def listed_dict(row: Listed | Subscription) -> dict[str, Any]:
    """Return a subscription as a list has it."""
    return {
        "subscription_id": row.id,
        "expression": row.expression,
        "created_at": iso(row.created_at),
        "expires_at": iso(row.expires_at),
        "n_pending": row.n_pending,
    }


def subscription_dict(
    row: Subscription, n_dead_letters: int, *, is_owner: bool = True
) -> dict[str, Any]:
    """Return a single subscription; of its webhook, only the owner sees more than the host."""
    webhook = None
    if row.webhook_url is not None:
        webhook = {"url": row.webhook_url if is_owner else _without_path(row.webhook_url)}
    return listed_dict(row) | {
        "webhook": webhook,
        "max_per_minute": row.max_per_minute,
        "n_dropped": row.n_dropped,
        "n_dead_letters": n_dead_letters,
    }


def _without_path(url: str) -> str:
    """Leave out what may be a secret: many receivers know their senders by the path alone."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/…"


def key_dict(key: Key) -> dict[str, Any]:
    """Return an API key without its secret."""
    return {
        "key_id": key.key_id,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "created_at": iso(key.created_at),
    }
