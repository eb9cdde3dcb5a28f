"""`matchmill backtest`: how many events an expression would have matched."""

from __future__ import annotations

import argparse

from matchmill.cli.arguments import (
    EVENTS_HELP,
    add_common,
    add_dialect,
    add_event_reading,
    add_format,
    add_operators,
    add_service_options,
    examples,
)
from matchmill.cli.event_files import EventFiles, matched_files
from matchmill.cli.exit_codes import ALL_GOOD
from matchmill.cli.output import print_json, say
from matchmill.cli.targets import engine_settings, import_operators, is_url, open_client
from matchmill.errors import InputError

__all__ = ["add_arguments", "run"]

_MOST_IDS = 100
_MOST_WARNINGS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.usage = "matchmill backtest EXPRESSION EVENTS … [options]"
    parser.description = (
        "Count the events of files that an expression matches, or those among the latest\n"
        "events of a service."
    )
    parser.epilog = examples(
        "matchmill backtest \"origin = 'JFK' and dep_delay > 60\" flights.parquet",
        "matchmill backtest 'dep_delay > 60' http://127.0.0.1:8080 --last 5000",
    )
    parser.add_argument("expression", metavar="EXPRESSION", help="an expression or a JSON pattern")
    parser.add_argument(
        "events", metavar="EVENTS", nargs="+", help=f"{EVENTS_HELP}; or the URL of a service"
    )
    parser.add_argument(
        "--last", metavar="N", type=int, help="of a service, the latest N events (default: 1000)"
    )
    add_format(parser)
    add_event_reading(parser)
    add_dialect(parser)
    add_operators(parser)
    add_service_options(parser)
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Count the matches."""
    if any(map(is_url, arguments.events)):
        return _of_service(arguments)
    if arguments.last is not None:
        raise InputError("--last is for the URL of a service")
    from matchmill.engine.engine import Engine

    import_operators(arguments)
    n_events = n_matches = 0
    ids: list[object] = []
    engine = Engine(settings=engine_settings(arguments))
    engine.subscribe("backtest", arguments.expression, dialect=arguments.dialect)
    files = EventFiles(arguments)
    for matches in matched_files(engine, files):
        n_events += matches.n_events
        n_matches += matches.n_matches
        ids = (ids + matches.to_arrow()["event_id"].to_pylist())[-_MOST_IDS:]
    if n_matches == 0 and n_events:
        warnings = engine.check(files.chunks()).warnings
        say(arguments, (str(one._replace(id="why")) for one in warnings[:_MOST_WARNINGS]))
    figures = {"n_events": n_events, "n_matches": n_matches, "event_ids": ids}
    return _show(arguments, figures, f"{n_matches:,} of {n_events:,} events match")


def _of_service(arguments: argparse.Namespace) -> int:
    if len(arguments.events) > 1:
        raise InputError("give the URL of one service, or files of events")
    with open_client(arguments.events[0], arguments) as client:
        tried = client.backtest(
            arguments.expression, arguments.last or 1_000, dialect=arguments.dialect
        )
    text = f"{tried.n_matches:,} of the latest {tried.n_events:,} events would have matched"
    return _show(arguments, tried._asdict(), text)


def _show(arguments: argparse.Namespace, figures: dict[str, object], text: str) -> int:
    if arguments.format == "json":
        print_json(figures)
    else:
        print(text)
    return ALL_GOOD
