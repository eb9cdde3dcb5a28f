"""What changes a store, as SQL over a connection; always inside a transaction.

A method reads first and writes then, so one that raises has changed nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from matchmill.errors import DuplicateIdError, QuotaError, UnknownIdError
from matchmill.service.database.horizon import Horizon
from matchmill.service.database.reads import Reads
from matchmill.service.database.rows import (
    MINUTE,
    Key,
    Live,
    NewSubscription,
    Publication,
    Published,
)

__all__ = ["Writes"]

_IDLE = 2**62  # when the webhook of an empty mailbox is due
_LATEST_CALL = 60 * MINUTE  # later than any pause between two calls of a webhook
_OF_A_SUBSCRIPTION = ("mailboxes", "entries", "webhooks", "dead_letters")


class Writes(Reads):
    """Reads and changes. A method that raises has changed nothing."""

    # -- keys and tenants -------------------------------------------------------------------------

    def add_tenant(self, name: str) -> int:
        """Return the number of a tenant, which is made if there is none of this name."""
        known = self.tenant(name)
        if known is not None:
            return known
        number: int = self._connection.rows("SELECT coalesce(max(number), 0) + 1 FROM tenants")[0][
            0
        ]
        sql = "INSERT INTO tenants (number, name, last_event, n_subscriptions) VALUES (?, ?, 0, 0)"
        self._connection.run(sql, number, name)
        return number

    def add_key(self, key: Key, key_hash: bytes) -> None:
        """Store an API key."""
        scopes = " ".join(sorted(key.scopes))
        row = (key.key_id, key.tenant, key.name, scopes, key_hash, key.created_at)
        self._connection.run("INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?)", *row)

    def revoke_key(self, tenant: int, key_id: str) -> bool:
        """Delete an API key; return whether there was one."""
        sql = "DELETE FROM keys WHERE tenant = ? AND key_id = ?"
        return self._connection.run(sql, tenant, key_id) > 0

    # -- subscriptions ----------------------------------------------------------------------------

    def _log_change(self, tenant: int, number: int | None, *, is_end: bool = False) -> int:
        """Write a line of the change log; without a number, about a new subscription."""
        seq: int = self._connection.rows(
            "UPDATE counters SET value = value + 1 WHERE name = 'change' RETURNING value"
        )[0][0]
        row = (seq, tenant, seq if number is None else number, int(is_end))
        self._connection.run("INSERT INTO changes VALUES (?, ?, ?, ?)", *row)
        return seq

    def subscribe(self, tenant: int, new: NewSubscription, now: int, limit: int) -> int:
        """Store a subscription and return its number.

        DuplicateIdError if the id is taken, QuotaError above the limit.
        """
        connection = self._connection
        taken = connection.rows(
            "SELECT number, expires_at FROM subscriptions WHERE tenant = ? AND id = ?",
            *(tenant, new.id),
        )
        if taken and taken[0][1] > now:
            raise DuplicateIdError(f"there is a subscription {new.id!r} already")
        room = self._room(tenant, now, limit)
        for number in {*room, *(number for number, _ in taken)}:
            self.unsubscribe(number)
        number = self._log_change(tenant, None)
        connection.run(
            "INSERT INTO subscriptions (number, tenant, id, expression, ticket, created_at,"
            " expires_at, max_per_minute) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            *(number, tenant, new.id, new.expression.encode(), new.ticket_hash, now),
            *(new.expires_at, new.max_per_minute),
        )
        connection.run(
            "INSERT INTO mailboxes (subscription, n_pending, n_dropped) VALUES (?, 0, 0)", number
        )
        if new.webhook_url is not None:
            self._add_webhook(number, new, _IDLE)
        self._count_subscriptions(tenant, 1)
        return number

    def _add_webhook(self, number: int, new: NewSubscription, next_at: int) -> None:
        row = (number, new.webhook_url, new.webhook_nonce, next_at)
        sql = "INSERT INTO webhooks (subscription, url, nonce, n_attempts, next_at, confirmed)"
        self._connection.run(f"{sql} VALUES (?, ?, ?, 0, ?, 0)", *row)

    def replace(
        self, number: int, new: NewSubscription, now: int, limit: int | None = None
    ) -> None:
        """Change all of a subscription but its id and its mailbox; UnknownIdError if it ended.

        With a limit one that has expired comes back: QuotaError if so many are live already.
        """
        connection = self._connection
        old = self.subscription_numbered(number, now if limit is None else 0)
        if old is None:
            raise UnknownIdError(f"there is no subscription {new.id!r}")
        if limit is not None and old.expires_at <= now:
            room = self._room(old.tenant, now, limit)
            for one in room:
                if one != number:
                    self.unsubscribe(one)
        connection.run(
            "UPDATE subscriptions SET expression = ?, expires_at = ?, max_per_minute = ?"
            " WHERE number = ?",
            *(new.expression.encode(), new.expires_at, new.max_per_minute, number),
        )
        if new.ticket_hash is not None:
            sql = "UPDATE subscriptions SET ticket = ? WHERE number = ?"
            connection.run(sql, new.ticket_hash, number)
        if new.expression != old.expression:
            self._log_change(old.tenant, number)
        if new.webhook_url != old.webhook_url:
            connection.run("DELETE FROM webhooks WHERE subscription = ?", number)
            if new.webhook_url is not None:
                self._add_webhook(number, new, now if old.n_pending else _IDLE)
        connection.notify([number])

    def _room(self, tenant: int, now: int, limit: int) -> list[int]:
        """Return what is to be deleted before a tenant gets one more live subscription.

        Those that have expired are kept for a while, but never more of them than may be live: then
        the ones that ended first make room. QuotaError if too many are live.
        """
        n_stored = self._n_subscriptions(tenant)
        if n_stored < limit:
            return []
        sql = "SELECT count(*) FROM subscriptions WHERE tenant = ? AND expires_at <= ?"
        n_expired: int = self._connection.rows(sql, tenant, now)[0][0]
        if n_stored - n_expired >= limit:
            raise QuotaError(f"this tenant has {limit:,} subscriptions, and may have no more")
        n_too_many = n_expired - limit
        if n_too_many <= 0:
            return []
        sql = (
            "SELECT number FROM subscriptions WHERE tenant = ? AND expires_at <= ?"
            " ORDER BY expires_at LIMIT ?"
        )
        return [number for (number,) in self._connection.rows(sql, tenant, now, n_too_many)]

    def _n_subscriptions(self, tenant: int) -> int:
        sql = "SELECT n_subscriptions FROM tenants WHERE number = ?"
        count: int = self._connection.rows(sql, tenant)[0][0]
        return count

    def _count_subscriptions(self, tenant: int, change: int) -> None:
        sql = "UPDATE tenants SET n_subscriptions = n_subscriptions + ? WHERE number = ?"
        self._connection.run(sql, change, tenant)

    def unsubscribe(self, number: int) -> bool:
        """Delete a subscription with all that belongs to it; return whether there was one."""
        connection = self._connection
        rows = connection.rows("SELECT tenant FROM subscriptions WHERE number = ?", number)
        if not rows:
            return False
        connection.run("DELETE FROM subscriptions WHERE number = ?", number)
        for table in _OF_A_SUBSCRIPTION:
            connection.run(f"DELETE FROM {table} WHERE subscription = ?", number)
        self._log_change(rows[0][0], number, is_end=True)
        self._count_subscriptions(rows[0][0], -1)
        connection.notify([number])
        return True

    def remove_expired(self, now: int, limit: int) -> list[int]:
        """Delete subscriptions that have expired; return their numbers."""
        sql = "SELECT number FROM subscriptions WHERE expires_at <= ? ORDER BY expires_at LIMIT ?"
        numbers = [row[0] for row in self._connection.rows(sql, now, limit)]
        for number in numbers:
            self.unsubscribe(number)
        return numbers

    # -- mailboxes --------------------------------------------------------------------------------

    def acknowledge(self, number: int, up_to: int) -> int:
        """Delete the entries of a mailbox up to a seq; return how many there were."""
        sql = "DELETE FROM entries WHERE subscription = ? AND seq <= ?"
        return self._removed(number, self._connection.run(sql, number, up_to))

    def _removed(self, number: int, n_entries: int) -> int:
        sql = "UPDATE mailboxes SET n_pending = n_pending - ? WHERE subscription = ?"
        self._connection.run(sql, n_entries, number)
        return n_entries

    def publish(
        self, tenant: int, publications: Sequence[Publication], now: int, mailbox_limit: int
    ) -> list[Published]:
        """Store events with their mailbox entries; what has expired or ended gets none."""
        given = [item.event_id for item in publications if item.may_be_repeated]
        known, bodies = self._published_before(tenant, given) if given else ({}, {})
        new = {item.event_id: item for item in reversed(publications) if item.event_id not in known}
        if new:
            fresh = [item for item in publications if new.get(item.event_id) is item]
            known |= self._publish_new(tenant, fresh, now, mailbox_limit)
            bodies |= {item.event_id: item.body for item in fresh}
        results = []
        for item in publications:
            found = known[item.event_id]
            is_conflict = not _is_same(item.body, bodies[item.event_id])
            results.append(found._replace(is_conflict=True) if is_conflict else found)
            known[item.event_id] = found._replace(is_repeated=True, receivers=[])
        return results

    def _published_before(
        self, tenant: int, event_ids: list[str]
    ) -> tuple[dict[str, Published], dict[str, str]]:
        """Return what became of known events, and their bodies."""
        given, value = self._connection.given(event_ids)
        sql = (
            f"SELECT v.event_id, v.seq, v.n_matches, v.body FROM {given} CROSS JOIN events v"
            " WHERE v.tenant = ? AND v.event_id = given.value"
        )
        rows = self._connection.rows(sql, value, tenant)
        known = {
            event_id: Published(event_id, seq, n_matches, True, [])
            for event_id, seq, n_matches, _ in rows
        }
        return known, {event_id: body for event_id, _, _, body in rows}

    def _publish_new(
        self, tenant: int, fresh: Sequence[Publication], now: int, mailbox_limit: int
    ) -> dict[str, Published]:
        connection = self._connection
        numbers = sorted({number for item in fresh for number in item.numbers})
        live = {found.number: found for found in self.live(tenant, numbers, now)}
        size = sum(len(item.body) for item in fresh)
        sql = (
            "UPDATE tenants SET last_event = last_event + ?, events_size = events_size + ?"
            " WHERE number = ? RETURNING last_event"
        )
        seq: int = connection.rows(sql, len(fresh), size, tenant)[0][0] - len(fresh)
        events: list[tuple[Any, ...]] = []
        entries: list[tuple[int, int, int]] = []
        broad: list[tuple[list[int], int]] = []
        limited: list[tuple[Live, int]] = []
        added: Counter[int] = Counter()
        results: dict[str, Published] = {}
        for item in fresh:
            seq += 1
            receivers = [live[number] for number in item.numbers if number in live]
            events.append((tenant, seq, item.event_id, item.body, now, len(receivers)))
            plain = [one.number for one in receivers if one.max_per_minute is None]
            if len(plain) >= _BROAD:
                broad.append((plain, seq))
            else:
                entries += [(number, seq, now) for number in plain]
            added.update(plain)
            limited += [(one, seq) for one in receivers if one.max_per_minute is not None]
            results[item.event_id] = Published(item.event_id, seq, len(receivers), False, receivers)
        connection.insert_many("events", _EVENT_COLUMNS, events)
        connection.insert_many("entries", ("subscription", "seq", "matched_at"), entries)
        for numbers, seq in broad:
            self._add_broad(numbers, seq, now)
        for receiver, seq in limited:
            added[receiver.number] += self._add_limited(receiver, seq, now)
        self._count_added(added, live, now, mailbox_limit)
        connection.notify(list(added))
        return results

    def _add_broad(self, numbers: list[int], seq: int, now: int) -> None:
        """Store a match of many subscriptions by one statement, which lets other threads run."""
        given, value = self._connection.given(numbers)
        sql = "INSERT INTO entries (subscription, seq, matched_at)"
        self._connection.run(f"{sql} SELECT value, ?, ? FROM {given}", seq, now, value)

    def _add_limited(self, receiver: Live, seq: int, now: int) -> int:
        """Store a match of one with a limit per minute; return how many entries it adds."""
        connection, number, minute = self._connection, receiver.number, now // MINUTE
        sql = "SELECT minute, in_minute FROM mailboxes WHERE subscription = ?"
        last_minute, in_minute = connection.rows(sql, number)[0]
        if last_minute != minute:
            in_minute = 0
        sql = "UPDATE mailboxes SET minute = ?, in_minute = ? WHERE subscription = ?"
        connection.run(sql, minute, in_minute + 1, number)
        assert receiver.max_per_minute is not None
        if in_minute < receiver.max_per_minute:
            sql = "INSERT INTO entries (subscription, seq, matched_at) VALUES (?, ?, ?)"
            return connection.run(sql, number, seq, now)
        # Nothing follows a digest within its minute: it is the last entry, if it is there.
        grown = connection.run(
            "UPDATE entries SET digest_count = digest_count + 1, digest_last_at = ?"
            " WHERE subscription = ? AND digest_count IS NOT NULL AND matched_at >= ?"
            " AND seq = (SELECT max(seq) FROM entries WHERE subscription = ?)",
            *(now, number, minute * MINUTE, number),
        )
        if grown:
            return 0
        return connection.run(
            "INSERT INTO entries (subscription, seq, matched_at, digest_count, digest_last_at)"
            " VALUES (?, ?, ?, 1, ?)",
            *(number, seq, now, now),
        )

    def _count_added(
        self, added: Counter[int], live: dict[int, Live], now: int, mailbox_limit: int
    ) -> None:
        connection = self._connection
        by_count: dict[int, list[int]] = {}
        for number, n in added.items():
            by_count.setdefault(n, []).append(number)
        for n, numbers in by_count.items():
            condition, value = connection.among("subscription", numbers)
            sql = f"UPDATE mailboxes SET n_pending = n_pending + ? WHERE {condition}"
            connection.run(sql, n, value)
        connection.run_many(
            "UPDATE webhooks SET next_at = ? WHERE subscription = ? AND next_at = ?",
            [(now, number, _IDLE) for number in added if live[number].has_webhook],
        )
        if not added:
            return
        condition, value = connection.among("subscription", list(added))
        for number, n_pending in connection.rows(
            f"SELECT subscription, n_pending FROM mailboxes WHERE {condition} AND n_pending > ?",
            *(value, mailbox_limit),
        ):
            self._drop_oldest(number, n_pending - mailbox_limit)

    def _drop_oldest(self, number: int, n_entries: int) -> None:
        self._connection.run(
            "DELETE FROM entries WHERE subscription = ? AND seq <= (SELECT seq FROM entries"
            " WHERE subscription = ? ORDER BY seq LIMIT 1 OFFSET ?)",
            *(number, number, n_entries - 1),
        )
        self._count_dropped(number, n_entries)

    def _count_dropped(self, number: int, n_entries: int) -> None:
        sql = "UPDATE mailboxes SET n_pending = n_pending - ?, n_dropped = n_dropped + ?"
        self._connection.run(f"{sql} WHERE subscription = ?", n_entries, n_entries, number)

    # -- webhooks ---------------------------------------------------------------------------------

    def claim_webhook(self, number: int, now: int, until: int) -> bool:
        """Reserve a webhook for one process; if that dies, others may claim it after `until`."""
        sql = "UPDATE webhooks SET next_at = ? WHERE subscription = ? AND next_at <= ?"
        return self._connection.run(sql, until, number, now) > 0

    def confirm_webhook(self, number: int, nonce: bytes) -> None:
        """Note that the receiver of a webhook has answered the challenge."""
        sql = "UPDATE webhooks SET confirmed = 1 WHERE subscription = ? AND nonce = ?"
        self._connection.run(sql, number, nonce)

    def webhook_delivered(self, number: int, seqs: Sequence[int], now: int) -> None:
        """Delete entries that a webhook has accepted."""
        self._remove(number, seqs)
        self._set_due(number, now)

    def webhook_later(self, number: int, n_attempts: int, next_at: int) -> None:
        """Note when a webhook is to be called again."""
        sql = "UPDATE webhooks SET n_attempts = ?, next_at = ? WHERE subscription = ?"
        self._connection.run(sql, n_attempts, next_at, number)

    def bury(
        self, number: int, seqs: Sequence[int], n_attempts: int, reason: str, now: int
    ) -> None:
        """Make dead letters of entries."""
        condition, value = self._connection.among("seq", seqs)
        self._connection.run(
            "INSERT INTO dead_letters (subscription, seq, matched_at, digest_count, digest_last_at,"
            " n_attempts, reason, failed_at) SELECT subscription, seq, matched_at, digest_count,"
            f" digest_last_at, ?, ?, ? FROM entries WHERE subscription = ? AND {condition}",
            *(n_attempts, reason, now, number, value),
        )
        self._remove(number, seqs)
        self._set_due(number, now)

    def _remove(self, number: int, seqs: Sequence[int]) -> None:
        condition, value = self._connection.among("seq", seqs)
        sql = f"DELETE FROM entries WHERE subscription = ? AND {condition}"
        self._removed(number, self._connection.run(sql, number, value))

    def _set_due(self, number: int, now: int) -> None:
        """After a delivery: if entries are left, the webhook is due again now, and else never."""
        rows = self._connection.rows(
            "SELECT n_pending FROM mailboxes WHERE subscription = ?", number
        )
        self.webhook_later(number, 0, now if rows and rows[0][0] else _IDLE)

    def retry_dead_letters(self, number: int, now: int) -> int:
        """Put dead letters back into the mailbox; return how many."""
        n_moved = self._connection.run(
            "INSERT INTO entries (subscription, seq, matched_at, digest_count, digest_last_at)"
            " SELECT subscription, seq, matched_at, digest_count, digest_last_at"
            " FROM dead_letters WHERE subscription = ?",
            number,
        )
        self._connection.run("DELETE FROM dead_letters WHERE subscription = ?", number)
        self._removed(number, -n_moved)
        self._set_due(number, now)
        return n_moved

    # -- what is old ------------------------------------------------------------------------------

    def probe(self) -> None:
        """Write something, to see whether that is possible."""
        self._connection.run(
            "INSERT INTO facts VALUES ('probe', '') ON CONFLICT (name) DO UPDATE SET value = ''"
        )

    def note_time(self, served: int, now: int, window: int) -> tuple[int, int | None]:
        """Note what a clock shows; return for how long the store was served, and the horizon."""
        rows = self._connection.rows("SELECT value FROM facts WHERE name = 'horizon'")
        horizon = Horizon.read(rows[0][0] if rows else None).after(served, now, window)
        self._connection.run(
            "INSERT INTO facts VALUES ('horizon', ?)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            horizon.text(),
        )
        # After a clock went back, a call may be due in a future that is far away.
        sql = "UPDATE webhooks SET next_at = ? WHERE next_at > ? AND next_at < ?"
        self._connection.run(sql, now, now + _LATEST_CALL, _IDLE)
        return horizon.served, horizon.moment(window)

    def drop_matches(self, numbers: Sequence[int], seq: int) -> None:
        """Delete what mailboxes and dead letters of subscriptions have of events up to a seq."""
        connection = self._connection
        for number in numbers:
            sql = "DELETE FROM entries WHERE subscription = ? AND seq <= ?"
            n_entries = connection.run(sql, number, seq)
            if n_entries:
                self._count_dropped(number, n_entries)
            sql = "DELETE FROM dead_letters WHERE subscription = ? AND seq <= ?"
            connection.run(sql, number, seq)

    def delete_events(self, tenant: int, seq: int) -> int:
        """Delete the events of a tenant up to a seq; return how many there were."""
        sql = "DELETE FROM events WHERE tenant = ? AND seq <= ? RETURNING length(body)"
        sizes = [size for (size,) in self._connection.rows(sql, tenant, seq)]
        sql = "UPDATE tenants SET events_size = events_size - ? WHERE number = ?"
        self._connection.run(sql, sum(sizes), tenant)
        return len(sizes)

    def delete_changes(self, n_kept: int, limit: int) -> int:
        """Delete the first lines of the change log, `limit` at most; return how many."""
        first = self._counter("first_change")
        end = min(self.last_change() - n_kept + 1, first + limit)
        if end <= first:
            return 0
        self._connection.run("UPDATE counters SET value = ? WHERE name = 'first_change'", end)
        return self._connection.run("DELETE FROM changes WHERE seq < ?", end)


def _is_same(body: str, other: str) -> bool:
    """Return whether two texts are the same JSON; the order of names does not count."""
    if body == other:
        return True
    texts = [json.dumps(json.loads(text), sort_keys=True) for text in (body, other)]
    return texts[0] == texts[1]


_BROAD = 50  # receivers of an event from which on one statement stores them
_EVENT_COLUMNS = ("tenant", "seq", "event_id", "body", "published_at", "n_matches")
