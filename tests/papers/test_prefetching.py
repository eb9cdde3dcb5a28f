"""Indexes that ask for memory ahead, and the same as their papers describe them, without it."""

from __future__ import annotations

from random import Random

import pytest

from matchmill.papers.be_tree import BeTree
from matchmill.papers.ps_tree.bloom_index import PSTBloom
from matchmill.papers.ps_tree.hash_index import PSTHash
from tests.support.conformance_kit import (
    brute_force_arrays,
    check_matches,
    random_batch,
    random_table,
)


@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize("index", [BeTree, PSTBloom, PSTHash])
def test_the_same_matches_with_and_without(index: type, ahead: bool) -> None:
    rng = Random(3)
    for n, top in ((300, 12), (300, 5000)):
        table, batch = random_table(rng, n, 6, top=top), random_batch(rng, 80, 7, top)
        expected = list(brute_force_arrays(table, batch))
        assert sum(map(len, expected)) > 0
        check_matches(index.build(table, ahead=ahead).match_batch(batch), expected)
