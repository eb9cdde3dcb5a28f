"""PSTHash: N access predicates per clause, found by combinations of spaces (PS-Tree, section 6).

    forest      one PS-Tree per dimension, of access predicates alone (`forest.py`)
    records     from N leaves to clauses whose N access predicates cover them (`hash_records.py`)
    lists       a leaf's clauses that have fewer than N predicates to be filed under
    clauses     each clause in one piece (`clauses.py`)
    always      clauses that accept events without any of their dimensions
    seen        matched events per leaf, beside the counters from statistics; not saved

An event is matched in three steps (Alg. 7): its keys lead to leaves; the table is asked for each
combination of N leaves; the clauses of the records found, and of the leaves' own lists, are
checked. Cells of the table, records and clauses are asked for in stages, each prefetched in the one
before. An event with fewer than N pairs has the lists alone, as only they can have its clauses.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.errors import InputError
from matchmill.index.base import Statistics
from matchmill.kernels.hashing import mix31
from matchmill.kernels.intrinsics import prefetch
from matchmill.kernels.jit import kernel
from matchmill.papers.common.id_table import new_id_table, table_with_room
from matchmill.papers.common.pools import new_rows, new_spans, rows_with_room, spans_with_room
from matchmill.papers.ps_tree.access_predicates import ranked
from matchmill.papers.ps_tree.clauses import (
    TOP,
    bring_block,
    check_places,
    clauses_with_room,
    new_clauses,
)
from matchmill.papers.ps_tree.forest import (
    LIST,
    N_LIST,
    forest_with_room,
    leaf_of_key,
    new_forest,
    with_trees,
)
from matchmill.papers.ps_tree.hash_deletion import unfile_clauses
from matchmill.papers.ps_tree.hash_insertion import N_NEEDED, cut_clauses, file_clauses
from matchmill.papers.ps_tree.hash_records import (
    MOST_RECORDS,
    RECORD_WIDTH,
    HashArrays,
    Records,
    in_order,
    leaf_hash,
)
from matchmill.papers.ps_tree.index_base import PSTIndex, Scratch

__all__ = ["PSTHash"]

_MOST_ACCESS = 3


def _empty(n_access: int) -> HashArrays:
    return HashArrays(
        new_forest(),
        new_spans(),
        Records(new_rows(RECORD_WIDTH), new_spans(), new_id_table()),
        new_clauses(),
        np.zeros((1, 11), np.int64),
        np.array([n_access]),
    )


class PSTHash(PSTIndex[HashArrays]):
    """N access predicates per clause, found by combinations of leaves."""

    name: ClassVar[str] = "pst_hash"
    array_type: ClassVar[type[Any]] = HashArrays
    n_pair_rows: ClassVar[int] = 5

    def __init__(self, arrays: HashArrays, history: int = 0) -> None:
        super().__init__(arrays, history)
        self._covered = np.zeros((_MOST_ACCESS, MOST_RECORDS + 2), np.int64)

    @classmethod
    def build(
        cls,
        table: ConjunctionTable,
        statistics: Statistics | None = None,
        *,
        n_access: int = 2,
        ahead: bool = True,
        one_sided: np.ndarray | None = None,
        **options: Any,
    ) -> PSTHash:
        """Build the index from a table.

        `n_access` is the paper's N. `ahead`: prefetch memory, of which the paper says nothing.
        `one_sided`: which predicates are ranges with one end (`<`, `>`), where keys do not show it
        (`access_predicates.py`).
        """
        if n_access not in range(1, _MOST_ACCESS + 1):
            raise InputError(f"n_access is {n_access!r}; it can be 1, 2 or {_MOST_ACCESS}")
        started = time.perf_counter()
        index = cls(_empty(n_access))
        index._ahead = ahead
        index._add(table, statistics, one_sided)
        index._learn(statistics)
        index._build_seconds = time.perf_counter() - started
        return index

    def insert(self, table: ConjunctionTable, one_sided: np.ndarray | None = None) -> None:
        """Insert the clauses of a table; `one_sided` as in `build`."""
        self._add(table, None, one_sided)

    def _add(
        self,
        table: ConjunctionTable,
        statistics: Statistics | None,
        one_sided: np.ndarray | None,
    ) -> None:
        self._check_new(table)
        forest = with_trees(self._arrays.forest, table.n_dimensions)
        self._arrays = self._arrays._replace(forest=forest)
        new = ranked(table, statistics, forest, self._seen, self._history > 0, one_sided)
        progress, needed = np.zeros(2, np.int64), np.zeros(N_NEEDED, np.int64)
        while not cut_clauses(
            self._arrays, new, self._seen, progress, self._elements, self._covered, needed
        ):
            self._make_room(*needed.tolist())
        done = 0
        needed[:] = 0
        while True:
            done = file_clauses(
                self._arrays, new, self._seen, done, self._elements, self._covered, needed
            )
            if done == table.n_clauses:
                return
            self._make_room(*needed.tolist())

    def delete(self, clause_ids: np.ndarray) -> None:
        """Delete clauses by their ids."""
        ids = np.unique(clause_ids)
        self._check_known(ids)
        unfile_clauses(self._arrays, self._seen, ids, self._elements, self._covered)

    def _make_room(
        self,
        n_cuts: int,
        n_list_cells: int,
        n_records: int,
        n_record_cells: int,
        n_narrow: int,
        n_wide: int,
    ) -> None:
        forest, lists, records, clauses, always, n_access = self._arrays
        self._arrays = HashArrays(
            forest_with_room(forest, n_cuts),
            spans_with_room(lists, n_list_cells),
            Records(
                rows_with_room(records.rows, n_records),
                spans_with_room(records.lists, n_record_cells),
                table_with_room(records.table, n_records),
            ),
            clauses_with_room(clauses, 1, n_narrow, n_wide),
            always,
            n_access,
        )
        self._count_new_leaves()

    def _kernel(self) -> Callable[..., tuple[int, int]]:
        return _match_events


@kernel
def _match_events(
    index: HashArrays,
    events: EventBatch,
    start: int,
    seen: np.ndarray,
    scratch: Scratch,
    pairs: np.ndarray,
    ahead: bool,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> tuple[int, int]:
    """Match events from `start` on.

    The first one for which `out` had no room, and how many clauses were checked for those before.

    `pairs` is scratch for one event: leaves, their hashes, cells asked for, records found and
    the leaf that makes each of these complete.
    """
    trees, nodes = index.forest.trees, index.forest.nodes.cells
    children, leaves = index.forest.children.cells, index.forest.leaves.cells
    clauses, lists = index.clauses, index.lists.cells
    cells, rows = index.records.table.cells, index.records.rows.cells
    entries = index.records.lists.cells
    keys, narrow_keys, _, places = scratch
    dimensions, event_keys = events.dimensions, events.keys
    n_access = int(index.n_access[0])
    last_cell = len(cells) - 1
    n_candidates = 0
    n_out = out_offsets[start]
    for e in range(start, len(events.offsets) - 1):
        n_leaves = 0
        for k in range(events.offsets[e], events.offsets[e + 1]):
            dimension, key = dimensions[k], event_keys[k]
            if dimension >= len(trees) or key == 0:
                continue
            keys[dimension] = key
            narrow_keys[dimension] = min(key, TOP)
            leaf = leaf_of_key(trees, nodes, children, dimension, key)
            if leaf >= 0:
                pairs[0, n_leaves] = leaf
                pairs[1, n_leaves] = leaf_hash(leaf)
                n_leaves += 1
        n_found = n_out
        n_checked = 0
        n_places = 0
        for p in range(-1, n_leaves):
            source = index.always if p < 0 else leaves
            row = 0 if p < 0 else pairs[0, p]
            for at in range(source[row, LIST], source[row, LIST] + source[row, N_LIST]):
                places[n_places] = lists[at]
                if ahead:
                    bring_block(clauses, places[n_places])
                n_places += 1
                if n_places == len(places):
                    n_found = check_places(
                        clauses, places, n_places, keys, narrow_keys, out, n_found
                    )
                    n_checked += n_places
                    n_places = 0
        for i in range(n_leaves if n_access > 1 else 0):
            for j in range(i if n_access == 3 else 1):
                # What is to be added to make a combination: one leaf before the last one chosen.
                total = pairs[1, i] + (pairs[1, j] if n_access == 3 else 0)
                n_others = j if n_access == 3 else i
                for k in range(n_others):
                    pairs[2, k] = mix31(total + pairs[1, k]) & last_cell
                    if ahead:
                        prefetch(cells, pairs[2, k])
                n_records = 0
                for k in range(n_others):
                    h = pairs[2, k]
                    wanted = total + pairs[1, k]
                    while cells[h, 1] >= 0:
                        if cells[h, 0] == wanted:
                            pairs[3, n_records] = cells[h, 1]
                            pairs[4, n_records] = pairs[0, k]
                            n_records += 1
                            if ahead:
                                prefetch(rows, cells[h, 1])
                        h = (h + 1) & last_cell
                for k in range(n_records):
                    r = pairs[3, k]
                    third = pairs[0, j] if n_access == 3 else -1
                    a, b, c = in_order(pairs[4, k], pairs[0, i], third)
                    if rows[r, 0] != a or rows[r, 1] != b or rows[r, 2] != c:
                        continue
                    for at in range(rows[r, LIST], rows[r, LIST] + rows[r, N_LIST]):
                        places[n_places] = entries[at]
                        if ahead:
                            bring_block(clauses, places[n_places])
                        n_places += 1
                        if n_places == len(places):
                            n_found = check_places(
                                clauses, places, n_places, keys, narrow_keys, out, n_found
                            )
                            n_checked += n_places
                            n_places = 0
        n_found = check_places(clauses, places, n_places, keys, narrow_keys, out, n_found)
        n_checked += n_places
        for k in range(events.offsets[e], events.offsets[e + 1]):
            dimension = dimensions[k]
            if dimension < len(trees):
                keys[dimension] = 0
                narrow_keys[dimension] = 0
        if n_found > len(out):
            return e, n_candidates
        for k in range(n_leaves):
            seen[pairs[0, k]] += 1
        n_candidates += n_checked
        n_out = n_found
        out_offsets[e + 1] = n_out
    return len(events.offsets) - 1, n_candidates
