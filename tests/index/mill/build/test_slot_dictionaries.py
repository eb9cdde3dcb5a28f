"""Slots whose entries test the same predicates again and again: which entries use a dictionary, and
that every way of matching reads such blocks."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.encoding.conjunction_table import ConjunctionTable, concatenate
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import Statistics
from matchmill.index.mill import Mill
from matchmill.index.mill.arrays import MillArrays
from matchmill.index.mill.build import shared_predicates, slot_dictionaries
from matchmill.kernels.jit import JIT_DISABLED
from tests.index.mill.match.test_clause_costs import check as check_costs
from tests.index.mill.test_event_forms import by_definition, random_events
from tests.support.conformance_kit import (
    Intervals,
    batch_of,
    matched,
    random_table,
    statistics_of,
    table_of,
)
from tests.support.mill_checks import blocks_of, check, check_threads

pytestmark = pytest.mark.kernels

Pool = dict[int, list[tuple[int, int]]]


@pytest.fixture(autouse=True, scope="module")
def _predicates_of_few_clauses_are_private() -> Iterator[None]:
    """As they are in large tables."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_predicates, "_SAVED_BITS", 16)
        yield


def slots_with_dictionary(
    table: ConjunctionTable, statistics: Statistics | None = None
) -> list[tuple[int, int, int]]:
    """Of each slot with a dictionary: its tests, the entries that use it, and the others."""
    mill = MillArrays(**Mill.build(table, statistics).arrays())
    slots = []
    for place in mill.slot_places[mill.slot_places > 0].tolist():
        blocks = list(blocks_of(mill, place))
        dictionary = sum(block.n_tests for block in blocks if block.n_entries == 0)
        n_using = sum(block.n_entries for block in blocks if block.uses_dictionary)
        if dictionary:
            slots.append((dictionary, n_using, sum(b.n_entries for b in blocks) - n_using))
    return slots


def pool_of(rng: Random, n_dimensions: int, top: int = 30) -> Pool:
    """One predicate a dimension."""
    pool: Pool = {}
    for d in range(n_dimensions):
        low = rng.randrange(1, top)
        shape = rng.random()
        if shape < 0.7:
            pool[d] = [(low, low)]
        elif shape < 0.8:
            pool[d] = [(0, 0)]
        else:
            pool[d] = [(low, min(top, low + rng.randrange(10)))]
    return pool


def own_test(rng: Random) -> list[tuple[int, int]]:
    """All of 1 … 2000 but one to eight gaps: nothing to file a clause under."""
    cuts = sorted(rng.sample(range(2, 2000), 2 * rng.choice((1, 2, 8))))
    return list(zip([1, *cuts[1::2]], [cut - 1 for cut in cuts[::2]] + [2000], strict=True))


def recurring(
    rng: Random, n_clauses: int, pools: list[Pool], length: int, own: float = 0.0
) -> ConjunctionTable:
    """Clauses of predicates of one pool each; this share of them have tests of their own too."""
    clauses: list[dict[int, Intervals]] = []
    for _ in range(n_clauses):
        pool = rng.choice(pools)
        chosen = sorted(rng.sample(sorted(pool), min(len(pool), length)))
        clause: dict[int, Intervals] = {d: pool[d] for d in chosen}
        first = max(max(pool) for pool in pools) + 1
        for d in range(first, first + 3):
            if rng.random() < own:
                clause[d] = own_test(rng)
        clauses.append(clause)
    return table_of(clauses)


def events_near(rng: Random, pools: list[Pool], n_events: int) -> EventBatch:
    """Events that satisfy all or most of a pool."""
    events = []
    first = max(max(pool) for pool in pools) + 1
    for _ in range(n_events):
        pool, slips = rng.choice(pools), rng.choice((0.0, 0.0, 0.1, 0.3))
        event = {d: pairs[0][0] for d, pairs in pool.items() if pairs[0][0] > 0}
        for d in pool:
            if rng.random() < slips:
                event[d] = rng.randrange(1, 30)
        for d in range(first, first + 3):
            if rng.random() < 0.8:
                event[d] = rng.randrange(1, 2000)
        events.append(event)
    return batch_of(events)


def check_all(table: ConjunctionTable, batch: EventBatch, rng: Random) -> int:
    """Both kernels, wide events and the costs of clauses; returns the number of matches."""
    n_matches = check(table, batch)
    mill = Mill.build(table, kernel="one")
    check_costs(table, batch, mill)
    n_dimensions = int(table.dimensions.max()) + 1
    wide = random_events(rng, 3, n_dimensions, 30)
    assert matched(mill.match_intervals(wide)) == by_definition(table, wide)
    return n_matches


@pytest.mark.parametrize("own", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_clauses_that_resemble_each_other_use_a_dictionary(seed: int, own: float) -> None:
    rng = Random(seed)
    pools = [pool_of(rng, 9) for _ in range(2)]
    table = recurring(rng, 150, pools, 6, own)
    slots = slots_with_dictionary(table)
    assert sum(n_using for _, n_using, _ in slots) > 30
    for n_tests, n_using, _ in slots:
        assert n_tests <= 64
        assert 2 * n_tests <= 3 * n_using
    assert check_all(table, events_near(rng, pools, 40), rng) > 0


def one_slot(rng: Random, n_frequent: int, n_rare: int) -> ConjunctionTable:
    """400 clauses on one value of dimension 0, and four of some frequent predicates; every fourth
    with one of a few rare ones."""
    clauses = []
    for i in range(400):
        chosen = rng.sample(range(1, n_frequent + 1), 4)
        if i % 4 == 0 and n_rare > 0:
            chosen.append(n_frequent + 1 + i // 4 % n_rare)
        clauses.append({d: [(7, 7)] for d in [0, *sorted(chosen)]})
    return table_of(clauses)


@pytest.mark.parametrize(
    ("n_frequent", "n_rare", "expected"),
    [
        (4, 0, (4, 400, 0)),
        (63, 0, (63, 400, 0)),
        (64, 0, (64, 400, 0)),
        (64, 20, (64, 300, 100)),
        (60, 20, (64, 320, 80)),  # four of the rare ones have room, with five clauses each
        (64, 70, None),
    ],
)
def test_dictionaries_of_one_slot(
    n_frequent: int, n_rare: int, expected: tuple[int, int, int] | None
) -> None:
    rng = Random(n_frequent)
    table = one_slot(rng, n_frequent, n_rare)
    n_dimensions = 1 + n_frequent + n_rare
    usual = dict.fromkeys(range(1, n_dimensions), 7)
    statistics = statistics_of(batch_of([{0: 7, **usual}] + [{0: 1, **usual}] * 99), n_dimensions)
    slots = slots_with_dictionary(table, statistics)
    assert slots == ([] if expected is None else [expected])
    events = [{0: 7} | usual, {0: 1} | usual, {0: 7}, {}]
    events += [
        {0: 7} | dict.fromkeys(rng.sample(sorted(usual), n), 7)
        for n in (4, 30, 60)
        if n <= len(usual)
    ]
    assert check(table, batch_of(events), statistics) >= 400


@pytest.mark.parametrize(("n_clauses", "has_dictionary"), [(7, False), (8, True), (40, True)])
def test_small_slots_stay_as_they_are(n_clauses: int, has_dictionary: bool) -> None:
    clause = {d: [(3, 3)] for d in range(6)}
    table = table_of([clause] * n_clauses)
    assert bool(slots_with_dictionary(table)) == has_dictionary
    batch = batch_of([dict.fromkeys(range(6), 3), dict.fromkeys(range(5), 3)])
    assert check(table, batch) == n_clauses


def test_clauses_with_little_in_common_stay_as_they_are() -> None:
    assert slots_with_dictionary(random_table(Random(2), 400, top=30)) == []


def test_of_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if a thread begins in the middle of a slot."""
    rng = Random(4)
    table = recurring(rng, 200, [pool_of(rng, 9)], 6, 0.5)
    assert slots_with_dictionary(table)
    check_threads(table, monkeypatch)


@given(
    seed=st.integers(0, 2**32),
    n_clauses=st.integers(0, 80),
    n_dimensions=st.integers(1, 20),
    length=st.integers(1, 9),
    n_pools=st.integers(1, 3),
    own=st.sampled_from([0.0, 0.2, 1.0]),
)
def test_any_table_by_shrinking(
    seed: int, n_clauses: int, n_dimensions: int, length: int, n_pools: int, own: float
) -> None:
    rng = Random(seed)
    pools = [pool_of(rng, n_dimensions) for _ in range(n_pools)]
    table = recurring(rng, n_clauses, pools, length, own)
    table = concatenate([table, random_table(rng, 5, first_id=n_clauses)])
    check(table, events_near(rng, pools, 5))


@pytest.mark.skipif(not JIT_DISABLED, reason="compiled kernels keep the limits they were given")
def test_dictionaries_of_few_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """With smaller limits small tables have slots with too many tests."""
    monkeypatch.setattr(slot_dictionaries, "MOST_DICTIONARY_TESTS", 5)
    monkeypatch.setattr(slot_dictionaries, "MOST_DISTINCT", 9)
    for seed in range(5):
        rng = Random(seed)
        pools = [pool_of(rng, 9) for _ in range(2)]
        table = recurring(rng, 120, pools, 4)
        assert all(n_tests <= 5 for n_tests, _, _ in slots_with_dictionary(table))
        check(table, events_near(rng, pools, 10))
