"""What all steps of a pipeline share: the config, the output, Spark when it is needed, messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread
from typing import Any, Protocol

from pyspark.sql import SparkSession

from matchmill.errors import InputError, MatchmillError
from matchmill.operators.modules import find_in_current_folder, import_modules
from matchmill.spark.errors import plain_errors
from matchmill.spark.layouts import EventLayout
from matchmill.spark.matching.driver_match import MOST_EVENTS, MOST_SUBSCRIPTIONS
from matchmill.spark.pipeline.config import Config, is_local
from matchmill.spark.pipeline.jvm_messages import without_greetings
from matchmill.spark.pipeline.step_records import State, StepRecord
from matchmill.spark.pipeline.task_times import n_tasks_done
from matchmill.spark.published.locations import Place, place_of
from matchmill.spark.read_errors import naming_files
from matchmill.spark.sessions import is_connect, session

__all__ = ["Job", "Messages", "StepFailedError"]

_SETTINGS = {
    "spark.ui.enabled": "false",
    # A megabyte of subscriptions is work for seconds: small files, too, are for all cores.
    "spark.sql.files.openCostInBytes": "65536",
}
_SECONDS_BETWEEN_LOOKS = 0.5


class StepFailedError(MatchmillError, RuntimeError):
    """Spark could not do a step; says which, and why."""


class Messages(Protocol):
    """Where a pipeline says how it goes."""

    def stage(self, title: str) -> None: ...

    def update(self, n_done: int) -> None: ...

    def line(self, text: str) -> None: ...


class Job:
    """A pipeline at work. Spark starts when a step first asks for it."""

    def __init__(self, config: Config, messages: Messages) -> None:
        self.config = config
        self.messages = messages
        self._spark: Any = None
        self._is_ours = False
        self.place: Place = place_of(
            config.output, None if is_local(config.output) else self.spark()
        )
        self.state = State(self.place)

    def spark(self) -> Any:
        if self._spark is None:
            self.messages.line("starting Spark")
            self._is_ours = SparkSession.getActiveSession() is None
            given = self.config["spark"]
            modules = self.config["subscriptions"]["operators"]
            if modules:
                find_in_current_folder()
            import_modules(modules, "operators: {name} cannot be imported: {error}")
            with without_greetings() if self._is_ours else nullcontext():
                self._spark = session(given["master"], **{**_SETTINGS, **given["settings"]})
            _ship(self._spark, modules)
        return self._spark

    def path(self, name: str) -> str:
        """A path below the output, as Spark takes it."""
        return f"{self.place.root}/{name}"

    # -- what steps have made ---------------------------------------------------------------------

    def made(self, step: str) -> StepRecord:
        record = self.state[step]
        if record is None:
            command = "ingest" if step in ("subscriptions", "events") else step
            raise InputError(
                f"{self.place.root} has no {step} yet: run `matchmill pipeline {command}"
                f" {self.config.path}` first, or the whole by `matchmill pipeline run`"
            )
        return record

    def read(self, step: str, part: str = "") -> Any:
        """The table that a step has written."""
        folder = self.path(self.made(step).made)
        return self.spark().read.parquet(f"{folder}/{part}" if part else folder)

    def accepted_layout(self) -> EventLayout:
        """How accepted events stand in their table."""
        kind = self.config["events"]["layout"]
        if kind == "wide":
            return EventLayout("wide")
        if kind == "json":
            return EventLayout("json", columns=("event",))
        return EventLayout("map", columns=("attributes",))

    @property
    def is_small(self) -> bool:
        """Whether `match` would have the driver do it, so that no index is needed."""
        wanted = self.config["match"]["distributed"]
        if wanted != "auto":
            return bool(wanted == "never")
        return (
            self.made("subscriptions").counts["accepted"] <= MOST_SUBSCRIPTIONS
            and self.made("events").counts["accepted"] <= MOST_EVENTS
        )

    # -- around Spark's work ----------------------------------------------------------------------

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Around work of Spark: shows how many tasks are done, says in plain words what fails."""
        spark = self.spark()
        self.messages.stage(title)
        with _watched(spark, self.messages.update), _told(title):
            yield

    def close(self) -> None:
        """Stop Spark, if it was started for this."""
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
def _told(title: str) -> Iterator[None]:
    """Errors of Spark as errors of the step."""
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
    """The words of an error that tell a user something."""
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
