"""What the conformance kit does not reach in `sift`: its budget, wide counters, what it counts."""

from __future__ import annotations

import tracemalloc
from random import Random
from typing import Any

import numpy as np
import pytest

from matchmill import Engine
from matchmill.encoding.conjunction_table import concatenate
from matchmill.errors import InputError
from matchmill.index.base import Index
from matchmill.papers.baselines.k_index import KIndex
from matchmill.papers.baselines.sift import Sift
from matchmill.papers.common.clause_intervals import MAX_KEY
from tests.support.conformance_kit import (
    batch_of,
    brute_force,
    matched,
    random_batch,
    random_table,
    table_of,
)

pytestmark = pytest.mark.kernels

enumerating = pytest.mark.parametrize("index", [Sift, KIndex])


# -- enumeration ----------------------------------------------------------------------------------


def n_postings(index: type[Index], clauses: list[Any]) -> int:
    """As the message says that refuses them."""
    with pytest.raises(InputError) as refused:
        index.build(table_of([*clauses, {9: [(1, 1)], 8: [(1, 1)]}]), max_postings=1)
    words = str(refused.value).split()
    return int(words[words.index("postings") - 1].replace(",", "")) - 2


@enumerating
def test_a_range_takes_a_posting_for_each_code(index: type[Index]) -> None:
    points = [{0: [(k, k)]} for k in (10, 20, 30)]
    assert n_postings(index, points) == 3
    assert n_postings(index, [*points, {0: [(10, 30)]}]) == 3 + 5  # three points, two gaps
    assert n_postings(index, [*points, {0: [(11, 29)]}]) == 3 + 3
    assert n_postings(index, [*points, {0: [(20, MAX_KEY)]}] * 2) == 2 * (3 + 4)
    assert n_postings(index, [*points, {0: [(1, 9), (40, MAX_KEY)]}]) == 3 + 2


@enumerating
def test_a_predicate_that_accepts_absence_takes_one_for_each_code_that_it_refuses(
    index: type[Index],
) -> None:
    points = [{0: [(k, k)]} for k in (10, 20, 30)]
    assert n_postings(index, [*points, {0: [(0, 19), (21, MAX_KEY)]}]) == 3 + 1
    assert n_postings(index, [*points, {0: [(0, 0)]}]) == 3 + 7
    assert n_postings(index, [*points, {0: [(0, MAX_KEY)]}]) == 3


@enumerating
def test_an_explosion_is_refused_before_memory_is_taken(index: type[Index]) -> None:
    rng = np.random.default_rng(1)
    bounds = np.sort(rng.integers(1, 1 << 60, (1000, 2)), axis=1)
    table = table_of([{0: [(int(low), int(high))]} for low, high in bounds])
    tracemalloc.start()
    with pytest.raises(
        InputError, match=r"1,000 clauses .* max_postings is 100,000; allow more, or"
    ):
        index.build(table, max_postings=100_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    batch = batch_of([{0: int(key)} for key in (bounds[0, 0], bounds[1, 1] + 1, 5)])
    built = index.build(table, max_postings=1_000_000)
    assert matched(built.match_batch(batch)) == brute_force(table, batch)
    assert peak < built.stats().n_bytes / 2


@enumerating
@pytest.mark.parametrize("wrong", [0, -1, 2.5, "many", None, True])
def test_a_budget_is_a_positive_number(index: type[Index], wrong: object) -> None:
    with pytest.raises(InputError, match="max_postings is a positive whole number"):
        index.build(table_of([{0: [(1, 1)]}]), max_postings=wrong)


@enumerating
def test_an_engine_refuses_and_goes_on(index: type[Index]) -> None:
    engine = Engine(index=index.name, index_options={"max_postings": 2000})
    engine.subscribe("one", "x = 3")
    with pytest.raises(InputError, match="max_postings is 2,000"):
        engine.subscribe_many((f"s{k}", f"x > {k}") for k in range(1000))
    assert engine.match({"x": 3}) == {"one"}
    engine.subscribe("two", "x > 2")
    assert engine.match({"x": 3}) == {"one", "two"}


# -- counting -------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [126, 127, 128, 300, 33_000])
def test_long_clauses(length: int) -> None:
    """Counters of one, two and four bytes, to their limits, also for predicates that fail."""
    present = {d: [(5, 5)] for d in range(length)}
    absent = {d: [(0, 0), (7, 9)] for d in range(length)}
    index = Sift.build(table_of([present, absent, present | {length // 2: [(0, 0)]}]))
    batch = batch_of(
        [
            {},
            dict.fromkeys(range(length), 5),
            dict.fromkeys(range(length - 1), 5),
            dict.fromkeys(range(length), 7),
            dict.fromkeys(range(length), 8) | {3: 6},
            {d: 5 for d in range(length) if d != length // 2},
        ]
    )
    assert matched(index.match_batch(batch)) == [[1], [0], [], [1], [], [2]]


def test_what_fails_is_counted_before_what_holds() -> None:
    table = table_of([{0: [(0, 4), (6, MAX_KEY)], 1: [(3, 3)]}])
    batch = batch_of([{0: 5, 1: 3}, {1: 3, 0: 5}, {0: 4, 1: 3}, {1: 3}, {0: 4}])
    assert matched(Sift.build(table).match_batch(batch)) == [[], [], [0], [0], []]


def test_candidates_are_the_counters_changed() -> None:
    table = table_of(
        [
            {0: [(1, 5)], 1: [(1, 1), (3, 3)]},
            {0: [(1, 5)], 2: [(0, 4)]},
            {2: [(0, 0), (6, MAX_KEY)]},
            {},
        ]
    )
    index = Sift.build(table)
    index.match_batch(batch_of([{0: 3, 1: 3, 7: 1}]))
    assert index.stats().candidates == 3
    index.match_batch(batch_of([{2: 5}, {2: 4}]))
    assert index.stats().candidates == 3 + 2 + 1


@pytest.mark.parametrize("n_others", [0, 2000])
def test_counters_are_brought_back(n_others: int) -> None:
    """By the same way if an event has changed few of them, else by a copy."""
    rng = Random(n_others)
    table = random_table(rng, 40, n_dimensions=4)
    others = table_of([{5 + k: [(1, 1)]} for k in range(n_others)], first_id=40)
    batch = random_batch(rng, 30, n_dimensions=4)
    index = Sift.build(concatenate([table, others]))
    expected = brute_force(table, batch)
    for _ in range(2):
        assert matched(index.match_batch(batch)) == expected
