"""A scan over a few new clauses, which is so quick to build that each insertion builds it again.

All clauses are in one array of int64: a kernel call costs time for each array that it gets.

    n_dimensions, n_clauses, has lists, dimensions ascending …, clause, clause, …
    clause       words in it, id, n_predicates, predicate, predicate, …
    predicate    words in it, place among the dimensions << 8 | join << 2 | quantifier, low, high,
                 low, high, …
    chains       of an event: per place the last pair, and per pair the one before it; only made if
                 the table has multi-valued dimensions or nested clauses

Segments use it for clauses that wait to be built into the real index. `scan.py` is the baseline.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np

from matchmill.encoding.conjunction_table import DEEPEST_JOIN, NONE, ONE_KEY, ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import ClauseMatches, IndexStats, Statistics
from matchmill.index.match_buffer import collect_matches
from matchmill.kernels.jit import int64, kernel
from matchmill.kernels.searches import first_at_least

__all__ = ["FreshScan", "packed_clauses", "scan_pairs"]


_HEADER = 3


class FreshScan:
    """A scan of all clauses of a small table."""

    name: ClassVar[str] = "fresh_scan"
    takes_lists: ClassVar[bool] = True

    def __init__(self, table: ConjunctionTable) -> None:
        started = time.perf_counter()
        self._table = table
        self._words = packed_clauses(table)
        self._n_clauses = table.n_clauses
        self._build_seconds = time.perf_counter() - started
        self._candidates = 0

    @classmethod
    def build(
        cls, table: ConjunctionTable, statistics: Statistics | None = None, **options: Any
    ) -> FreshScan:
        """Build the index."""
        return cls(table)

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Return the clauses that hold for each event."""
        n_events = events.n_events

        def match_from(start: int, offsets: np.ndarray, out: np.ndarray) -> int:
            return _scan_events(self._words, *events, start, offsets, out)

        self._candidates += n_events * self._n_clauses
        room = self._n_clauses + 4 * n_events
        return collect_matches(n_events, self._n_clauses, match_from, first_room=room)

    def match_pairs(self, pairs: bytes) -> np.ndarray:
        """Return the clauses that hold for one event: the quickest way for a single one.

        `pairs` are 64-bit integers dimension, key, dimension, key, …
        """
        out = np.empty(self._n_clauses, np.int64)
        n_found = scan_pairs(self._words, pairs, out)
        self._candidates += self._n_clauses
        return out[:n_found]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the table."""
        return self._table._asdict()

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> FreshScan:
        """Return an index that was saved."""
        return cls(ConjunctionTable(**arrays))

    def stats(self) -> IndexStats:
        """Return figures of the index."""
        return IndexStats(
            self._n_clauses, self._words.nbytes, self._build_seconds, self._candidates
        )


@kernel
def _place(words: np.ndarray, n_dimensions: int, wanted: int) -> int:
    """Return the place of a dimension in the ascending list at the beginning, or -1."""
    stop = _HEADER + n_dimensions
    at = first_at_least(words, wanted, _HEADER, stop)
    return at - _HEADER if at < stop and words[at] == wanted else -1


@kernel
def packed_clauses(table: ConjunctionTable) -> np.ndarray:
    """Return all clauses in one array."""
    n_clauses, n_predicates, n_intervals = (
        len(table.clause_ids),
        len(table.dimensions),
        len(table.lows),
    )
    room = _HEADER + n_predicates + 3 * n_clauses + 2 * n_predicates + 2 * n_intervals
    has_lists = len(table.quantifiers) > 0
    words = np.empty(room, np.int64)
    n_dimensions = 0
    for dimension in table.dimensions:
        place = _place(words, n_dimensions, dimension)
        if place < 0:  # not in the list yet: it belongs before the larger ones
            at = _HEADER + n_dimensions
            while at > _HEADER and words[at - 1] > dimension:
                words[at] = words[at - 1]
                at -= 1
            words[at] = dimension
            n_dimensions += 1
    words[0] = n_dimensions
    words[1] = n_clauses
    words[2] = has_lists
    at = _HEADER + n_dimensions
    for i in range(n_clauses):
        start = at
        words[at + 1] = table.clause_ids[i]
        words[at + 2] = table.clause_offsets[i + 1] - table.clause_offsets[i]
        at += 3
        for p in range(table.clause_offsets[i], table.clause_offsets[i + 1]):
            first, stop = table.interval_offsets[p], table.interval_offsets[p + 1]
            words[at] = 2 + 2 * (stop - first)
            quantifier = int64(table.quantifiers[p]) if has_lists else int64(ONE_KEY)
            words[at + 1] = _place(words, n_dimensions, table.dimensions[p]) << 8 | quantifier
            at += 2
            for k in range(first, stop):
                words[at] = table.lows[k]
                words[at + 1] = table.highs[k]
                at += 2
        words[start] = at - start
    return words[:at].copy()


@kernel
def _is_inside(words: np.ndarray, interval: int, stop: int, key: int) -> bool:
    while interval < stop and not words[interval] <= key <= words[interval + 1]:
        interval += 2
    return interval < stop


@kernel
def _holds(words: np.ndarray, at: int, keys: np.ndarray) -> bool:
    """Return whether the clause at this place holds; it has no multi-valued dimension."""
    predicate = at + 3
    for _ in range(words[at + 2]):
        key = keys[words[predicate + 1] >> 8]
        following = predicate + words[predicate]
        interval = predicate + 2
        while interval < following and not words[interval] <= key <= words[interval + 1]:
            interval += 2
        if interval == following:
            return False
        predicate = following
    return True


@kernel
def _list_holds(
    words: np.ndarray, at: int, last: np.ndarray, earlier: np.ndarray, keys: np.ndarray
) -> bool:
    """Return whether the clause at this place holds for an event in chains.

    A predicate counts if what comes before it leaves it open: true up to an `and`, false up to an
    `or`. Otherwise it is skipped, and so is all that meets it deeper in the tree.
    """
    predicate = at + 3
    holds, deepest = True, DEEPEST_JOIN
    for _ in range(words[at + 2]):
        following = predicate + words[predicate]
        join = (words[predicate + 1] >> 2) & DEEPEST_JOIN
        if join <= deepest:
            if holds == ((join & 1) == 0):
                holds = _list_predicate_holds(words, predicate, last, earlier, keys)
                deepest = DEEPEST_JOIN
            else:
                deepest = join - 1
                if join == 0:
                    return False
        predicate = following
    return holds


@kernel
def _list_predicate_holds(
    words: np.ndarray, predicate: int, last: np.ndarray, earlier: np.ndarray, keys: np.ndarray
) -> bool:
    k, quantifier = last[words[predicate + 1] >> 8], words[predicate + 1] & 3
    following = predicate + words[predicate]
    if quantifier == ONE_KEY:
        return _is_inside(words, predicate + 2, following, keys[k] if k >= 0 else 0)
    while k >= 0 and not _is_inside(words, predicate + 2, following, keys[k]):
        k = earlier[k]
    return bool((k < 0) == (quantifier == NONE))


@kernel
def _scan_lists(
    words: np.ndarray, dimensions: np.ndarray, keys: np.ndarray, out: np.ndarray, n_out: int
) -> int:
    """Append the clauses that hold for one event; return how many ids there are, even if too many.

    The table has multi-valued dimensions or nested clauses.
    """
    last, earlier = np.full(words[0], -1, np.int64), np.empty(len(keys), np.int64)
    for k in range(len(keys)):
        place = _place(words, words[0], dimensions[k])
        if place >= 0:
            earlier[k] = last[place]
            last[place] = k
    at = _HEADER + words[0]
    for _ in range(words[1]):
        if _list_holds(words, at, last, earlier, keys):
            if n_out < len(out):
                out[n_out] = words[at + 1]
            n_out += 1
        at += words[at]
    return n_out


@kernel
def scan_pairs(words: np.ndarray, pairs: bytes, out: np.ndarray) -> int:
    """Write the clauses that hold for one event; return how many. There is room for all."""
    numbers = np.frombuffer(pairs, np.int64)
    if words[2]:
        n_pairs = len(numbers) >> 1
        pair_dimensions, pair_keys = np.empty(n_pairs, np.int32), np.empty(n_pairs, np.int64)
        for k in range(n_pairs):
            pair_dimensions[k] = numbers[2 * k]
            pair_keys[k] = numbers[2 * k + 1]
        return _scan_lists(words, pair_dimensions, pair_keys, out, 0)
    n_dimensions = words[0]
    keys = np.zeros(n_dimensions, np.int64)
    for k in range(0, len(numbers), 2):
        place = _place(words, n_dimensions, numbers[k])
        if place >= 0:
            keys[place] = numbers[k + 1]
    n_out = 0
    at = _HEADER + n_dimensions
    for _ in range(words[1]):
        if _holds(words, at, keys):
            out[n_out] = words[at + 1]
            n_out += 1
        at += words[at]
    return n_out


@kernel
def _scan_events(
    words: np.ndarray,
    offsets: np.ndarray,
    dimensions: np.ndarray,
    event_keys: np.ndarray,
    first: int,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> int:
    """Match events from `first` on; return the first one for which `out` had no room."""
    n_dimensions, n_clauses = words[0], words[1]
    keys = np.zeros(n_dimensions, np.int64)
    n_out = out_offsets[first]
    for e in range(first, len(offsets) - 1):
        start, stop = offsets[e], offsets[e + 1]
        if words[2]:
            n_out = _scan_lists(words, dimensions[start:stop], event_keys[start:stop], out, n_out)
            if n_out > len(out):
                return e
            out_offsets[e + 1] = n_out
            continue
        for k in range(start, stop):
            place = _place(words, n_dimensions, dimensions[k])
            if place >= 0:
                keys[place] = event_keys[k]
        at = _HEADER + n_dimensions
        for _ in range(n_clauses):
            if _holds(words, at, keys):
                if n_out == len(out):
                    return e
                out[n_out] = words[at + 1]
                n_out += 1
            at += words[at]
        keys[:] = 0
        out_offsets[e + 1] = n_out
    return len(offsets) - 1
