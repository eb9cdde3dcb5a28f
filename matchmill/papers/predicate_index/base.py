"""What finds, among the predicates of one dimension, those that a key satisfies.

    predicate i    ids[i]; its intervals are interval_offsets[i] … interval_offsets[i + 1]
    interval k     lows[k] <= key <= highs[k]

As in a ConjunctionTable intervals ascend and do not touch, and key 0 stands for absence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from matchmill.encoding.event_batch import EventBatch

__all__ = ["PredicateIndex", "Predicates", "Satisfied", "pairs_by_dimension"]


class Predicates(NamedTuple):
    """Predicates with their intervals."""

    ids: np.ndarray  # int64
    interval_offsets: np.ndarray  # int64
    lows: np.ndarray  # int64
    highs: np.ndarray  # int64


class Satisfied(NamedTuple):
    """For each key the ids of the predicates that it satisfies, each once, in no order."""

    offsets: np.ndarray  # int64
    ids: np.ndarray  # int64


@runtime_checkable
class PredicateIndex(Protocol):
    """Changes in place. Ids that were deleted may be inserted again."""

    name: ClassVar[str]

    @classmethod
    def build(cls, predicates: Predicates) -> Self:
        """Build the index from predicates."""

    def insert(self, predicates: Predicates) -> None:
        """Insert predicates."""

    def delete(self, ids: np.ndarray) -> None:
        """Delete predicates by their ids."""

    def match(self, keys: np.ndarray) -> Satisfied:
        """Find the predicates that each key satisfies."""

    @property
    def n_bytes(self) -> int:
        """Bytes of the arrays."""


def pairs_by_dimension(events: EventBatch) -> Iterator[tuple[int, np.ndarray]]:
    """For each dimension that occurs the positions of its pairs, in the order of events."""
    order = np.argsort(events.dimensions, kind="stable")
    dimensions, starts = np.unique(events.dimensions[order], return_index=True)
    yield from zip(dimensions.tolist(), np.split(order, starts)[1:], strict=True)
