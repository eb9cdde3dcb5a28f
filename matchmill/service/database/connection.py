"""A connection to a database as the statements of the store see it: SQLite's, or PostgreSQL's.

Statements are written once, with `?` for values, in the SQL that both understand. `Connections` is
where a store gets them from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol

__all__ = ["Connection", "Connections"]


class Connection(Protocol):
    """One connection; used by one thread at a time."""

    words: ClassVar[dict[str, str]]  # what the words in braces of the schema stand for
    to_take_long: ClassVar[tuple[str, ...]]  # what to run before statements that may take long

    def close(self) -> None:
        """Close it."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Do what the block does in one transaction, which is the only one that writes."""
        ...

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows that a statement finds."""
        ...

    def run(self, sql: str, *values: Any) -> int:
        """Run a statement; return how many rows it has changed."""
        ...

    def run_many(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run a statement once per row of values."""
        ...

    def insert_many(
        self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
    ) -> None:
        """Insert rows in the fastest way."""
        ...

    def among(self, column: str, values: Iterable[Any]) -> tuple[str, Any]:
        """Return a condition that a column is one of some values, and the value for its `?`."""
        ...

    def given(self, values: Sequence[Any]) -> tuple[str, Any]:
        """Return a table `given` with some values in its column `value`, and what its `?` is.

        `FROM given CROSS JOIN t WHERE t.key = given.value` looks each value up in the index of
        `t.key`, whatever the database believes about its tables.
        """
        ...

    def stream(self, sql: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """Yield rows without reading all of them at once."""
        ...

    def notify(self, numbers: Sequence[int]) -> None:
        """With the commit, notify other processes of these subscriptions."""
        ...


class Connections(Protocol):
    """The connections of a store to its database; any thread may ask for one."""

    def reading(self) -> AbstractContextManager[Connection]:
        """Lend a connection to this thread, to read."""
        ...

    def writing(self) -> AbstractContextManager[Connection]:
        """Lend a connection to this thread, to change something; one thread at a time asks."""
        ...

    def is_failure(self, error: Exception) -> bool:
        """Return whether an error says that the database cannot be used at present."""
        ...

    def end_by(self, moment: float) -> None:
        """Wait for nothing beyond a moment of the monotonic clock, from now on."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...
