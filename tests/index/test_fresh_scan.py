"""The scan of new clauses, for single events: the same as for a batch of one."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from matchmill.index.fresh_scan import FreshScan
from tests.support.conformance_kit import brute_force, random_batch, random_table


@pytest.mark.kernels
@pytest.mark.parametrize("n_clauses", [0, 1, 40])
def test_pairs_of_one_event(n_clauses: int) -> None:
    rng = Random(n_clauses)
    table = random_table(rng, n_clauses)
    batch = random_batch(rng, 30)
    index = FreshScan.build(table)
    expected = brute_force(table, batch)
    for e in range(batch.n_events):
        one = batch.slice(e, e + 1)
        pairs = np.stack((one.dimensions.astype(np.int64), one.keys), axis=1).tobytes()
        assert index.match_pairs(pairs).tolist() == expected[e]
    assert index.stats().candidates == 30 * n_clauses
