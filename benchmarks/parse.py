"""Our parser against sqlglot's on the same expressions; fails below five times its speed."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import matchmill as mm
from benchmarks.support.timing import Spread, Target, interleaved, print_table, ratio

EXPRESSIONS = (
    "origin = 'JFK'",
    "origin = 'JFK' and dep_delay > 60",
    "carrier in ('AA', 'UA', 'DL') and dest = 'SFO' and month between 3 and 5",
    "(origin = 'JFK' or origin = 'LGA') and not (arr_delay is null) and distance >= 1000.5",
    "tailnum like 'N1%' and time_hour >= timestamp '2013-01-31 10:00:00' and hour != 5",
)
TARGET = Target("≥", 5, "x")
_REPEAT = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("--rounds", type=int, default=7)


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the table."""
    import sqlglot

    rows, slow = [], False
    for text in EXPRESSIONS:
        seconds = interleaved(
            {
                "matchmill": partial(_repeated, mm.parse, text),
                "sqlglot": partial(_repeated, sqlglot.parse_one, text),
            },
            arguments.rounds,
        )
        ours, theirs = (
            Spread.of(s / _REPEAT * 1e6 for s in seconds[name]) for name in ("matchmill", "sqlglot")
        )
        times = ratio(seconds["sqlglot"], seconds["matchmill"])
        rows.append((f"{text[:50]}…", ours, theirs, times, TARGET.verdict(times.median)))
        slow |= not TARGET.is_met(times.median)
    header = ("expression", "matchmill µs", "sqlglot µs", "ratio", "target")
    print_table("Parsing", header, rows)
    return int(slow)


def _repeated(function: Callable[[str], object], text: str) -> None:
    for _ in range(_REPEAT):
        function(text)
