"""Encode a batch of events one by one, where that is quicker than by columns.

    events    {a: 1, x: 'u'}   {b: 2}   {c: 5, x: [image]}   …
    pairs     d0 k0 d7 k7      d1 k1                         of each, by `OneEventEncoder`
              └──────── one EventBatch ──────┘   awkward ones ─► columns ─► the same batch

A column costs some tens of microseconds, however few events have it. So events that share few
attributes are encoded by row, and so is a batch of a few events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from matchmill.encoding.dimensions import AttributePlan
from matchmill.encoding.event_batch import EventBatch, from_pairs
from matchmill.encoding.events.dicts import DictEvents, Shape
from matchmill.encoding.single.encoder import OneEventEncoder
from matchmill.kernels.csr import offsets_of
from matchmill.language.expression import ANY_ATTRIBUTE

__all__ = ["batch_of_pairs", "encode_by_row", "pays_by_row"]

EncodeColumns: TypeAlias = Callable[[DictEvents], tuple[EventBatch, dict[int, str]]]

# Tabular events, from which on columns have paid for themselves; with patterns, which are looked
# for in many texts at once.
_FEW_EVENTS = 100
_FEW_WITH_PATTERNS = 8
_COLUMN_IN_TEXTS = 4  # texts searched one by one that take as long as a column


def pays_by_row(plans: Mapping[str, AttributePlan], events: DictEvents) -> bool:
    """Tell whether events are better encoded one by one, by a look at some of them."""
    shape = events.shape()
    if not shape.is_tabular:
        return events.n_events * _n_searched(plans, shape) < _COLUMN_IN_TEXTS * len(shape.names)
    if events.n_events >= _FEW_EVENTS:
        return False
    if events.n_events < _FEW_WITH_PATTERNS:
        return True
    return not any(name in plans and plans[name].patterns for name in shape.names)


def _n_searched(plans: Mapping[str, AttributePlan], shape: Shape) -> float:
    """Estimate how many values of an event are searched for patterns."""
    if ANY_ATTRIBUTE in plans:
        return shape.n_per_event
    n = sum(1 for name in shape.names if name in plans and plans[name].patterns)
    return shape.n_per_event * n / max(1, len(shape.names))


def batch_of_pairs(records: list[bytes]) -> EventBatch:
    """Return events that are encoded one by one as a batch."""
    pairs = np.frombuffer(b"".join(records), np.int64).reshape(-1, 2)
    offsets = offsets_of(np.fromiter(map(len, records), np.int64, len(records)) >> 4)
    return EventBatch(offsets, pairs[:, 0].astype(np.int32), pairs[:, 1].copy())


def encode_by_row(
    encoder: OneEventEncoder, events: DictEvents, by_column: EncodeColumns
) -> tuple[EventBatch, dict[int, str]]:
    """Return the pairs of each event, and why some are rejected.

    `by_column` encodes the events that cannot be encoded by row, and says which ones are rejected.
    """
    records, others = encoder.encode_many(events.items)
    batch = batch_of_pairs(records)
    if not others:
        return batch, {}
    some, rejected = by_column(events.some(others))
    all_pairs = from_pairs(
        events.n_events,
        [_rows_of(batch, np.arange(events.n_events)), _rows_of(some, np.array(others, np.int64))],
        [batch.dimensions, some.dimensions],
        [batch.keys, some.keys],
    )
    return all_pairs, {others[i]: reason for i, reason in rejected.items()}


def _rows_of(batch: EventBatch, rows: np.ndarray) -> np.ndarray:
    return np.repeat(rows, np.diff(batch.offsets))
