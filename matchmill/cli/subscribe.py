"""`matchmill subscribe`: add subscriptions to a folder or a service."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from matchmill.cli.arguments import (
    TARGET_HELP,
    add_common,
    add_format,
    add_rejected,
    add_service_options,
    add_subscription_reading,
    examples,
)
from matchmill.cli.exit_codes import ALL_GOOD
from matchmill.cli.inputs import file_rows, file_sources
from matchmill.cli.output import print_facts, print_json, say
from matchmill.cli.progress import Progress
from matchmill.cli.rejected import RejectedRows
from matchmill.cli.targets import import_operators, is_url, open_client, open_engine
from matchmill.errors import DuplicateIdError, InputError

if TYPE_CHECKING:
    from matchmill.client import Subscription

__all__ = ["add_arguments", "run"]

_OF_SERVICE = ("ttl_seconds", "webhook", "max_per_minute")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.usage = (
        "matchmill subscribe TARGET ID EXPRESSION [options]\n"
        "       matchmill subscribe TARGET --file FILE [options]"
    )
    parser.description = (
        "Add one subscription, or those of a file. A service shows the ticket of each, this\n"
        "once: it reads the matches, renews and unsubscribes. Keep it."
    )
    parser.epilog = examples(
        "matchmill subscribe alerts.mill u42 \"origin = 'JFK' and dep_delay > 60\"",
        "matchmill subscribe http://127.0.0.1:8080 u42 'dep_delay > 60' --ttl-seconds 3600",
        "matchmill subscribe http://127.0.0.1:8080 --file alerts.csv > tickets.csv",
    )
    parser.add_argument("target", metavar="TARGET", help=TARGET_HELP)
    parser.add_argument("id", metavar="ID", nargs="?", help="the id of the subscription")
    parser.add_argument(
        "expression", metavar="EXPRESSION", nargs="?", help="an expression or a JSON pattern"
    )
    parser.add_argument(
        "--file", metavar="FILE", help="subscriptions: a file, a quoted pattern, or -"
    )
    parser.add_argument(
        "--replace", action="store_true", help="replace subscriptions with the same ids"
    )
    add_format(parser)
    add_subscription_reading(parser)
    add_rejected(parser)
    add_service_options(parser)
    group = parser.add_argument_group("subscriptions of a service")
    group.add_argument(
        "--ttl-seconds", metavar="N", type=int, help="when it expires (default: the service's)"
    )
    group.add_argument("--webhook", metavar="URL", help="send the matches of one there")
    group.add_argument(
        "--max-per-minute", metavar="N", type=int, help="the most matches per minute"
    )
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Subscribe one, or all of a file."""
    is_one = arguments.id is not None and arguments.expression is not None
    if is_one == (arguments.file is not None) or (arguments.id is None) != (
        arguments.expression is None
    ):
        raise InputError("give either ID and EXPRESSION, or --file FILE")
    if not is_one and arguments.webhook is not None:
        raise InputError("--webhook is for one subscription")
    if not is_url(arguments.target):
        for name in _OF_SERVICE:
            if getattr(arguments, name) is not None:
                option = "--" + name.replace("_", "-")
                raise InputError(f"{option} is for the URL of a service, not for a folder")
    import_operators(arguments)
    try:
        return _one(arguments) if is_one else _file(arguments)
    except DuplicateIdError as error:
        raise DuplicateIdError(_as_option(error.message), hint=_as_option(error.hint)) from error


def _as_option(text: str) -> str:
    """Name the option in place of the argument of the library."""
    return text.replace("replace=True", "--replace")


def _one(arguments: argparse.Namespace) -> int:
    if is_url(arguments.target):
        with open_client(arguments.target, arguments) as client:
            made = client.subscribe(
                arguments.id,
                arguments.expression,
                dialect=arguments.dialect,
                ttl_seconds=arguments.ttl_seconds,
                webhook=arguments.webhook,
                max_per_minute=arguments.max_per_minute,
                replace=arguments.replace,
            )
        print_facts(_shown(made), arguments.format)
        return ALL_GOOD
    with open_engine(arguments.target, arguments, read_only=False) as engine:
        engine.subscribe(
            arguments.id,
            arguments.expression,
            dialect=arguments.dialect,
            replace=arguments.replace,
        )
        say(arguments, [f"{arguments.target}: {len(engine):,} subscriptions"])
    return ALL_GOOD


def _shown(made: Subscription) -> dict[str, Any]:
    return {
        "subscription_id": made.id,
        "ticket": made.ticket,
        "expires_at": made.expires_at,
        "webhook_secret": made.webhook_secret,
    }


def _file(arguments: argparse.Namespace) -> int:
    n_accepted = n_replaced = 0
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(arguments.quiet))
        progress.stage("subscribing")
        rejected = RejectedRows(arguments, stack)
        options: dict[str, Any] = {
            "dialect": arguments.dialect,
            "replace": arguments.replace,
            "progress": progress.update,
        }
        if is_url(arguments.target):
            target: Any = stack.enter_context(open_client(arguments.target, arguments))
            options["ttl_seconds"] = arguments.ttl_seconds
            options["max_per_minute"] = arguments.max_per_minute
        else:
            target = stack.enter_context(open_engine(arguments.target, arguments, read_only=False))
        if arguments.strict:
            options["strict"] = True
        show = _Tickets(arguments.format) if is_url(arguments.target) else None
        for source in file_sources(arguments.file):
            report = target.subscribe_many(file_rows(source, arguments), **options)
            if show is not None:
                show.add(report.subscriptions)
            rejected.add(
                one._replace(source=str(source.path), reason=_as_option(one.reason))
                for one in report.rejected
            )
            n_accepted += report.n_accepted
            n_replaced += report.n_replaced

    def summary() -> Iterator[str]:
        replaced = f" ({n_replaced:,} replaced)" if n_replaced else ""
        n_rejected = rejected.counts.total()
        yield f"subscriptions: {n_accepted:,} accepted{replaced}, {n_rejected:,} rejected"
        yield from rejected.lines()

    say(arguments, summary())
    return rejected.exit_code


class _Tickets:
    """Prints new subscriptions with their tickets: CSV, or JSON lines."""

    def __init__(self, form: str) -> None:
        self._as_json = form == "json"
        self._table = csv.writer(sys.stdout, lineterminator="\n")
        if not self._as_json:
            self._table.writerow(("subscription_id", "ticket", "expires_at"))

    def add(self, subscriptions: list[Subscription]) -> None:
        """Print some of them."""
        for one in subscriptions:
            facts = _shown(one)
            del facts["webhook_secret"]
            if self._as_json:
                print_json(facts)
            else:
                expires_at = one.expires_at
                moment = "" if expires_at is None else expires_at.isoformat()
                self._table.writerow((one.id, one.ticket, moment))
        sys.stdout.flush()
