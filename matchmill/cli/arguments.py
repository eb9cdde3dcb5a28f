"""What all commands have in common: the form of their help, exit codes, options for messages."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["EXIT_CODES", "add_common", "add_format", "formatted"]

EXIT_CODES = """\
exit codes:
  0    all is well; for explain: it matches
  1    check: there are bad rows; pipeline check: there are mistakes; explain: it does
       not match; bench: a contender failed or was wrong, or something got slower and
       --fail-on-slower was given
  2    a mistake in the command line, a file or an expression, or a service that
       refuses; nothing was written
  3    match, build, pipeline, client: done, but some rows or events were set aside
  70   a bug in matchmill, with a traceback
  130  interrupted (Ctrl-C); 141 the reader of the output went away; 143 terminated"""


def formatted(make: Any, *positional: str, **options: Any) -> argparse.ArgumentParser:
    """Help of one width everywhere: the documentation is made from it."""

    def formatter(prog: str) -> argparse.HelpFormatter:
        return argparse.RawDescriptionHelpFormatter(prog, max_help_position=28, width=88)

    parser: argparse.ArgumentParser = make(*positional, formatter_class=formatter, **options)
    return parser


def add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="of the output (default: text)"
    )


def add_common(parser: argparse.ArgumentParser, command: str) -> None:
    group = parser.add_argument_group("messages")
    group.add_argument("--quiet", action="store_true", help="no progress, no summary")
    group.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parser.set_defaults(command=command)
