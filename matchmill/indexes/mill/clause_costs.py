"""What each clause costs: how often an entry of it is looked at, and how often it holds.

    counters    as long as the blocks in pieces of 32 bits: at the id of an entry, how often that
                held; at the first header of a slot, how often the slot was visited

All entries of a slot are looked at when it is visited, so one counter serves for them all. A walk
over the blocks of all slots then adds up by clause. Made for reports, not for matching: a simple
walk, and counters that take as much memory as the blocks.
"""

from __future__ import annotations

import numpy as np

from matchmill._jit import int64, kernel, uint64
from matchmill.encoding.event_batch import EventBatch
from matchmill.indexes.mill.arrays import N_ENTRIES, N_MASKS, N_POINTS, MillArrays
from matchmill.indexes.mill.one_event import BlockViews, EventState, _enter, _leave, new_state
from matchmill.indexes.mill.privates import private_holds

__all__ = ["clause_costs"]

_ZERO, _ONE = uint64(0), uint64(1)


def clause_costs(
    mill: MillArrays, views: BlockViews, events: EventBatch
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ids of all clauses, ascending; how often each was looked at; how often each held."""
    state = new_state(mill)
    counters = np.zeros(len(views.ids), np.int32)
    done = 0
    while done < events.n_events:
        done, n_slots = _count_events(mill, views, state, events, done, counters)
        if n_slots > len(state.places):
            state = state._replace(places=np.empty(2 * n_slots, np.int64))
    n_entries = int(mill.sizes[N_ENTRIES])
    ids = np.empty(n_entries, np.int64)
    checked, held = np.empty(n_entries, np.int64), np.empty(n_entries, np.int64)
    _gather(mill, views, counters, ids, checked, held)
    if n_entries == 0:
        return ids, checked, held
    if len(mill.clause_ids):
        ids = mill.clause_ids[ids]
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    starts = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))
    return (
        ids[starts],
        np.add.reduceat(checked[order], starts),
        np.add.reduceat(held[order], starts),
    )


@kernel
def _block(words: np.ndarray, place: int) -> tuple[int, int, int, int, int, int]:
    """Of the block at a place: entries, tests and privates of an entry; where its tests, ids and
    privates begin."""
    header = words[place]
    n = int64(header >> uint64(40))
    n_tests = int64((header >> uint64(23)) & uint64(0x1FFFF))
    n_privates = int64((header >> _ONE) & uint64(0x3FFFFF))
    test_at = 4 * (int64(place) + 1)
    id_at = (test_at + n * n_tests + 1) >> 1
    return n, n_tests, n_privates, test_at, id_at, (id_at + n + 1) >> 1


@kernel
def _holds(truth: np.ndarray, test: int) -> bool:
    return bool((truth[test >> 6] >> uint64(test & 63)) & _ONE != _ZERO)


@kernel
def _count_slot(
    mill: MillArrays, views: BlockViews, state: EventState, place: int, counters: np.ndarray
) -> None:
    words, tests, truth = mill.words, views.tests, state.truth
    n_masks, n_points = mill.sizes[N_MASKS], mill.sizes[N_POINTS]
    counters[2 * place] += 1
    follows = True
    while follows:
        follows = words[place] & _ONE != _ZERO
        n, n_tests, n_privates, test_at, id_at, private_at = _block(words, place)
        place = private_at + n * n_privates
        for e in range(n):
            holds = True
            for k in range(test_at + e * n_tests, test_at + (e + 1) * n_tests):
                if holds:
                    holds = _holds(truth, int64(tests[k]))
            if holds:
                start = private_at + e * n_privates
                stop = start + n_privates
                if private_holds(
                    n_masks, n_points, words, mill.pool, start, stop, state.values, state.codes
                ):
                    counters[id_at + e] += 1


@kernel
def _count_events(
    mill: MillArrays,
    views: BlockViews,
    state: EventState,
    events: EventBatch,
    start: int,
    counters: np.ndarray,
) -> tuple[int, int]:
    """Counts from event `start` on; returns (the first one with too many slots, slots it has)."""
    for e in range(start, len(events.offsets) - 1):
        dimensions = events.dimensions[events.offsets[e] : events.offsets[e + 1]]
        keys = events.keys[events.offsets[e] : events.offsets[e + 1]]
        n_slots = _enter(mill, state, dimensions, keys)
        if n_slots <= len(state.places):
            for i in range(n_slots):
                _count_slot(mill, views, state, state.places[i] >> 24, counters)
        _leave(mill, state, dimensions)
        if n_slots > len(state.places):
            return e, n_slots
    return len(events.offsets) - 1, 0


@kernel
def _gather(
    mill: MillArrays,
    views: BlockViews,
    counters: np.ndarray,
    out_ids: np.ndarray,
    out_checked: np.ndarray,
    out_held: np.ndarray,
) -> None:
    """All entries: the clause, and its two counts."""
    words = mill.words
    m = 0
    for slot_place in mill.slot_places:
        place = slot_place >> 24
        follows = slot_place > 0
        while follows:
            n_visits = counters[2 * (slot_place >> 24)]
            follows = words[place] & _ONE != _ZERO
            n, _, n_privates, _, id_at, private_at = _block(words, place)
            place = private_at + n * n_privates
            for k in range(id_at, id_at + n):
                out_ids[m] = views.ids[k]
                out_checked[m] = n_visits
                out_held[m] = counters[k]
                m += 1
