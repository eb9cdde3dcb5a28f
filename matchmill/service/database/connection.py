"""A connection to a database as the statements of the store see it: SQLite's, or PostgreSQL's.

Statements are written once, with `?` for values, in the SQL that both understand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol

__all__ = ["Connection"]


class Connection(Protocol):
    """One connection; used by one thread at a time."""

    words: ClassVar[dict[str, str]]  # what the words in braces of the schema stand for
    failures: ClassVar[tuple[type[Exception], ...]]  # errors of the database, not of a statement

    @property
    def is_closed(self) -> bool:
        """Return whether it broke or was closed."""
        ...

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

    def each(self, values: Iterable[int]) -> tuple[str, Any]:
        """Return a table with the column `value`, and the value for its `?`."""
        ...

    def stream(self, sql: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """Yield rows without reading all of them at once."""
        ...

    def notify(self, numbers: Sequence[int]) -> None:
        """With the commit, notify other processes of these subscriptions."""
        ...
