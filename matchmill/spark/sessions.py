"""A Spark session with settings that suit matching, for one machine or as a start for others."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from matchmill.errors import MissingDependencyError
from matchmill.kernels.threads import n_processors

__all__ = ["is_connect", "session"]

_SETTINGS = {
    "spark.app.name": "matchmill",
    # A worker process keeps the index mapped and its kernels loaded from task to task.
    "spark.python.worker.reuse": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A crash of a worker then names the line where it happened.
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    # Errors of workers come without the frames of PySpark and of the JVM.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
    "spark.sql.pyspark.jvmStacktrace.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# Workers compile kernels into, and load them from, the cache of whoever started the session.
_FOR_WORKERS = (
    "MATCHMILL_CACHE_DIR",
    "MATCHMILL_ENGINE_CACHE_DIR",
    "NUMBA_CACHE_DIR",
    "PYTHONPATH",
)


def session(
    master: str = "local[*]", *, log_level: str = "FATAL", **settings: object
) -> SparkSession:
    """Return the Spark session of this process; start one if there is none.

    Parameters
    ----------
    master
        Where Spark runs. A local session is bound to this machine.
    log_level
        Logs are quiet, since errors come as exceptions; "WARN" is Spark's own default.
    **settings
        Spark's own settings, with `__` for a dot (`spark__sql__shuffle__partitions=8`), or by their
        full names: `**{"spark.ui.enabled": "false"}`.

    Examples
    --------
    >>> spark = ms.session("local[2]", spark__ui__enabled=False)  # doctest: +SKIP
    """
    check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers run any `python3`
    chosen: dict[str, Any] = _SETTINGS | {"spark.log.level": log_level}
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # nobody else is to connect
        chosen["spark.driver.memory"] = "2g"
        chosen["spark.sql.shuffle.partitions"] = str(2 * n_processors())
    for name in _FOR_WORKERS:
        if os.environ.get(name):
            chosen[f"spark.executorEnv.{name}"] = os.environ[name]
    chosen |= {name.replace("__", "."): str(value) for name, value in settings.items()}
    builder = SparkSession.builder.master(master)
    for name, value in chosen.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel(log_level)
    return made


def check_java() -> None:
    """Raise MissingDependencyError unless there is a Java that Spark would find."""
    home = os.environ.get("JAVA_HOME")
    if home:
        if not (Path(home) / "bin" / "java").is_file():
            raise MissingDependencyError(
                f"JAVA_HOME is {home}, but there is no bin/java in it; Spark needs Java 17 or newer"
            )
    elif shutil.which("java") is None:
        raise MissingDependencyError(
            "there is no java on the PATH and no JAVA_HOME; Spark needs Java 17 or newer: install"
            " openjdk-17-jre-headless, or your system's package of Java 17"
        )


def is_connect(spark: Any) -> bool:
    """Return whether this is a Spark Connect session, which has no JVM in this process."""
    return type(spark).__module__.startswith("pyspark.sql.connect")
