"""The chain of steps: each runs, unless it is done and nothing that it is made from has changed."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import NamedTuple

from matchmill.errors import InputError
from matchmill.spark.pipeline.config import Config
from matchmill.spark.pipeline.config_keys import STEP_NAMES
from matchmill.spark.pipeline.job import Job, Messages
from matchmill.spark.pipeline.step_records import StepRecord, counts_text
from matchmill.spark.pipeline.steps import STEPS, Step
from matchmill.spark.pipeline.summary import write_summary

__all__ = ["Outcome", "run_pipeline"]


class Outcome(NamedTuple):
    """What a run did: the records of its steps, how many rows it rejected, where the page is."""

    records: list[StepRecord]
    n_rejected: int
    page: str


def run_pipeline(
    config: Config,
    messages: Messages,
    *,
    start_at: str | None = None,
    only: str | None = None,
    force: bool = False,
) -> Outcome:
    """Run the steps of a pipeline that have something new to do.

    Parameters
    ----------
    config
        What `read_config` returned.
    messages
        Where to report progress.
    start_at
        Run this step and all after it again, and take what the others have made.
    only
        Run this step alone; the steps before it must have been run.
    force
        Run also what is unchanged.
    """
    for name in (start_at, only):
        if name is not None and name not in STEP_NAMES:
            raise InputError(f"no step {name!r}; there are: {', '.join(STEP_NAMES)}")
    if start_at is not None and only is not None:
        raise InputError("give the first step to run, or the only one, not both")
    steps = [step for step in STEPS if only in (None, step.public_name)]
    first = [step.public_name for step in steps].index(start_at) if start_at else 0
    job = Job(config, messages)
    try:
        with job.location.locked():
            for number, step in enumerate(steps):
                if only is None and not step.is_needed(job):
                    _leave_out(job, step)
                elif number < first:
                    counts = counts_text(job.made(step.name).counts)
                    messages.line(f"{step.name}: taken as it is; {counts}")
                else:
                    _run(job, step, force or start_at is not None)
            records = [r for r in map(job.state.__getitem__, (s.name for s in steps)) if r]
            page = write_summary(job)
    finally:
        job.close()
    return Outcome(records, sum(record.counts.get("n_rejected", 0) for record in records), page)


def _leave_out(job: Job, step: Step) -> None:
    job.state.forget(step.name)
    if step.name == "build":
        job.messages.line("build: not needed, the driver matches so few without an engine")


def _run(job: Job, step: Step, must_run: bool) -> None:
    made_from = step.made_from(job)
    done = job.state[step.name]
    if done is not None and done.made_from == made_from and not must_run and step.name != "stream":
        job.messages.line(f"{step.name}: unchanged since the last run; {counts_text(done.counts)}")
        return
    job.state.remove_leftovers(step.name)
    start = time.perf_counter()
    try:
        record = step.run(job, made_from)
    except BaseException:
        with suppress(Exception):  # the error that led here is the one to raise
            job.state.remove_leftovers(step.name)
        raise
    job.state.publish(record)
    seconds = time.perf_counter() - start
    job.messages.line(f"{step.name}: {counts_text(record.counts)}; {seconds:.1f} s")
