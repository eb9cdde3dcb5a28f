"""Where a published index is kept: a folder, or any path that Hadoop knows.

place.read(name)            the bytes of a file; None if there is none
place.publish(name, bytes)  write a file and put it in the place of an older one, in one step
place.folders(name)         the names of the folders in a folder
place.remove(name)          a folder and all in it
place.work_folder(name)     a local folder to write a version into; `keep` brings it here
place.shipped(spark, name)  how workers find a folder of it
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
from matchmill.spark.published.worker_files import Shipped
from matchmill.spark.sessions import is_connect
from matchmill.storage.array_folder import sync_folder
from matchmill.storage.folder_lock import FolderLock

__all__ = ["Place", "place_of"]


class Place(Protocol):
    root: str
    workers_write: bool  # whether workers write to it by themselves

    def locked(self) -> Any: ...

    def read(self, name: str) -> bytes | None: ...

    def publish(self, name: str, content: bytes) -> None: ...

    def folders(self, name: str) -> list[str]: ...

    def remove(self, name: str) -> None: ...

    def work_folder(self, name: str) -> Path: ...

    def keep(self, work: Path, name: str) -> None: ...

    def shipped(self, name: str) -> Shipped: ...


def place_of(path: str | os.PathLike[str], spark: Any = None) -> Place:
    """The place that a path or URI names; other schemes than `file:` need a classic session."""
    text = os.fspath(path)
    parts = urlsplit(text)
    if len(parts.scheme) > 1 and parts.scheme != "file":
        if spark is None:
            raise InputError(f"{text} is reached through Spark: give the session as spark=…")
        if is_connect(spark):
            raise InputError(
                f"{text} cannot be reached through Spark Connect: give a folder that this machine"
                " and the workers share"
            )
        return _HadoopPlace(spark, text.rstrip("/"))
    local = unquote(parts.path) if parts.scheme == "file" else text
    return _LocalPlace(Path(local).absolute())


class _LocalPlace:
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

    def folders(self, name: str) -> list[str]:
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

    def keep(self, work: Path, name: str) -> None:
        """It is there already; make its names last."""
        for folder in [p for p in work.rglob("*") if p.is_dir()]:
            sync_folder(folder)
        sync_folder(work)
        sync_folder(work.parent)

    def shipped(self, name: str) -> Shipped:
        return Shipped(str(self._folder / name), is_shared=True)


class _HadoopPlace:
    """A path of Hadoop's: workers hand files to this process, which copies them there, and get
    them from Spark, which copies them to each machine."""

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
        """There is no lock that all such systems have: one build at a time is up to the caller."""
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

    def folders(self, name: str) -> list[str]:
        path = self._path(name)
        if not self._system.exists(path):
            return []
        return sorted(str(s.getPath().getName()) for s in self._system.listStatus(path))

    def remove(self, name: str) -> None:
        self._system.delete(self._path(name), True)

    def work_folder(self, name: str) -> Path:
        return Path(tempfile.mkdtemp(prefix="matchmill-build-"))

    def keep(self, work: Path, name: str) -> None:
        """Copy what is in the folder to the place."""
        target = self._path(name)
        self._system.mkdirs(target)
        for entry in sorted(work.iterdir()):
            self._system.copyFromLocalFile(False, True, self._local(entry), target)

    def shipped(self, name: str) -> Shipped:
        self._spark.sparkContext.addFile(f"{self.root}/{name}", recursive=True)
        return Shipped(name.rpartition("/")[2], is_shared=False)
