"""Whether the files of a source have changed: their names, sizes and times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matchmill.errors import FileFormatError
from matchmill.spark.pipeline.config import is_local, local_files

__all__ = ["files_of"]


def files_of(path: str, spark: Callable[[], Any]) -> list[tuple[str, int, int]]:
    """(name, bytes, time of the last change) of each file; `spark` is asked for Hadoop's alone."""
    if is_local(path):
        found = [(str(f), f.stat().st_size, f.stat().st_mtime_ns) for f in local_files(path)]
    else:
        found = _hadoop_files(path, spark())
    if not found:
        raise FileFormatError(f"{path}: there is no such file or folder, or nothing in it")
    return found


def _hadoop_files(path: str, spark: Any) -> list[tuple[str, int, int]]:
    context = spark.sparkContext
    hadoop_path = context._jvm.org.apache.hadoop.fs.Path(path)
    system = hadoop_path.getFileSystem(context._jsc.hadoopConfiguration())
    files: list[tuple[str, int, int]] = []
    for root in system.globStatus(hadoop_path) or ():
        walk = system.listFiles(root.getPath(), True)
        while walk.hasNext():
            status = walk.next()
            name = status.getPath().toString()
            if not status.getPath().getName().startswith(("_", ".")):
                files.append((name, status.getLen(), status.getModificationTime()))
    return sorted(files)
