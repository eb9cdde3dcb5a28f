"""What each clause costs: how often an entry of it is looked at, and how often it holds.

    counters    as long as `words` in pieces of 32 bits: at the id of an entry, how often that
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
    N_ENTRIES,
    MillArrays,
    ids_of,
    pool_of,
    sizes_of,
    slot_places_of,
    tests_of,
    words_of,
)
from matchmill.index.mill.match.event_state import (
    codes_of,
    event_offsets_of,
    new_event_state,
    truth_of,
    values_of,
    visits_of,
)
from matchmill.index.mill.match.inline_tests import inline_tests_hold, missing_tests
from matchmill.index.mill.match.single import enter_event, leave_event
from matchmill.index.mill.words import block_at, slot_start
from matchmill.kernels.addresses import addresses_of, borrowed
from matchmill.kernels.jit import kernel, uint64

__all__ = ["clause_costs"]

_ZERO = uint64(0)


def clause_costs(mill: MillArrays, events: EventBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the ids of all clauses, ascending; how often each was looked at; how often it held."""
    addresses = addresses_of(mill)
    state = new_event_state(mill, events, np.empty(0, np.int64), np.empty(0, np.int32))
    counters = np.zeros(2 * len(mill.words), np.int32)
    done = 0
    while done < events.n_events:
        done, n_slots = _count_events(addresses, addresses_of(state), done, counters)
        if n_slots > len(state.visits):
            state = state._replace(visits=np.empty(2 * n_slots, np.int64))
    n_entries = int(mill.sizes[N_ENTRIES])
    ids = np.empty(n_entries, np.int64)
    checked, held = np.empty(n_entries, np.int64), np.empty(n_entries, np.int64)
    _gather(addresses, counters, ids, checked, held)
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
def _count_slot(mill: Any, state: Any, start: int, counters: np.ndarray) -> None:
    """Count a visit of a slot, and those of its entries that hold."""
    sizes, words, tests, pool = sizes_of(mill), words_of(mill), tests_of(mill), pool_of(mill)
    truth, values, codes = truth_of(state), values_of(state), codes_of(state)
    counters[2 * start] += 1
    missing = _ZERO  # tests of the slot's dictionary that do not hold
    at = start
    follows = True
    while follows:
        block = block_at(words, at)
        follows = block.follows
        at = block.end
        if block.n_entries == 0:
            missing = missing_tests(truth, tests, block.tests_at, block.n_tests)
        for e in range(block.n_entries):
            holds = not block.uses_dictionary or words[block.masks_at + e] & missing == _ZERO
            first = block.tests_at + e * block.n_tests
            for k in range(first, first + block.n_tests):
                if holds:
                    holds = truth[tests[k]] != 0
            first = block.inline_at + e * block.n_inline
            stop = first + block.n_inline
            if holds and inline_tests_hold(sizes, words, pool, first, stop, values, codes):
                counters[block.ids_at + e] += 1


@kernel
def _count_events(mill: Any, state: Any, start: int, counters: np.ndarray) -> tuple[int, int]:
    """Count from event `start` on; return (the first one with too many slots, slots it has)."""
    mill, state = borrowed(mill), borrowed(state)
    offsets, visits = event_offsets_of(state), visits_of(state)
    for e in range(start, len(offsets) - 1):
        n_slots = enter_event(mill, state, offsets[e], offsets[e + 1])
        if n_slots <= len(visits):
            for i in range(n_slots):
                _count_slot(mill, state, slot_start(visits[i]), counters)
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
    """Write the clause of each entry, and its two counts."""
    words, ids = words_of(mill), ids_of(mill)
    m = 0
    for place in slot_places_of(mill):
        at = slot_start(place)
        n_visits = counters[2 * at]
        follows = place > 0
        while follows:
            block = block_at(words, at)
            follows = block.follows
            at = block.end
            for k in range(block.ids_at, block.ids_at + block.n_entries):
                out_ids[m] = ids[k]
                out_checked[m] = n_visits
                out_held[m] = counters[k]
                m += 1
