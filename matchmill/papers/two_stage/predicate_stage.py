"""The first stage of counting: from events to the predicates that they satisfy.

    predicate    a dimension and intervals; equal ones are stored once, under one id, and counted by
                 `n_users`. The id of one that is no longer used is given out again first
    structure    of each dimension, from a key to ids, as the option `predicates` says:
                 "table"   a RankedTable: a domain table over the ranks of keys
                 "list"    an OrderedList
                 "linked"  a LinkedList, the paper's
                 "auto"    a RankedTable while there are few bounds, then an OrderedList
    vector       a row for each event, a bit for each id: whether that predicate is satisfied

A dimension has few bounds if its predicates tell fewer than 4096 keys apart ("several thousand" in
the paper); one that outgrows that gets a list, and keeps it.

An event's row begins with the predicates that accept absence. For each pair of the event those of
its dimension are taken back, and the ones that its key satisfies are set.

Two-stage, sections 3, 3.1 and 3.2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ABSENT_KEY, ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.distinct_predicates import find_distinct
from matchmill.kernels.csr import take_ranges
from matchmill.kernels.jit import kernel, uint64
from matchmill.papers.predicate_index.base import PredicateIndex, Predicates, pairs_by_dimension
from matchmill.papers.two_stage.linked_list import LinkedList
from matchmill.papers.two_stage.ordered_list import OrderedList
from matchmill.papers.two_stage.ranked_table import RankedTable, bounds_of

__all__ = ["STRUCTURES", "CountingPredicates", "NewPredicates", "StoredPredicates"]

STRUCTURES = ("auto", "table", "list", "linked")
_KINDS: dict[str, type[PredicateIndex]] = {
    "table": RankedTable,
    "list": OrderedList,
    "linked": LinkedList,
}
_FEW_BOUNDS = 4096
_Key = tuple[int, bytes]


class NewPredicates(NamedTuple):
    """The distinct predicates of a table: what they are, and which are known already."""

    keys: list[_Key]
    of: np.ndarray  # the distinct predicate of each predicate of the table
    n_unknown: int


class StoredPredicates(NamedTuple):
    """All predicates in use, as arrays."""

    ids: np.ndarray  # int64
    n_users: np.ndarray  # int64
    dimensions: np.ndarray  # int32
    interval_offsets: np.ndarray  # int64
    lows: np.ndarray  # int64
    highs: np.ndarray  # int64


class CountingPredicates:
    """Predicates with ids from 0 on."""

    def __init__(self, structure: str = "auto") -> None:
        self._structure = structure
        self._ids: dict[_Key, int] = {}
        self._keys: dict[int, _Key] = {}
        self._n_ids = 0
        self._n_users = np.zeros(0, np.int64)
        self._free: list[int] = []
        self._structures: dict[int, PredicateIndex] = {}
        self._absent: dict[int, np.ndarray] = {}  # ids that accept absence, where there are any

    @property
    def structure(self) -> str:
        """The structure of dimensions, one of STRUCTURES."""
        return self._structure

    @property
    def n_ids(self) -> int:
        """One more than the largest id that has ever been used."""
        return self._n_ids

    @property
    def n_bytes(self) -> int:
        """Bytes of the arrays."""
        n = sum(structure.n_bytes for structure in self._structures.values())
        return n + self._n_users.nbytes + sum(len(content) for _, content in self._ids)

    def n_ids_with(self, new: NewPredicates) -> int:
        """Return how many ids there are with new predicates."""
        return self.n_ids + max(0, new.n_unknown - len(self._free))

    def look_up(self, table: ConjunctionTable) -> NewPredicates:
        """Look up predicates; this changes nothing."""
        distinct = find_distinct(table)
        firsts = distinct.firsts()
        starts, stops = table.interval_offsets[firsts], table.interval_offsets[firsts + 1]
        bounds = np.stack((table.lows, table.highs), axis=1)
        keys: list[_Key] = [
            (dimension, bounds[a:b].tobytes())
            for dimension, a, b in zip(
                table.dimensions[firsts].tolist(), starts.tolist(), stops.tolist(), strict=True
            )
        ]
        return NewPredicates(keys, distinct.ids, sum(key not in self._ids for key in keys))

    def take(self, new: NewPredicates) -> np.ndarray:
        """Return the id of each predicate of a table, which is now used one time more."""
        fresh: dict[int, list[tuple[int, bytes]]] = {}
        ids = np.empty(len(new.keys), np.int64)
        for i, key in enumerate(new.keys):
            id_ = self._ids.get(key, -1)
            if id_ < 0:
                id_ = self._new_id(key)
                fresh.setdefault(key[0], []).append((id_, key[1]))
            ids[i] = id_
        if self.n_ids > len(self._n_users):
            n_users = np.zeros(self.n_ids + self.n_ids // 2, np.int64)
            n_users[: len(self._n_users)] = self._n_users
            self._n_users = n_users
        self._n_users[ids] += np.bincount(new.of, minlength=len(ids))
        for dimension, some in fresh.items():
            self._insert(dimension, _predicates(some))
        per_predicate: np.ndarray = ids[new.of]
        return per_predicate

    def release(self, ids: np.ndarray) -> None:
        """Count these as used one time less, for each time that they are given."""
        distinct, counts = np.unique(ids, return_counts=True)
        self._n_users[distinct] -= counts
        gone: dict[int, list[int]] = {}
        for id_ in distinct[self._n_users[distinct] == 0].tolist():
            key = self._keys.pop(id_)
            gone.setdefault(key[0], []).append(id_)
            del self._ids[key]
            self._free.append(id_)
        for dimension, some in gone.items():
            self._structures[dimension].delete(np.array(some, np.int64))
            self._find_absent(dimension)

    def stored(self) -> StoredPredicates:
        """Return what is saved."""
        ids = sorted(self._keys)
        some = _predicates([(id_, self._keys[id_][1]) for id_ in ids])
        dimensions = np.array([self._keys[id_][0] for id_ in ids], np.int32)
        return StoredPredicates(some.ids, self._n_users[some.ids], dimensions, *some[1:])

    @classmethod
    def from_stored(cls, stored: StoredPredicates, structure: str = "auto") -> CountingPredicates:
        """Make the predicates again from what was saved."""
        found = cls(structure)
        found._n_ids = n_ids = int(stored.ids.max(initial=-1)) + 1
        found._n_users = np.zeros(n_ids, np.int64)
        found._n_users[stored.ids] = stored.n_users
        found._free = np.setdiff1d(np.arange(n_ids), stored.ids)[::-1].tolist()
        bounds = np.stack((stored.lows, stored.highs), axis=1)
        for i, id_ in enumerate(stored.ids.tolist()):
            span = slice(int(stored.interval_offsets[i]), int(stored.interval_offsets[i + 1]))
            key = int(stored.dimensions[i]), bounds[span].tobytes()
            found._keys[id_] = key
            found._ids[key] = id_
        for dimension in np.unique(stored.dimensions).tolist():
            rows = np.flatnonzero(stored.dimensions == dimension)
            offsets, at = take_ranges(stored.interval_offsets, rows)
            found._insert(
                dimension, Predicates(stored.ids[rows], offsets, stored.lows[at], stored.highs[at])
            )
        return found

    def vector(self, events: EventBatch) -> np.ndarray:
        """Which predicates each event satisfies, in words of 64."""
        n_words = (self.n_ids + 63) >> 6
        out = np.zeros((events.n_events, n_words), np.uint64)
        for ids in self._absent.values():
            if events.n_events:
                _set_bits(out[0], ids)
        out[1:] = out[:1]
        rows = np.repeat(np.arange(events.n_events), np.diff(events.offsets))
        for dimension, pairs in pairs_by_dimension(events):
            structure = self._structures.get(dimension)
            if structure is not None:
                found = structure.match(events.keys[pairs])
                absent = self._absent.get(dimension, _NONE)
                _set_satisfied(out, rows[pairs], absent, found.offsets, found.ids)
        return out

    def _new_id(self, key: _Key) -> int:
        if self._free:
            id_ = self._free.pop()
        else:
            id_ = self._n_ids
            self._n_ids += 1
        self._ids[key] = id_
        self._keys[id_] = key
        return id_

    def _insert(self, dimension: int, new: Predicates) -> None:
        structure = self._structures.get(dimension)
        if structure is None:
            self._structures[dimension] = self._kind_for(new).build(new)
        elif (
            self._structure == "auto"
            and isinstance(structure, RankedTable)
            and structure.n_bounds_with(new) > _FEW_BOUNDS
        ):
            self._structures[dimension] = OrderedList.build(self._of_dimension(dimension))
        else:
            structure.insert(new)
        self._find_absent(dimension)

    def _kind_for(self, new: Predicates) -> type[PredicateIndex]:
        if self._structure == "auto":
            few = len(bounds_of(new.lows, new.highs)) <= _FEW_BOUNDS
            return RankedTable if few else OrderedList
        return _KINDS[self._structure]

    def _of_dimension(self, dimension: int) -> Predicates:
        return _predicates([(id_, key[1]) for key, id_ in self._ids.items() if key[0] == dimension])

    def _find_absent(self, dimension: int) -> None:
        ids = self._structures[dimension].match(np.array([ABSENT_KEY])).ids.copy()
        if len(ids):
            self._absent[dimension] = ids
        else:
            self._absent.pop(dimension, None)


_NONE = np.empty(0, np.int64)


def _predicates(some: list[tuple[int, bytes]]) -> Predicates:
    bounds = np.frombuffer(b"".join(content for _, content in some), np.int64).reshape(-1, 2)
    return Predicates(
        np.array([id_ for id_, _ in some], np.int64),
        np.cumsum([0, *(len(content) // 16 for _, content in some)]),
        bounds[:, 0].copy(),
        bounds[:, 1].copy(),
    )


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _set_bits(words: np.ndarray, ids: np.ndarray) -> None:
    for id_ in ids:
        words[id_ >> 6] |= uint64(1) << uint64(id_ & 63)


@kernel
def _set_satisfied(
    vector: np.ndarray, rows: np.ndarray, absent: np.ndarray, offsets: np.ndarray, ids: np.ndarray
) -> None:
    """In row rows[i], clear the bits `absent` and set those of the ids offsets[i] … ."""
    for i in range(len(rows)):
        words = vector[rows[i]]
        for id_ in absent:
            words[id_ >> 6] &= ~(uint64(1) << uint64(id_ & 63))
        for k in range(offsets[i], offsets[i + 1]):
            id_ = ids[k]
            words[id_ >> 6] |= uint64(1) << uint64(id_ & 63)
