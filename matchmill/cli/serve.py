"""`matchmill serve`: the service on a folder."""

from __future__ import annotations

import argparse
import socket
import sys
from pathlib import Path

from matchmill.cli.exit_codes import ALL_GOOD
from matchmill.cli.load_engine import import_operators
from matchmill.errors import InputError, MissingDependencyError
from matchmill.service.settings import ServiceSettings
from matchmill.settings import parse_settings

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    try:
        from matchmill.service.server import serve
        from matchmill.service.service import Service
    except ImportError as error:
        raise MissingDependencyError(
            f"the service needs {error.name}: pip install 'matchmill[service]'"
        ) from error
    import_operators(arguments)
    settings = parse_settings(ServiceSettings, arguments.settings)
    with _listening(arguments.host, arguments.port) as listening:
        service = Service(
            Path(arguments.folder),
            settings,
            store_url=arguments.store,
            secret_file=Path(arguments.secret_file) if arguments.secret_file else None,
        )

        def started() -> None:
            host, port = listening.getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            print(f"matchmill: serving {arguments.folder} on http://{shown}:{port}", flush=True)
            with service.store.reading() as reading:
                if not reading.tenants() and not arguments.quiet:
                    hint = f"matchmill keys add {arguments.folder} --tenant NAME"
                    print(f"matchmill: there are no keys yet: {hint}", file=sys.stderr)

        serve(service, listening, started)
    return ALL_GOOD


def _listening(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise InputError(f"--port must be between 0 and 65535, not {port}")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise InputError(f"cannot listen on {host}, port {port}: {error.strerror}") from error
