"""Appending to the log of a saved engine, and making it safe.

    append     writes a change; from then on it survives the death of the process
    sync       makes everything up to a position survive the death of the machine; writers that
               wait at the same time share one call to the disk
    position   bytes written by this object, in all files that it has written to

The size of the file is what counts, not what was counted here: a write that was cut short, by an
error or by an exception of a signal handler, may have written something nevertheless. What is
behind the last whole change is cut off before the next one is written.

If that fails, if something is missing, or if the disk fails to make the log safe, nobody knows what
it holds any more: from then on every change raises FolderError, until the engine is opened again.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from matchmill.errors import FolderError
from matchmill.storage.change_log import HEADER, Change, LogEnd, records_of
from matchmill.storage.directory import Directory, opened

__all__ = ["LogWriter", "create_log"]


def create_log(path: Path, folder: Directory | None = None) -> LogEnd:
    """Create an empty log. Whoever names it in a manifest has to sync the folder first.

    With an open folder, the log is made in that, whatever the path leads to by now.
    """
    with opened(path.parent if folder is None else folder) as place:
        place.write(path.name, HEADER)
    return LogEnd(len(HEADER), 0, 0)


class LogWriter:
    """One thread at a time may append; any may sync."""

    def __init__(self, path: Path, end: LogEnd, folder: Directory | None = None) -> None:
        self._sync_lock = threading.Lock()
        self._broken: BaseException | None = None
        self.position = self._synced = 0
        self._start(path, _opened_log(path, folder), end)
        if end.n_torn_bytes:
            os.ftruncate(self._file, end.n_bytes)
            os.fsync(self._file)

    def _start(self, path: Path, file: int, end: LogEnd) -> None:
        self._file, self._path = file, path
        self._n_bytes, self._n_records = end.n_bytes, end.n_records
        self._before = (self._n_bytes, self._n_records)

    @property
    def n_bytes(self) -> int:
        """The size of the file."""
        return self._n_bytes

    @property
    def is_synced(self) -> bool:
        """Whether everything that was appended is on the disk."""
        return self._synced == self.position

    def append(self, change: Change) -> None:
        """Write a change, or leave the file as it was."""
        self._check()
        self._restore()
        self._before = (self._n_bytes, self._n_records)
        n_bytes, n_records = self._before
        try:
            for record in records_of(change, n_records):
                self._write(record)
                n_bytes += len(record)
                n_records += 1
        except BaseException:
            self._restore()
            raise
        self._n_bytes, self._n_records = n_bytes, n_records
        self.position += n_bytes - self._before[0]

    def _write(self, record: bytes) -> None:
        left = memoryview(record)
        while left:
            left = left[os.write(self._file, left) :]

    def take_back(self) -> None:
        """Remove the change that was appended last, because a later step of it failed."""
        n_bytes, n_records = self._before
        if n_bytes == self._n_bytes:
            return
        self.position -= self._n_bytes - n_bytes
        self._n_bytes, self._n_records = n_bytes, n_records
        self._restore()

    def _restore(self) -> None:
        """Cut off what is behind the last whole change."""
        n_bytes = os.fstat(self._file).st_size
        if n_bytes == self._n_bytes:
            return
        with self._sync_lock:
            try:
                if n_bytes < self._n_bytes:
                    raise OSError(f"{self._n_bytes - n_bytes} bytes are missing at its end")
                os.ftruncate(self._file, self._n_bytes)
                os.fsync(self._file)
            except OSError as error:
                self._broken = error
                self._check()
            except BaseException as error:
                self._broken = error
                raise
            self._synced = self.position

    def sync(self, position: int) -> None:
        """Return when everything up to this position is on the disk."""
        with self._sync_lock:
            self._check()
            if self._synced < position:
                self._sync()

    def _sync(self) -> None:
        position = self.position
        try:
            os.fsync(self._file)
        except OSError as error:
            self._broken = error
            self._check()
        self._synced = position

    def go_on_in(self, path: Path, end: LogEnd, folder: Directory | None = None) -> None:
        """Make this file safe and append to another one from now on."""
        with self._sync_lock:
            self._check()
            new = _opened_log(path, folder)
            try:
                self._sync()
            except BaseException:
                os.close(new)
                raise
            before = self._file
            self._start(path, new, end)
            os.close(before)

    @property
    def end(self) -> LogEnd:
        """Where the file ends."""
        return LogEnd(self._n_bytes, self._n_records, 0)

    @property
    def name(self) -> str:
        """The name of the file."""
        return self._path.name

    def abandon(self) -> None:
        """In a forked child: close the copy of the file, and write and sync nothing."""
        self._sync_lock = threading.Lock()
        self._synced = self.position
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def close(self) -> None:
        """Make the file safe and close it; a second call does nothing."""
        with self._sync_lock:
            if self._file < 0:
                return
            try:
                if self._broken is None:
                    self._sync()
            finally:
                os.close(self._file)
                self._file = -1

    def _check(self) -> None:
        if self._broken is not None:
            raise FolderError(
                f"{self._path} could not be made safe ({self._broken}), so it is unknown which of"
                " the latest changes it holds; look after the disk, then open the folder again"
            ) from self._broken


def _opened_log(path: Path, folder: Directory | None) -> int:
    flags = os.O_WRONLY | os.O_APPEND
    return os.open(path, flags | os.O_CLOEXEC) if folder is None else folder.open(path.name, flags)
