"""The rows of a store, as the rest of the service sees them.

A store is the truth: engines are made from it and can be deleted. All times are whole microseconds
since 1970, UTC. Every change of what is subscribed has a number in the *change log*, and numbers
become visible in their order: whoever has seen number n never sees a smaller one later. A
subscription's own number is that of the change that made it, so an id that is used again is another
subscription, with another mailbox.

    tenant ─► keys
           ─► subscriptions ─► mailbox entries (subscription, seq) ─► event (tenant, seq)
           ─► events, numbered by `seq` in the order of their transactions
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = [
    "MINUTE",
    "SECOND",
    "Change",
    "DeadLetter",
    "DueWebhook",
    "Entry",
    "Forgettable",
    "Key",
    "Listed",
    "Live",
    "NewSubscription",
    "Page",
    "Publication",
    "Published",
    "Retention",
    "StoredEvent",
    "Subscription",
]

SECOND = 1_000_000
MINUTE = 60 * SECOND


class Key(NamedTuple):
    """An API key; of its secret only the keyed hash is known."""

    key_id: str
    tenant: int
    tenant_name: str
    name: str
    scopes: frozenset[str]
    created_at: int


class NewSubscription(NamedTuple):
    """A subscription to store, or what one is replaced with; then no ticket keeps the old one."""

    id: str
    expression: str
    ticket_hash: bytes | None
    expires_at: int
    max_per_minute: int | None = None
    webhook_url: str | None = None
    webhook_nonce: bytes = b""


class Subscription(NamedTuple):
    """One subscription with its mailbox and webhook."""

    number: int
    tenant: int
    id: str
    expression: str
    created_at: int
    expires_at: int
    max_per_minute: int | None
    webhook_url: str | None
    webhook_nonce: bytes | None
    n_pending: int
    n_dropped: int


class Listed(NamedTuple):
    """A subscription as a list has it."""

    number: int
    id: str
    expression: str
    created_at: int
    expires_at: int
    n_pending: int


class Live(NamedTuple):
    """A subscription that can get matches now."""

    number: int
    id: str
    max_per_minute: int | None
    has_webhook: bool


class Change(NamedTuple):
    """One line of the change log: a new subscription, another expression, or an end.

    `expression` is the present one, None if the subscription has ended since.
    """

    seq: int
    number: int
    is_end: bool
    expression: str | None

    @property
    def is_new(self) -> bool:
        """Return whether this line is about a new subscription."""
        return self.seq == self.number


class Publication(NamedTuple):
    """An event with the numbers of the subscriptions that it satisfies."""

    event_id: str
    body: str
    numbers: Sequence[int]
    may_be_repeated: bool = True  # not if its id was made for it


class Published(NamedTuple):
    """What became of an event: its seq, and who gets it."""

    event_id: str
    seq: int
    n_matches: int
    is_repeated: bool
    receivers: list[Live]
    is_conflict: bool = False  # the id is that of an event with another content


class StoredEvent(NamedTuple):
    """An event that is kept."""

    seq: int
    event_id: str
    body: str


class Entry(NamedTuple):
    """A match in a mailbox; or, beyond `max_per_minute`, how many there were in that minute."""

    seq: int
    matched_at: int
    event_id: str | None
    body: str | None
    digest_count: int | None
    digest_last_at: int | None


class Page(NamedTuple):
    """Some entries of a mailbox."""

    entries: list[Entry]
    n_dropped: int
    next_digest_at: int | None  # when a digest that is still growing will be there to read


class DeadLetter(NamedTuple):
    """An entry that a webhook did not accept."""

    entry: Entry
    n_attempts: int
    reason: str
    failed_at: int


class DueWebhook(NamedTuple):
    """A webhook that is to be called."""

    number: int
    tenant: int
    id: str
    url: str
    nonce: bytes
    n_attempts: int
    is_confirmed: bool  # its receiver has answered the challenge


class Retention(NamedTuple):
    """What is kept per tenant: so many events, with so many characters, none older than `age`."""

    events: int
    size: int
    age: int


class Forgettable(NamedTuple):
    """The first events of a tenant, which need not be kept any more."""

    steps: list[int]  # seqs; the events up to each of them are few enough for one transaction
    n_old: int  # of them, because of their age alone
    have_matches: bool
