"""Kill a real server under load, again and again: nothing may be lost or resurrected.

Workers subscribe, change, unsubscribe, publish, read and acknowledge; the server is killed at a
random moment, and after each restart everything that was acknowledged is compared with what is
there. Prints counts, and the first fault if there is one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from tests.support.postgres import running_server
from tests.support.prefork import nursery
from tests.support.service_crash_rounds import CrashRounds

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("--rounds", metavar="N", type=int, default=200, help="(default: 200)")
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument(
        "--cold",
        action="store_true",
        help="start Python again each round (default: fork, which takes a tenth of the time)",
    )
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="(default: 1)")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the table."""
    start = time.perf_counter()

    def said(n_rounds: int, counts: Counter[str]) -> None:
        if n_rounds % 10 == 0:
            seconds = time.perf_counter() - start
            print(f"{n_rounds} rounds, {seconds:.0f} s", file=sys.stderr, flush=True)

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = None
        if arguments.store == "postgresql":
            url = stack.enter_context(running_server()).url
        home = None if arguments.cold else stack.enter_context(nursery())
        rounds = CrashRounds(folder / "served", arguments.seed, url, home)
        try:
            rounds.run(arguments.rounds, said)
            fault = None
        except AssertionError as error:
            fault = error
    print(f"service-crashes, {arguments.store}, seed {arguments.seed}")
    for what, n in rounds.counts.most_common():
        print(f"{n:>10,}  {what}")
    print(f"{'0' if fault is None else '1':>10}  faults{'' if fault is None else f': {fault}'}")
    return 0 if fault is None else 1
