"""Match many events with one state of an engine, which no writer can change.

    events ─► columns ─► EventBatch ─► clause ids ─► rows, each once ─► confirmed ─► Matches

From the EventBatch to the rows there are only kernels, which release the interpreter lock. So this
step can use several threads: slices of the batch, put together in order, give the same result.

A subscription with operators is indexed by its other conditions, so the index finds candidates;
calling the operators confirms them (`operators/`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from matchmill.encoding.event_batch import EventBatch
from matchmill.encoding.event_encoder import encode_events
from matchmill.encoding.events.columns import EventColumns, Events
from matchmill.encoding.events.dicts import DictEvents
from matchmill.encoding.interval_encoder import encode_event_clauses
from matchmill.encoding.pattern_work import read_columns
from matchmill.encoding.single.by_row import encode_by_row, pays_by_row
from matchmill.engine.match_single import SingleEvents
from matchmill.engine.matches import Matches
from matchmill.engine.state import State
from matchmill.engine.subscription_table import (
    EXACT,
    EXACT_WITHOUT_LISTS,
    Id,
    Subscriptions,
)
from matchmill.errors import EventError, InputError, shown
from matchmill.index.event_sample import EventSample
from matchmill.io.event_files import EventChunk
from matchmill.io.event_ids import EventIds
from matchmill.io.event_sources import rejected_events
from matchmill.kernels.csr import distinct_owners, distinct_rows, offsets_of
from matchmill.kernels.threads import n_processors
from matchmill.language.dialects.event_fields import has_list
from matchmill.language.expression import Expression
from matchmill.language.expression_events import EventClause, can_match_clause, event_clauses
from matchmill.language.operator_calls import has_calls
from matchmill.language.values import Region
from matchmill.operators.matcher import OperatorMatcher
from matchmill.settings import Settings

__all__ = [
    "ChunkSize",
    "Matcher",
    "lists_in",
    "match_encoded",
    "match_expression",
    "n_threads_for",
]

HaveLists: TypeAlias = Callable[[], np.ndarray]

_SLICES_PER_THREAD = 4  # so that a slice with many matches does not keep the others waiting
_SMALLEST_SLICE = 64  # events; indexes take that many at a time
_EVENTS_PER_THREAD = 1024  # fewer are done before threads have started
_MOST_ROWS = 8192
_MOST_PAIRS = 4_000_000


class ChunkSize:
    """How many events to match at once, so that their matches fit into memory.

    At first as many as fit if every subscription matches, then as many as the matches so far
    suggest, but never more than `most`.
    """

    def __init__(self, n_subscriptions: int, most: int = _MOST_ROWS) -> None:
        self._most = most
        self._n_rows = self._limited(n_subscriptions)

    def __call__(self) -> int:
        """Return how many events to match next."""
        return self._n_rows

    def learn(self, n_events: int, n_pairs: int) -> None:
        """Take note of how many matches some events had."""
        self._n_rows = min(4 * self._n_rows, self._limited(n_pairs / n_events))

    def _limited(self, pairs_per_event: float) -> int:
        return int(min(self._most, max(1, _MOST_PAIRS / max(1, pairs_per_event))))


def n_threads_for(threads: int | None, n_events: int) -> int:
    """Return how many threads to use; None means as many as pay for so many events."""
    if threads is None:
        return max(1, min(n_processors(), n_events // _EVENTS_PER_THREAD))
    if type(threads) is not int or threads < 1:
        raise InputError(
            f"threads is a number of at least 1, or None for as many as pay, not {shown(threads)}"
        )
    return threads


class Matcher(NamedTuple):
    """One state of an engine, with all that matching needs."""

    state: State
    sample: EventSample
    operators: OperatorMatcher
    settings: Settings
    single_events: SingleEvents

    def match(
        self, chunk: EventChunk, first: int, event_ids: EventIds | None, threads: int | None
    ) -> Matches:
        """Find all subscriptions that each event satisfies; some events go into the sample.

        `first` is the position of the first event, for the result.
        """
        events, state = chunk.events, self.state
        n_threads = n_threads_for(threads, events.n_events)
        batch, rejected, have_lists = self._encoded(events)
        self.sample.add(batch)
        found = match_encoded(state, events, rejected, have_lists, batch, self.operators, n_threads)
        offsets, numbers, reasons, ids = found.offsets, found.numbers, rejected, None
        if event_ids is not None:
            ids, nameless = event_ids.read(events)
            if nameless:
                offsets, numbers = _without_events(offsets, numbers, list(nameless))
                reasons = {**nameless, **reasons}
        names = None if ids is None or not reasons else ids.to_pylist()
        return Matches(
            offsets,
            numbers,
            state.subscriptions,
            rejected=rejected_events(reasons, chunk, names),
            event_ids=ids,
            first=first,
        )

    def _encoded(self, events: Events) -> tuple[EventBatch, dict[int, str], HaveLists]:
        """Return the pairs of each event, why some are rejected, and what finds lists."""
        dimensions = self.state.dimensions
        if isinstance(events, DictEvents) and pays_by_row(dimensions.plans, events):
            encoder = self.single_events.encoder(dimensions)
            batch, rejected = encode_by_row(encoder, events, self._encoded_by_column)
            return batch, rejected, partial(_lists_in_records, events.items, rejected)
        columns = read_columns(dimensions, events, self.settings.max_pattern_work)
        return encode_events(dimensions, columns), columns.rejected, partial(lists_in, columns)

    def _encoded_by_column(self, events: Events) -> tuple[EventBatch, dict[int, str]]:
        dimensions = self.state.dimensions
        columns = read_columns(dimensions, events, self.settings.max_pattern_work)
        return encode_events(dimensions, columns), columns.rejected


def match_encoded(
    state: State,
    source: Events,
    rejected: dict[int, str],
    have_lists: HaveLists,
    batch: EventBatch,
    operators: OperatorMatcher,
    n_threads: int = 1,
) -> Matches:
    """Match events that are encoded already.

    Several states that share their dimensions can be matched with one batch. Events that
    are `rejected` have no matches; the result does not list them. Those that cannot be given to
    an operator are added to them. `have_lists` is only called if a subscription depends on it.
    """
    offsets, rows = _matched_rows(state, batch, n_threads)
    if rejected:
        offsets, rows = _without_events(offsets, rows, list(rejected))
    subscriptions = state.subscriptions
    offsets, rows = _confirmed(
        subscriptions, operators, source, rejected, have_lists, offsets, rows
    )
    numbers = subscriptions.number_of_row.data[rows]
    return Matches(offsets, numbers, subscriptions)


def match_expression(state: State, expression: Expression, settings: Settings) -> set[Id]:
    """Return all subscriptions that hold for some event which satisfies the expression."""
    clauses = event_clauses(expression, settings.max_clauses)
    matches = state.snapshot.match_intervals(encode_event_clauses(state.dimensions, clauses))
    subscriptions = state.subscriptions
    offsets, rows = distinct_rows(
        matches.offsets, subscriptions.row_of_clause.data[matches.clause_ids]
    )
    found: set[int] = set()
    for n, clause in enumerate(clauses):
        own = rows[offsets[n] : offsets[n + 1]]
        is_sure = (subscriptions.is_exact.data[own] == EXACT) & _has_values_only(state, clause)
        found.update(own[is_sure].tolist())
        for row in own[~is_sure].tolist():
            expression = subscriptions.expression_of_row(row)
            if has_calls(expression):
                (name,) = subscriptions.id_list(subscriptions.number_of_row.data[[row]])
                raise InputError(
                    f"the subscription {shown(name)} has operators, which are called for one "
                    "event, not for all that an expression allows; keep it in another engine"
                )
            if row not in found and can_match_clause(expression, clause):
                found.add(row)
    numbers = subscriptions.number_of_row.data[np.array(sorted(found), np.int64)]
    return set(subscriptions.ids_of_numbers(numbers).to_pylist())


def _has_values_only(state: State, clause: EventClause) -> bool:
    """Tell whether keys alone decide: no attribute has dimensions made from a text or a list."""
    plans = (state.dimensions.plans.get(attribute) for attribute in clause)
    return not any(plan is not None and plan.made() for plan in plans)


def _matched_rows(state: State, batch: EventBatch, n_threads: int) -> tuple[np.ndarray, np.ndarray]:
    n_slices = min(_SLICES_PER_THREAD * n_threads, batch.n_events // _SMALLEST_SLICE)
    if n_threads == 1 or n_slices < 2:
        return _rows_of_slice(state, batch)
    bounds = np.linspace(0, batch.n_events, n_slices + 1).astype(np.int64)
    bounds[1:-1] -= bounds[1:-1] % _SMALLEST_SLICE
    slices = [batch.slice(int(a), int(b)) for a, b in pairwise(bounds)]
    with ThreadPoolExecutor(n_threads) as pool:
        parts = list(pool.map(lambda part: _rows_of_slice(state, part), slices))
    counts = np.concatenate([np.diff(offsets) for offsets, _ in parts])
    return offsets_of(counts), np.concatenate([rows for _, rows in parts])


def _rows_of_slice(state: State, batch: EventBatch) -> tuple[np.ndarray, np.ndarray]:
    matches = state.snapshot.match_batch(batch)
    subscriptions = state.subscriptions
    return distinct_owners(
        matches.offsets,
        matches.clause_ids,
        subscriptions.row_of_clause.data,
        subscriptions.first_clause.data,
    )


def _without_events(
    offsets: np.ndarray, rows: np.ndarray, bad: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    counts = np.diff(offsets)
    good = np.ones(len(counts), bool)
    good[bad] = False
    return offsets_of(counts * good), rows[np.repeat(good, counts)]


def _confirmed(
    subscriptions: Subscriptions,
    operators: OperatorMatcher,
    source: Events,
    rejected: dict[int, str],
    have_lists: HaveLists,
    offsets: np.ndarray,
    rows: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Evaluate the expressions of inexact candidates, and call operators."""
    exactness = subscriptions.is_exact.data[rows]
    is_doubtful = exactness == 0
    if (exactness == EXACT_WITHOUT_LISTS).any():
        with_lists = np.repeat(have_lists(), np.diff(offsets))
        is_doubtful |= (exactness == EXACT_WITHOUT_LISTS) & with_lists
    doubtful = np.flatnonzero(is_doubtful)
    if len(doubtful) == 0:
        return offsets, rows
    events = np.searchsorted(offsets, doubtful, side="right") - 1
    groups = list(_groups(events, doubtful))
    unreadable: list[int] = []

    def candidates() -> Iterator[tuple[Mapping[str, Any], list[int]]]:
        for event, at in groups:
            try:
                yield source.event(event), rows[at].tolist()
            except EventError as error:
                rejected[event] = error.summary
                unreadable.append(event)
                yield {}, []

    accepted = operators.confirmed(subscriptions, candidates())
    kept = np.ones(len(rows), bool)
    for (_, at), good in zip(groups, accepted, strict=True):
        kept[at] = [row in good for row in rows[at].tolist()]
    for event in unreadable:
        kept[offsets[event] : offsets[event + 1]] = False
    return offsets_of(kept)[offsets], rows[kept]


def lists_in(columns: EventColumns) -> np.ndarray:
    """Return for each event whether one of its attributes is a list."""
    found = np.zeros(columns.n_events, bool)
    for column in columns.columns:
        if column.region == Region.LIST:
            found[column.rows] = True
    return found


def _lists_in_records(items: Sequence[Any], rejected: Container[int]) -> np.ndarray:
    found = (i not in rejected and has_list(item) for i, item in enumerate(items))
    return np.fromiter(found, bool, len(items))


def _groups(keys: np.ndarray, values: np.ndarray) -> Iterator[tuple[int, list[int]]]:
    """Return runs of equal keys with their values."""
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    for start, stop in zip(starts, [*starts[1:], len(keys)], strict=True):
        yield int(keys[start]), values[start:stop].tolist()
