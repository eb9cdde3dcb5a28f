"""The chain: each step in its turn, unless it is done and nothing that it is made from changed."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import NamedTuple

from matchmill.spark.pipeline.config import Config
from matchmill.spark.pipeline.job import Job, Messages
from matchmill.spark.pipeline.step_records import StepRecord
from matchmill.spark.pipeline.steps import Step, steps_named
from matchmill.spark.pipeline.summary import write_summary

__all__ = ["Outcome", "run_pipeline"]


class Outcome(NamedTuple):
    records: list[StepRecord]  # of the steps that were asked for
    n_set_aside: int
    page: str


def run_pipeline(
    config: Config,
    messages: Messages,
    *,
    command: str = "run",
    start_at: str | None = None,
    force: bool = False,
) -> Outcome:
    """Run the steps of a command. With `start_at` that step and all after it run again, and what
    the others have made is taken as it is; with `force` all of them run."""
    steps = steps_named(command)
    first = [step.command for step in steps].index(start_at) if start_at else 0
    job = Job(config, messages)
    try:
        with job.place.locked():
            for number, step in enumerate(steps):
                _one(job, step, command, number < first, force or start_at is not None)
            records = [r for r in map(job.state.__getitem__, (s.name for s in steps)) if r]
            page = write_summary(job)
    finally:
        job.close()
    n_set_aside = sum(
        record.counts.get("set_aside", 0) + record.counts.get("refused", 0) for record in records
    )
    return Outcome(records, n_set_aside, page)


def _one(job: Job, step: Step, command: str, is_before: bool, must_run: bool) -> None:
    say = job.messages.line
    if command == "run" and not step.is_needed(job):
        job.state.forget(step.name)
        if step.name == "build":
            say("build: not needed, the driver matches so few without an index")
        return
    if is_before:
        say(f"{step.name}: taken as it is; {_counted(job.made(step.name))}")
        return
    made_from = step.made_from(job)
    done = job.state[step.name]
    if done is not None and done.made_from == made_from and not must_run and step.name != "stream":
        say(f"{step.name}: unchanged since the last run; {_counted(done)}")
        return
    job.state.remove_rubbish(step.name)
    start = time.perf_counter()
    try:
        record = step.run(job, made_from)
    except BaseException:
        with suppress(Exception):  # the error that led here is the one to tell
            job.state.remove_rubbish(step.name)
        raise
    job.state.publish(record)
    say(f"{step.name}: {_counted(record)}; {time.perf_counter() - start:.1f} s")


def _counted(record: StepRecord) -> str:
    """`200,005 in = 200,000 accepted + 5 set aside`."""
    counts = record.counts
    if "in" in counts:
        return (
            f"{counts['in']:,} in = {counts['accepted']:,} accepted"
            f" + {counts['set_aside']:,} set aside"
        )
    return ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in counts.items())
