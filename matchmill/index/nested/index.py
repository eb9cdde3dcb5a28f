"""The index `nested`: clauses with alternatives inside of them."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable, divide
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.auto import Auto
from matchmill.index.base import ClauseMatches, Index, IndexStats, Statistics
from matchmill.index.fresh_scan import scan_pairs
from matchmill.index.joined_matches import joined_matches
from matchmill.index.lists import ListIndex
from matchmill.index.match_buffer import collect_matches
from matchmill.index.nested.arrays import NestedArrays, Scratch, new_scratch, walk_of
from matchmill.index.nested.build import build_arrays
from matchmill.index.nested.walk import walk_batch, walk_pairs
from matchmill.index.nested.words import BLOCK, Words, match_words, new_words
from matchmill.index.small_batches import SmallBatches

__all__ = ["NestedIndex"]

_FEW_PAIRS = 64
_NOTHING = np.empty(0, np.int64)
_TRIED_EVERY = 1 << 16  # events
_HULL, _LIST_HULL = "hull_", "list_hull_"


class NestedIndex:
    """Nested clauses, each walked by the events that wake it, or all of them in words."""

    name: ClassVar[str] = "nested"
    takes_lists: ClassVar[bool] = True

    def __init__(
        self,
        arrays: NestedArrays,
        hull: Any = None,
        list_hull: ListIndex | None = None,
        build_seconds: float = 0.0,
    ) -> None:
        self._arrays = arrays
        self._walk = walk_of(arrays)
        self._hull = hull
        self._list_hull = list_hull
        self._build_seconds = build_seconds
        self._candidates = 0
        self._room = 256  # ids of a single event
        self._scratch: list[Scratch] = []  # not in use at the moment
        self._words: list[Words] = []
        self._words_are_quicker = False
        self._events_until_trial = 0
        self._small_batches = SmallBatches()

    @classmethod
    def build(
        cls, table: ConjunctionTable, statistics: Statistics | None = None, **options: Any
    ) -> NestedIndex:
        """Build the index."""
        started = time.perf_counter()
        arrays, hull = build_arrays(table, statistics)
        plain, lists = divide(hull)
        return cls(
            arrays,
            Auto.build(plain, statistics) if plain.n_clauses else None,
            ListIndex.build(lists, statistics) if lists.n_clauses else None,
            time.perf_counter() - started,
        )

    # matching

    def match_pairs(self, pairs: bytes) -> np.ndarray:
        """Return the clauses that hold for one event: the quickest way for a single one.

        `pairs` are 64-bit integers dimension, key, dimension, key, …
        """
        if len(self._arrays.few):
            found = np.empty(len(self._arrays.clause_ids), np.int64)
            n_found = scan_pairs(self._arrays.few, pairs, found)
            self._candidates += len(found)
            return found[:n_found]
        hulls = _NOTHING if self._hull is None else self._hull.match_pairs(pairs)
        if self._list_hull is not None:
            hulls = np.concatenate((hulls, self._list_hull.match_pairs(pairs)))
        scratch = self._taken(len(pairs) >> 4)
        out = np.empty(self._room, np.int64)
        n_found = walk_pairs(self._walk, scratch, pairs, hulls, out)
        if n_found > len(out):
            self._room = 2 * n_found
            out = np.empty(self._room, np.int64)
            walk_pairs(self._walk, scratch, pairs, hulls, out)
        self._given_back(scratch)
        return out[:n_found]

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Return the clauses that hold for each event."""
        n_events = events.n_events
        if n_events < BLOCK // 2:
            return self._by_walking(events)
        self._events_until_trial -= n_events
        if self._events_until_trial > 0:
            return self._matched(events, in_words=self._words_are_quicker)
        if n_events < 4 * BLOCK:
            found, outcome = self._small_batches.match(
                n_events, lambda in_words: self._matched(events, in_words=in_words)
            )
            if outcome is not None:
                self._words_are_quicker = outcome
                self._events_until_trial = _TRIED_EVERY
            return found
        self._events_until_trial = _TRIED_EVERY
        block = events.slice(0, BLOCK)
        first = self._in_words(block)
        seconds = []
        for match in (self._by_walking, self._in_words):
            match(block)  # kernels may be compiled now
            began = time.perf_counter()
            match(block)
            seconds.append(time.perf_counter() - began)
        self._words_are_quicker = seconds[1] < seconds[0]
        match = self._in_words if self._words_are_quicker else self._by_walking
        rest = match(events.slice(BLOCK, n_events))
        return ClauseMatches(
            np.concatenate((first.offsets, first.offsets[-1] + rest.offsets[1:])),
            np.concatenate((first.clause_ids, rest.clause_ids)),
        )

    def _matched(self, events: EventBatch, *, in_words: bool) -> ClauseMatches:
        return self._in_words(events) if in_words else self._by_walking(events)

    def _by_walking(self, events: EventBatch) -> ClauseMatches:
        found = ClauseMatches(np.zeros(events.n_events + 1, np.int64), _NOTHING)
        for hull in (self._hull, self._list_hull):
            if hull is not None:
                found = joined_matches(found, hull.match_batch(events))
        scratch = self._taken(_most_pairs(events))

        def match_from(start: int, offsets: np.ndarray, out: np.ndarray) -> int:
            return walk_batch(self._walk, scratch, events, *found, start, offsets, out)

        matches = collect_matches(events.n_events, len(self._arrays.clause_ids), match_from)
        self._given_back(scratch)
        return matches

    def _in_words(self, events: EventBatch) -> ClauseMatches:
        scratch = self._taken(_most_pairs(events))
        words = self._words.pop() if self._words else new_words(self._arrays)

        def match_from(start: int, offsets: np.ndarray, out: np.ndarray) -> int:
            return match_words(self._walk, scratch, words, events, start, offsets, out)

        room = BLOCK * len(self._arrays.clause_ids)
        matches = collect_matches(events.n_events, room, match_from)
        self._words.append(words)
        self._given_back(scratch)
        return matches

    def _taken(self, n_pairs: int) -> Scratch:
        try:
            scratch = self._scratch.pop()
        except IndexError:
            scratch = new_scratch(self._arrays, max(n_pairs, _FEW_PAIRS))
        if n_pairs > len(scratch.keys):
            scratch = new_scratch(self._arrays, 2 * n_pairs)
        return scratch

    def _given_back(self, scratch: Scratch) -> None:
        self._candidates += int(scratch.clock[1])
        scratch.clock[1] = 0
        self._scratch.append(scratch)

    # saving

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays, to be saved and mapped."""
        out: dict[str, np.ndarray] = {
            name: array.ravel() for name, array in self._arrays._asdict().items()
        }
        for prefix, hull in ((_HULL, self._hull), (_LIST_HULL, self._list_hull)):
            if hull is not None:
                out |= {prefix + name: array for name, array in hull.arrays().items()}
        return out

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> NestedIndex:
        """Return an index that was saved."""
        own = {name: arrays[name] for name in NestedArrays._fields}
        own["leaves"] = own["leaves"].reshape(-1, 4)
        parts = [
            {name.removeprefix(start): a for name, a in arrays.items() if name.startswith(start)}
            for start in (_HULL, _LIST_HULL)
        ]
        return cls(
            NestedArrays(**own),
            Auto.from_arrays(parts[0]) if parts[0] else None,
            ListIndex.from_arrays(parts[1]) if parts[1] else None,
        )

    def stats(self) -> IndexStats:
        """Return figures of the index; candidates are clauses that events walked."""
        hulls: list[Index] = [hull for hull in (self._hull, self._list_hull) if hull is not None]
        n_bytes = sum(array.nbytes for array in self._arrays)
        n_bytes += sum(hull.stats().n_bytes for hull in hulls)
        n_clauses = len(self._arrays.clause_ids)
        return IndexStats(n_clauses, n_bytes, self._build_seconds, self._candidates)


def _most_pairs(events: EventBatch) -> int:
    return int(np.diff(events.offsets).max(initial=0))
