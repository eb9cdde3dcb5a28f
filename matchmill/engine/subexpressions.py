"""Parts of expressions: which of them does an event satisfy?

    (a = 1 or b = 2) and (c = 3 or d = 4) and …      alternatives multiply
      part 0             part 1                      each is a flag of the event

An expression whose clauses would be far more than its conditions keeps operands whole
(`language/normal_form.py`); they are parts. An event is matched with all parts first, each of them
a subscription of its own to an index of its own; those that hold become flags of the event, and
then expressions are conjunctions again, in any index. A part may have parts in its turn, which are
the business of the index of parts.

Equal parts are one. The index is made, and grows, when events first meet new parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from matchmill.encoding.clause_encoder import ClauseEncoder
from matchmill.encoding.dimensions import TRUE_KEY, Dimensions
from matchmill.encoding.event_batch import EventBatch, from_pairs
from matchmill.encoding.event_encoder import encode_events
from matchmill.encoding.events.columns import EventColumns
from matchmill.index.registry import DEFAULT_INDEX, index_class
from matchmill.index.segments import Segmented, Snapshot
from matchmill.kernels.csr import distinct_rows
from matchmill.language.normal_form import part_clauses
from matchmill.language.parser import parse
from matchmill.settings import UNLIMITED

__all__ = ["encode_with_parts", "is_asked_for"]


class _State(NamedTuple):
    dimensions: Dimensions
    snapshot: Snapshot
    part_of_clause: np.ndarray  # int64
    flags: np.ndarray  # int32: the dimension of each part


class PartIndex:
    """All parts of some dimensions, as far as events have met them."""

    def __init__(self) -> None:
        self._segmented = Segmented(index_class(DEFAULT_INDEX), fresh_clauses=1024)
        nothing = np.empty(0, np.int64)
        self.state = _State(
            Dimensions(), self._segmented.snapshot, nothing, nothing.astype(np.int32)
        )

    def extend(self, parts: Sequence[tuple[str, int]]) -> None:
        """Take in the parts beyond those that are known."""
        dimensions, _, part_of_clause, flags = self.state
        n_known = len(flags)
        encoder = ClauseEncoder(dimensions)
        n_clauses = []
        for text, _ in parts[n_known:]:
            clauses = part_clauses(parse(text, UNLIMITED))
            encoder.add(clauses)
            n_clauses.append(len(clauses))
        first, n_new = len(part_of_clause), sum(n_clauses)
        encoded = encoder.finish(np.arange(first, first + n_new))
        if encoded.relabellings:
            self._segmented.relabel(encoded.relabellings)
        self._segmented.apply(encoded.table, np.empty(0, np.int64))
        self._segmented.settle()
        owners = np.repeat(np.arange(n_known, len(parts)), n_clauses)
        self.state = _State(
            encoded.dimensions,
            self._segmented.snapshot,
            np.concatenate((part_of_clause, owners)),
            np.array([dimension_id for _, dimension_id in parts], np.int32),
        )


def _parts_of(dimensions: Dimensions) -> _State:
    """The index of all parts that there are now."""
    parts = list(dimensions.parts)
    shared = dimensions.part_index
    with shared.lock:
        if shared.index is None:
            shared.index = PartIndex()
        if len(shared.index.state.flags) < len(parts):
            shared.index.extend(parts)
        state: _State = shared.index.state
        return state


def is_asked_for(dimensions: Dimensions) -> Callable[[str], bool]:
    """Whether an attribute matters to some expression or part."""
    if not dimensions.parts:
        return dimensions.plans.__contains__
    inside = is_asked_for(_parts_of(dimensions).dimensions)
    return lambda attribute: attribute in dimensions.plans or inside(attribute)


def encode_with_parts(dimensions: Dimensions, events: EventColumns) -> EventBatch:
    """The pairs of each event, and a flag for each part that it satisfies."""
    batch = encode_events(dimensions, events)
    if not dimensions.parts:
        return batch
    parts = _parts_of(dimensions)
    matches = parts.snapshot.match_batch(encode_with_parts(parts.dimensions, events))
    offsets, held = distinct_rows(matches.offsets, parts.part_of_clause[matches.clause_ids])
    rows = np.arange(batch.n_events)
    return from_pairs(
        batch.n_events,
        [np.repeat(rows, np.diff(batch.offsets)), np.repeat(rows, np.diff(offsets))],
        [batch.dimensions, parts.flags[held]],
        [batch.keys, np.full(len(held), TRUE_KEY, np.int64)],
    )
