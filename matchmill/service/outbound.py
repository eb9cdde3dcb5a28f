"""One POST to a URL that a subscriber gave, so that it cannot reach what it should not.

The host is resolved once, all its addresses must be public (unless a setting allows others), and
the connection goes to the address that was checked: a name that resolves differently the second
time gains nothing. Redirects are not followed. Of the response, the status is used, and for a
challenge the beginning of its body.

One deadline covers everything: resolving, connecting, TLS, sending, and a response that drips or
begins again and again (`100 Continue`). Before the deadline, a response ends at 16 kB. This is why
the few lines of HTTP are ours: `http.client` reads as long as there are lines.

An error says what its reader may know. It names neither addresses nor what the system has reported,
so nobody learns from it which hosts and ports exist in the network of the service.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from matchmill.errors import InputError

__all__ = ["NotDelivered", "Response", "check_url", "is_public", "post"]

_MOST_URL = 2_000
_MOST_HEADERS = 16_384  # bytes, of all responses together that say "continue"
_MOST_BODY = 4_096  # bytes of a body that are read at most

# What IANA lists as not globally reachable, and addresses that clouds use inside. Written down
# here because the tables of `ipaddress` differ between versions of Python.
_NOT_PUBLIC = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "168.63.129.16/32",  # Azure's platform
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/3",
        ),
    )
)
# In IPv6 the other way round: only global unicast addresses, without those that hold an IPv4
# address or are for special use. So mapped, translated, local and unassigned ones are all out.
_PUBLIC_6 = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    map(
        ipaddress.IPv6Network,
        ("2001::/23", "2001:db8::/32", "2002::/16", "3ffe::/16", "3fff::/20"),
    )
)

logger = logging.getLogger("matchmill.service")


class NotDelivered(OSError):
    """A call that was not accepted; its text may be shown to the subscriber."""


class Response(NamedTuple):
    """What a receiver has answered."""

    status: int
    body: bytes  # the beginning of it


def check_url(url: str) -> SplitResult:
    """Return the parts of a URL that may be called; InputError if it may not."""
    if len(url) > _MOST_URL:
        raise InputError(f"a webhook's URL may have {_MOST_URL:,} characters")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise InputError("a webhook's URL has only printable ASCII characters, and no spaces")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InputError(f"the webhook's URL cannot be read: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError("a webhook's URL is like https://example.org/matches")
    if parts.username is not None or parts.password is not None:
        raise InputError("a webhook's URL holds no user and no password; messages are signed")
    if port == 0:
        raise InputError("a webhook's URL cannot have port 0")
    return parts


def post(
    url: str, body: bytes, headers: Mapping[str, str], *, timeout: float, allow_private: bool
) -> Response:
    """Send a message; NotDelivered with the reason if it was not accepted."""
    deadline = time.monotonic() + timeout
    try:
        response = _posted(check_url(url), body, headers, deadline, allow_private)
    except (OSError, ValueError) as error:
        logger.debug("a webhook was not called: %s", error)
        if time.monotonic() >= deadline or isinstance(error, TimeoutError):
            message = f"there was no complete response in {timeout:g} seconds"
            raise NotDelivered(message) from None
        if isinstance(error, NotDelivered):
            raise
        if isinstance(error, ssl.SSLError):
            raise NotDelivered("no secure connection: the certificate or TLS fails") from None
        raise NotDelivered("the connection was not accepted, or broke off") from None
    if not 200 <= response.status < 300:
        raise NotDelivered(f"the response has status {response.status}")
    return response


def _posted(
    parts: SplitResult,
    body: bytes,
    headers: Mapping[str, str],
    deadline: float,
    allow_private: bool,
) -> Response:
    host = parts.hostname or ""
    is_secure = parts.scheme == "https"
    port = parts.port or (443 if is_secure else 80)
    addresses = _checked_addresses(host, port, allow_private, deadline)
    connection = _connected(addresses, port, deadline)
    try:
        if is_secure:
            connection.settimeout(_left(deadline))  # of the whole handshake
            context = ssl.create_default_context()
            connection = context.wrap_socket(connection, server_hostname=host)
        _send(connection, _request(parts, body, headers), deadline)
        return _response(connection, deadline)
    finally:
        connection.close()


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("the time is over")
    return left


# -- addresses ------------------------------------------------------------------------------------


def _checked_addresses(host: str, port: int, allow_private: bool, deadline: float) -> list[str]:
    addresses = _resolved(host, port, deadline)
    if not addresses or not (allow_private or all(map(is_public, addresses))):
        raise NotDelivered("the host has no address that may be called")
    return addresses


def _resolved(host: str, port: int, deadline: float) -> list[str]:
    """Resolve a name, in a thread of its own: the system's resolver takes as long as it likes."""
    found: list[str] = []

    def resolve() -> None:
        # What cannot be resolved has no addresses.
        with contextlib.suppress(OSError, UnicodeError):
            infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found.extend(str(info[4][0]) for info in infos)

    thread = threading.Thread(target=resolve, name="matchmill-resolve", daemon=True)
    thread.start()
    thread.join(_left(deadline))
    _left(deadline)
    return found


def is_public(text: str) -> bool:
    """Return whether an address is one that anybody in the Internet could call.

    >>> [is_public(text) for text in ("93.184.216.34", "10.0.0.1", "64:ff9b::a00:1")]
    [True, False, False]
    """
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC)
    return address in _PUBLIC_6 and not any(address in network for network in _NOT_PUBLIC_6)


def _connected(addresses: list[str], port: int, deadline: float) -> socket.socket:
    """Connect to the first address that accepts a connection."""
    problem = OSError("there is no address")
    for address in addresses:
        try:
            return socket.create_connection((address, port), timeout=_left(deadline))
        except OSError as error:
            problem = error
    raise problem


# -- HTTP -----------------------------------------------------------------------------------------


def _request(parts: SplitResult, body: bytes, headers: Mapping[str, str]) -> bytes:
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = parts.netloc
    lines = [f"POST {target} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {len(body)}", "Connection: close", "", ""]
    return "\r\n".join(lines).encode("ascii") + body


def _send(connection: socket.socket, data: bytes, deadline: float) -> None:
    rest = memoryview(data)
    while rest:
        connection.settimeout(_left(deadline))
        rest = rest[connection.send(rest) :]


def _response(connection: socket.socket, deadline: float) -> Response:
    pieces = _received(connection, deadline)
    received = b""
    n_bytes = 0
    while True:
        while (end := received.find(b"\r\n\r\n")) < 0:
            piece = next(pieces, b"")
            n_bytes += len(piece)
            if not piece or n_bytes > _MOST_HEADERS:
                raise NotDelivered("the response is not HTTP, or its header has no end")
            received += piece
        head, received = received[:end], received[end + 4 :]
        status = _status(head)
        if status >= 200:
            break
    if 200 <= status < 300:
        received = _body(head, received, pieces)
    return Response(status, received[:_MOST_BODY])


def _received(connection: socket.socket, deadline: float) -> Iterator[bytes]:
    while True:
        connection.settimeout(_left(deadline))
        piece = connection.recv(4_096)
        if not piece:
            return
        yield piece


def _status(head: bytes) -> int:
    version, _, rest = head.partition(b"\r\n")[0].partition(b" ")
    digits = rest[:3]
    if not version.startswith(b"HTTP/1.") or len(digits) != 3 or not digits.isdigit():
        raise NotDelivered("the response is not HTTP")
    return int(digits)


def _body(head: bytes, received: bytes, pieces: Iterator[bytes]) -> bytes:
    """Return the beginning of a body, as far as its length is announced."""
    n_bytes = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            n_bytes = int(value.strip()[:9])
        if name.strip().lower() == b"transfer-encoding":
            n_bytes = _MOST_BODY  # in chunks: until the connection ends
    while len(received) < min(n_bytes, _MOST_BODY):
        piece = next(pieces, b"")
        if not piece:
            break
        received += piece
    return received
