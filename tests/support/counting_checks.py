"""What must hold of the three forms of counting after every change."""

from __future__ import annotations

from collections import Counter

import numpy as np

from matchmill.encoding.conjunction_table import ABSENT_KEY
from matchmill.papers.baselines.counting import Counting
from matchmill.papers.baselines.counting_part import CountingPart
from matchmill.papers.baselines.key_postings import KeyPostings
from matchmill.papers.common.id_table import find_ids
from matchmill.papers.two_stage.counting_bits import BitMatrix
from matchmill.papers.two_stage.counting_bytes import ByteMatrix
from matchmill.papers.two_stage.counting_lists import ListAssociation
from matchmill.papers.two_stage.counting_matrix import CountingMatrix, set_bits
from matchmill.papers.two_stage.predicate_stage import CountingPredicates
from tests.support.op_index_checks import check_spans

__all__ = ["check_counting", "check_counting_matrix"]


# -- lists ----------------------------------------------------------------------------------------


def check_counting(index: Counting) -> None:
    """Assert all invariants of the parts, and that no clause is there twice."""
    parts, fresh = index._state
    live = fresh.clause_ids.tolist()
    for part in parts:
        live += _check_part(part)
    assert len(set(live)) == len(live) == index.stats().n_clauses
    assert fresh.n_clauses < index._fresh_clauses or fresh.n_clauses == 0
    assert all(part.n_live for part in parts)


def _check_part(part: CountingPart) -> list[int]:
    """Return the ids of live clauses."""
    arrays = part._arrays
    n = len(arrays.clause_ids)
    assert (np.diff(arrays.clause_ids) > 0).all()
    assert (np.diff(arrays.dead) > 0).all()
    assert len(arrays.needed) == n
    needless = np.zeros(n, bool)
    needless[arrays.needless] = True
    is_dead = np.zeros(n, bool)
    is_dead[arrays.dead] = True
    assert ((arrays.needed == 0) == (needless & ~is_dead)).all()
    for counters, found in part._spare:  # what the next call begins with
        assert np.array_equal(counters, arrays.needed)
        assert len(found) == n
    for postings in (arrays.holds, arrays.fails):
        _check_postings(postings, n)
    live: list[int] = arrays.clause_ids[~is_dead].tolist()
    return live


def _check_postings(postings: KeyPostings, n_rows: int) -> None:
    n_nodes = int(postings.node_offsets[-1])
    assert len(postings.link_offsets) == n_nodes + 1 <= len(postings.run_offsets)
    for offsets, last in (
        (postings.edge_offsets, len(postings.edges)),
        (postings.run_offsets, len(postings.rows)),
        (postings.link_offsets, len(postings.links)),
    ):
        assert offsets[0] == 0
        assert offsets[-1] == last
        assert (np.diff(offsets) >= 0).all()
    assert (postings.rows < n_rows).all()
    assert (postings.links >= n_nodes).all()
    assert (postings.links < len(postings.run_offsets) - 1).all()


# -- matrices -------------------------------------------------------------------------------------


def check_counting_matrix(index: CountingMatrix) -> None:
    """Assert that columns, the predicates they have, and who uses a predicate agree."""
    matrix = index._matrix
    n_predicates, n_columns = matrix.shape()
    assert n_columns % 64 == 0
    assert len(index._clause_ids) == n_columns >= index._n_columns
    used = matrix.used_columns()
    free = index._free
    assert sorted([*used.tolist(), *free]) == list(range(index._n_columns))
    ids = index._clause_ids[used]
    assert len(set(ids.tolist())) == len(ids) == index.stats().n_clauses
    if index._columns is not None:
        assert int(index._columns.n_used[0]) == len(used)
        assert np.array_equal(find_ids(index._columns, ids), used)
    cells = _cells(index)
    assert cells.shape == (n_predicates, n_columns)
    is_used = np.zeros(n_columns, bool)
    is_used[used] = True
    assert not cells[:, ~is_used].any()
    assert np.array_equal(cells[:, used].sum(axis=0), _needed(index)[used])
    stored = index._predicates.stored()
    assert n_predicates >= index._predicates.n_ids
    n_users = np.zeros(n_predicates, np.int64)
    n_users[stored.ids] = stored.n_users
    assert (stored.n_users > 0).all()
    assert np.array_equal(n_users, cells.sum(axis=1))
    if isinstance(matrix, BitMatrix):
        has_clauses = np.zeros(n_predicates, bool)
        has_clauses[set_bits(matrix._has_clauses[None])[1]] = True
        assert has_clauses[cells.any(axis=1)].all()
    check_predicates(index._predicates)


def check_predicates(predicates: CountingPredicates) -> None:
    """Assert that ids, keys, structures and what accepts absence agree."""
    assert {id_: key for key, id_ in predicates._ids.items()} == predicates._keys
    assert sorted([*predicates._keys, *predicates._free]) == list(range(predicates.n_ids))
    expected: Counter[int] = Counter()
    absent: dict[int, set[int]] = {}
    for (dimension, content), id_ in predicates._ids.items():
        expected[dimension] += 1
        if np.frombuffer(content, np.int64)[:1].tolist() == [ABSENT_KEY]:
            absent.setdefault(dimension, set()).add(id_)
    assert set(expected) <= set(predicates._structures)
    assert {d: set(ids.tolist()) for d, ids in predicates._absent.items()} == absent


def _cells(index: CountingMatrix) -> np.ndarray:
    matrix = index._matrix
    if isinstance(matrix, ByteMatrix):
        assert matrix._cells.max(initial=0) <= 1
        return matrix._cells.astype(bool)
    if isinstance(matrix, ListAssociation):
        return _cells_of_lists(matrix)
    assert isinstance(matrix, BitMatrix)
    return _unpacked(matrix._cells)


def _cells_of_lists(matrix: ListAssociation) -> np.ndarray:
    """Both directions have the same pairs, each once; spans lie apart."""
    pairs = []
    for lists in (matrix._clauses, matrix._predicates):
        first, n, capacity = lists.records.T
        assert (n <= capacity).all()
        check_spans(lists.spans, [(a, b) for a, b in zip(first, capacity, strict=True) if b])
        found = [
            (i, int(entry))
            for i in range(len(n))
            for entry in lists.spans.cells[first[i] : first[i] + n[i]]
        ]
        assert len(set(found)) == len(found)
        pairs.append(found)
    assert sorted(pairs[0]) == sorted((p, c) for c, p in pairs[1])
    cells = np.zeros(matrix.shape(), bool)
    for p, c in pairs[0]:
        cells[p, c] = True
    return cells


def _needed(index: CountingMatrix) -> np.ndarray:
    """How many predicates each column has; of columns in use."""
    matrix = index._matrix
    if isinstance(matrix, ByteMatrix | ListAssociation):
        return matrix._needed.astype(np.int64)
    assert isinstance(matrix, BitMatrix)
    bits = _unpacked(matrix._needed).astype(np.int64)
    powers: np.ndarray = 1 << np.arange(len(bits))
    return (bits * powers[:, None]).sum(axis=0)


def _unpacked(words: np.ndarray) -> np.ndarray:
    as_bytes = np.ascontiguousarray(words).view(np.uint8)
    return np.unpackbits(as_bytes, axis=1, bitorder="little").astype(bool)
