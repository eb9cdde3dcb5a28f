"""The one interface of what the service keeps, and the rows that go through it.

A store is the truth: engines are made from it and can be thrown away. All moments are whole
microseconds since 1970, UTC. Every change of what is subscribed has a number in the *change log*,
and numbers become visible in their order: whoever has seen number n will never see a smaller one
that is new. A subscription's own number is that of the change that made it, so an id that is taken
again is another subscription, with another mailbox.

    tenant ─► keys
           ─► subscriptions ─► mailbox entries (subscription, seq) ─► event (tenant, seq)
           ─► events, numbered by `seq` in the order of their transactions

`writing()` is one transaction: what its block did is safe when it has ended, or did not happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

__all__ = [
    "MINUTE",
    "SECOND",
    "Change",
    "DeadLetter",
    "DueWebhook",
    "Entry",
    "Key",
    "Listed",
    "Live",
    "NewSubscription",
    "Page",
    "Publication",
    "Published",
    "Reading",
    "Retention",
    "Store",
    "StoredEvent",
    "Subscription",
    "Writing",
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
    event_id: str
    seq: int
    n_matches: int
    is_repeated: bool
    receivers: list[Live]


class StoredEvent(NamedTuple):
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
    entries: list[Entry]
    n_dropped: int
    next_digest_at: int | None  # when a digest that is still growing will be there to read


class DeadLetter(NamedTuple):
    entry: Entry
    n_attempts: int
    reason: str
    failed_at: int


class DueWebhook(NamedTuple):
    number: int
    tenant: int
    id: str
    url: str
    nonce: bytes
    n_attempts: int


class Retention(NamedTuple):
    """What is kept: so many events a tenant, none older than `age`, and so many changes."""

    events: int
    age: int
    changes: int


class Reading(Protocol):
    """Questions. `now` decides what has expired; what has is as if it were not there."""

    def key(self, key_hash: bytes) -> Key | None: ...
    def keys(self, tenant: int) -> list[Key]: ...
    def tenant(self, name: str) -> int | None: ...
    def tenants(self) -> list[tuple[int, str]]: ...
    def by_ticket(self, identifier: str, ticket_hash: bytes, now: int) -> Subscription | None:
        """The subscription of this id and ticket, whose ever it is; in constant time for an id."""
        ...

    def subscription(self, tenant: int, identifier: str, now: int) -> Subscription | None: ...
    def subscription_numbered(self, number: int, now: int) -> Subscription | None: ...
    def subscriptions(self, tenant: int, after: str, limit: int, now: int) -> list[Listed]: ...
    def n_dead_letters(self, number: int) -> int: ...
    def live(self, tenant: int, numbers: Sequence[int], now: int) -> list[Live]: ...
    def last_change(self) -> int: ...
    def changes(self, tenant: int, after: int, limit: int) -> list[Change] | None:
        """The next changes, in order; None if the log does not reach back so far."""
        ...

    def expressions(self, tenant: int) -> Iterator[tuple[int, str]]:
        """All subscriptions that are stored, expired ones included."""
        ...

    def page(self, number: int, after: int, limit: int, now: int) -> Page | None:
        """What is in a mailbox after a seq; None if the subscription is gone."""
        ...

    def recent_events(self, tenant: int, limit: int) -> list[StoredEvent]: ...
    def dead_letters(self, number: int, limit: int) -> list[DeadLetter]: ...
    def due_webhooks(self, now: int, limit: int) -> list[DueWebhook]: ...


class Writing(Reading, Protocol):
    """Changes. A method that raises has changed nothing."""

    def add_tenant(self, name: str) -> int:
        """The number of a tenant, which is made if there is none of this name."""
        ...

    def add_key(self, key: Key, key_hash: bytes) -> None: ...
    def revoke_key(self, tenant: int, key_id: str) -> bool: ...

    def subscribe(self, tenant: int, new: NewSubscription, now: int, limit: int) -> int:
        """The new number; DuplicateIdError if the id is taken, QuotaError above the limit."""
        ...

    def replace(self, number: int, new: NewSubscription, now: int) -> None:
        """Change all of a subscription but its id and its mailbox; UnknownIdError if it ended."""
        ...

    def unsubscribe(self, number: int) -> bool: ...
    def acknowledge(self, number: int, up_to: int) -> int: ...

    def publish(
        self, tenant: int, publications: Sequence[Publication], now: int, mailbox_limit: int
    ) -> list[Published]:
        """Store events with their mailbox entries. What has expired or ended gets none."""
        ...

    def claim_webhook(self, number: int, now: int, until: int) -> bool:
        """Have one process deliver; if it dies, another one may when `until` has come."""
        ...

    def webhook_delivered(self, number: int, seqs: Sequence[int], now: int) -> None: ...
    def webhook_later(self, number: int, n_attempts: int, next_at: int) -> None: ...
    def bury(
        self, number: int, seqs: Sequence[int], n_attempts: int, reason: str, now: int
    ) -> None:
        """Entries become dead letters."""
        ...

    def retry_dead_letters(self, number: int, now: int) -> int: ...

    def remove_expired(self, now: int, limit: int) -> list[int]: ...
    def forget(self, now: int, retention: Retention) -> int:
        """Drop old events, with the entries that refer to them, and old changes."""
        ...


class Store(Protocol):
    """Where everything is. Any thread may use it; there is one transaction at a time."""

    identity: str  # different for every store that was ever made
    is_shared: bool  # other processes may write to it, too

    def reading(self) -> AbstractContextManager[Reading]: ...
    def writing(self) -> AbstractContextManager[Writing]: ...

    def check_secret(self, fingerprint: str) -> None:
        """Remember by which key secrets are hashed; StoreError if it was another one before."""
        ...

    def listen(self, heard: Callable[[list[int]], None]) -> Callable[[], None]:
        """Tell of subscriptions that other processes changed; returns what ends it."""
        ...

    def close(self) -> None: ...
