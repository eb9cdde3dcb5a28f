"""The indexes: one form of matching in one database. The tables are all there is to them.

Whatever is known of the clauses is in the tables, so another process may match and change them by
`open`. Events are matched a batch at a time, by a query for each thousand or so of them: what a
query counts in between grows with the events times the clauses.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.errors import InputError
from matchmill.index.base import ClauseMatches, IndexStats, Statistics
from matchmill.papers.two_stage.sql.connect import connect
from matchmill.papers.two_stage.sql.forms import GROUPED, PIVOT, SEQUENTIAL, Form
from matchmill.papers.two_stage.sql.rows import clause_rows, event_pairs
from matchmill.papers.two_stage.sql.selectivity import (
    KeySample,
    sample_of_clauses,
    sample_of_keys,
    sample_of_statistics,
)
from matchmill.papers.two_stage.sql.tables import Tables

__all__ = ["SqlGrouped", "SqlIndex", "SqlPivot", "SqlSequential"]

_MOST_EVENTS = 1024
_ROWS_PER_QUERY = 20_000_000  # that one query may come to count


class SqlIndex:
    """Clauses in tables. One call at a time uses the connection; others wait."""

    name: ClassVar[str]
    form: ClassVar[Form]

    def __init__(
        self,
        tables: Tables,
        *,
        sample: KeySample | None = None,
        build_seconds: float = 0.0,
        events_per_query: int | None = None,
        owns_connection: bool = True,
    ) -> None:
        self._tables = tables
        self._sample = sample
        self._build_seconds = build_seconds
        self._events_per_query = events_per_query
        self._candidates = 0
        self._lock = threading.RLock()
        self._is_streaming = False
        self._is_closed = False
        if owns_connection:
            weakref.finalize(self, tables.database.close)

    @classmethod
    def build(
        cls,
        table: ConjunctionTable,
        statistics: Statistics | None = None,
        *,
        database: str = "duckdb",
        path: str | None = None,
        dsn: str | None = None,
        prefix: str | None = None,
        temporary: bool = False,
        replace: bool = False,
        events_per_query: int | None = None,
        **options: Any,
    ) -> Self:
        """Make the tables and fill them, in one transaction.

        `database` is "duckdb", "sqlite" (both in memory, or in the file `path`) or "postgresql" (at
        `dsn`, or where the variables of libpq point to). The names of the tables begin with
        `prefix`, by default the index's name. With `temporary` they are gone when the index is,
        with `replace` they take the place of those that are there. `events_per_query` bounds what
        a query holds in memory.
        """
        opened = connect(database, path, dsn)
        try:
            tables = Tables(opened, cls.form, cls._prefix(prefix), temporary=temporary)
            return cls._built(
                tables, table, statistics, replace=replace, events_per_query=events_per_query
            )
        except BaseException:
            opened.close()
            raise

    @classmethod
    def _built(
        cls,
        tables: Tables,
        table: ConjunctionTable,
        statistics: Statistics | None,
        *,
        replace: bool,
        events_per_query: int | None = None,
        owns_connection: bool = True,
    ) -> Self:
        started = time.perf_counter()
        if events_per_query is not None and events_per_query < 1:
            raise InputError(f"events_per_query is at least 1, not {events_per_query}")
        sample = None
        if cls.form.keys:
            if statistics is not None and len(statistics.sample_keys):
                sample = sample_of_statistics(statistics)
            else:
                sample = sample_of_clauses(table)
        with tables.database.transaction(writes=True):
            tables.create(replace=replace)
            tables.insert(clause_rows(table, sample))
            tables.create_indexes()
        return cls(
            tables,
            sample=sample,
            build_seconds=time.perf_counter() - started,
            events_per_query=events_per_query,
            owns_connection=owns_connection,
        )

    @classmethod
    def _prefix(cls, given: str | None) -> str:
        return f"{cls.name}_" if given is None else given

    @classmethod
    def on_tables(cls, tables: Tables, table: ConjunctionTable) -> Self:
        """Fill these tables, made again if they are there; the connection outlives the index."""
        return cls._built(tables, table, None, replace=True, owns_connection=False)

    @classmethod
    def open(
        cls,
        *,
        database: str = "duckdb",
        path: str | None = None,
        dsn: str | None = None,
        prefix: str | None = None,
        events_per_query: int | None = None,
    ) -> Self:
        """Open the index that `build` left in a database."""
        opened = connect(database, path, dsn)
        try:
            tables = Tables(opened, cls.form, cls._prefix(prefix))
            tables.check_there()
            return cls(tables, events_per_query=events_per_query)
        except BaseException:
            opened.close()
            raise

    # -- matching ---------------------------------------------------------------------------------

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Match a batch of events."""
        pieces = list(self.stream(events))
        numbers = np.concatenate([event for event, _ in pieces] or [np.empty(0, np.int64)])
        ids = np.concatenate([clause_ids for _, clause_ids in pieces] or [np.empty(0, np.int64)])
        offsets = np.zeros(events.n_events + 1, np.int64)
        np.cumsum(np.bincount(numbers, minlength=events.n_events), out=offsets[1:])
        return ClauseMatches(offsets, ids[np.argsort(numbers, kind="stable")])

    def stream(self, events: EventBatch) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the matches as they come, in pieces: numbers of events, and ids of clauses.

        Until it is exhausted or closed, other threads wait.

        """
        with self._using() as tables:
            self._is_streaming = True
            try:
                step = self._events_at_a_time(tables)
                for start in range(0, events.n_events, step):
                    stop = min(start + step, events.n_events)
                    for event, ids in tables.match(event_pairs(events.slice(start, stop))):
                        is_count = event < 0
                        self._candidates += int(ids[is_count].sum())
                        yield event[~is_count] + start, ids[~is_count]
            finally:
                self._is_streaming = False

    def _events_at_a_time(self, tables: Tables) -> int:
        if self._events_per_query is not None:
            return self._events_per_query
        n_counted = 1 + int(self.form.share_counted * tables.n_rows)
        return max(1, min(_MOST_EVENTS, _ROWS_PER_QUERY // n_counted))

    # -- changes ----------------------------------------------------------------------------------

    def insert(self, table: ConjunctionTable) -> None:
        """In one transaction, after which the clauses are as safe as the database makes them."""
        with self._using() as tables, tables.database.transaction(writes=True):
            tables.hold_writers()
            n_known = tables.n_known(table.clause_ids)
            n_twice = table.n_clauses - len(np.unique(table.clause_ids))
            if n_known or n_twice:
                raise InputError(
                    f"{n_known} of these {table.n_clauses} clauses are in the index already, and"
                    f" {n_twice} are given twice; none was inserted"
                )
            if self.form.keys and self._sample is None:
                self._sample = sample_of_keys(*tables.keys())
            tables.insert(clause_rows(table, self._sample))

    def delete(self, clause_ids: np.ndarray) -> None:
        """In one transaction: all of them, or none if one is not there."""
        ids = np.unique(clause_ids)
        with self._using() as tables, tables.database.transaction(writes=True):
            tables.hold_writers()
            n_missing = len(ids) - tables.n_known(ids)
            if n_missing:
                raise InputError(
                    f"{n_missing} of these {len(ids)} clauses are not in the index;"
                    " none was deleted"
                )
            tables.delete()

    @contextmanager
    def _using(self) -> Iterator[Tables]:
        with self._lock:
            if self._is_streaming:  # so it is this thread's own
                raise InputError("a stream of matches is open: exhaust it or close() it first")
            if self._is_closed:
                raise InputError("this index is closed")
            yield self._tables

    def close(self) -> None:
        """Give the connection back. Tables that are not temporary, or in memory, stay."""
        with self._lock:
            self._is_closed = True
            self._tables.database.close()

    # -- files and figures ------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the content of the tables."""
        with self._using() as tables:
            return tables.arrays()

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        """In memory, in the same database; in DuckDB what was in a server."""
        database = bytes(arrays["database"]).decode()
        opened = connect("duckdb" if database == "postgresql" else database, None, None)
        tables = Tables(opened, cls.form, cls._prefix(None))
        with opened.transaction(writes=True):
            tables.create(replace=False)
            tables.load(arrays)
            tables.create_indexes()
        return cls(tables)

    def stats(self) -> IndexStats:
        """Return the figures of this index."""
        with self._using() as tables:
            return IndexStats(
                tables.n_clauses(), tables.n_bytes(), self._build_seconds, self._candidates
            )


class SqlSequential(SqlIndex):
    """Every predicate with every event (Two-stage, section 4.1)."""

    name: ClassVar[str] = "sql_sequential"
    form: ClassVar[Form] = SEQUENTIAL


class SqlGrouped(SqlIndex):
    """Equal predicates are evaluated once (Two-stage, section 4.2)."""

    name: ClassVar[str] = "sql_grouped"
    form: ClassVar[Form] = GROUPED


class SqlPivot(SqlIndex):
    """Subscriptions are found by their most selective predicate, and then checked."""

    name: ClassVar[str] = "sql_pivot"
    form: ClassVar[Form] = PIVOT
