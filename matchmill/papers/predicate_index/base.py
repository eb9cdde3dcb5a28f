"""What finds, among the predicates of one dimension, those that a key satisfies.

    predicate i    ids[i]; its intervals are interval_offsets[i] … interval_offsets[i + 1]
    interval k     lows[k] <= key <= highs[k]

As in a ConjunctionTable intervals ascend and do not touch, and key 0 stands for absence.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

__all__ = ["PredicateStructure", "Predicates", "Satisfied"]


class Predicates(NamedTuple):
    ids: np.ndarray  # int64
    interval_offsets: np.ndarray  # int64
    lows: np.ndarray  # int64
    highs: np.ndarray  # int64


class Satisfied(NamedTuple):
    """For each key the ids of the predicates that it satisfies, each once, in no order."""

    offsets: np.ndarray  # int64
    ids: np.ndarray  # int64


@runtime_checkable
class PredicateStructure(Protocol):
    """Changes in place. Ids that were deleted may be inserted again."""

    name: ClassVar[str]

    @classmethod
    def build(cls, predicates: Predicates) -> Self: ...

    def insert(self, predicates: Predicates) -> None: ...

    def delete(self, ids: np.ndarray) -> None: ...

    def match(self, keys: np.ndarray) -> Satisfied: ...

    @property
    def n_bytes(self) -> int: ...
