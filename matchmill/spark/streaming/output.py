"""Where a stream writes: one folder per batch, which is there whole or not at all.

    OUTPUT/batch_id=12/…                        matches
    OUTPUT/_quarantine/events/batch_id=12/…     rejected events; a batch without any has no folder
    OUTPUT/_quarantine/changes/batch_id=12/…    rejected changes, likewise
    OUTPUT/_writing/…                           not finished yet

A batch that is run again replaces its folders. Spark's readers ignore names with a `_`. Everything
goes through Hadoop's file systems, so any path that Spark writes to will do.
"""

from __future__ import annotations

import os
from typing import Any
from uuid import uuid4

from matchmill.errors import FolderError, InputError

__all__ = ["FORMATS", "StreamOutput"]

FORMATS = ("parquet", "json")


class StreamOutput:
    """The output folder of a stream."""

    def __init__(self, spark: Any, root: str | os.PathLike[str], format_name: str) -> None:
        if format_name not in FORMATS:
            raise InputError(f"no format {format_name!r}; there are: {', '.join(FORMATS)}")
        self.root = os.fspath(root).rstrip("/")
        self._format = format_name
        self._path_class = spark.sparkContext._jvm.org.apache.hadoop.fs.Path
        configuration = spark.sparkContext._jsc.hadoopConfiguration()
        self._system = self._path("").getFileSystem(configuration)

    def _path(self, name: str) -> Any:
        return self._path_class(f"{self.root}/{name}" if name else self.root)

    def check_unused(self) -> None:
        """Raise InputError if there are batches of another stream."""
        root = self._path("")
        if not self._system.exists(root):
            return
        for status in self._system.listStatus(root):
            name = status.getPath().getName()
            if name.startswith("batch_id="):
                raise InputError(
                    f"{self.root} holds {name} already, and the checkpoint is new: give the"
                    " checkpoint that belongs to it, or an empty folder"
                )

    def remove_leftovers(self) -> None:
        """Remove what earlier attempts did not finish."""
        self._system.delete(self._path("_writing"), True)

    def write(self, rows: Any, batch_id: int) -> str:
        """Write the rows of a batch under a temporary name, and return the name."""
        name = f"_writing/{batch_id}-{uuid4().hex[:12]}"
        rows.write.format(self._format).save(f"{self.root}/{name}")
        return name

    def reveal(self, name: str, batch_id: int) -> None:
        """Rename what was written to the name of the batch."""
        self._move(name, f"batch_id={batch_id}")

    def quarantine(self, kind: str, rows: Any | None, batch_id: int) -> None:
        """Write rejected rows as JSON lines, or remove those of an earlier attempt."""
        target = f"_quarantine/{kind}/batch_id={batch_id}"
        if rows is None:
            self._system.delete(self._path(target), True)
            return
        name = f"_writing/{kind}-{batch_id}-{uuid4().hex[:12]}"
        rows.write.json(f"{self.root}/{name}")
        self._system.mkdirs(self._path(target).getParent())
        self._move(name, target)

    def _move(self, name: str, target: str) -> None:
        self._system.delete(self._path(target), True)
        if not self._system.rename(self._path(name), self._path(target)):
            raise FolderError(
                f"{self.root}/{name} cannot be renamed to {target}: check that the folder can be"
                " written to, and start the stream again; nothing is lost"
            )
