"""docs/CLI.md: what `--help` says, command by command.

python -m matchmill.cli.documentation > docs/CLI.md
"""

from __future__ import annotations

import argparse

from matchmill.cli.commands import COMMANDS, command_parser, top_parser

__all__ = ["documentation"]

_HEAD = """\
This page is made from the commands' own `--help`; `python -m matchmill` is the same command. After
a change: `python -m matchmill.cli.documentation > docs/CLI.md`.
"""


def documentation() -> str:
    """Return the page."""
    parts = ["# The command line\n", _HEAD, _block(top_parser())]
    for command in COMMANDS:
        parser = command_parser(command.name)
        parts += [f"## matchmill {command.name}\n", _block(parser)]
        for name, action in _actions(parser):
            parts += [f"### matchmill {command.name} {name}\n", _block(action)]
    return "\n".join(parts)


def _actions(parser: argparse.ArgumentParser) -> list[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return list(action.choices.items())
    return []


def _block(parser: argparse.ArgumentParser) -> str:
    return f"```text\n{parser.format_help().strip()}\n```\n"


if __name__ == "__main__":
    print(documentation(), end="")
