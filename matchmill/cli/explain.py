"""`matchmill explain`: why an event satisfies an expression, or what is missing."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING, Any

from matchmill.cli.arguments import (
    add_common,
    add_format,
    add_service_options,
    add_subscription_reading,
    examples,
)
from matchmill.cli.exit_codes import ALL_GOOD, NO
from matchmill.cli.inputs import subscription_rows
from matchmill.cli.output import print_json
from matchmill.cli.targets import (
    import_operators,
    is_engine_folder,
    is_url,
    open_client,
    open_engine,
)
from matchmill.errors import InputError, UnknownIdError

if TYPE_CHECKING:
    from matchmill.language.explanation import Explanation
    from matchmill.language.expression import Expression

__all__ = ["add_arguments", "read_event", "run"]

_BARE_NAME = re.compile(r"[A-Za-z_][\w.-]*")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.usage = (
        "matchmill explain EXPRESSION EVENT [options]\n"
        "       matchmill explain SUBSCRIPTIONS ID EVENT [options]"
    )
    parser.description = (
        "Show whether each part of an expression is true for one event. Two arguments are an\n"
        "expression and an event; three are a file, a folder or a service, the id of a\n"
        "subscription in it, and an event."
    )
    parser.epilog = examples(
        "matchmill explain \"price <= 580 and origin = 'JFK'\" '{\"price\": 590}'",
        "matchmill explain alerts.csv u42 '{\"price\": 590}'",
        "head -1 events.jsonl | matchmill explain --format json 'price < 5' -",
    )
    parser.add_argument(
        "arguments",
        metavar="EXPRESSION EVENT | SUBSCRIPTIONS ID EVENT",
        nargs="+",
        help="an EVENT is a JSON object; - reads it from standard input",
    )
    add_format(parser)
    add_subscription_reading(parser)
    add_service_options(parser)
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Explain one event."""
    given = arguments.arguments
    if len(given) not in (2, 3):
        raise InputError(
            "give EXPRESSION and EVENT, or SUBSCRIPTIONS, ID and EVENT; quote each of them"
        )
    import_operators(arguments)
    event = read_event(given[-1])
    explanation = (
        _of_expression(given[0], event, arguments.dialect)
        if len(given) == 2
        else _of_subscription(given[0], given[1], event, arguments)
    )
    if arguments.format == "json":
        print_json(explanation.to_dict(), indent=2)
    elif not arguments.quiet:
        print(explanation)
    if len(given) == 2 and _BARE_NAME.fullmatch(given[0].strip()) and not arguments.quiet:
        print(
            f"matchmill: {given[0].strip()!r} was read as an expression, which is true if that"
            " attribute is true; to explain a subscription, give SUBSCRIPTIONS ID EVENT",
            file=sys.stderr,
        )
    return ALL_GOOD if explanation.matched else NO


def _of_expression(text: str, event: dict[str, Any], dialect: str) -> Explanation:
    from matchmill.engine.expression_input import read_expression

    return _explained(read_expression(text, dialect=dialect), text, event)


def _explained(expression: Expression, text: str | None, event: dict[str, Any]) -> Explanation:
    from matchmill.operators.explain import explain_with_operators
    from matchmill.operators.registry import check_operators

    check_operators(expression, text)
    return explain_with_operators(expression, event)


def _of_subscription(
    source: str, id: str, event: dict[str, Any], arguments: argparse.Namespace
) -> Explanation:
    if is_url(source):
        with open_client(source, arguments) as client:
            return client.explain(id, event)
    if is_engine_folder(source):
        with open_engine(source, arguments, read_only=True) as engine:
            is_number = id not in engine and id.removeprefix("-").isdecimal()
            return engine.explain(int(id) if is_number else id, event)
    from matchmill.engine.expression_input import read_expression

    arguments.subscriptions = source
    for name, row in subscription_rows(arguments):
        if row.id is not None and str(row.id) == id:
            if row.problem is not None:
                raise InputError(f"{name}:{row.line}: {id}: {row.problem}")
            text = row.expression if isinstance(row.expression, str) else None
            expression = read_expression(row.expression, dialect=arguments.dialect)
            return _explained(expression, text, event)
    raise UnknownIdError(f"{source} has no subscription {id!r}")


def read_event(text: str) -> dict[str, Any]:
    """Read one event from JSON, or from standard input."""
    from matchmill.encoding.events.json_lines import read_json_lines

    if text == "-":
        text = sys.stdin.read()
    # A line feed in JSON is white space; one event may stand on several lines here.
    events = read_json_lines(text.replace("\n", " ").encode("utf-8", "surrogatepass"))
    if events.n_events == 0:
        raise InputError('there is no event; write a JSON object: {"price": 590}')
    rejected = events.columns().rejected
    if rejected:
        raise InputError(
            f"the event: {rejected[0].removeprefix('line 1: ')}",
            hint="an EVENT is a JSON object such as '{\"price\": 590}', or - for standard input",
        )
    return events.event(0)
