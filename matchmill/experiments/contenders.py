"""Who a contender is: an index of the registry, or a structure for one dimension."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.experiments.one_dimension import OneDimension
from matchmill.experiments.spec import Contender
from matchmill.indexes.base import IndexStats, Matches, Statistics
from matchmill.indexes.registry import INDEXES
from matchmill.predicates.registry import STRUCTURES

__all__ = ["Built", "build_contender", "is_there"]


class Built(Protocol):
    """What is measured."""

    def match_batch(self, events: EventBatch) -> Matches: ...

    def stats(self) -> IndexStats: ...


def is_there(contender: Contender) -> bool:
    return contender.index in (STRUCTURES if contender.is_structure else INDEXES)


def build_contender(
    contender: Contender,
    table: ConjunctionTable,
    statistics: Statistics | None,
    options: Mapping[str, Any],
) -> Built:
    """Structures have no use for statistics."""
    if contender.is_structure:
        return OneDimension.build(contender.index, table, **options)
    return INDEXES[contender.index].build(table, statistics, **options)
