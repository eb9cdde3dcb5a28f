"""The store in PostgreSQL: several processes may serve from it.

Transactions that write take one advisory lock, so they end in the order of the numbers that they
give away, and nobody who follows the change log or a mailbox misses a number that comes late.
Group commit makes up for it: a transaction holds the writes of many requests.

Who waits for matches in one process is told of those of another by NOTIFY.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from matchmill.errors import MissingDependencyError, StoreError
from matchmill.service.database.identity import check_secret, read_identity
from matchmill.service.database.reads import Questions
from matchmill.service.database.schema import migrate
from matchmill.service.database.writes import Changes

try:
    import psycopg
except ImportError as error:
    raise MissingDependencyError(
        "a store in PostgreSQL needs psycopg: pip install 'matchmill[postgres]'"
    ) from error

__all__ = ["PostgresStore"]

_LOCK = 7236455  # any number will do, if nobody else locks by it
_CHANNEL = "matchmill"
_MOST_TOLD = 400  # numbers in one notification, which may have 8,000 bytes


class PostgresLink:
    words = {"bytes": "BYTEA", "keyed": ""}  # noqa: RUF012 - never changed

    def __init__(self, url: str) -> None:
        try:
            self.connection = psycopg.connect(url, autocommit=True)
        except psycopg.OperationalError as error:
            raise StoreError(f"PostgreSQL cannot be reached: {error}") from error
        self.connection.execute("SET synchronous_commit = on")

    def _execute(self, sql: str, values: tuple[Any, ...]) -> psycopg.Cursor[tuple[Any, ...]]:
        text = sql.replace("?", "%s")
        return self.connection.execute(text, values or None)

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._execute(sql, values).fetchall()

    def run(self, sql: str, *values: Any) -> int:
        return self._execute(sql, values).rowcount

    def run_many(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            with self.connection.cursor() as cursor:
                cursor.executemany(sql.replace("?", "%s"), rows)

    def insert_many(
        self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
    ) -> None:
        if not rows:
            return
        sql = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
        with self.connection.cursor() as cursor, cursor.copy(sql) as copy:
            for row in rows:
                copy.write_row(row)

    def among(self, column: str, values: Iterable[Any]) -> tuple[str, Any]:
        return f"{column} = ANY(?)", list(values)

    def stream(self, sql: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        text = sql.replace("?", "%s")
        with self.connection.transaction(), self.connection.cursor("stream") as cursor:
            cursor.itersize = 10_000
            cursor.execute(text, values or None)
            yield from cursor

    def tell(self, numbers: Sequence[int]) -> None:
        for start in range(0, len(numbers), _MOST_TOLD):
            payload = ",".join(map(str, numbers[start : start + _MOST_TOLD]))
            self.run("SELECT pg_notify(?, ?)", _CHANNEL, payload)


class PostgresStore:
    """Implements `Store`. A connection that broke is made anew at the next use."""

    is_shared = True

    def __init__(self, url: str) -> None:
        self._url = url
        self._local = threading.local()
        self._links: list[PostgresLink] = []
        self._lock = threading.Lock()
        self._writer: PostgresLink | None = None
        with self._transaction() as link:
            migrate(link)
            self.identity = read_identity(link)

    def _new_link(self, old: PostgresLink | None) -> PostgresLink:
        if old is not None:
            old.connection.close()
            self._links.remove(old)
        link = PostgresLink(self._url)
        self._links.append(link)
        return link

    @contextmanager
    def _transaction(self) -> Iterator[PostgresLink]:
        with self._lock:
            if self._writer is None or self._writer.connection.closed:
                self._writer = self._new_link(self._writer)
            try:
                with self._writer.connection.transaction():
                    self._writer.run("SELECT pg_advisory_xact_lock(?)", _LOCK)
                    yield self._writer
            except psycopg.OperationalError as error:
                raise StoreError(f"PostgreSQL failed: {error}") from error

    @contextmanager
    def reading(self) -> Iterator[Questions]:
        link = getattr(self._local, "link", None)
        if link is None or link.connection.closed:
            link = self._local.link = self._new_link(link)
        try:
            yield Questions(link)
        except psycopg.OperationalError as error:
            raise StoreError(f"PostgreSQL failed: {error}") from error

    @contextmanager
    def writing(self) -> Iterator[Changes]:
        with self._transaction() as link:
            yield Changes(link)

    def check_secret(self, fingerprint: str) -> None:
        with self._transaction() as link:
            check_secret(link, fingerprint)

    def listen(self, heard: Callable[[list[int]], None]) -> Callable[[], None]:
        listener = _Listener(self._url, heard)
        return listener.stop

    def close(self) -> None:
        for link in self._links:
            link.connection.close()
        self._links.clear()


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
                    self._heard([])  # something may have been missed: all look
                    self._listen(connection)
            except psycopg.OperationalError:
                self._stopping.wait(1.0)  # until the database is back

    def _listen(self, connection: psycopg.Connection[Any]) -> None:
        while not self._stopping.is_set():
            for notification in connection.notifies(timeout=0.5):
                self._heard([int(number) for number in notification.payload.split(",")])

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
