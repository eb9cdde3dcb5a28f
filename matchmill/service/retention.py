"""In the background: removes what has expired or is old, and saves engines now and then.

Responses never depend on when this happens: what has expired is left out everywhere, removed or
not. What is removed because of its age cannot come back, so no clock alone decides that: see
`database/horizon.py`. And one run removes only so much of it, so that a mistake has its limits.
"""

from __future__ import annotations

import logging
import threading

from matchmill.service.clock import SteadyClock
from matchmill.service.database.rows import SECOND, Forgotten, Retention
from matchmill.service.group_commit import Writer
from matchmill.service.metrics import Metrics
from matchmill.service.settings import ServiceSettings
from matchmill.service.tenant_engines import TenantEngines

__all__ = ["Cleanup"]

_EXPIRED_AT_ONCE = 500
_FORGOTTEN_AT_ONCE = 10_000

logger = logging.getLogger("matchmill.service")


class Cleanup:
    """Started by `start`, ended by `stop`."""

    def __init__(
        self,
        engines: TenantEngines,
        writer: Writer,
        clock: SteadyClock,
        settings: ServiceSettings,
        metrics: Metrics,
    ) -> None:
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
        # What is before the horizon is at least as old as the window.
        age = max(0, settings.keep_events_seconds * SECOND - window)
        retention = Retention(settings.keep_events, age, settings.keep_changes)
        n_expired = n_old = 0  # removed in this run
        while not self._stopping.is_set():
            limit = min(settings.cleanup_limit - n_expired, _EXPIRED_AT_ONCE)
            n_removed = self._remove_expired(horizon, limit)
            limit = min(settings.cleanup_limit - n_old, _FORGOTTEN_AT_ONCE)
            forgotten = self._forget(horizon, retention, limit)
            n_expired += n_removed
            n_old += forgotten.n_old
            if not n_removed and not forgotten.n_events:
                return

    def _horizon(self, window: int) -> int | None:
        """Note the time; return the moment before which it is certain, if there is one yet."""
        now, elapsed = self._clock(), self._clock.elapsed()
        # After a pause, nobody knows what the clock showed in it.
        most = 3 * self._settings.cleanup_seconds * SECOND
        served = self._served + min(elapsed - self._counted_at, most)
        self._served, moment = self._writer.run(lambda w: w.note_time(served, now, window))
        self._counted_at = elapsed
        return moment

    def _remove_expired(self, horizon: int | None, limit: int) -> int:
        if horizon is None or not limit:
            return 0
        n_expired = len(self._writer.run(lambda w: w.remove_expired(horizon, limit)))
        self._metrics.expired(n_expired)
        return n_expired

    def _forget(self, horizon: int | None, retention: Retention, limit: int) -> Forgotten:
        return self._writer.run(lambda w: w.forget(horizon, retention, limit))
