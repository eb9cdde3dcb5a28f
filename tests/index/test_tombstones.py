"""Dead clauses as a value: against a plain set, in the list and in the bits."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from matchmill.index import tombstones
from matchmill.index.base import ClauseMatches
from matchmill.index.tombstones import NO_TOMBSTONES

pytestmark = pytest.mark.kernels


@pytest.mark.parametrize("spread", [1, 3, 500])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_a_set(seed: int, spread: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tombstones, "_LONGEST_LIST", 8)
    rng = Random(seed)
    clause_ids = np.array(sorted(rng.sample(range(50, 50 + 200 * spread), 150)), np.int64)
    versions = [(NO_TOMBSTONES, frozenset[int]())]
    while len(versions[-1][1]) < 120:
        dead, known = versions[-1]
        more = rng.sample(sorted(set(clause_ids.tolist()) - known), rng.choice((1, 1, 2, 20)))
        versions.append((dead.with_ids(np.array(more), clause_ids), known | set(more)))
    used_bits = len(versions[-1][0].bits) > 0
    assert used_bits == (spread < 64)  # bits for ids so far apart would be a waste
    asked = np.array([0, 49, *clause_ids, 10**9], np.int64)
    for dead, known in versions:  # older versions are what they were
        assert dead.n_dead == len(known)
        assert dead.all_ids().tolist() == sorted(known)
        assert dead.has(asked).tolist() == [int(i) in known for i in asked]


def test_matches_of_live_clauses_are_kept_in_order() -> None:
    clause_ids = np.arange(10, 30)
    dead = NO_TOMBSTONES.with_ids(np.array([12, 25]), clause_ids)
    offsets = np.array([0, 3, 3, 5, 6])
    matches = ClauseMatches(offsets, np.array([29, 12, 10, 25, 12, 25]))
    kept = dead.without_dead(matches)
    assert kept.offsets.tolist() == [0, 2, 2, 2, 2]
    assert kept.clause_ids.tolist() == [29, 10]
    assert dead.live_ids(matches.clause_ids).tolist() == [29, 10]
    narrow = dead.without_dead(ClauseMatches(offsets, matches.clause_ids.astype(np.int32)))
    assert (narrow.clause_ids.tolist(), narrow.clause_ids.dtype) == ([29, 10], np.int32)


def test_nothing_is_done_where_nothing_is_dead() -> None:
    matches = ClauseMatches(np.array([0, 2]), np.array([3, 4]))
    assert NO_TOMBSTONES.without_dead(matches) is matches
    elsewhere = NO_TOMBSTONES.with_ids(np.array([7]), np.arange(10))
    assert elsewhere.without_dead(matches) is matches
    assert NO_TOMBSTONES.live_ids(matches.clause_ids) is matches.clause_ids
