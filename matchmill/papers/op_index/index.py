"""OpIndex (the paper of that name, sections 4 and 5), over conjunctions.

A clause is filed under its pivot (`pivots.py`). Its predicates go to the lists of that pivot, by
operator (`operator_kinds.py`, `lists.py`), and with each of them a pointer to the counter of the
clause (`counters.py`). An event visits the pivots that it has: the counters are set to what the
clauses need, every entry that a pair satisfies takes one off, and a clause whose counter reaches
zero matches.

    code of an entry    row << 1 | whether it forbids the clause instead

Clauses that nothing is sure to lead to have no pivot, and are visited with every event. Deletion
sets a counter out of reach; the lists of a pivot are swept when a quarter of its clauses are dead.

Changes are made in place: no reader may match while something is inserted or deleted.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar, NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import ClauseMatches, IndexStats, Statistics
from matchmill.index.match_buffer import collect_matches
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.jit import kernel
from matchmill.papers.common.id_table import (
    IdTable,
    check_known,
    check_new,
    find_ids,
    new_id_table,
    with_ids,
    without_ids,
)
from matchmill.papers.op_index.counters import (
    DEAD,
    N_DEAD,
    N_ROWS,
    START,
    Rows,
    add_rows,
)
from matchmill.papers.op_index.filing import (
    Store,
    add_entries,
    bury,
    new_store,
    store_arrays,
    store_from_arrays,
    with_dimensions,
)
from matchmill.papers.op_index.lists import Lists
from matchmill.papers.op_index.one_clause import add_clause
from matchmill.papers.op_index.operator_kinds import (
    OPERATORS,
    Bounds,
    accepts_absence,
    filed_intervals,
)
from matchmill.papers.op_index.pivots import (
    NO_PIVOT,
    Frequencies,
    choose_pivots,
    frequencies_of,
    frequencies_with,
)
from matchmill.papers.op_index.search import (
    PAIR,
    prefetch_signatures,
    read_pairs,
    satisfied_in_pivot,
)

__all__ = ["OpIndex"]

_CODE_SHIFT = 1
_ROW_BITS = 32  # a place is pivot << 32 | row


class _Scratch(NamedTuple):
    """Of one call: counters and rows of one pivot, codes and pairs of one event."""

    counters: np.ndarray  # int32
    found: np.ndarray  # uint32, with room for one more
    codes: np.ndarray  # uint32
    pairs: np.ndarray  # int64
    segments: np.ndarray  # int64


class OpIndex:
    """Satisfied predicates counted per clause, pivot by pivot. `segments=False` is OpIndex-BS."""

    name: ClassVar[str] = "op_index"

    def __init__(
        self, store: Store, frequencies: Frequencies, n_clauses: int = 0, build_seconds: float = 0.0
    ) -> None:
        self._store = store
        self._frequencies = frequencies
        self._n_clauses = n_clauses
        self._build_seconds = build_seconds
        self._candidates = 0
        self._places: IdTable | None = None

    @classmethod
    def build(
        cls,
        table: ConjunctionTable,
        statistics: Statistics | None = None,
        *,
        segments: int | bool = True,
        **options: Any,
    ) -> OpIndex:
        """`segments` of a long list: a power of two; False for neither segments nor signatures."""
        started = time.perf_counter()
        index = cls(new_store(segments, _CODE_SHIFT), frequencies_of(statistics))
        index._add(table)
        index._build_seconds = time.perf_counter() - started
        return index

    # -- changes ----------------------------------------------------------------------------------

    def insert(self, table: ConjunctionTable) -> None:
        """Insert the clauses of a table."""
        known = self._known_places()
        places = find_ids(known, table.clause_ids)
        check_new(places, table.clause_ids)
        added = add_clause(self._store, table, self._frequencies) if len(places) == 1 else None
        if added is None:
            places = self._add(table)
        else:
            self._store = added.store
            self._n_clauses += 1
            places[0] = added.pivot << _ROW_BITS | added.row
        self._places = with_ids(known, table.clause_ids, places)

    def delete(self, clause_ids: np.ndarray) -> None:
        """Delete clauses by their ids."""
        ids = np.unique(clause_ids)
        known = self._known_places()
        places = find_ids(known, ids)
        check_known(places)
        without_ids(known, ids)
        bury(self._store, places >> _ROW_BITS, places & ((1 << _ROW_BITS) - 1))
        self._n_clauses -= len(ids)

    def _add(self, table: ConjunctionTable) -> np.ndarray:
        """File clauses; their places."""
        filed = filed_intervals(table)
        against = accepts_absence(table)
        n_dimensions = max(table.n_dimensions, len(self._store.bounds.floors))
        frequencies = frequencies_with(self._frequencies, table.dimensions, n_dimensions)
        pivots = choose_pivots(table, frequencies, against)
        counted = offsets_of(~against)
        needed = counted[table.clause_offsets[1:]] - counted[table.clause_offsets[:-1]]
        store = with_dimensions(self._store, n_dimensions, filed)
        rows, row_numbers = add_rows(store.rows, pivots, needed, table.clause_ids)
        clauses = np.repeat(np.arange(table.n_clauses), np.diff(table.clause_offsets))[filed.rows]
        codes = row_numbers[clauses] << _CODE_SHIFT | filed.forbids
        self._store = add_entries(store._replace(rows=rows), filed, pivots[clauses], codes)
        self._frequencies = frequencies
        self._n_clauses += table.n_clauses
        places: np.ndarray = pivots << _ROW_BITS | row_numbers
        return places

    def _known_places(self) -> IdTable:
        if self._places is None:
            ids, places = _all_places(self._store.rows, self._n_clauses)
            self._places = with_ids(new_id_table(), ids, places)
        return self._places

    # -- matching ---------------------------------------------------------------------------------

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Match a batch of events."""
        store = self._store
        scratch = self._scratch(events)

        def match_from(start: int, offsets: np.ndarray, out: np.ndarray) -> int:
            done, n_looked_at = _match_events(
                store.bounds, store.lists, store.rows, events, start, scratch, offsets, out
            )
            self._candidates += n_looked_at
            return done

        return collect_matches(events.n_events, self._n_clauses, match_from)

    def _scratch(self, events: EventBatch) -> _Scratch:
        n_rows = int(self._store.rows.pivots[:, N_ROWS].max(initial=0))
        n_codes = int(self._store.lists.sizes.max(initial=0))
        n_pairs = int(np.diff(events.offsets).max(initial=0))
        return _Scratch(
            np.empty(n_rows, np.int32),
            np.empty(n_rows + 1, np.uint32),
            np.empty(n_codes, np.uint32),
            np.empty((n_pairs, PAIR), np.int64),
            np.empty((len(OPERATORS) * n_pairs, 2), np.int64),
        )

    # -- files and figures ------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all that `from_arrays` needs."""
        counts, are_events = self._frequencies
        figures = np.array([are_events, self._n_clauses])
        return {**store_arrays(self._store), "frequencies": counts, "figures": figures}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> OpIndex:
        """Make the same again from its arrays."""
        are_events, n_clauses = map(int, arrays["figures"])
        frequencies = Frequencies(arrays["frequencies"], bool(are_events))
        return cls(store_from_arrays(arrays), frequencies, n_clauses)

    def stats(self) -> IndexStats:
        """Return the figures of this index."""
        n_bytes = sum(a.nbytes for a in self.arrays().values())
        if self._places is not None:
            n_bytes += self._places.n_bytes
        return IndexStats(self._n_clauses, n_bytes, self._build_seconds, self._candidates)


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _all_places(rows: Rows, n_clauses: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids of all clauses, and where they are."""
    ids = np.empty(n_clauses, np.int64)
    places = np.empty(n_clauses, np.int64)
    n = 0
    for p in range(len(rows.pivots)):
        start = rows.pivots[p, START]
        for r in range(rows.pivots[p, N_ROWS]):
            if 0 <= rows.initial.cells[start + r] < DEAD:
                ids[n] = rows.owners[start + r]
                places[n] = (p << _ROW_BITS) + r
                n += 1
    return ids, places


@kernel
def _count(codes: np.ndarray, n_codes: int, counters: np.ndarray, found: np.ndarray) -> int:
    """Apply codes to the counters of one pivot.

    Rows that reached zero, if once only for a while, are appended to `found`.
    """
    n_found = 0
    for k in range(n_codes):
        code = codes[k]
        row = code >> _CODE_SHIFT
        count = DEAD if code & 1 else counters[row] - 1
        counters[row] = count
        found[n_found] = row  # stays if it counts; a branch would be taken at random
        n_found += count == 0
    return n_found


@kernel
def _match_events(
    bounds: Bounds,
    lists: Lists,
    rows: Rows,
    events: EventBatch,
    start: int,
    scratch: _Scratch,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> tuple[int, int]:
    """Match events from `start` on.

    Returns the first one for which `out` had no room, or their number, and how many clauses were
    looked at for those before it.
    """
    counters, found, codes, pairs, segments = scratch
    heads, cells = lists.heads, lists.blocks.cells
    records, initial, owners = rows.pivots, rows.initial.cells, rows.owners
    n_out = int(out_offsets[start])
    n_looked_at = 0
    for e in range(start, len(events.offsets) - 1):
        n_pairs = read_pairs(events, e, bounds, pairs)
        n_looked_at_before = n_looked_at
        n = n_out
        for j in range(-1, n_pairs):
            pivot = pairs[j, 0] + 1 if j >= 0 else NO_PIVOT
            n_rows = records[pivot, N_ROWS] if pivot < len(records) else 0
            if n_rows == 0:
                continue
            n_looked_at += n_rows - records[pivot, N_DEAD]
            first = records[pivot, START]
            counters[:n_rows] = initial[first : first + n_rows]
            if j + 1 < n_pairs:
                prefetch_signatures(cells, heads[pairs[j + 1, 0] + 1])
            n_codes = satisfied_in_pivot(cells, heads[pivot], pairs, n_pairs, segments, codes)
            n_found = _count(codes, n_codes, counters, found)
            if pivot == NO_PIVOT:  # what nothing has spoken against holds
                n_found = n_rows
            for k in range(n_found):
                row = k if pivot == NO_PIVOT else int(found[k])
                if counters[row] == 0:
                    if n < len(out):
                        out[n] = owners[first + row]
                    n += 1
        if n > len(out):
            return e, n_looked_at_before
        n_out = n
        out_offsets[e + 1] = n_out
    return len(events.offsets) - 1, n_looked_at
