"""The arguments of `matchmill client`, the commands that ask a service."""

from __future__ import annotations

import argparse
from typing import Any

from matchmill.cli.arguments import EXIT_CODES, add_common, add_format, formatted

__all__ = ["add_client"]

_SECRETS = """\
The key is read from the variable MATCHMILL_KEY or from a file, a ticket from
MATCHMILL_TICKET or from a file: what stands in a command line is seen by others.

"""


def add_client(commands: Any) -> None:
    parser = formatted(
        commands.add_parser,
        "client",
        prog="matchmill client",
        help="ask a service: subscribe, publish, receive matches",
        usage="matchmill client ACTION --url URL …",
        description="Ask a service that `matchmill serve` runs, here or elsewhere.",
        epilog=_SECRETS
        + "`matchmill client ACTION --help` explains an action.\n\nexamples:\n"
        + "  export MATCHMILL_URL=http://127.0.0.1:8080 MATCHMILL_KEY=…\n"
        + "  matchmill client subscribe \"origin = 'JFK' and dep_delay >= 60\" --id u42\n"
        + "  matchmill client publish flights.csv\n"
        + "  matchmill client receive u42 --ticket-file ticket --follow\n\n"
        + EXIT_CODES,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for add in (_subscribe, _list, _show, _renew, _cancel):
        add(actions)
    for add in (_publish, _test, _explain, _backtest, _receive):
        add(actions)


def _action(
    actions: Any, name: str, usage: str, text: str, description: str, *, takes_ticket: bool = False
) -> argparse.ArgumentParser:
    parser = formatted(
        actions.add_parser,
        name,
        prog=f"matchmill client {name}",
        help=text,
        usage=f"matchmill client {name} {usage} [options]",
        description=description,
        epilog=_SECRETS + EXIT_CODES,
    )
    group = parser.add_argument_group("service")
    group.add_argument(
        "--url",
        metavar="URL",
        help="where it is (default: MATCHMILL_URL, or http://127.0.0.1:8080)",
    )
    group.add_argument("--key-file", metavar="FILE", help="holds the key (default: MATCHMILL_KEY)")
    if takes_ticket:
        group.add_argument(
            "--ticket-file", metavar="FILE", help="holds the ticket (default: MATCHMILL_TICKET)"
        )
    group.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        default=30.0,
        help="to wait for an answer (default: 30)",
    )
    add_common(parser, "client")
    parser.set_defaults(action=name)
    return parser


def _add_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="of the subscription")


def _add_valid(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--valid-seconds",
        metavar="N",
        type=int,
        help="how long it lasts (default: as the service is set)",
    )


def _subscribe(actions: Any) -> None:
    parser = _action(
        actions,
        "subscribe",
        "EXPRESSION | --subscriptions FILE",
        "subscribe one expression, or a file of them",
        "The id, the ticket and the end are written to standard output: of one in lines, of a\n"
        "file as CSV. A ticket is shown this once.",
    )
    parser.add_argument("expression", metavar="EXPRESSION", nargs="?", help="one expression")
    parser.add_argument(
        "--subscriptions", metavar="FILE", help="CSV, JSON lines or Parquet by suffix"
    )
    parser.add_argument("--id", metavar="ID", help="of the one (default: given by the service)")
    parser.add_argument("--webhook", metavar="URL", help="where matches of the one are sent")
    parser.add_argument(
        "--max-per-minute", metavar="N", type=int, help="more matches become one digest"
    )
    _add_valid(parser)
    parser.add_argument(
        "--id-column", metavar="NAME", default="id", help="column of the ids (default: id)"
    )
    parser.add_argument(
        "--expression-column",
        metavar="NAME",
        default="expression",
        help="column of the expressions (default: expression)",
    )
    _add_refused(parser)
    add_format(parser)


def _add_refused(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--refused", metavar="FILE", help="write what was set aside, as CSV or JSON lines"
    )


def _list(actions: Any) -> None:
    parser = _action(
        actions, "list", "", "show all subscriptions", "One line for each, in the order of ids."
    )
    parser.add_argument("--limit", metavar="N", type=int, help="at most so many")
    add_format(parser)


def _show(actions: Any) -> None:
    parser = _action(
        actions, "show", "ID", "show one subscription", "By its ticket or by the key.",
        takes_ticket=True,
    )  # fmt: skip
    _add_id(parser)
    add_format(parser)


def _renew(actions: Any) -> None:
    parser = _action(
        actions,
        "renew",
        "ID",
        "have a subscription last longer",
        "Its time begins anew, from now on. Needs the ticket.",
        takes_ticket=True,
    )
    _add_id(parser)
    _add_valid(parser)


def _cancel(actions: Any) -> None:
    parser = _action(
        actions,
        "cancel",
        "ID",
        "end a subscription",
        "It ends with its mailbox. Needs the ticket, or a key with the scope admin.",
        takes_ticket=True,
    )
    _add_id(parser)


def _publish(actions: Any) -> None:
    parser = _action(
        actions,
        "publish",
        "EVENTS",
        "publish a file of events",
        "They are sent as one stream; those that cannot be published are set aside.",
    )
    parser.add_argument("events", metavar="EVENTS", help="CSV, JSON lines or Parquet by suffix")
    parser.add_argument(
        "--event-id",
        metavar="COLUMN",
        help="events with the same value here are one event (default: all differ)",
    )
    parser.add_argument(
        "--null", metavar="WORD", action="append", default=[], help="in CSV, this word is null"
    )
    parser.add_argument(
        "--text", metavar="COLUMN", action="append", default=[], help="in CSV, this column is text"
    )
    _add_refused(parser)


def _test(actions: Any) -> None:
    parser = _action(
        actions,
        "test",
        "EVENT",
        "show which subscriptions an event satisfies",
        "One id a line. Nothing is stored or delivered.",
    )
    parser.add_argument("event", metavar="EVENT", help="a JSON object, or - for standard input")


def _explain(actions: Any) -> None:
    parser = _action(
        actions,
        "explain",
        "EXPRESSION EVENT | --id ID EVENT",
        "show why an event satisfies an expression, or what is missing",
        "Of an expression, or of a stored subscription.",
    )
    parser.add_argument("expression", metavar="EXPRESSION", nargs="?", help="an expression")
    parser.add_argument("event", metavar="EVENT", help="a JSON object, or - for standard input")
    parser.add_argument("--id", metavar="ID", help="of a stored subscription")
    add_format(parser)


def _backtest(actions: Any) -> None:
    parser = _action(
        actions,
        "backtest",
        "EXPRESSION",
        "count the latest events that an expression would have matched",
        "The service keeps events for some time; this asks the latest of them.",
    )
    parser.add_argument("expression", metavar="EXPRESSION", help="an expression")
    parser.add_argument(
        "--last", metavar="N", type=int, default=1_000, help="how many events (default: 1000)"
    )
    add_format(parser)


def _receive(actions: Any) -> None:
    parser = _action(
        actions,
        "receive",
        "ID",
        "write the matches of a subscription as JSON lines",
        "Each is acknowledged when it is written, and not sent again. Needs the ticket.",
        takes_ticket=True,
    )
    _add_id(parser)
    parser.add_argument(
        "--follow", action="store_true", help="wait for more (default: end with the last one)"
    )
    parser.add_argument("--keep", action="store_true", help="acknowledge nothing")
    parser.add_argument(
        "--after", metavar="SEQ", type=int, default=0, help="only what comes after this one"
    )
