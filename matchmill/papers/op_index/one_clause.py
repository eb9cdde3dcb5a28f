"""Insertion of a single clause, without the arrays that many at once are worth.

`filing.py` sorts the entries of all clauses and merges them with each list once. For one clause
that is a hundred small calls of NumPy, and the clause has no more than a few entries. Here one
kernel plans what it needs, the caller makes room, and another kernel writes it. Rows, lists and
bounds come out exactly as from `filing.py`.

What is rare is left to `filing.py`: a first clause, new dimensions, predicates that accept absence.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchmill.encoding.conjunction_table import ABSENT_KEY, ConjunctionTable
from matchmill.kernels.jit import int64, kernel
from matchmill.papers.common.pools import spans_with_room
from matchmill.papers.op_index.counters import Rows, place_row, row_span, rows_with_span
from matchmill.papers.op_index.filing import Store
from matchmill.papers.op_index.list_block import DIMENSION_SHIFT, entry_width
from matchmill.papers.op_index.lists import Lists, merge_entries, room_for
from matchmill.papers.op_index.operator_kinds import (
    AT_LEAST,
    AT_MOST,
    BETWEEN,
    EQUAL,
    FINAL_KEYS,
    FIRST_KEYS,
    UNSETTLED,
    Bounds,
)
from matchmill.papers.op_index.pivots import Frequencies

__all__ = ["Added", "add_clause"]


class Added(NamedTuple):
    """The store with one more clause, and where that is."""

    store: Store
    pivot: int
    row: int


def add_clause(store: Store, table: ConjunctionTable, frequencies: Frequencies) -> Added | None:
    """Insert a table of one clause; None, and no change, if that is not for this module.

    Frequencies of subscriptions are changed in place.
    """
    n_known = min(len(store.bounds.floors), len(frequencies.counts))
    if table.n_dimensions > n_known or int(store.lists.blocks.state[0]) == 0:
        return None
    operators = np.empty(len(table.lows), np.int64)
    pivot, n_cells, n_longest = _plan(
        table,
        store.bounds,
        frequencies.counts,
        frequencies.are_events,
        store.lists,
        store.variant.max_segments,
        FIRST_KEYS,
        FINAL_KEYS,
        operators,
    )
    if pivot < 0:
        return None
    blocks = spans_with_room(store.lists.blocks, n_cells)
    if blocks is not store.lists.blocks:
        store = store._replace(lists=store.lists._replace(blocks=blocks))
    rows = rows_with_span(store.rows, row_span(store.rows.pivots, pivot))
    if rows is not store.rows:
        store = store._replace(rows=rows)
    row = _write(
        table,
        pivot,
        operators,
        store.rows,
        store.lists,
        store.variant.max_segments,
        store.variant.has_signatures,
        store.variant.code_shift,
        np.empty(n_longest, np.int64),
    )
    return Added(store, pivot, row)


# -- kernels --------------------------------------------------------------------------------------


@kernel
def _is_among(keys: np.ndarray, key: int) -> bool:
    for other in keys:
        if other == key:
            return True
    return False


@kernel
def _settle(
    table: ConjunctionTable, bounds: Bounds, first_keys: np.ndarray, final_keys: np.ndarray
) -> None:
    """Settle floors and ceilings that are open: by the ends of types alone, as one clause tells."""
    floors, ceilings = bounds.floors, bounds.ceilings
    for p in range(len(table.dimensions)):
        d = table.dimensions[p]
        floor, ceiling = floors[d], ceilings[d]
        if floor != UNSETTLED and ceiling != UNSETTLED:
            continue
        for k in range(table.interval_offsets[p], table.interval_offsets[p + 1]):
            low, high = table.lows[k], table.highs[k]
            if low < high:
                if floors[d] == UNSETTLED and _is_among(first_keys, low):
                    floor = low
                if ceilings[d] == UNSETTLED and _is_among(final_keys, high):
                    ceiling = high
        floors[d], ceilings[d] = floor, ceiling


@kernel
def _plan(
    table: ConjunctionTable,
    bounds: Bounds,
    counts: np.ndarray,
    are_events: bool,
    lists: Lists,
    max_segments: int,
    first_keys: np.ndarray,
    final_keys: np.ndarray,
    out_operators: np.ndarray,
) -> tuple[int, int, int]:
    """Return the pivot of a clause, the cells it needs, and those of the longest list that moves.

    Pivot -1 if a predicate accepts absence or nothing; then nothing has changed.
    """
    n = len(table.dimensions)
    for p in range(n):
        first = table.interval_offsets[p]
        if first == table.interval_offsets[p + 1] or table.lows[first] == ABSENT_KEY:
            return -1, 0, 0
    if n == 0:
        return -1, 0, 0
    _settle(table, bounds, first_keys, final_keys)
    pivot = -1
    least = int64(0)
    for p in range(n):
        d = table.dimensions[p]
        if not are_events:
            counts[d] += 1
        first, last = table.interval_offsets[p], table.interval_offsets[p + 1] - 1
        cost = 2 * counts[d] + (0 if table.lows[first] == table.highs[last] else 1)
        if pivot < 0 or cost < least:
            pivot = int64(d) + 1
            least = cost
        for k in range(first, last + 1):
            if table.lows[k] == table.highs[k]:
                out_operators[k] = EQUAL
            elif table.lows[k] == bounds.floors[d]:
                out_operators[k] = AT_MOST
            elif table.highs[k] == bounds.ceilings[d]:
                out_operators[k] = AT_LEAST
            else:
                out_operators[k] = BETWEEN
    pivots, n_new = np.empty(1, np.int64), np.empty(1, np.int64)
    pivots[0] = pivot
    n_cells = n_longest = int64(0)
    for operator in range(lists.heads.shape[1]):
        n_new[0] = 0
        for k in range(len(out_operators)):
            n_new[0] += out_operators[k] == operator
        if n_new[0] > 0:
            _, n_spans, longest = room_for(lists, operator, pivots, n_new, max_segments)
            n_cells += n_spans
            n_longest = max(n_longest, longest)
    return pivot, n_cells, n_longest


@kernel
def _write(
    table: ConjunctionTable,
    pivot: int,
    operators: np.ndarray,
    rows: Rows,
    lists: Lists,
    max_segments: int,
    has_signatures: bool,
    code_shift: int,
    scratch: np.ndarray,
) -> int:
    """Give the clause a row, and write its entries; there is room. Returns the row."""
    row = place_row(rows, pivot, len(table.dimensions), table.clause_ids[0])
    pivots, offsets = np.empty(1, np.int64), np.zeros(2, np.int64)
    pivots[0] = pivot
    entries = np.zeros(4 * len(operators), np.int64)
    for operator in range(lists.heads.shape[1]):
        width = entry_width(operator)
        n = 0
        for p in range(len(table.dimensions)):
            for k in range(table.interval_offsets[p], table.interval_offsets[p + 1]):
                if operators[k] != operator:
                    continue
                at = width * n
                entries[at] = table.highs[k] if operator == AT_MOST else table.lows[k]
                entries[at + 1] = (int64(table.dimensions[p]) << DIMENSION_SHIFT) | (
                    row << code_shift
                )
                if operator == BETWEEN:
                    entries[at + 2] = table.highs[k]
                    entries[at + 3] = 0
                n += 1
        if n > 0:
            offsets[1] = n
            merge_entries(
                lists,
                operator,
                pivots,
                offsets,
                entries,
                max_segments,
                has_signatures,
                False,
                scratch,
            )
    return row
