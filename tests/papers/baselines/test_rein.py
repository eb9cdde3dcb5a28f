"""What the conformance kit does not reach in `rein` and `hem`: buckets, cells, their limits."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from matchmill.errors import InputError
from matchmill.papers.baselines.hem import Hem
from matchmill.papers.baselines.rein import Rein
from tests.support.conformance_kit import (
    batch_of,
    brute_force,
    matched,
    random_batch,
    random_table,
    table_of,
)

pytestmark = pytest.mark.kernels

SHAPES: list[tuple[type[Rein], dict[str, Any]]] = [
    (Rein, {"buckets": 1}),
    (Rein, {"buckets": 3}),
    (Rein, {}),
    (Hem, {"buckets": 1, "cells": 4}),
    (Hem, {"buckets": 7, "cells": 3}),
    (Hem, {"buckets": 4, "cells": 16}),
    (Hem, {"cells": 2}),
]


@pytest.mark.parametrize(("index", "options"), SHAPES)
def test_any_number_of_buckets_and_cells(index: type[Rein], options: dict[str, Any]) -> None:
    rng = Random(f"{index.name} {options}")
    for n in (0, 1, 63, 64, 65, 150):
        table = random_table(rng, n)
        batch = random_batch(rng, 12)
        built = index.build(table, **options)
        assert matched(built.match_batch(batch)) == brute_force(table, batch)


def test_the_example_of_the_docstring() -> None:
    """p in [2, 12], q in [8, 9], r in [11, 15]; value 9 is in the first of two buckets."""
    table = table_of([{0: [(2, 12)]}, {0: [(8, 9)]}, {0: [(11, 15)]}])
    built = Rein.build(table, buckets=2)
    assert built.arrays()["edges"].tolist() == [11]
    assert matched(built.match_batch(batch_of([{0: 9}]))) == [[0, 1]]
    # Bucket 0 of low bounds (2, 8), what is after it (11), bucket 0 of high bounds (9).
    assert built.stats().candidates == 4


def test_cells_save_walking() -> None:
    table = table_of([{0: [(10 * i + 1, 10 * i + 5)]} for i in range(500)])
    batch = batch_of([{0: 2502}, {}, {1: 7}])
    looked_at = {}
    for name, built in {
        "rein": Rein.build(table, buckets=100),
        "hem": Hem.build(table, buckets=100, cells=10),
    }.items():
        assert matched(built.match_batch(batch)) == [[250], [], []]
        looked_at[name] = built.stats().candidates
    assert looked_at["rein"] > 1400  # half of each side, and all of them twice for absence
    assert looked_at["hem"] < 120


def test_bits_have_a_limit() -> None:
    table = table_of([{0: [(1, 2)]}] * 1000)
    with pytest.raises(InputError, match="take more than bits_bytes, 1,000"):
        Hem.build(table, bits_bytes=1000)
    assert len(Hem.build(table).match_batch(batch_of([{0: 1}])).clause_ids) == 1000


def test_keys_at_the_ends() -> None:
    last = np.iinfo(np.int64).max
    table = table_of([{0: [(1, last)]}, {0: [(last, last)]}, {0: [(0, 0)]}, {0: [(0, last)]}])
    batch = batch_of([{0: 1}, {0: last}, {}, {0: last - 1}])
    for index in (Rein, Hem):
        built = index.build(table)
        assert matched(built.match_batch(batch)) == [[0, 3], [0, 1, 3], [2, 3], [0, 3]]
        assert matched(built.match_batch(batch)) == brute_force(table, batch)
