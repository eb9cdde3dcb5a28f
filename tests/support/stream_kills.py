"""A stream that is killed at chosen points and started again, until all of it is done.

A run is a process of its own with a session of its own. Its hooks wrap functions of the package and
kill the process, and with it Spark, when a point is reached. Runs upon the same folder are links of
a chain; the last has no point, and then the output must be that of a plain replay.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from matchmill import spark as ms
from matchmill.spark.building.driver import _Build
from matchmill.spark.streaming import batch_records as stream_records
from matchmill.spark.streaming import batches as stream_batches
from matchmill.spark.streaming import compaction as stream_compaction
from matchmill.spark.streaming import output as stream_output
from tests.support.spark_session import TEST_SETTINGS
from tests.support.stream_cases import (
    START,
    StreamCase,
    expected,
    found,
    stream_case,
    streams,
    write_files,
)

__all__ = ["BUILD_POINTS", "POINTS", "chain", "is_right", "new_chain", "run_once"]

ROOT = Path(__file__).parents[2]
MODULE = "tests.support.hostile_stream"
STREAM_POINTS = (
    "before the record",
    "after the record",
    "in the middle of matching",
    "after the temporary write",
    "before the files are recorded",
    "between removing and renaming",
    "in the middle of revealing",
    "after the rename",
    "before Spark's commit",
)
COMPACTION_POINTS = (
    "while a version is built",
    "before it is published",
    "after it is published",
    "before the switch",
    "after the switch",
)
BUILD_POINTS = (  # of the index that a chain begins with
    "while the first version is built",
    "before the first version is published",
    "after the first version is published",
)
POINTS = STREAM_POINTS + COMPACTION_POINTS


def new_chain(folder: Path, seed: int, n_batches: int) -> StreamCase:
    """Files of events and of changes; some subscriptions ask an operator."""
    case = stream_case(seed, n_batches, 60, 12, 8)
    guarded = {k: f"({text}) and harmless()" for k, text in list(case.base.items())[:30]}
    case = case._replace(base=case.base | guarded)
    write_files(case, folder)
    (folder / "case").write_bytes(pickle.dumps(case))
    return case


def is_right(folder: Path, case: StreamCase) -> bool:
    os.environ.setdefault("MATCHMILL_HOSTILE", str(folder))
    plain = {k: t.removesuffix(" and harmless()") for k, t in case.base.items()}
    return found(folder / "output") == expected(case._replace(base=plain))


def run_once(folder: Path, point: str = "", *, background: bool = False, **changed: str) -> int:
    """One run; its exit code, which is that of SIGKILL if it was killed."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(paths),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "MATCHMILL_HOSTILE": str(folder),
        "KILL_POINT": point,
        "KILL_BACKGROUND": "yes" if background else "",
        **changed,
    }
    with (folder / "log").open("ab") as log:
        return subprocess.run(
            [sys.executable, "-m", __name__, str(folder)], cwd=folder, env=environment,
            stdout=log, stderr=log, start_new_session=True, check=False,
        ).returncode  # fmt: skip


def chain(folder: Path, points: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Runs that are killed, at one point after the other, until one is not."""
    for number, point in enumerate([*points, ""]):
        code = run_once(folder, point, background=number % 2 == 1)
        yield point, code
        if code == 0:
            return


# -- inside a run ---------------------------------------------------------------------------------


def die(*_: Any) -> None:
    os.killpg(os.getpid(), signal.SIGKILL)


def hook(owner: Any, name: str, *, before: Any = None, after: Any = None) -> None:
    """Have a method call one function with its arguments first, and another one at its end."""
    method: Callable[..., Any] = getattr(owner, name)

    def hooked(*args: Any, **options: Any) -> Any:
        if before is not None:
            before(*args)
        result = method(*args, **options)
        if after is not None:
            after(*args)
        return result

    setattr(owner, name, hooked)


def is_switch(records: Any, record: Any) -> bool:
    earlier = records.read(record.batch_id - 1) if record.batch_id else None
    return earlier is not None and earlier.version != record.version


def die_at_switch(records: Any, record: Any) -> None:
    if is_switch(records, record):
        die()


def die_unrevealed(output: Any, written: Any, batch_id: int) -> None:
    if output._exists(written.name):
        die()


def die_half_revealed(output: Any, written: Any, batch_id: int) -> None:
    """As where a folder is renamed file by file, by copying: one is copied, not removed yet."""
    if not output._exists(written.name):
        return
    fs, paths = output._system, (f"{written.name}/", f"batch_id={batch_id}/")
    fs.mkdirs(output._path(paths[1]))
    source, target = (output._path(f"{path}{written.files[0]}") for path in paths)
    copy = SparkContext._jvm.org.apache.hadoop.fs.FileUtil.copy
    copy(fs, source, fs, target, False, fs.getConf())
    die()


def set_point(folder: Path, point: str) -> None:
    records, output = stream_records.Records, stream_output.StreamOutput
    if point == "in the middle of matching":
        (folder / "kill the driver").touch()
    hooks: dict[str, tuple[Any, str, dict[str, Any]]] = {
        "before the record": (records, "publish", {"before": die}),
        "after the record": (records, "publish", {"after": die}),
        "after the temporary write": (output, "write", {"after": die}),
        "before the files are recorded": (records, "publish_written", {"before": die}),
        "between removing and renaming": (output, "reveal", {"before": die_unrevealed}),
        "in the middle of revealing": (output, "reveal", {"before": die_half_revealed}),
        "after the rename": (output, "reveal", {"after": die}),
        "before Spark's commit": (stream_batches.Batches, "__call__", {"after": die}),
        "while a version is built": (_Build, "run", {"after": die}),
        "before it is published": (_Build, "publish", {"before": die}),
        "after it is published": (_Build, "publish", {"after": die}),
        "before the switch": (records, "publish", {"before": die_at_switch}),
        "after the switch": (records, "publish", {"after": die_at_switch}),
    }
    if point in hooks:
        owner, name, calls = hooks[point]
        hook(owner, name, **calls)


def wait_for_compaction(compaction: Any) -> bool:
    """Running when first asked, in the batch that began it; over when the next batch asks."""
    if not hasattr(compaction, "asked"):
        compaction.asked = True
        return True
    compaction.error()
    return False


def main(folder: Path) -> None:
    (folder / "driver").write_text(str(os.getpid()))
    case: StreamCase = pickle.loads((folder / "case").read_bytes())
    master = os.environ.get("KILL_MASTER", "local[2,4]")  # a task may fail three times
    spark = ms.session(master, **TEST_SETTINGS, **{"spark.local.dir": str(folder / "local")})
    point = os.environ["KILL_POINT"]
    if not (folder / "index" / "current.json").exists():
        if point in BUILD_POINTS:
            set_point(folder, COMPACTION_POINTS[BUILD_POINTS.index(point)])
        rows = spark.createDataFrame(
            list(case.base.items()), "subscription_id string, expression string"
        )
        ms.build(rows, folder / "index", shards=2, operators=MODULE)
    set_point(folder, point)
    background = bool(os.environ["KILL_BACKGROUND"])
    if background:
        stream_compaction.Compaction.is_running = property(wait_for_compaction)  # type: ignore[assignment]

    def now() -> datetime:
        last = ms.progress(folder / "checkpoint")
        return datetime.fromtimestamp(START + (0 if last is None else last.batch_id + 1), UTC)

    events, changes = streams(spark, folder, case)
    query = ms.stream(
        folder / "index", events, folder / "output", folder / "checkpoint", changes=changes,
        trigger={"availableNow": True}, compact_at=12, compact_in_background=background, now=now,
    )  # fmt: skip
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
