"""Match a single event without columns and batches.

    dict ─► pairs as bytes ─► clause ids of each segment ─► rows ─► ids

Events with unusual values and indexes without `match_pairs` are left to `match_many`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.single.by_row import batch_of_pairs
from matchmill.encoding.single.encoder import OneEventEncoder
from matchmill.engine.state import State
from matchmill.engine.subscription_table import EXACT_WITHOUT_LISTS, Id, Subscriptions
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

    def encoder(self, dimensions: Dimensions) -> OneEventEncoder:
        """Return the encoder of single events; the last one is kept."""
        encoder = self._encoder
        if encoder is None or encoder.dimensions is not dimensions:
            encoder = self._encoder = OneEventEncoder(dimensions, self._settings)
        return encoder

    def match(self, state: State, event: Mapping[str, Any]) -> set[Id] | None:
        """Return the ids of all subscriptions that hold; None if that needs a batch."""
        dimensions, snapshot, subscriptions = state
        encoder = self._encoder
        if encoder is None or encoder.dimensions is not dimensions:
            encoder = self.encoder(dimensions)
        pairs = encoder.encode(event)
        if pairs is None:
            return None
        self._until_sampled -= 1
        if self._until_sampled < 0:
            self._until_sampled = _SAMPLED_EVERY
            self._sample.add(batch_of_pairs([pairs]))
        clauses: np.ndarray | None = None
        for built, _, dead in snapshot.segments:
            try:
                found: np.ndarray = built.match_pairs(pairs)  # type: ignore[attr-defined]
            except AttributeError:
                return None
            if dead.n_dead:
                found = dead.live_ids(found)
            if len(found):
                clauses = found if clauses is None else np.concatenate((clauses, found))
        if clauses is None:
            return set()
        ids = subscriptions.ids_of_clauses(clauses)
        return self._confirmed(subscriptions, event, clauses) if ids is None else ids

    def _confirmed(
        self, subscriptions: Subscriptions, event: Mapping[str, Any], clauses: np.ndarray
    ) -> set[Id]:
        """Evaluate the expressions of inexact candidates, and call operators."""
        rows = np.unique(subscriptions.row_of_clause.data[clauses])
        exactness = subscriptions.is_exact.data[rows]
        is_doubtful = exactness == 0
        if (exactness == EXACT_WITHOUT_LISTS).any() and has_list(event):
            is_doubtful |= exactness == EXACT_WITHOUT_LISTS
        if is_doubtful.any():
            flat = flatten_record(event, self._settings)
            doubtful = rows[is_doubtful].tolist()
            good = self._operators.confirmed(subscriptions, [(flat, doubtful)])[0]
            rows = np.concatenate((rows[~is_doubtful], np.array(sorted(good), rows.dtype)))
        return subscriptions.id_set(subscriptions.number_of_row.data[rows])
