"""Find the predicates that some element of a list satisfies.

Each element is encoded as an event, and each predicate as a clause about it; both have dimensions
of their own. Most predicates ask for given values (`tags contains 'a'`); those are sorted postings:

    dimension d    point_keys[point_offsets[d] … point_offsets[d + 1]], ascending,
                   point_flags the predicate of each

All others (ranges, negated patterns) are a small ConjunctionTable that is scanned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from matchmill.encoding.clause_encoder import encode_clauses
from matchmill.encoding.conjunction_table import (
    ConjunctionTable,
    clause_holds,
    concatenate,
    empty_table,
    take_clauses,
)
from matchmill.encoding.dimensions import Dimensions
from matchmill.encoding.event_batch import EventBatch
from matchmill.encoding.events.columns import Column, EventColumns
from matchmill.kernels.csr import offsets_of
from matchmill.kernels.jit import kernel
from matchmill.kernels.searches import first_at_least
from matchmill.language.expression import Predicate
from matchmill.language.normal_form import Clause, element_clauses
from matchmill.language.parser import parse_text
from matchmill.settings import UNLIMITED

__all__ = ["ElementIndex"]


class Postings(NamedTuple):
    """The predicates of each value, and all other predicates."""

    point_offsets: np.ndarray
    point_keys: np.ndarray
    point_flags: np.ndarray
    others: ConjunctionTable


class ElementIndex:
    """Finds (event, predicate) pairs."""

    _dimensions: Dimensions
    _table: ConjunctionTable
    _n_predicates: int

    def __init__(self, predicates: list[str], earlier: ElementIndex | None = None) -> None:
        """Build; `earlier` holds the first of these predicates, and its clauses are used again."""
        start, table = 0, empty_table()
        self._dimensions = Dimensions()
        if earlier is not None:
            start, table = earlier._n_predicates, earlier._table
            self._dimensions = earlier._dimensions
        self._n_predicates = len(predicates)
        clauses, owners = _clauses_of(predicates, start)
        encoded = encode_clauses(self._dimensions, clauses, owners)
        if encoded.relabellings:  # rare: then start again
            self._dimensions, table = Dimensions(), empty_table()
            clauses, owners = _clauses_of(predicates, 0)
            encoded = encode_clauses(self._dimensions, clauses, owners)
        self._table = concatenate([table, encoded.table])
        self._postings = _build_postings(self._table, len(self._dimensions))

    @property
    def dimensions(self) -> Dimensions:
        """The dimensions of elements."""
        return self._dimensions

    def find(
        self, column: Column, encode: Callable[[Dimensions, EventColumns], EventBatch]
    ) -> np.ndarray:
        """Return the (event, predicate) pairs of a column of lists, each once."""
        owners, elements = _as_events(column)
        batch = encode(self._dimensions, elements)
        keys = np.zeros(len(self._dimensions), np.int64)
        out = np.empty((4 * batch.n_events + 64, 2), np.int64)
        n_found = _find_elements(self._postings, batch, keys, out)
        if n_found > len(out):
            out = np.empty((n_found, 2), np.int64)
            n_found = _find_elements(self._postings, batch, keys, out)
        # One number per hit: rows of two would be sorted as bytes, which takes ten times as long.
        n = max(1, self._n_predicates)
        hits = np.unique(owners[out[:n_found, 0]] * n + out[:n_found, 1])
        return np.stack(np.divmod(hits, n), axis=1)


def _clauses_of(predicates: list[str], start: int) -> tuple[list[Clause], np.ndarray]:
    clauses: list[Clause] = []
    owners: list[int] = []
    for p in range(start, len(predicates)):
        predicate = parse_text(predicates[p], UNLIMITED)
        assert isinstance(predicate, Predicate)
        for clause in element_clauses(predicate):
            clauses.append(clause)
            owners.append(p)
    return clauses, np.array(owners, np.int64)


def _as_events(column: Column) -> tuple[np.ndarray, EventColumns]:
    """Return the event of each element, and the elements as events."""
    columns, owners, n = [], [], 0
    for part in column.elements:
        rows = np.arange(n, n + len(part.rows), dtype=np.int64)
        columns.append(part._replace(attribute=column.attribute, rows=rows))
        owners.append(part.rows)
        n += len(part.rows)
    all_owners = np.concatenate(owners) if owners else np.empty(0, np.int64)
    return all_owners, EventColumns(n, columns, {})


def _build_postings(table: ConjunctionTable, n_dimensions: int) -> Postings:
    single = np.diff(table.clause_offsets) == 1
    off_point = offsets_of(table.lows != table.highs)
    first = table.interval_offsets[table.clause_offsets[:-1]]
    last = table.interval_offsets[table.clause_offsets[1:]]
    is_point = single & (off_point[first] == off_point[last])
    points = take_clauses(table, np.flatnonzero(is_point))
    counts = np.diff(points.interval_offsets)
    dimensions = np.repeat(points.dimensions, counts)
    flags = np.repeat(points.clause_ids, counts)
    order = np.lexsort((points.lows, dimensions))
    return Postings(
        np.searchsorted(dimensions[order], np.arange(n_dimensions + 1)),
        points.lows[order],
        flags[order],
        take_clauses(table, np.flatnonzero(~is_point)),
    )


@kernel
def _find_elements(postings: Postings, batch: EventBatch, keys: np.ndarray, out: np.ndarray) -> int:
    """Write (element, predicate) pairs; return how many there are, even if out is full."""
    n_out = 0
    others = postings.others
    for e in range(len(batch.offsets) - 1):
        for k in range(batch.offsets[e], batch.offsets[e + 1]):
            dimension, key = batch.dimensions[k], batch.keys[k]
            keys[dimension] = key
            if dimension >= len(postings.point_offsets) - 1:
                continue  # added by a writer since this index was built
            stop = postings.point_offsets[dimension + 1]
            at = first_at_least(postings.point_keys, key, postings.point_offsets[dimension], stop)
            while at < stop and postings.point_keys[at] == key:
                if n_out < len(out):
                    out[n_out, 0] = e
                    out[n_out, 1] = postings.point_flags[at]
                n_out += 1
                at += 1
        for i in range(len(others.clause_ids)):
            if clause_holds(others, i, keys):
                if n_out < len(out):
                    out[n_out, 0] = e
                    out[n_out, 1] = others.clause_ids[i]
                n_out += 1
        for k in range(batch.offsets[e], batch.offsets[e + 1]):
            keys[batch.dimensions[k]] = 0
    return n_out
