"""A saved engine that is open for writing: the lock on its folder, its log, and new versions.

A checkpoint writes a new version while changes go on. The manifest always names a set of files from
which every acknowledged change comes back:

    data-1, log-a            as it was
    data-1, log-a, log-b     published first; then, under the writers' lock, the log goes on in
                             log-b, and the state of that moment is taken
    data-1, log-a (n bytes, m records), log-b
                             nothing is appended to log-a any more, so from now on a shorter one is
                             damaged
    data-2, log-b            published when the state is written; data-1 and log-a are removed

Each line is a folder that opens with every acknowledged change, and a checkpoint that fails or is
interrupted leaves one of them. The next one begins from what the manifest then says, and adds
another log to whatever logs it names: nothing about them is remembered here.
"""

from __future__ import annotations

import os

from matchmill.engine.saved_state import capture
from matchmill.engine.state import Store
from matchmill.errors import FolderError, ReadOnlyError
from matchmill.kernels.forks import renewed_after_fork
from matchmill.storage.array_folder import (
    finish_logs,
    name_logs,
    new_log_name,
    read_manifest,
    write_version,
)
from matchmill.storage.change_log import HEADER, Change, LogEnd
from matchmill.storage.folder_lock import FolderLock
from matchmill.storage.log_writer import LogWriter, create_log

__all__ = ["DurableFolder"]


class DurableFolder:
    """Appends changes, and writes versions, of one folder. Owns its lock."""

    def __init__(self, lock: FolderLock, log: str, end: LogEnd, n_older_bytes: int) -> None:
        self._lock = lock
        self.root = lock.directory.path
        self._writer = LogWriter(self.root / log, end, lock.directory)
        self._n_older_bytes = n_older_bytes
        renewed_after_fork(self)

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
        return self._lock.directory.is_at(path)

    def checkpoint(self, store: Store) -> None:
        """Write a new version and continue with an empty log; one call at a time."""
        try:
            self._checkpoint(store)
        except OSError as error:
            raise FolderError(
                f"{self.root} could not be saved ({error.strerror or error}); all changes are in"
                " its log, and it can be saved again"
            ) from error

    def _checkpoint(self, store: Store) -> None:
        lock, folder = self._lock, self._lock.directory
        lock.check()
        older = read_manifest(folder).logs
        log = new_log_name()
        end = create_log(self.root / log, folder)
        name_logs(lock, [*older, log])
        self.sync()  # most of it, before writers have to wait for the rest
        with store.lock:
            last, last_end = self._writer.name, self._writer.end
            self._n_older_bytes += last_end.n_bytes
            self._writer.go_on_in(self.root / log, end, folder)
            captured = capture(store)
        ends = {name: LogEnd(len(HEADER), 0, 0) for name in older}  # published, but never used
        finished = read_manifest(folder).finished
        finish_logs(
            lock, [(n, e) for n, e in (ends | {last: last_end}).items() if n not in finished]
        )
        write_version(lock, captured.to_saved(), [log])
        self._n_older_bytes = 0

    # the end

    def check_process(self) -> None:
        """Raise ReadOnlyError in a process that was forked from the one with the lock."""
        if os.getpid() != self._lock.process:
            raise ReadOnlyError(
                f"{self.root} was opened by process {self._lock.process}, and this is a fork of it;"
                " open the folder here, with read_only=True, or change it there"
            )

    def after_fork(self) -> None:
        """In a forked child: the log and the lock are those of the parent."""
        self._writer.abandon()

    def close(self) -> None:
        """Write the log to the disk and release the lock."""
        try:
            self._writer.close()
        finally:
            self._lock.release()
