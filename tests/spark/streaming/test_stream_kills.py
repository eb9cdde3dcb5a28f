"""Streams whose driver, executor or worker is killed: nothing lost, nothing twice.

A handful of points; `script/bench spark-kills` goes through all of them, many times."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.spark_session import why_not

pytest.importorskip("pyspark")
import pyspark

from tests.support.stream_kills import chain, is_right, new_chain, run_once
from tests.support.tiers import first_cases

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not())]


def log(folder: Path) -> str:
    return (folder / "log").read_text(errors="replace")[-5000:]


def spark_home(folder: Path) -> str:
    """The Spark that is installed, under a name of its own: a local cluster writes to its home."""
    home = folder / "spark"
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != "work":
            (home / entry.name).symlink_to(entry)
    return str(home)


IN_BATCHES = [
    "in the middle of matching",
    "between removing and renaming",
    "in the middle of revealing",
    "before the files are recorded",
]
IN_COMPACTIONS = ["after it is published", "before the switch"]


@pytest.mark.parametrize(
    "points",
    first_cases(1, [["in the middle of revealing"], IN_BATCHES + IN_COMPACTIONS]),
    ids=["once", "again and again"],
)
def test_a_driver_that_is_killed(points: list[str], tmp_path: Path) -> None:
    case = new_chain(tmp_path, 1, 6)
    for point, code in chain(tmp_path, points):
        assert code == (-signal.SIGKILL if point else 0), f"{point}: {log(tmp_path)}"
    assert is_right(tmp_path, case)


@pytest.mark.parametrize(
    ("order", "master"),
    [("kill the worker", "local[2,4]"), ("kill the executor", "local-cluster[2,1,1024]")],
)
@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.long
def test_what_is_killed_while_it_matches(
    seed: int, order: str, master: str, tmp_path: Path
) -> None:
    case = new_chain(tmp_path, seed, 2)
    (tmp_path / order).touch()
    home = spark_home(tmp_path)
    assert run_once(tmp_path, KILL_MASTER=master, SPARK_HOME=home) == 0, log(tmp_path)
    assert list(tmp_path.glob(f"{order} taken by *"))
    assert is_right(tmp_path, case)


def rows_of_downstream(spark: Any, folder: Path) -> Counter[tuple[str, str]]:
    """What a stream of the output's files has read so far, in all of its runs."""
    read = spark.readStream.schema("event_id string, subscription_id string")
    query = (
        read.parquet(str(folder / "output"))
        .writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "downstream checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "downstream"))
    )
    query.awaitTermination()
    rows = spark.read.parquet(str(folder / "downstream")).collect()
    return Counter((row.event_id, row.subscription_id) for row in rows)


@pytest.mark.parametrize("seed", range(7, 10))
@pytest.mark.long
def test_a_stream_of_the_output_sees_each_row_once(seed: int, spark: Any, tmp_path: Path) -> None:
    """Killed between reveal and commit, and in the middle of revealing, with a reader beside."""
    case = new_chain(tmp_path, seed, 3)
    seen = Counter[tuple[str, str]]()
    for point, code in chain(tmp_path, ["before Spark's commit", "in the middle of revealing"]):
        assert code == (-signal.SIGKILL if point else 0), f"{point}: {log(tmp_path)}"
        before, seen = seen, rows_of_downstream(spark, tmp_path)
        assert seen.total() > before.total()
    assert is_right(tmp_path, case)
    wanted = Counter[tuple[str, str]]()
    for folder in (tmp_path / "output").glob("batch_id=*"):
        for row in spark.read.parquet(str(folder)).collect():
            wanted[row.event_id, row.subscription_id] += 1
    assert seen == wanted
