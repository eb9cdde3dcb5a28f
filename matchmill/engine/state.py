"""What an engine knows, and the one place where that changes.

    state     dimensions, snapshot of the segments, subscriptions: a writer replaces it as a whole,
              a reader takes it as a whole, never waits, and never sees half of a change
    writers   one at a time, under `lock`; a change that fails has changed nothing that is visible
    gone      while a compaction copies rows: those that were removed since it began, else None

A change is made in a new snapshot, then written to the log if there is one, then made visible.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import numpy as np

from matchmill.encoding.clause_encoder import Encoded
from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.texts import strings_to_texts
from matchmill.engine.subexpressions import Subexpressions
from matchmill.engine.subscription_table import Id, Subscriptions
from matchmill.errors import InputError, ReadOnlyError
from matchmill.forks import renewed_after_fork
from matchmill.index.base import Index
from matchmill.index.event_sample import EventSample, drift
from matchmill.index.registry import check_index_options
from matchmill.index.segments import Segmented, Snapshot
from matchmill.settings import Settings
from matchmill.storage.change_log import Change

__all__ = ["Log", "NewRows", "State", "Store", "checked_options"]


class State(NamedTuple):
    """What an engine knows at one moment."""

    dimensions: Dimensions
    snapshot: Snapshot
    subscriptions: Subscriptions
    subexpressions: Subexpressions  # the index of those of the dimensions


class NewRows(NamedTuple):
    """Subscriptions that are ready to go in: distinct ids, their texts and clauses."""

    identifiers: Sequence[Id]
    texts: Sequence[str]
    n_clauses: np.ndarray  # of each
    is_exact: np.ndarray
    encoded: Encoded  # all clauses
    may_replace: bool


class Log(Protocol):
    """Where changes are written."""

    def append(self, change: Change) -> None:
        """Write a change."""
        ...

    def take_back(self) -> None:
        """Undo the last append, because the change failed."""
        ...


class Store:
    """The current state and its writers."""

    def __init__(
        self,
        index_class: type[Index],
        settings: Settings,
        index_options: Mapping[str, object] | None = None,
    ) -> None:
        self.lock = threading.RLock()
        self.settings = settings
        self.index_options = dict(index_options or {})
        self.segmented = Segmented(
            index_class,
            fresh_clauses=settings.fresh_clauses,
            merge_factor=settings.merge_factor,
            options=self.index_options,
        )
        self.state = State(Dimensions(), self.segmented.snapshot, Subscriptions(), Subexpressions())
        self.sample = EventSample()  # of the events that were matched
        self.gone: list[np.ndarray] | None = None
        self._changing_thread = 0
        self._is_half_changed = False
        renewed_after_fork(self)

    def after_fork(self) -> None:
        """In a forked child: no other thread of the parent will finish what it had begun."""
        if not self.lock.acquire(blocking=False):  # another thread was changing the engine
            self._is_half_changed = True
            self.lock = threading.RLock()
        else:
            self.lock.release()
        self.segmented.restore(self.segmented.snapshot)  # gives up a merge that was under way
        self.gone = None

    def relearn(self) -> None:
        """Have the next builds use what is known of recent events."""
        learned = self.sample.statistics(len(self.state.dimensions))
        if learned is not None:
            self.segmented.statistics = learned

    def drift(self) -> float | None:
        """Return how far recent events are from those that the last builds knew: 0 … 1."""
        then = self.segmented.statistics
        now = self.sample.statistics(len(self.state.dimensions))
        return None if now is None or then is None else drift(now, then)

    def publish(self, **changes: Any) -> None:
        """Make the current segments, and these fields of the state, visible to readers."""
        self.state = self.state._replace(snapshot=self.segmented.snapshot, **changes)

    def add(self, rows: NewRows, log: Log | None) -> int:
        """Store subscriptions; return how many replaced one with the same id."""
        subscriptions, segmented = self.state.subscriptions, self.segmented
        replaced = dead = np.empty(0, np.int64)
        if rows.may_replace:
            replaced = subscriptions.current_rows(rows.identifiers)
            replaced = replaced[replaced >= 0]
            dead = subscriptions.clauses_of(replaced)
        texts = strings_to_texts(rows.texts)
        with self._all_or_nothing():
            if rows.encoded.relabellings:
                self.sample.clear()  # it has old keys
                segmented.statistics = None
                segmented.relabel(rows.encoded.relabellings)
            segmented.apply(rows.encoded.table, dead)
            with _logged(log, Change(rows.identifiers, rows.texts)):
                subscriptions.add(rows.identifiers, texts, rows.n_clauses, rows.is_exact)
        self._note_gone(replaced)
        self.publish(dimensions=rows.encoded.dimensions)
        return len(replaced)

    def remove(self, identifiers: Sequence[Id], rows: np.ndarray, log: Log | None) -> None:
        """Remove subscriptions; `rows` are their current ones, ascending."""
        subscriptions, segmented = self.state.subscriptions, self.segmented
        with self._all_or_nothing():
            segmented.apply(None, subscriptions.clauses_of(rows))
            with _logged(log, Change(identifiers, None)):
                subscriptions.remove(rows)
        self._note_gone(rows)
        self.publish()

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        before = self.segmented.snapshot
        try:
            yield
        except BaseException:
            self.segmented.restore(before)
            raise

    def _note_gone(self, rows: np.ndarray) -> None:
        if self.gone is not None:
            self.gone.append(rows)

    # one writer at a time

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold this around a change: other writers wait."""
        self.check_not_inside_a_change()
        if self._is_half_changed:
            raise ReadOnlyError(
                "this process was forked while another thread changed the engine: here it can only"
                " match; fork before that, or make or open another engine"
            )
        with self.lock:
            self._changing_thread = threading.get_ident()
            try:
                yield
            finally:
                self._changing_thread = 0

    def check_not_inside_a_change(self) -> None:
        """Raise if the rows that a bulk load reads try to change the engine themselves."""
        if self._changing_thread == threading.get_ident():
            raise InputError("an engine cannot be changed from inside the rows that it is given")


def checked_options(index: str, options: Mapping[str, object] | None) -> dict[str, object]:
    """Return the options of an index as a dictionary, checked."""
    if options is None:
        options = {}
    if not isinstance(options, Mapping):
        raise InputError(
            f"index_options is a mapping of names to values, not {type(options).__name__}"
        )
    check_index_options(index, options)
    return dict(options)


@contextmanager
def _logged(log: Log | None, change: Change) -> Iterator[None]:
    """Write a change to the log around its last step; take it out again if that fails."""
    if log is None:
        yield
        return
    log.append(change)
    try:
        yield
    except BaseException:
        log.take_back()
        raise
