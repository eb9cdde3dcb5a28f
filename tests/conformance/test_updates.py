"""Insert, delete, insert again: every index, alone or inside segments, against brute force."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from matchmill.encoding.conjunction_table import concatenate, take_clauses
from tests.support.conformance_kit import (
    INDEX_NAMES,
    brute_force,
    matched,
    random_batch,
    random_table,
    updatable,
)
from tests.support.tiers import first_cases

pytestmark = [pytest.mark.kernels, pytest.mark.parametrize("name", INDEX_NAMES)]


@pytest.mark.parametrize("seed", first_cases(1, range(3)))
def test_random_sequences(name: str, seed: int) -> None:
    rng = Random(seed)
    everything = random_table(rng, 80)
    batch = random_batch(rng, 12)
    index = updatable(name)
    live: set[int] = set()
    for _ in range(60):
        dead = sorted(set(range(80)) - live)
        if dead and (not live or rng.random() < 0.55):
            chosen = sorted(rng.sample(dead, min(len(dead), rng.choice((1, 1, 2, 7)))))
            index.insert(take_clauses(everything, np.array(chosen)))
            live |= set(chosen)
        else:
            chosen = rng.sample(sorted(live), min(len(live), rng.choice((1, 1, 3, 9))))
            index.delete(np.array(chosen))
            live -= set(chosen)
        expected = take_clauses(everything, np.array(sorted(live), np.int64))
        assert matched(index.match_batch(batch)) == brute_force(expected, batch)


def test_emptied_and_filled_again(name: str) -> None:
    rng = Random(9)
    table = random_table(rng, 30)
    batch = random_batch(rng, 10)
    index = updatable(name)
    for _ in range(3):
        index.insert(table)
        assert matched(index.match_batch(batch)) == brute_force(table, batch)
        index.delete(table.clause_ids)
        assert matched(index.match_batch(batch)) == [[]] * 10


def test_many_small_insertions(name: str) -> None:
    rng = Random(10)
    tables = [random_table(rng, 3, first_id=3 * k) for k in range(40)]
    batch = random_batch(rng, 10)
    index = updatable(name)
    for k, table in enumerate(tables):
        index.insert(table)
        if k % 13 == 0:
            expected = brute_force(concatenate(tables[: k + 1]), batch)
            assert matched(index.match_batch(batch)) == expected
    assert matched(index.match_batch(batch)) == brute_force(concatenate(tables), batch)
