"""What every index is: built from a ConjunctionTable, asked with an EventBatch.

An index knows integers only. It answers with the ids of the clauses that hold; the engine turns
them into subscriptions.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch

__all__ = ["ClauseMatches", "DynamicIndex", "Index", "IndexStats", "Statistics"]


class ClauseMatches(NamedTuple):
    """For each event the ids of the clauses that hold, each once, in no particular order."""

    offsets: np.ndarray  # int64, one more than there are events
    clause_ids: np.ndarray  # int64, or int32 where that is wide enough

    @property
    def n_events(self) -> int:
        return len(self.offsets) - 1


class Statistics(NamedTuple):
    """What is known of the events to come: how often each dimension occurs, and its keys.

    `keys` of dimension d, a sample in ascending order: sample_offsets[d] … sample_offsets[d + 1].
    """

    n_events: int
    dimension_counts: np.ndarray  # int64
    sample_offsets: np.ndarray  # int64
    sample_keys: np.ndarray  # int64


class IndexStats(NamedTuple):
    """Figures of one index; `candidates` counts clauses looked at since it was built."""

    n_clauses: int
    n_bytes: int
    build_seconds: float
    candidates: int


@runtime_checkable
class Index(Protocol):
    """Built once, then only read, by any number of threads."""

    name: ClassVar[str]

    @classmethod
    def build(
        cls, table: ConjunctionTable, statistics: Statistics | None = None, **options: Any
    ) -> Self: ...

    def match_batch(self, events: EventBatch) -> ClauseMatches: ...

    def arrays(self) -> dict[str, np.ndarray]:
        """All that `from_arrays` needs, to be saved and mapped."""
        ...

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self: ...

    def stats(self) -> IndexStats: ...


@runtime_checkable
class DynamicIndex(Index, Protocol):
    """An index that changes in place. Ids of deleted clauses may be inserted again."""

    def insert(self, table: ConjunctionTable) -> None: ...

    def delete(self, clause_ids: np.ndarray) -> None: ...
