"""A saved engine that is open for writing: the lock on its folder, its log, and new versions.

A checkpoint writes a new version while changes go on. The manifest always names a set of files from
which every acknowledged change comes back:

    data-1, log-a            as it was
    data-1, log-a, log-b     published first; then, under the writers' lock, the log goes on in
                             log-b, and the state of that moment is taken
    data-2, log-b            published when the state is written; data-1 and log-a are removed

If writing it fails, the second line stays, and the next checkpoint adds another log.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from matchmill.engine.saved_state import capture
from matchmill.engine.state import Store
from matchmill.errors import ReadOnlyError
from matchmill.storage.array_folder import name_logs, new_log_name, write_version
from matchmill.storage.change_log import Change, LogEnd
from matchmill.storage.folder_lock import FolderLock
from matchmill.storage.log_writer import LogWriter, create_log

__all__ = ["DurableFolder"]

_notices = logging.getLogger("matchmill")


class DurableFolder:
    """Appends changes, and writes versions, of one folder. Owns its lock."""

    def __init__(
        self, root: Path, lock: FolderLock, logs: Sequence[str], ends: Sequence[LogEnd]
    ) -> None:
        self._lock = lock
        self.root = root
        self._logs = list(logs)
        for log, end in zip(logs, ends, strict=True):
            if end.n_torn_bytes:
                _notices.warning(
                    "%s: the last %d bytes are no whole change, as after a crash; they are cut off",
                    root / log,
                    end.n_torn_bytes,
                )
        self._writer = LogWriter(root / logs[-1], ends[-1])
        self._n_older_bytes = sum(end.n_bytes for end in ends[:-1])

    # the log

    def append(self, change: Change) -> None:
        """Write a change to the log."""
        self._writer.append(change)

    def take_back(self) -> None:
        """Undo the last append."""
        self._writer.take_back()

    def sync(self, position: int | None = None) -> None:
        """Write the log to the disk, up to a position or all of it."""
        self._writer.sync(self._writer.position if position is None else position)

    @property
    def position(self) -> int:
        """The end of the log."""
        return self._writer.position

    @property
    def is_synced(self) -> bool:
        """Whether all of the log is on the disk."""
        return self._writer.is_synced

    @property
    def log_bytes(self) -> int:
        """How many bytes would be read again after a crash."""
        return self._n_older_bytes + self._writer.n_bytes

    # versions

    def is_same(self, path: str | os.PathLike[str]) -> bool:
        """Tell whether a path is this folder."""
        return os.path.exists(path) and os.path.samefile(path, self.root)

    def checkpoint(self, store: Store) -> None:
        """Write a new version and continue with an empty log; one call at a time."""
        log = new_log_name()
        end = create_log(self.root / log)
        name_logs(self.root, [*self._logs, log])
        self._logs.append(log)
        self.sync()  # most of it, before writers have to wait for the rest
        with store.lock:
            self._n_older_bytes += self._writer.n_bytes
            self._writer.go_on_in(self.root / log, end)
            captured = capture(store)
        write_version(self.root, captured.to_saved(), [log])
        self._logs = [log]
        self._n_older_bytes = 0

    # the end

    def check_process(self) -> None:
        """Raise ReadOnlyError in a process that was forked from the one with the lock."""
        if os.getpid() != self._lock.process:
            raise ReadOnlyError(
                f"{self.root} was opened by process {self._lock.process}, and this is a fork of it;"
                " open the folder here, with read_only=True, or change it there"
            )

    def close(self) -> None:
        """Write the log to the disk and release the lock."""
        try:
            self._writer.close()
        finally:
            self._lock.release()
