"""Break the database, the disk or the clock of a real server under load: nothing may be lost.

Publishers and a subscriber go on all the time. Prints for each outage how many events were
acknowledged, in all and while it lasted, how many requests had no success, how long the longest
took, and after how many seconds everything worked again. The process is not restarted.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack

from benchmarks.support.timing import print_table
from tests.support.outages import OUTAGES, outage_round
from tests.support.postgres import running_server

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("--seconds", type=float, default=30.0, help="of each outage (default: 30)")
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--only", metavar="NAME", help="one outage, such as 'frozen'")


def run(arguments: argparse.Namespace) -> int:
    """Break things, and print the table."""
    rows = []
    n_faults = 0
    names = [arguments.only] if arguments.only else list(OUTAGES[arguments.store])
    with ExitStack() as stack:
        database = None
        if arguments.store == "postgresql":
            database = stack.enter_context(running_server())
        for name in names:
            try:
                outcome = outage_round(name, arguments.seconds, database)
            except AssertionError as error:
                n_faults += 1
                rows.append((name, *["–"] * 5, f"FAULT: {error}"))
                continue
            rows.append(
                (
                    name,
                    f"{outcome.n_acknowledged:,}",
                    f"{outcome.n_in_between:,}",
                    f"{outcome.n_failed:,}",
                    f"{outcome.longest:.1f} s",
                    f"{outcome.back_after:.1f} s",
                    "nothing",
                )
            )
    heads = ("outage", "acknowledged", "meanwhile", "failed", "longest", "back after", "lost")
    print_table(f"{arguments.store}, {arguments.seconds:.0f} s each", heads, rows)
    return 1 if n_faults else 0
