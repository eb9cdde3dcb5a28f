"""Fails at once while a database is away, so that nobody waits for what others have waited for.

    works ──a failure──► away ──after 0.25 s──► one caller tries ──► works, or away again
                          └─ all others get the last error at once

Without it, hundreds of requests would each wait for a timeout, a few at a time, and the last ones
would be answered minutes after the database is back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from matchmill.errors import StoreError

__all__ = ["Breaker"]

_RETRY_SECONDS = 0.25


class Breaker:
    """Any thread may use it.

    Parameters
    ----------
    name
        What is behind it, for messages.
    is_failure
        Returns whether an error says that it is away.
    """

    def __init__(self, name: str, is_failure: Callable[[Exception], bool]) -> None:
        self._name = name
        self._is_failure = is_failure
        self._lock = threading.Lock()
        self._retry_at = 0.0
        self._is_tried = False  # by one caller, while others are rejected
        self.error: str | None = None  # why it is away; None while it works

    @contextmanager
    def trying(self) -> Iterator[Callable[[], None]]:
        """Do something with what is behind it; StoreError if that is away, or turns out to be.

        Gives a function to be called as soon as it is known to work, if that is before the end.
        """
        is_trial = self._enter()
        try:
            yield lambda: self._leave(is_trial, None)
        except Exception as error:
            is_failure = self._is_failure(error)
            self._leave(is_trial, _line(error) if is_failure else None)
            if is_failure:
                raise StoreError(f"{self._name} failed: {_line(error)}") from error
            raise
        except BaseException:
            with self._lock:  # it shows nothing about the database
                self._is_tried = self._is_tried and not is_trial
            raise
        self._leave(is_trial, None)

    def _enter(self) -> bool:
        """Return whether this caller is the one that tries; StoreError for all others."""
        if self.error is None:  # the lock is not worth its time while everything works
            return False
        with self._lock:
            return self._is_trial()

    def _is_trial(self) -> bool:
        if self.error is None:
            return False
        if self._is_tried or time.monotonic() < self._retry_at:
            raise StoreError(f"{self._name} is away: {self.error}")
        self._is_tried = True
        return True

    def _leave(self, is_trial: bool, error: str | None) -> None:
        if error is None and self.error is None:
            return
        with self._lock:
            if is_trial:
                self._is_tried = False
            if error is not None:
                self.error = error
                self._retry_at = time.monotonic() + _RETRY_SECONDS
            elif is_trial:  # one that began earlier proves nothing
                self.error = None


def _line(error: Exception) -> str:
    """Return the message of an error in one line; libpq's have several."""
    return " ".join(str(error).split()) or type(error).__name__
