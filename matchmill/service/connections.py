"""Connections that send no header: closed in time, and the oldest first if there are many.

A connection costs a descriptor before anybody knows whose it is. A sender who means it sends the
header at once, so those that have waited longest are the ones to lose. Connections that are kept
for a next request count, too: they can be opened again.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["SilentConnections", "protocol_class"]


class SilentConnections:
    """Connections from which the service waits for a header, the oldest first."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self.seconds = seconds
        self._waiting: dict[H11Protocol, None] = {}
        self.n_closed = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, connection: H11Protocol) -> None:
        """Note a connection; if there are too many, close the one that has waited longest."""
        self._waiting[connection] = None
        n_descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)  # half is for those who send
        if len(self._waiting) > min(self._most, n_descriptors // 2):
            self.close(next(iter(self._waiting)))

    def discard(self, connection: H11Protocol) -> None:
        """Forget a connection that has sent its header, or is closed."""
        self._waiting.pop(connection, None)

    def close(self, connection: H11Protocol) -> None:
        """Close a connection, without waiting for its end."""
        self.discard(connection)
        self.n_closed += 1
        connection.transport.abort()


def protocol_class(silent: SilentConnections, most: int) -> type[H11Protocol]:
    """Return uvicorn's protocol, with a time for each header, and so many connections at most.

    The event loop accepts connections faster than it can answer requests; without an end to that,
    a flood fills the memory.
    """

    class Protocol(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None

        def _await_header(self) -> None:
            if self._deadline is None:
                self._deadline = self.loop.call_later(silent.seconds, silent.close, self)
                silent.add(self)

        def _has_header(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None
            silent.discard(self)

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if max(len(self.connections), len(self.tasks)) > most:
                transport.abort()  # before its request costs anything
            else:
                self._await_header()

        def connection_lost(self, exc: Exception | None) -> None:
            self._has_header()
            super().connection_lost(exc)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self.cycle.response_complete and not self.transport.is_closing():
                silent.add(self)  # until the next request; uvicorn's own timer ends it, too

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._has_header()
            elif not self.transport.is_closing():
                self._await_header()  # the beginning of the next one, on a connection that is kept

    return Protocol
