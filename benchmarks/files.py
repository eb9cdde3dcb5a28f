"""Build, save, open, first event; and how much memory several processes share.

An engine with texts and all, made from the flat form of the workload (parsing so many texts would
take an hour, and is measured by `load`). Opening is measured with the files in the page cache, with
and without the comparison of checksums. Then some processes open the same folder and match events:
PSS counts a page that k processes share by a k-th to each, so the sum of PSS is what they take
together.
"""

from __future__ import annotations

import argparse
import gc
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import matchmill as mm
from benchmarks.support.flat_engine import save_engine
from benchmarks.support.timing import Spread, number, print_table
from benchmarks.support.workers import Worker
from matchmill.lab.workloads.flat import event_dicts
from matchmill.lab.workloads.registry import generate
from matchmill.lab.workloads.standard import standard


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("-n", type=int, default=3_000_000, help="subscriptions")
    parser.add_argument("--workload", default="ads", choices=("ads", "be01"))
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--events", type=int, default=200, help="that each process matches")
    parser.add_argument("--folder", type=Path, help="where to write (default: a temporary folder)")


class Opener:
    """A process that opens an engine."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self._events = events
        small = mm.Engine()
        small.subscribe_many((k, f"a = {k}") for k in range(5000))
        small.match_many(events)
        small.match(events[0])  # kernels are loaded

    def memory(self) -> tuple[int, int]:
        """RSS and PSS in bytes."""
        gc.collect()
        found = {}
        with open("/proc/self/smaps_rollup", encoding="ascii") as lines:
            for line in lines:
                words = line.split()
                if words[0] in ("Rss:", "Pss:"):
                    found[words[0]] = int(words[1]) * 1024
        return found["Rss:"], found["Pss:"]

    def open(self, folder: Path, verify: bool) -> tuple[float, float]:
        """Seconds to open, and to the answer to the first event."""
        start = time.perf_counter()
        self._engine = mm.Engine.open(folder, read_only=True, verify=verify)
        opened = time.perf_counter()
        self._engine.match(self._events[0])
        return opened - start, time.perf_counter() - opened

    def match_all(self) -> tuple[float, list[int]]:
        """Seconds per event, one by one, and how many matches each event has."""
        start = time.perf_counter()
        counts = [len(self._engine.match(event)) for event in self._events]
        return (time.perf_counter() - start) / len(self._events), counts


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the table."""
    spec = standard(arguments.workload).changed(
        n_subscriptions=arguments.n, n_events=arguments.events
    )
    with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
        folder = Path(temporary) / "engine"
        start = time.perf_counter()
        workload = generate(spec)
        made = time.perf_counter() - start
        events = list(event_dicts(workload))
        times = save_engine(workload, folder)
        del workload
        gc.collect()
        n_bytes = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        rows: list[tuple[object, ...]] = [
            ("make the workload", f"{made:.1f} s"),
            ("encode", f"{times.encoding:.1f} s"),
            ("build the index", f"{times.building:.1f} s"),
            ("write the texts", f"{times.writing_texts:.1f} s"),
            ("save, to the disk", f"{times.saving:.1f} s"),
            ("most memory up to here", _mib(_peak_bytes())),
            ("size of the folder", f"{_mib(n_bytes)}, {n_bytes / arguments.n:.0f} bytes each"),
        ]
        all_equal = _open_and_share(arguments, folder, events, n_bytes, rows)
    print_table(
        f"{arguments.n:,} subscriptions ({arguments.workload}) as a saved engine",
        ("what", "figure"),
        rows,
    )
    if not all_equal:
        print("the processes found different matches")
    return int(not all_equal)


def _open_and_share(
    arguments: argparse.Namespace,
    folder: Path,
    events: list[dict[str, Any]],
    n_bytes: int,
    rows: list[tuple[object, ...]],
) -> bool:
    openers = [Worker(Opener, events) for _ in range(arguments.processes)]
    try:
        before = [opener.call("memory") for opener in openers]
        for verify in (True, False):
            found = [openers[0].call("open", folder, verify) for _ in range(arguments.rounds)]
            opened, first = (Spread.of(f[i] * 1e3 for f in found) for i in range(2))
            words = "with checksums" if verify else "without checksums"
            rows += [(f"open {words}", f"{opened} ms"), ("… first event", f"{first} ms")]
        for opener in openers[1:]:
            opener.call("open", folder, False)
        answers = [opener.call("match_all") for opener in openers]
        after = [opener.call("memory") for opener in openers]
    finally:
        for opener in openers:
            opener.__exit__(None, None, None)
    rss, pss = (sum(m[i] for m in after) for i in range(2))
    pss_before = sum(m[1] for m in before)
    rows += [
        ("one event, after the first", f"{Spread.of(a[0] * 1e6 for a in answers)} µs"),
        (f"{len(openers)} processes, RSS added up", _mib(rss)),
        ("… PSS added up: what they take", _mib(pss)),
        ("… of that, what the engines add", f"{_mib(pss - pss_before)}, folder {_mib(n_bytes)}"),
    ]
    return all(a[1] == answers[0][1] for a in answers)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _mib(n_bytes: float) -> str:
    return f"{number(n_bytes / 2**20)} MiB"
