"""Streams killed at every step of a build, a batch and a compaction, and started again.

A driver and its Spark are killed by SIGKILL at one point after the other, a run each, until the
stream is through; then its output is compared with a plain replay of the same events and changes.
That is a chain, and there are as many as give the kills that are asked for. Half of the runs
compact beside the stream, half between batches. The exit code is not 0 if a match is missing, wrong
or there twice.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.support.timing import print_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batches", type=int, default=12, help="of a chain")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the table."""
    start = time.perf_counter()
    killed: Counter[str] = Counter()
    n_chains = n_right = 0
    while killed.total() < arguments.kills:
        n_wanted = arguments.kills - killed.total()
        with tempfile.TemporaryDirectory() as folder:
            is_right = _chain(
                Path(folder), arguments.seed + n_chains, arguments.batches, n_wanted, killed
            )
        n_chains += 1
        n_right += is_right
        print(
            f"chain {n_chains}: {'right' if is_right else 'WRONG'}, {killed.total()} kills so far"
        )
    print_table(
        f"{killed.total()} kills in {n_chains} streams, {time.perf_counter() - start:,.0f} s",
        ["killed", "times"],
        [[point, str(n)] for point, n in killed.items()],
    )
    print(f"{n_right} of {n_chains} streams are right")
    return int(n_right < n_chains)


def _chain(folder: Path, seed: int, n_batches: int, n_wanted: int, killed: Counter[str]) -> bool:
    os.environ["MATCHMILL_HOSTILE"] = str(folder)
    from tests.support.stream_kills import BUILD_POINTS, POINTS, chain, is_right, new_chain

    case = new_chain(folder, seed, n_batches)
    # The points that were reached least come first, so that all have their turn.
    points = sorted(random.Random(seed).sample(POINTS, len(POINTS)), key=lambda p: killed[p])
    for point, code in chain(folder, [*BUILD_POINTS, *points * 3][:n_wanted]):
        if code == -signal.SIGKILL:
            killed[point] += 1
            print(f"  killed {point}", flush=True)
        elif code:
            print((folder / "log").read_text(errors="replace")[-4000:])
            return False
    return is_right(folder, case)
