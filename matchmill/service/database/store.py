"""A store: one connection that writes, and one per thread that reads.

`writing()` is one transaction: what its block did is safe when it has ended, or did not happen. The
stores in SQLite and in PostgreSQL differ in their connections, and in who listens.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from matchmill.errors import StoreError
from matchmill.service.database.connection import Connection
from matchmill.service.database.reads import Reads
from matchmill.service.database.schema import check_secret, migrate, read_identity
from matchmill.service.database.writes import Writes

__all__ = ["Store"]


class Store(ABC):
    """Any thread may use it; there is one transaction at a time.

    A connection that broke is opened again when it is needed.
    """

    identity: str  # different for every store that was ever made
    is_shared: ClassVar[bool]  # other processes may write to it, too

    def __init__(self, name: str, connect: Callable[[], Connection]) -> None:
        self._name = name
        self._connect = connect
        self._local = threading.local()
        self._connections: list[Connection] = []
        self._lock = threading.Lock()
        self._writer: Connection | None = None
        with self._transaction() as connection:
            migrate(connection)
            self.identity = read_identity(connection)

    def _opened(self, old: Connection | None) -> Connection:
        """Return a connection if it can be used, and a new one if not."""
        if old is not None:
            if not old.is_closed:
                return old
            old.close()
            self._connections.remove(old)
        connection = self._connect()
        self._connections.append(connection)
        return connection

    @contextmanager
    def _failures(self, connection: Connection) -> Iterator[None]:
        try:
            yield
        except connection.failures as error:
            raise StoreError(f"{self._name} failed: {error}") from error

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with self._lock:
            self._writer = self._opened(self._writer)
            with self._failures(self._writer), self._writer.transaction():
                yield self._writer

    @contextmanager
    def reading(self) -> Iterator[Reads]:
        """Read what is committed, with a connection of this thread."""
        connection = self._opened(getattr(self._local, "connection", None))
        self._local.connection = connection
        with self._failures(connection):
            yield Reads(connection)

    @contextmanager
    def writing(self) -> Iterator[Writes]:
        """Do what the block does in one transaction."""
        with self._transaction() as connection:
            yield Writes(connection)

    def check_secret(self, fingerprint: str) -> None:
        """Note the fingerprint of the secret key; StoreError if it was another one before."""
        with self._transaction() as connection:
            check_secret(connection, fingerprint)

    @abstractmethod
    def listen(self, heard: Callable[[list[int]], None]) -> Callable[[], None]:
        """Call `heard` with subscriptions that another process changed; return what ends it."""

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections:
            connection.close()
        self._connections.clear()
