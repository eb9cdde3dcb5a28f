"""How stored rows look in a response."""

from __future__ import annotations

import json
from typing import Any

from matchmill.service.database.rows import DeadLetter, Entry, Key, Listed, Subscription
from matchmill.service.json_body import iso

__all__ = ["dead_letter_dict", "entry_dict", "key_dict", "listed_dict", "subscription_dict"]


def entry_dict(entry: Entry, subscription_id: str) -> dict[str, Any]:
    """Return a match, or a digest of many."""
    if entry.digest_count is not None:
        digest = {
            "n_matches": entry.digest_count,
            "first_at": iso(entry.matched_at),
            "last_at": iso(entry.digest_last_at or entry.matched_at),
        }
        return {"seq": entry.seq, "subscription_id": subscription_id, "digest": digest}
    return {
        "seq": entry.seq,
        "event_id": entry.event_id,
        "subscription_id": subscription_id,
        "event": json.loads(entry.body or "null"),
        "matched_at": iso(entry.matched_at),
    }


def dead_letter_dict(letter: DeadLetter, subscription_id: str) -> dict[str, Any]:
    """Return a match that a webhook did not accept."""
    return entry_dict(letter.entry, subscription_id) | {
        "n_attempts": letter.n_attempts,
        "reason": letter.reason,
        "failed_at": iso(letter.failed_at),
    }


def listed_dict(row: Listed | Subscription) -> dict[str, Any]:
    """Return a subscription as a list has it."""
    return {
        "subscription_id": row.id,
        "expression": row.expression,
        "created_at": iso(row.created_at),
        "expires_at": iso(row.expires_at),
        "n_pending": row.n_pending,
    }


def subscription_dict(row: Subscription, n_dead_letters: int) -> dict[str, Any]:
    """Return a single subscription."""
    webhook = None if row.webhook_url is None else {"url": row.webhook_url}
    return listed_dict(row) | {
        "webhook": webhook,
        "max_per_minute": row.max_per_minute,
        "n_dropped": row.n_dropped,
        "n_dead_letters": n_dead_letters,
    }


def key_dict(key: Key) -> dict[str, Any]:
    """Return an API key without its secret."""
    return {
        "key_id": key.key_id,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "created_at": iso(key.created_at),
    }
