"""`matchmill stats`: the figures of a folder or a service."""

from __future__ import annotations

import argparse
from typing import Any

from matchmill.cli.arguments import (
    TARGET_HELP,
    add_common,
    add_format,
    add_service_options,
    examples,
)
from matchmill.cli.exit_codes import ALL_GOOD
from matchmill.cli.output import print_json
from matchmill.cli.targets import is_url, open_client, open_engine

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.usage = "matchmill stats TARGET [options]"
    parser.description = "Show counts, bytes and rates of an engine or of a tenant of a service."
    parser.epilog = examples(
        "matchmill stats alerts.mill", "matchmill stats http://127.0.0.1:8080 --format json"
    )
    parser.add_argument("target", metavar="TARGET", help=TARGET_HELP)
    add_format(parser)
    add_service_options(parser)
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show the figures."""
    if is_url(arguments.target):
        with open_client(arguments.target, arguments) as client:
            figures: dict[str, Any] = client.stats()
    else:
        with open_engine(arguments.target, arguments, read_only=True) as engine:
            figures = engine.stats().to_dict()
    if arguments.format == "json":
        print_json(figures, indent=2)
    else:
        for line in _lines(figures, ""):
            print(line)
    return ALL_GOOD


def _lines(value: Any, name: str) -> list[str]:
    """Write nested figures as dotted names, one per line."""
    if isinstance(value, dict):
        prefix = f"{name}." if name else ""
        return [line for key, inner in value.items() for line in _lines(inner, f"{prefix}{key}")]
    if isinstance(value, list | tuple):
        return [line for k, inner in enumerate(value) for line in _lines(inner, f"{name}.{k}")]
    if value is None:
        return []
    if isinstance(value, bool) or not isinstance(value, int | float):
        return [f"{name}: {value}"]
    return [f"{name}: {value:,}" if isinstance(value, int) else f"{name}: {value:,.4g}"]
