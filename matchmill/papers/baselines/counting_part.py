"""Counting over clauses that do not change: the part of the index `counting` that does the work.

    row r      a clause: clause_ids[r] ascends; needed[r] predicates are yet to hold
    holds      from a key to the rows of clauses that it brings one nearer
    fails      from a key to the rows of clauses that it takes one further away
    counters   of one call; equal to `needed` between two events

A predicate that does not accept absence must be seen to hold, so it is counted in `needed`, and a
key that it holds for takes one off. One that accepts absence holds until a key speaks against it:
it is not counted, but stored as the keys that it does not hold for, and those add one. They come
first, so that a counter that reaches zero stays there and its clause matches. Clauses that need
nothing are few; those that nothing spoke against match.

A deleted clause needs one more than it can get. Counters are as narrow as the longest clause
allows. They are brought back by following the same lists again, or, when an event has touched many,
by a copy of `needed`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ABSENT_KEY, ConjunctionTable, take_clauses
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import ClauseMatches
from matchmill.index.match_buffer import collect_matches
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.jit import int64, kernel
from matchmill.papers.baselines.key_postings import (
    MAX_LEVELS,
    KeyPostings,
    build_key_postings,
    find_nodes,
    stored_intervals,
)
from matchmill.papers.common.array_index import flat_arrays, nested_arrays
from matchmill.papers.common.clause_intervals import complement, from_table, join, to_table

__all__ = ["CountingPart"]


class PartArrays(NamedTuple):
    clause_ids: np.ndarray  # int64
    needed: np.ndarray  # int8, int16 or int32
    needless: np.ndarray  # int32, rows of clauses that need nothing
    dead: np.ndarray  # int32, rows of deleted clauses, ascending
    holds: KeyPostings
    fails: KeyPostings


def build_part(table: ConjunctionTable) -> PartArrays:
    """Clauses come with ascending ids."""
    intervals = from_table(table)
    accepts_absence = table.lows[table.interval_offsets[:-1]] == ABSENT_KEY
    if accepts_absence.any():
        is_against = np.repeat(accepts_absence, np.diff(table.interval_offsets))
        positive = intervals.take(~is_against)
        negative = complement(intervals.take(is_against))
    else:
        positive, negative = intervals, intervals.take(np.empty(0, np.int64))
    lengths = np.diff(table.clause_offsets)
    before = offsets_of(~accepts_absence)
    needed = before[table.clause_offsets[1:]] - before[table.clause_offsets[:-1]]
    # One more than a clause is long: for deleted ones.
    narrow = _narrowest(int(lengths.max(initial=0)) + 1)
    return PartArrays(
        np.ascontiguousarray(table.clause_ids),
        needed.astype(narrow),
        np.flatnonzero(needed == 0).astype(np.int32),
        np.empty(0, np.int32),
        build_key_postings(positive),
        build_key_postings(negative),
    )


def _narrowest(largest: int) -> type[np.signedinteger]:
    for kind in (np.int8, np.int16):
        if largest <= np.iinfo(kind).max:
            return kind
    return np.int32


class CountingPart:
    """Clauses counted together. Nothing in it changes; deletion makes another one."""

    def __init__(self, arrays: PartArrays) -> None:
        self._arrays = arrays
        # Counters and room for rows of calls that are over, for those to come: making a million of
        # them takes as long as matching a short event. Taking from a list is atomic.
        self._spare: list[tuple[np.ndarray, np.ndarray]] = []

    @classmethod
    def build(cls, table: ConjunctionTable) -> CountingPart:
        """Build the index from a table."""
        return cls(build_part(table))

    @property
    def n_live(self) -> int:
        """Clauses that are not deleted."""
        return len(self._arrays.clause_ids) - len(self._arrays.dead)

    @property
    def n_dead(self) -> int:
        """Clauses that are deleted."""
        return len(self._arrays.dead)

    def match_batch(self, events: EventBatch) -> tuple[ClauseMatches, int]:
        """Return the matches, and how many counters were changed on the way."""
        counters, found = self._scratch()
        n_found, n_counted = -1, 0

        def match_from(start: int, offsets: np.ndarray, out: np.ndarray) -> int:
            nonlocal n_found, n_counted
            done, n_found, n_more = _match_events(
                self._arrays, events, start, n_found, counters, found, offsets, out
            )
            n_counted += n_more
            return done

        matches = collect_matches(events.n_events, len(self._arrays.clause_ids), match_from)
        self._spare.append((counters, found))
        return matches, n_counted

    def _scratch(self) -> tuple[np.ndarray, np.ndarray]:
        try:
            return self._spare.pop()
        except IndexError:
            return self._arrays.needed.copy(), np.empty(len(self._arrays.needed), np.uint32)

    def has(self, clause_ids: np.ndarray) -> np.ndarray:
        """Return of each id whether it is here and not deleted."""
        is_there, rows = _places(self._arrays.clause_ids, clause_ids)
        is_dead, _ = _places(self._arrays.dead, rows)
        is_there[is_there] = ~is_dead
        return is_there

    def rows_of(self, clause_ids: np.ndarray) -> np.ndarray:
        """Return the rows of those that are here and not deleted; both ascend."""
        _, rows = _places(self._arrays.clause_ids, clause_ids)
        is_dead, _ = _places(self._arrays.dead, rows)
        live: np.ndarray = rows[~is_dead]
        return live

    def without(self, rows: np.ndarray) -> CountingPart:
        """Return the same part, but for these clauses."""
        needed, dead = self._arrays.needed.copy(), self._arrays.dead
        needed[rows] += 1
        dead = np.insert(dead, np.searchsorted(dead, rows), rows)
        return CountingPart(self._arrays._replace(needed=needed, dead=dead))

    def live_table(self) -> ConjunctionTable:
        """Return the clauses that are not deleted."""
        arrays = self._arrays
        absence_accepted = complement(stored_intervals(arrays.fails))
        table = to_table(arrays.clause_ids, join(stored_intervals(arrays.holds), absence_accepted))
        if self.n_dead == 0:
            return table
        return take_clauses(table, np.delete(np.arange(table.n_clauses), arrays.dead))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all that `from_arrays` needs."""
        return flat_arrays(self._arrays)

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> CountingPart:
        """Make the part again from its arrays."""
        return cls(nested_arrays(PartArrays, arrays))


def _places(ascending: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which values are there, and where those are."""
    places = np.searchsorted(ascending, values)
    is_there = np.searchsorted(ascending, values, side="right") > places
    return is_there, places[is_there]


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _count_run(
    postings: KeyPostings,
    run: int,
    step: int,
    counters: np.ndarray,
    found: np.ndarray,
    n_found: int,
) -> int:
    for k in range(postings.run_offsets[run], postings.run_offsets[run + 1]):
        row = postings.rows[k]
        count = counters[row] + step
        counters[row] = count
        if count == 0:
            found[n_found] = row
            n_found += 1
    return n_found


@kernel
def _count_event(
    postings: KeyPostings,
    events: EventBatch,
    e: int,
    step: int,
    counters: np.ndarray,
    found: np.ndarray,
    n_found: int,
) -> tuple[int, int]:
    """Add `step` to the counters that an event concerns; append rows that reach zero to `found`.

    Returns (rows in it, counters changed).
    """
    nodes = np.empty(MAX_LEVELS, np.int64)
    n_counted = 0
    for i in range(events.offsets[e], events.offsets[e + 1]):
        for j in range(find_nodes(postings, events.dimensions[i], events.keys[i], nodes)):
            node = nodes[j]
            n_found = _count_run(postings, node, step, counters, found, n_found)
            n_counted += postings.run_offsets[node + 1] - postings.run_offsets[node]
            for k in range(postings.link_offsets[node], postings.link_offsets[node + 1]):
                run = postings.links[k]
                n_found = _count_run(postings, run, step, counters, found, n_found)
                n_counted += postings.run_offsets[run + 1] - postings.run_offsets[run]
    return n_found, n_counted


@kernel
def _match_event(
    part: PartArrays, events: EventBatch, e: int, counters: np.ndarray, found: np.ndarray
) -> tuple[int, int]:
    """Write the rows that match to `found`; returns (their number, counters changed)."""
    none, one, less = int64(0), int64(1), int64(-1)  # literals would be types of their own
    _, n_failed = _count_event(part.fails, events, e, one, counters, found, none)
    n_found = none
    for row in part.needless:
        if counters[row] == 0:
            found[n_found] = row
            n_found += 1
    n_found, n_held = _count_event(part.holds, events, e, less, counters, found, n_found)
    if 32 * (n_failed + n_held) > len(counters):  # a copy takes that much less per clause
        for row in range(len(counters)):  # `counters[:] = …` takes ten times as long
            counters[row] = part.needed[row]
    else:
        _count_event(part.holds, events, e, one, counters, found, n_found)
        _count_event(part.fails, events, e, less, counters, found, n_found)
    return n_found, n_failed + n_held


@kernel
def _match_events(
    part: PartArrays,
    events: EventBatch,
    start: int,
    n_found: int,
    counters: np.ndarray,
    found: np.ndarray,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> tuple[int, int, int]:
    """Match events from `start` on; that one has n_found rows in `found` already unless it is -1.

    Returns (the first event for which `out` had no room, its n_found, counters changed).
    """
    n_events = len(events.offsets) - 1
    n_out = out_offsets[start]
    n_counted = 0
    for e in range(start, n_events):
        if n_found < 0:
            n_found, n_changed = _match_event(part, events, e, counters, found)
            n_counted += n_changed
        if n_out + n_found > len(out):
            return e, n_found, n_counted
        for i in range(n_found):
            out[n_out + i] = part.clause_ids[found[i]]
        n_out += n_found
        out_offsets[e + 1] = n_out
        n_found = -1
    return n_events, n_found, n_counted
