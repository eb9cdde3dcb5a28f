"""Apply the changes of a log as bulk loads: only the last change of each id counts.

Texts were accepted once, under whatever limits there were, so no limit applies to them here.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from matchmill.engine.loading import Load
from matchmill.engine.state import Store
from matchmill.engine.subscription_table import Id
from matchmill.errors import ExpressionError, FolderError
from matchmill.io.progress import Report
from matchmill.language.normal_form import normalize
from matchmill.language.operator_calls import required_names
from matchmill.language.parser import parse
from matchmill.operators.registry import require_operators
from matchmill.settings import UNLIMITED
from matchmill.storage.change_log import Change

__all__ = ["replay"]

_ROWS_AT_ONCE = 200_000
_PROGRESS_EVERY = 2000


def replay(store: Store, changes: Iterable[Change], progress: Report | None = None) -> None:
    """Apply changes in order; `progress` gets how many rows were read."""
    latest: dict[Id, str | None] = {}
    n_read = 0
    for change in changes:
        if change.texts is None:
            latest.update(dict.fromkeys(change.ids))
        else:
            latest.update(zip(change.ids, change.texts, strict=True))
        n_read += change.n_rows
        if len(latest) >= _ROWS_AT_ONCE:
            _apply(store, latest, n_read, progress)
            latest = {}
    _apply(store, latest, n_read, progress)


def _apply(
    store: Store,
    latest: dict[Id, str | None],
    n_read: int,
    progress: Report | None,
) -> None:
    with store.lock:
        load = Load(store, replace=True)
        for n_done, (identifier, text) in enumerate(latest.items(), 1):
            if text is not None:
                try:
                    parsed = parse(text, UNLIMITED)
                except ExpressionError as error:
                    raise FolderError(
                        f"the log holds an expression of {identifier!r} that this matchmill cannot"
                        f" read: {error.summary}"
                    ) from error
                normal = normalize(parsed, store.settings.max_clauses, nested=True)
                if normal.has_calls:
                    require_operators("the log", required_names(parsed))
                load.add(identifier, text, normal)
            if progress is not None and n_done % _PROGRESS_EVERY == 0:
                progress(n_read - len(latest) + n_done, None)
        load.finish(None)
        subscriptions = store.state.subscriptions
        if latest and subscriptions.id_type is None:  # all are gone; what they were stays
            subscriptions.id_type = str if isinstance(next(reversed(latest)), str) else int
        gone = [key for key, text in latest.items() if text is None]
        rows = subscriptions.current_rows(gone)
        if (rows >= 0).any():
            store.remove(gone, np.unique(rows[rows >= 0]), None)
