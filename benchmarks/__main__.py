"""Measure what we claim. Each command prints one table, with targets beside the figures.

Contenders are interleaved and repeated. The median of the rounds is shown, with the least and the
most in brackets. The exit code is not 0 if answers differ. See docs/guides/BENCHMARKS.md.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from matchmill.errors import MatchmillError

COMMANDS = (
    "parse",
    "load",
    "match",
    "standard",
    "real",
    "keys",
    "changes",
    "mixed",
    "one",
    "start",
    "files",
    "threads",
    "operators",
    "normal-forms",
    "data",
    "singles",
    "lists",
    "drift",
    "reasons",
    "service",
    "service-crashes",
    "service-outages",
    "spark",
    "spark-scale",
    "spark-statistics",
    "spark-kills",
)


def main() -> int:
    """Run one of the measurements."""
    parser = argparse.ArgumentParser(
        prog="script/bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    # With a command only its module is imported: the others may need packages that are missing.
    asked = [name for name in sys.argv[1:2] if name in COMMANDS]
    for name in asked or COMMANDS:
        module = import_module(f"benchmarks.{name.replace('-', '_')}")
        text = module.__doc__ or ""
        command = commands.add_parser(
            name,
            help=text.partition("\n")[0],
            description=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    arguments = parser.parse_args()
    try:
        return int(arguments.run(arguments))
    except MatchmillError as error:
        print(f"script/bench: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
