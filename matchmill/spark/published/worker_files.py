"""How a worker finds a folder: under its own path, or among the files that Spark copied."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

from pyspark import SparkFiles

from matchmill.errors import FolderError

__all__ = ["WorkerFiles"]


@dataclass(frozen=True, slots=True)
class WorkerFiles:
    """A folder as workers find it.

    A folder with a `saved_version` is that of a saved engine in exactly that state, and `operators`
    are the modules to import before it is opened. A folder without one is a version of a sharded
    engine.
    """

    where: str  # a path, or a name among Spark's files
    is_shared: bool
    saved_version: str | None = None
    operators: tuple[str, ...] = ()

    def folder(self) -> Path:
        """Find the folder on this machine."""
        folder = Path(self.where if self.is_shared else SparkFiles.get(self.where))
        if folder.is_dir():
            return folder
        if self.is_shared:
            raise FolderError(
                f"{folder} is not there (seen from {socket.gethostname()}): either this version of"
                " the engine has been removed since, then open the engine again; or the workers do"
                " not share that folder, then build to one that they do, or to a Hadoop path"
            )
        raise FolderError(
            f"Spark did not copy {self.where} to {socket.gethostname()}: open the engine again"
        )
