"""A store: transactions that write, one at a time, and any number of threads that read.

`writing()` is one transaction: what its block did is safe when it has ended, or did not happen. The
stores in SQLite and in PostgreSQL differ in their connections, and in who listens.

Whatever makes the database unusable (it was stopped, does not answer, is read-only, full, or locked
by somebody else) is a StoreError within a bounded time, and at once while that goes on. When the
database is back, the store works again.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from matchmill.service.database.breaker import Breaker
from matchmill.service.database.connection import Connection, Connections
from matchmill.service.database.reads import Reads
from matchmill.service.database.schema import check_secret, migrate, read_identity, version_of
from matchmill.service.database.writes import Writes

__all__ = ["Store"]


class Store(ABC):
    """Any thread may use it; there is one transaction at a time."""

    identity: str  # different for every store that was ever made
    is_shared: ClassVar[bool]  # other processes may write to it, too

    def __init__(self, name: str, connections: Connections) -> None:
        self._connections = connections
        self._reads = Breaker(name, connections.is_failure)
        self._writes = Breaker(name, connections.is_failure)
        self._lock = threading.Lock()
        try:
            with self._transaction() as connection:
                migrate(connection)
                self.identity = read_identity(connection)
        except BaseException:
            connections.close()
            raise

    @property
    def error(self) -> str | None:
        """Return why the store cannot be used at present; None if it can, as far as is known."""
        return self._writes.error or self._reads.error

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with (
            self._lock,
            self._writes.trying(),
            self._connections.writing() as connection,
            connection.transaction(),
        ):
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Reads]:
        """Read what is committed, with a connection of this thread."""
        with self._reads.trying() as works, self._connections.reading() as connection:
            if self._reads.error is not None:  # others wait to know, and the block may take long
                version_of(connection)
                works()
            yield Reads(connection)

    @contextmanager
    def writing(self) -> Iterator[Writes]:
        """Do what the block does in one transaction."""
        with self._transaction() as connection:
            yield Writes(connection)

    def probe(self) -> None:
        """Read something; StoreError if that is not possible."""
        with self._reads.trying(), self._connections.reading() as connection:
            version_of(connection)

    def check_secret(self, fingerprint: str) -> None:
        """Note the fingerprint of the secret key; StoreError if it was another one before."""
        with self._transaction() as connection:
            check_secret(connection, fingerprint)

    @abstractmethod
    def listen(self, heard: Callable[[list[int]], None]) -> Callable[[], None]:
        """Call `heard` with subscriptions that another process changed; return what ends it."""

    def end_by(self, moment: float) -> None:
        """Wait for the database only until a moment of the monotonic clock, from now on."""
        self._connections.end_by(moment)

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()
