"""List-based predicate matching: sorted lists, one for each kind of operator.

    points    low = high, by value                      `=`, and each value of `in`
    up_to     from the first end, by high               `<`, and the lower half of `!=`
    since     to the last end, by low                   `>`, and the upper half of `!=`
    ranges    all others, by low; reaches[i] is the largest high of the first i + 1

    a list    keys[i], ids[i] for i < n, ascending by both; the arrays are longer, for those to come

An interval is a predicate of an operator here: keys of one dimension stand for values of all types,
and an operator's interval ends where its type does. So the ends are found, not given: the low and
the high that most intervals share. Those are chosen again when there are twice as many intervals;
any choice gives the right answers.

All of `up_to` from the first high that is not below the key on, and all of `since` up to the last
low that is not above it, are satisfied: one search, one copy. Ranges are walked down from the key,
until nothing before reaches it.

Two-stage, section 3.1, has linked lists by attribute and operator, which it searches from the
start. Ours are arrays; an insertion moves what comes after it.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from matchmill.kernels.jit import kernel
from matchmill.papers.predicate_index.base import Predicates, Satisfied
from matchmill.papers.predicate_index.interval_table import Intervals, KnownIntervals, collect

__all__ = ["N_KINDS", "POINT", "RANGE", "SINCE", "UP_TO", "OrderedList", "common_ends", "kinds_of"]

POINT, UP_TO, SINCE, RANGE = range(4)
N_KINDS = 4
_MAX_KEY = np.iinfo(np.int64).max


def common_ends(intervals: Intervals) -> tuple[int, int]:
    """Return the low and the high that most intervals of more than one key have.

    -1 if there are none.
    """
    wide = intervals.take(intervals.lows < intervals.highs)
    if len(wide.ids) == 0:
        return -1, -1
    return _most_frequent(wide.lows), _most_frequent(wide.highs)


def _most_frequent(values: np.ndarray) -> int:
    distinct, counts = np.unique(values, return_counts=True)
    return int(distinct[np.argmax(counts)])


def kinds_of(intervals: Intervals, ends: tuple[int, int]) -> np.ndarray:
    """POINT, UP_TO, SINCE or RANGE for each."""
    return np.select(
        [
            intervals.lows == intervals.highs,
            intervals.lows == ends[0],
            intervals.highs == ends[1],
        ],
        [POINT, UP_TO, SINCE],
        RANGE,
    )


class Entries(NamedTuple):
    """One list."""

    keys: np.ndarray  # int64
    ids: np.ndarray  # int64
    highs: np.ndarray  # int64, of ranges alone
    reaches: np.ndarray  # int64, of ranges alone


class OrderedList:
    """Ordered lists, one per kind of operator."""

    name: ClassVar[str] = "ordered_list"

    def __init__(self) -> None:
        self._known = KnownIntervals()
        self._ends = (-1, -1)
        self._lists = [_no_entries() for _ in range(N_KINDS)]
        self._sizes = np.zeros(N_KINDS, np.int64)
        self._n_when_chosen = 0

    @classmethod
    def build(cls, predicates: Predicates) -> OrderedList:
        """Build the index from predicates."""
        lists = cls()
        lists.insert(predicates)
        return lists

    @property
    def n_intervals(self) -> int:
        """Number of intervals."""
        return int(self._sizes.sum())

    def insert(self, predicates: Predicates) -> None:
        """Insert predicates."""
        new = self._known.add(predicates)
        if self.n_intervals + len(new.ids) > 2 * self._n_when_chosen:
            new = self._known.all()
            self._n_when_chosen = max(len(new.ids), 8)
            self._ends = common_ends(new)
            self._lists = [_no_entries() for _ in range(N_KINDS)]
            self._sizes[:] = 0
        for kind, some in self._by_kind(new):
            n = int(self._sizes[kind])
            room = _with_room(self._lists[kind], n, len(some.ids), kind == RANGE)
            _merge(room, n, some.lows, some.highs, some.ids)
            self._lists[kind] = room
            self._set_size(kind, n + len(some.ids))

    def delete(self, ids: np.ndarray) -> None:
        """Delete predicates by their ids."""
        gone = self._known.remove(ids)
        for kind, some in self._by_kind(gone):
            n = _drop(self._lists[kind], int(self._sizes[kind]), some.lows, some.ids)
            self._set_size(kind, n)

    def match(self, keys: np.ndarray) -> Satisfied:
        """Find the predicates that each key satisfies."""
        (points, up_to, since, ranges), sizes, ends = self._lists, self._sizes, self._ends
        return collect(
            len(keys),
            self.n_intervals,
            lambda start, offsets, out: _match(
                points, up_to, since, ranges, sizes, ends, keys, start, offsets, out
            ),
        )

    @property
    def n_bytes(self) -> int:
        """Bytes of the arrays."""
        return self._known.n_bytes + sum(a.nbytes for entries in self._lists for a in entries)

    def _by_kind(self, intervals: Intervals) -> list[tuple[int, Intervals]]:
        """Yield those of each kind that has any, in the order of its list.

        What the list is sorted by, before the id, is put in `lows`.
        """
        kinds = kinds_of(intervals, self._ends)
        found = []
        for kind in range(N_KINDS):
            some = intervals.take(kinds == kind)
            if len(some.ids):
                keys = some.highs if kind == UP_TO else some.lows
                order = np.lexsort((some.ids, keys))
                found.append((kind, Intervals(some.ids, keys, some.highs).take(order)))
        return found

    def _set_size(self, kind: int, n: int) -> None:
        self._sizes[kind] = n
        if kind == RANGE:
            highs, reaches = self._lists[kind].highs, self._lists[kind].reaches
            np.maximum.accumulate(highs[:n], out=reaches[:n])


def _no_entries() -> Entries:
    return Entries(*(np.empty(0, np.int64) for _ in range(4)))


def _with_room(entries: Entries, n: int, n_new: int, has_highs: bool) -> Entries:
    if n + n_new <= len(entries.keys):
        return entries
    capacity = n + n_new + n // 2
    wider = [np.empty(capacity if has_highs or c < 2 else 0, np.int64) for c in range(4)]
    for array, old in zip(wider, entries, strict=True):
        if len(array):
            array[:n] = old[:n]
    return Entries(*wider)


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _merge(
    entries: Entries, n: int, new_keys: np.ndarray, new_highs: np.ndarray, new_ids: np.ndarray
) -> None:
    """Put new entries, in the same order, into a list of n; from the end on."""
    keys, ids, highs = entries.keys, entries.ids, entries.highs
    old = n - 1
    new = len(new_keys) - 1
    while new >= 0:
        at = old + new + 1
        is_after = old >= 0 and (
            keys[old] > new_keys[new] or (keys[old] == new_keys[new] and ids[old] > new_ids[new])
        )
        if is_after:
            keys[at], ids[at] = keys[old], ids[old]
            if len(highs):
                highs[at] = highs[old]
            old -= 1
        else:
            keys[at], ids[at] = new_keys[new], new_ids[new]
            if len(highs):
                highs[at] = new_highs[new]
            new -= 1


@kernel
def _drop(entries: Entries, n: int, gone_keys: np.ndarray, gone_ids: np.ndarray) -> int:
    """Take entries, in the same order, out of a list of n, which has them; returns what is left."""
    keys, ids, highs = entries.keys, entries.ids, entries.highs
    gone = 0
    out = np.searchsorted(keys[:n], gone_keys[0])
    for i in range(out, n):
        if gone < len(gone_keys) and keys[i] == gone_keys[gone] and ids[i] == gone_ids[gone]:
            gone += 1
            continue
        keys[out], ids[out] = keys[i], ids[i]
        if len(highs):
            highs[out] = highs[i]
        out += 1
    return int(out)


@kernel
def _n_below(keys: np.ndarray, n: int, key: int) -> int:
    """How many of the first n keys are below one."""
    base = 0
    while n > 0:
        half = (n + 1) >> 1
        base += half if keys[base + half - 1] < key else 0
        n -= half
    return base


@kernel
def _match(
    points: Entries,
    up_to: Entries,
    since: Entries,
    ranges: Entries,
    sizes: np.ndarray,
    ends: tuple[int, int],
    keys: np.ndarray,
    start: int,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> int:
    point_keys, point_ids = points.keys, points.ids
    up_to_ids, since_ids = up_to.ids, since.ids
    range_ids, range_highs, reaches = ranges.ids, ranges.highs, ranges.reaches
    n_out = out_offsets[start]
    for k in range(start, len(keys)):
        key = keys[k]
        first_point = _n_below(point_keys, sizes[0], key)
        first_up_to = _n_below(up_to.keys, sizes[1], key) if key >= ends[0] else sizes[1]
        n_since = 0
        if key <= ends[1]:
            n_since = sizes[2] if key == ends[1] else _n_below(since.keys, sizes[2], key + 1)
        n_copied = sizes[1] - first_up_to + n_since
        if n_out + n_copied > len(out):
            return k
        for i in range(first_up_to, sizes[1]):
            out[n_out] = up_to_ids[i]
            n_out += 1
        for i in range(n_since):
            out[n_out] = since_ids[i]
            n_out += 1
        i = first_point
        while i < sizes[0] and point_keys[i] == key:
            if n_out == len(out):
                return k
            out[n_out] = point_ids[i]
            n_out += 1
            i += 1
        # No range begins at the last key of all, as it has more than one key.
        i = _n_below(ranges.keys, sizes[3], key + 1 if key < _MAX_KEY else key) - 1
        while i >= 0 and reaches[i] >= key:
            if range_highs[i] >= key:
                if n_out == len(out):
                    return k
                out[n_out] = range_ids[i]
                n_out += 1
            i -= 1
        out_offsets[k + 1] = n_out
    return len(keys)
