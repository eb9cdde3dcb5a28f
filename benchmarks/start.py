"""The first use with an empty kernel cache, and the uses after it.

Each start is a process of its own: import, 100 alerts, the first answer, and then whatever else
compiles something: updates, many events, an Arrow table, saving and opening. A cold start has an
empty folder for its kernels; a warm one comes after it, with the same folder.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.support.timing import Spread, Target, print_table

_COLD = Target("≤", 15, " s")
_WARM = Target("≤", 1, " s")

_PROGRAM = """
import json, sys, tempfile, time
def now():
    return time.perf_counter(), time.process_time()
times = [now()]
import matchmill as mm
times.append(now())
engine = mm.Engine(settings=mm.Settings(fresh_clauses=64))  # an index from 64 clauses on
from matchmill.lab.workloads.flight_alerts import flight_alerts
alerts = [*flight_alerts(100), ("any", "month >= 1")]
event = {"origin": "JFK", "dest": "LAX", "carrier": "DL", "month": 7, "day": 4, "hour": 9,
         "dep_delay": 90, "arr_delay": 95.5, "distance": 2475, "flight": 42, "tailnum": "N3742C"}
engine.subscribe_many(alerts)
answer = engine.match(event)
times.append(now())
engine.subscribe("new", "tags contains any ('a', 'b') or note like '%late%'")
engine.unsubscribe(alerts[0][0])
answer |= engine.match(event)
many = [{**event, "day": 1 + i % 28, "tags": ["a"], "note": "late"} for i in range(1000)]
engine.match_many(many)
import pyarrow as pa
engine.match_many(pa.Table.from_pylist(many))
with tempfile.TemporaryDirectory() as folder:
    engine.save(folder)
    with mm.Engine.open(folder) as engine:
        answer |= engine.match({**event, "tags": ["b"]})
        engine.compact()
times.append(now())
(wall, cpu) = zip(*times)
steps = [b - a for a, b in zip(wall, wall[1:])]
json.dump([*steps, cpu[3] - cpu[1], sorted(answer)], sys.stdout)
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("--rounds", type=int, default=3, help="empty folders")
    parser.add_argument("--warm", type=int, default=3, help="warm starts after each")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the table."""
    cold, warm = [], []
    for _ in range(arguments.rounds):
        with tempfile.TemporaryDirectory() as folder:
            cold.append(_start(folder))
            warm += [_start(folder) for _ in range(arguments.warm)]
    answers = {start.answer for start in (*cold, *warm)}
    rows = [_row("cold", cold, _COLD), _row("warm", warm, _WARM)]
    print_table(
        "Seconds of a start",
        ("start", "import", "first answer", "all else", "both", "target", "CPU of both"),
        rows,
    )
    if len(answers) > 1:
        print("the starts found different matches")
    return int(len(answers) > 1)


class Start(NamedTuple):
    """Seconds of its steps, and the first answer."""

    importing: float
    first: float
    others: float
    cpu: float  # of the first answer and the others, all threads, without the process that helps
    answer: tuple[str, ...]


def _start(folder: str) -> Start:
    inherited = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env={**inherited, "MATCHMILL_CACHE_DIR": folder},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    importing, first, others, cpu, answer = json.loads(done.stdout)
    return Start(importing, first, others, cpu, tuple(answer))


def _row(name: str, starts: Sequence[Start], target: Target) -> tuple[object, ...]:
    both = Spread.of(start.first + start.others for start in starts)
    return (
        name,
        Spread.of(start.importing for start in starts),
        Spread.of(start.first for start in starts),
        Spread.of(start.others for start in starts),
        both,
        target.verdict(both.median),
        Spread.of(start.cpu for start in starts),
    )
