"""Match a single event without columns and batches.

    dict ─► pairs as bytes ─► clause ids of each segment ─► rows ─► ids

Events with unusual values, indexes without `match_pairs` and expressions with subexpressions are
left to `match_many`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from matchmill.encoding.event_batch import EventBatch
from matchmill.encoding.single.encoder import OneEventEncoder
from matchmill.engine.state import State
from matchmill.engine.subscription_table import EXACT_WITHOUT_LISTS, Id
from matchmill.index.event_sample import EventSample
from matchmill.language.dialects.event_fields import has_list
from matchmill.language.flatten import flatten_record
from matchmill.operators.matcher import OperatorMatcher
from matchmill.settings import Settings

__all__ = ["SingleEvents"]


_SAMPLED_EVERY = 64


class SingleEvents:
    """Matches single events; knows the last dimensions that it saw."""

    def __init__(self, settings: Settings, sample: EventSample, operators: OperatorMatcher) -> None:
        self._settings = settings
        self._sample = sample
        self._operators = operators
        self._until_sampled = 0
        self._encoder: OneEventEncoder | None = None

    def match(self, state: State, event: Mapping[str, Any]) -> set[Id] | None:
        """Return the ids of all subscriptions that hold; None if that needs a batch."""
        if state.dimensions.parts:
            return None
        encoder = self._encoder
        if encoder is None or encoder.dimensions is not state.dimensions:
            encoder = self._encoder = OneEventEncoder(state.dimensions, self._settings)
        pairs = encoder.encode(event)
        if pairs is None:
            return None
        self._until_sampled -= 1
        if self._until_sampled < 0:
            self._until_sampled = _SAMPLED_EVERY
            self._sample.add(_as_batch(pairs))
        found: list[np.ndarray] = []
        for built, _, dead in state.snapshot.segments:
            try:
                ids: np.ndarray = built.match_pairs(pairs)  # type: ignore[attr-defined]
            except AttributeError:
                return None
            if dead.n_dead:
                ids = dead.live_ids(ids)
            if len(ids):
                found.append(ids)
        if not found:
            return set()
        clauses = found[0] if len(found) == 1 else np.concatenate(found)
        subscriptions = state.subscriptions
        rows = subscriptions.row_of_clause.data[clauses]
        exactness = subscriptions.is_exact.data[rows].tobytes()
        in_doubt = {0}
        if EXACT_WITHOUT_LISTS in exactness and has_list(event):
            in_doubt.add(EXACT_WITHOUT_LISTS)
        if not in_doubt.isdisjoint(exactness):
            flat = flatten_record(event, self._settings)
            doubtful = [r for r, e in zip(rows.tolist(), exactness, strict=True) if e in in_doubt]
            good = self._operators.confirmed(subscriptions, [(flat, doubtful)])[0]
            gone = set(doubtful) - good
            rows = np.array([row for row in rows.tolist() if row not in gone], int)
        return set(subscriptions.id_list(subscriptions.number_of_row.data[rows]))


def _as_batch(pairs: bytes) -> EventBatch:
    numbers = np.frombuffer(pairs, np.int64).reshape(-1, 2)
    offsets = np.array([0, len(numbers)], np.int64)
    return EventBatch(offsets, numbers[:, 0].astype(np.int32), numbers[:, 1].copy())
