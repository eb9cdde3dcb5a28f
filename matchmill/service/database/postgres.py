"""The store in PostgreSQL: several processes may serve from it.

Transactions that write take one advisory lock, so they end in the order of the numbers that they
give away, and nobody who follows the change log or a mailbox misses a number that comes late.
Group commit makes up for it: a transaction holds the writes of many requests.

NOTIFY tells the readers of one process of the matches that another process has stored.

A server can stop, or go silent: then its kernel still acknowledges what it is sent, so no timeout
of TCP helps. Every wait for it therefore has an end on this side, after which the connection is
closed; and on the other side, where a statement that nobody waits for any more must not go on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

from matchmill.errors import InputError, MissingDependencyError, StoreError
from matchmill.service.database.store import Store

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
    from psycopg_pool import ConnectionPool
except ImportError as error:
    raise MissingDependencyError(
        "a store in PostgreSQL needs psycopg and its pool: pip install 'matchmill[postgres]'"
    ) from error

__all__ = ["PostgresConnection", "PostgresConnections", "PostgresStore"]

WAIT_SECONDS = 10.0  # for one statement
_CONNECT_SECONDS = 3
_POOL_SECONDS = 2.0  # for a connection of the pool
_MOST_CONNECTIONS = 40
_LOCK = 7236455  # any number will do that nobody else uses for a lock
_CHANNEL = "matchmill"
_MOST_NUMBERS = 400  # in one notification, which may have 8,000 bytes
_ROWS_PER_COPY = 20_000  # so that one statement does not take long
_READ_ONLY = "25006"

# The pool reports each attempt to connect; what matters is in the log of the service.
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)


class _Waits:
    """How long to wait for the server; shared by all connections of a store."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.end = float("inf")  # of all waits, on the monotonic clock


class _Bounded(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is closed when the server does not answer in time."""

    waits: _Waits | None = None  # none while it is being made
    n_failures = 0  # of the store, when this connection was last known to work

    def wait(self, gen: Any, *arguments: Any, **more: Any) -> Any:
        """Wait for the server, as every method does."""
        if self.waits is None:
            return super().wait(gen, *arguments, **more)
        return super().wait(self._bounded(gen, self.waits), *arguments, **more)

    def _bounded(self, gen: Generator[Any, Any, Any], waits: _Waits) -> Generator[Any, Any, Any]:
        """Do what `gen` does; it is resumed ten times per second while nothing arrives."""
        started = time.monotonic()
        try:
            waited_for = next(gen)
            while True:
                ready = yield waited_for
                if not ready:
                    now = time.monotonic()
                    if now >= min(started + waits.seconds, waits.end):
                        self.close()
                        message = f"the server did not answer within {now - started:.1f} s"
                        raise psycopg.OperationalError(message)
                waited_for = gen.send(ready)
        except StopIteration as end:
            return end.value


class PostgresConnection:
    """Implements `Connection`."""

    words: ClassVar[dict[str, str]] = {"bytes": "BYTEA", "keyed": ""}
    to_take_long: ClassVar[tuple[str, ...]] = ("SET LOCAL statement_timeout = 0",)

    def __init__(self, raw: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._raw = raw

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
        sql = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
        for start in range(0, len(rows), _ROWS_PER_COPY):
            with self._raw.cursor() as cursor, cursor.copy(sql) as copy:
                for row in rows[start : start + _ROWS_PER_COPY]:
                    copy.write_row(row)

    def among(self, column: str, values: Iterable[Any]) -> tuple[str, Any]:
        """Return a condition over an array of the values."""
        return f"{column} = ANY(?)", list(values)

    def given(self, values: Sequence[Any]) -> tuple[str, Any]:
        """Return a table of the values of an array."""
        kind = "text" if values and isinstance(values[0], str) else "bigint"
        return f"unnest(?::{kind}[]) AS given (value)", list(values)

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


def _connect_options(url: str, wait_seconds: float) -> dict[str, Any]:
    """Return what a connection needs to notice that the server is gone, where the URL is silent."""
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise InputError(f"the URL of the store cannot be read: {error}") from error
    wanted = {
        "connect_timeout": _CONNECT_SECONDS,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": int(1000 * wait_seconds),
        "application_name": "matchmill",
    }
    return {name: value for name, value in wanted.items() if name not in given}


class PostgresConnections:
    """Implements `Connections`: a pool, whose broken connections are replaced."""

    def __init__(self, url: str, wait_seconds: float) -> None:
        self._wait_seconds = wait_seconds
        self._waits = _Waits(wait_seconds)
        self._n_failures = 0  # a connection that was not used since the last one is tried first
        options = {"autocommit": True, **_connect_options(url, wait_seconds)}
        try:
            psycopg.connect(url, **options).close()  # the pool would not say what is wrong
        except psycopg.OperationalError as error:
            raise StoreError(f"PostgreSQL cannot be reached: {error}") from error
        self._pool: ConnectionPool[_Bounded] = ConnectionPool(
            url,
            connection_class=_Bounded,
            kwargs=options,
            min_size=1,
            max_size=_MOST_CONNECTIONS,
            configure=self._configure,
            timeout=_POOL_SECONDS,
            # An attempt to connect ends soon, and the next request begins another one: after a
            # long outage nobody waits for the end of a long pause between attempts.
            reconnect_timeout=0.5,
            open=True,
        )

    def _configure(self, raw: _Bounded) -> None:
        raw.waits, raw.n_failures = self._waits, self._n_failures
        milliseconds = int(1000 * self._wait_seconds)
        raw.execute(
            "SET synchronous_commit = on;"
            f" SET statement_timeout = {milliseconds};"
            f" SET lock_timeout = {milliseconds};"
            # Of a process that stopped in the middle, and holds the lock of those who write.
            f" SET idle_in_transaction_session_timeout = {3 * milliseconds}"
        )

    @contextmanager
    def reading(self) -> Iterator[PostgresConnection]:
        """Lend a connection of the pool."""
        raw = self._taken()
        try:
            yield PostgresConnection(raw)
        except psycopg.Error as error:
            if error.sqlstate == _READ_ONLY:
                raw.close()  # where the URL names several servers, another one may be written to
            self._n_failures += raw.closed
            raise
        finally:
            self._pool.putconn(raw)

    writing = reading

    def _taken(self) -> _Bounded:
        """Return a connection that works, as far as is known."""
        while True:
            raw = self._pool.getconn(self._patience())
            n_failures = self._n_failures
            if raw.n_failures == n_failures:
                return raw
            try:
                raw.execute("SELECT 1")
            except psycopg.Error:
                raw.close()
                self._pool.putconn(raw)
            else:
                raw.n_failures = n_failures
                return raw

    def _patience(self) -> float:
        return max(0.001, min(_POOL_SECONDS, self._waits.end - time.monotonic()))

    def is_failure(self, error: Exception) -> bool:
        """Return whether the server is away, or refuses to do what it usually does."""
        kinds = (psycopg.OperationalError, psycopg.InternalError, psycopg.InterfaceError)
        return isinstance(error, kinds)

    @contextmanager
    def taking_long(self) -> Iterator[None]:
        """Wait for statements as long as they take."""
        seconds, self._waits.seconds = self._waits.seconds, float("inf")
        try:
            yield
        finally:
            self._waits.seconds = seconds

    def end_by(self, moment: float) -> None:
        """Wait for no answer beyond a moment."""
        self._waits.end = min(self._waits.end, moment)

    def close(self) -> None:
        """Close all connections."""
        self._pool.close(timeout=1.0)


class PostgresStore(Store):
    """The store in a database."""

    is_shared = True

    def __init__(self, url: str, wait_seconds: float = WAIT_SECONDS) -> None:
        self._url = url
        self._wait_seconds = wait_seconds
        connections = PostgresConnections(url, wait_seconds)
        with connections.taking_long():  # new tables and indexes over much data
            super().__init__("PostgreSQL", connections)

    def listen(self, heard: Callable[[list[int]], None]) -> Callable[[], None]:
        """Call `heard` with subscriptions that another process changed; return what ends it."""
        return _Listener(self._url, _connect_options(self._url, self._wait_seconds), heard).stop


class _Listener:
    def __init__(
        self, url: str, options: dict[str, Any], heard: Callable[[list[int]], None]
    ) -> None:
        self._url = url
        self._options = options
        self._heard = heard
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="matchmill-listen", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            with suppress(psycopg.Error):
                self._connect_and_listen()
            self._stopping.wait(1.0)  # until the database is back

    def _connect_and_listen(self) -> None:
        with psycopg.connect(self._url, autocommit=True, **self._options) as connection:
            connection.execute(f"LISTEN {_CHANNEL}")
            self._heard([])  # something may have been missed: all readers look
            self._listen(connection)

    def _listen(self, connection: psycopg.Connection[Any]) -> None:
        while not self._stopping.is_set():
            for notification in connection.notifies(timeout=0.5):
                self._heard([int(number) for number in notification.payload.split(",")])

    def stop(self) -> None:
        """End the thread, unless the database does not let it: then it ends with the process."""
        self._stopping.set()
        self._thread.join(2.0)
