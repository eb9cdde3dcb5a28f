"""The index `mask_tree`: built from a table, asked with batches of events."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.array_index import ArrayIndex
from matchmill.index.base import Statistics
from matchmill.index.mask_tree.arrays import MaskTreeArrays, check_tree
from matchmill.index.mask_tree.build import build_mask_tree
from matchmill.index.mask_tree.match import match_events, new_tree_state

__all__ = ["MaskTree"]


class MaskTree(ArrayIndex):
    """Clauses on the same few dimensions: boxes in a tree, 64 of them per compare."""

    name: ClassVar[str] = "mask_tree"
    declared: ClassVar[Any] = MaskTreeArrays
    check = staticmethod(check_tree)
    match_events = staticmethod(match_events)

    @classmethod
    def build(
        cls, table: ConjunctionTable, statistics: Statistics | None = None, **options: Any
    ) -> MaskTree:
        """Build the index."""
        started = time.perf_counter()
        arrays = build_mask_tree(table, statistics)
        return cls(arrays, time.perf_counter() - started)

    def new_state(self, events: EventBatch, n_out: int) -> Any:
        """Return the state of a batch of events."""
        return new_tree_state(self._arrays, events, n_out)
