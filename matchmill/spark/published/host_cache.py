"""Folders that processes of one machine fetch once and share.

    CACHE/ENGINE/KEY          a folder, there only when it is complete
    CACHE/ENGINE/KEY.lock     shared while a process uses the folder, exclusive while one fetches it
    CACHE/ENGINE/.KEY-…       being fetched; of a process that was killed, the next one removes it

CACHE is $MATCHMILL_ENGINE_CACHE_DIR, or a private folder in the system's folder of temporary files.
The first process that needs a folder fetches it, and the others wait for its lock, which the system
drops if the process is killed. After each fetch the folders of earlier versions that nobody uses
are removed, but for the last two of each kind, and so is what nobody has used for a week.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import stat
import tempfile
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from uuid import uuid4

from matchmill.errors import FolderError

__all__ = ["CACHE_VARIABLE", "HeldFolder", "held_folder"]

CACHE_VARIABLE = "MATCHMILL_ENGINE_CACHE_DIR"
_KEPT = 2
_IDLE_SECONDS = 7 * 24 * 3600


class HeldFolder:
    """A folder that is not removed while this object lives, or until `release`."""

    def __init__(self, path: Path, lock: int | None = None) -> None:
        self.path = path
        self._release = weakref.finalize(self, _close, lock)

    def release(self) -> None:
        """Let the folder be removed; what is mapped stays readable."""
        self._release()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def _close(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


def held_folder(engine: str, name: str, fetch: Callable[[Path], None]) -> HeldFolder:
    """Return a folder of an engine; `fetch` writes it into an empty folder if it is not there."""
    try:
        group = _base() / hashlib.sha256(engine.encode()).hexdigest()[:16]
        group.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise FolderError(
            f"{error.filename} cannot be written to ({error.strerror}), and engines are kept there:"
            f" set {CACHE_VARIABLE} to another folder for the workers"
        ) from error
    key = name.replace("/", "+")
    path, lock_file = group / key, group / f"{key}.lock"
    while True:
        lock = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
            if _is_current(lock, lock_file):
                if path.is_dir():
                    os.utime(lock_file)
                    return HeldFolder(path, lock)
                fcntl.flock(lock, fcntl.LOCK_EX)
                if _is_current(lock, lock_file) and not path.is_dir():
                    _fetched(group, key, fetch)
                    _evict(group.parent, group, key)
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)  # then once more: between two kinds of lock somebody may remove the folder


def _fetched(group: Path, key: str, fetch: Callable[[Path], None]) -> None:
    """Fetch a folder, under its exclusive lock."""
    for leftover in group.glob(f".{key}-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    part = group / f".{key}-{uuid4().hex[:12]}"
    try:
        part.mkdir()
        fetch(part)
        os.rename(part, group / key)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise FolderError(
            f"{part} cannot be written: {error.strerror or error}; make room, or set"
            f" {CACHE_VARIABLE} to another folder for the workers"
        ) from error
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def _base() -> Path:
    """Return the folder of all engines, which only this user may write to."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        base = Path(chosen).absolute()
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        return base
    base = Path(tempfile.gettempdir()) / f"matchmill-engines-{os.getuid()}"
    base.mkdir(mode=0o700, exist_ok=True)
    found = base.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise FolderError(
            f"{base} belongs to somebody else or may be written by others: set {CACHE_VARIABLE} to"
            " a folder of your own for the workers"
        )
    return base


def _is_current(lock: int, file: Path) -> bool:
    """Return whether an open lock is still the one that has this name."""
    try:
        return os.fstat(lock).st_ino == file.stat().st_ino
    except FileNotFoundError:
        return False


# -- removing -------------------------------------------------------------------------------------


def _evict(base: Path, group: Path, fetched: str) -> None:
    """Remove what nobody uses: earlier versions of this engine, and what is old of all others."""
    by_kind: dict[tuple[int, str], list[tuple[float, Path]]] = {}
    idle_since = time.time() - _IDLE_SECONDS
    for file in base.glob("*/*.lock"):
        try:
            used = file.stat().st_mtime
        except FileNotFoundError:
            continue
        if file.parent == group and file.name != f"{fetched}.lock":
            by_kind.setdefault(_kind(file.name), []).append((used, file))
        elif file.parent != group and used < idle_since:
            _remove(file)
    for kind, files in by_kind.items():
        n_kept = _KEPT - (kind == _kind(fetched))
        for _, file in sorted(files, reverse=True)[n_kept:]:
            _remove(file)


def _kind(key: str) -> tuple[int, str]:
    """Tell versions, their parts and tables of streams apart: by depth and first letters."""
    letters = re.match(r"\D*", key)
    return key.count("+"), letters[0] if letters else ""


def _remove(lock_file: Path) -> None:
    """Remove a folder and its lock, unless it is in use."""
    try:
        lock = os.open(lock_file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_current(lock, lock_file):
            shutil.rmtree(lock_file.with_suffix(""), ignore_errors=True)
            lock_file.unlink()
    except BlockingIOError:
        pass  # in use
    finally:
        os.close(lock)
