"""One writer per folder: a lock that the system drops when its process ends, however it ends.

    FOLDER/lock    held by flock; it says who holds it, and is empty when nobody does

Readers do not lock. The file stays where it is: removing it would let two writers hold two locks.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path

from matchmill.errors import FolderError, FolderInUseError

__all__ = ["LOCK_NAME", "FolderLock"]

LOCK_NAME = "lock"


class FolderLock:
    """Held from construction until `release`."""

    def __init__(self, folder: Path) -> None:
        path = folder / LOCK_NAME
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise FolderError(
                f"{folder} cannot be written to ({error.strerror}); to match only, open it with"
                " read_only=True"
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._file, 200, 0).decode(errors="replace").strip()
            os.close(self._file)
            raise FolderInUseError(
                f"{folder} is open for writing by {holder or 'another process'}; close it there, or"
                " open it with read_only=True to match only"
            ) from None
        except BaseException:
            os.close(self._file)
            raise
        self.process = os.getpid()
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        self._say(f"process {self.process} on {socket.gethostname()} since {since}\n")

    def _say(self, text: str) -> None:
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, text.encode(), 0)

    def release(self) -> None:
        """Let another process write; a second call does nothing."""
        if self._file >= 0:
            if os.getpid() == self.process:  # a forked child shares the lock, but did not take it
                self._say("")
            os.close(self._file)
            self._file = -1
