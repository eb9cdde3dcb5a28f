"""The ways on which an event reaches a clause in `mill`: each clause that holds is found once."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from matchmill.index.base import Statistics
from matchmill.index.mill import Mill
from tests.support.conformance_kit import batch_of, brute_force, matched, table_of
from tests.support.mill_checks import by_kernel, check

pytestmark = pytest.mark.kernels


TOP = 26


def every_event() -> Iterator[dict[int, int]]:
    """All keys on two dimensions, and most combinations."""
    yield {}
    for a in range(TOP + 2):
        yield {0: a}
        yield {1: a}
        for b in range(a % 3, TOP + 2, 3):
            yield {0: a, 1: b}


@pytest.mark.parametrize("shares", [(100, 0), (0, 100), (50, 50)])
def test_every_clause_is_reached_once(shares: tuple[int, int]) -> None:
    """Ranges and sets of all widths, with and without absence, under statistics that make one
    attribute or the other the better way."""
    rng = Random(1)
    clauses = []
    for _ in range(25):
        cuts = sorted(rng.sample(range(TOP), 2 * rng.choice((1, 1, 1, 2, 3, 8))))
        several = [(cuts[k], cuts[k + 1] - 1) for k in range(0, len(cuts), 2)]
        low = rng.choice((0, 0, 1, rng.randrange(TOP)))
        one = [(low, rng.randrange(low, TOP))]
        clauses += [{0: several}, {1: one}, {0: one, 1: several}]
    samples = [sorted(rng.choices(range(1, TOP), k=n)) for n in shares]
    statistics = Statistics(
        100, np.array(shares), np.cumsum([0, *shares]), np.array(samples[0] + samples[1])
    )
    check(table_of(clauses), batch_of(list(every_event())), statistics)


@by_kernel
def test_points_are_looked_up(kernel: str) -> None:
    """An event looks at the one clause it satisfies, and at none that asks for another value."""
    table = table_of([{0: [(k, k)]} for k in range(1, 1001)])
    index = Mill.build(table, kernel=kernel)
    assert matched(index.match_batch(batch_of([{0: 500}]))) == [[499]]
    assert index.stats().candidates == 1
    assert matched(index.match_batch(batch_of([{0: 1001}, {}, {1: 500}]))) == [[], [], []]
    assert index.stats().candidates == 1


@by_kernel
def test_ranges_are_looked_up(kernel: str) -> None:
    """Of two thousand narrow ranges an event looks at few."""
    table = table_of([{0: [(10 * k + 1, 10 * k + 15)]} for k in range(2000)])
    index = Mill.build(table, kernel=kernel)
    batch = batch_of([{0: 1237}, {0: 9999}, {0: 1}])
    assert matched(index.match_batch(batch)) == brute_force(table, batch)
    assert index.stats().candidates < 60


@by_kernel
def test_the_rarer_attribute_leads_to_a_clause(kernel: str) -> None:
    """All events have attribute 0, few have attribute 1: so statistics say."""
    table = table_of([{0: [(1, 1)], 1: [(k, k)]} for k in range(1, 301)])
    seldom = Statistics(1000, np.array([1000, 3]), np.array([0, 1, 4]), np.array([1, 1, 2, 3]))
    index = Mill.build(table, seldom, kernel=kernel)
    assert matched(index.match_batch(batch_of([{0: 1}]))) == [[]]
    assert index.stats().candidates == 0
    assert matched(index.match_batch(batch_of([{0: 1, 1: 7}]))) == [[6]]
    assert index.stats().candidates == 1


@pytest.mark.parametrize("n_dimensions", [1, 2, 63, 64, 65, 130])
def test_clauses_of_absence_alone(n_dimensions: int) -> None:
    """No clause can be reached through something that an event has."""
    rng = Random(n_dimensions)
    clauses = []
    for _ in range(40):
        used = sorted(rng.sample(range(n_dimensions), rng.randint(1, n_dimensions)))
        clauses.append({d: [(0, 0)] for d in used})
    events = [
        {d: rng.randrange(0, 3) for d in range(n_dimensions) if rng.random() < p}
        for p in (0, 0.02, 0.1, 0.5, 1)
        for _ in range(4)
    ]
    assert check(table_of(clauses), batch_of(events)) > 0
