"""Streams whose driver, executor or worker is killed: nothing lost, nothing twice.

A handful of points; `script/bench spark-kills` goes through all of them, many times."""

from __future__ import annotations

import signal
from pathlib import Path

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


IN_BATCHES = ["in the middle of matching", "between removing and renaming"]
IN_COMPACTIONS = ["after it is published", "before the switch"]


@pytest.mark.parametrize(
    "points",
    first_cases(1, [["between removing and renaming"], IN_BATCHES + IN_COMPACTIONS]),
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
@pytest.mark.parametrize("seed", first_cases(1, range(2, 6)))
def test_what_is_killed_while_it_matches(
    seed: int, order: str, master: str, tmp_path: Path
) -> None:
    case = new_chain(tmp_path, seed, 2)
    (tmp_path / order).touch()
    home = spark_home(tmp_path)
    assert run_once(tmp_path, KILL_MASTER=master, SPARK_HOME=home) == 0, log(tmp_path)
    assert list(tmp_path.glob(f"{order} taken by *"))
    assert is_right(tmp_path, case)
