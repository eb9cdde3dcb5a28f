"""Engines on a Hadoop path: versions are pruned, an executor is killed, and every job goes on.

Run as a process of its own: `python -m tests.support.lost_executor FOLDER N_ROUNDS`.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from matchmill import spark as ms
from tests.support.spark_session import TEST_SETTINGS

ROOT = "viewfs://tests/data"
N_EVENTS = 40


def executors() -> set[int]:
    """The processes of executors that this process, and its JVM, have started."""
    parents, names = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parents[int(entry.name)] = int(
                    (entry / "stat").read_text().rpartition(")")[2].split()[1]
                )
                names[int(entry.name)] = (entry / "cmdline").read_bytes()
            except OSError:
                continue
    found = set()
    for process, name in names.items():
        if b"CoarseGrainedExecutorBackend" in name:
            above = process
            while above > 1 and above != os.getpid():
                above = parents.get(above, 0)
            if above == os.getpid():
                found.add(process)
    return found


def matches(spark: Any, engine: Any) -> set[tuple[int, str]]:
    events = spark.range(0, N_EVENTS, 1, 4).selectExpr("id as event_id", "id as x")
    return {tuple(row) for row in ms.match(engine, events).collect()}


def build(spark: Any, n: int) -> Any:
    rows = spark.createDataFrame([(f"v{n}-{k}", f"x >= {k}") for k in range(0, N_EVENTS, 5)],
                                 "subscription_id string, expression string")  # fmt: skip
    return ms.build(rows, f"{ROOT}/engine", shards=2)


def wanted(n: int) -> set[tuple[int, str]]:
    return {(x, f"v{n}-{k}") for k in range(0, N_EVENTS, 5) for x in range(k, N_EVENTS)}


def main(folder: Path, n_rounds: int) -> None:
    data = folder / "hadoop"
    data.mkdir()
    spark = ms.session(
        "local-cluster[2,1,1024]",
        **TEST_SETTINGS,
        **{
            "spark.local.dir": str(folder / "local"),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.hadoop.fs.viewfs.mounttable.tests.link./data": data.as_uri(),
        },
    )
    n = 0
    for _ in range(n_rounds):
        for _ in range(4):  # two are kept: the others are pruned
            n += 1
            engine = build(spark, n)
            assert matches(spark, engine) == wanted(n)
            version = engine.version
            del engine
        assert len(list((data / "engine" / "versions").iterdir())) <= 3
        victim = min(executors())
        os.kill(victim, signal.SIGKILL)
        while victim in executors():
            pass
        # Jobs that have nothing to do with an engine, on the executor that comes in its place, too.
        assert spark.range(100).repartition(8).count() == 100
        assert matches(spark, ms.open(f"{ROOT}/engine", spark=spark)) == wanted(n)
        assert ms.open(f"{ROOT}/engine", spark=spark).version == version
        while len(executors()) < 2:
            pass
        assert spark.range(100).repartition(8).count() == 100
        assert matches(spark, ms.open(f"{ROOT}/engine", spark=spark)) == wanted(n)
    files = spark.sparkContext._jsc.sc().listFiles()
    assert files.size() == 0, files
    print("all is well")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
