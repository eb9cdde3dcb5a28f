"""What an engine knows, and the one place where that changes.

    state     dimensions, snapshot of the segments, subscriptions: a writer replaces it as a whole,
              a reader takes it as a whole, never waits, and never sees half of a change
    writers   one at a time, under `lock`; a change that fails has changed nothing that is visible
    gone      while a compaction copies rows: those that were removed since it began, else None

A change is prepared beside the state, then written to the log if there is one, then made visible by
one assignment. That is the rule for whatever may end a call, an error or an interrupt: before the
assignment nothing has changed, and after it nothing can be raised any more.

Only the main thread can be interrupted. It has its changes prepared, logged and synced by another
thread (`kernels/uninterrupted.py`), and makes the assignment itself, as the last step of the call.
In the meantime the change is *pending*. Whoever takes the lock next, for whatever, waits for the
assignment, or, if the call has ended without it, takes the change back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NamedTuple, Protocol

import numpy as np

from matchmill.encoding.clause_encoder import Encoded
from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.flat_dictionary import FlatDictionary
from matchmill.encoding.texts import Texts, texts_to_strings
from matchmill.engine.subscription_table import Id, RowsChange, Subscriptions
from matchmill.errors import InputError, ReadOnlyError
from matchmill.index.base import Index
from matchmill.index.event_sample import EventSample, drift
from matchmill.index.in_place import InPlaceSegments
from matchmill.index.registry import changes_in_place, check_index_options
from matchmill.index.segments import Segmented, Snapshot
from matchmill.kernels.forks import renewed_after_fork
from matchmill.kernels.uninterrupted import is_interruptible
from matchmill.language.attribute_types import AttributeTypes
from matchmill.settings import Settings
from matchmill.storage.change_log import Change as LoggedChange

__all__ = ["Change", "Log", "NewRows", "State", "Store", "checked_options", "new_segments"]

_A_MOMENT = 0.0001  # seconds


class State(NamedTuple):
    """What an engine knows at one moment."""

    dimensions: Dimensions
    snapshot: Snapshot
    subscriptions: Subscriptions


class NewRows(NamedTuple):
    """Subscriptions that are ready to go in: distinct ids, their texts and clauses."""

    identifiers: Sequence[Id]
    texts: Texts
    n_clauses: np.ndarray  # of each
    is_exact: np.ndarray
    encoded: Encoded  # all clauses
    may_replace: bool


class Log(Protocol):
    """Where changes are written."""

    def append(self, change: LoggedChange) -> None:
        """Write a change."""
        ...

    def take_back(self) -> None:
        """Undo the last append, because the change failed."""
        ...


class Change:
    """A call that changes the store: what it has made ready, and whether it was given up."""

    __slots__ = ("is_given_up", "is_made", "prepared")

    def __init__(self) -> None:
        self.prepared: Prepared | None = None
        self.is_made = self.is_given_up = False  # one of them, at the end


class Prepared(NamedTuple):
    """A change of the state: all that is left is to make it visible, or to take it back."""

    state: State
    row_of_number: np.ndarray  # where `rows` go, at `numbers`
    numbers: np.ndarray
    rows: np.ndarray
    old_ids: FlatDictionary
    old_snapshot: Snapshot
    log: Log | None  # that has a record of it


class _WritersLock:
    """Held around every change. Who enters waits until the change before is decided."""

    def __init__(self, settle: Callable[[], None]) -> None:
        self._lock = threading.RLock()
        self._settle = settle

    def __enter__(self) -> None:
        self._lock.acquire()
        try:
            self._settle()
        except BaseException:
            self._lock.release()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.release()

    def renew(self) -> bool:
        """In a forked child: free it. Tells whether another thread of the parent held it."""
        is_free = self._lock.acquire(blocking=False)
        if is_free:
            self._lock.release()
        else:
            self._lock = threading.RLock()
        return not is_free

    def is_held(self) -> bool:
        """Tell whether the calling thread holds it."""
        return self._lock._is_owned()  # type: ignore[attr-defined, no-any-return]


class Store:
    """The current state and its writers."""

    def __init__(
        self,
        index_class: type[Index],
        settings: Settings,
        index_options: Mapping[str, object] | None = None,
        types: AttributeTypes | None = None,
    ) -> None:
        self.types = dict(types or {})  # declared types of attributes
        self.lock = _WritersLock(self._settle)
        self.settings = settings
        self.index_options = dict(index_options or {})
        self.segmented = new_segments(index_class, settings, self.index_options)
        self.state = State(Dimensions(), self.segmented.snapshot, Subscriptions())
        self.sample = EventSample()  # of the events that were matched
        self.gone: list[np.ndarray] | None = None
        self._changing_thread = 0
        self._change: Change | None = None  # the last one of the main thread
        self._pending: Change | None = None  # the same, while others have to wait for it
        self._is_half_changed = False
        renewed_after_fork(self)

    def after_fork(self) -> None:
        """In a forked child: no other thread of the parent will finish what it had begun."""
        is_pending = self._pending is not None and not self._pending.is_made
        if self.lock.renew() or is_pending:
            self._is_half_changed = True
        self._change = self._pending = None
        self.segmented.after_fork()
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
        change = Change()
        change.prepared, n_replaced = self.prepare_addition(rows, log)
        self.make_visible(change)
        return n_replaced

    def remove(self, identifiers: Sequence[Id], rows: np.ndarray, log: Log | None) -> None:
        """Remove subscriptions; `rows` are their current ones, ascending."""
        change = Change()
        change.prepared = self.prepare_removal(identifiers, rows, log)
        self.make_visible(change)

    def prepare_addition(self, rows: NewRows, log: Log | None) -> tuple[Prepared, int]:
        """Make the state with some more subscriptions; also how many will replace another one."""
        subscriptions, segmented = self.state.subscriptions, self.segmented
        replaced = dead = np.empty(0, np.int64)
        if rows.may_replace:
            replaced = subscriptions.current_rows(rows.identifiers)
            replaced = replaced[replaced >= 0]
            dead = subscriptions.clauses_of(replaced)
        before = segmented.snapshot
        try:
            if rows.encoded.relabellings:
                self.sample.clear()  # it has old keys
                segmented.statistics = None
                segmented.relabel(rows.encoded.relabellings)
            segmented.apply(rows.encoded.table, dead)
            change = subscriptions.added(
                rows.identifiers, rows.texts, rows.n_clauses, rows.is_exact
            )
            prepared = self._prepared(change, before, rows.encoded.dimensions)
            try:
                if log is not None:
                    texts = texts_to_strings(rows.texts)
                    log.append(LoggedChange(rows.identifiers, texts))
                    prepared = prepared._replace(log=log)
            except BaseException:
                subscriptions.ids.without_new(change.subscriptions.ids)
                raise
        except BaseException:
            segmented.restore(before)
            raise
        self._note_gone(replaced)
        return prepared, len(replaced)

    def prepare_removal(
        self, identifiers: Sequence[Id], rows: np.ndarray, log: Log | None
    ) -> Prepared:
        """Make the state without some subscriptions; `rows` are their current ones, ascending."""
        subscriptions, segmented = self.state.subscriptions, self.segmented
        before = segmented.snapshot
        try:
            segmented.apply(None, subscriptions.clauses_of(rows))
            prepared = self._prepared(subscriptions.removed(rows), before, self.state.dimensions)
            if log is not None:  # the last step
                log.append(LoggedChange(identifiers, None))
                prepared = prepared._replace(log=log)
        except BaseException:
            segmented.restore(before)
            raise
        self._note_gone(rows)
        return prepared

    def _prepared(self, change: RowsChange, before: Snapshot, dimensions: Dimensions) -> Prepared:
        subscriptions, numbers, rows = change
        state = self.state._replace(
            dimensions=dimensions,
            snapshot=self.segmented.snapshot,
            subscriptions=subscriptions,
        )
        places = subscriptions.row_of_number.data
        old_ids = self.state.subscriptions.ids
        return Prepared(state, places, numbers, rows, old_ids, before, None)

    def make_visible(self, change: Change) -> None:
        """Make a change that is ready, in one step: no signal handler runs inside of it or after.

        Handlers run at the start of a function, at the end of a loop's round, and after a call of a
        built-in function. From here to the end of the call that makes the change is none of these.
        """
        p = change.prepared
        if p is None:
            change.is_made = True
        else:
            p.row_of_number[p.numbers], self.state, change.is_made = p.rows, p.state, True

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
        """Raise if what a change calls tries to change the engine itself.

        That is the rows that a bulk load reads, or a signal handler.
        """
        is_inside = self._changing_thread == threading.get_ident()
        change = self._change
        if change is not None and is_interruptible():
            is_inside = is_inside or not (change.is_made or change.is_given_up)
        if is_inside:
            raise InputError(
                "an engine cannot be changed from inside the rows that it is given,"
                " nor by a signal handler that interrupts a change"
            )

    # the changes of the main thread

    def begin(self, change: Change) -> None:
        """Note that the main thread begins a change."""
        self._change = change

    def wait_for(self, change: Change) -> None:
        """Have whoever takes the lock next wait until a change is decided; under the lock."""
        self._pending = change

    def settle(self) -> None:
        """Take back what is left of a change that was given up."""
        with self.lock:
            pass

    def _settle(self) -> None:
        change = self._pending
        if change is None:
            return
        while not change.is_made:
            if change.is_given_up:
                self._pending = None
                self._take_back(change.prepared)
                return
            time.sleep(_A_MOMENT)
        self._pending = None

    def _take_back(self, change: Prepared | None) -> None:
        if change is None:
            return
        self.segmented.restore(change.old_snapshot)
        change.old_ids.without_new(change.state.subscriptions.ids)
        if self.gone is not None:
            self.gone.pop()
        if change.log is not None:
            change.log.take_back()


def new_segments(
    index_class: type[Index], settings: Settings, options: Mapping[str, object]
) -> Segmented:
    """Return segments without clauses: of the kind that fits how an index changes."""
    kind = InPlaceSegments if changes_in_place(index_class) else Segmented
    return kind(
        index_class,
        fresh_clauses=settings.fresh_clauses,
        merge_factor=settings.merge_factor,
        options=options,
    )


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
