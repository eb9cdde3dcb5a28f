"""PostgreSQL: rows in and out by COPY in its binary form, which NumPy writes and reads.

    COPY's bytes    11 of signature, 4 of flags, 4 of a length (0), then rows, then the number -1
    a row           the number of columns (16 bits), and for each its length (32 bits) and its value

All of it is big-endian. Columns are never null, so all rows of a table have the same length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from matchmill.errors import InputError, MissingDependencyError
from matchmill.papers.two_stage.sql.database import CHUNK_ROWS, Database, column_type, quoted

__all__ = ["PostgreSQL"]

_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER = b"\xff\xff"

# For this transaction alone. Compiling a query takes longer than running it, on what we ask; and
# groups are to be counted in memory.
_PLANNER = "SET LOCAL jit = off; SET LOCAL work_mem = '128MB'"


class PostgreSQL(Database):
    """A PostgreSQL server."""

    name: ClassVar[str] = "postgresql"

    def __init__(self, connection: Any, *, is_own: bool = True) -> None:
        self._connection = connection
        self._is_own = is_own

    @classmethod
    def connect(cls, dsn: str) -> PostgreSQL:
        """Open a database."""
        try:
            import psycopg
        except ImportError:
            raise MissingDependencyError(
                "matching in PostgreSQL needs psycopg; install it:"
                " pip install 'matchmill[postgres]'"
            ) from None
        try:
            return cls(psycopg.connect(dsn, autocommit=True))
        except psycopg.Error as error:
            raise InputError(
                f"no PostgreSQL server answers: {error}\nInstall and start one (on Debian: apt "
                "install postgresql), and say where it is: dsn='host=… dbname=… user=…'"
            ) from error

    def execute(self, statement: str) -> None:
        """Run a statement that has no result."""
        self._connection.execute(statement)

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[None]:
        """Run the statements inside as one."""
        with self._connection.transaction():
            self.execute(_PLANNER)
            yield

    def hold_writers(self, table: str) -> None:
        """Let other writers of the table wait."""
        self.execute(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")

    def load(self, table: str, columns: Mapping[str, np.ndarray]) -> None:
        """Append rows."""
        rows = np.empty(len(next(iter(columns.values()))), _row_type(columns))
        rows["n_columns"] = len(columns)
        for name, values in columns.items():
            rows[f"{name} length"] = rows.dtype[name].itemsize
            rows[name] = values
        statement = f"COPY {table} FROM STDIN (FORMAT BINARY)"
        with self._cursor() as cursor, cursor.copy(statement) as copy:
            copy.write(_HEADER)
            for start in range(0, len(rows), CHUNK_ROWS):
                copy.write(rows[start : start + CHUNK_ROWS].tobytes())
            copy.write(_TRAILER)

    def stream(self, query: str, n_columns: int) -> Iterator[list[np.ndarray]]:
        """Read a result in pieces of columns."""
        names = [f"c{k}" for k in range(n_columns)]
        row_type = np.dtype(_row_type(names))
        as_int64 = ", ".join(f"{name}::BIGINT" for name in names)
        statement = (
            f"COPY (SELECT {as_int64} FROM ({query}) q ({', '.join(names)}))"
            " TO STDOUT (FORMAT BINARY)"
        )
        with self._cursor() as cursor, cursor.copy(statement) as copy:
            buffer = bytearray()
            for data in copy:
                buffer += data
                if len(buffer) >= CHUNK_ROWS * row_type.itemsize:
                    yield _taken(buffer, row_type, names)
            if len(buffer) > len(_HEADER) + len(_TRAILER) or not buffer.startswith(_HEADER):
                yield _taken(buffer, row_type, names)

    def rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Read a result as Python values."""
        with self._connection.cursor(name="matchmill_rows") as cursor:
            cursor.itersize = CHUNK_ROWS
            cursor.execute(query)
            yield from cursor

    def columns_of(self, table: str) -> tuple[str, ...] | None:
        """Return the columns of a table, or None."""
        with self._cursor() as cursor:
            cursor.execute("SELECT to_regclass(%s) IS NOT NULL", (table,))
            if not cursor.fetchone()[0]:
                return None
            cursor.execute(f"SELECT * FROM {table} LIMIT 0")
            return tuple(column.name for column in cursor.description)

    def n_bytes(self, tables: list[str]) -> int:
        """Bytes of the arrays."""
        sizes = [f"pg_total_relation_size('{t.replace(chr(39), chr(39) * 2)}')" for t in tables]
        return self.number(f"SELECT {' + '.join(sizes)}")

    def analyze(self, tables: list[str]) -> None:
        """Tell the planner what the tables are like now."""
        self.execute(f"ANALYZE {', '.join(tables)}")

    def refill(self, table: str, columns: Mapping[str, np.ndarray]) -> None:
        """Make or empty a temporary table, and give it rows."""
        # What is deleted from a temporary table is never vacuumed.
        self.create("TEMPORARY TABLE IF NOT EXISTS", table, columns)
        self.execute(f"TRUNCATE {table}")
        self.load(table, columns)
        self.analyze([table])

    def create_index(self, name: str, place: tuple[str, ...], columns: Iterable[str]) -> None:
        """Create an index of the database on some columns."""
        self.execute(f"CREATE INDEX {quoted(name)} ON {quoted(*place)} ({', '.join(columns)})")

    def close(self) -> None:
        """Close the connection if it is our own."""
        if self._is_own:
            self._connection.close()

    def _cursor(self) -> Any:
        from psycopg.rows import tuple_row  # the user's connection may make dicts of rows

        return self._connection.cursor(row_factory=tuple_row)


def _row_type(columns: Iterable[str]) -> list[tuple[str, str]]:
    fields = [("n_columns", ">i2")]
    for name in columns:
        fields.append((f"{name} length", ">i4"))
        fields.append((name, ">i4" if column_type(name) == "INTEGER" else ">i8"))
    return fields


def _taken(buffer: bytearray, row_type: np.dtype[Any], names: list[str]) -> list[np.ndarray]:
    """Take all whole rows out of a buffer."""
    start = len(_HEADER) if buffer.startswith(_HEADER) else 0
    n_rows = (len(buffer) - start) // row_type.itemsize
    rows = np.frombuffer(bytes(buffer), row_type, n_rows, start)
    del buffer[: start + n_rows * row_type.itemsize]
    return [rows[name].astype(np.int64) for name in names]
