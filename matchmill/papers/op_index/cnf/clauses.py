"""The index `op_index_cnf`: the clauses of an engine, matched as conjunctions of disjunctions.

    products    runs of clauses that are a product of disjunctions (`products.py`), each a
                subscription of an OpIndexCnf under its position
    clauses     position k: clause_ids[k], is_dead[k]; those of product i are
                clause_offsets[i] … clause_offsets[i + 1]
    n_live      of each product; when it falls to 0, the product is deleted from the OpIndexCnf

An event is matched with the products, by bitmaps. Of a product that holds, a clause holds if it has
one satisfied predicate from each factor, which is looked up in the table. A product of one clause
holds together with it.

When half of the clauses are dead, those that live are multiplied out and put together again.
Changes are made in place: no reader may match while something is inserted or deleted.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.encoding.flat_dictionary import Growable
from matchmill.index.base import ClauseMatches, IndexStats, Statistics
from matchmill.index.match_buffer import collect_matches
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
from matchmill.papers.op_index.cnf.cnf_table import CnfTable, empty_cnf_table
from matchmill.papers.op_index.cnf.index import OpIndexCnf
from matchmill.papers.op_index.cnf.products import Products, find_products, multiplied_out

__all__ = ["OpIndexCnfClauses"]


class OpIndexCnfClauses:
    """OpIndex with bitmaps over the clauses of an engine."""

    name: ClassVar[str] = "op_index_cnf"
    in_place: ClassVar[bool] = True

    def __init__(self, cnf: OpIndexCnf, build_seconds: float = 0.0) -> None:
        self._build_seconds = build_seconds
        self._start(cnf)

    def _start(self, cnf: OpIndexCnf) -> None:
        self._cnf = cnf
        self._clause_offsets = Growable(np.int64, np.zeros(1, np.int64))
        self._clause_ids = Growable(np.int64)
        self._is_dead = Growable(np.bool_)
        self._n_live = Growable(np.int64)  # of each product
        self._n_clauses = 0
        self._widest = 0  # predicates of a product
        self._places: IdTable | None = None

    @classmethod
    def build(
        cls,
        table: ConjunctionTable,
        statistics: Statistics | None = None,
        *,
        segments: int | bool = True,
        **options: Any,
    ) -> OpIndexCnfClauses:
        """`segments` as in `OpIndex.build`."""
        started = time.perf_counter()
        index = cls(OpIndexCnf.build(empty_cnf_table(), statistics, segments=segments))
        index._add(table)
        index._build_seconds = time.perf_counter() - started
        return index

    # -- changes ----------------------------------------------------------------------------------

    def insert(self, table: ConjunctionTable) -> None:
        """Insert the clauses of a table."""
        known = self._known_places()
        check_new(find_ids(known, table.clause_ids), table.clause_ids)
        places = np.arange(self._clause_ids.n, self._clause_ids.n + table.n_clauses)
        self._add(table)
        self._places = with_ids(known, table.clause_ids, places)

    def delete(self, clause_ids: np.ndarray) -> None:
        """Delete clauses by their ids."""
        ids = np.unique(clause_ids)
        known = self._known_places()
        places = find_ids(known, ids)
        check_known(places)
        without_ids(known, ids)
        self._is_dead.array[places] = True
        self._n_clauses -= len(ids)
        owners = np.searchsorted(self._clause_offsets.array, places, side="right") - 1
        products, counts = np.unique(owners, return_counts=True)
        n_live = self._n_live.array
        n_live[products] -= counts
        self._cnf.bury(products[n_live[products] == 0])
        if 2 * self._n_clauses < self._clause_ids.n:
            self._rebuild()

    def _add(self, table: ConjunctionTable) -> None:
        """File clauses at the end."""
        products = find_products(table, self._n_live.n)
        self._cnf.insert(products.table)
        offsets = products.clause_offsets
        self._clause_offsets = self._clause_offsets.extended(offsets[1:] + self._clause_ids.n)
        self._clause_ids = self._clause_ids.extended(table.clause_ids)
        self._is_dead = self._is_dead.extended(np.zeros(table.n_clauses, np.bool_))
        self._n_live = self._n_live.extended(np.diff(offsets))
        self._n_clauses += table.n_clauses
        self._widest = max(self._widest, _widest_of(products.table))

    def _rebuild(self) -> None:
        live = np.flatnonzero(~self._is_dead.array)
        products = Products(self._cnf.table(), self._clause_offsets.array, self._clause_ids.array)
        table = multiplied_out(products, live)
        self._start(self._cnf.emptied())
        self._add(table)

    def _known_places(self) -> IdTable:
        if self._places is None:
            live = np.flatnonzero(~self._is_dead.array)
            self._places = with_ids(new_id_table(), self._clause_ids.array[live], live)
        return self._places

    # -- matching ---------------------------------------------------------------------------------

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        """Match a batch of events."""
        products = self._cnf.match_batch(events)
        table = self._cnf.table()
        keys = np.zeros(table.n_dimensions, np.int64)
        held = np.empty(self._widest, np.bool_)

        def match_from(start: int, offsets: np.ndarray, out: np.ndarray) -> int:
            return _clauses_that_hold(
                table,
                self._clause_offsets.array,
                self._clause_ids.array,
                self._is_dead.array,
                events,
                products.offsets,
                products.clause_ids,
                keys,
                held,
                start,
                offsets,
                out,
            )

        return collect_matches(events.n_events, self._clause_ids.n, match_from)

    # -- files and figures ------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all that `from_arrays` needs."""
        return {
            "clause_offsets": self._clause_offsets.array,
            "clause_ids": self._clause_ids.array,
            "is_dead": self._is_dead.array,
            "n_live": self._n_live.array,
            **{f"cnf_{name}": a for name, a in self._cnf.arrays().items()},
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> OpIndexCnfClauses:
        """Make the same again from its arrays."""
        start = "cnf_"
        parts = {name[len(start) :]: a for name, a in arrays.items() if name.startswith(start)}
        index = cls(OpIndexCnf.from_arrays(parts))
        index._clause_offsets = Growable(np.int64, arrays["clause_offsets"])
        index._clause_ids = Growable(np.int64, arrays["clause_ids"])
        index._is_dead = Growable(np.bool_, arrays["is_dead"])
        index._n_live = Growable(np.int64, arrays["n_live"])
        index._n_clauses = int(arrays["n_live"].sum())
        index._widest = _widest_of(index._cnf.table())
        return index

    def stats(self) -> IndexStats:
        """Return the figures of this index; `candidates` are products."""
        cnf = self._cnf.stats()
        kept = (self._clause_offsets, self._clause_ids, self._is_dead, self._n_live)
        n_bytes = cnf.n_bytes + sum(growable.data.nbytes for growable in kept)
        if self._places is not None:
            n_bytes += self._places.n_bytes
        return IndexStats(self._n_clauses, n_bytes, self._build_seconds, cnf.candidates)


def _widest_of(table: CnfTable) -> int:
    """Return the predicates of the product that has the most."""
    predicates = table.disjunction_offsets[table.subscription_offsets]
    return int(np.diff(predicates).max(initial=0))


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _predicates_that_hold(table: CnfTable, i: int, keys: np.ndarray, out_held: np.ndarray) -> None:
    """Write for each predicate of a product whether the event satisfies it."""
    first = table.disjunction_offsets[table.subscription_offsets[i]]
    stop = table.disjunction_offsets[table.subscription_offsets[i + 1]]
    for p in range(first, stop):
        key = keys[table.dimensions[p]]
        holds = False
        for k in range(table.interval_offsets[p], table.interval_offsets[p + 1]):
            holds = holds or table.lows[k] <= key <= table.highs[k]
        out_held[p - first] = holds


@kernel
def _clause_holds(table: CnfTable, i: int, number: int, held: np.ndarray) -> bool:
    """Whether a clause of a product holds: its predicates are the digits of its number."""
    factors, stop = table.subscription_offsets[i], table.subscription_offsets[i + 1]
    first = table.disjunction_offsets[factors]
    for c in range(stop - 1, factors - 1, -1):
        start = table.disjunction_offsets[c]
        n_alternatives = table.disjunction_offsets[c + 1] - start
        if not held[start - first + number % n_alternatives]:
            return False
        number //= n_alternatives
    return True


@kernel
def _clauses_that_hold(
    table: CnfTable,
    clause_offsets: np.ndarray,
    clause_ids: np.ndarray,
    is_dead: np.ndarray,
    events: EventBatch,
    offsets: np.ndarray,
    products: np.ndarray,
    keys: np.ndarray,
    held: np.ndarray,
    start: int,
    out_offsets: np.ndarray,
    out: np.ndarray,
) -> int:
    """From products to clauses, for events from `start` on; `keys` is 0 before and after.

    Returns the first event for which `out` had no room, or their number.
    """
    n_out = int(out_offsets[start])
    n_events = len(events.offsets) - 1
    for e in range(start, n_events):
        for k in range(events.offsets[e], events.offsets[e + 1]):
            if events.dimensions[k] < len(keys):
                keys[events.dimensions[k]] = events.keys[k]
        n = n_out
        for r in range(offsets[e], offsets[e + 1]):
            i = products[r]
            first, stop = clause_offsets[i], clause_offsets[i + 1]
            if stop - first > 1:
                _predicates_that_hold(table, i, keys, held)
            for k in range(first, stop):
                if is_dead[k] or (
                    stop - first > 1 and not _clause_holds(table, i, k - first, held)
                ):
                    continue
                if n < len(out):
                    out[n] = clause_ids[k]
                n += 1
        for k in range(events.offsets[e], events.offsets[e + 1]):
            if events.dimensions[k] < len(keys):
                keys[events.dimensions[k]] = 0
        if n > len(out):
            return e
        n_out = n
        out_offsets[e + 1] = n_out
    return n_events
