"""New subscriptions: read one by one, applied all in one step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from matchmill.encoding.clause_encoder import ClauseEncoder
from matchmill.encoding.dimensions import Dimensions
from matchmill.engine.condition_cache import Conjunctions, conditions_of
from matchmill.engine.expression_input import normal_form, read_expression, text_of
from matchmill.engine.state import Log, NewRows, Prepared, Store
from matchmill.engine.subscription_table import (
    BY_SUBEXPRESSIONS,
    EXACT,
    EXACT_WITHOUT_LISTS,
    Id,
    check_id,
    unknown_id,
)
from matchmill.errors import DuplicateIdError, InputError, MatchmillError, shown
from matchmill.io.progress import Progress, Report
from matchmill.io.reports import Finding, Rejected, SubscribeReport
from matchmill.io.subscription_files import SubscriptionRow
from matchmill.io.subscription_sources import SubscriptionSource
from matchmill.kernels.uninterrupted import Ask
from matchmill.language.dialects.registry import MATCHMILL, check_dialect
from matchmill.language.expression import Expression
from matchmill.language.normal_form import NormalForm

__all__ = ["Load", "asked_progress", "asked_rows", "load_rows", "load_sources"]

_PROGRESS_EVERY = 2000
_ROWS_AT_ONCE = 256
_WARNINGS = {"never": "no event can satisfy it", "always": "every event satisfies it"}


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
        self._replace = replace
        self._must_exist = must_exist
        self._known = store.state.subscriptions
        self._known_dimensions = store.state.dimensions
        self._encoder = ClauseEncoder(store.state.dimensions)
        self.ids: dict[Id, None] = {}
        self.warnings: list[Finding] = []
        self.n_replaced = 0
        self._texts: list[str] = []
        self._n_clauses: list[int] = []
        self._exact: list[int] = []

    def read(self, identifier: Id, source: object) -> Expression | None:
        """Add a subscription; return its expression if that calls operators."""
        if isinstance(source, str) and self._dialect == MATCHMILL:
            found = self._conjunctions.read(source)
            if found is not None:
                self._check(identifier)
                self._encoder.add_conditions(conditions_of(self._encoder, found))
                self._take(identifier, source.strip(), 1, EXACT)
                return None
        parsed = read_expression(source, self._settings, self._dialect)
        normal = normal_form(source, parsed, self._settings)
        self.add(identifier, text_of(source, parsed), normal)
        return parsed if normal.has_calls else None

    def add(self, identifier: Id, text: str, normal: NormalForm) -> None:
        """Add a subscription whose expression is read already."""
        self._check(identifier)
        self._encoder.add(normal.clauses)
        self._take(identifier, text, len(normal.clauses), _exactness(normal))
        if normal.kind in _WARNINGS:
            self.warnings.append(Finding(identifier, normal.kind, _WARNINGS[normal.kind]))

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
        return self._texts

    @property
    def dimensions(self) -> Dimensions:
        """The dimensions of these subscriptions, and of those before."""
        return self._known_dimensions

    def _take(self, identifier: Id, text: str, n_clauses: int, exact: int) -> None:
        self.ids[identifier] = None
        self._texts.append(text)
        self._n_clauses.append(n_clauses)
        self._exact.append(exact)

    def rows(self) -> NewRows:
        """Return what was gathered: at least one subscription."""
        n_clauses = np.array(self._n_clauses, np.int64)
        first = self._known.row_of_clause.n
        encoded = self._encoder.finish(np.arange(first, first + int(n_clauses.sum())))
        is_exact = np.array(self._exact, np.uint8)
        ids = list(self.ids)
        return NewRows(ids, self._texts, n_clauses, is_exact, encoded, self._replace)

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
        return BY_SUBEXPRESSIONS if normal.has_parts else EXACT
    return EXACT_WITHOUT_LISTS if normal.is_exact_without_lists else 0


def asked_rows(
    sources: Iterable[SubscriptionSource], ask: Ask | None
) -> Iterable[SubscriptionSource]:
    """Have the rows of sources, which run code of the user, read by whoever answers."""
    for source in sources:
        if ask is not None:
            source.rows = _asked(source.rows, ask)
        yield source


def _asked(rows: Iterator[SubscriptionRow], ask: Ask) -> Iterator[SubscriptionRow]:
    def read() -> tuple[list[SubscriptionRow], Exception | None]:
        some: list[SubscriptionRow] = []
        try:
            some.extend(islice(rows, _ROWS_AT_ONCE))
        except Exception as error:  # noqa: BLE001 - raised below, after the rows before it
            return some, error
        return some, None

    while True:
        some, error = ask(read)
        yield from some
        if error is not None:
            raise error
        if not some:
            return


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
    n_row = -1
    for n_row, row in enumerate(source.rows):
        try:
            _read(load, row)
        except MatchmillError as error:
            place = Rejected("subscription", n_row, row.line, source.name, row.id, error.summary)
            if strict:
                error.message = str(place._replace(reason=error.message))
                raise
            rejected.append(place)
        if report is not None and (n_row + 1) % _PROGRESS_EVERY == 0:
            report(n_before + n_row + 1, total)
    if report is not None:
        report(n_before + n_row + 1, total)
    return n_before + n_row + 1


def _read(load: Load, row: SubscriptionRow) -> None:
    if row.problem is not None:
        raise InputError(row.problem)
    load.read(check_id(row.id), row.expression)
