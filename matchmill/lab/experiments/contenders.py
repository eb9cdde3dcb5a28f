"""What a contender is: an index, a predicate index, or an order to ask operators in.

Predicate indexes and orders cannot be chosen for an engine, so its registry does not have them.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, MutableMapping
from typing import Any, Protocol

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import ClauseMatches, Index, IndexStats, Statistics
from matchmill.index.registry import INDEXES
from matchmill.lab.experiments.order_contenders import ORDERS
from matchmill.lab.experiments.predicate_contenders import OneDimension
from matchmill.lab.experiments.spec import Contender
from matchmill.papers.predicate_index.registry import PREDICATE_INDEXES

__all__ = ["CONTENDERS", "Built", "build_contender", "is_there"]

CONTENDERS: MutableMapping[str, type[Index]] = ChainMap(INDEXES, ORDERS)


class Built(Protocol):
    """What is measured."""

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Match a batch of events."""

    def stats(self) -> IndexStats:
        """Return the figures of this index."""


def is_there(contender: Contender) -> bool:
    """Tell whether a registry has the contender."""
    return contender.index in (PREDICATE_INDEXES if _is_structure(contender) else CONTENDERS)


def _is_structure(contender: Contender) -> bool:
    """Tell a predicate index from an order, which evaluates predicates, too."""
    return contender.is_predicate_index and contender.index not in ORDERS


def build_contender(
    contender: Contender,
    table: ConjunctionTable,
    statistics: Statistics | None,
    options: Mapping[str, Any],
) -> Built:
    """Build a contender; a predicate index has no use for statistics."""
    if _is_structure(contender):
        return OneDimension.build(contender.index, table, **options)
    return CONTENDERS[contender.index].build(table, statistics, **options)
