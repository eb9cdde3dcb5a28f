"""Arguments that several commands share, and how their values are read."""

from __future__ import annotations

import argparse

from matchmill.errors import InputError

__all__ = [
    "add_common",
    "add_dialect",
    "add_event_reading",
    "add_format",
    "add_rejected",
    "add_service_options",
    "add_subscription_reading",
    "add_types",
    "declared_types",
    "examples",
    "name_value_pairs",
]

SUBSCRIPTIONS_HELP = (
    "a file (CSV, TSV, JSON lines or Parquet by suffix), a quoted pattern such as"
    " 'alerts/*.csv', a folder of such files, a folder made by build, the URL of a service, or -"
    " for standard input"
)
EVENTS_HELP = (
    "files (CSV, TSV, JSON lines or Parquet by suffix, text also with .gz or .zst), folders of"
    " files, quoted patterns, or - for standard input"
)
_DIALECT = "matchmill"  # without loading what reads dialects
TARGET_HELP = "a folder made by build, or the URL of a service"


def examples(*lines: str) -> str:
    """Make the end of a help text from examples."""
    return f"example{'s' if len(lines) > 1 else ''}:\n" + "\n".join(f"  {line}" for line in lines)


def add_common(parser: argparse.ArgumentParser, *, settings: bool = True) -> None:
    """Add what every command has; `--setting` only where settings have an effect."""
    group = parser.add_argument_group("everywhere")
    if settings:
        group.add_argument(
            "--setting",
            metavar="NAME=VALUE",
            action="append",
            default=[],
            dest="settings",
            help="change a setting, such as max_clauses=16; may be repeated",
        )
    group.add_argument("--quiet", action="store_true", help="no progress, no summary")
    group.add_argument("--debug", action="store_true", help="show the traceback of an error")


def add_format(parser: argparse.ArgumentParser, *more: str) -> None:
    """Add --format of what is printed."""
    parser.add_argument(
        "--format",
        choices=("text", "json", *more),
        default="text",
        help="of the output (default: text)",
    )


def add_subscription_reading(parser: argparse.ArgumentParser) -> None:
    """Add how files of subscriptions are read."""
    group = parser.add_argument_group("reading subscriptions")
    group.add_argument(
        "--subscription-id",
        metavar="COLUMN",
        default="subscription_id",
        help="the column of the ids (default: subscription_id)",
    )
    group.add_argument(
        "--expression",
        metavar="COLUMN",
        default="expression",
        dest="expression_column",
        help="the column of the expressions (default: expression)",
    )
    group.add_argument(
        "--integer-ids", action="store_true", help="in CSV, ids are integers (default: text)"
    )
    add_dialect(group)
    group.add_argument(
        "--sigma-pipeline",
        metavar="NAME",
        action="append",
        default=[],
        help="of Sigma rules: windows, an installed pipeline of pySigma or a YAML file; may be"
        " repeated",
    )
    add_operators(group)


def add_dialect(parser: argparse._ActionsContainer) -> None:
    """Add the language of expressions."""
    parser.add_argument(
        "--dialect",
        metavar="NAME",
        type=_dialect,
        default=_DIALECT,
        help="the language of expressions: matchmill, eventbridge for JSON patterns that mean"
        " what Amazon EventBridge says, or sigma for Sigma rules (default: matchmill)",
    )


def _dialect(name: str) -> str:
    """Return the name of a dialect that exists."""
    if name != _DIALECT:
        from matchmill.language.dialects.registry import check_dialect

        try:
            check_dialect(name)
        except InputError as error:
            problem = error.message.removeprefix("dialect ")
            raise argparse.ArgumentTypeError(problem) from None
    return name


def add_operators(parser: argparse._ActionsContainer) -> None:
    """Add the modules that register operators."""
    parser.add_argument(
        "--operators",
        metavar="MODULE",
        action="append",
        default=[],
        help="import this module, which registers operators; may be repeated",
    )


def add_event_reading(parser: argparse.ArgumentParser, *, event_id: bool = True) -> None:
    """Add how files of events are read."""
    group = parser.add_argument_group("reading events")
    if event_id:
        group.add_argument(
            "--event-id",
            metavar="ATTRIBUTE",
            help="the attribute that has the id of an event (default: its position, from 0)",
        )
    group.add_argument(
        "--null-value",
        metavar="TEXT",
        action="append",
        default=[],
        dest="null_values",
        help="in CSV, a cell with this text is null, as an empty one is; may be repeated",
    )
    add_types(group)


def add_types(parser: argparse._ActionsContainer) -> None:
    """Add what attributes are read as."""
    parser.add_argument(
        "--type",
        metavar="NAME=TYPE",
        action="append",
        default=[],
        dest="types",
        help="read this attribute as a timestamp, date, number, text or boolean; may be repeated",
    )


def add_rejected(parser: argparse.ArgumentParser, *, strict: bool = True) -> None:
    """Add what becomes of rows that cannot be used."""
    group = parser.add_argument_group("bad rows")
    group.add_argument(
        "--rejected", metavar="FILE", help="write what was rejected, as CSV or JSON lines"
    )
    if strict:
        group.add_argument(
            "--strict", action="store_true", help="stop at the first bad row, write nothing"
        )


def add_service_options(parser: argparse.ArgumentParser, *, ticket: bool = False) -> None:
    """Add how a service is called."""
    group = parser.add_argument_group("for the URL of a service")
    group.add_argument(
        "--key-file",
        metavar="FILE",
        help="a file with the API key (default: the variable MATCHMILL_KEY)",
    )
    if ticket:
        group.add_argument(
            "--ticket-file",
            metavar="FILE",
            help="a file with the subscription's ticket (default: the variable MATCHMILL_TICKET)",
        )
    group.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=float,
        default=30.0,
        help="how long to wait for a response (default: 30)",
    )


def declared_types(types: list[str]) -> dict[str, str]:
    """Read the types of --type NAME=TYPE."""
    from matchmill.language.attribute_types import checked_types

    return checked_types(name_value_pairs(types, "--type"))


def name_value_pairs(texts: list[str], option: str) -> dict[str, object]:
    """Read NAME=VALUE; a value that looks like a number or a truth value is one."""
    found: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"{option} is written NAME=VALUE, not {text!r}")
        found[name] = _value(value)
    return found


def _value(text: str) -> object:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
