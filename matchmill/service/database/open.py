"""Opens the store that a URL names, or the one in a folder."""

from __future__ import annotations

from pathlib import Path

from matchmill.errors import InputError
from matchmill.service.database.sqlite import WAIT_SECONDS, SqliteStore
from matchmill.service.database.store import Store

__all__ = ["DATABASE_NAME", "open_store"]

DATABASE_NAME = "store.sqlite"


def open_store(
    folder: Path, url: str | None = None, *, wait_seconds: float = WAIT_SECONDS
) -> Store:
    """Return the store at a postgresql:// URL; without one, the SQLite file in the folder.

    `wait_seconds` is how long one statement may take, or wait for the lock of another process.
    """
    if url is None:
        return SqliteStore(folder / DATABASE_NAME, wait_seconds)
    if not url.startswith(("postgresql://", "postgres://")):
        raise InputError(
            "a store is named by a URL such as postgresql://user@host/database; without one it is"
            " a file in the folder"
        )
    from matchmill.service.database.postgres import PostgresStore

    return PostgresStore(url, wait_seconds)
