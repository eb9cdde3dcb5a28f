"""Changes in place take no memory that is not theirs: sequences that once wrote beyond an array.

Under `NUMBA_BOUNDSCHECK=1`, as the long tests run, each array is checked as well.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from matchmill.encoding.conjunction_table import ConjunctionTable, empty_table, take_clauses
from matchmill.errors import LimitError
from matchmill.kernels.jit import JIT_DISABLED
from matchmill.papers.common.clause_intervals import MAX_KEY
from matchmill.papers.common.pools import rows_in_use
from matchmill.papers.ps_tree import bloom_index
from matchmill.papers.ps_tree.bloom_index import PSTBloom
from matchmill.papers.ps_tree.hash_index import PSTHash
from matchmill.papers.ps_tree.hash_records import MOST_RECORDS
from tests.support.conformance_kit import batch_of, brute_force, matched, random_batch, table_of
from tests.support.ps_tree_checks import check_index
from tests.support.tiers import first_cases

BUILDS: dict[str, Any] = {
    "bloom": PSTBloom.build,
    "hash 1": lambda table: PSTHash.build(table, n_access=1),
    "hash 2": PSTHash.build,
    "hash 3": lambda table: PSTHash.build(table, n_access=3),
}


@pytest.mark.kernels
@pytest.mark.parametrize("name", BUILDS)
def test_lists_shrink_where_there_is_room(name: str) -> None:
    clauses: list[dict[int, Any]] = [
        {},
        {},
        {0: [(1, MAX_KEY)]},
        {0: [(1, MAX_KEY)]},
        {0: [(5, 5)]},
        {0: [(1, 1), (3, 4)]},
        {},
    ]
    table = table_of(clauses)
    batch = batch_of([{0: 1}, {0: 3}, {0: 5}, {}])
    live = [1, 2, 3, 4, 5, 6, 0]
    index = BUILDS[name](take_clauses(table, np.arange(1, 7)))
    index.insert(take_clauses(table, np.arange(1)))
    check_index(index)
    for gone in (6, 1, 5, 3, 4, 0):
        index.delete(np.array([gone]))
        live.remove(gone)
        check_index(index)
        rest = take_clauses(table, np.array(sorted(live)))
        assert matched(index.match_batch(batch)) == brute_force(rest, batch)


@pytest.mark.parametrize("n_access", [2, 3])
def test_a_wide_clause_among_many_later_cuts_can_be_deleted(n_access: int) -> None:
    """It covers more spaces of one dimension than a clause may have records."""
    wide = {0: [(1, 10**7)], 1: [(5, 5)]}
    points = [{0: [(10 + 2 * k, 10 + 2 * k)], 2: [(1, 1)]} for k in range(2100)]
    if n_access == 3:
        wide[2], points = [(1, 1)], [{**p, 3: [(1, 1)]} for p in points]
    index = PSTHash.build(table_of([wide]), n_access=n_access)
    index.insert(table_of(points, first_id=1))
    batch = batch_of([{0: 12, 1: 5, 2: 1, 3: 1}, {0: 13, 1: 5, 2: 1}, {0: 9, 1: 4, 2: 1}])
    assert matched(index.match_batch(batch)) == [[0, 2], [0], []]
    index.delete(np.array([0]))
    assert matched(index.match_batch(batch)) == [[2], [], []]
    index.delete(np.arange(1, 2101))
    check_index(index)


@pytest.mark.parametrize("n_access", [2, 3])
@pytest.mark.parametrize("at_once", [True, False])
def test_no_clause_gets_too_many_records_by_later_cuts(n_access: int, at_once: bool) -> None:
    dimensions = range(n_access)
    wide = {d: [(1, 10**7)] for d in dimensions}
    points = table_of(
        [{d: [(10 + 2 * k, 10 + 2 * k)] for d in dimensions} for k in range(700)], first_id=1
    )
    index = PSTHash.build(table_of([wide]), n_access=n_access)
    if at_once:
        index.insert(points)
    else:
        for k in range(700):
            index.insert(take_clauses(points, np.array([k])))
            assert rows_in_use(index._arrays.records.rows) <= MOST_RECORDS + k + 1
    assert rows_in_use(index._arrays.records.rows) <= MOST_RECORDS + 700
    assert index.stats().n_bytes < 4 << 20
    check_index(index)
    batch = batch_of([dict.fromkeys(dimensions, key) for key in (1, 10, 11, 1408, 10**7 + 1)])
    assert matched(index.match_batch(batch)) == [[0], [0, 1], [0], [0, 700], []]
    again = PSTHash.from_arrays(index.arrays())
    again.delete(np.array([0]))
    assert matched(again.match_batch(batch)) == [[], [1], [], [700], []]
    again.delete(np.arange(1, 701))
    check_index(again)


def test_a_clause_that_no_event_satisfies_takes_no_records_however_wide() -> None:
    """One predicate has no interval, another covers thousands of spaces."""
    points = [{0: [(2 * k, 2 * k)], 1: [(1, 1)]} for k in range(1, 2200)]
    never: dict[int, Any] = {0: [(1, 10**7)], 1: []}
    index = PSTHash.build(table_of([*points, never]))
    index.insert(table_of([never], first_id=3000))
    batch = batch_of([{0: 2, 1: 1}])
    assert matched(index.match_batch(batch)) == [[0]]
    index.delete(np.array([2199, 3000]))
    assert matched(index.match_batch(batch)) == [[0]]
    check_index(index)


def test_lists_that_are_too_long_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bloom_index, "_MOST_LIST_CELLS", 1000)
    wide = {0: [(1, MAX_KEY)]}
    index = PSTBloom.build(table_of([wide]))
    with pytest.raises(LimitError, match="so long lists"):
        index.insert(table_of([wide] * 500, first_id=1))


# -- random sequences -----------------------------------------------------------------------------


def odd_table(rng: Random, n: int) -> ConjunctionTable:
    """Clauses of all shapes, many of them wide or without predicates, so that lists are long."""
    return table_of([odd_clause(rng) for _ in range(n)])


def odd_clause(rng: Random) -> dict[int, Any]:
    scale = rng.choice((1, 1, 1 << 40))
    clause: dict[int, Any] = {}
    for dimension in rng.sample(range(5), rng.choice((0, 1, 2, 2, 3, 4))):
        kind = rng.random()
        if kind < 0.35:
            low = rng.randrange(1, 30)
            clause[dimension] = [(low * scale, low * scale)]
        elif kind < 0.55:
            clause[dimension] = [(rng.choice((0, 1, 1, 7)), rng.choice((MAX_KEY, 20 * scale)))]
        elif kind < 0.6:
            clause[dimension] = [(0, 0)]
        elif kind < 0.62:
            clause[dimension] = []
        else:
            cuts = sorted(rng.sample(range(1, 30), 2 * rng.choice((1, 1, 2, 5))))
            pairs = zip(cuts[::2], cuts[1::2], strict=True)
            clause[dimension] = [(a * scale, b * scale - 1) for a, b in pairs]
    return clause


def run_sequence(build: Any, seed: int, n_steps: int, check_each: bool) -> None:
    """Insert, delete and match at random; compare with a loop over what is there."""
    rng = Random(seed)
    n = rng.choice((8, 40, 120))
    table = odd_table(rng, n)
    index, live = build(empty_table()), set[int]()
    for step in range(n_steps):
        action = rng.random()
        some = rng.choice((1, 1, 1, 2, 5, n))
        if action < 0.45:
            free = sorted(set(range(n)) - live)
            new = sorted(rng.sample(free, min(some, len(free))))
            index.insert(take_clauses(table, np.array(new, np.int64)))
            live |= set(new)
        elif action < 0.9:
            gone = rng.sample(sorted(live), min(some, len(live)))
            index.delete(np.array(gone, np.int64))
            live -= set(gone)
        elif action < 0.95:
            index = type(index).from_arrays(
                {name: array.copy() for name, array in index.arrays().items()}
            )
        if check_each or step == n_steps - 1:
            check_index(index)
        if action > 0.8 or step == n_steps - 1:
            batch = random_batch(rng, 6, n_dimensions=6, top=32)
            batch = batch._replace(keys=batch.keys * rng.choice((1, 1, 1 << 40)))
            rest = take_clauses(table, np.array(sorted(live), np.int64))
            assert matched(index.match_batch(batch)) == brute_force(rest, batch)


# A few sequences in every run, 10,000 before a release.
BLOCKS = [range(6), *(range(n, n + 100) for n in range(0, 2500, 100))]


@pytest.mark.parametrize("seeds", first_cases(1, BLOCKS), ids=str)
@pytest.mark.parametrize("name", BUILDS)
def test_random_sequences(name: str, seeds: range) -> None:
    for seed in seeds:
        run_sequence(BUILDS[name], seed, 40, check_each=seed % 5 == 0)


@pytest.mark.kernels
@pytest.mark.parametrize("name", BUILDS)
def test_a_random_sequence_without_compilation(name: str) -> None:
    run_sequence(BUILDS[name], 1, 6 if JIT_DISABLED else 60, check_each=True)
