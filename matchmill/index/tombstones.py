"""The deleted clauses of a segment, as an immutable value: adding some makes a new one.

    bits    one bit per clause id, counted from first_id: older deletions
    ids     ascending: the latest deletions, so few that copying them is cheap
    marks   one bit for the low bits of each of those: most ids need not be searched for

One deletion copies the short list alone. A full list goes into a copy of the bits, so a deletion
costs a few microseconds however many clauses are deleted, and so does asking for one. Where ids are
so scattered that bits would waste memory, all of them stay in the list.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.index.base import ClauseMatches
from matchmill.kernels.jit import int64, kernel
from matchmill.kernels.searches import first_at_least

__all__ = ["NO_TOMBSTONES", "Tombstones"]

_LONGEST_LIST = 1024
_MOST_BITS_PER_CLAUSE = 64
_MARKS = 1 << 16

_NO_BITS = np.empty(0, np.uint8)
_NO_IDS = np.empty(0, np.int64)


class Tombstones(NamedTuple):
    """The ids of the deleted clauses of one segment."""

    first_id: int
    bits: np.ndarray  # uint8
    ids: np.ndarray  # int64
    marks: np.ndarray  # uint8
    n_dead: int

    def with_ids(self, ids: np.ndarray, clause_ids: np.ndarray) -> Tombstones:
        """Add ids that are not in here yet; `clause_ids` are all of the segment."""
        latest = np.sort(np.concatenate((self.ids, ids)))
        n_dead = self.n_dead + len(ids)
        first, last = int(clause_ids[0]), int(clause_ids[-1])
        if len(latest) <= _LONGEST_LIST or last - first > _MOST_BITS_PER_CLAUSE * len(clause_ids):
            marks = self.marks.copy() if len(self.marks) else np.zeros(_MARKS >> 3, np.uint8)
            _set_bits(marks, 0, ids & (_MARKS - 1))
            return Tombstones(self.first_id, self.bits, latest, marks, n_dead)
        bits = self.bits.copy() if len(self.bits) else np.zeros((last - first >> 3) + 1, np.uint8)
        _set_bits(bits, first, latest)
        return Tombstones(first, bits, _NO_IDS, _NO_BITS, n_dead)

    def has(self, ids: np.ndarray) -> np.ndarray:
        """Return a flag for each of these ids: whether it is deleted."""
        out = np.zeros(len(ids), np.bool_)
        if self.n_dead:
            _flag_dead(self.first_id, self.bits, self.ids, self.marks, ids, out)
        return out

    def all_ids(self) -> np.ndarray:
        """Return every deleted id, ascending."""
        old = np.flatnonzero(np.unpackbits(self.bits, bitorder="little")) + self.first_id
        return np.sort(np.concatenate((old, self.ids)))

    def without_dead(self, matches: ClauseMatches) -> ClauseMatches:
        """Drop the matches of deleted clauses."""
        if len(matches.clause_ids) == 0:
            return matches
        offsets = np.empty(len(matches.offsets), np.int64)
        clause_ids = np.empty_like(matches.clause_ids)
        n_kept = _copy_live(
            self.first_id, self.bits, self.ids, self.marks,
            matches.offsets, matches.clause_ids, offsets, clause_ids,
        )  # fmt: skip
        return matches if n_kept == len(clause_ids) else ClauseMatches(offsets, clause_ids[:n_kept])

    def live_ids(self, clause_ids: np.ndarray) -> np.ndarray:
        """Drop the deleted ones of the clauses that one event matches."""
        if self.n_dead == 0 or len(clause_ids) == 0:
            return clause_ids
        out = np.empty_like(clause_ids)
        n_kept = _copy_live_ids(self.first_id, self.bits, self.ids, self.marks, clause_ids, out)
        return out[:n_kept]


NO_TOMBSTONES = Tombstones(0, _NO_BITS, _NO_IDS, _NO_BITS, 0)


@kernel
def _set_bits(bits: np.ndarray, first_id: int, ids: np.ndarray) -> None:
    for dead in ids:
        bits[(dead - first_id) >> 3] |= np.uint8(1 << ((dead - first_id) & 7))


@kernel
def _is_among(ids: np.ndarray, wanted: int) -> bool:
    """Return whether an id is in an ascending list."""
    at = first_at_least(ids, wanted, 0, len(ids))
    return bool(at < len(ids) and ids[at] == wanted)


@kernel
def _flag_dead(
    first_id: int,
    bits: np.ndarray,
    ids: np.ndarray,
    marks: np.ndarray,
    wanted: np.ndarray,
    out: np.ndarray,
) -> None:
    """Flag deleted ids, in one loop: a call for each would cost more than the work."""
    n_bits = 8 * len(bits)
    has_marks = len(ids) > 0
    for k in range(len(wanted)):
        clause_id = int64(wanted[k])
        place = clause_id - first_id
        is_dead = False
        if 0 <= place < n_bits:
            is_dead = (bits[place >> 3] >> (place & 7)) & 1 != 0
        if has_marks:
            mark = clause_id & (_MARKS - 1)
            if (marks[mark >> 3] >> (mark & 7)) & 1 != 0:
                is_dead = is_dead or _is_among(ids, clause_id)
        out[k] = is_dead


@kernel
def _copy_live(
    first_id: int,
    bits: np.ndarray,
    ids: np.ndarray,
    marks: np.ndarray,
    offsets: np.ndarray,
    clause_ids: np.ndarray,
    out_offsets: np.ndarray,
    out_ids: np.ndarray,
) -> int:
    is_dead = np.empty(len(clause_ids), np.bool_)
    _flag_dead(first_id, bits, ids, marks, clause_ids, is_dead)
    n = 0
    out_offsets[0] = 0
    for e in range(len(offsets) - 1):
        for k in range(offsets[e], offsets[e + 1]):
            out_ids[n] = clause_ids[k]
            n += int64(not is_dead[k])
        out_offsets[e + 1] = n
    return n


@kernel
def _copy_live_ids(
    first_id: int,
    bits: np.ndarray,
    ids: np.ndarray,
    marks: np.ndarray,
    clause_ids: np.ndarray,
    out_ids: np.ndarray,
) -> int:
    is_dead = np.empty(len(clause_ids), np.bool_)
    _flag_dead(first_id, bits, ids, marks, clause_ids, is_dead)
    n = 0
    for k in range(len(clause_ids)):
        out_ids[n] = clause_ids[k]
        n += int64(not is_dead[k])
    return n
