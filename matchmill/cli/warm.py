"""`matchmill warm`: compile all kernels now."""

from __future__ import annotations

import argparse
import time

from matchmill.cli.arguments import add_common, examples
from matchmill.cli.exit_codes import ALL_GOOD
from matchmill.cli.output import say

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.usage = "matchmill warm [options]"
    parser.description = (
        "Compile all kernels that engines need, and keep them in the cache of the machine\n"
        "(MATCHMILL_CACHE_DIR). Otherwise each is compiled when it is first needed."
    )
    parser.epilog = examples("matchmill warm")
    add_common(parser, settings=False)


def run(arguments: argparse.Namespace) -> int:
    """Compile the kernels."""
    from matchmill.engine.warm import warm

    start = time.perf_counter()
    warm(progress=not arguments.quiet)
    say(arguments, [f"kernels are compiled; {time.perf_counter() - start:.1f} s"])
    return ALL_GOOD
