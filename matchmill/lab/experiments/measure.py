"""Measure several indexes on one workload, so that the figures can be believed.

    1  the workload is made once; its flat arrays are the table and the events, not copied
    2  scan      answers as many events as it can in a few seconds: the reference
    3  trials    each contender in a child of its own, with limits: build, match a few events.
                 Whoever fails, takes too long or too much memory is recorded and left out
    4  race      the children take turns: warm up, then rounds. In each round every contender
                 matches once, in a shuffled order, so that a busy machine slows all of them equally
    5  verdict   all answers are compared, event by event; who differs is wrong, however fast

A contender too slow for all events gets as many of the first ones as fit its budget; figures per
event stay comparable, and `n_events` says how many it got. If not all indexes fit into memory
together, there are several races.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.errors import MatchmillError
from matchmill.index.event_sample import build_statistics
from matchmill.index.scan import Scan
from matchmill.lab.experiments.child_process import Tell, limited_memory, run_in_child
from matchmill.lab.experiments.contenders import is_there
from matchmill.lab.experiments.machine_info import available_bytes
from matchmill.lab.experiments.match_digests import Answers, judge, summarize
from matchmill.lab.experiments.measurement import Budget, Measurement
from matchmill.lab.experiments.race import (
    COMPILE_SECONDS,
    Job,
    Runner,
    keep_compiled,
    ladder,
    most_events,
    race,
)
from matchmill.lab.experiments.spec import Contender, Point
from matchmill.lab.experiments.yardstick import yardstick_seconds
from matchmill.lab.workloads.flat import FlatEvents, FlatSubscriptions, Workload
from matchmill.lab.workloads.registry import generate

__all__ = ["event_batch", "measure", "table_of"]

Progress = Callable[[str], None]


# -- workloads as indexes want them ---------------------------------------------------------------


def table_of(flat: FlatSubscriptions) -> ConjunctionTable:
    """Return the table of a workload: the same arrays, clauses numbered from 0."""
    return ConjunctionTable(
        np.arange(flat.n_clauses, dtype=np.int64),
        flat.clause_offsets,
        flat.attributes,
        flat.interval_offsets,
        flat.lows,
        flat.highs,
    )


def event_batch(flat: FlatEvents) -> EventBatch:
    """Return the events as indexes take them: the same arrays."""
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
        kind = "predicate index" if contender.is_predicate_index else "index"
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
) -> Job | None:
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
    return Job(table, events, owners, known, budget, rounds, seed)


def _measure(job: Job, found: dict[str, Measurement], progress: Progress) -> None:
    progress("scanning for reference")
    keep_compiled(job, Contender(Scan.name, Scan.name, {}), {})
    yardstick_seconds()  # compiles, or loads, its kernel
    scan = _scan_reference(job)
    answers: dict[str, Answers] = {}
    racing: list[Runner] = []
    n_races, room = 0, float(job.budget.bytes_together())
    try:
        for name, m in found.items():
            m.n_clauses = job.table.n_clauses
            if m.status != "ok":
                continue
            progress(f"trying {name}")
            runner = Runner(job, m)
            racing.append(runner)
            if not runner.try_alone():
                racing.pop().stop()
                continue
            room -= runner.needs_bytes
            if room < 0 and len(racing) > 1:  # the others race without it, and it with the next
                race(job, racing[:-1], n_races, answers, progress)
                n_races, room = n_races + 1, job.budget.bytes_together() - runner.needs_bytes
                del racing[:-1]
        race(job, racing, n_races, answers, progress)
    finally:
        for runner in racing:
            runner.stop()
    for name, verdict in judge(answers, scan).items():
        found[name].reference = verdict.reference
        if verdict.problem:
            found[name].status, found[name].reason = "wrong", verdict.problem


# -- the reference --------------------------------------------------------------------------------


def _scan_reference(job: Job) -> Answers:
    """Return what a scan finds for the first events, as many as its time allows."""
    got: list[Answers] = []

    def work(tell: Tell) -> None:
        tell.step("scanning", COMPILE_SECONDS + 10 * job.budget.scan_seconds)
        scan = Scan.build(job.table)
        scan.match_batch(job.events.slice(0, 0))  # compiles, or loads, its kernel
        per_event, per_match = ladder(scan, job.events, job.budget.scan_seconds / 20)
        n = min(job.events.n_events, int(job.budget.scan_seconds / max(per_event, 1e-9)))
        n = min(n, most_events(per_match))
        first = job.events.slice(0, n)
        tell(summarize(scan.match_batch(first), job.owners, n))

    run_in_child(work, got.append)
    return got[0] if got else Answers(np.empty(0, np.int64), np.empty(0, np.uint64), "")
