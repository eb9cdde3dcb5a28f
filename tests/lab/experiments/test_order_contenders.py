"""Orders of evaluation as contenders of experiments: as exact as an index has to be."""

from __future__ import annotations

from random import Random

import pytest

from matchmill.index.registry import INDEXES
from matchmill.lab.experiments.contenders import CONTENDERS, is_there
from matchmill.lab.experiments.order_contenders import ORDERS
from matchmill.lab.experiments.spec import find_experiments
from tests.support.conformance_kit import (
    brute_force,
    matched,
    random_batch,
    random_statistics,
    random_table,
)


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_brute_force(name: str, seed: int) -> None:
    rng = Random(seed)
    table = random_table(rng, 120)
    batch = random_batch(rng, 40)
    statistics = random_statistics(rng, table.n_dimensions) if seed % 2 else None
    index = ORDERS[name].build(table, statistics, rare_first=seed > 1)
    expected = brute_force(table, batch)
    assert matched(index.match_batch(batch)) == expected
    again = ORDERS[name].from_arrays(index.arrays())
    assert matched(again.match_batch(batch)) == expected
    assert again.stats().n_clauses == 120
    assert 0 < again.stats().candidates <= 40 * table.n_predicates


def test_orders_are_contenders_and_no_indexes() -> None:
    assert set(CONTENDERS) == {*INDEXES, *ORDERS}
    assert not set(INDEXES) & set(ORDERS)


def test_orders_are_there_in_experiments_that_count_predicates() -> None:
    for experiment in find_experiments(["operators"]):
        assert [c.name for c in experiment.contenders if not is_there(c)] == []
