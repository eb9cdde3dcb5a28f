"""Statistics may make an index quicker; right or wrong, they never change an answer."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from matchmill.encoding.event_batch import EventBatch
from matchmill.index.base import Statistics
from matchmill.index.mixed import build_index
from tests.support.conformance_kit import (
    BUILDABLE,
    brute_force,
    check_against_oracle,
    encode,
    matched,
    random_batch,
    random_statistics,
    random_table,
    statistics_of,
)
from tests.support.generators import cases

pytestmark = [pytest.mark.kernels, pytest.mark.parametrize("name", sorted(BUILDABLE))]


def test_of_the_very_events(name: str) -> None:
    rng = Random(1)
    table, batch = random_table(rng, 80), random_batch(rng, 66)
    index = BUILDABLE[name].build(table, statistics_of(batch, table.n_dimensions))
    assert matched(index.match_batch(batch)) == brute_force(table, batch)


@pytest.mark.parametrize("seed", range(6))
def test_at_random(name: str, seed: int) -> None:
    rng = Random(seed)
    top = rng.choice((5, 40, 300))
    table, batch = random_table(rng, 80, top=top + 5), random_batch(rng, 30, top=top)
    index = BUILDABLE[name].build(table, random_statistics(rng, 8, top))
    assert matched(index.match_batch(batch)) == brute_force(table, batch)


@pytest.mark.parametrize("n_events", [0, 5])
def test_of_events_without_attributes(name: str, n_events: int) -> None:
    rng = Random(2)
    table, batch = random_table(rng, 40), random_batch(rng, 20)
    nothing = EventBatch(
        np.zeros(n_events + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.int64)
    )
    for n_dimensions in (0, 3, 50):
        index = BUILDABLE[name].build(table, statistics_of(nothing, n_dimensions))
        assert matched(index.match_batch(batch)) == brute_force(table, batch)


def test_that_say_the_opposite(name: str) -> None:
    """What occurs all the time is said to occur never, and the other way round."""
    clauses = random_table(Random(3), 60, n_dimensions=4)
    batch = random_batch(Random(3), 40, n_dimensions=2)
    never_seen = Statistics(
        1000,
        np.array([0, 0, 1000, 1000], np.int64),
        np.array([0, 0, 0, 3, 4], np.int64),
        np.array([7, 7, 9, 30], np.int64),
    )
    index = BUILDABLE[name].build(clauses, never_seen)
    assert matched(index.match_batch(batch)) == brute_force(clauses, batch)


def test_that_contradict_themselves(name: str) -> None:
    """More events with a dimension than events, samples of nothing, nothing but absence."""
    rng = Random(6)
    table, batch = random_table(rng, 60, n_dimensions=4), random_batch(rng, 40, n_dimensions=5)
    for n_events, counts, sample in (
        (10, [500, 500, 0, 0], [5, 5]),
        (1000, [1000, 1000, 1000, 1000], []),
        (3, [0, 0, 0, 0], [1, 2, 3, 4, 5, 6]),
        (1000, [1000, 1000, 1000, 1000], [0] * 8),
    ):
        offsets = np.arange(5) * len(sample) // 4
        statistics = Statistics(
            n_events, np.array(counts, np.int64), offsets, np.array(sample, np.int64)
        )
        index = BUILDABLE[name].build(table, statistics)
        assert matched(index.match_batch(batch)) == brute_force(table, batch)


def test_of_an_empty_table(name: str) -> None:
    rng = Random(4)
    table, batch = random_table(rng, 0), random_batch(rng, 5)
    index = BUILDABLE[name].build(table, random_statistics(rng, 4))
    assert matched(index.match_batch(batch)) == [[]] * 5


def test_through_the_whole_encoding(name: str) -> None:
    case = encode(*cases(104, 60, 40))
    rng = Random(5)
    n = case.table.n_dimensions
    for statistics in (statistics_of(case.batch, n), random_statistics(rng, n, top=1 << 61)):
        check_against_oracle(build_index(BUILDABLE[name], case.table, statistics), case)
