"""In the background: removes what has expired or is old, and saves engines now and then.

Responses never depend on when this happens: what has expired is left out everywhere, removed or
not. What is removed because of its age cannot come back, so no clock alone decides that: see
`database/horizon.py`. And one run removes only so much of it, so that a mistake has its limits.

Transactions are small, because all others who write wait for them. What a tenant's old events cost
is charged to that tenant.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial

from matchmill.service.clock import SteadyClock
from matchmill.service.database.rows import SECOND, Retention
from matchmill.service.database.store import Store
from matchmill.service.database.writes import Writes
from matchmill.service.group_commit import Writer
from matchmill.service.metrics import Metrics
from matchmill.service.settings import ServiceSettings
from matchmill.service.tenant_engines import TenantEngines

__all__ = ["Cleanup"]

_EXPIRED_AT_ONCE = 100
_CHANGES_AT_ONCE = 10_000
_LOOKED_AT_ONCE = 10_000  # mailboxes in one query
_MAILBOXES = 100  # in one transaction
_ROWS_OF_MAILBOX = 3
_EVENTS = 500  # at most, in one transaction

logger = logging.getLogger("matchmill.service")


class Cleanup:
    """Started by `start`, ended by `stop`."""

    def __init__(
        self,
        store: Store,
        engines: TenantEngines,
        writer: Writer,
        clock: SteadyClock,
        settings: ServiceSettings,
        metrics: Metrics,
    ) -> None:
        self._store = store
        self._engines = engines
        self._writer = writer
        self._clock = clock
        self._settings = settings
        self._metrics = metrics
        self._served = 0  # as the store has counted it
        self._counted_at = clock.elapsed()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="matchmill-cleanup", daemon=True)

    def start(self) -> None:
        """Start to clean up now and then."""
        self._thread.start()

    def stop(self) -> None:
        """End after the transaction that has begun."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._settings.cleanup_seconds):
            try:
                self.clean()
                self._engines.save(self._settings.checkpoint_changes)
            except Exception:  # the thread goes on
                self._metrics.background_error("cleanup")
                logger.exception("cleaning up failed; it will be tried again")

    def clean(self) -> None:
        """Remove what has expired or is too old, in transactions that stay short."""
        settings = self._settings
        window = settings.keep_expired_seconds * SECOND
        horizon = self._horizon(window)
        self._remove_expired(horizon)
        while not self._stopping.is_set() and self._writer.run(self._delete_changes):
            pass
        # What is before the horizon is at least as old as the window.
        age = max(0, settings.keep_events_seconds * SECOND - window)
        retention = Retention(settings.keep_events, settings.keep_events_size, age)
        with self._store.reading() as reading:
            tenants = reading.tenants()
        n_left = settings.cleanup_limit
        for tenant, _ in tenants:
            n_left -= self._forget(tenant, retention, horizon, n_left)

    def _horizon(self, window: int) -> int | None:
        """Note the time; return the moment before which it is certain, if there is one yet."""
        now, elapsed = self._clock(), self._clock.elapsed()
        # After a pause, nobody knows what the clock showed in it.
        most = 3 * self._settings.cleanup_seconds * SECOND
        served = self._served + min(elapsed - self._counted_at, most)
        self._served, moment = self._writer.run(lambda w: w.note_time(served, now, window))
        self._counted_at = elapsed
        return moment

    def _remove_expired(self, horizon: int | None) -> None:
        if horizon is None:
            return
        n_left = self._settings.cleanup_limit
        while n_left and not self._stopping.is_set():
            n_wanted = min(n_left, _EXPIRED_AT_ONCE)
            removed = self._writer.run(partial(Writes.remove_expired, now=horizon, limit=n_wanted))
            self._metrics.expired(len(removed))
            n_left -= len(removed)
            if len(removed) < n_wanted:
                return

    def _delete_changes(self, writing: Writes) -> int:
        return writing.delete_changes(self._settings.keep_changes, _CHANGES_AT_ONCE)

    def _forget(self, tenant: int, retention: Retention, horizon: int | None, limit: int) -> int:
        """Delete what need not be kept of a tenant's events; return how many for their age alone.

        What refers to them goes first. It is looked for outside of the transactions, which are the
        tenant's own: with a million mailboxes this takes seconds, in which others write.
        """
        n_old = 0
        while not self._stopping.is_set():
            with self._store.reading() as reading:
                found = reading.forgettable(tenant, retention, horizon, limit - n_old)
            if not found.steps:
                break
            n_old += found.n_old
            if found.have_matches:
                self._drop_matches(tenant, found.steps[-1])
            for seq in found.steps:
                self._write(tenant, partial(Writes.delete_events, tenant=tenant, seq=seq), _EVENTS)
        return n_old

    def _drop_matches(self, tenant: int, seq: int) -> None:
        after: str | None = ""
        while after is not None and not self._stopping.is_set():
            with self._store.reading() as reading:
                numbers, after = reading.holders(tenant, seq, after, _LOOKED_AT_ONCE)
            for first in range(0, len(numbers), _MAILBOXES):
                some = numbers[first : first + _MAILBOXES]
                work = partial(Writes.drop_matches, numbers=some, seq=seq)
                self._write(tenant, work, _ROWS_OF_MAILBOX * len(some))

    def _write(self, tenant: int, work: Callable[[Writes], object], n_rows: int) -> None:
        self._writer.submit(work, tenant, n_rows).result()
