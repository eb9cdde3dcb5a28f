"""Predicate indexes in the place of an index, so that the bench can time them.

A clause is one predicate, and its id is the predicate's: the matches of an event are the predicates
that its pairs satisfy. Each dimension has a predicate index of its own. Predicates that accept
absence would need a look at each dimension for each event, which no experiment asks for; they are
rejected.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from matchmill.encoding.conjunction_table import ABSENT_KEY, ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.errors import InputError
from matchmill.index.base import ClauseMatches, IndexStats
from matchmill.kernels.csr import offsets_of, take_ranges
from matchmill.papers.predicate_index.base import (
    PredicateIndex,
    Predicates,
    Satisfied,
    pairs_by_dimension,
)
from matchmill.papers.predicate_index.registry import predicate_index_class

__all__ = ["OneDimension"]


class OneDimension:
    """What the bench needs of an index."""

    def __init__(self, indexes: dict[int, PredicateIndex], n_clauses: int) -> None:
        self._indexes = indexes
        self._n_clauses = n_clauses
        self._build_seconds = 0.0
        self._candidates = 0

    @classmethod
    def build(cls, name: str, table: ConjunctionTable, **options: Any) -> OneDimension:
        """`options` are those of the predicate index's own `build`."""
        started = time.perf_counter()
        if (np.diff(table.clause_offsets) != 1).any() or (table.lows == ABSENT_KEY).any():
            raise InputError(
                "predicate indexes are measured on clauses of one predicate that does "
                "not accept absence; take another workload"
            )
        indexes = {}
        for dimension in np.unique(table.dimensions).tolist():
            rows = np.flatnonzero(table.dimensions == dimension)
            offsets, at = take_ranges(table.interval_offsets, rows)
            indexes[dimension] = predicate_index_class(name).build(
                Predicates(table.clause_ids[rows], offsets, table.lows[at], table.highs[at]),
                **options,
            )
        index = cls(indexes, table.n_clauses)
        index._build_seconds = time.perf_counter() - started
        return index

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Match a batch of events."""
        found = [
            (pairs, self._indexes[dimension].match(events.keys[pairs]))
            for dimension, pairs in pairs_by_dimension(events)
            if dimension in self._indexes
        ]
        matches = _by_event(events, found)
        self._candidates += len(matches.clause_ids)
        return matches

    def stats(self) -> IndexStats:
        """Return the figures; candidates are the predicates found."""
        n_bytes = sum(index.n_bytes for index in self._indexes.values())
        return IndexStats(self._n_clauses, n_bytes, self._build_seconds, self._candidates)


def _by_event(events: EventBatch, found: list[tuple[np.ndarray, Satisfied]]) -> ClauseMatches:
    """Put together what was found for the pairs of each dimension."""
    if len(found) == 1 and np.array_equal(events.offsets, np.arange(events.n_events + 1)):
        pairs, satisfied = found[0]
        if len(pairs) == events.n_events:  # one pair per event, all of one dimension
            return ClauseMatches(satisfied.offsets, satisfied.ids)
    per_pair = np.zeros(len(events.keys), np.int64)
    for pairs, satisfied in found:
        per_pair[pairs] = np.diff(satisfied.offsets)
    pair_offsets = offsets_of(per_pair)
    ids = np.empty(pair_offsets[-1], np.int64)
    for pairs, satisfied in found:
        shifts = np.repeat(pair_offsets[pairs] - satisfied.offsets[:-1], per_pair[pairs])
        ids[np.arange(len(shifts)) + shifts] = satisfied.ids
    return ClauseMatches(pair_offsets[events.offsets], ids)
