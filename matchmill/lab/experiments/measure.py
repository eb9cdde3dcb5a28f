"""Measure several indexes on one workload, so that the figures can be believed.

    1  the workload is made once; its flat arrays are the table and the events, not copied
    2  scan      answers as many events as it can in a few seconds: the reference
    3  trials    each contender in a child of its own, with limits: build, match a few events.
                 Whoever fails, takes too long or too much memory is recorded and left out
    4  race      the children take turns: warm up, then rounds. In each round every contender
                 matches once, in a shuffled order, so that a busy machine hits all alike
    5  verdict   all answers are compared, event by event; who differs is wrong, however fast

A contender too slow for all events gets as many of the first ones as fit its budget; figures per
event stay comparable, and `n_events` says how many it were. If not all indexes fit into memory
together, there are several races.
"""

from __future__ import annotations

import gc
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable, take_clauses
from matchmill.encoding.event_batch import EventBatch
from matchmill.errors import MatchmillError
from matchmill.index.base import ClauseMatches, Statistics
from matchmill.index.event_sample import build_statistics
from matchmill.index.scan import Scan
from matchmill.lab.experiments.child_process import (
    Child,
    Ended,
    Tell,
    limited_memory,
    process_bytes,
    reset_peak,
    run_in_child,
)
from matchmill.lab.experiments.contenders import Built, build_contender, is_there
from matchmill.lab.experiments.machine_info import available_bytes
from matchmill.lab.experiments.match_digests import Answers, judge, summarize
from matchmill.lab.experiments.spec import Contender, Point
from matchmill.lab.experiments.yardstick import yardstick_seconds
from matchmill.lab.workloads.flat import FlatEvents, FlatSubscriptions, Workload
from matchmill.lab.workloads.registry import generate

__all__ = [
    "Budget",
    "Measurement",
    "build_statistics",
    "event_batch",
    "measure",
    "table_of",
]

Progress = Callable[[str], None]

_COMPILE_SECONDS = 300.0  # the first calls of an index may compile its kernels
_COMPILE_BYTES = 2 << 30
_COMPILE_EVENTS = (
    2048  # so many that an index with a way of its own for many events takes that, too
)
_CHUNK_SECONDS = 0.002  # shorter calls are repeated: the clock would be measured, too
_MOST_CHUNKS = 5  # of a round; the median counts, so that one interruption does not
_FEWEST_EVENTS = 4
_MOST_MATCHES = 64_000_000  # of one call: half a gigabyte of ids


@dataclass(frozen=True, slots=True)
class Budget:
    """What one contender may take at one point, and all of them together in memory."""

    seconds: float = 60.0  # to build, and again to match
    n_bytes: int = 0  # beyond what the workload takes; 0: half of the memory that is free
    scan_seconds: float = 10.0  # for the reference

    def bytes_each(self) -> int:
        return self.n_bytes or available_bytes() // 2

    def bytes_together(self) -> int:
        return max(self.bytes_each(), available_bytes() * 3 // 4)


@dataclass(slots=True)
class Measurement:
    """One contender at one point.

    `status` is ok, wrong (other matches than the reference), failed (an error), slow (over its
    time), memory (over its memory), absent (no such index) or no workload.
    """

    contender: Contender
    status: str
    reason: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    rounds: list[float] = field(default_factory=list)  # µs per event
    yardsticks: list[float] = field(default_factory=list)  # µs of the yardstick, round by round
    n_events: int = 0
    n_clauses: int = 0
    build_seconds: float | None = None
    index_bytes: int | None = None
    peak_bytes: int | None = None
    candidates_per_event: float | None = None
    n_matches: int | None = None
    digest: str = ""
    reference: str = ""
    race: int | None = None  # contenders with the same number ran interleaved


class _Job(NamedTuple):
    table: ConjunctionTable
    events: EventBatch
    owners: np.ndarray
    statistics: Statistics | None
    budget: Budget
    rounds: int
    seed: int


class _Trial(NamedTuple):
    build_seconds: float
    event_seconds: float
    matches_per_event: float
    peak_bytes: int | None


# -- workloads as indexes want them ---------------------------------------------------------------


def table_of(flat: FlatSubscriptions) -> ConjunctionTable:
    """The table of a workload: the same arrays, clauses numbered from 0."""
    return ConjunctionTable(
        np.arange(flat.n_clauses, dtype=np.int64),
        flat.clause_offsets,
        flat.attributes,
        flat.interval_offsets,
        flat.lows,
        flat.highs,
    )


def event_batch(flat: FlatEvents) -> EventBatch:
    return EventBatch(flat.offsets, flat.attributes, flat.codes)


# -- the whole ------------------------------------------------------------------------------------


def measure(
    point: Point,
    contenders: Sequence[Contender],
    *,
    rounds: int = 5,
    budget: Budget | None = None,
    statistics: bool = True,
    seed: int = 1,
    progress: Progress = lambda text: None,
) -> list[Measurement]:
    """Measure contenders on the workload of one point; one measurement each, in their order."""
    budget = budget or Budget()
    found: dict[str, Measurement] = {}
    for contender in contenders:
        there = is_there(contender)
        kind = "structure" if contender.is_structure else "index"
        found[contender.name] = Measurement(
            contender,
            "ok" if there else "absent",
            "" if there else f"there is no {kind} {contender.index!r} in the registry",
            point.options_of(contender),
        )
    if any(m.status == "ok" for m in found.values()):
        progress("making the workload")
        job = _job(point, found, rounds, budget, statistics, seed)
        if job is not None:
            _measure(job, found, progress)
    return list(found.values())


def _job(
    point: Point,
    found: dict[str, Measurement],
    rounds: int,
    budget: Budget,
    statistics: bool,
    seed: int,
) -> _Job | None:
    try:
        with limited_memory(available_bytes() * 3 // 4):
            workload: Workload = generate(point.workload)
            table = table_of(workload.subscriptions)
            events = event_batch(workload.events)
            training = event_batch(workload.training)
            known = build_statistics(training, table.n_dimensions) if statistics else None
    except (MatchmillError, MemoryError) as error:
        for m in found.values():
            if m.status != "absent":
                m.status = "no workload"
                m.reason = str(error) or "the workload does not fit into memory"
        return None
    owners = workload.subscriptions.owners
    return _Job(table, events, owners, known, budget, rounds, seed)


def _measure(job: _Job, found: dict[str, Measurement], progress: Progress) -> None:
    progress("scanning for reference")
    _keep_compiled(job, Contender(Scan.name, Scan.name, {}), {})
    yardstick_seconds()  # compiles, or loads, its kernel
    scan = _scan_reference(job)
    answers: dict[str, Answers] = {}
    race: list[_Runner] = []
    n_races, room = 0, float(job.budget.bytes_together())
    try:
        for name, m in found.items():
            m.n_clauses = job.table.n_clauses
            if m.status != "ok":
                continue
            progress(f"trying {name}")
            runner = _Runner(job, m)
            race.append(runner)
            if not runner.try_alone():
                race.pop().stop()
                continue
            room -= runner.needs_bytes
            if room < 0 and len(race) > 1:  # the others race without it, and it with the next
                _race(job, race[:-1], n_races, answers, progress)
                n_races, room = n_races + 1, job.budget.bytes_together() - runner.needs_bytes
                del race[:-1]
        _race(job, race, n_races, answers, progress)
    finally:
        for runner in race:
            runner.stop()
    for name, verdict in judge(answers, scan).items():
        found[name].reference = verdict.reference
        if verdict.problem:
            found[name].status, found[name].reason = "wrong", verdict.problem


# -- the reference --------------------------------------------------------------------------------


def _scan_reference(job: _Job) -> Answers:
    """What a scan finds for the first events, as many as its time allows."""
    got: list[Answers] = []

    def work(tell: Tell) -> None:
        tell.step("scanning", _COMPILE_SECONDS + 10 * job.budget.scan_seconds)
        scan = Scan.build(job.table)
        scan.match_batch(job.events.slice(0, 0))  # compiles, or loads, its kernel
        per_event, per_match = _ladder(scan, job.events, job.budget.scan_seconds / 20)
        n = min(job.events.n_events, int(job.budget.scan_seconds / max(per_event, 1e-9)))
        n = min(n, _most_events(per_match))
        first = job.events.slice(0, n)
        tell(summarize(scan.match_batch(first), job.owners, n))

    run_in_child(work, got.append)
    return got[0] if got else Answers(np.empty(0, np.int64), np.empty(0, np.uint64), "")


def _most_events(matches_per_event: float) -> int:
    return max(1, int(_MOST_MATCHES / max(matches_per_event, 1e-9)))


def _ladder(index: Built, events: EventBatch, enough_seconds: float) -> tuple[float, float]:
    """Seconds and matches per event, from 1, 2, 4, … events until that takes long enough."""
    n = 1
    while True:
        n = min(n, events.n_events)
        batch = events.slice(0, n)
        start = time.perf_counter()
        matches = index.match_batch(batch)
        seconds = time.perf_counter() - start
        n_matches = len(matches.clause_ids)
        if seconds > enough_seconds or n >= events.n_events or n_matches > _MOST_MATCHES // 4:
            return seconds / max(n, 1), n_matches / max(n, 1)
        n *= 2


# -- trials ---------------------------------------------------------------------------------------


class _Runner:
    """One contender: the child that holds its index, and what it tells."""

    def __init__(self, job: _Job, m: Measurement) -> None:
        self.job = job
        self.m = m
        self.needs_bytes = 0.0
        self.answers: Answers | None = None
        self._child = Child(lambda tell: _Contest(job, m, tell).run())

    def stop(self) -> None:
        self._child.stop()

    def try_alone(self) -> bool:
        """Build and match a little; False if that did not go well, with the reason recorded."""
        job, m = self.job, self.m
        got: list[_Trial] = []
        if not self._goes_on(self._child.listen(got.append)):
            return False
        (trial,) = got
        _keep_compiled(job, m.contender, m.options)
        m.build_seconds, m.peak_bytes = trial.build_seconds, trial.peak_bytes
        most = job.budget.seconds / (job.rounds + 1) / max(trial.event_seconds, 1e-9)
        n_events = min(job.events.n_events, int(most), _most_events(trial.matches_per_event))
        if n_events < min(_FEWEST_EVENTS, job.events.n_events):
            m.status = "slow"
            m.reason = (
                f"one event takes {trial.event_seconds:.3g} s: {job.rounds} rounds of at least "
                f"{_FEWEST_EVENTS} events do not fit {job.budget.seconds:.3g} s"
            )
            return False
        m.n_events = n_events
        self.needs_bytes = (trial.peak_bytes or 0) + 24 * trial.matches_per_event * n_events
        return True

    def warm_up(self) -> bool:
        return self._goes_on(self._child.go_on(self.m.n_events, self._take_answers))

    def run(self) -> bool:
        return self._goes_on(self._child.go_on(None, self._take_round))

    def _goes_on(self, ended: Ended | None) -> bool:
        if ended is not None:
            self.m.status, self.m.reason = _with_memory(ended, self.job.budget.bytes_each())
            self.m.rounds, self.m.yardsticks = [], []
        return ended is None

    def _take_answers(self, message: tuple[Answers, float, int]) -> None:
        m = self.m
        self.answers, m.candidates_per_event, m.index_bytes = message
        m.n_matches, m.digest = int(self.answers.counts.sum()), self.answers.total

    def _take_round(self, message: tuple[float, float, bool]) -> None:
        seconds, yardstick, is_same = message
        self.m.rounds.append(seconds / max(self.m.n_events, 1) * 1e6)
        self.m.yardsticks.append(yardstick * 1e6)
        if not is_same:
            self.m.status = "wrong"
            self.m.reason = "it answers the same events differently each time"


def _with_memory(ended: Ended, n_bytes: int) -> tuple[str, str]:
    if ended.status == "memory":
        return "memory", f"{ended.reason} (it had {n_bytes / 2**30:.3g} GiB)"
    return ended.status, ended.reason


def _compile(job: _Job, contender: Contender, options: Mapping[str, Any]) -> None:
    """Let kernels be compiled, or loaded, on a few clauses and events."""
    few = take_clauses(job.table, np.arange(min(64, job.table.n_clauses)))
    built = build_contender(contender, few, _statistics(job, contender), options)
    built.match_batch(job.events.slice(0, min(_COMPILE_EVENTS, job.events.n_events)))


def _statistics(job: _Job, contender: Contender) -> Statistics | None:
    return job.statistics if contender.statistics else None


_compiled: set[tuple[bool, str, str]] = set()


def _keep_compiled(job: _Job, contender: Contender, options: Mapping[str, Any]) -> None:
    """Load the kernels of an index that has stood a trial here, once, for all children to come."""
    key = (contender.is_structure, contender.index, repr(sorted(options.items())))
    if key not in _compiled:
        _compiled.add(key)
        with suppress(Exception):
            _compile(job, contender, options)


def _built(job: _Job, m: Measurement) -> tuple[Built, float]:
    start = time.perf_counter()
    index = build_contender(m.contender, job.table, _statistics(job, m.contender), m.options)
    return index, time.perf_counter() - start


# -- the race -------------------------------------------------------------------------------------


def _race(
    job: _Job,
    runners: list[_Runner],
    race: int,
    answers: dict[str, Answers],
    progress: Progress,
) -> None:
    """Let contenders take turns, and end them; who fails is left out."""
    for runner in runners:
        runner.m.race = race
    progress("warming up")
    running = [runner for runner in runners if runner.warm_up()]
    shuffled = random.Random(job.seed)
    for number in range(job.rounds):
        progress(f"round {number + 1} of {job.rounds}")
        for runner in shuffled.sample(running, len(running)):
            if not runner.run():
                running.remove(runner)
    for runner in runners:
        runner.stop()
        if runner in running and runner.answers is not None:
            answers[runner.m.contender.name] = runner.answers


class _Contest:
    """What a contender does in its child: a trial, then what it is told to."""

    def __init__(self, job: _Job, m: Measurement, tell: Tell) -> None:
        self.job, self.m, self.tell = job, m, tell
        self.repeats = self.n_chunks = 1

    def run(self) -> None:
        limit = self.job.budget.bytes_each()
        self.tell.step("the first calls", _COMPILE_SECONDS)
        with limited_memory(limit + _COMPILE_BYTES):
            _compile(self.job, self.m.contender, self.m.options)
        with limited_memory(limit):
            self.trial()
            n_events = self.tell.pause()
            self.batch = self.job.events.slice(0, n_events)
            self.warm_up()
            gc.collect()
            gc.disable()
            while True:
                self.tell.pause()
                self.round()

    def trial(self) -> None:
        budget = self.job.budget
        self.tell.step("building", budget.seconds)
        reset_peak()
        before = process_bytes("VmRSS")
        self.index, seconds = _built(self.job, self.m)
        self.tell.step("matching its first events", budget.seconds)
        per_event, matches = _ladder(self.index, self.job.events, budget.seconds / 100)
        peak = process_bytes("VmHWM")
        used = None if peak is None or before is None else max(0, peak - before)
        self.tell(_Trial(seconds, per_event, matches, used))

    def warm_up(self) -> None:
        self._step("warming up")
        before = self.index.stats().candidates
        self.first = self.index.match_batch(self.batch)
        stats = self.index.stats()
        n_events = self.batch.n_events
        candidates = (stats.candidates - before) / max(n_events, 1)
        self.answers = summarize(self.first, self.job.owners, n_events)
        self.tell((self.answers, candidates, stats.n_bytes))
        start = time.perf_counter()
        self.index.match_batch(self.batch)
        seconds = time.perf_counter() - start
        self.repeats = max(1, math.ceil(_CHUNK_SECONDS / max(seconds, 1e-7)))
        whole = max(seconds * self.repeats, 1e-7)
        self.n_chunks = min(max(1, int(_MOST_CHUNKS * _CHUNK_SECONDS / whole)), _MOST_CHUNKS)

    def round(self) -> None:
        self._step("matching")
        match, batch = self.index.match_batch, self.batch
        yardstick = yardstick_seconds()
        chunks = []
        for _ in range(self.n_chunks):
            start = time.perf_counter()
            for _ in range(self.repeats):
                matches = match(batch)
            chunks.append((time.perf_counter() - start) / self.repeats)
        yardstick = (yardstick + yardstick_seconds()) / 2
        self.tell((median(chunks), yardstick, self._is_same(matches)))

    def _step(self, what: str) -> None:
        self.tell.step(what, 2 * self.job.budget.seconds + 10)

    def _is_same(self, matches: ClauseMatches) -> bool:
        """The same answer as at first? Ids may come in another order, so they are summed."""
        if not np.array_equal(matches.offsets, self.first.offsets):
            return False
        if np.array_equal(matches.clause_ids, self.first.clause_ids):
            return True
        again = summarize(matches, self.job.owners, self.batch.n_events)
        return bool(np.array_equal(again.digests, self.answers.digests))
