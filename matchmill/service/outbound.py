"""One POST to a URL that a subscriber gave, so that it cannot reach what it should not.

The host is resolved once, all its addresses must be public (unless a setting allows others), and
the connection goes to the address that was checked: a name that resolves differently the second
time gains nothing. Redirects are not followed, only the status of the response is read, and one
timeout covers everything.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from matchmill.errors import InputError

__all__ = ["check_url", "post"]

_MOST_URL = 2_000


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
) -> None:
    """Send a message; OSError with the reason if it was not accepted."""
    deadline = time.monotonic() + timeout
    parts = check_url(url)
    host = parts.hostname or ""
    is_secure = parts.scheme == "https"
    port = parts.port or (443 if is_secure else 80)
    raw = _connected(_checked_addresses(host, port, allow_private), port, deadline)
    # The timeout of a socket starts again with every byte; this one does not.
    watchdog = threading.Timer(max(0.0, deadline - time.monotonic()), _cut, (raw,))
    watchdog.daemon = True
    watchdog.start()
    make = http.client.HTTPSConnection if is_secure else http.client.HTTPConnection
    connection = make(host, port, timeout=timeout)
    try:
        connection.sock = raw
        if is_secure:
            connection.sock = ssl.create_default_context().wrap_socket(raw, server_hostname=host)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", path, body, dict(headers))
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        if time.monotonic() >= deadline:  # however the interruption shows
            raise OSError(f"there was no complete response in {timeout:g} seconds") from error
        if isinstance(error, http.client.HTTPException):
            raise OSError(f"the response is not HTTP ({type(error).__name__})") from error
        raise
    finally:
        watchdog.cancel()
        connection.close()
        raw.close()
    if not 200 <= status < 300:
        raise OSError(f"the response has status {status}")


def _connected(addresses: list[str], port: int, deadline: float) -> socket.socket:
    """Connect to the first address that accepts a connection."""
    problem = OSError("there was no time to connect")
    for address in addresses:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        try:
            return socket.create_connection((address, port), timeout=left)
        except OSError as error:
            problem = error
    raise problem


def _cut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it has ended already


def _checked_addresses(host: str, port: int, allow_private: bool) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise OSError(f"{host[:80]!r} is not the name of a host") from None
    addresses = [str(info[4][0]) for info in found]
    if not allow_private:
        for address in addresses:
            if not _is_public(address):
                raise OSError(f"{host} is at a private address, and the service does not call it")
    return addresses


def _is_public(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            return _is_public(str(inner))
        if address.teredo is not None or address in ipaddress.ip_network("64:ff9b::/96"):
            return False
    return address.is_global and not address.is_multicast
