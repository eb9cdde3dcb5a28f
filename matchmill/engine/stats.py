"""Figures of an engine: how much there is of everything, and how many bytes that takes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from matchmill.engine.durable_folder import DurableFolder
from matchmill.engine.state import Store
from matchmill.index.base import Combined, Index
from matchmill.io.reports import html_table
from matchmill.operators.matcher import OperatorMatcher
from matchmill.operators.stats import OperatorStats

__all__ = ["EngineStats", "SegmentStats", "engine_stats"]


@dataclass(frozen=True, slots=True)
class PartStats:
    """Figures of one structure of a segment, and why these clauses are there."""

    index: str
    n_clauses: int
    n_bytes: int
    expected_ns: dict[str, float]  # per event, in each structure that could have been chosen


@dataclass(frozen=True, slots=True)
class SegmentStats:
    """Figures of one segment: a part of the subscriptions with an index of its own."""

    index: str
    n_clauses: int  # removed ones included
    n_bytes: int
    build_seconds: float
    parts: list[PartStats] = field(
        default_factory=list
    )  # of an index that combines several structures


@dataclass(frozen=True, slots=True, repr=False)
class EngineStats:
    """Figures of an engine at one moment. `print(engine.stats())` shows them all.

    Parameters
    ----------
    n_subscriptions
        How many subscriptions are stored.
    n_clauses
        How many clauses they have in the index.
    n_attributes
        How many attributes the index reads from events.
    n_dimensions, n_cut_points
        The size of the dictionary that turns values into keys.
    n_inexact
        How many subscriptions the index only finds candidates for, because they call operators.
    n_deleted
        How many removed or replaced subscriptions still take memory; `compact` frees it.
    n_sampled_events
        How many events the sample of recent events holds.
    drift
        How far recent events are from those that the index was built for: 0 (alike) to 1; None
        if it was built without knowledge of events.
    index
        One entry per segment: which index, how many clauses and bytes, how long its build took.
    bytes
        Bytes of memory by purpose.
    log_bytes
        Bytes in the log of an engine that is open on a folder.
    background_error
        What went wrong in the background; the next write or `close` raises it.
    n_joins_given_up
        How often the operators of a subscription bound their variables to more values than the
        setting `max_join_steps` lets it try. The subscription did not match the event.
    operators
        What each operator did that was called.

    Examples
    --------
    >>> import matchmill as mm
    >>> stats = mm.Engine({"u1": "price < 20"}).stats()
    >>> stats.n_subscriptions
    1
    >>> stats.to_dict()["n_clauses"]
    1
    """

    n_subscriptions: int
    n_clauses: int
    n_attributes: int
    n_dimensions: int
    n_cut_points: int
    n_inexact: int
    n_deleted: int
    n_sampled_events: int
    drift: float | None
    index: list[SegmentStats]
    bytes: dict[str, int]
    log_bytes: int
    background_error: str | None
    n_joins_given_up: int
    operators: list[OperatorStats]

    @property
    def n_bytes(self) -> int:
        """How many bytes of memory the engine takes."""
        return sum(self.bytes.values())

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as JSON can hold them.

        Examples
        --------
        >>> import matchmill as mm
        >>> mm.Engine().stats().to_dict()["n_subscriptions"]
        0
        """
        figures = {one.name: getattr(self, one.name) for one in fields(self)}
        figures["index"] = [asdict(segment) for segment in self.index]
        figures["operators"] = [one._asdict() for one in self.operators]
        return {**figures, "n_bytes": self.n_bytes}

    def __repr__(self) -> str:
        return (
            f"<EngineStats: {self.n_subscriptions:,} subscriptions, {self.n_clauses:,} clauses,"
            f" {len(self.index)} segments, {self.n_bytes:,} bytes>"
        )

    def __str__(self) -> str:
        rows = self._rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)

    def _repr_html_(self) -> str:
        return html_table("Engine", ("figure", "value"), self._rows(), most=100)

    def _rows(self) -> list[tuple[str, str]]:
        rows = [
            (one.name, _shown(getattr(self, one.name)))
            for one in fields(self)
            if one.name not in ("index", "bytes", "operators")
        ]
        rows += [(f"bytes of {name}", f"{n_bytes:,}") for name, n_bytes in self.bytes.items()]
        rows += [
            (f"segment {n}", f"{one.index}: {one.n_clauses:,} clauses, {one.n_bytes:,} bytes")
            for n, one in enumerate(self.index)
        ]
        rows += [
            (f"segment {n}, {part.index}", f"{part.n_clauses:,} clauses{_reason(part.expected_ns)}")
            for n, one in enumerate(self.index)
            for part in one.parts
        ]
        rows += [(f"operator {one.name}", str(one)) for one in self.operators]
        return rows


def _reason(expected_ns: dict[str, float]) -> str:
    costs = ", ".join(f"{name} {ns / 1000:.1f}" for name, ns in expected_ns.items() if ns)
    return f"; expected µs per event: {costs}" if costs else ""


def _parts(built: Index) -> list[PartStats]:
    if not isinstance(built, Combined):
        return []
    return [
        PartStats(name, one.n_clauses, one.n_bytes, costs) for name, one, costs in built.parts()
    ]


def _shown(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3f}"
    return "–" if value is None else str(value)


def engine_stats(
    store: Store,
    folder: DurableFolder | None,
    error: BaseException | None,
    operators: OperatorMatcher,
) -> EngineStats:
    """Take the figures of an engine."""
    state = store.state
    subscriptions = state.subscriptions
    segments = state.snapshot.segments
    figures = [(segment.built, segment.built.stats()) for segment in segments]
    rows = subscriptions.row_of_number.array
    live_rows = rows[rows >= 0]
    return EngineStats(
        n_subscriptions=subscriptions.n_live,
        n_clauses=state.snapshot.n_clauses,
        n_attributes=len(state.dimensions.plans),
        n_dimensions=len(state.dimensions),
        n_cut_points=state.dimensions.n_cuts,
        n_inexact=int((subscriptions.is_exact.data[live_rows] == 0).sum()),
        n_deleted=subscriptions.n_rows - subscriptions.n_live,
        n_sampled_events=store.sample.n_sampled,
        drift=store.drift(),
        index=[
            SegmentStats(built.name, one.n_clauses, one.n_bytes, one.build_seconds, _parts(built))
            for built, one in figures
        ],
        bytes={
            "subscriptions": subscriptions.n_bytes,
            "dimensions": state.dimensions.n_bytes,
            "tables": sum(segment.table.n_bytes for segment in segments),
            "indexes": sum(one.n_bytes for _, one in figures),
        },
        log_bytes=folder.log_bytes if folder is not None else 0,
        background_error=None if error is None else repr(error),
        n_joins_given_up=operators.n_joins_given_up,
        operators=operators.stats(),
    )
