"""One Spark session for all tests, started by the first that asks for it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

from matchmill.errors import MissingDependencyError
from tests.support.s3_server import s3_environment

# A short-lived JVM: the quick compiler alone and one collector thread start in half the time.
_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
TEST_SETTINGS = {
    "spark.driver.extraJavaOptions": _JVM,
    "spark.executor.extraJavaOptions": _JVM,
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    # Jobs of a few rows: to compile code for each takes longer than to run them without.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.shuffle.compress": "false",
    "spark.broadcast.compress": "false",
}


def why_not() -> str:
    """Why there can be no Spark here; empty if there can."""
    if importlib.util.find_spec("pyspark") is None:
        return "PySpark is not installed"
    from matchmill.spark.sessions import check_java

    try:
        check_java()
    except MissingDependencyError as error:
        return str(error)
    return ""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if reason := why_not():
        pytest.skip(reason)
    from matchmill.spark import session

    s3_environment()
    folders = tmp_path_factory.mktemp("spark")
    mounted = folders / "hadoop"
    mounted.mkdir()
    made = session(
        "local[2]",
        **TEST_SETTINGS,
        **{
            "spark.local.dir": str(folders / "local"),
            # viewfs://tests/data is a Hadoop path that is no local one, and yet leads to a folder.
            "spark.hadoop.fs.viewfs.mounttable.tests.link./data": mounted.as_uri(),
            "spark.sql.warehouse.dir": str(folders / "warehouse"),
        },
    )
    yield made
    made.stop()
