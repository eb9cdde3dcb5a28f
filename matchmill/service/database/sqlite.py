"""The store in one SQLite file: embedded, one process at a time, safe when a transaction ends.

Each thread that reads has a connection of its own and never waits (WAL mode); one connection
writes. `synchronous=FULL` syncs the disk at each commit, so a commit survives a power failure.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from matchmill.errors import StoreError
from matchmill.service.database.store import Store

__all__ = ["SqliteConnection", "SqliteStore", "copy_database"]

_WAIT_SECONDS = 30.0  # for a transaction of another process, such as `matchmill keys`


class SqliteConnection:
    """Implements `Connection`."""

    words: ClassVar[dict[str, str]] = {"bytes": "BLOB", "keyed": "WITHOUT ROWID"}
    failures: ClassVar[tuple[type[Exception], ...]] = (sqlite3.OperationalError,)
    is_closed = False  # a file does not go away

    def __init__(self, path: Path) -> None:
        self._raw = sqlite3.connect(
            path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
        )
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -32768"):
            self._raw.execute(f"PRAGMA {pragma}")

    def close(self) -> None:
        """Close it."""
        self._raw.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Lock the file for writing, and commit; undo everything if the block raises."""
        self.run("BEGIN IMMEDIATE")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            if self._raw.in_transaction:
                self.run("ROLLBACK")
            raise

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows that a statement finds."""
        return self._raw.execute(sql, values).fetchall()

    def run(self, sql: str, *values: Any) -> int:
        """Run a statement; return how many rows it has changed."""
        return self._raw.execute(sql, values).rowcount

    def run_many(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run a statement once per row of values."""
        self._raw.executemany(sql, rows)

    def insert_many(
        self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
    ) -> None:
        """Insert rows by one prepared statement."""
        marks = ", ".join("?" * len(columns))
        self.run_many(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)

    def among(self, column: str, values: Iterable[Any]) -> tuple[str, Any]:
        """Return a condition over a JSON list of the values."""
        return f"{column} IN (SELECT value FROM json_each(?))", json.dumps(list(values))

    def each(self, values: Iterable[int]) -> tuple[str, Any]:
        """Return a table over a JSON list of the values."""
        return "json_each(?)", json.dumps(list(values))

    def stream(self, sql: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """Yield rows as SQLite finds them."""
        return self._raw.execute(sql, values)

    def notify(self, numbers: Sequence[int]) -> None:
        """Do nothing: no other process serves from this file."""


class SqliteStore(Store):
    """The store in one file."""

    is_shared = False

    def __init__(self, path: Path) -> None:
        try:
            super().__init__(str(path), lambda: SqliteConnection(path))
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{path} cannot be used as a store: {error}") from error

    def listen(self, heard: Callable[[list[int]], None]) -> Callable[[], None]:
        """Do nothing: no other process serves from this file."""
        return lambda: None


def copy_database(source: Path, target: Path) -> None:
    """Write a consistent copy of a store's file, while others write to it."""
    origin = sqlite3.connect(f"file:{source}?mode=ro", uri=True, timeout=_WAIT_SECONDS)
    try:
        copy = sqlite3.connect(target)
        try:
            origin.backup(copy)
        finally:
            copy.close()
    finally:
        origin.close()
