"""What each clause costs: the counts agree with matching, clause by clause."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from matchmill.encoding.conjunction_table import ConjunctionTable, empty_table
from matchmill.encoding.event_batch import EventBatch
from matchmill.index.event_sample import build_statistics
from matchmill.index.mill import Mill
from tests.support.conformance_kit import brute_force, random_batch, random_table

pytestmark = pytest.mark.kernels


def check(table: ConjunctionTable, batch: EventBatch, mill: Mill) -> None:
    clause_ids, checked, held = mill.clause_costs(batch)
    assert checked.dtype == held.dtype == np.int64
    assert mill.stats().candidates == 0
    expected = dict.fromkeys(table.clause_ids.tolist(), 0)
    for matched in brute_force(table, batch):
        for clause_id in matched:
            expected[clause_id] += 1
    assert clause_ids.tolist() == sorted(expected)
    assert held.tolist() == [expected[c] for c in sorted(expected)]
    assert (held <= checked).all()
    assert (checked <= batch.n_events).all()
    for e in range(batch.n_events):  # a larger batch may match an event twice, for want of room
        mill.match_batch(batch.slice(e, e + 1))
    assert int(checked.sum()) == mill.stats().candidates


@pytest.mark.parametrize("top", [12, 40, 400])
@pytest.mark.parametrize("seed", range(4))
def test_counts_agree_with_matching(seed: int, top: int) -> None:
    rng = Random(seed)
    table = random_table(rng, 120, top=top)
    batch = random_batch(rng, 20, top=top)
    check(table, batch, Mill.build(table, kernel="one"))


def test_with_statistics_and_many_clauses_of_few_dimensions() -> None:
    """Pairs, dyadic nodes, groups, and runs of first tests."""
    rng = Random(5)
    table = random_table(rng, 2000, 3, top=60)
    batch = random_batch(rng, 8, top=60)
    check(table, batch, Mill.build(table, build_statistics(batch, 3), kernel="one"))


def test_wide_ids_in_any_order() -> None:
    rng = Random(3)
    table = random_table(rng, 60)
    table = table._replace(clause_ids=np.arange(60)[::-1] * 1_000_000_000_000)
    check(table, random_batch(rng, 20), Mill.build(table, kernel="one"))


def test_more_slots_than_there_is_room_for_at_first() -> None:
    n = 1500
    places = np.arange(n + 1)
    table = ConjunctionTable(
        *(places[:-1], places, np.arange(n, dtype=np.int32), places),
        *(np.ones(n, np.int64), np.ones(n, np.int64)),
    )
    offsets = np.array([0, 0, n, n + 1])
    dimensions = np.append(np.arange(n), 7).astype(np.int32)
    batch = EventBatch(offsets, dimensions, np.ones(n + 1, np.int64))
    clause_ids, checked, held = Mill.build(table).clause_costs(batch)
    assert clause_ids.tolist() == list(range(n))
    assert held.tolist() == checked.tolist() == [2 if c == 7 else 1 for c in range(n)]


def test_nothing() -> None:
    batch = random_batch(Random(1), 3)
    for array in Mill.build(empty_table()).clause_costs(batch):
        assert array.tolist() == []
    table = random_table(Random(1), 5)
    clause_ids, checked, held = Mill.build(table).clause_costs(batch.slice(0, 0))
    assert clause_ids.tolist() == list(range(5))
    assert checked.tolist() == held.tolist() == [0] * 5
