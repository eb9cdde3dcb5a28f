"""Beside the requests: what has expired or is old is removed, and engines are saved now and then.

Answers never depend on when this happens: what has expired is left out everywhere, cleaned or not.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from matchmill.service.database.interface import SECOND, Retention

if TYPE_CHECKING:
    from matchmill.service.service import Service

__all__ = ["Cleaning"]

_EXPIRED_AT_ONCE = 500

logger = logging.getLogger("matchmill.service")


class Cleaning:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="matchmill-clean", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._service.settings.cleanup_seconds):
            try:
                self.clean()
                self._service.engines.save(self._service.settings.checkpoint_changes)
            except Exception:
                self._service.metrics.count("matchmill_background_errors_total", kind="cleaning")
                logger.exception("cleaning failed; it will be tried again")

    def clean(self) -> None:
        """Remove what has expired or is too old, in transactions that stay short."""
        service, settings = self._service, self._service.settings
        retention = Retention(
            settings.keep_events, settings.keep_events_seconds * SECOND, settings.keep_changes
        )
        while not self._stopping.is_set():
            now = service.clock()
            gone = service.writer.submit(lambda w: w.remove_expired(now, _EXPIRED_AT_ONCE)).result()  # noqa: B023
            service.metrics.count("matchmill_expired_total", len(gone))
            n_forgotten = service.writer.submit(lambda w: w.forget(now, retention)).result()  # noqa: B023
            if len(gone) < _EXPIRED_AT_ONCE and not n_forgotten:
                return
