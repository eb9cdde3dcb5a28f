"""Runs a service on uvicorn until a signal stops it."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from matchmill.service.app import make_app
from matchmill.service.connections import SilentConnections, protocol_class
from matchmill.service.file_limit import raise_file_limit
from matchmill.service.service import Service

__all__ = ["serve"]

_MOST_REQUESTS = 2_000  # connections besides those that may wait for matches
_SWITCH_SECONDS = 0.0005
# asyncio accepts a batch before it looks at any of them. With a large one, a flood takes all
# descriptors before the first silent connection is closed, and nothing is accepted for a second.
_ACCEPTED_AT_ONCE = 32
_MOST_IN_QUEUE = 2_048
logger = logging.getLogger("matchmill.service")


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, service: Service, started: Callable[[], None]):
        super().__init__(config)
        self._service = service
        self._say_started = started
        self.also_closed: socket.socket | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for one in sockets or ():
            one.listen(_MOST_IN_QUEUE)  # in the kernel; asyncio has made it as short as a batch
        self._say_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.hub.stop()  # streams would never end
        self._service.end_soon()
        if self.also_closed is not None:
            self.also_closed.close()  # a new connection is refused, and does not wait
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop the service cleanly on a signal, and do nothing else."""
        before = {
            number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit and number == signal.SIGINT
        self.should_exit = True


def serve(
    service: Service, listening: socket.socket, started: Callable[[], None] = lambda: None
) -> None:
    """Answer requests on a socket until SIGINT or SIGTERM arrives.

    Parameters
    ----------
    service
        A service that was not started.
    listening
        A socket that listens; it is closed when the service stops.
    started
        Called when requests can be sent.

    Examples
    --------
    >>> import socket
    >>> from matchmill.service import Service, serve
    >>> serve(Service("alerts"), socket.create_server(("127.0.0.1", 8080)))  # doctest: +SKIP
    """
    _log_to_stderr()
    settings = service.settings
    silent = SilentConnections(settings.max_silent_connections, settings.request_seconds)
    # Threads that compute hand over sooner: a request changes threads some times, and waits for
    # each change as long as this while another tenant's events are matched.
    sys.setswitchinterval(_SWITCH_SECONDS)
    raise_file_limit()
    _warn_of_network(listening)
    config = uvicorn.Config(
        make_app(service),
        http=protocol_class(silent, settings.max_streams + _MOST_REQUESTS),
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        lifespan="on",
        timeout_graceful_shutdown=settings.shutdown_seconds,
        timeout_keep_alive=75,
        backlog=_ACCEPTED_AT_ONCE,
        h11_max_incomplete_event_size=64 << 10,
    )
    # Small responses go out at once (TCP_NODELAY): asyncio arranges that for sockets that say
    # that they are TCP's. `socket.create_server` makes sockets that do not.
    protocol = 0 if listening.family == getattr(socket, "AF_UNIX", None) else socket.IPPROTO_TCP
    tcp = socket.socket(listening.family, listening.type, protocol, os.dup(listening.fileno()))
    server = _Server(config, service, started)
    server.also_closed = listening
    asyncio.run(server.serve(sockets=[tcp]))


def _warn_of_network(listening: socket.socket) -> None:
    if listening.family not in (socket.AF_INET, socket.AF_INET6):
        return
    address = ipaddress.ip_address(listening.getsockname()[0].partition("%")[0])
    if not address.is_loopback:
        logger.warning(
            "listening on %s without TLS: keys, tickets and events can be read on the way; put a"
            " proxy with TLS before the service, and let it listen on the loopback address",
            address,
        )


def _log_to_stderr() -> None:
    plain = logging.StreamHandler(sys.stderr)
    plain.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(logging.Formatter("%(message)s"))
    for name, handler, level in (
        ("uvicorn", plain, logging.WARNING),
        ("matchmill.service", plain, logging.INFO),
        ("matchmill.access", lines, logging.INFO),
    ):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False
