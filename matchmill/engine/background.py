"""A thread that does one kind of job when it is woken, and sleeps otherwise.

    wake     do the job soon; several calls before it begins are one; the first starts the thread
    stop     no job begins any more; the thread ends after the one that is running

A job that raises does not end the thread: the error is kept until somebody takes it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from matchmill.kernels.forks import renewed_after_fork

__all__ = ["Worker"]


class Worker:
    """A thread with one job. After it is woken it waits `delay` seconds before it starts."""

    def __init__(self, name: str, job: Callable[[], None], *, delay: float = 0.0) -> None:
        self._name = name
        self._job = job
        self._delay = delay
        self._stopping = threading.Event()
        self._renew()
        renewed_after_fork(self)
        self.at_end: Callable[[], None] | None = None  # called once the last job is done
        self.error: BaseException | None = None

    def _renew(self) -> None:
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._awake = threading.Event()

    def after_fork(self) -> None:
        """In a forked child: there is no thread, whatever the parent had."""
        is_stopping = self.is_stopping
        self._renew()
        self._stopping = threading.Event()
        if is_stopping:
            self._stopping.set()

    @property
    def is_stopping(self) -> bool:
        """Whether the thread is to end."""
        return self._stopping.is_set()

    def wake(self) -> None:
        """Have the job done in the thread, which starts if need be."""
        is_alive = self._thread is not None and self._thread.is_alive()
        if is_alive and self._awake.is_set():
            return
        with self._starting:
            if not self.is_stopping and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._loop, name=self._name, daemon=True)
                self._thread.start()
        self._awake.set()

    def run(self) -> None:
        """Do the job in this thread; an error is kept, as from the other thread."""
        try:
            self._job()
        except Exception as error:  # the next write raises it
            self.error = error

    def stop(self, *, wait: bool) -> None:
        """End the thread. It calls `at_end`; without a thread, that happens here."""
        with self._starting:
            self._stopping.set()
        self._awake.set()
        if self._thread is None or not self._thread.is_alive():
            self._end()
        elif wait:
            self._thread.join()

    def _loop(self) -> None:
        while not self.is_stopping:
            self._awake.wait()
            self._stopping.wait(self._delay)
            self._awake.clear()
            if not self.is_stopping:
                self.run()
        self._end()

    def _end(self) -> None:
        at_end, self.at_end = self.at_end, None
        if at_end is not None:
            try:
                at_end()
            except Exception as error:  # close raises it
                self.error = error
