"""New subscriptions: read one by one or in bulk, applied all in one step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import compress
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from matchmill.encoding.clause_encoder import AddedCuts, ClauseEncoder, Encoded
from matchmill.encoding.conjunction_table import concatenate, take_clauses
from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.texts import Texts, joined_texts, strings_to_texts, texts_to_strings
from matchmill.engine.bulk_rows import BY_PARSER, BulkRows, Piece
from matchmill.engine.condition_cache import Conjunctions, Known, conditions_of
from matchmill.engine.expression_input import normal_form, read_typed
from matchmill.engine.state import Log, NewRows, Prepared, Store
from matchmill.engine.subscription_table import (
    EXACT,
    EXACT_WITHOUT_LISTS,
    NESTED,
    Id,
    check_id,
    unknown_id,
)
from matchmill.errors import DuplicateIdError, InputError, MatchmillError, shown
from matchmill.io.progress import Progress, Report
from matchmill.io.reports import Finding, Rejected, SubscribeReport
from matchmill.io.subscription_chunks import RowChunk, RowReader, is_unicode
from matchmill.io.subscription_files import SubscriptionRow
from matchmill.io.subscription_sources import SubscriptionSource
from matchmill.kernels.uninterrupted import Ask
from matchmill.language.coercion import converts
from matchmill.language.comments import may_have_comments
from matchmill.language.dialects.registry import MATCHMILL, check_dialect
from matchmill.language.expression import Compare, Expression
from matchmill.language.normal_form import NormalForm, disjunctions_of
from matchmill.language.parser import is_pattern_text
from matchmill.language.values import INT64_MAX, INT64_MIN

__all__ = ["Load", "asked_progress", "asked_rows", "chunks_of", "load_rows", "load_sources"]

_PROGRESS_EVERY = 2000
_MANY, _MUCH = 8000, 1 << 20  # rows and characters from which on kernels are worth compiling
_ROWS_AT_ONCE = 1 << 14

Reject: TypeAlias = Callable[[int, SubscriptionRow, MatchmillError], None]
"""Called with the number of a row in its chunk, the row, and why it is rejected."""

Called: TypeAlias = Callable[[Expression], None]

_WARNINGS = {"never": "no event can satisfy it", "always": "every event satisfies it"}


class _Part(NamedTuple):
    """Rows that were accepted, in order."""

    texts: Texts
    n_clauses: np.ndarray  # of each
    is_exact: np.ndarray
    way: np.ndarray  # who has its clauses (`bulk_rows.py`)


class _Reading(NamedTuple):
    """What an expression is, before anything of it is stored."""

    text: str
    conditions: list[Known] | None  # of a conjunction whose conditions are known, else
    normal: NormalForm | None
    parsed: Expression | None
    disjunctions: list[tuple[Compare, ...]] | None = None


class Load:
    """Gathers subscriptions and applies them all in one step; used under the store's lock.

    With `replace` an id may exist already; with `must_exist` it has to.
    """

    def __init__(
        self,
        store: Store,
        *,
        replace: bool,
        must_exist: bool = False,
        dialect: str = MATCHMILL,
    ) -> None:
        self._dialect = check_dialect(dialect)
        self._settings = store.settings
        self._conjunctions = Conjunctions(store.settings)
        self._store = store
        self._converts = converts(store.types)  # literals, which kernels read as they are written
        self._replace = replace
        self._must_exist = must_exist
        self._known = store.state.subscriptions
        self._known_dimensions = store.state.dimensions
        self._encoder = ClauseEncoder(store.state.dimensions)
        self._bulk: BulkRows | None = None
        self.ids: dict[Id, None] = {}
        self.warnings: list[Finding] = []
        self.n_replaced = 0
        self._parts: list[_Part] = []
        self._texts: list[str] = []  # of single rows since the last part
        self._n_clauses: list[int] = []
        self._exact: list[int] = []

    # one by one

    def read(self, identifier: Id, source: object) -> Expression | None:
        """Add a subscription; return its expression if that calls operators."""
        reading = self._read(source)
        self._check(identifier)
        self._take(identifier, reading.text, *self._encode(identifier, reading))
        return reading.parsed

    def add(self, identifier: Id, text: str, normal: NormalForm) -> None:
        """Add a subscription whose expression is read already."""
        self._check(identifier)
        self._take(identifier, text, *self._encode(identifier, _Reading(text, None, normal, None)))

    def _read(self, source: object) -> _Reading:
        is_ours = self._dialect == MATCHMILL and not self._converts
        if is_ours and isinstance(source, str) and not is_pattern_text(source):
            is_plain = not may_have_comments(source)
            found = self._conjunctions.read(source) if is_plain else None
            if found is not None:
                return _Reading(source.strip(), found, None, None)
        types = self._store.types
        parsed, text = read_typed(source, types, self._settings, self._dialect)
        disjunctions = disjunctions_of(parsed, self._settings.max_clauses)
        if disjunctions is not None:
            return _Reading(text, None, None, None, disjunctions)
        normal = normal_form(source, parsed, self._settings)
        return _Reading(text, None, normal, parsed if normal.has_calls else None)

    def _encode(self, identifier: Id, reading: _Reading) -> tuple[int, int]:
        """Encode an accepted expression; return how many clauses it has, and if it is exact."""
        if reading.conditions is not None:
            self._encoder.add_conditions(conditions_of(self._encoder, reading.conditions))
            return 1, EXACT
        if reading.disjunctions is not None:
            self._encoder.add_disjunctions(reading.disjunctions)
            return 1, NESTED
        normal = reading.normal
        assert normal is not None
        self._encoder.add(normal.clauses)
        if normal.kind in _WARNINGS:
            self.warnings.append(Finding(identifier, normal.kind, _WARNINGS[normal.kind]))
        return len(normal.clauses), _exactness(normal)

    def _check(self, identifier: Id) -> None:
        known = self._known
        if known.id_type is not None:
            known.check_id_type(identifier)
        elif self.ids and type(next(iter(self.ids))) is not type(identifier):
            raise InputError(
                f"ids are all strings or all integers; {shown(identifier)} differs from those"
                " before it"
            )
        if identifier in self.ids:
            raise DuplicateIdError(f"the id {shown(identifier)} occurs twice")
        if self._must_exist:
            if known.current_row(identifier) < 0:
                raise unknown_id(identifier)
        elif not self._replace and known.n_live and known.current_row(identifier) >= 0:
            raise DuplicateIdError(
                f"there is a subscription {shown(identifier)} already; replace=True replaces it"
            )

    @property
    def texts(self) -> list[str]:
        """The texts of the expressions, in the order of the ids."""
        self._end_part()
        return [text for part in self._parts for text in texts_to_strings(part.texts)]

    @property
    def dimensions(self) -> Dimensions:
        """The dimensions of these subscriptions, and of those before."""
        return self._known_dimensions

    def _take(self, identifier: Id, text: str, n_clauses: int, exact: int) -> None:
        self.ids[identifier] = None
        self._texts.append(text)
        self._n_clauses.append(n_clauses)
        self._exact.append(exact)

    # in bulk

    def read_rows(self, chunk: RowChunk, reject: Reject, called: Called | None = None) -> None:
        """Add many rows. `called` gets expressions that call operators.

        Plain conditions and patterns are read by kernels (`bulk_rows.py`). All other rows are read
        one by one, and so are all ids if one of them could be rejected.
        """
        if self._bulk is None:
            self._bulk = BulkRows(self._settings, self._dialect)
        columns = None if self._converts or not self._bulk.is_useful else chunk.columns()
        if columns is None:
            self.read_each(chunk, reject, called)
            return
        self._end_part()
        for piece in self._bulk.pieces(columns):
            self._parts.append(self._read_some(self._bulk, piece, chunk, reject, called))

    def read_each(self, chunk: RowChunk, reject: Reject, called: Called | None = None) -> None:
        """Add many rows one by one."""
        for i in range(chunk.n_rows):
            row = chunk.row(i)
            try:
                parsed = self.read(_checked_id(row), row.expression)
                if parsed is not None and called is not None:
                    called(parsed)
            except MatchmillError as error:
                reject(i, row, error)

    def _read_some(
        self,
        bulk: BulkRows,
        piece: Piece,
        chunk: RowChunk,
        reject: Reject,
        called: Called | None,
    ) -> _Part:
        """Add the rows of a piece of a chunk."""
        n_clauses, is_exact = piece.n_clauses, piece.is_exact
        is_plain = n_clauses > 0
        is_accepted = is_plain.copy()
        others: dict[int, str] = {}
        ids_are_good = self._ids_are_good(piece.ids)
        for i in np.flatnonzero(~is_plain).tolist() if ids_are_good else range(len(is_plain)):
            row = chunk.row(piece.start + i)
            try:
                identifier = _checked_id(row)
                reading = None if is_plain[i] else self._read(row.expression)
                if not ids_are_good:
                    self._check(identifier)
                if reading is not None:
                    n_clauses[i], is_exact[i] = self._encode(identifier, reading)
                    others[i] = reading.text
                    is_accepted[i] = True
                if not ids_are_good:
                    self.ids[identifier] = None
                if reading is not None and reading.parsed is not None and called is not None:
                    called(reading.parsed)
            except MatchmillError as error:
                is_accepted[i] = False
                reject(piece.start + i, row, error)
        if ids_are_good:
            self.ids.update(dict.fromkeys(compress(piece.ids, is_accepted.tolist())))
        bulk.gather(piece, is_accepted)
        texts = bulk.kept(piece, is_accepted, others)
        return _Part(texts, n_clauses[is_accepted], is_exact[is_accepted], piece.way[is_accepted])

    def _ids_are_good(self, ids: list[Any]) -> bool:
        """Whether no id could be rejected, whichever rows are accepted."""
        kinds = set(map(type, ids))
        wanted = self._known.id_type or (type(next(iter(self.ids))) if self.ids else None)
        if len(kinds) != 1 or not kinds <= {str, int} or wanted not in (None, *kinds):
            return False
        distinct = set(ids)
        if len(distinct) < len(ids) or "" in distinct or not distinct.isdisjoint(self.ids):
            return False
        if kinds == {int}:
            if min(distinct) < INT64_MIN or max(distinct) > INT64_MAX:
                return False
        elif not is_unicode("".join(ids)):
            return False
        if self._must_exist:
            return bool((self._known.current_rows(ids) >= 0).all())
        if self._replace or not self._known.n_live:
            return True
        return bool((self._known.current_rows(ids) < 0).all())

    # all of it

    def _end_part(self) -> None:
        """Make a part of the single rows since the last one."""
        if self._texts:
            n = len(self._texts)
            self._parts.append(
                _Part(
                    strings_to_texts(self._texts),
                    np.array(self._n_clauses, np.int64),
                    np.array(self._exact, np.uint8),
                    np.full(n, BY_PARSER, np.uint8),
                )
            )
            self._texts, self._n_clauses, self._exact = [], [], []

    def rows(self) -> NewRows:
        """Return what was gathered: at least one subscription."""
        self._end_part()
        if len(self._parts) > 1:
            texts, *columns = zip(*self._parts, strict=True)
            self._parts = [_Part(joined_texts(texts), *map(np.concatenate, columns))]
        part = self._parts[0]
        encoded = self._encoded(part.n_clauses, part.way)
        ids = list(self.ids)
        return NewRows(ids, part.texts, part.n_clauses, part.is_exact, encoded, self._replace)

    def _encoded(self, n_clauses: np.ndarray, way: np.ndarray) -> Encoded:
        first = self._known.row_of_clause.n
        if self._bulk is None or not way.any():
            return self._encoder.finish(np.arange(first, first + int(n_clauses.sum())))
        cuts = AddedCuts(self._store.state.dimensions)
        self._bulk.add_cuts(cuts)
        of_clause = np.repeat(way, n_clauses)
        by_parser = first + np.flatnonzero(of_clause == BY_PARSER)
        other = self._encoder.finish(by_parser, cuts)
        clause_ids = np.arange(first, first + len(of_clause))
        tables = self._bulk.tables(cuts, clause_ids, of_clause)
        table = concatenate([*tables, other.table] if other.table.n_clauses else tables)
        if table.n_clauses > tables[0].n_clauses:
            table = take_clauses(table, np.argsort(table.clause_ids, kind="stable"))
        return Encoded(cuts.dimensions, table, cuts.relabellings)

    def prepare(self, log: Log | None) -> Prepared | None:
        """Make a change of everything that was gathered; None if that is nothing."""
        if not self.ids:
            return None
        prepared, self.n_replaced = self._store.prepare_addition(self.rows(), log)
        return prepared

    def finish(self, log: Log | None) -> None:
        """Apply everything that was gathered."""
        if self.ids:
            self.n_replaced = self._store.add(self.rows(), log)


def _exactness(normal: NormalForm) -> int:
    if normal.exact:
        return NESTED if normal.is_nested else EXACT
    return EXACT_WITHOUT_LISTS if normal.is_exact_without_lists else 0


def _checked_id(row: SubscriptionRow) -> Id:
    if row.problem is not None:
        raise InputError(row.problem)
    return check_id(row.id)


# -- rows of sources ------------------------------------------------------------------------------


class _AskedRows:
    """A reader whose rows, which run code of the user, are read by whoever answers."""

    def __init__(self, reader: RowReader, ask: Ask) -> None:
        self._reader = reader
        self._ask = ask

    def take(self, n: int) -> RowChunk:
        chunk: RowChunk = self._ask(lambda: self._reader.take(n))
        return chunk


def asked_rows(
    sources: Iterable[SubscriptionSource], ask: Ask | None
) -> Iterable[SubscriptionSource]:
    """Have the rows of sources, which run code of the user, read by whoever answers."""
    for source in sources:
        if ask is not None:
            source.reader = _AskedRows(source.reader, ask)
        yield source


def asked_progress(progress: Progress, ask: Ask | None) -> Progress:
    """Have a function that is called with the progress called by whoever answers."""
    if ask is None or not callable(progress):
        return progress
    report = progress
    return lambda done, total: ask(lambda: report(done, total))


def load_sources(
    load: Load, sources: Iterable[SubscriptionSource], *, strict: bool, report: Report | None
) -> SubscribeReport:
    """Add the rows of several sources to a load; say what was rejected."""
    rejected: list[Rejected] = []
    ignored: dict[str, None] = {}
    n_before = 0
    for source in sources:
        n_before = load_rows(load, source, rejected, strict, report, n_before)
        ignored |= dict.fromkeys(source.ignored_columns)
    return SubscribeReport(len(load.ids), 0, rejected, load.warnings, list(ignored))


def load_rows(
    load: Load,
    source: SubscriptionSource,
    rejected: list[Rejected],
    strict: bool = False,
    report: Report | None = None,
    n_before: int = 0,
) -> int:
    """Add the rows of one source to a load; return how many rows were read so far."""
    total = None if source.n_rows is None else n_before + source.n_rows
    n_read = 0

    def reject(i: int, row: SubscriptionRow, error: MatchmillError) -> None:
        place = Rejected("subscription", n_read + i, row.line, source.name, row.id, error.summary)
        if strict:
            error.message = str(place._replace(reason=error.message))
            raise error
        rejected.append(place)

    for chunk, is_bulk in chunks_of(source.reader):
        if is_bulk:
            load.read_rows(chunk, reject)
        else:
            load.read_each(chunk, reject)
        n_read += chunk.n_rows
        if report is not None:
            report(n_before + n_read, total)
    if report is not None and n_read == 0:
        report(n_before, total)
    return n_before + n_read


def chunks_of(reader: RowReader) -> Iterator[tuple[RowChunk, bool]]:
    """Yield the rows of a reader, and whether they are so many that kernels are worth it."""
    first: list[RowChunk] = []
    n = n_characters = 0
    error: Exception | None = None
    while n < _MANY and n_characters < _MUCH:
        try:
            chunk = reader.take(_PROGRESS_EVERY)
        except Exception as raised:  # noqa: BLE001 - raised below, after the rows before it
            error = raised
            break
        if chunk.n_rows == 0:
            break
        first.append(chunk)
        n += chunk.n_rows
        n_characters += chunk.n_characters
    are_many = n >= _MANY or n_characters >= _MUCH
    yield from ((chunk, are_many) for chunk in first)
    if error is not None:
        raise error
    while are_many and (chunk := reader.take(_ROWS_AT_ONCE)).n_rows:
        yield chunk, True
