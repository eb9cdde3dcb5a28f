"""What each clause costs: how often an entry of it is looked at, and how often it holds.

    counters    as long as the blocks in pieces of 32 bits: at the id of an entry, how often that
                held; at the first header of a slot, how often the slot was visited

All entries of a slot are looked at when it is visited, so one counter serves for them all. A walk
over the blocks of all slots then adds up by clause. Made for reports, not for matching: a simple
walk, and counters that take as much memory as the blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchmill.encoding.event_batch import EventBatch
from matchmill.index.mill.arrays import (
    FOLDED_BIT,
    IDS,
    MOST_TESTS,
    N_ENTRIES,
    N_MASKS,
    N_POINTS,
    POOL,
    SIZES,
    SLOT_PLACES,
    TESTS,
    WORDS,
    BlockViews,
    MillArrays,
    mill_places,
)
from matchmill.index.mill.build.inline_tests import private_holds
from matchmill.index.mill.build.slot_dictionaries import missing_tests
from matchmill.index.mill.match.single import (
    CODES,
    EVENT_OFFSETS,
    TRUTH,
    VALUES,
    VISITS,
    enter_event,
    leave_event,
    new_state,
)
from matchmill.kernels.intrinsics import array_at, places_of
from matchmill.kernels.jit import int64, kernel, uint64

__all__ = ["clause_costs"]

_ZERO, _ONE = uint64(0), uint64(1)


def clause_costs(
    mill: MillArrays, views: BlockViews, events: EventBatch
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ids of all clauses, ascending; how often each was looked at; how often each held."""
    places = mill_places(mill, views)
    nothing = np.empty(0, np.int32)
    state = new_state(mill, events, np.empty(0, np.int64), nothing)
    counters = np.zeros(len(views.ids), np.int32)
    done = 0
    while done < events.n_events:
        done, n_slots = _count_events(places, places_of(*state), done, counters)
        if n_slots > len(state.visits):
            state = state._replace(visits=np.empty(2 * n_slots, np.int64))
    n_entries = int(mill.sizes[N_ENTRIES])
    ids = np.empty(n_entries, np.int64)
    checked, held = np.empty(n_entries, np.int64), np.empty(n_entries, np.int64)
    _gather(places, counters, ids, checked, held)
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
def _block(words: np.ndarray, place: int) -> tuple[bool, int, int, int, int, int, int]:
    """Of the block at a place: whether it is folded; entries, tests and privates of an entry; where
    its tests, ids and privates begin. Masks end where tests begin. A dictionary has no entries, and
    ends where privates would begin."""
    header = words[place]
    n = int64(header >> uint64(40))
    n_tests = int64((header >> uint64(23)) & uint64(MOST_TESTS))
    n_privates = int64((header >> _ONE) & uint64(0xFFFFF))
    is_folded = (header >> uint64(FOLDED_BIT)) & _ONE != _ZERO
    test_at = 4 * (int64(place) + 1 + (n if is_folded else 0))
    id_at = (test_at + (n if n > 0 else 1) * n_tests + 1) >> 1
    return is_folded, n, n_tests, n_privates, test_at, id_at, (id_at + n + 1) >> 1


@kernel
def _count_slot(mill: Any, state: Any, place: int, counters: np.ndarray) -> None:
    sizes, words = array_at(mill, SIZES, np.int64), array_at(mill, WORDS, np.uint64)
    tests, pool = array_at(mill, TESTS, np.uint16), array_at(mill, POOL, np.int32)
    truth, values = array_at(state, TRUTH, np.uint8), array_at(state, VALUES, np.int32)
    codes = array_at(state, CODES, np.int32)
    n_masks, n_points = sizes[N_MASKS], sizes[N_POINTS]
    counters[2 * place] += 1
    missing = _ZERO  # tests of the slot's dictionary that do not hold
    follows = True
    while follows:
        follows = words[place] & _ONE != _ZERO
        is_folded, n, n_tests, n_privates, test_at, id_at, private_at = _block(words, place)
        place = private_at + n * n_privates
        if n == 0:
            missing = missing_tests(truth, tests, test_at, n_tests)
        mask_at = (test_at >> 2) - n
        for e in range(n):
            holds = not is_folded or words[mask_at + e] & missing == _ZERO
            for k in range(test_at + e * n_tests, test_at + (e + 1) * n_tests):
                if holds:
                    holds = truth[tests[k]] != 0
            if holds:
                start = private_at + e * n_privates
                stop = start + n_privates
                if private_holds(n_masks, n_points, words, pool, start, stop, values, codes):
                    counters[id_at + e] += 1


@kernel
def _count_events(mill: Any, state: Any, start: int, counters: np.ndarray) -> tuple[int, int]:
    """Counts from event `start` on; returns (the first one with too many slots, slots it has)."""
    offsets, visits = array_at(state, EVENT_OFFSETS, np.int64), array_at(state, VISITS, np.int64)
    for e in range(start, len(offsets) - 1):
        n_slots = enter_event(mill, state, offsets[e], offsets[e + 1])
        if n_slots <= len(visits):
            for i in range(n_slots):
                _count_slot(mill, state, visits[i] >> 24, counters)
        leave_event(mill, state, offsets[e], offsets[e + 1])
        if n_slots > len(visits):
            return e, n_slots
    return len(offsets) - 1, 0


@kernel
def _gather(
    mill: Any,
    counters: np.ndarray,
    out_ids: np.ndarray,
    out_checked: np.ndarray,
    out_held: np.ndarray,
) -> None:
    """All entries: the clause, and its two counts."""
    words, ids = array_at(mill, WORDS, np.uint64), array_at(mill, IDS, np.uint32)
    m = 0
    for slot_place in array_at(mill, SLOT_PLACES, np.int64):
        place = slot_place >> 24
        follows = slot_place > 0
        while follows:
            n_visits = counters[2 * (slot_place >> 24)]
            follows = words[place] & _ONE != _ZERO
            _, n, _, n_privates, _, id_at, private_at = _block(words, place)
            place = private_at + n * n_privates
            for k in range(id_at, id_at + n):
                out_ids[m] = ids[k]
                out_checked[m] = n_visits
                out_held[m] = counters[k]
                m += 1
