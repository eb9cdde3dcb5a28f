"""A connection to a database as the statements of the store see it: SQLite's, or PostgreSQL's.

Statements are written once, with `?` for values, in the SQL that both understand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

__all__ = ["Link"]


class Link(Protocol):
    words: dict[str, str]  # what the words in braces of the schema stand for

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]: ...

    def run(self, sql: str, *values: Any) -> int:
        """Run a statement; returns how many rows it has changed."""
        ...

    def run_many(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> None: ...

    def insert_many(
        self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
    ) -> None: ...

    def among(self, column: str, values: Iterable[Any]) -> tuple[str, Any]:
        """A condition that a column is one of some values, and the value for its `?`."""
        ...

    def stream(self, sql: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """Rows piece by piece, however many there are."""
        ...

    def tell(self, numbers: Sequence[int]) -> None:
        """With the commit, tell other processes of these subscriptions."""
        ...
