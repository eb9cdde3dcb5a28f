"""One writer per folder: a lock that the system drops when its process ends, however it ends.

    FOLDER/lock    held by flock; it says who holds it, and is empty when nobody does

Readers do not lock. The file stays where it is: removing it would let two writers hold two locks.
The lock is in the folder that was opened, and so is everything that its holder writes
(`directory.py`).

A forked child has copies of the descriptors, and the lock lasts as long as any of them is open. So
it is dropped explicitly, and a child closes its copies at once.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import time
from pathlib import Path

from matchmill.errors import FolderError, FolderInUseError
from matchmill.kernels.forks import renewed_after_fork
from matchmill.storage.directory import Directory, write_all

__all__ = ["LOCK_NAME", "FolderLock"]

LOCK_NAME = "lock"
_HELD = (errno.EWOULDBLOCK, errno.EACCES)  # the second is what some network file systems say


class FolderLock:
    """Held from construction until `release`; `directory` is the folder that it locks."""

    def __init__(self, folder: Path) -> None:
        try:
            self.directory = Directory(folder)
        except OSError as error:
            raise _not_writable(folder, error) from error
        try:
            self._file = self._locked(folder)
        except BaseException:
            self.directory.close()
            raise
        self.process = os.getpid()
        renewed_after_fork(self)

    def _locked(self, folder: Path) -> int:
        try:
            file = self.directory.open(LOCK_NAME, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise _not_writable(folder, error) from error
        try:
            _lock(file, folder)
            since = time.strftime("%Y-%m-%d %H:%M:%S")
            _say(file, f"process {os.getpid()} on {socket.gethostname()} since {since}\n")
        except BaseException:
            os.close(file)
            raise
        return file

    def check(self) -> None:
        """Raise FolderError if the folder, or the file of the lock, is not there any more."""
        try:
            found = os.stat(LOCK_NAME, dir_fd=self.directory.handle)
        except FileNotFoundError:
            found = None
        if found is None or not os.path.samestat(found, os.fstat(self._file)):
            raise FolderError(
                f"{self.directory.path} was removed, or its file {LOCK_NAME!r} was, while it was"
                " open: nothing can be saved there; save to another folder"
            )

    def release(self) -> None:
        """Let another process write; a second call does nothing."""
        file, self._file = self._file, -1
        if file < 0:
            return
        try:
            if os.getpid() == self.process:  # a forked child shares the lock, but did not take it
                _say(file, "")
                fcntl.flock(file, fcntl.LOCK_UN)
        finally:
            os.close(file)
            self.directory.close()

    def after_fork(self) -> None:
        """Close the copies of a forked child: the lock is not its own."""
        self.release()


def _lock(file: int, folder: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD:
            holder = os.pread(file, 200, 0).decode(errors="replace").strip()
            raise FolderInUseError(
                f"{folder} is open for writing by {holder or 'another process'}; close it there, or"
                " open it with read_only=True to match only"
            ) from None
        raise FolderError(
            f"{folder} cannot be locked ({error.strerror}): its file system has no locks, as some"
            " network file systems; keep it on a local disk, or open it with read_only=True"
        ) from error


def _say(file: int, text: str) -> None:
    """Write who holds the lock, for whoever does not get it; a full disk is no reason to fail."""
    try:
        os.ftruncate(file, 0)
        os.lseek(file, 0, os.SEEK_SET)
        write_all(file, text.encode())
    except OSError:
        return


def _not_writable(folder: Path, error: OSError) -> FolderError:
    return FolderError(
        f"{folder} cannot be written to ({error.strerror}); to match only, open it with"
        " read_only=True"
    )
