"""The store in one SQLite file: embedded, one process at a time, safe when a transaction ends.

Each thread that reads has a connection of its own and never waits (WAL mode); one connection
writes. `synchronous=FULL` syncs the disk at each commit, so a commit survives a power failure.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

from matchmill.errors import StoreError
from matchmill.service.database.store import Store

__all__ = ["WAIT_SECONDS", "SqliteConnection", "SqliteConnections", "SqliteStore", "copy_database"]

WAIT_SECONDS = 10.0  # for a transaction of another process, such as `matchmill keys`
_LOOK_SECONDS = 0.1  # how often to see whether waiting was ended


class SqliteConnection:
    """Implements `Connection`.

    Parameters
    ----------
    path
        The file; made if it does not exist, for its owner alone.
    wait_seconds
        How long to wait for a transaction of another process.
    is_over
        Returns whether waiting is to end now.
    """

    words: ClassVar[dict[str, str]] = {"bytes": "BLOB", "keyed": "WITHOUT ROWID"}
    to_take_long: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        path: Path,
        wait_seconds: float = WAIT_SECONDS,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self._wait_seconds = wait_seconds
        self._is_over = is_over
        _make_private(path)
        self._raw = sqlite3.connect(
            path, timeout=wait_seconds, isolation_level=None, check_same_thread=False
        )
        try:
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -32768"):
                self._raw.execute(f"PRAGMA {pragma}")
        except BaseException:
            self._raw.close()
            raise

    def close(self) -> None:
        """Close it."""
        self._raw.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Lock the file for writing, and commit; undo everything if the block raises."""
        self._begin()
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            if self._raw.in_transaction:
                self.run("ROLLBACK")
            raise

    def _begin(self) -> None:
        """Lock the file for writing, in short waits, since SQLite's own cannot be ended."""
        end = time.monotonic() + self._wait_seconds
        self.run(f"PRAGMA busy_timeout = {int(1000 * min(_LOOK_SECONDS, self._wait_seconds))}")
        while True:
            try:
                self.run("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                is_locked = error.sqlite_errorcode & 0xFF in (
                    sqlite3.SQLITE_BUSY,
                    sqlite3.SQLITE_LOCKED,
                )
                if not is_locked or time.monotonic() >= end or self._is_over():
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

    def given(self, values: Sequence[Any]) -> tuple[str, Any]:
        """Return a table of the values of a JSON list; SQLite reads what is left of CROSS first."""
        return "json_each(?) AS given", json.dumps(list(values))

    def stream(self, sql: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """Yield rows as SQLite finds them."""
        return self._raw.execute(sql, values)

    def notify(self, numbers: Sequence[int]) -> None:
        """Do nothing: no other process serves from this file."""


def _make_private(path: Path) -> None:
    """Make the file if it does not exist, and let nobody else read it; its log gets its mode.

    An existing file is never opened here: closing it would release SQLite's locks on it.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    for one in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        if one.exists() and one.stat().st_mode & 0o077:
            one.chmod(0o600)


class SqliteConnections:
    """Implements `Connections`: one that writes, and one for each thread that reads."""

    def __init__(self, path: Path, wait_seconds: float) -> None:
        self._path = path
        self._wait_seconds = wait_seconds
        self._end = float("inf")
        self._local = threading.local()
        self._lock = threading.Lock()
        self._opened: list[SqliteConnection] = []
        self._writer: SqliteConnection | None = None

    def _open(self) -> SqliteConnection:
        connection = SqliteConnection(
            self._path, self._wait_seconds, lambda: time.monotonic() >= self._end
        )
        with self._lock:
            self._opened.append(connection)
        return connection

    @contextmanager
    def reading(self) -> Iterator[SqliteConnection]:
        """Lend the connection of this thread."""
        connection: SqliteConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._open()
        yield connection

    @contextmanager
    def writing(self) -> Iterator[SqliteConnection]:
        """Lend the connection that writes."""
        if self._writer is None:
            self._writer = self._open()
        yield self._writer

    def is_failure(self, error: Exception) -> bool:
        """Return whether the file is locked, full, damaged or cannot be read or written."""
        return isinstance(error, sqlite3.OperationalError) or type(error) is sqlite3.DatabaseError

    def end_by(self, moment: float) -> None:
        """Wait for no lock beyond a moment."""
        self._end = min(self._end, moment)

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            for connection in self._opened:
                connection.close()
            self._opened.clear()


class SqliteStore(Store):
    """The store in one file."""

    is_shared = False

    def __init__(self, path: Path, wait_seconds: float = WAIT_SECONDS) -> None:
        try:
            super().__init__(str(path), SqliteConnections(path, wait_seconds))
        except (OSError, StoreError, sqlite3.DatabaseError) as error:
            raise StoreError(f"{path} cannot be used as a store: {error}") from error

    def listen(self, heard: Callable[[list[int]], None]) -> Callable[[], None]:
        """Do nothing: no other process serves from this file."""
        return lambda: None


def copy_database(source: Path, target: Path) -> None:
    """Write a consistent copy of a store's file, while others write to it."""
    origin = sqlite3.connect(f"file:{source}?mode=ro", uri=True, timeout=WAIT_SECONDS)
    try:
        _make_private(target)
        copy = sqlite3.connect(target)
        try:
            origin.backup(copy)
        finally:
            copy.close()
    finally:
        origin.close()
