"""A folder that is open: what is done in it happens there, wherever its name points by now.

A name means another folder once the process changes its working directory, or once somebody renames
the folder or one above it. A descriptor goes on meaning the same one. Whoever writes to a folder
therefore opens it once, takes the lock in what was opened, and names files relative to it.

All system calls that change a folder are made here and in `folder_lock.py` and `log_writer.py`,
unbuffered and by the functions of `os`: `tests/faults/` lets each of them fail in turn.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from matchmill.errors import FolderError, InputError, shown

__all__ = ["Directory", "folder_path", "opened", "write_all"]


def folder_path(path: object) -> Path:
    """Return what was given as the path of a folder; raise InputError if no folder can have it."""
    try:
        text = os.fspath(path)  # type: ignore[call-overload]
        plain = str.__str__(text)
        is_possible = b"\0" not in os.fsencode(plain)
    except Exception as error:
        raise InputError(f"a folder is a str or a Path, not {shown(path)}") from error
    if not is_possible:
        raise InputError(f"no folder can be called {shown(path)}")
    return Path(plain)


class Directory:
    """A folder by its descriptor; `path` is what it was called, for messages."""

    def __init__(self, path: str | os.PathLike[str], *, inside: Directory | None = None) -> None:
        parent = None if inside is None else inside.handle
        name = os.fspath(path)
        self.path: Path = Path(os.path.abspath(name)) if inside is None else inside.path / name
        self.handle: int = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
        self._identity = os.fstat(self.handle)

    def close(self) -> None:
        """Close the descriptor; a second call does nothing."""
        handle, self.handle = self.handle, -1
        if handle >= 0:
            os.close(handle)

    def __enter__(self) -> Directory:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # reading

    def open(self, name: str, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
        """Open a file in the folder; return its descriptor."""
        return os.open(name, flags | os.O_CLOEXEC, mode, dir_fd=self.handle)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file."""
        with open(self.open(name), "rb") as stream:
            return stream.read()

    def names(self) -> list[str]:
        """List what is in the folder."""
        return os.listdir(self.handle)

    def has_file(self, name: str) -> bool:
        """Tell whether there is a file of this name."""
        with suppress(FileNotFoundError):
            return stat.S_ISREG(os.stat(name, dir_fd=self.handle).st_mode)
        return False

    def is_at(self, path: str | os.PathLike[str]) -> bool:
        """Tell whether a path leads to this folder."""
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return os.path.samestat(found, self._identity)

    # writing

    def make(self, name: str) -> Directory:
        """Make a folder in this one."""
        os.mkdir(name, dir_fd=self.handle)
        return Directory(name, inside=self)

    def write(self, name: str, content: bytes) -> None:
        """Write a new file, to the disk."""
        handle = self.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            write_all(handle, content)
            os.fsync(handle)
        finally:
            os.close(handle)

    def replace(self, old: str, new: str) -> None:
        """Give a file another name, in place of the file that had it."""
        os.replace(old, new, src_dir_fd=self.handle, dst_dir_fd=self.handle)

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with the files in it; what is gone already is no error."""
        try:
            os.unlink(name, dir_fd=self.handle)
        except FileNotFoundError:
            pass
        except (IsADirectoryError, PermissionError):  # Linux says the first, others the second
            with suppress(FileNotFoundError):
                with Directory(name, inside=self) as folder:
                    for file in folder.names():
                        os.unlink(file, dir_fd=folder.handle)
                os.rmdir(name, dir_fd=self.handle)

    def sync(self) -> None:
        """Make the names in the folder survive a crash of the machine."""
        os.fsync(self.handle)


@contextmanager
def opened(folder: Directory | str | os.PathLike[str]) -> Iterator[Directory]:
    """Open a folder by its name, or use one that is open and stays so."""
    if isinstance(folder, Directory):
        yield folder
        return
    try:
        directory = Directory(folder)
    except FileNotFoundError:
        raise FolderError(f"{folder} holds no saved engine: there is no such folder") from None
    except NotADirectoryError:
        raise FolderError(f"{folder} is a file; give the name of a folder") from None
    except OSError as error:
        raise FolderError(f"{folder} cannot be opened ({error.strerror})") from error
    with directory:
        yield directory


def write_all(handle: int, content: bytes | memoryview) -> None:
    """Write all bytes to a descriptor."""
    left = memoryview(content).cast("B")
    while left:
        left = left[os.write(handle, left) :]
