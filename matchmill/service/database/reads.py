"""What is read from a store, as SQL over a connection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hmac import compare_digest
from typing import Any

from matchmill.service.database.connection import Connection
from matchmill.service.database.rows import (
    MINUTE,
    Change,
    DeadLetter,
    DueWebhook,
    Entry,
    Forgettable,
    Key,
    Listed,
    Live,
    Page,
    Retention,
    StoredEvent,
    Subscription,
)

__all__ = ["Reads", "n_within"]

_LAST = 2**63 - 1
_MOST_FORGOTTEN = 10_000  # events that are found at once
_MOST_OF_STEP = 500  # events that one transaction deletes
_SIZE_OF_STEP = 4 << 20  # their characters, about

_SUBSCRIPTION = """
    SELECT s.number, s.tenant, s.id, s.expression, s.created_at, s.expires_at, s.max_per_minute,
           w.url, w.nonce, m.n_pending, m.n_dropped
    FROM subscriptions s
    JOIN mailboxes m ON m.subscription = s.number
    LEFT JOIN webhooks w ON w.subscription = s.number
"""


def n_within(sizes: Iterable[int], limit: int) -> int:
    """Return how many of the first sizes add up to a limit at most; at least one, if there are any.

    >>> n_within([3, 3, 3], 7)
    2
    >>> n_within([9, 1], 7)
    1
    """
    total = n = 0
    for size in sizes:
        total += size
        if n and total > limit:
            break
        n += 1
    return n


class Reads:
    """Reads. `now` decides what has expired; that is treated as if it did not exist."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # -- keys and tenants -------------------------------------------------------------------------

    def key(self, key_hash: bytes) -> Key | None:
        """Return the API key with this hash."""
        return next(iter(self._keys("k.hash = ?", key_hash)), None)

    def keys(self, tenant: int) -> list[Key]:
        """Return the keys of a tenant."""
        return self._keys("k.tenant = ?", tenant)

    def _keys(self, condition: str, value: object) -> list[Key]:
        rows = self._connection.rows(
            "SELECT k.key_id, k.tenant, t.name, k.name, k.scopes, k.created_at FROM keys k"
            f" JOIN tenants t ON t.number = k.tenant WHERE {condition}"
            " ORDER BY k.created_at, k.key_id",
            value,
        )
        return [
            Key(key_id, tenant, tenant_name, name, frozenset(scopes.split()), created_at)
            for key_id, tenant, tenant_name, name, scopes, created_at in rows
        ]

    def tenant(self, name: str) -> int | None:
        """Return the number of a tenant."""
        rows = self._connection.rows("SELECT number FROM tenants WHERE name = ?", name)
        return rows[0][0] if rows else None

    def tenants(self) -> list[tuple[int, str]]:
        """Return the numbers and names of all tenants."""
        rows = self._connection.rows("SELECT number, name FROM tenants ORDER BY number")
        return [(number, name) for number, name in rows]

    # -- subscriptions ----------------------------------------------------------------------------

    def by_ticket(self, identifier: str, ticket_hash: bytes, now: int) -> Subscription | None:
        """Return the subscription of this id and ticket, of whatever tenant.

        Tickets are compared in constant time.
        """
        rows = self._connection.rows(
            "SELECT number, ticket FROM subscriptions WHERE id = ? AND expires_at > ?",
            identifier,
            now,
        )
        for number, ticket in rows:  # one for each tenant that uses this id
            if compare_digest(bytes(ticket), ticket_hash):
                return self._subscription("s.number = ?", number)
        return None

    def has_ticket(self, number: int, ticket_hash: bytes) -> bool:
        """Return whether a subscription is there and has this ticket."""
        rows = self._connection.rows("SELECT ticket FROM subscriptions WHERE number = ?", number)
        return bool(rows) and compare_digest(bytes(rows[0][0]), ticket_hash)

    def subscription(self, tenant: int, identifier: str, now: int) -> Subscription | None:
        """Return the subscription of this id."""
        condition = "s.tenant = ? AND s.id = ? AND s.expires_at > ?"
        return self._subscription(condition, tenant, identifier, now)

    def subscription_numbered(self, number: int, now: int) -> Subscription | None:
        """Return the subscription of this number."""
        return self._subscription("s.number = ? AND s.expires_at > ?", number, now)

    def _subscription(self, condition: str, *values: Any) -> Subscription | None:
        for row in self._connection.rows(f"{_SUBSCRIPTION} WHERE {condition}", *values):
            found = Subscription(*row)
            return found._replace(expression=_text(found.expression))
        return None

    def subscriptions(self, tenant: int, after: str, limit: int, now: int) -> list[Listed]:
        """Return subscriptions after an id, in the order of their ids."""
        rows = self._connection.rows(
            "SELECT s.number, s.id, s.expression, s.created_at, s.expires_at, m.n_pending"
            " FROM subscriptions s JOIN mailboxes m ON m.subscription = s.number"
            # The plus keeps the index of ends out of it, which has another order.
            " WHERE s.tenant = ? AND s.id > ? AND +s.expires_at > ? ORDER BY s.id LIMIT ?",
            *(tenant, after, now, limit),
        )
        listed = [Listed(*row) for row in rows]
        return [row._replace(expression=_text(row.expression)) for row in listed]

    def live(self, tenant: int, numbers: Sequence[int], now: int) -> list[Live]:
        """Return those of some subscriptions that can get matches now."""
        if not len(numbers):
            return []
        given, value = self._connection.given(numbers)
        rows = self._connection.rows(
            "SELECT s.number, s.id, s.max_per_minute, w.subscription"
            f" FROM {given} CROSS JOIN subscriptions s"
            " LEFT JOIN webhooks w ON w.subscription = s.number"
            # The plus keeps the index of the tenant, which has all of its rows, out of it.
            " WHERE s.number = given.value AND +s.tenant = ? AND s.expires_at > ?",
            *(value, tenant, now),
        )
        return [Live(number, id_, most, hook is not None) for number, id_, most, hook in rows]

    def expressions(self, tenant: int) -> Iterator[tuple[int, str]]:
        """Yield all subscriptions that are stored, expired ones included."""
        rows = self._connection.stream(
            "SELECT number, expression FROM subscriptions WHERE tenant = ?", tenant
        )
        return ((number, _text(text)) for number, text in rows)

    # -- changes ----------------------------------------------------------------------------------

    def last_change(self) -> int:
        """Return the number of the last change."""
        return self._counter("change")

    def changed_tenants(self, after: int) -> list[int]:
        """Return the tenants that have changes after a number."""
        rows = self._connection.rows("SELECT DISTINCT tenant FROM changes WHERE seq > ?", after)
        return [tenant for (tenant,) in rows]

    def _counter(self, name: str) -> int:
        value: int = self._connection.rows("SELECT value FROM counters WHERE name = ?", name)[0][0]
        return value

    def changes(self, tenant: int, after: int, limit: int) -> list[Change] | None:
        """Return the next changes, in order; None if the log does not reach back so far."""
        rows = self._connection.rows(
            "SELECT c.seq, c.number, c.is_end, s.expression FROM changes c"
            " LEFT JOIN subscriptions s ON c.is_end = 0 AND s.number = c.number"
            " WHERE c.tenant = ? AND c.seq > ? ORDER BY c.seq LIMIT ?",
            *(tenant, after, limit),
        )
        # Read last, to notice if changes were deleted before the rows were read.
        if after + 1 < self._counter("first_change"):
            return None
        return [
            Change(seq, number, bool(is_end), None if text is None else _text(text))
            for seq, number, is_end, text in rows
        ]

    # -- mailboxes --------------------------------------------------------------------------------

    def page(
        self, number: int, after: int, limit: int, now: int, max_bytes: int = _LAST
    ) -> Page | None:
        """Return entries of a mailbox after a seq; None if the subscription is gone.

        Their events have `max_bytes` characters at most, unless the first has more alone.
        """
        connection = self._connection
        about = connection.rows(
            "SELECT s.tenant, m.n_dropped, m.n_pending FROM subscriptions s"
            " JOIN mailboxes m ON m.subscription = s.number"
            " WHERE s.number = ? AND s.expires_at > ?",
            *(number, now),
        )
        if not about:
            return None
        tenant, n_dropped, n_pending = about[0]
        if not n_pending:
            return Page([], n_dropped, None)
        if max_bytes < _LAST:
            sizes = connection.rows(
                "SELECT coalesce(length(v.body), 0)"
                " FROM entries e LEFT JOIN events v ON v.tenant = ? AND v.seq = e.seq"
                " WHERE e.subscription = ? AND e.seq > ? ORDER BY e.seq LIMIT ?",
                *(tenant, number, after, limit),
            )
            limit = n_within((row[0] for row in sizes), max_bytes)
        rows = connection.rows(
            "SELECT e.seq, e.matched_at, v.event_id, v.body, e.digest_count, e.digest_last_at"
            " FROM entries e LEFT JOIN events v ON v.tenant = ? AND v.seq = e.seq"
            " WHERE e.subscription = ? AND e.seq > ? ORDER BY e.seq LIMIT ?",
            *(tenant, number, after, limit),
        )
        entries = [Entry(*row) for row in rows]
        if entries and entries[-1].digest_count is not None:
            # Nothing follows a digest in its minute, so only the last entry can still grow.
            ends_at = (entries[-1].matched_at // MINUTE + 1) * MINUTE
            if now < ends_at <= now + MINUTE:  # further away only if the clock went back
                return Page(entries[:-1], n_dropped, ends_at)
        return Page(entries, n_dropped, None)

    def recent_events(
        self, tenant: int, limit: int, before: int = _LAST, max_bytes: int = _LAST
    ) -> list[StoredEvent]:
        """Return the latest events before a seq, the oldest first, of `max_bytes` as a page."""
        order = "FROM events WHERE tenant = ? AND seq < ? ORDER BY seq DESC LIMIT ?"
        if max_bytes < _LAST:
            sizes = self._connection.rows(f"SELECT length(body) {order}", tenant, before, limit)
            limit = n_within((row[0] for row in sizes), max_bytes)
        rows = self._connection.rows(f"SELECT seq, event_id, body {order}", tenant, before, limit)
        return [StoredEvent(*row) for row in reversed(rows)]

    # -- what is old ------------------------------------------------------------------------------

    def forgettable(
        self, tenant: int, retention: Retention, horizon: int | None, limit: int
    ) -> Forgettable:
        """Return the first events of a tenant that need not be kept, some thousand at most.

        There are too many, they have too many characters, or they are `retention.age` older than
        the horizon; without one, none is. At most `limit` are among them for their age alone.
        """
        sql = "SELECT last_event, events_size FROM tenants WHERE number = ?"
        last, size = self._connection.rows(sql, tenant)[0]
        steps: list[int] = []
        n_old = n_events = after = 0
        have_matches = False
        n_wanted = 1
        sql = (
            "SELECT seq, published_at, length(body), n_matches FROM events"
            " WHERE tenant = ? AND seq > ? ORDER BY seq LIMIT ?"
        )
        while n_events < _MOST_FORGOTTEN:
            rows = self._connection.rows(sql, tenant, after, n_wanted)
            n_found = 0
            # Only from the beginning on: a later event is not older, whatever its clock showed.
            for seq, published_at, n_characters, n_matches in rows:
                if seq > last - retention.events and size <= retention.size:
                    if horizon is None or published_at > horizon - retention.age or n_old >= limit:
                        break
                    n_old += 1
                size -= n_characters
                have_matches |= n_matches > 0
                after = seq
                n_found += 1
            if n_found:
                steps.append(after)
            if n_found < n_wanted:
                break
            n_events += n_found
            if sum(row[2] for row in rows) < _SIZE_OF_STEP:
                n_wanted = min(2 * n_wanted, _MOST_OF_STEP)
        return Forgettable(steps, n_old, have_matches)

    def holders(
        self, tenant: int, seq: int, after: str, limit: int
    ) -> tuple[list[int], str | None]:
        """Return who has matches of events up to a seq, of the next so many subscriptions.

        Also returns the id to go on after; None at the end.
        """
        page = (
            "WITH page AS (SELECT id, number FROM subscriptions WHERE tenant = ? AND id > ?"
            " ORDER BY id LIMIT ?)"
        )
        rows = self._connection.rows(
            f"{page} SELECT number FROM page WHERE"
            " EXISTS (SELECT 1 FROM entries e WHERE e.subscription = page.number AND e.seq <= ?)"
            " OR EXISTS"
            " (SELECT 1 FROM dead_letters d WHERE d.subscription = page.number AND d.seq <= ?)",
            *(tenant, after, limit, seq, seq),
        )
        about = self._connection.rows(
            f"{page} SELECT count(*), max(id) FROM page", tenant, after, limit
        )
        n_seen, last = about[0]
        return [number for (number,) in rows], last if n_seen == limit else None

    # -- webhooks ---------------------------------------------------------------------------------

    def n_dead_letters(self, number: int) -> int:
        """Return how many dead letters a subscription has."""
        rows = self._connection.rows(
            "SELECT count(*) FROM dead_letters WHERE subscription = ?", number
        )
        count: int = rows[0][0]
        return count

    def dead_letters(
        self, number: int, limit: int, after: int = 0, max_bytes: int = _LAST
    ) -> list[DeadLetter]:
        """Return the dead letters of a subscription after a seq, of `max_bytes` as a page."""
        if max_bytes < _LAST:
            sizes = self._connection.rows(
                "SELECT coalesce(length(v.body), 0) FROM dead_letters d"
                " JOIN subscriptions s ON s.number = d.subscription"
                " LEFT JOIN events v ON v.tenant = s.tenant AND v.seq = d.seq"
                " WHERE d.subscription = ? AND d.seq > ? ORDER BY d.seq LIMIT ?",
                *(number, after, limit),
            )
            limit = n_within((row[0] for row in sizes), max_bytes)
        rows = self._connection.rows(
            "SELECT d.seq, d.matched_at, v.event_id, v.body, d.digest_count, d.digest_last_at,"
            " d.n_attempts, d.reason, d.failed_at FROM dead_letters d"
            " JOIN subscriptions s ON s.number = d.subscription"
            " LEFT JOIN events v ON v.tenant = s.tenant AND v.seq = d.seq"
            " WHERE d.subscription = ? AND d.seq > ? ORDER BY d.seq LIMIT ?",
            *(number, after, limit),
        )
        return [DeadLetter(Entry(*row[:6]), *row[6:]) for row in rows]

    def due_webhooks(self, now: int, most_of_tenant: int, limit: int) -> list[DueWebhook]:
        """Return webhooks that are to be called now, those of all tenants by turns."""
        rows = self._connection.rows(
            "SELECT number, tenant, id, url, nonce, n_attempts, confirmed FROM ("
            " SELECT w.subscription AS number, s.tenant, s.id, w.url, w.nonce, w.n_attempts,"
            " w.confirmed, w.next_at,"
            " row_number() OVER (PARTITION BY s.tenant ORDER BY w.next_at) AS place"
            " FROM webhooks w"
            " JOIN subscriptions s ON s.number = w.subscription AND s.expires_at > ?"
            # Not a join: without statistics PostgreSQL would read all mailboxes for it.
            " WHERE w.next_at <= ? AND"
            " (SELECT m.n_pending FROM mailboxes m WHERE m.subscription = w.subscription) > 0"
            ") AS due"
            " WHERE place <= ? ORDER BY place, next_at LIMIT ?",
            *(now, now, most_of_tenant, limit),
        )
        return [
            DueWebhook(number, tenant, id_, url, bytes(nonce), n_attempts, bool(confirmed))
            for number, tenant, id_, url, nonce, n_attempts, confirmed in rows
        ]


def _text(stored: Any) -> str:
    """Expressions are stored as bytes: PostgreSQL's texts cannot hold every character."""
    return bytes(stored).decode()
