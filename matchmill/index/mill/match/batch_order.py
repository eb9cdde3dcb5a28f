"""Events in an order in which those that visit the same slots are neighbours.

Matching 64 events at a time reads each slot once for all of them, so it gains by what they have
in common. Events are sorted by their codes on a few *telling dimensions*: those through which a
sample of them visits large slots again and again. What is found is put back into the order of the
batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import ClauseMatches
from matchmill.index.mill.arrays import (
    ACCESS_WORDS,
    BELOW_KEY,
    DIMENSIONS,
    EDGE_START,
    EDGE_STOP,
    EDGES,
    FIRST_WORD,
    GROUP_START,
    LAST_KEY,
    N_FIELDS,
    N_SLOTS,
    N_WORDS,
    NODE_START,
    PAIR_WIDTH,
    PAIRS,
    ROW_OF_CODE,
    ROW_START,
    ROWS,
    SIZES,
    SLOT_PLACES,
    USED_LEVELS,
    MillArrays,
)
from matchmill.index.predicate_codes import code_of
from matchmill.kernels.intrinsics import array_at, table_at, trailing_zeros
from matchmill.kernels.jit import int64, kernel, uint64

__all__ = ["in_batch_order", "sorted_alike", "telling_dimensions"]

_SAMPLE = 256
_MOST_DIMENSIONS = 3
_CODE_BITS = 21  # of each of them in one number


def telling_dimensions(mill: MillArrays, places: Any, events: EventBatch) -> np.ndarray:
    """At most three, the most telling first; `places` are those of the index."""
    weights = np.zeros(len(mill.dimensions))
    _weigh(
        places,
        events.offsets,
        events.dimensions,
        events.keys,
        max(1, events.n_events // _SAMPLE),
        np.zeros(int(mill.sizes[N_SLOTS]), np.int32),
        np.full(len(weights), -1, np.int64),
        weights,
    )
    best = np.argsort(-weights, kind="stable")[:_MOST_DIMENSIONS]
    return best[weights[best] > 0]


def sorted_alike(
    places: Any, dimensions: np.ndarray, events: EventBatch
) -> tuple[np.ndarray, EventBatch]:
    """The order, and the events in it."""
    ranks = np.empty(events.n_events, np.int64)
    _rank_events(places, dimensions, events.offsets, events.dimensions, events.keys, ranks)
    order = np.argsort(ranks)
    moved = EventBatch(
        np.zeros_like(events.offsets), np.empty_like(events.dimensions), np.empty_like(events.keys)
    )
    _move_pairs(order, *events, *moved)
    return order, moved


def in_batch_order(order: np.ndarray, matches: ClauseMatches) -> ClauseMatches:
    """Matches of events that were sorted, as those of the batch."""
    counts = np.empty(len(order), np.int64)
    counts[order] = np.diff(matches.offsets)
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    ids = np.empty_like(matches.clause_ids)
    _move_ids(order, matches.offsets, matches.clause_ids, offsets, ids)
    return ClauseMatches(offsets, ids)


@kernel
def _count_visit(slot_places: np.ndarray, counts: np.ndarray, slot: int) -> float:
    """Counts the visit of a slot; returns the slot's length if it was visited before."""
    counts[slot] += 1
    return float(slot_places[slot] & 0xFFFFFF) if counts[slot] > 1 else 0.0


@kernel
def _weigh(
    mill: Any,
    offsets: np.ndarray,
    event_dimensions: np.ndarray,
    keys: np.ndarray,
    step: int,
    counts: np.ndarray,
    codes: np.ndarray,
    out_weights: np.ndarray,
) -> None:
    """For each dimension, the length of the slots that it leads to, but for their first visits.
    A pair counts for both of its dimensions."""
    sizes, fields = array_at(mill, SIZES, np.int64), table_at(mill, DIMENSIONS, np.int64, N_FIELDS)
    edges, rows = array_at(mill, EDGES, np.int64), array_at(mill, ROWS, np.uint64)
    row_of_code = array_at(mill, ROW_OF_CODE, np.int32)
    access_words = array_at(mill, ACCESS_WORDS, np.uint64)
    slot_places = array_at(mill, SLOT_PLACES, np.int64)
    pairs = table_at(mill, PAIRS, np.int64, PAIR_WIDTH)
    for e in range(0, len(offsets) - 1, step):
        for k in range(offsets[e], offsets[e + 1]):
            d = int64(event_dimensions[k])
            if d >= len(fields):
                continue
            code = code_of(edges, fields[d, EDGE_START], fields[d, EDGE_STOP], keys[k])
            codes[d] = code
            levels, slot, level = fields[d, USED_LEVELS], fields[d, NODE_START], 0
            while levels != 0:
                if levels & 1 and (code > 0 or level == 0):
                    out_weights[d] += _count_visit(slot_places, counts, slot + (code >> level))
                slot += ((fields[d, EDGE_STOP] - fields[d, EDGE_START]) >> level) + 1
                level += 1
                levels >>= 1
            if fields[d, ROW_START] >= 0:
                row = int64(row_of_code[fields[d, ROW_START] + code])
                for w in range(fields[d, N_WORDS]):
                    word = fields[d, FIRST_WORD] + w
                    bits = rows[row + w] & access_words[word]
                    while bits != 0:
                        slot = sizes[GROUP_START] + (word << 6) + trailing_zeros(bits)
                        out_weights[d] += _count_visit(slot_places, counts, slot)
                        bits &= bits - uint64(1)
        for p in range(len(pairs)):
            a, b = codes[pairs[p, 0]], codes[pairs[p, 1]]
            if a > 0 and b > 0:
                slot = pairs[p, 2] + a * pairs[p, 3] + b
                length = _count_visit(slot_places, counts, slot)
                out_weights[pairs[p, 0]] += length
                out_weights[pairs[p, 1]] += length
        for k in range(offsets[e], offsets[e + 1]):
            if event_dimensions[k] < len(fields):
                codes[event_dimensions[k]] = -1


@kernel
def _rank_events(
    mill: Any,
    telling: np.ndarray,
    offsets: np.ndarray,
    dimensions: np.ndarray,
    keys: np.ndarray,
    out: np.ndarray,
) -> None:
    """A number for each event, by which to sort: its codes on the telling dimensions."""
    fields = table_at(mill, DIMENSIONS, np.int64, N_FIELDS)
    edges = array_at(mill, EDGES, np.int64)
    shifts = np.full(len(fields), -1, np.int64)
    for i in range(len(telling)):
        shifts[telling[i]] = _CODE_BITS * (_MOST_DIMENSIONS - 1 - i)
    for e in range(len(out)):
        rank = int64(0)
        for k in range(offsets[e], offsets[e + 1]):
            d = int64(dimensions[k])
            if d < len(fields) and shifts[d] >= 0:
                below, last_key = fields[d, BELOW_KEY], fields[d, LAST_KEY]
                code = min(max(keys[k], below), last_key) - below
                if last_key < below:
                    code = code_of(edges, fields[d, EDGE_START], fields[d, EDGE_STOP], keys[k])
                most = fields[d, EDGE_STOP] - fields[d, EDGE_START]
                while most >> _CODE_BITS > 0:
                    most >>= 1
                    code >>= 1
                rank |= code << shifts[d]
        out[e] = rank


@kernel
def _move_pairs(
    order: np.ndarray,
    offsets: np.ndarray,
    dimensions: np.ndarray,
    keys: np.ndarray,
    out_offsets: np.ndarray,
    out_dimensions: np.ndarray,
    out_keys: np.ndarray,
) -> None:
    n = int64(0)
    for i in range(len(order)):
        for k in range(offsets[order[i]], offsets[order[i] + 1]):
            out_dimensions[n] = dimensions[k]
            out_keys[n] = keys[k]
            n += 1
        out_offsets[i + 1] = n


@kernel
def _move_ids(
    order: np.ndarray,
    offsets: np.ndarray,
    ids: np.ndarray,
    out_offsets: np.ndarray,
    out_ids: np.ndarray,
) -> None:
    for i in range(len(order)):
        at = out_offsets[order[i]] - offsets[i]
        for k in range(offsets[i], offsets[i + 1]):
            out_ids[at + k] = ids[k]
