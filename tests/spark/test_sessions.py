"""The same through Spark Connect, on executors of their own, and on a Hadoop path."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import matchmill as mm
from tests.support.spark_cases import check_all
from tests.support.spark_session import TEST_SETTINGS, why_not

pytest.importorskip("pyspark")
from matchmill import spark as ms
from matchmill.spark.published.locations import location_of

ROOT = Path(__file__).parents[2]

CONNECT = """
import sys
from pyspark.sql import SparkSession
from tests.support.spark_cases import check_all
builder = SparkSession.builder.remote("local[2]")
for name, value in {settings!r}.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
check_all(spark, sys.argv[1])
import matchmill as mm
from matchmill import spark as ms
from tests.support.spark_cases import case_of, oracle, pairs, subscriptions
case = case_of("json", 3, 60, 30)
events, rows = spark.createDataFrame(case.table), subscriptions(spark, case.expressions)
for plan in ("events", "auto"):
    found = ms.match(rows, events, plan=plan, layout="json")
    assert pairs(found) == oracle(case)
bad = spark.sql("select 1 as event_id, '[' as event")
try:
    with ms.plain_errors():
        ms.match(sys.argv[1], bad, layout="json", strict=True).collect()
except mm.EventError as error:
    assert "not valid JSON" in str(error) and "SQLSTATE" not in str(error), error
else:
    raise AssertionError("no error")
try:
    ms.open("hdfs://somewhere/index", spark=spark)
except mm.InputError as error:
    assert "Spark Connect" in str(error)
print("all is well")
"""

CLUSTER = """
import sys
from matchmill import spark as ms
from tests.support.spark_cases import check_all
check_all(ms.session("local-cluster[2,1,1024]", **{settings!r}), sys.argv[1])
print("all is well")
"""


def run(program: str, tmp_path: Path, **settings: str) -> None:
    local = {"spark.local.dir": str(tmp_path / "local"), "spark.driver.host": "127.0.0.1",
             "spark.driver.bindAddress": "127.0.0.1"}  # fmt: skip
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-c", program.format(settings=TEST_SETTINGS | local | settings),
         str(tmp_path / "i")],
        env=os.environ | {
            "PYTHONPATH": os.pathsep.join(paths),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_TESTING": "1",  # any free port
        },
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout.endswith("all is well\n"), done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_spark_connect(tmp_path: Path) -> None:
    run(CONNECT, tmp_path)


@pytest.mark.long
@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_executors_of_their_own(tmp_path: Path) -> None:
    run(CLUSTER, tmp_path)


# -- Hadoop ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_hadoop_path(spark: Any) -> None:
    check_all(spark, "viewfs://tests/data/all")
    location = location_of("viewfs://tests/data/all", spark)
    assert location.names("") == ["current.json", "versions"]
    assert len(location.names("versions")) == 2


@pytest.mark.slow
def test_a_build_that_fails_leaves_a_hadoop_path_as_it_was(spark: Any) -> None:
    path = "viewfs://tests/data/failing"
    schema = "subscription_id string, expression string"
    index = ms.build(spark.createDataFrame([("a", "x = 1")], schema), path)
    twice = spark.createDataFrame([("a", "x = 1"), ("a", "x = 2")], schema)
    with pytest.raises(mm.DuplicateIdError):
        ms.build(twice, path)
    assert location_of(path, spark).names("versions") == [index.version]
    assert ms.open(path, spark=spark).version == index.version
    with pytest.raises(mm.InputError, match="give the session"):
        ms.open(path)


def test_uris_of_local_folders(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    assert location_of(folder.as_uri()).root == str(folder)
    assert location_of(str(folder)).root == str(folder)
    with pytest.raises(mm.FolderError, match="holds no engine"):
        ms.open(folder)
