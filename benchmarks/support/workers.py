"""An object that lives in a process of its own: calls go there by a pipe, results come back.

parent: worker.call("method", …)   ──►   child: made.method(…)
        its result, or its error   ◄──

The process is a new interpreter, not a fork: it shares nothing with its parent but files.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

__all__ = ["Worker"]


class Worker:
    """The parent's side of an object in another process."""

    def __init__(self, make: Callable[..., object], *arguments: object) -> None:
        context = get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, make, arguments))
        self._process.start()
        theirs.close()
        self.pid: int = self.call("getpid")

    def call(self, method: str, *arguments: object) -> Any:
        """Call a method of the object over there, and wait for its result."""
        self.send(method, *arguments)
        return self.receive()

    def send(self, method: str, *arguments: object) -> None:
        """Ask for a call, and do not wait."""
        self._connection.send((method, arguments))

    def receive(self) -> Any:
        """Wait for the result of what was asked for."""
        is_good, result = self._connection.recv()
        if not is_good:
            raise RuntimeError(f"in a process of its own:\n{result}")
        return result

    def __enter__(self) -> Self:
        """Return this object."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process."""
        self._connection.close()  # it ends when there is nothing more to read
        self._process.join()


def _serve(connection: Connection, make: Callable[..., object], arguments: tuple[object]) -> None:
    import os

    made: object = None
    while True:
        try:
            method, values = connection.recv()
        except EOFError:
            return
        try:
            if made is None:
                made = make(*arguments)
            result = os.getpid() if method == "getpid" else getattr(made, method)(*values)
            connection.send((True, result))
        except Exception:  # noqa: BLE001, RUF100
            connection.send((False, traceback.format_exc()))
