"""`matchmill receive`: the matches of a subscription, as JSON lines."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from matchmill.cli.arguments import add_common, add_service_options, examples
from matchmill.cli.exit_codes import ALL_GOOD
from matchmill.cli.output import print_json
from matchmill.cli.targets import needs_url, open_client, the_ticket

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.usage = "matchmill receive URL ID [options]"
    parser.description = (
        "Print the matches of a subscription, one JSON object per line. A match is\n"
        "acknowledged when it is printed, and then never sent again."
    )
    parser.epilog = examples(
        "matchmill receive http://127.0.0.1:8080 u42 --ticket-file ticket",
        "matchmill receive http://127.0.0.1:8080 u42 --follow > matches.jsonl",
    )
    parser.add_argument("url", metavar="URL", help="the URL of a service")
    parser.add_argument("id", metavar="ID", help="the id of the subscription")
    parser.add_argument("--follow", action="store_true", help="wait for more; Ctrl-C ends it")
    parser.add_argument("--keep", action="store_true", help="do not acknowledge them")
    parser.add_argument(
        "--after", metavar="SEQ", type=int, default=0, help="only those after this seq"
    )
    add_service_options(parser, ticket=True)
    add_common(parser, settings=False)


def run(arguments: argparse.Namespace) -> int:
    """Print matches."""
    ticket = the_ticket(arguments)
    with open_client(needs_url(arguments.url), arguments) as client:
        received = client.receive(
            arguments.id,
            ticket=ticket,
            after=arguments.after,
            wait=30 if arguments.follow else 0,
            acknowledge_every=0 if arguments.keep else 1,
        )
        for entry in received:
            print_json(_facts(entry))
            sys.stdout.flush()  # before it is acknowledged, when the next one is asked for
    return ALL_GOOD


def _facts(entry: Any) -> dict[str, Any]:
    from matchmill.client import Digest, Match

    if isinstance(entry, Match):
        return entry._asdict()
    if isinstance(entry, Digest):
        digest = entry._asdict()
        return {"seq": digest.pop("seq"), "digest": digest}
    return {"n_dropped": entry.n_matches}
