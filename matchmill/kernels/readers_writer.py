"""A lock for what changes in place: any number of readers at a time, or one writer.

    turn       held while one waits to come in; a writer keeps it, so new readers wait behind it
    counting   held while `n_readers` changes
    empty      held by the readers together, or by the writer

Only for threads that no signal handler interrupts (`uninterrupted.py`): it is not released
otherwise. It cannot be entered twice by one thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

__all__ = ["ReadersWriterLock"]


class ReadersWriterLock:
    """Readers together, or one writer."""

    __slots__ = ("_counting", "_empty", "_n_readers", "_turn")

    def __init__(self) -> None:
        self._turn, self._counting, self._empty = Lock(), Lock(), Lock()
        self._n_readers = 0

    def begin_reading(self) -> None:
        """Wait until nobody writes."""
        with self._turn, self._counting:
            self._n_readers += 1
            if self._n_readers == 1:
                self._empty.acquire()

    def end_reading(self) -> None:
        """Let a writer in, if this was the last reader."""
        with self._counting:
            self._n_readers -= 1
            if self._n_readers == 0:
                self._empty.release()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold this around a change: nobody else reads or writes."""
        with self._turn, self._empty:
            yield
