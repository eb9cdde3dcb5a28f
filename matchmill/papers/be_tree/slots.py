"""From clause ids to the numbers by which the tree knows clauses.

    ids       int64: the id of each slot; of a free one the next free slot, or -1
    places    int32: slots by a hash of their id, probed one after the other, -1 where there is none
    state     slots below which all have been used once, first free slot or -1, slots in use

The table of places works as `common/id_table.py` does and uses its hash and its rule. It has cells
of its own because the id of a slot stands in `ids` already: 4 bytes per cell instead of 16.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.kernels.hashing import mix31
from matchmill.kernels.jit import kernel
from matchmill.papers.common.id_table import moves_up

__all__ = ["Slots", "find_slots", "new_slots", "release_slots", "take_slots", "with_room_for"]

N_USED, FREE, N_LIVE = range(3)


class Slots(NamedTuple):
    """Ids by slot, and slots by id."""

    ids: np.ndarray
    places: np.ndarray
    state: np.ndarray


def new_slots() -> Slots:
    """Make slots, none of them taken."""
    return Slots(np.zeros(16, np.int64), np.full(32, -1, np.int32), np.array([0, -1, 0]))


def with_room_for(slots: Slots, n: int) -> Slots:
    """Return the same slots, with at least n more to take."""
    wanted = int(slots.state[N_LIVE]) + n
    if wanted <= len(slots.ids):
        return slots
    size = max(wanted, len(slots.ids) + len(slots.ids) // 2)
    ids = np.zeros(size, np.int64)
    ids[: len(slots.ids)] = slots.ids
    places = np.full(1 << (2 * size - 1).bit_length(), -1, np.int32)
    _enter_again(slots, ids, places)
    return Slots(ids, places, slots.state)


@kernel
def _find(slots: Slots, clause_id: int) -> int:
    """Return the place of an id, or the empty one where its place would be."""
    mask = len(slots.places) - 1
    place = mix31(clause_id) & mask
    while slots.places[place] >= 0 and slots.ids[slots.places[place]] != clause_id:
        place = (place + 1) & mask
    return place


@kernel
def _enter_again(slots: Slots, ids: np.ndarray, places: np.ndarray) -> None:
    mask = len(places) - 1
    for slot in slots.places:
        if slot >= 0:
            place = mix31(ids[slot]) & mask
            while places[place] >= 0:
                place = (place + 1) & mask
            places[place] = slot


@kernel
def find_slots(slots: Slots, clause_ids: np.ndarray) -> np.ndarray:
    """Return the slot of each id, -1 for one that is not there."""
    out = np.empty(len(clause_ids), np.int64)
    for k in range(len(clause_ids)):
        out[k] = slots.places[_find(slots, clause_ids[k])]
    return out


@kernel
def take_slots(slots: Slots, clause_ids: np.ndarray) -> np.ndarray:
    """Take a slot for each id, which must all be new. There must be room."""
    out = np.empty(len(clause_ids), np.int64)
    state = slots.state
    for k in range(len(clause_ids)):
        place = _find(slots, clause_ids[k])
        slot = state[FREE]
        if slot >= 0:
            state[FREE] = slots.ids[slot]
        else:
            slot = state[N_USED]
            state[N_USED] += 1
        slots.ids[slot] = clause_ids[k]
        slots.places[place] = slot
        out[k] = slot
    state[N_LIVE] += len(clause_ids)
    return out


@kernel
def release_slots(slots: Slots, taken: np.ndarray) -> None:
    """Give back slots that are in use."""
    places, ids = slots.places, slots.ids
    mask = len(places) - 1
    for slot in taken:
        hole = _find(slots, ids[slot])
        place = hole
        while True:
            place = (place + 1) & mask
            if places[place] < 0:
                break
            if moves_up(mix31(ids[places[place]]) & mask, hole, place, mask):
                places[hole] = places[place]
                hole = place
        places[hole] = -1
        ids[slot] = slots.state[FREE]
        slots.state[FREE] = slot
    slots.state[N_LIVE] -= len(taken)
