"""What must hold of an index that changes in place behind an engine, after every step.

The structure has exactly the clauses that its contents have, without those that were taken out; the
codes of clauses that are not doubtful are exact; and the structure itself is whole, by the checks
that its paper's tests have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import matchmill as mm
from matchmill.encoding.conjunction_table import ConjunctionTable, divide
from matchmill.index.in_place import _LISTED, InPlaceSegments, Structure, View
from matchmill.index.live_clauses import live_clauses
from matchmill.papers.baselines.counting import Counting
from matchmill.papers.be_tree import BeTree
from matchmill.papers.common.pools import rows_in_use, spans_in_use
from matchmill.papers.op_index import OpIndex
from matchmill.papers.op_index.cnf.clauses import OpIndexCnfClauses
from matchmill.papers.op_index.cnf.products import Products, multiplied_out
from matchmill.papers.op_index.index import _all_places
from matchmill.papers.ps_tree.bloom_index import PSTBloom
from matchmill.papers.ps_tree.hash_index import PSTHash
from matchmill.papers.two_stage.counting_matrix import CountingMatrix
from tests.support.be_tree_checks import check_tree, clauses_of
from tests.support.counting_checks import check_counting, check_counting_matrix
from tests.support.op_index_checks import check_op_index, check_op_index_clauses
from tests.support.ps_tree_checks import check_forest, check_index

__all__ = ["IN_PLACE", "check_engine", "check_structure", "structure_of"]

IN_PLACE = [
    "be_tree",
    "counting",
    "counting_bits",
    "counting_bytes",
    "counting_lists",
    "op_index",
    "op_index_cnf",
    "pst_bloom",
    "pst_hash",
]


def structure_of(engine: mm.Engine) -> Structure | None:
    """The structure behind an engine; None if it has no clauses."""
    segments = engine._store.segmented.snapshot.segments
    if not segments:
        return None
    (segment,) = segments
    assert isinstance(segment.built, View)
    return segment.built.structure


def check_engine(engine: mm.Engine) -> None:
    """One segment that changes in place, as the state has it, and all that holds of it."""
    store = engine._store
    assert isinstance(store.segmented, InPlaceSegments)
    snapshot = store.segmented.snapshot
    assert store.state.snapshot is snapshot
    assert len(snapshot.segments) <= 1
    for segment in snapshot.segments:
        assert isinstance(segment.built, View)
        structure = segment.built.structure
        assert structure.contents is segment.built.contents
        rows = store.state.subscriptions.row_of_clause.data[live_clauses([segment[1:]]).clause_ids]
        numbers = store.state.subscriptions.number_of_row.data[rows]
        assert (store.state.subscriptions.row_of_number.data[numbers] == rows).all()
        waiting = [ids for _, ids in structure._superseded]
        removed = structure.removed.all_ids()
        all_dead = np.sort(np.concatenate([removed, *waiting]))
        assert np.array_equal(all_dead, segment.dead.all_ids())
        check_structure(structure)


def check_structure(structure: Structure) -> None:
    """The index has the clauses that it should have, in codes that are right."""
    with structure.reading() as index:
        contents = structure.contents
        table = live_clauses([(contents.table, structure.removed)])
        plain, lists = divide(table)
        coded, doubtful = contents.codes.clauses(plain)
        all_doubtful = contents.doubtful.array
        assert len(all_doubtful) == contents.table.n_clauses
        assert int((all_doubtful == 1).sum()) == contents.n_doubtful
        at = np.searchsorted(contents.table.clause_ids, plain.clause_ids)
        assert np.array_equal(all_doubtful[at], doubtful)
        at = np.searchsorted(contents.table.clause_ids, lists.clause_ids)
        assert (all_doubtful[at] == _LISTED).all()
        parts = [(segment.table, segment.dead) for segment in structure.lists.snapshot.segments]
        for one, other in zip(live_clauses(parts), lists, strict=True):
            assert np.array_equal(one, other)
        assert index.stats().n_clauses == plain.n_clauses
        CHECKS[type(index).name](index, coded)


def _check_be_tree(index: BeTree, table: ConjunctionTable) -> None:
    check_tree(index, clauses_of(table))


def _check_pst(index: PSTBloom | PSTHash, table: ConjunctionTable) -> None:
    check_index(index)
    arrays = index._arrays
    counts = check_forest(arrays.forest)
    cells = arrays.clauses.table.cells
    assert sorted(cells[cells[:, 1] >= 0, 0].tolist()) == table.clause_ids.tolist()
    if table.n_clauses:
        return
    assert set(counts) <= {1}  # nothing is left behind: one space per tree, no memory in use
    pools = [arrays.lists, arrays.clauses.narrow, arrays.clauses.wide]
    if isinstance(index, PSTBloom):
        pools.append(arrays.signatures)
    else:
        pools.append(arrays.records.lists)
        assert rows_in_use(arrays.records.rows) == arrays.records.table.n_used[0] == 0
    assert [spans_in_use(pool) for pool in pools] == [0] * 4


def _check_op_index(index: OpIndex, table: ConjunctionTable) -> None:
    check_op_index(index)
    ids, places = _all_places(index._store.rows, index._n_clauses)
    assert sorted(ids.tolist()) == table.clause_ids.tolist()
    if index._places is not None:
        cells = index._places.cells[index._places.cells[:, 1] >= 0]
        assert sorted(map(tuple, cells.tolist())) == sorted(
            zip(ids.tolist(), places.tolist(), strict=True)
        )


def _check_op_index_cnf(index: OpIndexCnfClauses, table: ConjunctionTable) -> None:
    check_op_index_clauses(index)
    live = np.flatnonzero(~index._is_dead.array)
    products = Products(index._cnf.table(), index._clause_offsets.array, index._clause_ids.array)
    assert clauses_of(multiplied_out(products, live)) == clauses_of(table)


def _check_counting(index: Counting, table: ConjunctionTable) -> None:
    check_counting(index)
    parts, fresh = index._state
    found = [clauses_of(part.live_table()) for part in parts]
    everything: dict[int, Any] = {}
    for some in [*found, clauses_of(fresh)]:
        assert not everything.keys() & some.keys()
        everything |= some
    assert everything == clauses_of(table)


def _check_matrix(index: CountingMatrix, table: ConjunctionTable) -> None:
    check_counting_matrix(index)
    columns = index._matrix.used_columns()
    assert sorted(index._clause_ids[columns].tolist()) == table.clause_ids.tolist()


CHECKS: dict[str, Callable[[Any, ConjunctionTable], None]] = {
    "be_tree": _check_be_tree,
    "counting": _check_counting,
    "counting_bits": _check_matrix,
    "counting_bytes": _check_matrix,
    "counting_lists": _check_matrix,
    "op_index": _check_op_index,
    "op_index_cnf": _check_op_index_cnf,
    "pst_bloom": _check_pst,
    "pst_hash": _check_pst,
}
