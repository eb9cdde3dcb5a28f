"""Events in other forms than a batch: intervals of keys, and one event as bytes."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import IntervalEvents, as_intervals
from matchmill.index.mill import Mill
from matchmill.index.mill.build import inline_tests, shared_predicates
from tests.support.conformance_kit import matched, random_batch, random_table, table_of

pytestmark = pytest.mark.kernels


def random_events(rng: Random, n_events: int, n_dimensions: int, top: int) -> IntervalEvents:
    offsets, dimensions, interval_offsets = [0], [], [0]
    lows: list[int] = []
    highs: list[int] = []
    for _ in range(n_events):
        for d in rng.sample(range(n_dimensions), rng.randrange(n_dimensions + 1)):
            cuts = sorted(rng.sample(range(1, top), 2 * rng.choice((1, 1, 2, 3))))
            if rng.random() < 0.3:
                cuts = [cuts[0], cuts[0] + 1]
            dimensions.append(d)
            lows += cuts[::2]
            highs += (cut - 1 for cut in cuts[1::2])
            interval_offsets.append(len(lows))
        offsets.append(len(dimensions))
    return IntervalEvents(
        np.array(offsets),
        np.array(dimensions, np.int32),
        *map(np.array, (interval_offsets, lows, highs)),
    )


def by_definition(table: ConjunctionTable, events: IntervalEvents) -> list[list[int]]:
    out = []
    for e in range(events.n_events):
        allowed = {}
        for p in range(events.offsets[e], events.offsets[e + 1]):
            span = slice(int(events.interval_offsets[p]), int(events.interval_offsets[p + 1]))
            allowed[int(events.dimensions[p])] = list(
                zip(events.lows[span].tolist(), events.highs[span].tolist(), strict=True)
            )
        out.append(
            [
                int(table.clause_ids[i])
                for i in range(table.n_clauses)
                if all(
                    any(
                        low <= table.highs[k] and table.lows[k] <= high
                        for k in range(table.interval_offsets[p], table.interval_offsets[p + 1])
                        for low, high in allowed.get(int(table.dimensions[p]), [(0, 0)])
                    )
                    for p in range(table.clause_offsets[i], table.clause_offsets[i + 1])
                )
            ]
        )
    return out


@pytest.mark.parametrize("widths", [(1, 2, 4, 8, 16, 32, 64, 128), (1, 3, 5, 9, 17, 33, 65)])
def test_many_intervals_visit_each_node_once(
    widths: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clauses on many levels: if each interval visited its nodes again, there was no room."""
    monkeypatch.setattr(shared_predicates, "_MOST", 0)
    table = table_of(
        [{0: [(low, low + width - 1)]} for width in widths for low in range(1, 256 - width, width)]
    )
    keys = np.arange(1, 256, 2)
    events = IntervalEvents(
        np.array([0, 1]), np.zeros(1, np.int32), np.array([0, len(keys)]), keys, keys
    )
    assert matched(Mill.build(table).match_intervals(events)) == by_definition(table, events)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("top", [12, 40, 400])
def test_a_clause_matches_what_it_can_meet(seed: int, top: int) -> None:
    rng = Random(seed)
    table = random_table(rng, 80, 6, top=top)
    events = random_events(rng, 25, 8, top)
    expected = by_definition(table, events)
    assert sum(map(len, expected)) > 50
    assert matched(Mill.build(table).match_intervals(events)) == expected


@pytest.mark.parametrize("first", [0, 1], ids=["absent too", "present"])
def test_all_but_some_points(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events whose intervals are those points, or go beyond them."""
    monkeypatch.setattr(shared_predicates, "_MOST", 0)
    monkeypatch.setattr(inline_tests, "_MOST_MASKS", 0)
    rng = Random(first)
    clauses = []
    for _ in range(30):
        points = sorted(rng.sample(range(2, 60), 8))
        gaps = list(zip([first - 1, *points], [*points, 61], strict=True))
        clauses.append({d: [(a + 1, b - 1) for a, b in gaps if a + 1 < b] for d in (0, 1)})
    events = random_events(rng, 60, 2, 60)
    table = table_of(clauses)
    expected = by_definition(table, events)
    assert 0 < sum(map(len, expected)) < 60 * 30
    assert matched(Mill.build(table).match_intervals(events)) == expected


def test_points_are_ordinary_events() -> None:
    rng = Random(7)
    table, batch = random_table(rng, 150), random_batch(rng, 40)
    mill = Mill.build(table)
    assert matched(mill.match_intervals(as_intervals(batch))) == matched(mill.match_batch(batch))


def test_more_matches_than_the_first_guess() -> None:
    table = random_table(Random(2), 3000, n_dimensions=0)
    events = random_events(Random(2), 5, 4, 20)
    assert np.diff(Mill.build(table).match_intervals(events).offsets).tolist() == [3000] * 5


def test_wide_domains_and_pairs() -> None:
    """Enough clauses on few dimensions that some are filed under pairs and under dyadic nodes."""
    rng = Random(5)
    table = random_table(rng, 2000, 3, top=60)
    events = random_events(rng, 12, 3, 60)
    assert matched(Mill.build(table).match_intervals(events)) == by_definition(table, events)


def test_single_events_as_bytes() -> None:
    rng = Random(11)
    table, batch = random_table(rng, 300), random_batch(rng, 60)
    mill = Mill.build(table)
    expected = matched(mill.match_batch(batch))
    for e in range(batch.n_events):
        span = slice(int(batch.offsets[e]), int(batch.offsets[e + 1]))
        pairs = np.stack((batch.dimensions[span], batch.keys[span]), axis=1).astype(np.int64)
        assert sorted(mill.match_pairs(pairs.tobytes()).tolist()) == expected[e]
    everything = Mill.build(random_table(Random(2), 3000, n_dimensions=0))
    assert len(everything.match_pairs(b"")) == 3000
