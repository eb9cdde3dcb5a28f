"""What must hold of an OpIndex after every change, over conjunctions and over CNF."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from matchmill.papers.common.id_table import find_ids
from matchmill.papers.common.pools import Spans, span_capacity
from matchmill.papers.op_index import OpIndex, OpIndexCnf
from matchmill.papers.op_index.cnf.clauses import OpIndexCnfClauses
from matchmill.papers.op_index.cnf.matching import CODE_SHIFT
from matchmill.papers.op_index.counters import DEAD, N_DEAD, N_ROWS, START
from matchmill.papers.op_index.filing import Store
from matchmill.papers.op_index.list_block import (
    CAPACITY,
    CODE_MASK,
    DIMENSION_SHIFT,
    HEAD,
    SHAPE,
    N,
    entries_of,
    entry_width,
    signature_bit,
)
from matchmill.papers.op_index.operator_kinds import BETWEEN, OPERATORS

__all__ = ["check_op_index", "check_op_index_clauses", "check_op_index_cnf", "check_spans"]

_PIVOT_CAPACITY, _FREE = 1, 4
_DEAD_SHARE = 4

Entry = tuple[int, int]  # dimension, code


def check_op_index(index: OpIndex) -> None:
    """Assert all invariants of the lists and of the counters."""
    store = index._store
    entries = _check_store(store)
    live = _live_rows(store)
    assert len(live) == index._n_clauses
    owners = [int(store.rows.owners[store.rows.pivots[p, START] + r]) for p, r in live]
    assert len(set(owners)) == len(owners)
    if index._places is not None:
        assert int(index._places.n_used[0]) == len(live)
        places = find_ids(index._places, np.array(owners, np.int64))
        assert places.tolist() == [(p << 32) + r for p, r in live]
    for pivot, row in live:
        counted = {d for d, code in entries[pivot] if code >> 1 == row and not code & 1}
        assert len(counted) == store.rows.initial.cells[store.rows.pivots[pivot, START] + row]


def check_op_index_cnf(index: OpIndexCnf) -> None:
    """Assert all invariants of the lists, of the bitmaps, and of the table behind them."""
    store = index._store
    entries = _check_store(store)
    table = index._table.view()
    n = table.n_subscriptions
    assert index._place_offsets.n == n + 1
    assert index._is_checked.n == table.n_disjunctions
    assert index._pivots.n == index._rows.n == index._place_offsets.array[-1]
    is_live = find_ids(index._known, table.subscription_ids) == np.arange(n)
    assert int(is_live.sum()) == n - index._n_dead == int(index._known.n_used[0])
    expected = set()
    for i in np.flatnonzero(is_live):
        for k in range(index._place_offsets.array[i], index._place_offsets.array[i + 1]):
            pivot, row = int(index._pivots.array[k]), int(index._rows.array[k])
            expected.add((pivot, row))
            at = store.rows.pivots[pivot, START] + row
            assert store.rows.owners[at] == i
            bits = {code & 31 for _, code in entries[pivot] if code >> CODE_SHIFT == row}
            assert all(int(store.rows.initial.cells[at]) >> bit & 1 for bit in bits)
    assert expected == set(_live_rows(store))


def _live_rows(store: Store) -> list[Entry]:
    rows = store.rows
    return [
        (p, r)
        for p in range(len(rows.pivots))
        for r in range(rows.pivots[p, N_ROWS])
        if 0 <= rows.initial.cells[rows.pivots[p, START] + r] < DEAD
    ]


def _check_store(store: Store) -> list[list[Entry]]:
    """Return the (dimension, code) of all entries of each pivot."""
    n_pivots = len(store.bounds.floors) + 1 if len(store.rows.pivots) else 0
    assert len(store.rows.pivots) == len(store.lists.heads) == len(store.lists.sizes) == n_pivots
    assert len(store.rows.owners) >= len(store.rows.initial.cells)
    spans = []
    for pivot in range(n_pivots):
        start, capacity, n_rows = store.rows.pivots[pivot, :3].tolist()
        assert 0 <= n_rows <= capacity
        if capacity:
            spans.append((start, capacity))
        _check_rows(store, pivot)
    check_spans(store.rows.initial, spans)

    entries: list[list[Entry]] = []
    spans = []
    for pivot in range(n_pivots):
        found: list[Entry] = []
        for operator in OPERATORS:
            block = int(store.lists.heads[pivot, operator])
            if block >= 0:
                spans.append((block, int(store.lists.blocks.cells[block + CAPACITY])))
                found += _check_list(store, block, operator)
        assert len(found) == store.lists.sizes[pivot]
        start, n_rows = (int(store.rows.pivots[pivot, c]) for c in (START, N_ROWS))
        for _, code in found:
            row = code >> store.variant.code_shift
            assert row < n_rows
            assert store.rows.initial.cells[start + row] >= 0
        entries.append(found)
    check_spans(store.lists.blocks, spans)
    return entries


def _check_rows(store: Store, pivot: int) -> None:
    """Rows are live, dead or free; the free ones are a chain, the dead ones are counted."""
    record = store.rows.pivots[pivot]
    start, n_rows = int(record[START]), int(record[N_ROWS])
    initial = store.rows.initial.cells[start : start + n_rows].tolist()
    assert initial.count(DEAD) == record[N_DEAD]
    assert record[N_DEAD] * _DEAD_SHARE <= n_rows
    free, row = [], int(record[_FREE])
    while row >= 0:
        assert row < n_rows
        assert initial[row] < 0
        free.append(row)
        row = -2 - initial[row]
    assert row == -1
    assert sorted(free) == [r for r in range(n_rows) if initial[r] < 0]


def check_spans(spans: Spans, live: list[tuple[int, int]]) -> None:
    """Spans in use and free ones lie apart, below the top of the pool."""
    top = int(spans.state[0])
    assert 0 <= top <= len(spans.cells)
    everything = list(live)
    for k, start in enumerate(spans.free.tolist()):
        while start >= 0:
            everything.append((start, 1 << k))
            start = int(spans.cells[start])
        assert start == -1
    everything.sort()
    for (start, size), (following, _) in pairwise([*everything, (top, 0)]):
        assert start >= 0
        assert start + size <= following


def _check_list(store: Store, block: int, operator: int) -> list[Entry]:
    cells = store.lists.blocks.cells
    n, shape = int(cells[block + N]), int(cells[block + SHAPE]) & 255
    width, entries, ends = entry_width(operator), entries_of(block, shape), block + HEAD
    ends += 1 << shape
    assert entries + width * n <= block + cells[block + CAPACITY]
    assert cells[block + CAPACITY] <= span_capacity(int(cells[block + CAPACITY]))
    assert cells[ends] == 0
    assert cells[ends + (1 << shape)] == n
    found: list[Entry] = []
    for s in range(1 << shape):
        before: tuple[int, ...] = ()
        for k in range(cells[ends + s], cells[ends + s + 1]):
            value, tag = (int(x) for x in cells[entries + width * k : entries + width * k + 2])
            dimension = tag >> DIMENSION_SHIFT
            assert dimension & ((1 << shape) - 1) == s
            assert int(cells[block + HEAD + s]) >> signature_bit(operator, dimension, value) & 1
            order: tuple[int, ...] = (dimension, value)
            if operator == BETWEEN:
                high, back = (int(x) for x in cells[entries + width * k + 2 :][:2])
                order = (dimension, value, -high)
                assert 0 <= back <= k
                if back:  # it is of the same dimension and reaches as far
                    other = entries + width * (k - back)
                    assert cells[other + 1] >> DIMENSION_SHIFT == dimension
                    assert cells[other + 2] >= high
            assert before <= order
            before = order
            found.append((dimension, tag & CODE_MASK))
    return found


def check_op_index_clauses(index: OpIndexCnfClauses) -> None:
    """Assert all invariants of the products and their clauses, and of what is below them."""
    check_op_index_cnf(index._cnf)
    table = index._cnf.table()
    n = table.n_subscriptions
    offsets, is_dead = index._clause_offsets.array, index._is_dead.array
    assert table.subscription_ids.tolist() == list(range(n))
    assert len(offsets) == n + 1
    assert offsets[-1] == len(is_dead) == index._clause_ids.n
    assert index._n_clauses == int((~is_dead).sum()) == index.stats().n_clauses
    assert 2 * index._n_clauses >= len(is_dead)
    for i in range(n):
        factors = slice(int(table.subscription_offsets[i]), int(table.subscription_offsets[i + 1]))
        sizes = np.diff(table.disjunction_offsets)[factors]
        first = table.disjunction_offsets[factors.start]
        assert np.prod(sizes) == offsets[i + 1] - offsets[i]
        assert sizes.sum() <= index._widest
        for size in sizes.tolist():  # the dimensions of a factor are distinct
            assert len(set(table.dimensions[first : first + size].tolist())) == size
            first += size
        n_live = int((~is_dead[offsets[i] : offsets[i + 1]]).sum())
        assert n_live == index._n_live.array[i]
        assert (find_ids(index._cnf._known, np.array([i]))[0] == i) == (n_live > 0)
    live = np.flatnonzero(~is_dead)
    ids = index._clause_ids.array[live]
    assert len(set(ids.tolist())) == len(ids)
    if index._places is not None:
        assert int(index._places.n_used[0]) == len(ids)
        assert np.array_equal(find_ids(index._places, ids), live)
