"""A server that answers as it is told, to see what the client does when things go wrong."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

__all__ = ["Asked", "Scripted", "answer", "raw", "scripted"]


class Asked(NamedTuple):
    line: str
    headers: dict[str, str]
    body: bytes


Script = Callable[[socket.socket], bool]  # False closes the connection


def answer(status: int, value: Any = None, *headers: str) -> Script:
    """An answer in JSON, after which the connection stays open."""
    data = b"" if value is None else json.dumps(value).encode()
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(data)}", *headers, "", ""]

    def send(connection: socket.socket) -> bool:
        connection.sendall("\r\n".join(lines).encode() + data)
        return True

    return send


def raw(data: bytes) -> Script:
    """Bytes, and the end of the connection."""

    def send(connection: socket.socket) -> bool:
        connection.sendall(data)
        return False

    return send


class Scripted:
    """Gives one answer after the other; keeps what it was asked."""

    def __init__(self, answers: Sequence[Script], context: ssl.SSLContext | None) -> None:
        self._answers = iter(answers)
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
                except OSError:  # who does not trust us goes away
                    connection.close()
                    continue
            with connection, suppress(OSError), connection.makefile("rb") as reading:
                while (asked := _read(reading)) is not None:
                    self.asked.append(asked)
                    if not next(self._answers)(connection):
                        break

    def close(self) -> None:
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
    if headers.get("transfer-encoding") == "chunked":
        body = reading.read(int(reading.readline(), 16))  # the first piece is all we look at
        reading.readline()
    return Asked(line, headers, body)


@contextmanager
def scripted(*answers: Script, context: ssl.SSLContext | None = None) -> Iterator[Scripted]:
    server = Scripted(answers, context)
    try:
        yield server
    finally:
        server.close()
