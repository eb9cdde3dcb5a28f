"""The judges themselves: two brute forces that agree, and that notice what is wrong."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from matchmill.index.base import ClauseMatches
from tests.support.conformance_kit import (
    batch_of,
    brute_force,
    brute_force_arrays,
    check_matches,
    random_batch,
    random_table,
    table_of,
)


@pytest.mark.parametrize("seed", range(5))
def test_both_brute_forces_agree(seed: int) -> None:
    rng = Random(seed)
    table = random_table(rng, 60, first_id=7)
    batch = random_batch(rng, 20)
    arrays = [ids.tolist() for ids in brute_force_arrays(table, batch)]
    assert arrays == brute_force(table, batch)


def test_brute_force_by_hand() -> None:
    table = table_of([{0: [(1, 3), (5, 5)], 2: [(0, 0)]}, {}, {2: [(0, 4)]}], first_id=10)
    batch = batch_of([{}, {0: 4}, {0: 5}, {2: 3, 0: 2}, {2: 5}])
    expected = [[11, 12], [11, 12], [10, 11, 12], [11, 12], [11]]
    assert brute_force(table, batch) == expected
    assert [ids.tolist() for ids in brute_force_arrays(table, batch)] == expected


def test_wrong_answers_are_noticed() -> None:
    table = table_of([{0: [(1, 1)]}, {0: [(2, 2)]}])
    expected = list(brute_force_arrays(table, batch_of([{0: 1}, {}])))

    def check(offsets: list[int], ids: list[int]) -> None:
        check_matches(ClauseMatches(np.array(offsets), np.array(ids)), expected)

    check([0, 1, 1], [0])
    for offsets, ids in (
        ([0, 0, 0], []),
        ([0, 1, 1], [1]),
        ([0, 2, 2], [0, 0]),
        ([0, 2, 2], [0, 1]),
        ([0, 0, 1], [0]),
        ([0, 1], [0]),
        ([0, 1, 1], [0, 1]),
    ):
        with pytest.raises(AssertionError):
            check(offsets, ids)
