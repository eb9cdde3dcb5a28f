"""Events in, ids out: end to end from Python objects, text, JSON lines and Arrow.

The rows are in `benchmarks/support/data_*.py`. `--before FOLDER` measures the same rows with the
package in another checkout, in turns.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.support import data_events, data_forms, data_nightly, data_texts
from benchmarks.support.data_rows import ROWS, Size

__all__ = ["add_arguments", "measure", "run"]

# The package is that of the checkout which PYTHONPATH names, the rows are those of this file.
_CHILD = (
    "import sys, matchmill; sys.path.insert(0, sys.argv[1]);"
    " from benchmarks.data import measure; measure()"
)
_MODULES = (data_events, data_forms, data_texts, data_nightly)  # each adds its rows


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("--events", type=int, default=2000, help="per row")
    parser.add_argument("--share", type=float, default=1.0, help="of each row's subscriptions")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name contains this")
    parser.add_argument("--before", metavar="FOLDER", help="another checkout to compare with")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the table."""
    from benchmarks.support.timing import Spread, Target, number, print_table, ratio

    here = str(Path(__file__).parents[1])
    folders = {"now": here, **({"before": arguments.before} if arguments.before else {})}
    lines = []
    for n, each in enumerate(ROWS):
        if arguments.only not in each.name:
            continue
        found = _in_turns(n, folders, arguments)
        now, before = found["now"], found.get("before")
        median = statistics.median(now)
        lines.append(
            (
                each.name if each.name != "the same, one by one" else "… the same, one by one",
                Spread.of(before) if before else "",
                Spread.of(now),
                each.unit,
                number(ratio(before, now).median) if before else "",
                Target("≤", each.goal).verdict(median) if each.goal is not None else "",
            )
        )
        print(*lines[-1], sep="  ", flush=True)
    header = ("figure", "before", "now", "unit", "times as fast", "goal")
    print_table("Events in, ids out: CPU time", header, lines)
    return 0


def _in_turns(n: int, folders: dict[str, str], arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure one row with each checkout, a process each, round by round."""
    figures = [str(n), str(arguments.events), str(arguments.share)]
    command = [sys.executable, "-P", "-c", _CHILD, folders["now"], *figures]
    children = {
        name: subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": folder},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, folder in folders.items()
    }
    found: dict[str, list[float]] = {name: [] for name in folders}
    try:
        for _ in range(arguments.rounds + 1):  # the first round warms up
            for name, child in children.items():
                found[name].append(_answer(child, f"row {n}, {name}"))
    finally:
        for child in children.values():
            child.communicate()
    return {name: figures[1:] for name, figures in found.items()}


def _answer(child: subprocess.Popen[str], name: str) -> float:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write("\n")
    child.stdin.flush()
    answer = child.stdout.readline()
    if not answer:
        raise SystemExit(f"{name}: the process has failed")
    return float(answer)


def measure() -> None:
    """Be the process that measures one row: a line in, a figure out."""
    n, n_events, share = int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    call, n_units = ROWS[n].prepare(Size(n_events, share))
    for _ in sys.stdin:
        gc.collect()
        start = _cpu_seconds()
        figure = call()
        if not isinstance(figure, float):
            figure = (_cpu_seconds() - start) / n_units * 1e6
        print(figure, flush=True)


def _cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
