"""Answers that go on: server-sent events that are followed, events published as JSON lines."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from matchmill.client.transport import Lost, Patience, Request, Transport, losing
from matchmill.errors import ServiceError

__all__ = ["LineStream", "ServerEvent", "follow"]


class ServerEvent(NamedTuple):
    name: str
    value: Any
    id: str


def follow(transport: Transport, request: Request, last_id: str) -> Iterator[ServerEvent]:
    """The events of a stream, which is opened again after the last one whenever it breaks.

    It ends with the event `end`; ServiceError if asking again does not help.
    """
    patience = Patience(transport.retries)
    while True:
        headers = dict(request.headers) | ({"Last-Event-ID": last_id} if last_id else {})
        asked: float | None = None
        try:
            with transport.streaming(request._replace(headers=headers)) as response:
                for event in _events(response):
                    patience.renew()
                    if event.id:
                        last_id = event.id
                    yield event
                    if event.name == "end":
                        return
            lost = Lost("the stream has ended")
        except Lost as error:
            lost = error
        except ServiceError as error:
            if error.status not in (429, 502, 503, 504):
                raise
            lost, asked = Lost(error), error.retry_after
        if not patience.waited(asked):
            raise transport.unreachable(lost) from lost


def _events(response: http.client.HTTPResponse) -> Iterator[ServerEvent]:
    name, data, number = "message", [], ""
    while True:
        with losing():
            line = response.readline()
        if not line:
            return
        field, _, value = line.decode().rstrip("\r\n").partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
        elif field == "id":
            number = value
        elif not line.strip():
            if data:
                yield ServerEvent(name, json.loads("\n".join(data)), number)
            name, data, number = "message", [], ""


class LineStream:
    """A request that is still being written while its answer is read, in step.

    A group of lines is sent, then a line of result is read for each of them. So one thread is
    enough, and neither side ever waits for the other with full hands. If the connection breaks,
    the group is sent again: the service knows events by their ids.
    """

    def __init__(self, transport: Transport, request: Request) -> None:
        self._transport = transport
        self._request = request
        self._connection: http.client.HTTPConnection | None = None
        self._socket: Any = None  # the connection may let go of it when the answer has begun
        self._response: http.client.HTTPResponse | None = None

    def send(self, lines: Sequence[str]) -> list[Any]:
        """The results of some lines."""
        return self._transport.persist(lambda: self._sent(lines))

    def _sent(self, lines: Sequence[str]) -> list[Any]:
        if self._connection is None:
            self._connection = self._transport.opened(self._request)
            self._socket = self._connection.sock
        text = "".join(line + "\n" for line in lines).encode()
        try:
            with losing():
                self._socket.sendall(b"%x\r\n%b\r\n" % (len(text), text))
                if self._response is None:
                    self._response = self._connection.getresponse()
            self._transport.check(self._response, self._request)
            return [self._result() for _ in lines]
        except BaseException:
            self._drop()
            raise

    def _result(self) -> Any:
        assert self._response is not None
        with losing():
            line = self._response.readline()
        if not line.endswith(b"\n"):
            raise Lost("the stream of results has ended")
        return json.loads(line)

    def close(self) -> None:
        """Say that there are no more lines, and read the end of the answer."""
        try:
            if self._response is not None:
                with losing():
                    self._socket.sendall(b"0\r\n\r\n")
                    self._response.read()
        except Lost:
            pass  # every line has its result, so nothing was lost
        finally:
            self._drop()

    def _drop(self) -> None:
        for one in (self._response, self._connection):
            if one is not None:
                one.close()
        self._connection = self._response = self._socket = None
