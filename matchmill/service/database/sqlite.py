"""The store in one SQLite file: embedded, one process at a time, safe when a transaction ends.

Readers have a connection for each thread and never wait (WAL mode); there is one connection that
writes. `synchronous=FULL` syncs the disk at each commit, so a commit survives a power failure.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from matchmill.errors import StoreError
from matchmill.service.database.identity import check_secret, read_identity
from matchmill.service.database.reads import Questions
from matchmill.service.database.schema import migrate
from matchmill.service.database.writes import Changes

__all__ = ["SqliteStore", "copy_database"]

_WAIT_SECONDS = 30.0  # for a transaction of another process, such as `matchmill keys`


class SqliteLink:
    words = {"bytes": "BLOB", "keyed": "WITHOUT ROWID"}  # noqa: RUF012 - never changed

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(
            path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
        )
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -32768"):
            self.connection.execute(f"PRAGMA {pragma}")

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, values).fetchall()

    def run(self, sql: str, *values: Any) -> int:
        return self.connection.execute(sql, values).rowcount

    def run_many(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self.connection.executemany(sql, rows)

    def insert_many(
        self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
    ) -> None:
        marks = ", ".join("?" * len(columns))
        self.run_many(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)

    def among(self, column: str, values: Iterable[Any]) -> tuple[str, Any]:
        return f"{column} IN (SELECT value FROM json_each(?))", json.dumps(list(values))

    def stream(self, sql: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        return self.connection.execute(sql, values)

    def tell(self, numbers: Sequence[int]) -> None:
        """Nobody else is there to be told."""


class SqliteStore:
    """Implements `Store`."""

    is_shared = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        self._links: list[SqliteLink] = []
        self._lock = threading.Lock()
        try:
            self._writer = self._new_link()
            with self._transaction() as link:
                migrate(link)
                self.identity = read_identity(link)
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{path} cannot be used as a store: {error}") from error

    def _new_link(self) -> SqliteLink:
        link = SqliteLink(self._path)
        self._links.append(link)
        return link

    @contextmanager
    def _transaction(self) -> Iterator[SqliteLink]:
        with self._lock:
            link = self._writer
            link.run("BEGIN IMMEDIATE")
            try:
                yield link
                link.run("COMMIT")
            except BaseException as error:
                if link.connection.in_transaction:
                    link.run("ROLLBACK")
                if isinstance(error, sqlite3.OperationalError):
                    raise StoreError(f"{self._path} failed: {error}") from error
                raise

    @contextmanager
    def reading(self) -> Iterator[Questions]:
        link = getattr(self._local, "link", None)
        if link is None:
            link = self._local.link = self._new_link()
        try:
            yield Questions(link)
        except sqlite3.OperationalError as error:
            raise StoreError(f"{self._path} failed: {error}") from error

    @contextmanager
    def writing(self) -> Iterator[Changes]:
        with self._transaction() as link:
            yield Changes(link)

    def check_secret(self, fingerprint: str) -> None:
        with self._transaction() as link:
            check_secret(link, fingerprint)

    def listen(self, heard: Callable[[list[int]], None]) -> Callable[[], None]:
        return lambda: None

    def close(self) -> None:
        for link in self._links:
            link.connection.close()
        self._links.clear()


def copy_database(source: Path, target: Path) -> None:
    """A consistent copy of a store's file, while others write to it."""
    origin = sqlite3.connect(f"file:{source}?mode=ro", uri=True, timeout=_WAIT_SECONDS)
    try:
        copy = sqlite3.connect(target)
        try:
            origin.backup(copy)
        finally:
            copy.close()
    finally:
        origin.close()
