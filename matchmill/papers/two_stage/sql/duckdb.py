"""DuckDB: columns in and out as Arrow arrays.

It reads whole columns and keeps statistics of its own, so its tables get no indexes. Of two writers
at a time on the same rows the second one fails; other processes cannot open the file meanwhile.

To start a database takes 15 ms and threads, so all indexes in memory share one of the process: each
has a connection, and tables that are temporary, that is, the connection's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from matchmill.errors import InputError, MissingDependencyError
from matchmill.papers.two_stage.sql.database import CHUNK_ROWS, IN_MEMORY, Database

__all__ = ["DuckDB"]

_databases: dict[int, Any] = {}  # in memory, by process: a fork has none of its parent's threads
_lock = Lock()


def _memory() -> Any:
    import duckdb

    with _lock:
        if os.getpid() not in _databases:
            _databases[os.getpid()] = duckdb.connect(f":memory:matchmill-{os.getpid()}")
        return _databases[os.getpid()]


class DuckDB(Database):
    """DuckDB, in memory or in a file."""

    name: ClassVar[str] = "duckdb"

    def __init__(self, connection: Any, *, only_temporary: bool = False) -> None:
        self._connection = connection
        self.only_temporary = only_temporary

    @classmethod
    def connect(cls, path: str) -> DuckDB:
        """Open a database."""
        try:
            import duckdb
        except ImportError:
            raise MissingDependencyError(
                "matching in DuckDB needs its package; install it: pip install 'matchmill[sql]'"
            ) from None
        if path == IN_MEMORY:
            return cls(_memory().cursor(), only_temporary=True)
        try:
            return cls(duckdb.connect(path))
        except duckdb.Error as error:
            raise InputError(f"DuckDB cannot open {path!r}: {error}") from error

    def execute(self, statement: str) -> None:
        """Run a statement that has no result."""
        self._connection.execute(statement)

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[None]:
        """Run the statements inside as one."""
        self.execute("BEGIN TRANSACTION")
        try:
            yield
        except BaseException:
            self.execute("ROLLBACK")
            raise
        self.execute("COMMIT")

    def load(self, table: str, columns: Mapping[str, np.ndarray]) -> None:
        """Append rows."""
        self._take_arrow(f"INSERT INTO {table}", columns)

    def refill(self, table: str, columns: Mapping[str, np.ndarray]) -> None:
        """Make or empty a temporary table, and give it rows."""
        # Rows that are deleted would stay in memory until a checkpoint.
        self._take_arrow(f"CREATE OR REPLACE TEMPORARY TABLE {table} AS", columns)

    def _take_arrow(self, statement: str, columns: Mapping[str, np.ndarray]) -> None:
        arrow = pa.table({name: pa.array(values) for name, values in columns.items()})
        self._connection.register("matchmill_loading", arrow)
        try:
            self.execute(f"{statement} SELECT * FROM matchmill_loading")
        finally:
            self._connection.unregister("matchmill_loading")

    def stream(self, query: str, n_columns: int) -> Iterator[list[np.ndarray]]:
        """Read a result in pieces of columns."""
        reader = self._connection.sql(query).to_arrow_reader(CHUNK_ROWS)
        try:
            for batch in reader:
                columns = (batch.column(k).cast(pa.int64()) for k in range(n_columns))
                yield [column.to_numpy() for column in columns]
        finally:
            reader.close()

    def rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Read a result as Python values."""
        reader = self._connection.sql(query).to_arrow_reader(CHUNK_ROWS)
        try:
            for batch in reader:
                columns = [batch.column(k).to_pylist() for k in range(batch.num_columns)]
                yield from zip(*columns, strict=True)
        finally:
            reader.close()

    def columns_of(self, table: str) -> tuple[str, ...] | None:
        """Return the columns of a table, or None."""
        import duckdb

        try:
            return tuple(self._connection.sql(f"SELECT * FROM {table}").columns)
        except duckdb.CatalogException:
            return None

    def n_bytes(self, tables: list[str]) -> int:
        """8 bytes a number, before compression: DuckDB tells sizes of files only."""
        sizes = ((self.number(f"SELECT COUNT(*) FROM {t}"), self.columns_of(t)) for t in tables)
        return sum(8 * n_rows * len(columns or ()) for n_rows, columns in sizes)

    def hold_writers(self, table: str) -> None:
        """Nothing: who writes second gets an error."""

    def create_index(self, name: str, place: tuple[str, ...], columns: Iterable[str]) -> None:
        """None: looking rows up one by one is slower here than reading a column."""

    def analyze(self, tables: list[str]) -> None:
        """Nothing: it counts as it loads."""

    def close(self) -> None:
        """Close the connection if it is our own."""
        self._connection.close()
