"""Events in an order in which those that visit the same slots are neighbours.

Matching 64 events at a time reads each slot once for all of them, so it gains by what they have
in common. Events are sorted by their codes on a few *sort dimensions*: those through which a
sample of them visits large slots again and again. What is found is put back into the order of the
batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import ClauseMatches
from matchmill.index.mill.arrays import (
    EDGE_START,
    EDGE_STOP,
    FIRST_WORD,
    GROUP_START,
    N_SLOTS,
    N_WORDS,
    PAIR_FIRST,
    PAIR_SECOND,
    ROW_START,
    MillArrays,
    access_words_of,
    dimensions_of,
    edges_of,
    pairs_of,
    row_of_code_of,
    rows_of,
    sizes_of,
    slot_places_of,
)
from matchmill.index.mill.match.lookups import (
    MOST_LEVELS,
    code_of_key,
    find_levels,
    group_slot,
    pair_slot,
)
from matchmill.index.mill.words import slot_length, slot_on_level
from matchmill.kernels.addresses import borrowed
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.intrinsics import trailing_zeros
from matchmill.kernels.jit import int64, kernel, uint64

__all__ = ["find_sort_dimensions", "in_batch_order", "sort_events"]

_SAMPLE = 256
_MOST_DIMENSIONS = 3
_CODE_BITS = 21  # of each of them in one number


def find_sort_dimensions(mill: MillArrays, addresses: Any, events: EventBatch) -> np.ndarray:
    """Return at most three dimensions, the most useful first; `addresses` are those of `mill`."""
    weights = np.zeros(len(mill.dimensions))
    _weigh(
        addresses,
        events,
        max(1, events.n_events // _SAMPLE),
        np.zeros(int(mill.sizes[N_SLOTS]), np.int32),
        np.full(len(weights), -1, np.int64),
        weights,
    )
    best = np.argsort(-weights, kind="stable")[:_MOST_DIMENSIONS]
    return best[weights[best] > 0]


def sort_events(
    addresses: Any, dimensions: np.ndarray, events: EventBatch
) -> tuple[np.ndarray, EventBatch]:
    """Sort events by their codes on some dimensions; return the order, and the events in it."""
    ranks = np.empty(events.n_events, np.int64)
    _rank_events(addresses, dimensions, events, ranks)
    order = np.argsort(ranks)
    moved = EventBatch(
        np.zeros_like(events.offsets), np.empty_like(events.dimensions), np.empty_like(events.keys)
    )
    _move_pairs(order, events, moved)
    return order, moved


def in_batch_order(order: np.ndarray, matches: ClauseMatches) -> ClauseMatches:
    """Return the matches of events that were sorted in the order of the batch."""
    counts = np.empty(len(order), np.int64)
    counts[order] = np.diff(matches.offsets)
    offsets = offsets_of(counts)
    ids = np.empty_like(matches.clause_ids)
    _move_ids(order, matches.offsets, matches.clause_ids, offsets, ids)
    return ClauseMatches(offsets, ids)


@kernel
def _count_visit(slot_places: np.ndarray, counts: np.ndarray, slot: int) -> float:
    """Count the visit of a slot; return the slot's length if it was visited before."""
    counts[slot] += 1
    return float(slot_length(slot_places[slot])) if counts[slot] > 1 else 0.0


@kernel
def _weigh_code(mill: Any, d: int, code: int, levels: np.ndarray, counts: np.ndarray) -> float:
    """Return the length of the slots that one code leads to, without those visited first."""
    fields, slot_places = dimensions_of(mill), slot_places_of(mill)
    rows, access_words = rows_of(mill), access_words_of(mill)
    weight = 0.0
    n_levels = find_levels(fields, d, levels)
    for i in range(n_levels if code > 0 else min(n_levels, 1)):
        weight += _count_visit(slot_places, counts, slot_on_level(levels[i], code))
    if fields[d, ROW_START] >= 0:
        row = int64(row_of_code_of(mill)[fields[d, ROW_START] + code])
        for w in range(fields[d, N_WORDS]):
            word = fields[d, FIRST_WORD] + w
            bits = rows[row + w] & access_words[word]
            while bits != 0:
                slot = group_slot(sizes_of(mill)[GROUP_START], word) + trailing_zeros(bits)
                weight += _count_visit(slot_places, counts, slot)
                bits &= bits - uint64(1)
    return weight


@kernel
def _weigh(
    mill: Any,
    events: EventBatch,
    step: int,
    counts: np.ndarray,
    codes: np.ndarray,
    out_weights: np.ndarray,
) -> None:
    """Weigh each dimension: the length of the slots that it leads to, but for their first visits.

    Only every so many events count. A pair counts for both of its dimensions.
    """
    mill = borrowed(mill)
    fields, edges = dimensions_of(mill), edges_of(mill)
    slot_places, pairs = slot_places_of(mill), pairs_of(mill)
    levels = np.empty(MOST_LEVELS, np.int64)
    offsets, event_dimensions, keys = events.offsets, events.dimensions, events.keys
    for e in range(0, len(offsets) - 1, step):
        for k in range(offsets[e], offsets[e + 1]):
            d = int64(event_dimensions[k])
            if d < len(fields):
                codes[d] = code_of_key(fields, edges, d, keys[k])
                out_weights[d] += _weigh_code(mill, d, codes[d], levels, counts)
        for p in range(len(pairs)):
            first, second = pairs[p, PAIR_FIRST], pairs[p, PAIR_SECOND]
            if codes[first] > 0 and codes[second] > 0:
                slot = pair_slot(pairs, p, codes[first], codes[second])
                length = _count_visit(slot_places, counts, slot)
                out_weights[first] += length
                out_weights[second] += length
        for k in range(offsets[e], offsets[e + 1]):
            if event_dimensions[k] < len(fields):
                codes[event_dimensions[k]] = -1


@kernel
def _rank_events(
    mill: Any, sort_dimensions: np.ndarray, events: EventBatch, out: np.ndarray
) -> None:
    """Compute a number for each event, by which to sort: its codes on the sort dimensions."""
    fields, edges = dimensions_of(mill), edges_of(mill)
    offsets, dimensions, keys = events.offsets, events.dimensions, events.keys
    shifts = np.full(len(fields), -1, np.int64)
    for i in range(len(sort_dimensions)):
        shifts[sort_dimensions[i]] = _CODE_BITS * (_MOST_DIMENSIONS - 1 - i)
    for e in range(len(out)):
        rank = int64(0)
        for k in range(offsets[e], offsets[e + 1]):
            d = int64(dimensions[k])
            if d < len(fields) and shifts[d] >= 0:
                code = code_of_key(fields, edges, d, keys[k])
                most = fields[d, EDGE_STOP] - fields[d, EDGE_START]
                while most >> _CODE_BITS > 0:
                    most >>= 1
                    code >>= 1
                rank |= code << shifts[d]
        out[e] = rank


@kernel
def _move_pairs(order: np.ndarray, events: EventBatch, out: EventBatch) -> None:
    n = int64(0)
    for i in range(len(order)):
        for k in range(events.offsets[order[i]], events.offsets[order[i] + 1]):
            out.dimensions[n] = events.dimensions[k]
            out.keys[n] = events.keys[k]
            n += 1
        out.offsets[i + 1] = n


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
