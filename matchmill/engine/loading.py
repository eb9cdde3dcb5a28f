"""Subscriptions on their way in: read one by one, applied all in one step."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from matchmill.encoding.clause_encoder import ClauseEncoder
from matchmill.engine.condition_cache import Conjunctions, conditions_of
from matchmill.engine.expression_input import normal_form, read_expression, text_of
from matchmill.engine.state import Log, NewRows, Store
from matchmill.engine.subscription_table import BY_PARTS, EXACT, Identifier, check_id
from matchmill.errors import DuplicateIdError, InputError, MatchmillError
from matchmill.io.reports import Finding, Rejected, SubscribeReport
from matchmill.io.subscription_files import SubscriptionRow
from matchmill.language.expression import Expression
from matchmill.language.normal_form import NormalForm

__all__ = ["Load", "load_rows"]

_PROGRESS_EVERY = 2000
_WARNINGS = {"never": "no event can satisfy it", "always": "every event satisfies it"}


class Load:
    """Gathers subscriptions and applies them all in one step; used under the store's lock."""

    def __init__(self, store: Store, *, replace: bool) -> None:
        self._settings = store.settings
        self._conjunctions = Conjunctions(store.settings)
        self._store = store
        self._replace = replace
        self._known = store.state.subscriptions
        self._encoder = ClauseEncoder(store.state.dimensions)
        self.ids: dict[Identifier, None] = {}
        self.warnings: list[Finding] = []
        self.n_replaced = 0
        self._texts: list[str] = []
        self._n_clauses: list[int] = []
        self._exact: list[int] = []

    def read(self, identifier: Identifier, source: object) -> Expression | None:
        """Add a subscription; its expression, if that calls operators."""
        if isinstance(source, str):
            found = self._conjunctions.read(source)
            if found is not None:
                self._check(identifier)
                self._encoder.add_conditions(conditions_of(self._encoder, found))
                self._take(identifier, source.strip(), 1, EXACT)
                return None
        parsed = read_expression(source, self._settings)
        normal = normal_form(source, parsed, self._settings)
        self.add(identifier, text_of(source, parsed), normal)
        return parsed if normal.has_calls else None

    def add(self, identifier: Identifier, text: str, normal: NormalForm) -> None:
        self._check(identifier)
        self._encoder.add(normal.clauses)
        exact = (BY_PARTS if normal.has_parts else EXACT) if normal.exact else 0
        self._take(identifier, text, len(normal.clauses), exact)
        if normal.kind in _WARNINGS:
            self.warnings.append(Finding(identifier, normal.kind, _WARNINGS[normal.kind]))

    def _check(self, identifier: Identifier) -> None:
        known = self._known
        if known.id_type is not None:
            known.check_id_type(identifier)
        elif self.ids and type(next(iter(self.ids))) is not type(identifier):
            raise InputError(
                f"ids are all strings or all integers; {identifier!r} differs from those before it"
            )
        if identifier in self.ids:
            raise DuplicateIdError(f"the id {identifier!r} occurs twice")
        if not self._replace and known.n_live and known.current_row(identifier) >= 0:
            raise DuplicateIdError(
                f"there is a subscription {identifier!r} already; replace=True replaces it"
            )

    def _take(self, identifier: Identifier, text: str, n_clauses: int, exact: int) -> None:
        self.ids[identifier] = None
        self._texts.append(text)
        self._n_clauses.append(n_clauses)
        self._exact.append(exact)

    def rows(self) -> NewRows:
        """What was gathered; at least one subscription."""
        n_clauses = np.array(self._n_clauses, np.int64)
        first = self._known.row_of_clause.n
        encoded = self._encoder.finish(np.arange(first, first + int(n_clauses.sum())))
        is_exact = np.array(self._exact, np.uint8)
        ids = list(self.ids)
        return NewRows(ids, self._texts, n_clauses, is_exact, encoded, self._replace)

    def finish(self, log: Log | None) -> None:
        if self.ids:
            self.n_replaced = self._store.add(self.rows(), log)

    def report(self, rejected: list[Rejected]) -> SubscribeReport:
        """Say what was done."""
        return SubscribeReport(len(self.ids), self.n_replaced, rejected, self.warnings)


def load_rows(
    load: Load,
    rows: Iterable[SubscriptionRow],
    source: str | None,
    progress: Callable[[int], None] | None,
) -> list[Rejected]:
    """Add rows to a load; return those that were rejected, each with its reason."""
    rejected: list[Rejected] = []
    for n_row, row in enumerate(rows):
        try:
            if row.problem is not None:
                raise InputError(row.problem)
            load.read(check_id(row.id), row.expression)
        except MatchmillError as error:
            rejected.append(
                Rejected("subscription", n_row, row.line, source, row.id, error.summary)
            )
        if progress is not None and (n_row + 1) % _PROGRESS_EVERY == 0:
            progress(n_row + 1)
    return rejected
