"""Indexes that change in place: long generated sequences against brute force and their invariants.

Every step inserts or deletes some clauses, matches, and checks all that must hold of the arrays.
`script/test --long` runs many more sequences, and with `NUMBA_BOUNDSCHECK=1`: every index of every
array that a kernel reads or writes is then checked.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from matchmill.encoding.conjunction_table import ConjunctionTable, empty_table, take_clauses
from matchmill.errors import InputError
from matchmill.index.base import DynamicIndex
from matchmill.index.registry import index_class
from matchmill.papers.common.clause_intervals import MAX_KEY
from tests.support.cnf_tables import random_products
from tests.support.conformance_kit import (
    batch_of,
    brute_force,
    matched,
    random_batch,
    random_statistics,
    random_table,
    table_of,
)
from tests.support.counting_checks import check_counting, check_counting_matrix
from tests.support.op_index_checks import check_op_index, check_op_index_clauses
from tests.support.tiers import first_cases

pytestmark = pytest.mark.kernels

CHECKS: dict[str, Callable[[Any], None]] = {
    "counting": check_counting,
    "counting_bits": check_counting_matrix,
    "counting_bytes": check_counting_matrix,
    "counting_lists": check_counting_matrix,
    "op_index": check_op_index,
    "op_index_cnf": check_op_index_clauses,
}
STRUCTURES: list[dict[str, Any]] = [{"predicates": s} for s in ("auto", "table", "list", "linked")]
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "counting": [{"fresh_clauses": 1}, {"fresh_clauses": 7}, {}],
    "counting_bits": STRUCTURES,
    "counting_bytes": STRUCTURES,
    "counting_lists": STRUCTURES,
    "op_index": [{}, {"segments": False}, {"segments": 2}],
    "op_index_cnf": [{}, {"segments": False}, {"segments": 2}],
}
SIZES = (1, 1, 1, 2, 3, 8, 30)

every_index = pytest.mark.parametrize("name", CHECKS)


def some_table(rng: Random) -> ConjunctionTable:
    """Few or many dimensions, next to each other or far apart; short keys or the longest ones."""
    table = random_table(rng, 70, n_dimensions=rng.choice((2, 6, 12)), top=rng.choice((12, 40)))
    if rng.random() < 0.4:
        table = random_products(rng, 70)
    table = table._replace(dimensions=table.dimensions * rng.choice((1, 1, 3, 64)))
    if rng.random() < 0.3:
        is_last = table.highs == table.highs.max()
        table = table._replace(highs=np.where(is_last, MAX_KEY, table.highs))
    return table


def changed(rng: Random, name: str, n_steps: int) -> None:
    """Make one sequence."""
    check = CHECKS[name]
    everything = some_table(rng)
    factor = max(1, int(np.gcd.reduce(everything.dimensions)))
    batch = random_batch(rng, 4, n_dimensions=13)
    batch = batch._replace(dimensions=batch.dimensions * factor)
    options = rng.choice(OPTIONS.get(name, [{}]))
    first = np.array(sorted(rng.sample(range(70), rng.choice((0, 0, 1, 40)))), np.int64)
    statistics = random_statistics(rng, everything.n_dimensions)
    table = take_clauses(everything, first)
    index = index_class(name).build(table, statistics, **options)
    live = set(first.tolist())
    for _ in range(n_steps):
        assert isinstance(index, DynamicIndex)
        gone = sorted(set(range(70)) - live)
        if gone and (not live or rng.random() < 0.5):
            chosen = rng.sample(gone, min(len(gone), rng.choice(SIZES)))
            index.insert(take_clauses(everything, np.array(chosen)))
            live |= set(chosen)
        else:
            chosen = rng.sample(sorted(live), min(len(live), rng.choice(SIZES)))
            index.delete(np.array(chosen))
            live -= set(chosen)
        check(index)
        if rng.random() < 0.1:  # as a folder that was saved and opened
            saved = {key: a.copy() for key, a in index.arrays().items()}
            index = index_class(name).from_arrays(saved)
            check(index)
        expected = take_clauses(everything, np.array(sorted(live), np.int64))
        assert matched(index.match_batch(batch)) == brute_force(expected, batch)
        check(index)


@every_index
@pytest.mark.parametrize("first", first_cases(1, range(0, 2000, 20)))
def test_twenty_sequences(name: str, first: int) -> None:
    for seed in range(first, first + 20):
        changed(Random(seed), name, n_steps=10)


@every_index
@pytest.mark.parametrize("seed", first_cases(1, range(20)))
def test_a_long_sequence(name: str, seed: int) -> None:
    changed(Random(seed), name, n_steps=150)


@every_index
def test_ids_that_are_there_are_rejected(name: str) -> None:
    """As are those that are given twice; nothing is inserted, nothing is lost."""
    rng = Random(7)
    table, batch = random_table(rng, 40), random_batch(rng, 8)
    index = index_class(name).build(take_clauses(table, np.arange(30)))
    assert isinstance(index, DynamicIndex)
    index.insert(take_clauses(table, np.arange(30, 40)))
    for ids in ([29, 50], [39, 50], [50, 50], [0, 39]):
        with pytest.raises(InputError, match="none was inserted"):
            index.insert(take_clauses(table, np.arange(2))._replace(clause_ids=np.array(ids)))
        CHECKS[name](index)
    assert matched(index.match_batch(batch)) == brute_force(table, batch)
    index.delete(np.array([0, 39]))
    index.insert(take_clauses(table, np.array([39, 0])))
    CHECKS[name](index)
    assert matched(index.match_batch(batch)) == brute_force(table, batch)


@every_index
def test_changes_of_nothing(name: str) -> None:
    index = index_class(name).build(empty_table())
    assert isinstance(index, DynamicIndex)
    for _ in range(2):
        index.insert(empty_table())
        index.delete(np.empty(0, np.int64))
        CHECKS[name](index)
        assert matched(index.match_batch(batch_of([{}, {3: 1}]))) == [[], []]
        index.insert(table_of([{}, {3: [(1, 1)]}]))
        CHECKS[name](index)
        assert matched(index.match_batch(batch_of([{}, {3: 1}]))) == [[0], [0, 1]]
        index.delete(np.array([1, 0]))
