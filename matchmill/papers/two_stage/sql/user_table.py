"""Subscriptions that live in a table of the user's own.

    the user's table    one id and one expression per row, among whatever else it has; only read
    helper tables       beside it: the clauses of its expressions, in one of the forms

The user's table is the truth and the helper tables follow from it: `from_table` and `refresh` read
all of it and make them again. The keys of values, the ids and inexact expressions are in memory.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np

from matchmill.encoding.clause_encoder import ClauseEncoder, Encoded
from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.event_encoder import encode_events
from matchmill.encoding.events.read import Events, read_events
from matchmill.errors import EventError, InputError, MatchmillError
from matchmill.language.evaluate import evaluate_flat
from matchmill.language.expression import Expression
from matchmill.language.json_pattern import parse_json_pattern
from matchmill.language.normal_form import normalize
from matchmill.language.parser import parse
from matchmill.papers.common.list_flags import ListFlags
from matchmill.papers.two_stage.sql.connect import wrapped
from matchmill.papers.two_stage.sql.database import Database, quoted
from matchmill.papers.two_stage.sql.index import SqlGrouped, SqlIndex, SqlPivot, SqlSequential
from matchmill.papers.two_stage.sql.tables import Tables
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = ["RejectedRow", "TableMatches", "TableSubscriptions", "from_table"]

_FORMS: dict[str, type[SqlIndex]] = {
    "sequential": SqlSequential,
    "grouped": SqlGrouped,
    "pivot": SqlPivot,
}


class RejectedRow(NamedTuple):
    """A row of the user's table that was not accepted, and why. Rows count from 0, as they came."""

    row: int
    id: object
    reason: str


class TableMatches(NamedTuple):
    """The ids that each event matches; `rejected` says of events that cannot be read why."""

    ids: list[set[Hashable]]
    rejected: dict[int, str]


def from_table(
    connection: Any,
    table: str | tuple[str, ...],
    id_column: str = "id",
    expression_column: str = "expression",
    *,
    form: str = "pivot",
    prefix: str | None = None,
    settings: Settings = DEFAULT_SETTINGS,
) -> TableSubscriptions:
    """Match with the subscriptions in a table, inside its database.

    `connection` is one of duckdb, sqlite3 or psycopg, and stays the caller's. `table` is a name, or
    a tuple of schema and name. Ids are of any type but unique; expressions are text or JSON
    patterns. Helper tables are made in the same schema, under `prefix` (the names of table
    and form); a bad row goes into `rejected`, with its reason.
    """
    if form not in _FORMS:
        raise InputError(f"unknown form {form!r}; there are: {', '.join(_FORMS)}")
    place = (table,) if isinstance(table, str) else tuple(table)
    database = wrapped(connection)
    try:
        columns = database.columns_of(quoted(*place))
        if columns is None:
            raise InputError(f"there is no table {'.'.join(place)}")
        for column in (id_column, expression_column):
            if column not in columns:
                raise InputError(
                    f"{'.'.join(place)} has no column {column!r}; it has: {', '.join(columns)}"
                )
        index_class = _FORMS[form]
        prefix = f"{place[-1]}_{form}_" if prefix is None else prefix
        tables = Tables(database, index_class.form, prefix, schema=place[:-1])
        names = f"{quoted(id_column)}, {quoted(expression_column)}"
        query = f"SELECT {names} FROM {quoted(*place)}"
        return TableSubscriptions(database, tables, index_class, query, settings)
    except BaseException:
        database.close()
        raise


class TableSubscriptions:
    """What `from_table` returns. Not for two threads at a time."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        index_class: type[SqlIndex],
        query: str,
        settings: Settings,
    ) -> None:
        self._database = database
        self._tables = tables
        self._index_class = index_class
        self._query = query
        self._settings = settings
        self.refresh()
        weakref.finalize(self, database.close)

    def refresh(self) -> None:
        """Read the table again. If that fails, all stays as it was."""
        content = _read(self._database, self._query, self._settings)
        self.index = self._index_class.on_tables(self._tables, content.flags.table)
        self.rejected = content.rejected
        self._content = content

    def __len__(self) -> int:
        """Return how many subscriptions there are."""
        return len(self._content.ids)

    def match(self, event: Mapping[str, Any]) -> set[Hashable]:
        """Return the ids of all subscriptions that one event satisfies."""
        matches = self.match_many([event])
        if matches.rejected:
            raise EventError(matches.rejected[0])
        return matches.ids[0]

    def match_many(self, events: Any) -> TableMatches:
        """Match many events: dicts, an Arrow table, a frame, JSON lines."""
        content = self._content
        dimensions = content.encoded.dimensions
        source = read_events(events, self._settings)
        columns = source.columns(dimensions.plans.__contains__)
        matches = self.index.match_batch(content.flags.events(encode_events(dimensions, columns)))
        owners = content.owners[matches.clause_ids]
        found: list[set[Hashable]] = []
        for e in range(matches.n_events):
            rows = np.unique(owners[matches.offsets[e] : matches.offsets[e + 1]])
            is_bad = e in columns.rejected
            found.append(set() if is_bad else content.confirmed(source, e, rows.tolist()))
        return TableMatches(found, columns.rejected)

    def close(self) -> None:
        """Leave the connection to its owner; the helper tables stay."""
        self.index.close()


class _Content(NamedTuple):
    encoded: Encoded
    flags: ListFlags
    owners: np.ndarray  # the row of each clause, among those that were accepted
    ids: list[Hashable]
    inexact: dict[int, Expression]  # rows whose clauses accept more than they should
    rejected: list[RejectedRow]

    def confirmed(self, source: Events, event: int, rows: list[int]) -> set[Hashable]:
        doubtful = [row for row in rows if row in self.inexact]
        if doubtful:
            flat = source.event(event)
            wrong = {r for r in doubtful if evaluate_flat(self.inexact[r], flat) is not True}
            rows = [row for row in rows if row not in wrong]
        return {self.ids[row] for row in rows}


def _read(database: Database, query: str, settings: Settings) -> _Content:
    encoder = ClauseEncoder(Dimensions())
    ids: dict[Hashable, None] = {}
    n_clauses: list[int] = []
    inexact: dict[int, Expression] = {}
    rejected: list[RejectedRow] = []
    with database.transaction(writes=False):
        for number, (identifier, source) in enumerate(database.rows(query)):
            try:
                _check_id(identifier, ids)
                expression = _expression(source, settings)
                normal = normalize(expression, settings.max_clauses)
            except MatchmillError as error:
                reason = error.summary
                rejected.append(RejectedRow(number, identifier, reason))
                continue
            encoder.add(normal.clauses)
            if not normal.exact:
                inexact[len(ids)] = expression
            ids[identifier] = None
            n_clauses.append(len(normal.clauses))
    owners = np.repeat(np.arange(len(ids)), np.array(n_clauses, np.int64))
    encoded = encoder.finish(np.arange(len(owners)))
    flags = ListFlags.of(encoded.table, len(encoded.dimensions))
    return _Content(encoded, flags, owners, list(ids), inexact, rejected)


def _check_id(identifier: object, known: Mapping[Hashable, None]) -> None:
    if identifier is None:
        raise InputError("there is no id")
    if not isinstance(identifier, Hashable):
        raise InputError(f"an id is a single value, not a {type(identifier).__name__}")
    if identifier in known:
        raise InputError(f"the id {identifier!r} occurs twice")


def _expression(source: object, settings: Settings) -> Expression:
    if isinstance(source, str) and source.lstrip()[:1] != "{":
        return parse(source, settings)
    if isinstance(source, str | Mapping):
        return parse_json_pattern(source, settings)
    kind = "nothing" if source is None else f"of type {type(source).__name__}"
    raise InputError(f"an expression is text or a JSON pattern; this one is {kind}")
