"""The arguments of the commands around the service: serve, keys, backup."""

from __future__ import annotations

import argparse
from typing import Any

from matchmill.cli.arguments import EXIT_CODES, add_common, add_format, formatted
from matchmill.service.schemas import SCOPES

__all__ = ["add_backup", "add_keys", "add_serve"]


def add_serve(commands: Any) -> None:
    parser = formatted(
        commands.add_parser,
        "serve",
        help="serve subscriptions and events over HTTP",
        usage="matchmill serve FOLDER [--store URL] [--host HOST] [--port PORT] [options]",
        description=(
            "Serve from a folder: subscribe, publish, and get matches over HTTP. What was\n"
            "acknowledged is in the folder's store, or in PostgreSQL. docs/guides/SERVICE.md\n"
            "tells more. Needs starlette and uvicorn: pip install 'matchmill[service]'."
        ),
        epilog=(
            "It ends in good order by Ctrl-C or SIGTERM. It speaks HTTP without TLS: put a\n"
            "proxy before it, or keep it on the loopback address.\n\n"
            "examples:\n"
            "  matchmill keys add alerts --tenant acme\n"
            "  matchmill serve alerts --port 8080\n"
            "  matchmill serve here --store postgresql://matchmill@db/matchmill\n\n"
        )
        + EXIT_CODES,
    )
    _add_place(parser)
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
    parser.add_argument(
        "--operators",
        metavar="MODULE",
        action="append",
        default=[],
        help="import this module, which registers operators; may be repeated",
    )
    parser.add_argument(
        "--setting",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        dest="settings",
        help="change a setting, such as max_streams=10000; may be repeated",
    )
    add_common(parser, "serve")


def add_keys(commands: Any) -> None:
    parser = formatted(
        commands.add_parser,
        "keys",
        prog="matchmill keys",
        help="make, list and revoke keys of a service",
        usage="matchmill keys add|list|revoke …",
        description="API keys of a service's tenants; the service may run meanwhile.",
        epilog="`matchmill keys ACTION --help` explains an action.\n\n" + EXIT_CODES,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    add = _action(
        actions,
        "add",
        "make a key, and a tenant if it is new",
        "The key is written to standard output, this once: only its hash is stored.",
        "matchmill keys add alerts --tenant acme --name importer --scope publish",
    )
    add.add_argument("--tenant", metavar="NAME", required=True, help="whose key it is")
    add.add_argument("--name", metavar="TEXT", default="", help="what it is for")
    add.add_argument(
        "--scope",
        choices=SCOPES,
        action="append",
        dest="scopes",
        help="what it may do; may be repeated (default: everything)",
    )
    _end_action(add, "add")
    show = _action(
        actions,
        "list",
        "show the keys, without their secrets",
        "Show the keys of a tenant, or of all.",
        "matchmill keys list alerts --tenant acme",
    )
    show.add_argument("--tenant", metavar="NAME", help="only of this tenant")
    add_format(show)
    _end_action(show, "list")
    revoke = _action(
        actions,
        "revoke",
        "end a key",
        "A key that is revoked is refused at once, or within a second where several run.",
        "matchmill keys revoke alerts --tenant acme 4f1d2c7a90be",
    )
    revoke.add_argument("key_id", metavar="KEY_ID", help="as list shows it")
    revoke.add_argument("--tenant", metavar="NAME", required=True, help="whose key it is")
    _end_action(revoke, "revoke")


def _action(
    actions: Any, name: str, text: str, description: str, example: str
) -> argparse.ArgumentParser:
    more = " KEY_ID" if name == "revoke" else ""
    parser = formatted(
        actions.add_parser,
        name,
        prog=f"matchmill keys {name}",
        help=text,
        usage=f"matchmill keys {name} FOLDER{more} [options]",
        description=description,
        epilog=f"example:\n  {example}\n\n" + EXIT_CODES,
    )
    _add_place(parser)
    return parser


def _end_action(parser: argparse.ArgumentParser, action: str) -> None:
    add_common(parser, "keys")
    parser.set_defaults(action=action)


def add_backup(commands: Any) -> None:
    parser = formatted(
        commands.add_parser,
        "backup",
        help="copy the folder of a service, which may be running",
        usage="matchmill backup FOLDER TO [options]",
        description=(
            "Write a consistent copy of a service's store and its secret key to a new folder,\n"
            "which can be served at once. Engines are not copied: they are made from the store.\n"
            "A store in PostgreSQL is backed up with its own tools; then copy FOLDER/secret."
        ),
        epilog="example:\n  matchmill backup alerts alerts-2026-11-16\n\n" + EXIT_CODES,
    )
    parser.add_argument("folder", metavar="FOLDER", help="the folder that is served")
    parser.add_argument("target", metavar="TO", help="a folder that is not there yet")
    add_common(parser, "backup")


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="made if it is not there")
    parser.add_argument(
        "--store",
        metavar="URL",
        help="postgresql://…, which several processes may share (default: a file in the folder)",
    )
    parser.add_argument(
        "--secret-file",
        metavar="FILE",
        help="the key that secrets are hashed by (default: FOLDER/secret, made if new)",
    )
