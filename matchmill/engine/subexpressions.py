"""Subexpressions that are matched on their own, before the expressions that contain them.

    (a = 1 or b = 2) and (c = 3 or d = 4) and …      alternatives multiply
      subexpression 0    subexpression 1             each is a flag of the event

An expression whose clauses would be far more than its conditions keeps some operands whole
(`language/normal_form.py`): its subexpressions. An event is first matched with all of them, each
like a subscription of its own in an index of its own. Those that hold become flags of the event,
and then expressions are conjunctions again, in any index. A subexpression may have subexpressions
itself; the index of subexpressions deals with those.

Equal subexpressions are stored once. The index is made, and grows, when events first meet new ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import NamedTuple, Protocol

import numpy as np

from matchmill.encoding.clause_encoder import ClauseEncoder
from matchmill.encoding.dimensions import TRUE_KEY, Dimensions
from matchmill.encoding.event_batch import EventBatch, from_pairs
from matchmill.encoding.event_encoder import encode_events
from matchmill.encoding.events.asked import Asked
from matchmill.encoding.events.columns import EventColumns, Events
from matchmill.encoding.pattern_work import reject_costly
from matchmill.index.registry import DEFAULT_INDEX, index_class
from matchmill.index.segments import Segmented, Snapshot
from matchmill.kernels.csr import distinct_rows
from matchmill.kernels.forks import renewed_after_fork
from matchmill.kernels.uninterrupted import uninterrupted
from matchmill.language.normal_form import part_clauses
from matchmill.language.parser import parse
from matchmill.settings import UNLIMITED, Settings

__all__ = [
    "EncodingState",
    "Subexpressions",
    "encode_with_subexpressions",
    "read_columns",
    "without_costly",
]


class HasSubexpressions(Protocol):
    """What events are encoded for: the `State` of an engine, for example."""

    @property
    def dimensions(self) -> Dimensions: ...

    @property
    def subexpressions(self) -> Subexpressions: ...


class EncodingState(NamedTuple):
    """Dimensions with their subexpressions, where there is no engine."""

    dimensions: Dimensions
    subexpressions: Subexpressions

    @classmethod
    def of(cls, dimensions: Dimensions) -> EncodingState:
        """Return a state for dimensions alone."""
        return cls(dimensions, Subexpressions())


class _IndexState(NamedTuple):
    """The index of subexpressions at one moment; it can be encoded for like any other state."""

    dimensions: Dimensions
    snapshot: Snapshot
    subexpressions: Subexpressions  # those inside of subexpressions
    owner_of_clause: np.ndarray  # int64: the number of the subexpression
    flags: np.ndarray  # int32: the dimension of each subexpression


class Subexpressions:
    """The index of all subexpressions that events have met; shared by all states of an engine.

    States of one engine have their subexpressions in the same order, so that a newer state only
    adds to what an older one has.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._segmented: Segmented | None = None
        self._state: _IndexState | None = None
        renewed_after_fork(self)

    def after_fork(self) -> None:
        """In a forked child: another thread of the parent may have been at work here."""
        self._lock = Lock()
        self._segmented = self._state = None  # made again when it is needed

    def index_for(self, dimensions: Dimensions) -> _IndexState:
        """Return an index of all subexpressions of these dimensions, at least."""
        state = self._state
        if state is not None and len(state.flags) >= len(dimensions.parts):
            return state
        return uninterrupted(self._extended, list(dimensions.parts))

    def _extended(self, known: Sequence[tuple[str, int]]) -> _IndexState:
        with self._lock:
            if self._state is None or len(self._state.flags) < len(known):
                self._extend(known)
            assert self._state is not None
            return self._state

    def _extend(self, subexpressions: Sequence[tuple[str, int]]) -> None:
        if self._segmented is None or self._state is None:
            self._segmented = Segmented(index_class(DEFAULT_INDEX), fresh_clauses=1024)
            self._state = _IndexState(
                Dimensions(),
                self._segmented.snapshot,
                Subexpressions(),
                np.empty(0, np.int64),
                np.empty(0, np.int32),
            )
        state, segmented = self._state, self._segmented
        n_known = len(state.flags)
        encoder = ClauseEncoder(state.dimensions)
        n_clauses = []
        for text, _ in subexpressions[n_known:]:
            clauses = part_clauses(parse(text, UNLIMITED))
            encoder.add(clauses)
            n_clauses.append(len(clauses))
        first, n_new = len(state.owner_of_clause), sum(n_clauses)
        encoded = encoder.finish(np.arange(first, first + n_new))
        if encoded.relabellings:
            segmented.relabel(encoded.relabellings)
        segmented.apply(encoded.table, np.empty(0, np.int64))
        segmented.settle()
        owners = np.repeat(np.arange(n_known, len(subexpressions)), n_clauses)
        self._state = _IndexState(
            encoded.dimensions,
            segmented.snapshot,
            state.subexpressions,
            np.concatenate((state.owner_of_clause, owners)),
            np.array([dimension_id for _, dimension_id in subexpressions], np.int32),
        )


def read_columns(state: HasSubexpressions, events: Events, settings: Settings) -> EventColumns:
    """Return the columns that some expression uses, without events that would take too long."""
    return without_costly(state, events.columns(_asked(state)), settings)


def without_costly(
    state: HasSubexpressions, events: EventColumns, settings: Settings
) -> EventColumns:
    """Return the events without those whose patterns would take too long."""
    return reject_costly(_all_dimensions(state), events, settings.max_pattern_work)


def _asked(state: HasSubexpressions) -> Asked:
    """Return what expressions and subexpressions ask for."""
    return Asked(*_all_dimensions(state))


def _all_dimensions(state: HasSubexpressions) -> Iterator[Dimensions]:
    yield state.dimensions
    if state.dimensions.parts:
        yield from _all_dimensions(state.subexpressions.index_for(state.dimensions))


def encode_with_subexpressions(state: HasSubexpressions, events: EventColumns) -> EventBatch:
    """Return the pairs of each event, with a flag for each subexpression that it satisfies."""
    batch = encode_events(state.dimensions, events)
    if not state.dimensions.parts:
        return batch
    index = state.subexpressions.index_for(state.dimensions)
    matches = index.snapshot.match_batch(encode_with_subexpressions(index, events))
    offsets, held = distinct_rows(matches.offsets, index.owner_of_clause[matches.clause_ids])
    rows = np.arange(batch.n_events)
    return from_pairs(
        batch.n_events,
        [np.repeat(rows, np.diff(batch.offsets)), np.repeat(rows, np.diff(offsets))],
        [batch.dimensions, index.flags[held]],
        [batch.keys, np.full(len(held), TRUE_KEY, np.int64)],
    )
