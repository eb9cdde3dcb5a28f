"""Where the clause of an id is: a flat hash table that is made when the index first changes.

keys[slot]      an id
places[slot]    its place, FREE, or GONE: taken once, so that a search goes on behind it
state           slots that are not FREE, ids that are here
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.kernels.jit import kernel

__all__ = ["Places", "add_places", "find_places", "new_places", "remove_places"]

_FREE, _GONE = -1, -2


class Places(NamedTuple):
    keys: np.ndarray  # int64
    places: np.ndarray  # int64
    state: np.ndarray  # int64

    @property
    def n_bytes(self) -> int:
        return int(self.keys.nbytes + self.places.nbytes)


def new_places(n: int) -> Places:
    n_slots = 1 << max(6, (2 * n).bit_length())
    return Places(np.zeros(n_slots, np.int64), np.full(n_slots, _FREE), np.zeros(2, np.int64))


def add_places(table: Places, ids: np.ndarray, places: np.ndarray) -> Places:
    """Ids that are not in the table."""
    if 2 * (int(table.state[0]) + len(ids)) > len(table.keys):
        is_here = table.places >= 0
        kept, table = table, new_places(int(table.state[1]) + len(ids))
        _add(table, kept.keys[is_here], kept.places[is_here])
    _add(table, ids, places)
    return table


def find_places(table: Places, ids: np.ndarray) -> np.ndarray:
    """The place of each id, or -1."""
    out = np.empty(len(ids), np.int64)
    _find(table, ids, out)
    return out


def remove_places(table: Places, ids: np.ndarray) -> None:
    """Ids that are in the table."""
    _remove(table, ids)


@kernel
def _slot(table: Places, key: int) -> int:
    """Where a key is, or the free slot that ends the search for it."""
    keys, places = table.keys, table.places
    mask = len(keys) - 1
    h = (key ^ (key >> 31)) & 0x7FFFFFFF
    slot = ((h * 0x19D699A5) >> 13) & mask
    while places[slot] != _FREE and (places[slot] == _GONE or keys[slot] != key):
        slot = (slot + 1) & mask
    return slot


@kernel
def _add(table: Places, ids: np.ndarray, places: np.ndarray) -> None:
    for k in range(len(ids)):
        slot = _slot(table, ids[k])
        table.keys[slot] = ids[k]
        table.places[slot] = places[k]
    table.state[0] += len(ids)
    table.state[1] += len(ids)


@kernel
def _find(table: Places, ids: np.ndarray, out: np.ndarray) -> None:
    for k in range(len(ids)):
        out[k] = table.places[_slot(table, ids[k])]


@kernel
def _remove(table: Places, ids: np.ndarray) -> None:
    for k in range(len(ids)):
        table.places[_slot(table, ids[k])] = _GONE
    table.state[1] -= len(ids)
