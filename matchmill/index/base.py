"""The protocols of indexes: built from a ConjunctionTable, asked with an EventBatch.

An index knows integers only. It answers with the ids of the clauses that hold; the engine turns
them into subscriptions.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch

__all__ = [
    "ClauseMatches",
    "Combined",
    "Configurable",
    "DynamicIndex",
    "Index",
    "IndexStats",
    "OneSided",
    "SelfAdjusting",
    "Statistics",
    "Warmable",
]


class ClauseMatches(NamedTuple):
    """For each event the ids of the clauses that hold, each once, in no particular order."""

    offsets: np.ndarray  # int64, one more than there are events
    clause_ids: np.ndarray  # int64, or int32 where that is wide enough

    @property
    def n_events(self) -> int:
        """The number of events."""
        return len(self.offsets) - 1


class Statistics(NamedTuple):
    """What is known of coming events: how many of them have each dimension, and its keys.

    The keys of dimension d, a sample in ascending order, are
    sample_keys[sample_offsets[d] : sample_offsets[d + 1]]. Of a multi-valued dimension there are
    the keys of all events, each once per event.
    """

    n_events: int
    dimension_counts: np.ndarray  # int64
    sample_offsets: np.ndarray  # int64
    sample_keys: np.ndarray  # int64


class IndexStats(NamedTuple):
    """Figures of one index; `candidates` counts the clauses looked at since it was built."""

    n_clauses: int
    n_bytes: int
    build_seconds: float
    candidates: int

    def plus(self, other: IndexStats) -> IndexStats:
        """Return the figures of two indexes together."""
        return IndexStats(
            self.n_clauses + other.n_clauses,
            self.n_bytes + other.n_bytes,
            self.build_seconds + other.build_seconds,
            self.candidates + other.candidates,
        )


@runtime_checkable
class Index(Protocol):
    """Built once, then only read, by any number of threads.

    Tables have no quantifiers, unless the class says `takes_lists: ClassVar[bool] = True`:
    `mixed.build_index` builds any index of any table.
    """

    name: ClassVar[str]

    @classmethod
    def build(
        cls, table: ConjunctionTable, statistics: Statistics | None = None, **options: Any
    ) -> Self:
        """Build an index; `options` are those of `registry.index_options`."""
        ...

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Return the clauses that hold for each event."""
        ...

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all that `from_arrays` needs, to be saved and mapped."""
        ...

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        """Return an index that was saved."""
        ...

    def stats(self) -> IndexStats:
        """Return figures of the index."""
        ...


@runtime_checkable
class DynamicIndex(Index, Protocol):
    """An index that changes in place. Ids of deleted clauses may be inserted again.

    Nobody matches while it changes. Behind an engine it is changed in place if its class says
    `in_place: ClassVar[bool] = True`; otherwise it is used like one that is built once.
    """

    def insert(self, table: ConjunctionTable) -> None:
        """Add clauses. An InputError means that nothing has changed; any other error may not."""
        ...

    def delete(self, clause_ids: np.ndarray) -> None:
        """Remove clauses."""
        ...


@runtime_checkable
class SelfAdjusting(Protocol):
    """An index that changes in place by itself, for events like those that it has matched."""

    @property
    def adjusts(self) -> bool:
        """Whether it was built to do so."""
        ...

    def adjust(self) -> int:
        """Adjust; return how many parts have changed. Nobody matches meanwhile."""
        ...


@runtime_checkable
class OneSided(Protocol):
    """An index that treats ranges with one end (`<`, `>`) differently.

    Narrow codes do not show which these are, so `build` and `insert` take them as `one_sided`.
    """

    @classmethod
    def one_sided_of(cls, table: ConjunctionTable) -> np.ndarray:
        """Return for each predicate whether it is such a range, from keys."""
        ...


@runtime_checkable
class Configurable(Protocol):
    """An index with options that matter after it was built, and are not in its arrays."""

    def configure(self, **options: Any) -> None:
        """Set options of `build` again, after `from_arrays`."""
        ...


@runtime_checkable
class Warmable(Protocol):
    """An index that can compile its kernels in advance."""

    @classmethod
    def warm(cls) -> None:
        """Compile all kernels that building and matching need."""
        ...


@runtime_checkable
class Combined(Protocol):
    """An index of several structures, each with some of the clauses."""

    def parts(self) -> list[tuple[str, IndexStats, dict[str, float]]]:
        """Return the name and figures of each structure, and the costs that it was chosen by.

        Costs are expected nanoseconds per event in each structure that was considered.
        """
        ...
