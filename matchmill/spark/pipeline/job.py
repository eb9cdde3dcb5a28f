"""What all steps of a pipeline share: the config, the output, Spark when it is needed, messages."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread
from typing import Any, Protocol

from pyspark.sql import SparkSession

from matchmill.errors import InputError, MatchmillError
from matchmill.operators.modules import find_in_current_folder, import_modules
from matchmill.spark.errors import naming_files, plain_errors
from matchmill.spark.layouts import EventLayout
from matchmill.spark.matching.small_job import MAX_EVENTS, MAX_SUBSCRIPTIONS
from matchmill.spark.pipeline.config import Config, is_local
from matchmill.spark.pipeline.step_records import State, StepRecord
from matchmill.spark.pipeline.task_times import n_tasks_done
from matchmill.spark.published.locations import Location, location_of
from matchmill.spark.sessions import is_connect, session

__all__ = ["Job", "Messages", "StepFailedError"]

_SETTINGS = {
    "spark.ui.enabled": "false",
    # A megabyte of subscriptions is work for seconds: small files, too, are for all cores.
    "spark.sql.files.openCostInBytes": "65536",
}
_SECONDS_BETWEEN_LOOKS = 0.5
_GREETINGS = re.compile(
    rb"WARNING: Using incubator modules|Using Spark's default log4j|Setting default log level|"
    rb"To adjust logging level|.* WARN NativeCodeLoader:|Setting Spark log level"
)


class StepFailedError(MatchmillError, RuntimeError):
    """Spark could not do a step; the text says which, and why."""


class Messages(Protocol):
    """Where a pipeline reports its progress."""

    def stage(self, title: str) -> None:
        """Say what begins."""

    def update(self, n_done: int) -> None:
        """Say how many tasks are done."""

    def line(self, text: str) -> None:
        """Say what is done."""


class Job:
    """A pipeline that runs. Spark starts when a step first needs it."""

    def __init__(self, config: Config, messages: Messages) -> None:
        self.config = config
        self.messages = messages
        self._spark: Any = None
        self._is_ours = False
        self.location: Location = location_of(
            config.output, None if is_local(config.output) else self.spark()
        )
        self.state = State(self.location)

    def spark(self) -> Any:
        """Return the session, which is started at its first use."""
        if self._spark is None:
            self.messages.line("starting Spark")
            self._is_ours = SparkSession.getActiveSession() is None
            given = self.config["spark"]
            modules = self.config["subscriptions"]["operators"]
            if modules:
                find_in_current_folder()
            import_modules(modules, "operators: {name} cannot be imported: {error}")
            with _without_greetings() if self._is_ours else nullcontext():
                self._spark = session(given["master"], **{**_SETTINGS, **given["conf"]})
            _ship(self._spark, modules)
        return self._spark

    def path(self, name: str) -> str:
        """Return a path below the output, as Spark takes it."""
        return f"{self.location.root}/{name}"

    # -- what steps have made ---------------------------------------------------------------------

    def made(self, step: str) -> StepRecord:
        """Return the record of a step; raise InputError if it was not run."""
        record = self.state[step]
        if record is None:
            name = "ingest" if step in ("subscriptions", "events") else step
            raise InputError(
                f"{self.location.root} has no {step} yet: run `matchmill pipeline run"
                f" {self.config.path} --only {name}` first, or all steps without --only"
            )
        return record

    def read(self, step: str, part: str = "") -> Any:
        """Read the table that a step has written."""
        folder = self.path(self.made(step).made)
        return self.spark().read.parquet(f"{folder}/{part}" if part else folder)

    def accepted_layout(self) -> EventLayout:
        """Return how accepted events stand in their table."""
        given = self.config["events"]
        types = tuple(given["types"].items())
        if given["layout"] == "json":
            return EventLayout("json", attributes=("event",), types=types)
        if given["layout"] != "wide":
            return EventLayout("map", attributes=("attributes",), types=types)
        if given["event_id"] == "event_id":
            return EventLayout("wide", types=types)
        # The id has been copied to `event_id`, which is no attribute of the events as they came.
        names = self.read("events", "accepted").columns
        attributes = tuple(n for n in names if n != "event_id")
        return EventLayout("wide", attributes=attributes, types=types)

    @property
    def is_small(self) -> bool:
        """Whether `match` would let the driver do it, so that no engine is built."""
        plan = self.config["match"]["plan"]
        if plan != "auto":
            return bool(plan == "driver")
        return (
            self.made("subscriptions").counts["n_accepted"] <= MAX_SUBSCRIPTIONS
            and self.made("events").counts["n_accepted"] <= MAX_EVENTS
        )

    # -- around Spark's work ----------------------------------------------------------------------

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Show how many tasks are done, and say in plain words what fails."""
        spark = self.spark()
        self.messages.stage(title)
        with _watched(spark, self.messages.update), _explained(title):
            yield

    def close(self) -> None:
        """Stop Spark, if it was started for this job."""
        if self._spark is not None and self._is_ours:
            self._spark.stop()
        self._spark = None


def _ship(spark: Any, modules: list[str]) -> None:
    """Send modules that are single files to the workers; packages must be installed there."""
    for name in modules:
        spec = find_spec(name)
        is_file = spec is not None and spec.origin is not None and "." not in name
        if is_file and spec.submodule_search_locations is None and not is_connect(spark):  # type: ignore[union-attr]
            spark.sparkContext.addPyFile(str(Path(str(spec.origin)).resolve()))  # type: ignore[union-attr]


@contextmanager
def _watched(spark: Any, update: Callable[[int], None]) -> Iterator[None]:
    """Tell how many tasks are done, while the block runs."""
    if is_connect(spark):
        yield
        return
    done = Event()

    def look() -> None:
        while not done.wait(_SECONDS_BETWEEN_LOOKS):
            update(n_tasks_done(spark)[0])

    watcher = Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


@contextmanager
def _explained(title: str) -> Iterator[None]:
    """Raise errors of Spark as errors of the step."""
    try:
        with plain_errors(), naming_files():
            yield
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("pyspark", "py4j"):
            raise
        raise StepFailedError(
            f"{title}: {_reason(str(error))}; what was there before is unchanged"
        ) from error


def _reason(text: str) -> str:
    """Find the words of an error that help a user."""
    for sign, words in (
        ("No space left on device", "the disk is full (No space left on device); free some space"),
        ("File too large", "a file became larger than this process may write (File too large)"),
        ("Disk quota exceeded", "the disk quota is exceeded; free some space"),
    ):
        if sign in text:
            return words
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line for line in lines if line.startswith(("Caused by:", "["))]
    return (said[-1] if said else lines[0] if lines else "Spark failed without a word")[:500]


@contextmanager
def _without_greetings() -> Iterator[None]:
    """Leave out what the JVM always says on standard error when Spark starts.

    The JVM, and with it the workers, keeps writing to a pipe whose lines are passed on as long as
    this process lives.
    """
    source, sink = os.pipe()
    own = os.dup(2)
    os.dup2(sink, 2)
    os.close(sink)
    Thread(target=_pass_on, args=(source, own), daemon=True).start()
    try:
        yield
    finally:
        os.dup2(own, 2)


def _pass_on(source: int, target: int) -> None:
    with os.fdopen(source, "rb") as lines:
        for line in lines:
            if not _GREETINGS.match(line):
                os.write(target, line)
