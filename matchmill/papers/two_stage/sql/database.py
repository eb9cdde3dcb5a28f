"""What matching asks of a database.

A dialect is a subclass: how rows get in and out in bulk, how a transaction is written, which
statements help its planner. The SQL itself is the same for all and stands in `forms.py`. Every
column is an integer that is never null, so rows travel as NumPy arrays of int64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import numpy as np

__all__ = [
    "CHUNK_ROWS",
    "IN_MEMORY",
    "Database",
    "column_type",
    "quoted",
]

CHUNK_ROWS = 65_536  # read at a time
IN_MEMORY = ":memory:"  # where a path could stand

# Sums of these stay in 64 bits on every database.
_SMALL_COLUMNS = frozenset({"opens", "sign"})


def column_type(column: str) -> str:
    """Return the SQL type of a column."""
    return "INTEGER" if column in _SMALL_COLUMNS else "BIGINT"


def quoted(*parts: str) -> str:
    """Write a name as SQL does, `"schema"."table"` if it has several parts."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


class Database(ABC):
    """One connection. Not for two threads at a time."""

    name: ClassVar[str]
    only_temporary: bool = False  # tables of this connection are its own, and gone with it

    @abstractmethod
    def execute(self, statement: str) -> None:
        """Run a statement that has no result."""

    @abstractmethod
    def transaction(self, *, writes: bool) -> AbstractContextManager[None]:
        """All statements inside, or none; inside a transaction of the user's, a part of that."""

    @abstractmethod
    def load(self, table: str, columns: Mapping[str, np.ndarray]) -> None:
        """Append rows; the columns are in the order of the table's."""

    @abstractmethod
    def stream(self, query: str, n_columns: int) -> Iterator[list[np.ndarray]]:
        """Read the result in pieces: its columns, as int64."""

    @abstractmethod
    def rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Read the result as Python values, in pieces."""

    @abstractmethod
    def columns_of(self, table: str) -> tuple[str, ...] | None:
        """Return the columns of a table by its quoted name; None if there is none."""

    @abstractmethod
    def n_bytes(self, tables: list[str]) -> int:
        """Return what tables take, as well as the database knows."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection if it is our own."""

    @abstractmethod
    def hold_writers(self, table: str) -> None:
        """Inside a transaction that writes: let other writers of the table wait for its end."""

    @abstractmethod
    def create_index(self, name: str, place: tuple[str, ...], columns: Iterable[str]) -> None:
        """`place` is the table, after the schema if one was given."""

    @abstractmethod
    def analyze(self, tables: list[str]) -> None:
        """Tell the planner what the tables are like now."""

    def read(self, query: str, n_columns: int) -> list[np.ndarray]:
        """Read the whole result."""
        pieces = list(self.stream(query, n_columns))
        if not pieces:
            return [np.empty(0, np.int64) for _ in range(n_columns)]
        return [np.concatenate(column) for column in zip(*pieces, strict=True)]

    def number(self, query: str) -> int:
        """Read a result of one row and one column."""
        return int(self.read(query, 1)[0][0])

    def create(self, kind: str, table: str, columns: Iterable[str]) -> None:
        """`kind` is TABLE, with the words that may stand around it."""
        described = ", ".join(f"{column} {column_type(column)} NOT NULL" for column in columns)
        self.execute(f"CREATE {kind} {table} ({described})")

    def refill(self, table: str, columns: Mapping[str, np.ndarray]) -> None:
        """Make a temporary table, or empty the one that is there, and give it rows."""
        self.create("TEMPORARY TABLE IF NOT EXISTS", table, columns)
        self.execute(f"DELETE FROM {table}")
        self.load(table, columns)
