"""Requests over connections that are kept, tried again where that is safe.

not connected               nothing was sent: any call is tried again
429, 503 "nothing was done" the same, after as long as the service says
broken off, 502, 503, 504   only calls that may be repeated; of others it is not known whether
                            they were done, and the error says so
"""

from __future__ import annotations

import http.client
import json
import random
import select
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from matchmill.client.responses import error_of
from matchmill.errors import InputError, ServiceError

__all__ = ["Lost", "Patience", "Request", "Transport", "losing"]

_FIRST_WAIT = 0.1
_LONGEST_WAIT = 5.0
_LONGEST_ASKED_WAIT = 60.0
_MOST_IDLE = 8
_NOTHING_DONE = {"overloaded", "not_ready", "too_many_streams"}

T = TypeVar("T")


class Request(NamedTuple):
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes | None = None
    is_repeatable: bool = True
    timeout: float | None = None  # None: that of the client
    expression: str | None = None  # to show where in it a mistake is


class Lost(Exception):
    """There is no answer. `was_sent` says whether the request may have been read."""

    def __init__(self, reason: object, was_sent: bool = True) -> None:
        super().__init__(str(reason) or type(reason).__name__)
        self.was_sent = was_sent


@contextmanager
def losing(was_sent: bool = True) -> Iterator[None]:
    """What a broken connection raises, as Lost."""
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        raise Lost(error, was_sent) from error


class Patience:
    """How often, and how long, to wait before something is tried again."""

    def __init__(self, retries: int) -> None:
        self._retries = retries
        self.renew()

    def renew(self) -> None:
        """It went well in between."""
        self._left = self._retries
        self._wait = _FIRST_WAIT

    def waited(self, asked: float | None = None) -> bool:
        """Wait, and True; False if it was tried often enough."""
        if self._left <= 0:
            return False
        self._left -= 1
        wait = self._wait * random.uniform(0.5, 1.0)
        if asked is not None:
            wait = min(max(wait, asked), _LONGEST_ASKED_WAIT)
        time.sleep(wait)
        self._wait = min(2 * self._wait, _LONGEST_WAIT)
        return True


class Transport:
    """Used by many threads: each request has a connection of its own, and gives it back."""

    def __init__(
        self, url: str, *, timeout: float, retries: int, context: ssl.SSLContext | None
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"the url must be like http://host:8080, not {url!r}")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise InputError("the url has a user, a query or a fragment; a key goes into key=…")
        self.url = url.rstrip("/")
        self.timeout = timeout
        self.retries = retries
        self._prefix = parts.path.rstrip("/")
        self._host, self._port = parts.hostname, parts.port
        self._context = context
        if parts.scheme == "https" and context is None:
            self._context = ssl.create_default_context()
        self._is_secure = parts.scheme == "https"
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def ask(self, request: Request) -> Any:
        """The value of the answer, None if it has none; ServiceError if it tells of one."""
        return self.persist(lambda: self._asked(request), request.is_repeatable)

    def persist(self, work: Callable[[], T], is_repeatable: bool = True) -> T:
        """Do something until it goes well, or trying again would not help or not be safe."""
        patience = Patience(self.retries)
        while True:
            try:
                return work()
            except ServiceError as error:
                if not _may_repeat(error, is_repeatable) or not patience.waited(error.retry_after):
                    raise
            except Lost as lost:
                if lost.was_sent and not is_repeatable:
                    raise self._unknown(lost) from lost
                if not patience.waited():
                    raise self.unreachable(lost) from lost

    def _asked(self, request: Request) -> Any:
        connection = self._connected(request)
        is_kept = False
        try:
            with losing():
                connection.request(
                    request.method,
                    self._prefix + request.path,
                    request.body,
                    dict(request.headers),
                )
                response = connection.getresponse()
                has_end = response.chunked or response.length is not None
                data = response.read()
            if not has_end:  # one that was cut off in its head would look as good
                raise Lost("the answer does not say how long it is")
            is_kept = not response.will_close
            return _value(response, data, request)
        finally:
            if is_kept:
                self._give_back(connection)
            else:
                connection.close()

    @contextmanager
    def streaming(self, request: Request) -> Iterator[http.client.HTTPResponse]:
        """An answer to be read piece by piece."""
        connection = self._connected(request)
        try:
            with losing():
                path = self._prefix + request.path
                connection.request(request.method, path, request.body, dict(request.headers))
                response = connection.getresponse()
            self.check(response, request)
            yield response
        finally:
            connection.close()

    def opened(self, request: Request) -> http.client.HTTPConnection:
        """A connection with the head of a request sent; the caller writes, reads and closes."""
        connection = self._connected(request)
        try:
            with losing():
                connection.putrequest(request.method, self._prefix + request.path)
                for name, value in request.headers.items():
                    connection.putheader(name, value)
                connection.endheaders()
        except BaseException:
            connection.close()
            raise
        return connection

    def check(self, response: http.client.HTTPResponse, request: Request) -> None:
        """ServiceError if an answer that has begun tells of one."""
        if response.status != 200:
            with losing():
                data = response.read()
            _value(response, data, request)

    def unreachable(self, lost: Lost) -> ServiceError:
        return ServiceError(
            f"{self.url} does not answer: {lost}",
            code="unreachable",
            hint="is the address right, and is `matchmill serve` running there?",
        )

    def _unknown(self, lost: Lost) -> ServiceError:
        return ServiceError(
            f"the connection to {self.url} broke before the answer came: {lost}",
            code="unknown_outcome",
            hint="whether it was done is not known: look before you do it again",
        )

    # -- connections ------------------------------------------------------------------------------

    def _connected(self, request: Request) -> http.client.HTTPConnection:
        timeout = self.timeout if request.timeout is None else request.timeout
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                break
            if _is_silent(connection):
                connection.sock.settimeout(timeout)
                return connection
            connection.close()
        connection = self._made(timeout)
        with losing(was_sent=False):
            connection.connect()
        return connection

    def _made(self, timeout: float) -> http.client.HTTPConnection:
        if self._is_secure:
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=timeout, context=self._context
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)

    def _give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()


def _is_silent(connection: http.client.HTTPConnection) -> bool:
    """False if the other side has closed it: then there is an end to be read."""
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return not poll.poll(0)


def _may_repeat(error: ServiceError, is_repeatable: bool) -> bool:
    if error.status == 429 or (error.status == 503 and error.code in _NOTHING_DONE):
        return True
    return error.status in (502, 503, 504) and is_repeatable


def _value(response: http.client.HTTPResponse, data: bytes, request: Request) -> Any:
    status = response.status
    try:
        value: Any = json.loads(data) if data else None
        if 200 <= status < 300:
            return value
        after = response.headers.get("Retry-After", "")
        retry_after = float(after) if after.isascii() and after.isdigit() else None
        raise error_of(value["error"], status, request.expression, retry_after)
    except (ValueError, KeyError, TypeError):  # a proxy's own words, or no matchmill at all
        hint = "is this the address of a matchmill service?"
        if 300 <= status < 400:
            hint = f"it points to {response.headers.get('Location')}: give that as the url"
        message = f"{request.method} {request.path}: the answer {status} is not one of matchmill's"
        raise ServiceError(message, status=status, code="not_matchmill", hint=hint) from None
