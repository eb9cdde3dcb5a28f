"""`matchmill serve`: the service on a folder."""

from __future__ import annotations

import argparse
import os
import socket
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from matchmill.cli.arguments import add_common, add_operators, examples
from matchmill.cli.exit_codes import ALL_GOOD
from matchmill.cli.targets import import_operators
from matchmill.errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    from matchmill.service.settings import ServiceSettings

__all__ = ["add_arguments", "add_store", "run", "service_settings"]


def add_store(parser: argparse.ArgumentParser) -> None:
    """Add the folder of a service, and where its store and its secret are."""
    parser.add_argument("folder", metavar="FOLDER", help="made if it does not exist")
    parser.add_argument(
        "--store",
        metavar="URL",
        help="postgresql://…, which several processes may share (default: a file in the folder)",
    )
    parser.add_argument(
        "--secret-file",
        metavar="FILE",
        help="the key with which secrets are hashed (default: FOLDER/secret, made if new)",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.usage = "matchmill serve FOLDER [--store URL] [--host HOST] [--port PORT] [options]"
    parser.description = (
        "Serve from a folder: subscribe, publish, and receive matches over HTTP. What was\n"
        "confirmed is in the folder's store, or in PostgreSQL. docs/guides/SERVICE.md tells\n"
        "more. Needs starlette and uvicorn: pip install 'matchmill[service]'.\n\n"
        "Ctrl-C or SIGTERM ends it in good order. It speaks HTTP without TLS: put a proxy in\n"
        "front of it, or keep it on the loopback address."
    )
    add_store(parser)
    parser.add_argument(
        "--host", metavar="HOST", default="127.0.0.1", help="where to listen (default: 127.0.0.1)"
    )
    parser.add_argument(
        "--port",
        metavar="PORT",
        type=int,
        default=8080,
        help="the port (default: 8080; 0 takes a free one)",
    )
    add_operators(parser)
    add_common(parser)
    parser.epilog = f"{_settings_help()}\n\n" + examples(
        "matchmill keys add alerts --tenant acme",
        "matchmill serve alerts --port 8080 --setting max_streams=1000",
        "matchmill serve here --store postgresql://matchmill@db/matchmill",
    )


def _settings_help() -> str:
    """List the settings; a variable is overridden by --setting."""
    from matchmill.service.settings import ServiceSettings
    from matchmill.settings import list_settings

    lines = [
        "settings, given as --setting NAME=VALUE, or as variables such as MATCHMILL_MAX_STREAMS:"
    ]
    for one in list_settings(ServiceSettings):
        default = f"{one.default:_}" if type(one.default) is int else one.default
        lines.append(f"  {one.name} = {default if default != '' else '(empty)'}")
        lines += textwrap.wrap(one.help, 82, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines)


def service_settings(texts: list[str], environment: Mapping[str, str]) -> ServiceSettings:
    """Return the settings of variables and of --setting, which goes first."""
    from matchmill.service.settings import ServiceSettings
    from matchmill.settings import list_settings, make_settings, parse_setting

    values = {}
    for one in list_settings(ServiceSettings):
        variable = f"MATCHMILL_{one.name.upper()}"
        if variable in environment:
            try:
                values[one.name] = one.parse(environment[variable])
            except InputError as error:
                raise InputError(f"{variable}: {error}") from None
    values.update(parse_setting(ServiceSettings, text) for text in texts)
    return make_settings(ServiceSettings, values)


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal ends it."""
    try:
        from matchmill.service.server import serve
        from matchmill.service.service import Service
    except ImportError as error:
        raise MissingDependencyError(
            f"the service needs {error.name}: pip install 'matchmill[service]'"
        ) from error
    import_operators(arguments)
    settings = service_settings(arguments.settings, os.environ)
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
