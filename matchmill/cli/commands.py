"""The table of commands: all that `matchmill --help` needs.

A command's module is imported when the command is called. It has `add_arguments(parser)`, which
declares what the command takes, and `run(arguments)`, which returns the exit code.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from matchmill.cli.exit_codes import EXIT_CODES
from matchmill.errors import did_you_mean

__all__ = ["COMMANDS", "Command", "Parser", "command_parser", "top_parser"]


class Command(NamedTuple):
    """One command: its name, one line of help, and its module as text."""

    name: str
    help: str
    module: str


COMMANDS = (
    Command("match", "find the subscriptions that events satisfy", "matchmill.cli.match"),
    Command("check", "look for mistakes in subscriptions, or for damage", "matchmill.cli.check"),
    Command("explain", "show why an event matches, or why not", "matchmill.cli.explain"),
    Command("build", "save subscriptions as an engine in a folder", "matchmill.cli.build"),
    Command("subscribe", "add subscriptions to a folder or a service", "matchmill.cli.subscribe"),
    Command("unsubscribe", "remove subscriptions", "matchmill.cli.unsubscribe"),
    Command("list", "list the subscriptions of a folder or a service", "matchmill.cli.list"),
    Command("stats", "show the figures of a folder or a service", "matchmill.cli.stats"),
    Command("backtest", "count the events that an expression matches", "matchmill.cli.backtest"),
    Command("publish", "send events to a service", "matchmill.cli.publish"),
    Command("receive", "read the matches of a subscription", "matchmill.cli.receive"),
    Command("serve", "serve subscriptions and events over HTTP", "matchmill.cli.serve"),
    Command("keys", "make, list and revoke keys of a service", "matchmill.cli.keys"),
    Command("backup", "copy the folder of a service", "matchmill.cli.backup"),
    Command("restore", "make a folder to serve from a backup", "matchmill.cli.restore"),
    Command("pipeline", "from files to matches with Spark", "matchmill.cli.pipeline"),
    Command("warm", "compile all kernels now", "matchmill.cli.warm"),
    Command("bench", "measure indexes, compare runs, make reports", "matchmill.lab.bench"),
)


class _OneWidth(argparse.RawDescriptionHelpFormatter):
    """Help of one width everywhere: the documentation is made from it."""

    def __init__(self, prog: str, **_: Any) -> None:
        super().__init__(prog, max_help_position=28, width=88)


class Parser(argparse.ArgumentParser):
    """The form of help that all commands have; an error shows the usage of its own command."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=_OneWidth, allow_abbrev=False, **options)
        self._positionals.title = "arguments"

    def error(self, message: str) -> NoReturn:
        """Print the usage, what is wrong, and how to learn more."""
        usage = self.format_usage()
        self.exit(2, f"{usage}{self.prog}: error: {message}\nsee: {self.prog} --help\n")


def command_parser(name: str) -> argparse.ArgumentParser:
    """Import the module of a command and make its parser."""
    command = next(one for one in COMMANDS if one.name == name)
    module = import_module(command.module)
    parser = Parser(prog=f"matchmill {name}")
    module.add_arguments(parser)
    parser.set_defaults(run=module.run)
    return parser


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from matchmill import __version__

        print(f"matchmill {__version__}")
        parser.exit()


def _known_command(name: str) -> str:
    known = [command.name for command in COMMANDS]
    if name not in known:
        raise argparse.ArgumentTypeError(f"there is no command {name!r}{did_you_mean(name, known)}")
    return name


def top_parser() -> argparse.ArgumentParser:
    """Make the parser of `matchmill` itself, which knows the commands by name alone."""
    width = max(len(command.name) for command in COMMANDS)
    listed = "\n".join(f"  {one.name:{width}}  {one.help}" for one in COMMANDS)
    parser = Parser(
        prog="matchmill",
        usage="matchmill [--version] [--help] COMMAND …",
        description=(
            "Find all stored subscriptions that an event satisfies.\n\n"
            f"commands:\n{listed}\n\n"
            "`matchmill COMMAND --help` explains a command, with examples."
        ),
        epilog=EXIT_CODES,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    parser.add_argument("command", metavar="COMMAND", type=_known_command, help=argparse.SUPPRESS)
    return parser
