"""A server that responds as it is told, to see what a client does when things go wrong."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

__all__ = ["Asked", "Scripted", "problem", "raw", "respond", "scripted"]


class Asked(NamedTuple):
    """A request that the server has read."""

    line: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the value of the body."""
        return json.loads(self.body)


Script = Callable[[socket.socket], bool]  # False closes the connection


def respond(status: int, value: Any = None, *headers: str) -> Script:
    """Respond with JSON; the connection stays open."""
    data = b"" if value is None else json.dumps(value).encode()
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(data)}", *headers, "", ""]

    def send(connection: socket.socket) -> bool:
        connection.sendall("\r\n".join(lines).encode() + data)
        return True

    return send


def problem(status: int, code: str, *headers: str, **more: Any) -> Script:
    """Respond with a problem."""
    value = {"type": f"urn:matchmill:{code}", "title": "X", "status": status, "code": code}
    return respond(status, value | {"detail": "no", "hint": "do"} | more, *headers)


def raw(data: bytes) -> Script:
    """Send bytes, and end the connection."""

    def send(connection: socket.socket) -> bool:
        connection.sendall(data)
        return False

    return send


class Scripted:
    """Gives one response after the other; keeps what it was asked."""

    def __init__(self, responses: Sequence[Script], context: ssl.SSLContext | None) -> None:
        self._responses = iter(responses)
        self._context = context
        self.asked: list[Asked] = []
        self.n_connections = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.n_connections += 1
            if self._context is not None:
                try:
                    connection = self._context.wrap_socket(connection, server_side=True)
                except OSError:  # a client that does not trust us goes away
                    connection.close()
                    continue
            with connection, suppress(OSError), connection.makefile("rb") as reading:
                while (asked := _read(reading)) is not None:
                    self.asked.append(asked)
                    if not next(self._responses)(connection):
                        break

    def close(self) -> None:
        """Stop, and wait for the thread."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()


def _read(reading: Any) -> Asked | None:
    line = reading.readline().decode().strip()
    if not line:
        return None
    headers = {}
    while header := reading.readline().decode().strip():
        name, _, value = header.partition(": ")
        headers[name.lower()] = value
    body = reading.read(int(headers.get("content-length", 0)))
    return Asked(line, headers, body)


@contextmanager
def scripted(*responses: Script, context: ssl.SSLContext | None = None) -> Iterator[Scripted]:
    """Run a server that gives these responses."""
    server = Scripted(responses, context)
    try:
        yield server
    finally:
        server.close()
