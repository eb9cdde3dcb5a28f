"""Files that fail: every system call by which a folder changes, counted, and stopped at the n-th.

    with FailingFiles(at=7, how="error"):   the seventh call raises OSError, all others work
    with FailingFiles(at=7, how="short"):   a write stops in the middle, then raises OSError
    with FailingFiles(at=7, how="raise"):   the seventh call works, then an exception comes out of
                                            it, as from a handler of a signal
    with FailingFiles(at=7, how="dead"):    from the seventh call on nothing reaches the disk: what
                                            is then in the folder is what a killed process leaves

It replaces functions of `os`, which is where `matchmill/storage/` does everything that changes a
folder. `Disk` also remembers what was synced, and makes what a power failure could leave.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

__all__ = ["CALLS", "Disk", "FailingFiles", "Stopped"]

CALLS = ("open", "write", "fsync", "ftruncate", "replace", "unlink", "mkdir", "rmdir")


class Stopped(BaseException):
    """Raised instead of what a signal's handler raises, or where a process would be dead."""


class FailingFiles:
    """Counts calls that change files below a folder, and stops at one of them."""

    def __init__(self, root: Path, at: int = 0, how: str = "error", code: int = errno.EIO) -> None:
        self.root, self.at, self.how, self.code = os.fspath(root), at, how, code
        self.n_calls = 0
        self.names: list[str] = []
        self._is_dead = False
        self._real: dict[str, Callable[..., Any]] = {}

    def __enter__(self) -> FailingFiles:
        for name in CALLS:
            self._real[name] = getattr(os, name)
            setattr(os, name, self._failing(name))
        return self

    def __exit__(self, *_: object) -> None:
        for name, call in self._real.items():
            setattr(os, name, call)

    def _failing(self, name: str) -> Callable[..., Any]:
        real = self._real[name]

        def call(*arguments: Any, **options: Any) -> Any:
            if not self._is_counted(name, arguments, options):
                return real(*arguments, **options)
            if self._is_dead:
                raise Stopped
            self.n_calls += 1
            self.names.append(name)
            if self.n_calls != self.at:
                return real(*arguments, **options)
            if self.how == "raise":
                real(*arguments, **options)
                raise Stopped
            if self.how in ("dead", "dead short"):
                self._is_dead = True
            if self.how in ("short", "dead short") and name == "write":
                real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
            if self._is_dead:
                raise Stopped
            raise OSError(self.code, os.strerror(self.code))

        return call

    def _is_counted(self, name: str, arguments: Any, options: Any) -> bool:
        """Tell whether a call changes something in the folder."""
        if name == "open":
            flags = arguments[1] if len(arguments) > 1 else options.get("flags", 0)
            if not flags & os.O_CREAT:
                return False
        handle = options.get("dir_fd", options.get("src_dir_fd"))
        if handle is None and isinstance(arguments[0], int):
            handle = arguments[0]
        try:
            place = os.fspath(arguments[0]) if handle is None else _path_of(handle)
        except OSError:
            return False
        return place.startswith(self.root)


def _path_of(handle: int) -> str:
    return os.readlink(f"/proc/self/fd/{handle}")


class Disk(FailingFiles):
    """Also notes what was synced, so that the folder can be made as a power failure leaves it.

    A file that was synced has what it had then; what was written since is there up to some byte, or
    not at all. A folder that was synced has the names it had then; changes of names since are there
    up to some change. The order in which a file system writes unsynced things is its own.
    """

    def __init__(self, root: Path, at: int = 0) -> None:
        super().__init__(root, at, "dead")
        self._before = Path(root)
        self._files: dict[int, list[bytes]] = {}  # by inode: contents since the last sync
        self._folders: dict[int, list[dict[str, int]]] = {}  # by inode: names since the last sync
        self._kept: list[int] = []  # descriptors, so that no inode is used twice

    def __enter__(self) -> Disk:
        for folder, _, files in os.walk(self.root):
            self._note_folder(folder, is_synced=True)
            for file in files:
                self._note_file(os.path.join(folder, file), is_synced=True)
        self._root_inode = os.stat(self.root).st_ino
        super().__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        for handle in self._kept:
            os.close(handle)
        self._kept = []

    def _note_folder(self, path: str, *, is_synced: bool = False) -> None:
        names = {entry.name: entry.inode() for entry in os.scandir(path)}
        self._note(self._folders, path, names, is_synced)

    def _note_file(self, path: str, *, is_synced: bool = False) -> None:
        with open(path, "rb") as stream:
            self._note(self._files, path, stream.read(), is_synced)

    def _note(self, table: dict[int, list[Any]], path: str, now: Any, is_synced: bool) -> None:
        inode = os.stat(path).st_ino
        if inode not in table:
            opened = self._real.get("open", os.open)
            self._kept.append(opened(path, os.O_RDONLY))
            table[inode] = [type(now)()]
        if is_synced:
            table[inode] = [now]
        elif table[inode][-1] != now:
            table[inode].append(now)

    def _failing(self, name: str) -> Callable[..., Any]:
        inner = super()._failing(name)

        def call(*arguments: Any, **options: Any) -> Any:
            if not self._is_counted(name, arguments, options):
                return inner(*arguments, **options)
            result = inner(*arguments, **options)
            handle = options.get("dir_fd", options.get("src_dir_fd"))
            if name == "open":
                self._note_file(_path_of(result))
            if handle is not None:
                self._note_folder(_path_of(handle))
                if name == "mkdir":
                    self._note_folder(os.path.join(_path_of(handle), arguments[0]))
            else:
                path = _path_of(arguments[0])
                if stat.S_ISDIR(os.fstat(arguments[0]).st_mode):
                    self._note_folder(path, is_synced=name == "fsync")
                else:
                    self._note_file(path, is_synced=name == "fsync")
            return result

        return call

    def after_power_failure(self, target: Path, draw: Random) -> None:
        """Make a folder as the disk may be found."""
        self._make(self._root_inode, target, draw)

    def _make(self, inode: int, target: Path, draw: Random) -> None:
        target.mkdir()
        for name, child in self._chosen(self._folders[inode], draw).items():
            if child in self._folders:
                self._make(child, target / name, draw)
            else:
                contents = self._files[child]
                chosen = self._chosen(contents, draw)
                if chosen is not contents[0] and draw.random() < 0.5:  # only some of it arrived
                    cut = draw.randrange(min(len(contents[0]), len(chosen)), len(chosen) + 1)
                    chosen = chosen[:cut]
                (target / name).write_bytes(chosen)

    @staticmethod
    def _chosen(states: list[Any], draw: Random) -> Any:
        kind = draw.randrange(3)
        return states[0] if kind == 0 else states[-1] if kind == 1 else draw.choice(states)
