"""Events in, matches out: from one state of the store, which no writer can change.

    events ─► columns ─► EventBatch ─► clause ids ─► rows, each once ─► confirmed ─► Matches

Between the EventBatch and the rows there are kernels only, which release the interpreter lock, so
that part can be divided among threads: slices of the batch in order give the same as the whole.

A subscription with operators is indexed by its plain predicates, a superset of what it asks for;
its candidates are confirmed by asking them (`operators/`).
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from matchmill.encoding.event_batch import EventBatch
from matchmill.encoding.events.columns import EventColumns
from matchmill.encoding.events.read import Events, read_events
from matchmill.encoding.interval_encoder import encode_event_clauses
from matchmill.engine.matches import Matches
from matchmill.engine.state import State
from matchmill.engine.subexpressions import encode_with_parts, is_asked_for
from matchmill.engine.subscription_table import EXACT, Identifier, Subscriptions
from matchmill.errors import InputError
from matchmill.index.event_sample import EventSample
from matchmill.kernels.csr import distinct_rows, offsets_of
from matchmill.kernels.threads import n_processors
from matchmill.language.expression import Expression
from matchmill.language.expression_events import EventClause, can_match_clause, event_clauses
from matchmill.language.operator_calls import has_calls
from matchmill.operators.matcher import OperatorMatcher
from matchmill.settings import Settings

__all__ = ["ChunkSize", "match_encoded", "match_events", "match_expression"]

_SLICES_PER_THREAD = 4  # so that a slice with many matches does not keep the others waiting
_SMALLEST_SLICE = 64  # events; indexes take that many at a time
_MOST_ROWS = 8192
_MOST_PAIRS = 4_000_000


class ChunkSize:
    """How many events to match at once: their matches are in memory together.

    At first as many as fit if every subscription matched, then as the matches so far suggest."""

    def __init__(self, n_subscriptions: int) -> None:
        self._n_rows = self._limited(n_subscriptions)

    def __call__(self) -> int:
        return self._n_rows

    def learn(self, n_events: int, n_pairs: int) -> None:
        self._n_rows = min(4 * self._n_rows, self._limited(n_pairs / n_events))

    def _limited(self, pairs_per_event: float) -> int:
        return int(min(_MOST_ROWS, max(1, _MOST_PAIRS / max(1, pairs_per_event))))


def match_events(
    state: State,
    events: Any,
    settings: Settings,
    threads: int | None,
    sample: EventSample,
    operators: OperatorMatcher,
) -> Matches:
    """All subscriptions that each event satisfies; some events go into the sample."""
    n_threads = _n_threads(threads)
    source = read_events(events, settings)
    columns = source.columns(is_asked_for(state.dimensions))
    batch = encode_with_parts(state.dimensions, columns)
    sample.add(batch)
    return match_encoded(state, source, columns, batch, operators, n_threads)


def match_encoded(
    state: State,
    source: Events,
    columns: EventColumns,
    batch: EventBatch,
    operators: OperatorMatcher,
    n_threads: int = 1,
) -> Matches:
    """The same for events that are encoded already: several states that share their dimensions can
    be asked with one batch."""
    offsets, rows = _matched_rows(state, batch, n_threads)
    if columns.rejected:
        bad = np.fromiter(columns.rejected, np.int64, len(columns.rejected))
        offsets, rows = _without_events(offsets, rows, bad)
    subscriptions = state.subscriptions
    offsets, rows = _confirmed(subscriptions, operators, source, offsets, rows)
    numbers = subscriptions.number_of_row.data[rows]
    return Matches(offsets, numbers, columns.rejected, subscriptions.ids_of_numbers)


def match_expression(state: State, expression: Expression, settings: Settings) -> set[Identifier]:
    """All subscriptions that some event which satisfies the expression satisfies."""
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
                    f"the subscription {name!r} has operators, which are asked about one event, "
                    "not about all that an expression allows; keep those in an engine of their own"
                )
            if row not in found and can_match_clause(expression, clause):
                found.add(row)
    numbers = subscriptions.number_of_row.data[np.array(sorted(found), np.int64)]
    return set(subscriptions.ids_of_numbers(numbers).to_pylist())


def _has_values_only(state: State, clause: EventClause) -> bool:
    """Whether no attribute of the event has dimensions that are made from a text or a list, so that
    keys alone decide."""
    plans = (state.dimensions.plans.get(attribute) for attribute in clause)
    return not any(plan is not None and (plan.transforms or plan.patterns) for plan in plans)


def _n_threads(threads: int | None) -> int:
    if threads is None or (type(threads) is int and threads == 0):
        return n_processors()
    if type(threads) is not int or threads < 0:
        raise InputError(f"threads is a number, or 0 or None for one a processor, not {threads!r}")
    return threads


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
    rows = state.subscriptions.row_of_clause.data[matches.clause_ids]
    return distinct_rows(matches.offsets, rows)


def _without_events(
    offsets: np.ndarray, rows: np.ndarray, bad: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    counts = np.diff(offsets)
    good = np.ones(len(counts), bool)
    good[bad] = False
    return offsets_of(counts * good), rows[np.repeat(good, counts)]


def _confirmed(
    subscriptions: Subscriptions,
    operators: OperatorMatcher,
    source: Events,
    offsets: np.ndarray,
    rows: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Evaluate the expressions of inexact candidates, and ask operators."""
    doubtful = np.flatnonzero(subscriptions.is_exact.data[rows] == 0)
    if len(doubtful) == 0:
        return offsets, rows
    events = np.searchsorted(offsets, doubtful, side="right") - 1
    groups = list(_groups(events, doubtful))
    candidates = ((source.event(event), rows[at].tolist()) for event, at in groups)
    accepted = operators.confirmed(subscriptions, candidates)
    kept = np.ones(len(rows), bool)
    for (_, at), good in zip(groups, accepted, strict=True):
        kept[at] = [row in good for row in rows[at].tolist()]
    return offsets_of(kept)[offsets], rows[kept]


def _groups(keys: np.ndarray, values: np.ndarray) -> Iterator[tuple[int, list[int]]]:
    """Runs of equal keys with their values."""
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    for start, stop in zip(starts, [*starts[1:], len(keys)], strict=True):
        yield int(keys[start]), values[start:stop].tolist()
