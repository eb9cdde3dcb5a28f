"""Commands that have actions: `keys add`, `pipeline run`, `bench compare`."""

from __future__ import annotations

import argparse
from typing import Any

from matchmill.cli.commands import Parser

__all__ = ["add_action", "add_actions"]


def add_actions(parser: argparse.ArgumentParser) -> Any:
    """Make room for the actions of a command."""
    name = parser.prog.split()[-1]
    parser.epilog = f"`matchmill {name} ACTION --help` explains an action."
    return parser.add_subparsers(
        title="actions",
        metavar="ACTION",
        dest="action",
        required=True,
        prog=parser.prog,
        parser_class=Parser,
    )


def add_action(
    actions: Any, command: str, name: str, text: str, *, usage: str, description: str, epilog: str
) -> argparse.ArgumentParser:
    """Add one action."""
    parser: argparse.ArgumentParser = actions.add_parser(
        name,
        help=text,
        usage=f"matchmill {command} {name} {usage}",
        description=description,
        epilog=epilog,
    )
    return parser
