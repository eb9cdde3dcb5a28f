"""Matching while subscriptions come and go, against matching alone.

Two processes open the same saved engine of n subscriptions (be01), one of them to match alone. Both
match the same events, one dict at a time; in the other one every hundredth operation is an update
instead, subscribe and unsubscribe by turns. They take turns by slices. Answers are compared between
slices, with the engine that is never updated and one of the newcomers alone; at the end with an
engine that is built from what is then subscribed.

The processor's time is that of all threads of a process, work in the background included.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import matchmill as mm
from benchmarks.support.flat_engine import save_engine, take_subscriptions
from benchmarks.support.timing import Spread, Target, number, print_table
from benchmarks.support.workers import Worker
from matchmill.lab.workloads.flat import Workload, event_dicts, subscription_texts
from matchmill.lab.workloads.registry import generate
from matchmill.lab.workloads.standard import standard

_TOTAL = Target("≤", 1.3, "x")
_UPDATE_EVERY = 100
_N_CHECKS = 4

# An operation: the number of an event to match, or (id, expression) to subscribe, or (id, None).
Update = tuple[int, str | None]
Operation = int | Update


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("-n", type=int, default=1_000_000, help="subscriptions")
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--slices", type=int, default=50)
    parser.add_argument("--events", type=int, default=2000, help="different ones")
    parser.add_argument(
        "--sync",
        default="never",
        choices=("always", "seconds", "never"),
        help="when an update is to be on the disk, not only in the log (default: never)",
    )
    parser.add_argument(
        "--texts", action="store_true", help="load through subscribe_many, which takes minutes"
    )


class Slice(NamedTuple):
    """Seconds of some operations: as a whole, and one by one."""

    seconds: float
    matches: np.ndarray
    updates: np.ndarray


class Player:
    """An engine in a process of its own; without `sync`, one that is not changed."""

    def __init__(self, folder: Path, events: list[dict[str, Any]], sync: str | None) -> None:
        if sync is None:
            self._engine = mm.Engine.open(folder, read_only=True)
        else:
            self._engine = mm.Engine.open(folder, settings=mm.Settings(sync=sync))
        self._events = events
        self._engine.match_many(events)
        for event in events:
            self._engine.match(event)
        self._cpu_before = time.process_time()

    def play(self, operations: Sequence[Operation]) -> Slice:
        """Apply some operations."""
        engine, events, clock = self._engine, self._events, time.perf_counter
        matches: list[float] = []
        updates: list[float] = []
        began = clock()
        for operation in operations:
            if isinstance(operation, int):
                start = clock()
                engine.match(events[operation])
                matches.append(clock() - start)
            else:
                identifier, text = operation
                start = clock()
                if text is None:
                    engine.unsubscribe(identifier)
                else:
                    engine.subscribe(identifier, text)
                updates.append(clock() - start)
        return Slice(clock() - began, np.array(matches), np.array(updates))

    def answers(self, numbers: Sequence[int]) -> list[np.ndarray]:
        """Return the ids that some events match, ascending; not counted as CPU time."""
        start = time.thread_time()
        found = _answers(self._engine, [self._events[n] for n in numbers])
        self._cpu_before += time.thread_time() - start
        return found

    def n_segments(self) -> int:
        """Return how many segments the engine has."""
        return len(self._engine.stats().index)

    def close(self) -> float:
        """End what is done in the background. CPU seconds of all threads since the warm-up."""
        self._engine.close()
        return time.process_time() - self._cpu_before


def _answers(engine: mm.Engine, events: list[dict[str, Any]]) -> list[np.ndarray]:
    return [np.array(sorted(engine.match(event)), np.int64) for event in events]


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the table."""
    n, n_updates = arguments.n, arguments.operations // _UPDATE_EVERY
    spec = standard("be01").changed(n_subscriptions=n + n_updates, n_events=arguments.events)
    workload = generate(spec)
    events = list(event_dicts(workload))
    newcomers = list(subscription_texts(workload, n))
    slices = operations_of(n, newcomers, arguments.operations, arguments.slices, arguments.events)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "engine"
        seconds = _save(take_subscriptions(workload, np.arange(n)), folder, arguments.texts)
        print(f"{n:,} subscriptions loaded and saved in {seconds:.1f} s", flush=True)
        with (
            Worker(Player, folder, events, None) as pure,
            Worker(Player, folder, events, arguments.sync) as mixed,
        ):
            game = Game(pure, mixed, workload, n, newcomers)
            for k, operations in enumerate(slices):
                game.play(operations)
                if (k + 1) % max(1, len(slices) // _N_CHECKS) == 0:
                    game.check()
            game.check_at_end(Path(temporary) / "fresh")
            game.report()
    return int(game.n_wrong > 0)


def _save(workload: Workload, folder: Path, from_texts: bool) -> float:
    start = time.perf_counter()
    if from_texts:
        engine = mm.Engine()
        engine.subscribe_many(subscription_texts(workload))
        engine.save(folder)
    else:
        save_engine(workload, folder)
    return time.perf_counter() - start


def operations_of(
    n: int, newcomers: list[tuple[int, str]], n_operations: int, n_slices: int, n_events: int
) -> list[list[Operation]]:
    """All operations, slice by slice: each update at some place among a hundred operations."""
    rng = random.Random(1)
    live = list(range(n))
    coming = iter(newcomers)
    is_to_come = True
    slices: list[list[Operation]] = []
    for size in np.diff(np.linspace(0, n_operations, n_slices + 1).astype(int)).tolist():
        operations: list[Operation] = [rng.randrange(n_events) for _ in range(size)]
        for start in range(0, size - _UPDATE_EVERY + 1, _UPDATE_EVERY):
            place = start + rng.randrange(_UPDATE_EVERY)
            if is_to_come:
                identifier, text = next(coming)
                live.append(identifier)
                operations[place] = (identifier, text)
            else:
                chosen = rng.randrange(len(live))
                live[chosen], live[-1] = live[-1], live[chosen]
                operations[place] = (live.pop(), None)
            is_to_come = not is_to_come
        slices.append(operations)
    return slices


class Game:
    """Both players, what they did, and whether the updated one is right."""

    def __init__(
        self,
        pure: Worker,
        mixed: Worker,
        workload: Workload,
        n: int,
        newcomers: list[tuple[int, str]],
    ) -> None:
        self._players = {"matching alone": pure, "with updates": mixed}
        self._slices: dict[str, list[Slice]] = {name: [] for name in self._players}
        self._workload = workload
        self._live = np.arange(n + len(newcomers)) < n
        self._newcomers = mm.Engine()
        self._newcomers.subscribe_many(newcomers)
        self._rng = random.Random(2)
        self.n_wrong = self.n_checked = 0

    def play(self, operations: list[Operation]) -> None:
        """Apply some operations."""
        matches = [o for o in operations if isinstance(o, int)]
        # As many matches as there are operations.
        alone = matches + matches[: len(operations) - len(matches)]
        todo = {"matching alone": alone, "with updates": operations}
        for name in self._rng.sample(sorted(self._players), 2):
            self._slices[name].append(self._players[name].call("play", todo[name]))
        for operation in operations:
            if not isinstance(operation, int):
                self._live[operation[0]] = operation[1] is not None

    def check(self) -> None:
        """Compare a few events with an engine that has never changed, and with newcomers alone."""
        n_events = self._workload.events.n_events
        numbers = self._rng.sample(range(n_events), min(50, n_events))
        events = list(event_dicts(self._workload))
        new = _answers(self._newcomers, [events[k] for k in numbers])
        old = self._players["matching alone"].call("answers", numbers)
        both = [np.union1d(a, b).astype(np.int64) for a, b in zip(old, new, strict=True)]
        self._compare(numbers, [ids[self._live[ids]] for ids in both])

    def check_at_end(self, folder: Path) -> None:
        """All events, against an engine built from what is subscribed now."""
        ids = np.flatnonzero(self._live)
        save_engine(take_subscriptions(self._workload, ids), folder, ids=ids.tolist())
        fresh = mm.Engine.open(folder, read_only=True)
        events = list(event_dicts(self._workload))
        self._compare(range(len(events)), _answers(fresh, events))

    def _compare(self, numbers: Sequence[int], expected: list[np.ndarray]) -> None:
        found = self._players["with updates"].call("answers", list(numbers))
        wrong = [
            n for n, a, b in zip(numbers, expected, found, strict=True) if not np.array_equal(a, b)
        ]
        self.n_checked += len(numbers)
        self.n_wrong += len(wrong)
        if wrong:
            print(f"other matches than expected, for events {wrong[:5]} and {len(wrong)} in all")

    def report(self) -> None:
        """Print the table."""
        alone, mixed = self._slices["matching alone"], self._slices["with updates"]
        total = sum(s.seconds for s in mixed) / sum(s.seconds for s in alone)
        spread = Spread.of(b.seconds / a.seconds for a, b in zip(alone, mixed, strict=True))
        n_segments = self._players["with updates"].call("n_segments")
        cpu = {name: player.call("close") for name, player in self._players.items()}
        rows = [
            (
                name,
                number(sum(s.seconds for s in slices)),
                number(cpu[name]),
                *_quantiles([s.matches for s in slices]),
                *_quantiles([s.updates for s in slices]),
            )
            for name, slices in self._slices.items()
        ]
        header = (
            "", "seconds", "CPU s", "match p50 µs", "p99", "worst", "update p50 µs", "p99", "worst",
        )  # fmt: skip
        both = cpu["with updates"] / cpu["matching alone"]
        n_operations = sum(len(s.matches) + len(s.updates) for s in mixed)
        print_table(
            f"{n_operations:,} operations, {sum(len(s.updates) for s in mixed):,} of them updates",
            header,
            rows,
            [
                f"with updates / alone: {total:.3f}x in all, slice by slice {spread}x; target "
                f"{_TOTAL.verdict(total)}. CPU: {both:.3f}x.",
                f"{self.n_checked:,} answers compared, {self.n_wrong:,} differ; "
                f"{n_segments} segments at the end; {os.cpu_count()} cores.",
            ],
        )


def _quantiles(parts: list[np.ndarray]) -> tuple[str, str, str]:
    values = np.concatenate(parts) * 1e6
    if not len(values):
        return "", "", ""
    middle, late = np.quantile(values, (0.5, 0.99)).tolist()
    return number(middle), number(late), number(float(values.max()))
