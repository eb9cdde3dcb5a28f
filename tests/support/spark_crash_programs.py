"""Programs that `test_crashes.py` runs as processes of their own, with a folder each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import matchmill as mm
from matchmill import spark as ms
from tests.support.spark_session import TEST_SETTINGS

MODULE = "tests.support.hostile_workers"


def start(folder: Path, master: str) -> Any:
    (folder / "driver").write_text(str(os.getpid()))
    return ms.session(master, **TEST_SETTINGS, **{"spark.local.dir": str(folder / "local")})


def killed_workers(folder: Path) -> None:
    """A worker is killed in the middle of a build, another in the middle of a match."""
    spark = start(folder, "local[2,4]")  # a task may fail three times
    numbers = range(0, 1000, 50)
    rules = [(f"s{k}", f"x >= {k} and is_even('killed at match')") for k in numbers]
    rows = spark.createDataFrame(rules, "subscription_id string, expression string")
    events = spark.range(0, 1000, 1, 4).selectExpr("id as event_id", "id as x")
    (folder / "kill at import").touch()
    index = ms.build(rows, folder / "i", shards=4, operators=MODULE)
    assert (folder / "killed at import").exists()
    found = {tuple(row) for row in ms.match(index, events).collect()}
    assert (folder / "killed at match").exists()
    assert found == {(x, f"s{k}") for k in numbers for x in range(k, 1000) if x % 2 == 0}


def full_disk(folder: Path) -> None:
    """No file may grow beyond some kilobytes in a worker."""
    spark = start(folder, "local[2]")
    rules = spark.range(20000).selectExpr(
        "id as subscription_id", "concat('x = ', id) as expression"
    )
    index = ms.build(rules.limit(10), folder / "i")
    (folder / "full disk").touch()
    with pytest.raises(mm.FolderError, match="cannot be written: File too large; make room"):
        ms.build(rules, folder / "i", shards=1, operators=MODULE)
    assert ms.open(folder / "i").version == index.version
    assert [path.name for path in (folder / "i" / "versions").iterdir()] == [index.version]


def builds(folder: Path) -> None:
    """Builds one version after the other and tells of each, until it is killed."""
    spark = start(folder, "local[2]")
    for n in range(1000):
        expression = f"concat('x = ', id, ' and y < {n}') as expression"
        rules = spark.range(3000).selectExpr("id as subscription_id", expression)
        print(ms.build(rules, folder / "i", shards=3).version, flush=True)
