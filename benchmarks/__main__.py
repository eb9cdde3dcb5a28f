"""Measure what we claim. Each command prints one table, with targets beside the figures.

Contenders are interleaved and repeated; of the rounds the median is shown, the least and the most
in brackets. The exit code is not 0 if answers differ. docs/guides/BENCHMARKS.md tells more.
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
    "mixed",
    "one",
    "start",
    "files",
    "threads",
    "operators",
    "normal-forms",
    "singles",
    "drift",
    "service",
    "service-crashes",
    "spark",
    "spark-scale",
    "spark-statistics",
    "spark-kills",
)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="script/bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
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
