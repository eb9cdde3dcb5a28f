"""Narrow codes for the wide keys of an index: small numbers in the same order.

Keys have about 62 bits, because new cut points must find room between old ones. An index needs to
tell only those keys apart between which some clause of its begins or ends:

    clauses on a dimension     20 … 29      40 … 40      60 … (no end)          keys
    starts                     1   20   30   40   60                where a piece begins
    code of a key              1   2    3    4    5                 how many starts are not above it
    in codes                   2 … 2        4 … 4        5 … 5

The code of key 0 (absent) is 0. No clause begins at 41, so 41 … 59 has no piece of its own but
shares that of 40, which is a *point*. A key in 41 … 59 is *vague*: the index finds all clauses for
it, and perhaps some that hold for 40 only. So what an event with a vague key finds has to be
checked. Without this, values with an equality would take two codes each. Where many events have
vague keys, a dimension has no points.

A code is as good as its key, if that is not vague, for every clause that begins at a start and
ends before one or at a point. Later clauses may begin or end inside of a piece. Codes never
change, so such a clause gets all of the piece. It is *doubtful*: the index finds it for each event
that it holds for, and for some others, and whoever uses the index checks it by its keys. When many
are doubtful, codes are made again (`index/in_place.py`).

A dimension that is new gets its starts from the clauses that bring it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.clause_encoder import relabelled
from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.cut_points import Relabelling
from matchmill.encoding.event_batch import EventBatch, IntervalEvents
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.jit import int64, kernel
from matchmill.kernels.searches import first_above

__all__ = ["KeyCodes"]

_LAST_KEY = (1 << 63) - 1
_FIRST_POINT = 4  # truth values and lists are so few that each has its piece
_RECENT = 1 << 12
_MOST_VAGUE = 0.125


class KeyCodes(NamedTuple):
    """The starts of all dimensions, one dimension after the other. A value: nothing changes."""

    first: np.ndarray  # int64: where the starts of a dimension begin
    n_starts: np.ndarray  # int64: how many there are; 0 for a dimension without clauses
    starts: np.ndarray  # int64, ascending within a dimension; the first one is key 1
    is_point: np.ndarray  # uint8: whether other keys of the piece than its start are vague

    @classmethod
    def of(
        cls, table: ConjunctionTable, sample: tuple[np.ndarray, np.ndarray] | None = None
    ) -> KeyCodes:
        """Return codes for which no clause of a table is doubtful, and not many events are vague.

        Parameters
        ----------
        table
            The clauses.
        sample
            Dimensions and keys of some events, if any are known.
        """
        none = np.empty(0, np.int64)
        empty = cls(none, none, none, np.empty(0, np.uint8))
        codes = empty.with_dimensions_of(table)
        if sample is None:
            return codes
        is_known = sample[0] < table.n_dimensions
        dimensions, keys = (part[is_known] for part in sample)
        is_vague = np.zeros(len(keys), np.bool_)
        _codes(codes, dimensions, keys, np.empty(len(keys), np.int64), is_vague)
        n_vague = np.bincount(dimensions[is_vague], minlength=table.n_dimensions)
        n_sampled = np.bincount(dimensions, minlength=table.n_dimensions)
        has_no_points = n_vague > _MOST_VAGUE * n_sampled
        return empty.with_dimensions_of(table, has_no_points) if has_no_points.any() else codes

    def with_dimensions_of(
        self, table: ConjunctionTable, has_no_points: np.ndarray | None = None
    ) -> KeyCodes:
        """Return the same codes, with those of the dimensions that are new in a table."""
        n_before, n = len(self.first), table.n_dimensions
        if n <= n_before and _knows_all(self.n_starts, table.dimensions):
            return self
        first, n_starts = np.zeros(max(n, n_before), np.int64), np.zeros(max(n, n_before), np.int64)
        first[:n_before], n_starts[:n_before] = self.first, self.n_starts
        dimensions, keys, begins = _starts_of(table, n_starts)
        order = np.lexsort((~begins, keys, dimensions))  # of equal ones, a beginning comes first
        dimensions, keys, begins = dimensions[order], keys[order], begins[order]
        is_new = np.ones(len(keys), bool)
        is_new[1:] = (dimensions[1:] != dimensions[:-1]) | (keys[1:] != keys[:-1])
        dimensions, keys, begins = dimensions[is_new], keys[is_new], begins[is_new]
        is_shared = np.zeros(len(keys), bool)  # with the point before it
        is_shared[1:] = ~begins[1:] & (keys[1:] == keys[:-1] + 1) & (keys[:-1] >= _FIRST_POINT)
        is_shared[1:] &= dimensions[1:] == dimensions[:-1]
        if has_no_points is not None:
            is_shared &= ~has_no_points[dimensions]
        is_point = np.append(is_shared[1:], False)[~is_shared].astype(np.uint8)
        dimensions, keys = dimensions[~is_shared], keys[~is_shared]
        counts = np.bincount(dimensions, minlength=len(first))
        added = np.flatnonzero(counts)
        first[added] = len(self.starts) + offsets_of(counts)[added]
        n_starts[added] = counts[added]
        return KeyCodes(
            first,
            n_starts,
            np.concatenate((self.starts, keys)),
            np.concatenate((self.is_point, is_point)),
        )

    def relabelled(self, relabellings: dict[int, list[Relabelling]]) -> KeyCodes:
        """Return the same codes for keys with new labels."""
        starts = self.starts.copy()
        for dimension, changes in relabellings.items():
            if dimension < len(self.first):
                own = slice(self.first[dimension], self.first[dimension] + self.n_starts[dimension])
                for change in changes:  # a start is a label, or the key after one
                    starts[own] = relabelled(starts[own], change, is_low=True)
        return self._replace(starts=starts)

    @property
    def n_bytes(self) -> int:
        """The bytes of all arrays."""
        return sum(a.nbytes for a in self)

    # in codes

    def events(self, events: EventBatch) -> tuple[EventBatch, np.ndarray]:
        """Return events in codes, and a flag for each: whether it has a vague key.

        On a dimension without clauses they are absent.
        """
        offsets = np.zeros(len(events.offsets), np.int64)
        dimensions, codes = np.empty_like(events.dimensions), np.empty(len(events.keys), np.int64)
        is_vague = np.zeros(events.n_events, np.bool_)
        n = _code_events(self, events, offsets, dimensions, codes, is_vague)
        return EventBatch(offsets, dimensions[:n], codes[:n]), is_vague

    def keys(self, dimensions: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Return the codes of some keys."""
        codes = np.empty(len(keys), np.int64)
        _codes(self, dimensions, keys, codes, np.zeros(len(keys), np.bool_))
        return codes

    def intervals(self, events: IntervalEvents) -> IntervalEvents:
        """Return events that allow intervals of keys in codes: these, or a little more."""
        offsets, lows, highs, _ = self._intervals(
            events.dimensions, events.interval_offsets, events.lows, events.highs
        )
        return events._replace(interval_offsets=offsets, lows=lows, highs=highs)

    def clauses(self, table: ConjunctionTable) -> tuple[ConjunctionTable, np.ndarray]:
        """Return clauses in codes, and a flag for each of them: whether it is doubtful."""
        offsets, lows, highs, is_doubtful = self._intervals(
            table.dimensions, table.interval_offsets, table.lows, table.highs
        )
        coded = table._replace(interval_offsets=offsets, lows=lows, highs=highs)
        doubtful = np.zeros(table.n_clauses, np.uint8)
        _flag_clauses(table.clause_offsets, is_doubtful, doubtful)
        return coded, doubtful

    def _intervals(
        self, dimensions: np.ndarray, offsets: np.ndarray, lows: np.ndarray, highs: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        out_offsets = np.zeros(len(offsets), np.int64)
        out_lows, out_highs = np.empty_like(lows), np.empty_like(highs)
        is_doubtful = np.zeros(len(dimensions), np.bool_)
        n = _code_intervals(
            self, dimensions, offsets, lows, highs, out_offsets, out_lows, out_highs, is_doubtful
        )
        if n < len(lows):
            out_lows, out_highs = out_lows[:n].copy(), out_highs[:n].copy()
        return out_offsets, out_lows, out_highs, is_doubtful


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _knows_all(n_starts: np.ndarray, dimensions: np.ndarray) -> bool:
    for dimension in dimensions:
        if n_starts[dimension] == 0:
            return False
    return True


@kernel
def _starts_of(
    table: ConjunctionTable, n_starts: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the starts on dimensions that have none yet, each of them once or more often.

    Also whether an interval begins there; at others one has ended.
    """
    room = 1024
    dimensions, keys = np.empty(room, np.int64), np.empty(room, np.int64)
    begins = np.empty(room, np.bool_)
    recent_dimensions = np.full(_RECENT, -1, np.int64)
    recent_keys = np.zeros(_RECENT, np.int64)
    n = 0
    for p in range(len(table.dimensions)):
        dimension = int64(table.dimensions[p])
        if n_starts[dimension] > 0:
            continue
        for k in range(table.interval_offsets[p], table.interval_offsets[p + 1]):
            for side in range(3):
                if side == 0:
                    key = int64(1)
                elif side == 1:
                    key = table.lows[k]
                elif table.highs[k] == _LAST_KEY:
                    continue
                else:
                    key = table.highs[k] + 1
                if key == 0:
                    continue
                # Most starts come again and again: a few of the latest are remembered.
                h = dimension * 62 + (key ^ (key >> 17) ^ (key >> 34) ^ (key >> 51)) * 2
                h = (h + (side >> 1)) & (_RECENT - 1)
                if recent_dimensions[h] == dimension and recent_keys[h] == key:
                    continue
                recent_dimensions[h], recent_keys[h] = dimension, key
                if n == room:
                    room *= 2
                    dimensions, keys = _longer(dimensions, room), _longer(keys, room)
                    begins = _longer(begins, room)
                dimensions[n], keys[n], begins[n] = dimension, key, side < 2
                n += 1
    return dimensions[:n], keys[:n], begins[:n]


@kernel
def _longer(array: np.ndarray, n: int) -> np.ndarray:
    out = np.empty(n, array.dtype)
    out[: len(array)] = array
    return out


@kernel
def _code(codes: KeyCodes, dimension: int, key: int) -> tuple[int, bool]:
    """Return the code of a key, and whether it is vague."""
    if key == 0 or dimension >= len(codes.n_starts) or codes.n_starts[dimension] == 0:
        return 0, False
    first = codes.first[dimension]
    after = first_above(codes.starts, key, first, first + codes.n_starts[dimension])
    is_vague = codes.is_point[after - 1] != 0 and codes.starts[after - 1] != key
    return int(after - first), is_vague


@kernel
def _codes(
    codes: KeyCodes,
    dimensions: np.ndarray,
    keys: np.ndarray,
    out: np.ndarray,
    out_vague: np.ndarray,
) -> None:
    for k in range(len(keys)):
        out[k], out_vague[k] = _code(codes, dimensions[k], keys[k])


@kernel
def _code_events(
    codes: KeyCodes,
    events: EventBatch,
    out_offsets: np.ndarray,
    out_dimensions: np.ndarray,
    out_keys: np.ndarray,
    out_vague: np.ndarray,
) -> int:
    """Code the pairs of events that have a code other than 0; return how many these are."""
    n = 0
    for e in range(len(events.offsets) - 1):
        for k in range(events.offsets[e], events.offsets[e + 1]):
            code, is_vague = _code(codes, events.dimensions[k], events.keys[k])
            if code > 0:
                out_dimensions[n], out_keys[n] = events.dimensions[k], code
                n += 1
            if is_vague:
                out_vague[e] = True
        out_offsets[e + 1] = n
    return n


@kernel
def _code_intervals(
    codes: KeyCodes,
    dimensions: np.ndarray,
    offsets: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    out_offsets: np.ndarray,
    out_lows: np.ndarray,
    out_highs: np.ndarray,
    out_doubtful: np.ndarray,
) -> int:
    """Code the intervals of predicates; those that meet in codes become one. Their number."""
    n = 0
    for p in range(len(dimensions)):
        dimension = dimensions[p]
        begin = n
        first = n_starts = 0
        if dimension < len(codes.n_starts):
            first, n_starts = codes.first[dimension], codes.n_starts[dimension]
        for k in range(offsets[p], offsets[p + 1]):
            low, _ = _code(codes, dimension, lows[k])
            high, _ = _code(codes, dimension, highs[k])
            if low > 0 and codes.starts[first + low - 1] != lows[k]:
                out_doubtful[p] = True
            if high > 0 and highs[k] != _LAST_KEY and codes.is_point[first + high - 1] == 0:
                if high == n_starts or codes.starts[first + high] != highs[k] + 1:
                    out_doubtful[p] = True
            if n > begin and low <= out_highs[n - 1] + 1:
                out_highs[n - 1] = max(out_highs[n - 1], high)
            else:
                out_lows[n], out_highs[n] = low, high
                n += 1
        out_offsets[p + 1] = n
    return n


@kernel
def _flag_clauses(offsets: np.ndarray, is_doubtful: np.ndarray, out: np.ndarray) -> None:
    for i in range(len(out)):
        for p in range(offsets[i], offsets[i + 1]):
            if is_doubtful[p]:
                out[i] = 1
