"""`matchmill unsubscribe`: remove subscriptions from a folder or a service."""

from __future__ import annotations

import argparse

from matchmill.cli.arguments import TARGET_HELP, add_common, add_service_options, examples
from matchmill.cli.exit_codes import ALL_GOOD
from matchmill.cli.targets import is_url, open_client, open_engine, optional_ticket
from matchmill.errors import InputError

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.usage = "matchmill unsubscribe TARGET ID … [options]"
    parser.description = (
        "Remove subscriptions. Of a folder all are removed, or none if one is unknown. Of a\n"
        "service, one is removed by its ticket, several by a key with the scope admin."
    )
    parser.epilog = examples(
        "matchmill unsubscribe alerts.mill u42 u43",
        "matchmill unsubscribe http://127.0.0.1:8080 u42 --ticket-file ticket",
    )
    parser.add_argument("target", metavar="TARGET", help=TARGET_HELP)
    parser.add_argument("ids", metavar="ID", nargs="+", help="the ids of the subscriptions")
    add_service_options(parser, ticket=True)
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Unsubscribe."""
    if is_url(arguments.target):
        ticket = optional_ticket(arguments)
        if ticket is not None and len(arguments.ids) > 1:
            raise InputError("a ticket is that of one subscription; give one ID")
        with open_client(arguments.target, arguments) as client:
            for id in arguments.ids:
                client.unsubscribe(id, ticket=ticket)
        return ALL_GOOD
    with open_engine(arguments.target, arguments, read_only=False) as engine:
        ids = [id if id in engine or not _is_number(id) else int(id) for id in arguments.ids]
        engine.unsubscribe_many(ids)
    return ALL_GOOD


def _is_number(id: str) -> bool:
    return id.removeprefix("-").isdecimal()
