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
    """SQLite, in memory or in a file."""

    name: ClassVar[str] = "sqlite"

    def __init__(self, connection: sqlite3.Connection, *, is_own: bool = True) -> None:
        self._connection = connection
        self._is_own = is_own

    @classmethod
    def connect(cls, path: str) -> SQLite:
        """Open a database."""
        try:
            connection = sqlite3.connect(
                path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise InputError(f"SQLite cannot open {path!r}: {error}") from error
        return cls(connection)

    def execute(self, statement: str) -> None:
        """Run a statement that has no result."""
        self._connection.execute(statement)

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[None]:
        """Run the statements inside as one."""
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
        """Append rows."""
        marks = ", ".join("?" * len(columns))
        rows = zip(*(values.tolist() for values in columns.values()), strict=True)
        self._connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)

    def stream(self, query: str, n_columns: int) -> Iterator[list[np.ndarray]]:
        """Read a result in pieces of columns."""
        for rows in self._pieces(query):
            yield list(np.array(rows, np.int64).T)

    def rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Read a result as Python values."""
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
        """Return the columns of a table, or None."""
        try:
            cursor = self._connection.execute(f"SELECT * FROM {table} LIMIT 0")
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return None
            raise
        return tuple(column[0] for column in cursor.description)

    def n_bytes(self, tables: list[str]) -> int:
        """Return the bytes of the whole database.

        Not every build of SQLite knows the sizes of tables.
        """
        return self.number("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")

    def hold_writers(self, table: str) -> None:
        """Nothing: `BEGIN IMMEDIATE` has done so."""

    def create_index(self, name: str, place: tuple[str, ...], columns: Iterable[str]) -> None:
        """Create an index of the database on some columns."""
        table = quoted(place[-1])
        self.execute(f"CREATE INDEX {quoted(*place[:-1], name)} ON {table} ({', '.join(columns)})")

    def analyze(self, tables: list[str]) -> None:
        """Tell the planner what the tables are like now."""
        for table in tables:
            self.execute(f"ANALYZE {table}")

    def close(self) -> None:
        """Close the connection if it is our own."""
        if self._is_own:
            self._connection.close()
