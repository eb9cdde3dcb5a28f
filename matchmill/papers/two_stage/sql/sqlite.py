"""SQLite: rows in by `executemany`, out by `fetchmany`.

A file takes one writer at a time; others wait for it some seconds.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from matchmill.errors import InputError
from matchmill.papers.two_stage.sql.database import CHUNK_ROWS, Database, quoted

__all__ = ["SQLite"]

_WAIT_SECONDS = 30.0


class SQLite(Database):
    name: ClassVar[str] = "sqlite"

    def __init__(self, connection: sqlite3.Connection, *, is_own: bool = True) -> None:
        self._connection = connection
        self._is_own = is_own

    @classmethod
    def connect(cls, path: str) -> SQLite:
        try:
            connection = sqlite3.connect(
                path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise InputError(f"SQLite cannot open {path!r}: {error}") from error
        return cls(connection)

    def execute(self, statement: str) -> None:
        self._connection.execute(statement)

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[None]:
        if self._connection.in_transaction:
            begin, commit = "SAVEPOINT matchmill", "RELEASE matchmill"
            rollback = ["ROLLBACK TO matchmill", "RELEASE matchmill"]
        else:
            # A transaction that reads first and writes later may find that another was quicker.
            begin, commit = "BEGIN IMMEDIATE" if writes else "BEGIN", "COMMIT"
            rollback = ["ROLLBACK"]
        self.execute(begin)
        try:
            yield
        except BaseException:
            for statement in rollback:
                self.execute(statement)
            raise
        self.execute(commit)

    def load(self, table: str, columns: Mapping[str, np.ndarray]) -> None:
        marks = ", ".join("?" * len(columns))
        rows = zip(*(values.tolist() for values in columns.values()), strict=True)
        self._connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)

    def stream(self, query: str, n_columns: int) -> Iterator[list[np.ndarray]]:
        for rows in self._pieces(query):
            yield list(np.array(rows, np.int64).T)

    def rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        for rows in self._pieces(query):
            yield from rows

    def _pieces(self, query: str) -> Iterator[list[tuple[Any, ...]]]:
        cursor = self._connection.execute(query)
        try:
            while rows := cursor.fetchmany(CHUNK_ROWS):
                yield rows
        finally:
            cursor.close()

    def columns_of(self, table: str) -> tuple[str, ...] | None:
        try:
            cursor = self._connection.execute(f"SELECT * FROM {table} LIMIT 0")
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return None
            raise
        return tuple(column[0] for column in cursor.description)

    def n_bytes(self, tables: list[str]) -> int:
        """The whole database: SQLite does not tell the sizes of tables apart in every build."""
        return self.number("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")

    def hold_writers(self, table: str) -> None:
        """Nothing: `BEGIN IMMEDIATE` has done so."""

    def create_index(self, name: str, place: tuple[str, ...], columns: Iterable[str]) -> None:
        table = quoted(place[-1])
        self.execute(f"CREATE INDEX {quoted(*place[:-1], name)} ON {table} ({', '.join(columns)})")

    def analyze(self, tables: list[str]) -> None:
        for table in tables:
            self.execute(f"ANALYZE {table}")

    def close(self) -> None:
        if self._is_own:
            self._connection.close()
