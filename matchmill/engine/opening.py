"""Opening the folder of an engine: for matching only, or for writing, under its lock."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matchmill.engine.durable_folder import DurableFolder
from matchmill.engine.saved_state import capture, open_store
from matchmill.engine.state import Store, checked_options
from matchmill.errors import FolderError
from matchmill.index.registry import index_class
from matchmill.settings import DEFAULT_SETTINGS, Settings
from matchmill.storage.array_folder import (
    is_saved_engine,
    read_manifest,
    remove_leftovers,
    retried,
    write_folder,
)
from matchmill.storage.folder_lock import FolderLock

__all__ = ["create_folder", "open_for_reading", "open_for_writing"]


def create_folder(
    root: Path,
    index: str,
    index_options: Mapping[str, object] | None,
    settings: Settings | None,
) -> None:
    """Write an empty engine to a folder, unless there is one already."""
    if not is_saved_engine(root):
        options = checked_options(index, index_options)
        store = Store(index_class(index), settings or DEFAULT_SETTINGS, options)
        write_folder(root, capture(store).to_saved())


def open_for_reading(root: Path, options: dict[str, Any]) -> Store:
    """Open a folder that another process may write to meanwhile."""
    return retried(root, lambda manifest: open_store(root, manifest, **options)).store


def open_for_writing(root: Path, options: dict[str, Any]) -> tuple[Store, DurableFolder]:
    """Lock a folder and open it."""
    if not is_saved_engine(root):
        raise FolderError(
            f"{root} holds no saved engine: there is no manifest.json; create=True makes a new one"
        )
    lock = FolderLock(root)
    try:
        manifest = read_manifest(root)
        opened = open_store(root, manifest, **options)
        remove_leftovers(root)
        return opened.store, DurableFolder(root, lock, manifest.logs, opened.log_ends)
    except BaseException:
        lock.release()
        raise
