"""Opening the folder of an engine: for matching only, or for writing, under its lock."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from matchmill.engine.durable_folder import DurableFolder
from matchmill.engine.saved_state import Opened, capture, open_store
from matchmill.engine.state import Store, checked_options
from matchmill.errors import FolderError
from matchmill.index.registry import index_class
from matchmill.settings import DEFAULT_SETTINGS, Settings
from matchmill.storage.array_folder import (
    Manifest,
    finish_logs,
    is_saved_engine,
    lock_folder,
    read_manifest,
    remove_leftovers,
    retried,
    write_new,
)
from matchmill.storage.change_log import LogEnd
from matchmill.storage.folder_lock import FolderLock

__all__ = ["NewEngine", "open_for_reading", "open_for_writing"]

_notices = logging.getLogger("matchmill")


class NewEngine(NamedTuple):
    """What to write to a folder that holds no engine yet."""

    index_name: str
    index_options: Mapping[str, object] | None
    settings: Settings | None
    types: Mapping[str, str] | None

    def write(self, lock: FolderLock) -> None:
        """Write an empty engine to a folder that is locked."""
        options = checked_options(self.index_name, self.index_options)
        settings = self.settings or DEFAULT_SETTINGS
        store = Store(index_class(self.index_name), settings, options, self.types)
        write_new(lock, capture(store).to_saved())


def open_for_reading(root: Path, options: dict[str, Any]) -> Store:
    """Open a folder that another process may write to meanwhile."""
    return retried(root, lambda manifest: open_store(root, manifest, **options)).store


def open_for_writing(
    root: Path, new: NewEngine | None, options: dict[str, Any]
) -> tuple[Store, DurableFolder]:
    """Lock a folder and open it; write a new engine to it if it holds none.

    Whether it holds one is decided under the lock: another process may be writing one just now.
    """
    if new is None and not is_saved_engine(root):
        raise _nothing_saved(root)
    lock = lock_folder(root, create=new is not None)
    try:
        folder = lock.directory
        if not is_saved_engine(folder):
            if new is None:
                raise _nothing_saved(root)
            new.write(lock)
        manifest = read_manifest(folder)
        opened = open_store(folder, manifest, **options)
        remove_leftovers(folder)
        return opened.store, _with_log(lock, manifest, opened)
    except OSError as error:
        lock.release()
        raise FolderError(f"{root} cannot be opened ({error.strerror or error})") from error
    except BaseException:
        lock.release()
        raise


def _nothing_saved(root: Path) -> FolderError:
    return FolderError(
        f"{root} holds no saved engine: there is no manifest.json; create=True makes a new one"
    )


def _with_log(lock: FolderLock, manifest: Manifest, opened: Opened) -> DurableFolder:
    """Cut what a crash has left behind the last whole change, and go on in the last log."""
    folder, logs, ends = lock.directory, manifest.logs, opened.log_ends
    for log, end in zip(logs, ends, strict=True):
        if end.n_torn_bytes:
            _notices.warning(
                "%s: the last %d bytes are no whole change, as after a crash; they are cut off",
                folder.path / log,
                end.n_torn_bytes,
            )
            _cut(lock, log, end)
    ends = [end._replace(n_torn_bytes=0) for end in ends]
    unknown = [pair for pair in zip(logs, ends, strict=True) if pair[0] not in manifest.finished]
    if len(unknown) > 1:  # a crash came between two steps of a checkpoint
        finish_logs(lock, unknown[:-1])
    return DurableFolder(lock, logs[-1], ends[-1], sum(end.n_bytes for end in ends[:-1]))


def _cut(lock: FolderLock, log: str, end: LogEnd) -> None:
    file = lock.directory.open(log, os.O_WRONLY)
    try:
        os.ftruncate(file, end.n_bytes)
        os.fsync(file)
    finally:
        os.close(file)
