"""The race: contenders in children of their own, which take turns.

Runner     in the parent: one contender's child, and what it reports
_Contest   in the child: a trial, then what the parent asks for

trial      build, match 1, 2, 4, … events; whoever fails, takes too long or too much memory is
           recorded and left out
race       warm up, then rounds. In each round every contender matches once, in a shuffled
           order, so that a busy machine slows all of them equally
"""

from __future__ import annotations

import gc
import math
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable, take_clauses
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import ClauseMatches, Statistics
from matchmill.lab.experiments.child_process import (
    Child,
    Ended,
    Tell,
    limited_memory,
    process_bytes,
    reset_peak,
)
from matchmill.lab.experiments.contenders import Built, build_contender
from matchmill.lab.experiments.match_digests import Answers, summarize
from matchmill.lab.experiments.measurement import CLOCKS, Budget, Measurement
from matchmill.lab.experiments.spec import Contender
from matchmill.lab.experiments.yardstick import yardstick_seconds

__all__ = ["COMPILE_SECONDS", "Job", "Runner", "keep_compiled", "ladder", "most_events", "race"]

COMPILE_SECONDS = 300.0  # the first calls of an index may compile its kernels
_COMPILE_BYTES = 2 << 30
_COMPILE_EVENTS = 2048  # enough that an index with a kernel for many events takes that, too
_CHUNK_SECONDS = 0.002  # shorter calls are repeated: the clock would be measured, too
_MOST_CHUNKS = 5  # of a round; the median counts, so that one interruption does not
_FEWEST_EVENTS = 4
_MOST_MATCHES = 64_000_000  # of one call: half a gigabyte of ids


class Job(NamedTuple):
    """What all contenders of a point share."""

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


# -- the parent's side ----------------------------------------------------------------------------


def race(
    job: Job,
    runners: list[Runner],
    number: int,
    answers: dict[str, Answers],
    progress: Callable[[str], None],
) -> None:
    """Let contenders take turns, and end them; who fails is left out."""
    for runner in runners:
        runner.m.race = number
    progress("warming up")
    running = [runner for runner in runners if runner.warm_up()]
    shuffled = random.Random(job.seed)
    for turn in range(job.rounds):
        progress(f"round {turn + 1} of {job.rounds}")
        for runner in shuffled.sample(running, len(running)):
            if not runner.run():
                running.remove(runner)
    for runner in runners:
        runner.stop()
        if runner in running and runner.answers is not None:
            answers[runner.m.contender.name] = runner.answers


class Runner:
    """One contender: the child that holds its index, and what it tells."""

    def __init__(self, job: Job, m: Measurement) -> None:
        self.job = job
        self.m = m
        self.needs_bytes = 0.0
        self.answers: Answers | None = None
        self._child = Child(lambda tell: _Contest(job, m, tell).run())

    def stop(self) -> None:
        """End the child."""
        self._child.stop()

    def try_alone(self) -> bool:
        """Build and match a little; False if that did not go well, with the reason recorded."""
        job, m = self.job, self.m
        got: list[_Trial] = []
        if not self._goes_on(self._child.listen(got.append)):
            return False
        (trial,) = got
        keep_compiled(job, m.contender, m.options)
        m.build_seconds, m.peak_bytes = trial.build_seconds, trial.peak_bytes
        most = job.budget.seconds / (job.rounds + 1) / max(trial.event_seconds, 1e-9)
        n_events = min(job.events.n_events, int(most), most_events(trial.matches_per_event))
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
        """Match once before the rounds."""
        return self._goes_on(self._child.go_on(self.m.n_events, self._take_answers))

    def run(self) -> bool:
        """Measure, and print the table."""
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


# -- compiling in advance -------------------------------------------------------------------------


def _compile(job: Job, contender: Contender, options: Mapping[str, Any]) -> None:
    """Let kernels be compiled, or loaded, on a few clauses and events."""
    few = take_clauses(job.table, np.arange(min(64, job.table.n_clauses)))
    built = build_contender(contender, few, _statistics(job, contender), options)
    built.match_batch(job.events.slice(0, min(_COMPILE_EVENTS, job.events.n_events)))


def _statistics(job: Job, contender: Contender) -> Statistics | None:
    return job.statistics if contender.statistics else None


_compiled: set[tuple[bool, str, str]] = set()


def keep_compiled(job: Job, contender: Contender, options: Mapping[str, Any]) -> None:
    """Load the kernels of an index that has stood a trial here, once, for all children to come."""
    key = (contender.is_predicate_index, contender.index, repr(sorted(options.items())))
    if key not in _compiled:
        _compiled.add(key)
        with suppress(Exception):
            _compile(job, contender, options)


# -- the child's side -----------------------------------------------------------------------------


class _Contest:
    """What a contender does in its child: a trial, then what the parent asks for."""

    def __init__(self, job: Job, m: Measurement, tell: Tell) -> None:
        self.job, self.m, self.tell = job, m, tell
        self.repeats = self.n_chunks = 1

    def run(self) -> None:
        limit = self.job.budget.bytes_each()
        self.tell.step("the first calls", COMPILE_SECONDS)
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
        per_event, matches = ladder(self.index, self.job.events, budget.seconds / 100)
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
        clock = CLOCKS[self.job.budget.clock]
        yardstick = yardstick_seconds(clock)
        chunks = []
        for _ in range(self.n_chunks):
            start = clock()
            for _ in range(self.repeats):
                matches = match(batch)
            chunks.append((clock() - start) / self.repeats)
        yardstick = (yardstick + yardstick_seconds(clock)) / 2
        self.tell((median(chunks), yardstick, self._is_same(matches)))

    def _step(self, what: str) -> None:
        self.tell.step(what, 2 * self.job.budget.seconds + 10)

    def _is_same(self, matches: ClauseMatches) -> bool:
        """Tell whether the answer is the same as at first; ids may come in another order."""
        if not np.array_equal(matches.offsets, self.first.offsets):
            return False
        if np.array_equal(matches.clause_ids, self.first.clause_ids):
            return True
        again = summarize(matches, self.job.owners, self.batch.n_events)
        return bool(np.array_equal(again.digests, self.answers.digests))


def _built(job: Job, m: Measurement) -> tuple[Built, float]:
    clock = CLOCKS[job.budget.clock]
    start = clock()
    index = build_contender(m.contender, job.table, _statistics(job, m.contender), m.options)
    return index, clock() - start


def most_events(matches_per_event: float) -> int:
    """Return how many events give as many matches as one call may."""
    return max(1, int(_MOST_MATCHES / max(matches_per_event, 1e-9)))


def ladder(index: Built, events: EventBatch, enough_seconds: float) -> tuple[float, float]:
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
