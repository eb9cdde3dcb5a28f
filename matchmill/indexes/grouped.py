"""Clauses in groups by their narrowest predicate, 64 events at a time.

    predicates   distinct ones; those that are sets of points (=, in) have postings by key,
                 found by binary search; all others of a dimension are tested one by one
    masks        one uint64 a predicate: for which events of the block it holds
    groups       group_offsets[p] … : the clauses whose access predicate is p
    clause c     clause_ids[c]; rest_offsets[c] … : its other predicates, narrowest first

A block fills the masks, then walks the groups of the predicates that hold for some event and ands
the masks of each clause. Predicates that accept absence start as all ones and lose the bits of
events in which they fail; their groups are walked in every block, so they give access only to
clauses that have nothing better. Clauses without predicates hold for every event.

Against a scan this skips all groups whose predicate fails in all 64 events. It is a plain and
solid default; it knows no statistics and shares nothing inside a group.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar, NamedTuple

import numpy as np

from matchmill._jit import kernel
from matchmill.encoding.conjunction_table import ABSENT_KEY, ConjunctionTable, take_ranges
from matchmill.encoding.event_batch import EventBatch
from matchmill.indexes.base import IndexStats, Matches, Statistics
from matchmill.indexes.predicate_dictionary import build_predicate_dictionary

__all__ = ["Grouped"]

_BLOCK = 64

# 2**b modulo the prime 67 differs for all b below 66.
_BIT_OF_REMAINDER = np.zeros(67, np.int64)
for _bit in range(64):
    _BIT_OF_REMAINDER[pow(2, _bit, 67)] = _bit


class GroupedArrays(NamedTuple):
    posting_offsets: np.ndarray  # postings of each dimension, int64
    posting_keys: np.ndarray  # int64, ascending inside a dimension
    posting_predicates: np.ndarray  # int32
    other_offsets: np.ndarray  # predicates of each dimension without postings, int64
    others: np.ndarray  # int32
    interval_offsets: np.ndarray  # intervals of each predicate, int64
    lows: np.ndarray
    highs: np.ndarray
    absent: np.ndarray  # predicates that accept absence, int32
    accepts_absent: np.ndarray  # uint8 a predicate
    group_offsets: np.ndarray  # clauses of each access predicate, int64
    rest_offsets: np.ndarray
    rest: np.ndarray  # int32
    clause_ids: np.ndarray  # int64: grouped clauses, then those without predicates


def build_grouped(table: ConjunctionTable) -> GroupedArrays:
    dictionary = build_predicate_dictionary(table)
    firsts = dictionary.firsts
    dimensions = table.dimensions[firsts]
    interval_offsets, intervals = take_ranges(table.interval_offsets, firsts)
    lows, highs = table.lows[intervals], table.highs[intervals]
    accepts_absent = lows[interval_offsets[:-1]] == ABSENT_KEY
    n_ranges = np.concatenate(([0], np.cumsum(lows != highs)))
    is_points = n_ranges[interval_offsets[1:]] == n_ranges[interval_offsets[:-1]]
    is_points &= ~accepts_absent

    every_dimension = np.arange(table.n_dimensions + 1)
    others = np.flatnonzero(~is_points)  # ascending by dimension, as all predicates are
    is_posting = np.repeat(is_points, np.diff(interval_offsets))
    posting_predicates = np.repeat(np.arange(len(firsts)), np.diff(interval_offsets))[is_posting]
    posting_keys = lows[is_posting]
    order = np.lexsort((posting_keys, dimensions[posting_predicates]))
    posting_predicates = posting_predicates[order]

    cost = _share_of_spaces(dimensions, interval_offsets, lows, highs) + accepts_absent
    group_offsets, rest_offsets, rest, clause_ids = _build_groups(table, dictionary.ids, cost)
    return GroupedArrays(
        np.searchsorted(dimensions[posting_predicates], every_dimension),
        posting_keys[order],
        posting_predicates.astype(np.int32),
        np.searchsorted(dimensions[others], every_dimension),
        others.astype(np.int32),
        interval_offsets,
        lows,
        highs,
        np.flatnonzero(accepts_absent).astype(np.int32),
        accepts_absent.astype(np.uint8),
        group_offsets,
        rest_offsets,
        rest,
        clause_ids,
    )


def _share_of_spaces(
    dimensions: np.ndarray, interval_offsets: np.ndarray, lows: np.ndarray, highs: np.ndarray
) -> np.ndarray:
    """For each predicate the share of its dimension's bounds that it covers: a guess at how often
    it holds, without any knowledge of events."""
    owners = np.repeat(np.arange(len(dimensions)), np.diff(interval_offsets))
    bounds = np.unique(np.concatenate((lows, highs)))
    place = dimensions[owners].astype(np.int64) * len(bounds)  # all dimensions on one line
    low, high = place + np.searchsorted(bounds, lows), place + np.searchsorted(bounds, highs)
    spaces = np.unique(np.concatenate((low, high)))
    covered = np.searchsorted(spaces, high) - np.searchsorted(spaces, low) + 1
    per_dimension = np.bincount(spaces // max(len(bounds), 1), minlength=1)
    totals = np.bincount(owners, weights=covered, minlength=len(dimensions))
    shares: np.ndarray = totals / per_dimension[dimensions]
    return shares


def _build_groups(
    table: ConjunctionTable, ids: np.ndarray, cost: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Order predicates inside clauses by cost; the first one gives access."""
    lengths = np.diff(table.clause_offsets)
    owner = np.repeat(np.arange(table.n_clauses), lengths)
    by_cost = np.lexsort((cost[ids], owner))
    ids = ids[by_cost]
    some = np.flatnonzero(lengths > 0)
    access = ids[table.clause_offsets[some]]
    order = np.argsort(access, kind="stable")
    group_offsets = np.searchsorted(access[order], np.arange(len(cost) + 1)).astype(np.int64)
    rows = some[order]
    starts, stops = table.clause_offsets[rows] + 1, table.clause_offsets[rows + 1]
    counts = stops - starts
    rest_offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    within = np.arange(rest_offsets[-1]) - np.repeat(rest_offsets[:-1], counts)
    rest = ids[np.repeat(starts, counts) + within]
    empty = np.flatnonzero(lengths == 0)
    clause_ids = np.concatenate((table.clause_ids[rows], table.clause_ids[empty]))
    return group_offsets, rest_offsets, rest, clause_ids


# -- matching -------------------------------------------------------------------------------------


@kernel
def _set_bits(
    index: GroupedArrays,
    dimension: int,
    key: int,
    bit: Any,
    masks: np.ndarray,
    live: np.ndarray,
    n_live: int,
) -> int:
    """Record which predicates of a dimension a key satisfies; returns the new number of live."""
    low, stop = index.posting_offsets[dimension], index.posting_offsets[dimension + 1]
    high = stop
    while low < high:
        middle = (low + high) >> 1
        if index.posting_keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    while low < stop and index.posting_keys[low] == key:
        p = index.posting_predicates[low]
        if masks[p] == 0:
            live[n_live] = p
            n_live += 1
        masks[p] |= bit
        low += 1
    for i in range(index.other_offsets[dimension], index.other_offsets[dimension + 1]):
        p = index.others[i]
        inside = False
        for k in range(index.interval_offsets[p], index.interval_offsets[p + 1]):
            if index.lows[k] <= key <= index.highs[k]:
                inside = True
                break
        if index.accepts_absent[p]:
            if not inside:
                masks[p] &= ~bit
        elif inside:
            if masks[p] == 0:
                live[n_live] = p
                n_live += 1
            masks[p] |= bit
    return n_live


@kernel
def lowest_bit(mask: Any) -> int:
    """The number of the lowest bit that is set, by its remainder."""
    isolated = mask & (~mask + np.uint64(1))
    return int(_BIT_OF_REMAINDER[isolated % np.uint64(67)])


@kernel
def _emit(mask: Any, first_event: int, clause_id: int, out: np.ndarray, n_out: int) -> int:
    while mask != 0:
        if n_out < len(out):
            out[n_out, 0] = first_event + lowest_bit(mask)
            out[n_out, 1] = clause_id
        n_out += 1
        mask &= mask - np.uint64(1)
    return n_out


@kernel
def _walk_group(
    index: GroupedArrays, p: int, masks: np.ndarray, first: int, out: np.ndarray, n_out: int
) -> int:
    for c in range(index.group_offsets[p], index.group_offsets[p + 1]):
        mask = masks[p]
        for k in range(index.rest_offsets[c], index.rest_offsets[c + 1]):
            mask &= masks[index.rest[k]]
            if mask == 0:
                break
        if mask:
            n_out = _emit(mask, first, index.clause_ids[c], out, n_out)
    return n_out


@kernel
def _match_block(
    index: GroupedArrays,
    events: EventBatch,
    first: int,
    masks: np.ndarray,
    live: np.ndarray,
    out: np.ndarray,
    n_out: int,
) -> tuple[int, int]:
    """Match up to 64 events from `first`; returns (pairs so far, clauses looked at)."""
    last = min(first + 64, len(events.offsets) - 1)
    everyone = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - (last - first))
    n_live = 0
    for p in index.absent:
        masks[p] = everyone
    for e in range(first, last):
        bit = np.uint64(1) << np.uint64(e - first)
        for k in range(events.offsets[e], events.offsets[e + 1]):
            dimension = events.dimensions[k]
            if dimension < len(index.other_offsets) - 1:
                n_live = _set_bits(index, dimension, events.keys[k], bit, masks, live, n_live)
    candidates = 0
    for i in range(n_live):
        p = live[i]
        candidates += index.group_offsets[p + 1] - index.group_offsets[p]
        n_out = _walk_group(index, p, masks, first, out, n_out)
    for p in index.absent:
        if masks[p]:
            candidates += index.group_offsets[p + 1] - index.group_offsets[p]
            n_out = _walk_group(index, p, masks, first, out, n_out)
    for c in range(len(index.rest_offsets) - 1, len(index.clause_ids)):
        n_out = _emit(everyone, first, index.clause_ids[c], out, n_out)
    for i in range(n_live):
        masks[live[i]] = 0
    return n_out, candidates


@kernel
def _match_events(
    index: GroupedArrays,
    events: EventBatch,
    first: int,
    masks: np.ndarray,
    live: np.ndarray,
    out: np.ndarray,
    n_out: int,
) -> tuple[int, int, int]:
    """Blocks from `first` on; returns (next event, pairs written, clauses looked at).

    Stops at the block for which `out` had no room."""
    n_events = len(events.offsets) - 1
    candidates = 0
    while first < n_events:
        n_after, seen = _match_block(index, events, first, masks, live, out, n_out)
        if n_after > len(out):
            break
        n_out = n_after
        candidates += seen
        first += 64
    return min(first, n_events), n_out, candidates


@kernel
def _sort_by_event(n_events: int, pairs: np.ndarray, out: np.ndarray) -> np.ndarray:
    offsets = np.zeros(n_events + 1, np.int64)
    for k in range(len(pairs)):
        offsets[pairs[k, 0] + 1] += 1
    for e in range(n_events):
        offsets[e + 1] += offsets[e]
    cursor = offsets[:-1].copy()
    for k in range(len(pairs)):
        out[cursor[pairs[k, 0]]] = pairs[k, 1]
        cursor[pairs[k, 0]] += 1
    return offsets


class Grouped:
    """Clauses grouped by their narrowest predicate, 64 events at a time."""

    name: ClassVar[str] = "grouped"

    def __init__(self, arrays: GroupedArrays, build_seconds: float = 0.0) -> None:
        self._arrays = arrays
        self._build_seconds = build_seconds
        self._candidates = 0

    @classmethod
    def build(
        cls, table: ConjunctionTable, statistics: Statistics | None = None, **options: Any
    ) -> Grouped:
        started = time.perf_counter()
        arrays = build_grouped(table)
        return cls(arrays, time.perf_counter() - started)

    def match_batch(self, events: EventBatch) -> Matches:
        n_predicates = len(self._arrays.accepts_absent)
        masks = np.zeros(n_predicates, np.uint64)
        live = np.empty(n_predicates, np.int32)
        out = np.empty((max(1024, 4 * events.n_events), 2), np.int64)
        first = n_out = 0
        while True:
            first, n_out, seen = _match_events(self._arrays, events, first, masks, live, out, n_out)
            self._candidates += seen
            if first == events.n_events:
                break
            room = min(_BLOCK * len(self._arrays.clause_ids), len(out)) + len(out)
            wider = np.empty((room, 2), np.int64)
            wider[:n_out] = out[:n_out]
            out = wider
        clause_ids = np.empty(n_out, np.int64)
        return Matches(_sort_by_event(events.n_events, out[:n_out], clause_ids), clause_ids)

    def arrays(self) -> dict[str, np.ndarray]:
        return self._arrays._asdict()

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Grouped:
        return cls(GroupedArrays(**arrays))

    def stats(self) -> IndexStats:
        n_bytes = sum(a.nbytes for a in self._arrays)
        n_clauses = len(self._arrays.clause_ids)
        return IndexStats(n_clauses, n_bytes, self._build_seconds, self._candidates)
