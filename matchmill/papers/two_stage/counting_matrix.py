"""Counting in two stages: what its forms with bytes, with bits and with lists share.

    predicates    the first stage (`predicate_stage.py`): a bit vector of satisfied predicates
    association   a row for each predicate, a column for each clause, set where the clause has it;
                  with the number of predicates of each column, and whether it is in use. A matrix
                  (`counting_bytes.py`, `counting_bits.py`), or lists (`counting_lists.py`)
    clause_ids    of each column. Columns of deleted clauses are given out again first

The second stage adds up the rows of all satisfied predicates; a clause whose sum is the number of
its predicates matches. So over a matrix an event costs satisfied predicates × clauses, whatever the
clauses are.
64 events at a time go through a part of the columns that stays in the cache before the next part.

A clause is deleted by clearing its column, which also tells the predicates that it had. The column
is found in a table from ids to columns, which is made when something is changed for the first time.
The matrix grows by half, and never beyond `matrix_bytes`. Near that limit unused rows give way to
columns, and unused columns to rows, and each copy takes about half of the room that is left, so
that there are few of them.

One writer at a time, and no reader beside it.

Two-stage, section 3.3.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.errors import InputError
from matchmill.index.base import ClauseMatches, IndexStats, Statistics
from matchmill.kernels.intrinsics import trailing_zeros
from matchmill.kernels.jit import kernel, uint64
from matchmill.papers.common.id_table import (
    IdTable,
    check_known,
    check_new,
    find_ids,
    new_id_table,
    with_ids,
    without_ids,
)
from matchmill.papers.two_stage.predicate_stage import (
    STRUCTURES,
    CountingPredicates,
    StoredPredicates,
)

__all__ = ["Association", "CountingMatrix", "Pairs", "set_bits"]

_MATRIX_BYTES = 4 << 30
_BLOCK_EVENTS = 64

Pairs = tuple[np.ndarray, np.ndarray]


class Association(Protocol):
    """Which clauses have which predicates. Numbers of columns are multiples of 64."""

    @classmethod
    def empty(cls) -> Self:
        """Make a matrix of no columns."""

    @classmethod
    def bytes_of(cls, n_predicates: int, n_columns: int) -> int:
        """Return the bytes of a matrix of this size."""

    def shape(self) -> tuple[int, int]:
        """Return the numbers of predicates and columns."""

    def resize(self, n_predicates: int, n_columns: int) -> None:
        """Make room for so many; what goes was never in use."""

    def set_columns(self, columns: np.ndarray, offsets: np.ndarray, ids: np.ndarray) -> None:
        """Column columns[i] gets the predicates ids[offsets[i]] … and is in use."""
        ...

    def clear_columns(self, columns: np.ndarray) -> np.ndarray:
        """Clear columns, and return the predicates that they had, as often as they had them."""
        ...

    def used_columns(self) -> np.ndarray:
        """Ascending."""
        ...

    def match(self, vector: np.ndarray) -> Pairs:
        """All (event, column) that match, in any order; `vector` as in CountingPredicates."""
        ...

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all that `from_arrays` needs."""

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        """Make the same again from its arrays."""


class CountingMatrix:
    """The index; its two forms say what their association is."""

    name: ClassVar[str]
    in_place: ClassVar[bool] = True
    association: ClassVar[type[Association]]

    def __init__(self, matrix_bytes: int = _MATRIX_BYTES, predicates: str = "auto") -> None:
        self._matrix_bytes = matrix_bytes
        self._predicates = CountingPredicates(predicates)
        self._matrix = self.association.empty()
        self._clause_ids = np.zeros(0, np.int64)
        self._n_columns = 0  # columns that have ever been used
        self._free: list[int] = []
        self._columns: IdTable | None = None
        self._build_seconds = 0.0
        self._candidates = 0

    @classmethod
    def build(
        cls,
        table: ConjunctionTable,
        statistics: Statistics | None = None,
        *,
        matrix_bytes: int = _MATRIX_BYTES,
        predicates: str = "auto",
        **options: Any,
    ) -> Self:
        """`predicates` is one of STRUCTURES; a matrix above `matrix_bytes` is an error."""
        return cls._built(table, matrix_bytes, predicates)

    @classmethod
    def _built(cls, table: ConjunctionTable, matrix_bytes: int, predicates: str) -> Self:
        started = time.perf_counter()
        index = cls(matrix_bytes, predicates)
        index._add(table)
        index._build_seconds = time.perf_counter() - started
        return index

    @property
    def _n_clauses(self) -> int:
        return self._n_columns - len(self._free)

    def insert(self, table: ConjunctionTable) -> None:
        """Insert the clauses of a table."""
        known = self._known_columns()
        check_new(find_ids(known, table.clause_ids), table.clause_ids)
        columns = self._add(table)
        self._columns = with_ids(known, table.clause_ids, columns)

    def _add(self, table: ConjunctionTable) -> np.ndarray:
        """Return the columns that the clauses have now."""
        new = self._predicates.look_up(table)
        n_columns = self._n_columns + max(0, table.n_clauses - len(self._free))
        self._make_room(self._predicates.n_ids_with(new), n_columns)
        ids = self._predicates.take(new)
        columns = self._take_columns(table.n_clauses)
        self._clause_ids[columns] = table.clause_ids
        self._matrix.set_columns(columns, table.clause_offsets, ids)
        return columns

    def delete(self, clause_ids: np.ndarray) -> None:
        """Delete clauses by their ids."""
        ids = np.unique(clause_ids)
        known = self._known_columns()
        columns = find_ids(known, ids)
        check_known(columns)
        without_ids(known, ids)
        self._predicates.release(self._matrix.clear_columns(columns))
        self._free += columns[::-1].tolist()

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Match a batch of events."""
        counts = np.zeros(events.n_events + 1, np.int64)
        found = []
        for start in range(0, events.n_events, _BLOCK_EVENTS):
            stop = min(start + _BLOCK_EVENTS, events.n_events)
            rows, columns = self._matrix.match(self._predicates.vector(events.slice(start, stop)))
            n_each = np.bincount(rows, minlength=stop - start)
            counts[start + 1 : stop + 1] = n_each
            by_event = np.empty(len(columns), np.int64)
            _sort_by_event(rows, self._clause_ids[columns], np.cumsum(n_each) - n_each, by_event)
            found.append(by_event)
        self._candidates += events.n_events * self._n_clauses
        all_ids = np.concatenate(found) if found else np.empty(0, np.int64)
        return ClauseMatches(np.cumsum(counts), all_ids)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all that `from_arrays` needs."""
        predicates = self._predicates.stored()._asdict()
        return {
            "clause_ids": self._clause_ids,
            "limits": np.array([self._matrix_bytes, self._n_columns]),
            "structure": np.array([STRUCTURES.index(self._predicates.structure)]),
            **{f"predicate_{name}": a for name, a in predicates.items()},
            **{f"matrix_{name}": a for name, a in self._matrix.arrays().items()},
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        """Make the same again from its arrays."""
        matrix_bytes, n_columns = arrays["limits"].tolist()
        structure = STRUCTURES[int(arrays["structure"][0])]
        index = cls(matrix_bytes, structure)
        stored = (arrays[f"predicate_{name}"] for name in StoredPredicates._fields)
        index._predicates = CountingPredicates.from_stored(StoredPredicates(*stored), structure)
        start = "matrix_"
        parts = {name[len(start) :]: a for name, a in arrays.items() if name.startswith(start)}
        index._matrix = cls.association.from_arrays(parts)
        index._clause_ids = arrays["clause_ids"]
        index._n_columns = n_columns
        used = index._matrix.used_columns()
        index._free = np.setdiff1d(np.arange(n_columns), used)[::-1].tolist()
        return index

    def stats(self) -> IndexStats:
        """Return the figures of this index."""
        n_bytes = self._predicates.n_bytes + self._clause_ids.nbytes
        n_bytes += sum(a.nbytes for a in self._matrix.arrays().values())
        if self._columns is not None:
            n_bytes += self._columns.n_bytes
        return IndexStats(self._n_clauses, n_bytes, self._build_seconds, self._candidates)

    # -- columns ----------------------------------------------------------------------------------

    def _take_columns(self, n: int) -> np.ndarray:
        again = [self._free.pop() for _ in range(min(n, len(self._free)))]
        first = self._n_columns
        self._n_columns += n - len(again)
        return np.concatenate((np.array(again, np.int64), np.arange(first, self._n_columns)))

    def _known_columns(self) -> IdTable:
        """Return the column of each clause, by id; found when the first change needs it."""
        if self._columns is None:
            used = self._matrix.used_columns()
            self._columns = with_ids(new_id_table(), self._clause_ids[used], used)
        return self._columns

    def _make_room(self, n_predicates: int, n_columns: int) -> None:
        """For so many in all; InputError, and no change, if they do not fit."""
        had = self._matrix.shape()
        if n_predicates <= had[0] and n_columns <= had[1]:
            return
        needed = (n_predicates, _whole_words(n_columns))
        n_bytes = self.association.bytes_of(*needed)
        if n_bytes > self._matrix_bytes:
            raise InputError(
                f"{self.name} would need a matrix of {needed[0]:,} predicates × {needed[1]:,} "
                f"clauses, {n_bytes / 2**30:,.1f} GiB, and matrix_bytes allows "
                f"{self._matrix_bytes / 2**30:,.1f} GiB; use the index 'counting', which keeps "
                "lists instead, or build with larger matrix_bytes"
            )
        n_predicates, n_columns = self._ample(needed, had)
        self._matrix.resize(n_predicates, n_columns)
        clause_ids = np.zeros(n_columns, np.int64)
        kept = min(n_columns, len(self._clause_ids))
        clause_ids[:kept] = self._clause_ids[:kept]
        self._clause_ids = clause_ids

    def _ample(self, needed: tuple[int, int], had: tuple[int, int]) -> tuple[int, int]:
        """Return a size with room to grow: half of what there was, as far as the limit allows.

        Below it, both numbers get the same share of what they would have without a limit. So
        each copy of the matrix leaves about half of the room that was left, and there are few.
        """
        rows = _grown(needed[0], had[0]) - needed[0]
        words = (_whole_words(_grown(needed[1], had[1])) - needed[1]) // 64
        parts = max(rows, words, 1)

        def size(part: int) -> tuple[int, int]:
            return needed[0] + rows * part // parts, needed[1] + 64 * (words * part // parts)

        least, most = 0, parts + 1  # `least` fits
        while most - least > 1:
            part = (least + most) // 2
            fits = part <= parts and self.association.bytes_of(*size(part)) <= self._matrix_bytes
            least, most = (part, most) if fits else (least, part)
        return size(least)


def _whole_words(n_columns: int) -> int:
    return (n_columns + 63) // 64 * 64


def _grown(needed: int, had: int) -> int:
    """Return the next size of what may grow; the first one is exact."""
    return needed if had == 0 else max(needed, had if needed <= had else had + had // 2)


@kernel
def _sort_by_event(rows: np.ndarray, ids: np.ndarray, cursors: np.ndarray, out: np.ndarray) -> None:
    for i in range(len(rows)):
        out[cursors[rows[i]]] = ids[i]
        cursors[rows[i]] += 1


@kernel
def set_bits(vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the bits that are set in each row of words."""
    offsets = np.zeros(len(vector) + 1, np.int64)
    for e in range(len(vector)):
        n = 0
        for word in vector[e]:
            while word:
                word &= word - uint64(1)
                n += 1
        offsets[e + 1] = offsets[e] + n
    ids = np.empty(offsets[-1], np.int64)
    n = 0
    for e in range(len(vector)):
        for w in range(vector.shape[1]):
            word = vector[e, w]
            while word:
                ids[n] = 64 * w + trailing_zeros(word)
                word &= word - uint64(1)
                n += 1
    return offsets, ids
