"""Work in the background: merging, compacting, saving, syncing the log.

    after a write    is anything due?  ──►  wake a thread, or do it here (background off; the main
                     thread does it before its next write, because nothing may follow a write)
    the threads      started when first needed: one for everything that takes long, and one that
                     syncs the log with sync="seconds", which must not wait for the other. They know
                     the store and the folder, but not the engine, which can so be collected; that
                     ends them
    turn             a lock: only one of the long jobs runs at a time, whoever asks for it

A job that fails is not lost: the next write, or `close`, raises what happened.
"""

from __future__ import annotations

import os
import threading
import time
from typing import ClassVar

from matchmill.engine.background import Worker
from matchmill.engine.compaction import compact
from matchmill.engine.durable_folder import DurableFolder
from matchmill.engine.saved_state import capture
from matchmill.engine.state import Store
from matchmill.errors import BackgroundError, ReadOnlyError
from matchmill.kernels.forks import renewed_after_fork
from matchmill.storage.array_folder import write_folder

__all__ = ["Maintenance"]

_FEW_DEAD = 16  # one removed row for so many others is not worth the work
_FEW_PLACES = 1 << 16  # dimensions and cut points


class Maintenance:
    """What an engine does between calls."""

    sync_seconds: ClassVar[float] = 1.0  # how long a change waits, with the setting sync="seconds"

    def __init__(self, store: Store, folder: DurableFolder | None) -> None:
        self._store = store
        self._folder = folder
        self._turn = threading.RLock()
        self._copying = threading.Lock()
        self._worker = Worker("matchmill maintenance", self._work)
        self._worker.at_end = self._close_folder
        self._syncer = Worker("matchmill sync", self._sync, delay=self.sync_seconds)
        self._last_sync = time.monotonic()
        self._checkpoint_at = store.settings.checkpoint_bytes
        renewed_after_fork(self)

    def after_fork(self) -> None:
        """In a forked child: nothing is being done."""
        self._turn = threading.RLock()
        self._copying = threading.Lock()

    # from the engine

    def after_write(self) -> None:
        """Start what a write has made necessary, or do it."""
        if self._store.settings.background:
            self.wake()
        else:
            self.before_write()

    def wake(self) -> None:
        """Have the threads do what is due, if there are any."""
        if not self._store.settings.background:
            return
        if self._is_unsafe():
            self._syncer.wake()
        if self._is_due():
            self._worker.wake()

    def before_write(self) -> None:
        """Without threads: do what is due."""
        if self._store.settings.background:
            return
        if self._is_unsafe() and time.monotonic() > self._last_sync + self.sync_seconds:
            self._syncer.run()
        if self._is_due():
            self._worker.run()

    @property
    def error(self) -> BaseException | None:
        """An error that no call has raised yet."""
        return self._worker.error or self._syncer.error

    def raise_error(self, outcome: str) -> None:
        """Raise, once, an error of the background since the last call."""
        error = self.error
        if error is not None:
            self._worker.error = self._syncer.error = None
            raise BackgroundError(f"work in the background failed: {error!r}; {outcome}") from error

    def compact(self) -> None:
        """Compact in this thread."""
        self._store.check_not_inside_a_change()
        with self._turn:
            compact(self._store)

    def save_copy(self, path: str | os.PathLike[str]) -> None:
        """Save to another folder in this thread, after copies that were begun before."""
        with self._copying:
            write_folder(path, capture(self._store).to_saved())

    def checkpoint(self) -> None:
        """Save a new version in this thread."""
        self._store.check_not_inside_a_change()
        with self._turn:
            assert self._folder is not None
            if self._worker.is_stopping:
                raise ReadOnlyError(f"{self._folder.root} is closed: it cannot be saved to")
            self._checkpoint(self._folder)

    def stop(self, *, wait: bool) -> None:
        """End the threads and close the folder, after the job that is running, if there is one."""
        if self._folder is not None:
            try:
                self._folder.sync()  # if the process ends now, the thread cannot do it any more
            finally:
                self._stop_threads(wait)
        else:
            self._stop_threads(wait)

    def _stop_threads(self, wait: bool) -> None:
        self._syncer.stop(wait=wait)
        self._worker.stop(wait=wait)

    def _close_folder(self) -> None:
        if self._folder is not None:
            with self._turn:
                self._folder.close()

    # the log

    def _is_unsafe(self) -> bool:
        folder = self._folder
        return (
            folder is not None and self._store.settings.sync == "seconds" and not folder.is_synced
        )

    def _sync(self) -> None:
        assert self._folder is not None
        self._last_sync = time.monotonic()
        self._folder.sync()

    # what takes long

    def _is_due(self) -> bool:
        return self._store.segmented.is_merge_due or self._is_wasteful() or self._is_log_long()

    def _is_wasteful(self) -> bool:
        """Tell whether there is more to forget than to keep: rows, or what conditions mention.

        Some removed rows may have had very many constants.
        """
        state = self._store.state
        subscriptions = state.subscriptions
        n_dead = subscriptions.n_rows - subscriptions.n_live
        if n_dead * _FEW_DEAD > subscriptions.n_live and state.dimensions.n_doubtful > _FEW_PLACES:
            return True
        return n_dead > max(subscriptions.n_live, 64 * self._store.settings.fresh_clauses)

    def _is_log_long(self) -> bool:
        return self._folder is not None and self._folder.log_bytes > self._checkpoint_at

    def _work(self) -> None:
        with self._turn:
            while not self._worker.is_stopping and self._merge():
                pass
            if not self._worker.is_stopping and self._is_wasteful():
                compact(self._store)
            if not self._worker.is_stopping and self._is_log_long():
                assert self._folder is not None
                self._checkpoint(self._folder)

    def _merge(self) -> bool:
        """Do one merge, if one is due."""
        store, segmented = self._store, self._store.segmented
        with store.lock:
            merge = segmented.plan()
        if merge is None:
            return False
        try:
            store.relearn()
            merged = segmented.build(merge)
            with store.lock:
                if segmented.finish(merge, merged):
                    store.publish()
        finally:
            with store.lock:
                segmented.abandon(merge)
        return True

    def _checkpoint(self, folder: DurableFolder) -> None:
        limit = self._store.settings.checkpoint_bytes
        self._checkpoint_at = folder.log_bytes + limit  # if it fails, not again at once
        folder.checkpoint(self._store)
        self._checkpoint_at = limit
