"""In the background: removes what has expired or is old, and saves engines now and then.

Responses never depend on when this happens: what has expired is left out everywhere, removed or
not.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from matchmill.service.database.rows import SECOND, Retention
from matchmill.service.group_commit import Writer
from matchmill.service.metrics import Metrics
from matchmill.service.settings import ServiceSettings
from matchmill.service.tenant_engines import TenantEngines

__all__ = ["Cleanup"]

_EXPIRED_AT_ONCE = 500

logger = logging.getLogger("matchmill.service")


class Cleanup:
    """Started by `start`, ended by `stop`."""

    def __init__(
        self,
        engines: TenantEngines,
        writer: Writer,
        clock: Callable[[], int],
        settings: ServiceSettings,
        metrics: Metrics,
    ) -> None:
        self._engines = engines
        self._writer = writer
        self._clock = clock
        self._settings = settings
        self._metrics = metrics
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
        age = settings.keep_events_seconds * SECOND
        retention = Retention(settings.keep_events, age, settings.keep_changes)
        while not self._stopping.is_set():
            n_expired, n_forgotten = self._clean_some(self._clock(), retention)
            if n_expired < _EXPIRED_AT_ONCE and not n_forgotten:
                return

    def _clean_some(self, now: int, retention: Retention) -> tuple[int, int]:
        n_expired = len(self._writer.run(lambda w: w.remove_expired(now, _EXPIRED_AT_ONCE)))
        self._metrics.expired(n_expired)
        return n_expired, self._writer.run(lambda w: w.forget(now, retention))
