"""How a worker finds a folder: under its own path, or fetched once per machine.

Files of Hadoop paths come from the driver (`file_server.py`), those of object stores from the store
(`object_store.py`).
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from matchmill.errors import FolderError
from matchmill.spark.published.host_cache import HeldFolder, held_folder

__all__ = ["Source", "WorkerFiles"]


class Source(Protocol):
    """Whom a worker asks for a folder that it does not share."""

    @property
    def root(self) -> str:
        """The engine, or whatever else the folder is a part of."""
        ...

    @property
    def name(self) -> str:
        """The folder's name below that."""
        ...

    def fetch(self, target: Path) -> None:
        """Fetch the folder into an empty one."""
        ...


@dataclass(frozen=True, slots=True)
class WorkerFiles:
    """A folder as workers find it.

    A folder with a `saved_version` is that of a saved engine in exactly that state, and `operators`
    are the modules to import before it is opened. A folder without one is a version of a sharded
    engine.
    """

    where: str  # its full name
    source: Source | None = None  # who has it; None for a folder that all machines share
    saved_version: str | None = None
    operators: tuple[str, ...] = ()

    @property
    def engine(self) -> str:
        """Name what this is a version of: of that, a process has one version open at a time."""
        if self.source is not None:
            return self.source.root
        return self.where if self.saved_version is not None else str(Path(self.where).parent)

    def opened(self) -> HeldFolder:
        """Find the folder on this machine, and keep it there."""
        if self.source is not None:
            source = self.source
            return held_folder(source.root, source.name, source.fetch)
        self.check()
        return HeldFolder(Path(self.where))

    def check(self) -> None:
        """Raise FolderError if a shared folder is not there."""
        if self.source is None and not Path(self.where).is_dir():
            raise FolderError(
                f"{self.where} is not there (seen from {socket.gethostname()}): either this version"
                " of the engine has been removed since, then open the engine again; or the workers"
                " do not share that folder, then build to one that they do, or to a Hadoop path"
            )
