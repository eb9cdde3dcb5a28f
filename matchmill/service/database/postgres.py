"""The store in PostgreSQL: several processes may serve from it.

Transactions that write take one advisory lock, so they end in the order of the numbers that they
give away, and nobody who follows the change log or a mailbox misses a number that comes late.
Group commit makes up for it: a transaction holds the writes of many requests.

NOTIFY tells the readers of one process of the matches that another process has stored.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from matchmill.errors import MissingDependencyError, StoreError
from matchmill.service.database.store import Store

try:
    import psycopg
except ImportError as error:
    raise MissingDependencyError(
        "a store in PostgreSQL needs psycopg: pip install 'matchmill[postgres]'"
    ) from error

__all__ = ["PostgresConnection", "PostgresStore"]

_LOCK = 7236455  # any number will do that nobody else uses for a lock
_CHANNEL = "matchmill"
_MOST_NUMBERS = 400  # in one notification, which may have 8,000 bytes


class PostgresConnection:
    """Implements `Connection`."""

    words: ClassVar[dict[str, str]] = {"bytes": "BYTEA", "keyed": ""}
    failures: ClassVar[tuple[type[Exception], ...]] = (psycopg.OperationalError,)

    def __init__(self, url: str) -> None:
        try:
            self._raw = psycopg.connect(url, autocommit=True)
        except psycopg.OperationalError as error:
            raise StoreError(f"PostgreSQL cannot be reached: {error}") from error
        self._raw.execute("SET synchronous_commit = on")

    @property
    def is_closed(self) -> bool:
        """Return whether it broke or was closed."""
        return self._raw.closed

    def close(self) -> None:
        """Close it."""
        self._raw.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Wait for the lock of those who write, and commit; undo everything if the block raises."""
        with self._raw.transaction():
            self.run("SELECT pg_advisory_xact_lock(?)", _LOCK)
            yield

    def _execute(self, sql: str, values: tuple[Any, ...]) -> psycopg.Cursor[tuple[Any, ...]]:
        return self._raw.execute(_marked(sql), values or None)

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows that a statement finds."""
        return self._execute(sql, values).fetchall()

    def run(self, sql: str, *values: Any) -> int:
        """Run a statement; return how many rows it has changed."""
        return self._execute(sql, values).rowcount

    def run_many(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run a statement once per row of values."""
        if rows:
            with self._raw.cursor() as cursor:
                cursor.executemany(_marked(sql), rows)

    def insert_many(
        self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
    ) -> None:
        """Insert rows by COPY."""
        if not rows:
            return
        sql = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
        with self._raw.cursor() as cursor, cursor.copy(sql) as copy:
            for row in rows:
                copy.write_row(row)

    def among(self, column: str, values: Iterable[Any]) -> tuple[str, Any]:
        """Return a condition over an array of the values."""
        return f"{column} = ANY(?)", list(values)

    def each(self, values: Iterable[int]) -> tuple[str, Any]:
        """Return a table over an array of the values."""
        return "unnest(?::bigint[]) AS each (value)", list(values)

    def stream(self, sql: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """Yield rows through a cursor of the server."""
        with self._raw.transaction(), self._raw.cursor("stream") as cursor:
            cursor.itersize = 10_000
            cursor.execute(_marked(sql), values or None)
            yield from cursor

    def notify(self, numbers: Sequence[int]) -> None:
        """With the commit, notify other processes of these subscriptions."""
        for start in range(0, len(numbers), _MOST_NUMBERS):
            payload = ",".join(map(str, numbers[start : start + _MOST_NUMBERS]))
            self.run("SELECT pg_notify(?, ?)", _CHANNEL, payload)


def _marked(sql: str) -> str:
    """Return a statement with the marks that psycopg has for values."""
    return sql.replace("?", "%s")


class PostgresStore(Store):
    """The store in a database."""

    is_shared = True

    def __init__(self, url: str) -> None:
        self._url = url
        super().__init__("PostgreSQL", lambda: PostgresConnection(url))

    def listen(self, heard: Callable[[list[int]], None]) -> Callable[[], None]:
        """Call `heard` with subscriptions that another process changed; return what ends it."""
        return _Listener(self._url, heard).stop


class _Listener:
    def __init__(self, url: str, heard: Callable[[list[int]], None]) -> None:
        self._url = url
        self._heard = heard
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="matchmill-listen", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                with psycopg.connect(self._url, autocommit=True) as connection:
                    connection.execute(f"LISTEN {_CHANNEL}")
                    self._heard([])  # something may have been missed: all readers look
                    self._listen(connection)
            except psycopg.OperationalError:
                self._stopping.wait(1.0)  # until the database is back

    def _listen(self, connection: psycopg.Connection[Any]) -> None:
        while not self._stopping.is_set():
            for notification in connection.notifies(timeout=0.5):
                self._heard([int(number) for number in notification.payload.split(",")])

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        self._thread.join()
