"""Where a stream writes: one folder per batch, which is there whole or not at all.

    OUTPUT/batch_id=12/…                        matches
    OUTPUT/_quarantine/events/batch_id=12/…     rejected events; a batch without any has no folder
    OUTPUT/_quarantine/changes/batch_id=12/…    rejected changes, likewise
    OUTPUT/_writing/…                           not finished yet

Which files a batch has is recorded before they are revealed (`batch_records.py`). A batch that is
run again after that is not matched again: only what is left of revealing is done, so those who read
the output as a stream see each file once. Before that, a batch that is run again replaces its
folders. Spark's readers ignore names with a `_`. Everything goes through Hadoop's file systems, so
any path that Spark writes to will do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from typing import Any, NamedTuple
from uuid import uuid4

from matchmill.errors import FolderError, InputError

__all__ = ["FORMATS", "StreamOutput", "Written"]

FORMATS = ("parquet", "json")
_PART = re.compile(r"part-(\d+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(.*)")  # by Spark


class Written(NamedTuple):
    """A batch that is written and not revealed yet."""

    name: str  # of its folder
    files: list[str]


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

    def remove_leftovers(self, needed: Collection[str]) -> None:
        """Remove what earlier attempts did not finish, but for what is being revealed."""
        for name in self._names("_writing"):
            if f"_writing/{name}" not in needed:
                self._system.delete(self._path(f"_writing/{name}"), True)

    def write(self, rows: Any, batch_id: int) -> Written:
        """Write the rows of a batch under a temporary name.

        The names of its files are the same whenever the batch is written. Whoever reads the output
        as a stream of files remembers names.
        """
        name = f"_writing/{batch_id}-{uuid4().hex[:12]}"
        rows.write.format(self._format).save(f"{self.root}/{name}")
        files = []
        for file in self._names(name):
            if part := _PART.fullmatch(file):
                files.append(f"batch-{batch_id}-part-{part[1]}{part[2]}")
                self._rename(f"{name}/{file}", f"{name}/{files[-1]}")
        return Written(name, files)

    def remove_batch(self, batch_id: int) -> None:
        """Remove a batch that must be answered again."""
        self._system.delete(self._path(_batch(batch_id)), True)

    def reveal(self, written: Written, batch_id: int) -> bool:
        """Rename what was written to the name of the batch; continue where that was cut short.

        Renaming a folder is one step, or on object stores one per file. Return whether all files
        are in their place now.
        """
        target = _batch(batch_id)
        if self._exists(written.name):
            if not self._exists(target):
                self._rename(written.name, target)
            else:
                for file in written.files:
                    self._finish_move(f"{written.name}/{file}", f"{target}/{file}")
                self._system.delete(self._path(written.name), True)
        return all(self._exists(f"{target}/{file}") for file in written.files)

    def _finish_move(self, name: str, target: str) -> None:
        """Move a file that may have been copied, wholly or in part, but not removed."""
        if not self._exists(name):
            return
        if self._exists(target):
            if self._size(name) == self._size(target):  # somebody may be reading it
                self._system.delete(self._path(name), False)
                return
            self._system.delete(self._path(target), False)
        self._rename(name, target)

    def _size(self, name: str) -> int:
        return int(self._system.getFileStatus(self._path(name)).getLen())

    def quarantine(self, kind: str, rows: Any | None, batch_id: int) -> None:
        """Write rejected rows as JSON lines, or remove those of an earlier attempt."""
        target = f"_quarantine/{kind}/{_batch(batch_id)}"
        if rows is None:
            self._system.delete(self._path(target), True)
            return
        name = f"_writing/{kind}-{batch_id}-{uuid4().hex[:12]}"
        rows.write.json(f"{self.root}/{name}")
        self._system.mkdirs(self._path(target).getParent())
        self._system.delete(self._path(target), True)
        self._rename(name, target)

    def _exists(self, name: str) -> bool:
        return bool(self._system.exists(self._path(name)))

    def _names(self, name: str) -> list[str]:
        if not self._exists(name):
            return []
        return sorted(s.getPath().getName() for s in self._system.listStatus(self._path(name)))

    def _rename(self, name: str, target: str) -> None:
        if not self._system.rename(self._path(name), self._path(target)):
            raise FolderError(
                f"{self.root}/{name} cannot be renamed to {target}: check that the folder can be"
                " written to, and start the stream again; nothing is lost"
            )


def _batch(batch_id: int) -> str:
    return f"batch_id={batch_id}"
