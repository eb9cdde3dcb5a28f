"""Where an engine is kept: a folder, or any path that Hadoop knows.

location.read(name)            read the bytes of a file; None if there is none
location.publish(name, bytes)  write a file and replace an older one, in one step
location.names(name)           list what is in a folder
location.remove(name)          remove a folder and all in it, or a file
location.work_folder(name)     make a local folder to write into; `store` brings it here
location.worker_files(name)    say how workers find a folder of it
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from matchmill.errors import FolderError, InputError
from matchmill.spark.published.worker_files import WorkerFiles
from matchmill.spark.sessions import is_connect
from matchmill.storage.array_folder import sync_folder
from matchmill.storage.folder_lock import FolderLock

__all__ = ["Location", "local_folder", "location_of"]


class Location(Protocol):
    """The place of an engine, a checkpoint or a pipeline's output."""

    root: str
    workers_write: bool  # whether workers write to it directly

    def locked(self) -> Any:
        """Keep other writers out, where that is possible."""
        ...

    def read(self, name: str) -> bytes | None:
        """Read a file; None if there is none."""
        ...

    def publish(self, name: str, content: bytes) -> None:
        """Write a file in one step."""
        ...

    def names(self, name: str) -> list[str]:
        """List what is in a folder."""
        ...

    def remove(self, name: str) -> None:
        """Remove a folder or a file."""
        ...

    def work_folder(self, name: str) -> Path:
        """Make a local folder to write into."""
        ...

    def store(self, work: Path, name: str) -> None:
        """Bring a local folder here."""
        ...

    def worker_files(self, name: str) -> WorkerFiles:
        """Say how workers find a folder."""
        ...


def location_of(path: str | os.PathLike[str], spark: Any = None) -> Location:
    """Find the location that a path or URI names.

    Other schemes than `file:` need a classic session.
    """
    folder = local_folder(path)
    if folder is None:
        text = os.fspath(path)
        if spark is None:
            raise InputError(f"{text} is reached through Spark: give the session as spark=…")
        if is_connect(spark):
            raise InputError(
                f"{text} cannot be reached through Spark Connect: give a folder that this machine"
                " and the workers share"
            )
        return _HadoopFolder(spark, text.rstrip("/"))
    return _LocalFolder(folder)


def local_folder(path: str | os.PathLike[str]) -> Path | None:
    """Return the local folder that a path names; None for one that only Hadoop knows."""
    text = os.fspath(path)
    parts = urlsplit(text)
    if len(parts.scheme) > 1 and parts.scheme != "file":
        return None
    return Path(unquote(parts.path) if parts.scheme == "file" else text).absolute()


class _LocalFolder:
    """A folder that this process and all workers see under the same name."""

    workers_write = True

    def __init__(self, root: Path) -> None:
        self._folder = root
        self.root = str(root)

    @contextmanager
    def locked(self) -> Iterator[None]:
        if self._folder.exists() and not self._folder.is_dir():
            raise FolderError(f"{self._folder} is a file; give the name of a folder")
        self._folder.mkdir(parents=True, exist_ok=True)
        lock = FolderLock(self._folder)
        try:
            yield
        finally:
            lock.release()

    def read(self, name: str) -> bytes | None:
        try:
            return (self._folder / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def publish(self, name: str, content: bytes) -> None:
        target = self._folder / name
        target.parent.mkdir(exist_ok=True)
        temporary = target.with_name(f".{target.name}-{uuid4().hex[:12]}")
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        sync_folder(target.parent)
        os.replace(temporary, target)
        sync_folder(target.parent)

    def names(self, name: str) -> list[str]:
        folder = self._folder / name
        return sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []

    def remove(self, name: str) -> None:
        folder = self._folder / name
        if folder.is_dir():
            shutil.rmtree(folder)
        else:
            folder.unlink(missing_ok=True)

    def work_folder(self, name: str) -> Path:
        folder = self._folder / name
        folder.mkdir(parents=True)
        return folder

    def store(self, work: Path, name: str) -> None:
        """Sync the names of its files: it is there already."""
        for folder in [p for p in work.rglob("*") if p.is_dir()]:
            sync_folder(folder)
        sync_folder(work)
        sync_folder(work.parent)

    def worker_files(self, name: str) -> WorkerFiles:
        return WorkerFiles(str(self._folder / name), is_shared=True)


class _HadoopFolder:
    """A path of Hadoop's.

    Workers send files to this process, which copies them there, and get them from Spark, which
    copies them to each machine.
    """

    workers_write = False

    def __init__(self, spark: Any, root: str) -> None:
        self.root = root
        self._spark = spark
        self._jvm = spark.sparkContext._jvm
        self._configuration = spark.sparkContext._jsc.hadoopConfiguration()
        self._system = self._path("").getFileSystem(self._configuration)

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.root}/{name}" if name else self.root)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder. Not all such systems have a lock: the caller keeps builds apart."""
        self._system.mkdirs(self._path(""))
        yield

    def read(self, name: str) -> bytes | None:
        path = self._path(name)
        if not self._system.exists(path):
            return None
        with tempfile.TemporaryDirectory() as folder:
            local = Path(folder) / "file"
            self._system.copyToLocalFile(False, path, self._local(local), True)
            return local.read_bytes()

    def _local(self, path: Path) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path.as_uri())

    def publish(self, name: str, content: bytes) -> None:
        target = self._path(name)
        temporary = self._path(f"{name}-{uuid4().hex[:12]}")
        with tempfile.TemporaryDirectory() as folder:
            local = Path(folder) / "file"
            local.write_bytes(content)
            self._system.copyFromLocalFile(False, True, self._local(local), temporary)
        fs = self._jvm.org.apache.hadoop.fs
        options = self._spark.sparkContext._gateway.new_array(fs.Options.Rename, 1)
        options[0] = fs.Options.Rename.OVERWRITE
        context = fs.FileContext.getFileContext(temporary.toUri(), self._configuration)
        context.rename(temporary, target, options)

    def names(self, name: str) -> list[str]:
        path = self._path(name)
        if not self._system.exists(path):
            return []
        return sorted(str(s.getPath().getName()) for s in self._system.listStatus(path))

    def remove(self, name: str) -> None:
        self._system.delete(self._path(name), True)

    def work_folder(self, name: str) -> Path:
        return Path(tempfile.mkdtemp(prefix="matchmill-build-"))

    def store(self, work: Path, name: str) -> None:
        """Copy what is in the folder to the location."""
        target = self._path(name)
        self._system.mkdirs(target)
        for entry in sorted(work.iterdir()):
            self._system.copyFromLocalFile(False, True, self._local(entry), target)

    def worker_files(self, name: str) -> WorkerFiles:
        self._spark.sparkContext.addFile(f"{self.root}/{name}", recursive=True)
        return WorkerFiles(name.rpartition("/")[2], is_shared=False)
