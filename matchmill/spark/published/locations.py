"""Where an engine is kept: a folder, an object store, or any path that Hadoop knows.

location.read(name)            read the bytes of a file; None if there is none
location.publish(name, bytes)  write a file and replace an older one
location.put(name, bytes)      the same for who has another copy
read_published(location, …)    read what was published, whatever was killed meanwhile
location.names(name)           list what is in a folder
location.remove(name)          remove a folder and all in it, or a file
location.work_folder(name)     make a local folder to write into; `store` brings it here
location.worker_files(name)    say how workers find a folder of it

No Hadoop path needs renaming: object stores copy and delete instead, in many steps. There a file is
published by plain puts that overwrite: first a spare copy, `NAME.next`, then the file itself, then
the spare is removed. A store like S3 puts in one step, and HDFS may leave half a file; at every
moment the file or its spare is whole, and their readers know, since contents have checksums.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from matchmill.engine.sharded_folder import spare_name
from matchmill.errors import FolderError, InputError
from matchmill.spark.published.file_server import source_of
from matchmill.spark.published.object_store import ObjectFolder, is_store_path
from matchmill.spark.published.worker_files import WorkerFiles
from matchmill.spark.sessions import is_connect
from matchmill.storage.array_folder import sync_folder
from matchmill.storage.folder_lock import FolderLock

__all__ = ["Location", "ShardTarget", "local_folder", "location_of", "read_published", "spare_name"]

T = TypeVar("T")


class Location(Protocol):
    """The place of an engine, a checkpoint or a pipeline's output."""

    root: str
    workers_write: bool  # whether workers write to it directly
    excludes_others: (
        bool  # whether nobody else builds meanwhile: by a lock, or the caller sees to it
    )

    def locked(self) -> Any:
        """Keep other writers out, where that is possible."""
        ...

    def read(self, name: str) -> bytes | None:
        """Read a file; None if there is none."""
        ...

    def publish(self, name: str, content: bytes) -> None:
        """Write a file so that `read_published` finds the old content or the new."""
        ...

    def put(self, name: str, content: bytes) -> None:
        """Write a file; on a Hadoop path a crash may leave half of it."""
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

    def shard_target(self, name: str) -> ShardTarget | None:
        """Say where workers put the shards of a build.

        None if they write to the folder itself, or send their files to the driver.
        """
        ...


class ShardTarget(Protocol):
    """Where a worker puts a shard that it has built."""

    def take(self, folder: Path) -> None:
        """Take a folder that the worker has written."""
        ...


def read_published(
    location: Location, name: str, parse: Callable[[bytes], T], *, repairs: bool = False
) -> T | None:
    """Read what was published; None if nothing was.

    `parse` raises FolderError for content that is not whole. With `repairs`, which only the writer
    may ask for, the spare copy of a write that was cut short takes the place of the file.
    """
    content = location.read(name)
    problem: FolderError | None = None
    if content is not None:
        try:
            return parse(content)
        except FolderError as error:
            problem = error
    spare = location.read(spare_name(name))
    if spare is None:
        later = location.read(name)  # a writer may have finished meanwhile
        if later is not None and later != content:
            return parse(later)
    else:
        try:
            found = parse(spare)
        except FolderError:  # cut short before the file itself was touched
            spare = None
        else:
            if repairs:
                location.put(name, spare)
                location.remove(spare_name(name))
            return found
    if problem is not None:
        raise problem
    return None


def location_of(path: str | os.PathLike[str], spark: Any = None) -> Location:
    """Find the location that a path or URI names.

    Other schemes than `file:` need a classic session.
    """
    folder = local_folder(path)
    if folder is None:
        text = os.fspath(path)
        if is_store_path(text):
            return ObjectFolder(text)
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
    excludes_others = True

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

    def put(self, name: str, content: bytes) -> None:
        self.publish(name, content)

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
        return WorkerFiles(str(self._folder / name))

    def shard_target(self, name: str) -> ShardTarget | None:
        return None  # they write there to begin with


class _HadoopFolder:
    """A path of Hadoop's.

    Workers send files to this process, which copies them there, and ask it for files when they need
    them (`file_server.py`).
    """

    workers_write = False
    excludes_others = True

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
        self.put(spare_name(name), content)
        self.put(name, content)
        self.remove(spare_name(name))

    def put(self, name: str, content: bytes) -> None:
        stream = self._system.create(self._path(name), True)
        try:
            stream.write(content)
        finally:
            stream.close()

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
        return WorkerFiles(f"{self.root}/{name}", source_of(self._spark, self, name))

    def shard_target(self, name: str) -> ShardTarget | None:
        return None

    # -- what the server of files asks for --------------------------------------------------------

    def list_files(self, name: str) -> list[tuple[str, int]] | None:
        folder = self._path(name)
        if not self._system.exists(folder):
            return None
        prefix = self._system.getFileStatus(folder).getPath().toUri().getPath() + "/"
        found = self._system.listFiles(folder, True)
        files = []
        while found.hasNext():
            status = found.next()
            full = status.getPath().toUri().getPath()
            files.append((full.removeprefix(prefix), status.getLen()))
        return files

    def copy_file(self, name: str, target: Path) -> bool:
        path = self._path(name)
        if not self._system.exists(path):
            return False
        self._system.copyToLocalFile(False, path, self._local(target), True)
        return True
