"""`matchmill explain`: why an event satisfies an expression, or what is missing."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from matchmill.cli.exit_codes import ALL_GOOD, NO
from matchmill.cli.load_engine import import_operators, rows
from matchmill.encoding.events.read import read_json_lines
from matchmill.engine.engine import Engine
from matchmill.engine.expression_input import read_expression
from matchmill.errors import InputError, UnknownIdError
from matchmill.language.expression import Expression
from matchmill.operators.explain import explain_with_operators
from matchmill.operators.registry import check_operators

__all__ = ["read_event", "run"]


def run(arguments: argparse.Namespace) -> int:
    if (arguments.expression is None) == (arguments.subscriptions is None):
        raise InputError("give EXPRESSION and EVENT, or --subscriptions FILE --id ID and EVENT")
    if (arguments.subscriptions is None) != (arguments.id is None):
        raise InputError("--subscriptions and --id go together")
    import_operators(arguments)
    expression = _expression(arguments)
    check_operators(expression, arguments.expression)
    explanation = explain_with_operators(expression, read_event(arguments.event))
    if arguments.format == "json":
        print(json.dumps(explanation.to_dict(), indent=2, ensure_ascii=False, default=str))
    elif not arguments.quiet:
        print(explanation)
    return ALL_GOOD if explanation.truth is True else NO


def _expression(arguments: argparse.Namespace) -> Expression:
    if arguments.subscriptions is None:
        return read_expression(arguments.expression)
    if Path(arguments.subscriptions).is_dir():
        engine = Engine.open(arguments.subscriptions, read_only=True)
        if arguments.id not in engine and arguments.id.removeprefix("-").isdecimal():
            return read_expression(engine[int(arguments.id)].expression)
        return read_expression(engine[arguments.id].expression)
    for row in rows(arguments):
        if row.id is not None and str(row.id) == arguments.id:
            if row.problem is not None:
                raise InputError(f"{arguments.subscriptions}:{row.line}: {row.problem}")
            return read_expression(row.expression)
    raise UnknownIdError(f"{arguments.subscriptions} has no subscription {arguments.id!r}")


def read_event(text: str) -> dict[str, Any]:
    if text == "-":
        text = sys.stdin.read()
    # A line feed inside of JSON is white space; one event may stand on several lines here.
    events = read_json_lines(text.replace("\n", " ").encode("utf-8", "surrogatepass"))
    if events.n_events == 0:
        raise InputError('there is no event; write a JSON object: {"price": 590}')
    rejected = events.columns().rejected
    if rejected:
        raise InputError(f"the event: {rejected[0]}")
    return dict(events.event(0))
