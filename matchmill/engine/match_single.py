"""Match a single event without columns and batches.

    dict ─► pairs as bytes ─┬─► known answer ───────────────────────────► ids, a copy
                            └─► clause ids of each segment ─► rows ─► ids

Events with unusual values and indexes without `match_pairs` are left to `match_many`.

Events differ less than their values do: pairs have a key for each interval between constants that
subscriptions name, and nothing that nobody asks for. So the answers to some pairs are kept, for as
long as nothing changes and they are asked for again (`_Answers`).
"""

from __future__ import annotations

import weakref
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
_SAMPLED_AT_ONCE = 8  # adding to the sample takes longer than matching
_FEW_SEEN = 64  # the first events are added one by one: who asks for figures sees them
_MOST_ANSWERS = 2048
_MOST_ANSWERED_IDS = 1 << 16  # in all answers
_WORTH_KEEPING = 2  # events per answer


class _Answers(dict[bytes, set[Id]]):
    """Pairs → the ids that clauses alone decide, among the subscriptions of one moment.

    It is emptied when it is full, and not filled any more if it was of little use until then. It
    does not keep the subscriptions in memory: the next ones may have replaced them.
    """

    __slots__ = ("_is_filled", "_n_ids", "n_asked", "subscriptions")

    def __init__(self, subscriptions: Subscriptions) -> None:
        super().__init__()
        self.subscriptions = weakref.ref(subscriptions)
        self.n_asked = 0  # in steps of _SAMPLED_EVERY
        self._is_filled = True
        self._n_ids = 0

    def keep(self, pairs: bytes, ids: set[Id]) -> None:
        """Keep an answer; `ids` are the caller's."""
        if len(self) >= _MOST_ANSWERS or self._n_ids > _MOST_ANSWERED_IDS:
            self._is_filled = self.n_asked >= _WORTH_KEEPING * len(self)
            self.clear()
            self.n_asked = self._n_ids = 0
        if self._is_filled:
            self._n_ids += len(ids)
            self[pairs] = ids.copy()


class SingleEvents:
    """Matches single events; knows the last dimensions and the last state that it saw."""

    def __init__(self, settings: Settings, sample: EventSample, operators: OperatorMatcher) -> None:
        self._settings = settings
        self._sample = sample
        self._operators = operators
        self._until_sampled = 0
        self._sampled: list[bytes] = []  # pairs that the sample does not have yet
        self._encoder: OneEventEncoder | None = None
        self._answers: _Answers | None = None

    def encoder(self, dimensions: Dimensions) -> OneEventEncoder:
        """Return the encoder of single events; the last one is kept."""
        encoder = self._encoder
        if encoder is None or encoder.dimensions is not dimensions:
            encoder = self._encoder = OneEventEncoder(dimensions, self._settings)
            self._sampled = []  # keys may have other meanings now
        return encoder

    def match(self, state: State, event: Mapping[str, Any]) -> set[Id] | None:
        """Return the ids of all subscriptions that hold; None if that needs a batch."""
        dimensions, _, subscriptions = state
        encoder, answers = self._encoder, self._answers
        if encoder is None or encoder.dimensions is not dimensions:
            encoder = self.encoder(dimensions)
        if answers is None or answers.subscriptions() is not subscriptions:
            answers = self._answers = _Answers(subscriptions)
        pairs = encoder.encode(event)
        if pairs is None:
            return None
        self._until_sampled -= 1
        if self._until_sampled < 0:
            self._until_sampled = _SAMPLED_EVERY - 1
            answers.n_asked += _SAMPLED_EVERY
            self._add_to_sample(pairs)
        known = answers.get(pairs)
        return self._found(state, answers, event, pairs) if known is None else known.copy()

    def _add_to_sample(self, pairs: bytes) -> None:
        sampled = self._sampled
        sampled.append(pairs)
        if len(sampled) >= _SAMPLED_AT_ONCE or self._sample.n_seen < _FEW_SEEN:
            self._sampled = []
            self._sample.add(batch_of_pairs(sampled))

    def _found(
        self, state: State, answers: _Answers, event: Mapping[str, Any], pairs: bytes
    ) -> set[Id] | None:
        """Return the ids of all subscriptions that hold, by the index; None if it has no way."""
        clauses: np.ndarray | None = None
        for built, _, dead in state.snapshot.segments:
            try:
                found: np.ndarray = built.match_pairs(pairs)  # type: ignore[attr-defined]
            except AttributeError:
                return None
            if dead.n_dead:
                found = dead.live_ids(found)
            if len(found):
                clauses = found if clauses is None else np.concatenate((clauses, found))
        ids = set() if clauses is None else state.subscriptions.ids_of_clauses(clauses)
        if ids is None:
            assert clauses is not None
            return self._confirmed(state.subscriptions, event, clauses)
        answers.keep(pairs, ids)
        return ids

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
