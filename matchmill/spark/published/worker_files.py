"""How a worker finds a folder: under its own path, or among the files that Spark brought."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

from pyspark import SparkFiles

from matchmill.errors import FolderError

__all__ = ["Shipped"]


@dataclass(frozen=True, slots=True)
class Shipped:
    where: str  # a path, or a name among Spark's files
    is_shared: bool

    def folder(self) -> Path:
        folder = Path(self.where if self.is_shared else SparkFiles.get(self.where))
        if folder.is_dir():
            return folder
        if self.is_shared:
            raise FolderError(
                f"{folder} is not there (seen from {socket.gethostname()}): either this version of"
                " the index has been removed since, then open the index again; or the workers do"
                " not share that folder, then build to one that they do, or to a Hadoop path"
            )
        raise FolderError(
            f"Spark did not bring {self.where} to {socket.gethostname()}: open the index again"
        )
