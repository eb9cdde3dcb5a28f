"""The intervals of predicates by id, for structures that have to find again what they delete.

    slots[s]    id, number of the interval in its predicate or -1 if free, low, high

A hash table with linear probing. The number takes part in the hash, so that a predicate of a
thousand intervals is not one long row of slots. A predicate without intervals, which no key
satisfies, has one in which low is above high; it is never returned. A slot that becomes free
is filled by the one that would not be found behind it, so there are no marks of deleted ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from matchmill.errors import InputError
from matchmill.index.match_buffer import collect_matches
from matchmill.kernels.jit import kernel
from matchmill.papers.common.id_table import moves_up
from matchmill.papers.predicate_index.base import Predicates, Satisfied

__all__ = ["Intervals", "KnownIntervals", "collect"]

_ID, _NUMBER, _LOW, _HIGH = range(4)


class Intervals(NamedTuple):
    """Interval k belongs to predicate ids[k]; those of one predicate do not overlap."""

    ids: np.ndarray  # int64
    lows: np.ndarray  # int64
    highs: np.ndarray  # int64

    def take(self, chosen: np.ndarray) -> Intervals:
        """Return some of them, by position or by a mask."""
        return Intervals(*(a[chosen] for a in self))


class KnownIntervals:
    """Predicates that come and go; both calls change nothing if they fail."""

    def __init__(self) -> None:
        self._slots = _free_slots(16)
        self._n_used = 0

    @property
    def n_bytes(self) -> int:
        """Bytes of the arrays."""
        return self._slots.nbytes

    def add(self, predicates: Predicates) -> Intervals:
        """Add predicates, and return their intervals."""
        counts = np.diff(predicates.interval_offsets)
        n_new = int(np.maximum(counts, 1).sum())
        self._make_room(n_new)
        twice = _enter(self._slots, predicates)
        if twice >= 0:
            raise InputError(
                f"predicate {predicates.ids[twice]} is there already, or is given twice; none was "
                "inserted; delete it first, or give it another id"
            )
        self._n_used += n_new
        return Intervals(np.repeat(predicates.ids, counts), predicates.lows, predicates.highs)

    def remove(self, ids: np.ndarray) -> Intervals:
        """Remove predicates, and return their intervals."""
        ids = np.unique(ids)
        n, n_unknown = _count(self._slots, ids)
        if n_unknown:
            raise InputError(
                f"{n_unknown} of these {len(ids)} predicates are not there; none was deleted"
            )
        gone = Intervals(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64))
        _leave(self._slots, ids, gone)
        self._n_used -= n
        return gone.take(gone.lows <= gone.highs)

    def all(self) -> Intervals:
        """Those of all predicates."""
        rows = self._slots[self._slots[:, _NUMBER] >= 0]
        rows = rows[rows[:, _LOW] <= rows[:, _HIGH]]
        return Intervals(*(rows[:, c].copy() for c in (_ID, _LOW, _HIGH)))

    def _make_room(self, n: int) -> None:
        n_slots = len(self._slots)
        while 3 * (self._n_used + n) > 2 * n_slots:
            n_slots *= 2
        if n_slots > len(self._slots):
            wider = _free_slots(n_slots)
            _move(self._slots, wider)
            self._slots = wider


def collect(
    n_keys: int, most_each: int, step: Callable[[int, np.ndarray, np.ndarray], int]
) -> Satisfied:
    """Collect what `step(key to start with, out_offsets, out_ids)` finds.

    It returns the first key for which there was no room. `most_each` ids satisfy a key at most.
    """
    return Satisfied(*collect_matches(n_keys, most_each, step))


def _free_slots(n: int) -> np.ndarray:
    slots = np.zeros((n, 4), np.int64)
    slots[:, _NUMBER] = -1
    return slots


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _home(slots: np.ndarray, id_: int, number: int) -> int:
    """Nothing overflows, with or without compilation."""
    h = ((id_ ^ (id_ >> 31)) & 0x7FFFFFFF) * 0x2545F491 + (number & 0x7FFFFFFF) * 0x1B873595
    h = ((h ^ (h >> 31)) & 0x7FFFFFFF) * 0x5BD1E995
    return int((h ^ (h >> 31)) & (len(slots) - 1))


@kernel
def _find(slots: np.ndarray, id_: int, number: int) -> int:
    """Return the slot of an interval, or the free one where it would be."""
    mask = len(slots) - 1
    s = _home(slots, id_, number)
    while slots[s, 1] >= 0 and (slots[s, 0] != id_ or slots[s, 1] != number):
        s = (s + 1) & mask
    return s


@kernel
def _free(slots: np.ndarray, s: int) -> None:
    mask = len(slots) - 1
    other = (s + 1) & mask
    while slots[other, 1] >= 0:
        home = _home(slots, slots[other, 0], slots[other, 1])
        if moves_up(home, s, other, mask):
            slots[s] = slots[other]
            s = other
        other = (other + 1) & mask
    slots[s, 1] = -1


@kernel
def _free_predicate(slots: np.ndarray, id_: int) -> None:
    number = 0
    while True:
        s = _find(slots, id_, number)
        if slots[s, 1] < 0:
            break
        _free(slots, s)
        number += 1


@kernel
def _enter(slots: np.ndarray, predicates: Predicates) -> int:
    """-1, or the first predicate that is there already; then nothing has changed."""
    ids, offsets = predicates.ids, predicates.interval_offsets
    lows, highs = predicates.lows, predicates.highs
    for i in range(len(ids)):
        first, stop = offsets[i], offsets[i + 1]
        for number in range(max(stop - first, 1)):
            s = _find(slots, ids[i], number)
            if slots[s, 1] >= 0:
                for j in range(i):
                    _free_predicate(slots, ids[j])
                return i
            slots[s, 0], slots[s, 1] = ids[i], number
            slots[s, 2], slots[s, 3] = 1, 0
            if first < stop:
                slots[s, 2], slots[s, 3] = lows[first + number], highs[first + number]
    return -1


@kernel
def _move(slots: np.ndarray, wider: np.ndarray) -> None:
    for s in range(len(slots)):
        if slots[s, 1] >= 0:
            wider[_find(wider, slots[s, 0], slots[s, 1])] = slots[s]


@kernel
def _count(slots: np.ndarray, ids: np.ndarray) -> tuple[int, int]:
    """How many intervals predicates have, and how many predicates are not there."""
    n = n_unknown = 0
    for i in range(len(ids)):
        number = 0
        while slots[_find(slots, ids[i], number), 1] >= 0:
            number += 1
        n += number
        n_unknown += number == 0
    return n, n_unknown


@kernel
def _leave(slots: np.ndarray, ids: np.ndarray, out: Intervals) -> None:
    out_ids, out_lows, out_highs = out.ids, out.lows, out.highs
    n = 0
    for i in range(len(ids)):
        number = 0
        while True:
            s = _find(slots, ids[i], number)
            if slots[s, 1] < 0:
                break
            out_ids[n], out_lows[n], out_highs[n] = ids[i], slots[s, 2], slots[s, 3]
            n += 1
            number += 1
        _free_predicate(slots, ids[i])
