"""Figures of an engine: how much there is of everything, and how many bytes that takes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from matchmill.engine.durable_folder import DurableFolder
from matchmill.engine.insights import Insights, find_insights
from matchmill.engine.state import State, Store
from matchmill.index.base import IndexStats
from matchmill.index.event_sample import EventSample
from matchmill.operators.stats import OperatorStats

__all__ = ["EngineStats", "engine_stats"]


class EngineStats(NamedTuple):
    n_subscriptions: int
    n_clauses: int
    n_dimensions: int
    n_cut_points: int
    n_inexact: int
    n_dead_rows: int  # removed or replaced, and not yet forgotten
    index_name: str
    segments: list[IndexStats]
    bytes_dimensions: int
    bytes_tables: int
    bytes_indexes: int
    bytes_subscriptions: int
    log_bytes: int  # of an engine that is open on a folder
    background_error: str | None  # what the next write or close will raise
    n_sampled_events: int
    operators: list[OperatorStats]  # those that were asked: calls, errors, time
    drift: float | None  # of the events since the index was built for them: 0 alike … 1
    find: Callable[[int], Insights]

    def insights(self, top: int = 10) -> Insights:
        """The costly and the useless subscriptions by name, at most `top` of each kind. That looks
        at all of them, as they were when the figures were taken."""
        return self.find(top)

    @property
    def n_bytes(self) -> int:
        return (
            self.bytes_dimensions
            + self.bytes_tables
            + self.bytes_indexes
            + self.bytes_subscriptions
        )


def engine_stats(
    store: Store,
    folder: DurableFolder | None,
    error: BaseException | None,
    operators: list[OperatorStats],
) -> EngineStats:
    state = store.state
    subscriptions = state.subscriptions
    figures = [segment.built.stats() for segment in state.snapshot.segments]
    rows = subscriptions.row_of_number.array
    live_rows = rows[rows >= 0]
    return EngineStats(
        n_subscriptions=subscriptions.n_live,
        n_clauses=state.snapshot.n_clauses,
        n_dimensions=len(state.dimensions),
        n_cut_points=state.dimensions.n_cuts,
        n_inexact=int((subscriptions.is_exact.data[live_rows] == 0).sum()),
        n_dead_rows=subscriptions.n_rows - subscriptions.n_live,
        index_name=store.segmented.index_class.name,
        segments=figures,
        bytes_dimensions=state.dimensions.n_bytes,
        bytes_tables=sum(segment.table.n_bytes for segment in state.snapshot.segments),
        bytes_indexes=sum(f.n_bytes for f in figures),
        bytes_subscriptions=subscriptions.n_bytes,
        log_bytes=folder.log_bytes if folder is not None else 0,
        background_error=None if error is None else repr(error),
        n_sampled_events=store.sample.n_sampled,
        operators=operators,
        drift=store.drift(),
        find=partial(_insights, state, store.sample),
    )


def _insights(state: State, sample: EventSample, top: int) -> Insights:
    parts = [(segment.built, segment.table) for segment in state.snapshot.segments]
    events = sample.batch() if sample.n_sampled else None
    return find_insights(parts, state.subscriptions, events, top)
