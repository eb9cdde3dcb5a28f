"""How long the tasks of some work took, and how many rows each wrote, to find skew.

Spark's status store has it, in classic sessions only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import uuid4

from matchmill.spark.sessions import is_connect

__all__ = ["TaskTime", "counting_tasks", "n_tasks_done"]

_MAX_TASKS = 100_000


class TaskTime(NamedTuple):
    """Figures of one task."""

    stage: int
    seconds: float
    rows_read: int
    rows_written: int


@contextmanager
def counting_tasks(spark: Any) -> Iterator[list[TaskTime]]:
    """Note the tasks of the work in the block; with Spark Connect the list stays empty."""
    times: list[TaskTime] = []
    if is_connect(spark):
        yield times
        return
    context = spark.sparkContext
    group = f"matchmill-{uuid4().hex[:12]}"
    context.setJobGroup(group, "matchmill")
    try:
        yield times
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    context._jsc.sc().listenerBus().waitUntilEmpty()
    times += _times(context, group)


def _times(context: Any, group: str) -> Iterator[TaskTime]:
    tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
    for job in sorted(tracker.getJobIdsForGroup(group)):
        info = tracker.getJobInfo(job)
        for stage in sorted(info.stageIds if info else ()):
            attempt = tracker.getStageInfo(stage)
            if attempt is None or not attempt.numCompletedTasks:  # it was not needed
                continue
            tasks = store.taskList(stage, attempt.currentAttemptId, _MAX_TASKS)
            for task in (tasks.apply(i) for i in range(tasks.size())):
                if task.status() == "SUCCESS":
                    metrics = task.taskMetrics().get()
                    yield TaskTime(
                        stage,
                        metrics.executorRunTime() / 1000,
                        metrics.inputMetrics().recordsRead(),
                        metrics.outputMetrics().recordsWritten(),
                    )


def n_tasks_done(spark: Any) -> tuple[int, int]:
    """Count the tasks done, and all tasks, of the stages that run now."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    known = [stage for stage in stages if stage is not None]
    return sum(s.numCompletedTasks for s in known), sum(s.numTasks for s in known)
