"""Codes of keys: exact where they say so, never too narrow, stable, and small."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from matchmill.encoding.cut_points import Relabelling, region_floor
from matchmill.encoding.event_batch import as_intervals
from matchmill.encoding.key_codes import KeyCodes
from matchmill.index.interval_scan import scan_intervals
from matchmill.language.values import Region
from tests.support.conformance_kit import (
    batch_of,
    brute_force,
    matched,
    random_batch,
    random_table,
    table_of,
)

pytestmark = pytest.mark.kernels


def test_the_example_of_the_module() -> None:
    table = table_of([{0: [(20, 29)]}, {0: [(40, 40)]}, {0: [(60, (1 << 63) - 1)]}])
    codes = KeyCodes.of(table)
    assert codes.starts.tolist() == [1, 20, 30, 40, 60]
    coded, doubtful = codes.clauses(table)
    assert list(zip(coded.lows.tolist(), coded.highs.tolist(), strict=True)) == [
        (2, 2),
        (4, 4),
        (5, 5),
    ]
    assert doubtful.tolist() == [0, 0, 0]
    keys = [0, 1, 19, 20, 29, 30, 40, 41, 59, 60, (1 << 63) - 1]
    events, is_vague = codes.events(batch_of([{0: key} for key in keys]))
    assert events.offsets.tolist() == [0, 0, *range(1, 11)]  # without key 0
    assert events.keys.tolist() == [1, 1, 2, 2, 3, 4, 4, 4, 5, 5]
    assert [keys[e] for e in np.flatnonzero(is_vague)] == [41, 59]


def test_later_clauses_inside_of_pieces_are_doubtful() -> None:
    codes = KeyCodes.of(table_of([{0: [(20, 29)]}, {0: [(40, 40)]}]))
    later = [(20, 40), (20, 45), (21, 29), (20, 28), (30, 39), (41, 45), (1, 19), (0, 0), (0, 5)]
    _, doubtful = codes.clauses(table_of([{0: [interval]} for interval in later]))
    assert doubtful.tolist() == [0, 0, 1, 1, 0, 1, 0, 0, 1]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("scale", [1, 2, 1 << 50])
def test_what_is_found_in_codes(seed: int, scale: int) -> None:
    """All that holds; and nothing else, but for doubtful clauses and vague events."""
    rng = Random(seed)
    tables = [random_table(rng, 30), random_table(rng, 30, first_id=30)]
    tables = [t._replace(lows=t.lows * scale, highs=t.highs * scale) for t in tables]
    batch = random_batch(rng, 30)
    batch = batch._replace(keys=batch.keys * scale + (np.arange(len(batch.keys)) % 3 == 0))
    codes = KeyCodes.of(tables[0])
    events, is_vague = codes.events(batch)
    for n, table in enumerate(tables):
        if n:
            before, codes = codes, codes.with_dimensions_of(table)
            assert codes.starts[: len(before.starts)].tolist() == before.starts.tolist()
            events, is_vague = codes.events(batch)
        coded, doubtful = codes.clauses(table)
        assert n or not doubtful.any()
        found, expected = brute_force(coded, events), brute_force(table, batch)
        doubtful_ids = set(table.clause_ids[doubtful > 0].tolist())
        for e, (some, true) in enumerate(zip(found, expected, strict=True)):
            assert set(some) >= set(true)
            if not is_vague[e]:
                assert set(some) - set(true) <= doubtful_ids
        wide = matched(scan_intervals(coded, codes.intervals(as_intervals(batch))))
        for some, true in zip(wide, expected, strict=True):
            assert set(some) >= set(true)


def test_where_events_are_vague_there_are_no_points() -> None:
    table = table_of([{0: [(20, 20)], 1: [(20, 20)]}])
    sample = np.array([0] * 10 + [1] * 10), np.array([20] * 9 + [21] + [20] * 8 + [21] * 2)
    codes = KeyCodes.of(table, sample)
    assert codes.starts.tolist() == [1, 20, 1, 20, 21]
    assert codes.is_point.tolist() == [0, 1, 0, 0, 0]


def test_truth_values_have_pieces_of_their_own() -> None:
    codes = KeyCodes.of(table_of([{0: [(1, 1)]}, {1: [(2, 2)]}]))
    _, is_vague = codes.events(batch_of([{0: 1}, {0: 2}, {1: 1}, {1: 2}, {1: 3}]))
    assert not is_vague.any()


def test_a_relabelling_changes_no_code() -> None:
    floor = region_floor(Region.NUMBER)
    labels = np.arange(2, 40, 2)
    intervals = [(8, 12), (15, 20), (4, 4), (5, 9)]
    low = [(floor + a, floor + b) for a, b in intervals]
    table = table_of([{0: [low[0]]}, {0: [low[1]], 1: [low[2]]}, {0: [(1, 1)], 1: [low[3]]}])
    codes = KeyCodes.of(table)
    change = Relabelling(Region.NUMBER, floor + labels, floor + 10 * labels)
    again = codes.relabelled({0: [change], 7: []})
    keys = np.arange(2, 39)
    moved = np.where(keys % 2, 10 * (keys - 1) + 1, 10 * keys)
    zeros = np.zeros(len(keys), np.int64)
    assert again.keys(zeros, floor + moved).tolist() == codes.keys(zeros, floor + keys).tolist()
    assert (
        again.keys(zeros + 1, floor + keys).tolist() == codes.keys(zeros + 1, floor + keys).tolist()
    )
    assert again.keys(zeros[:3], np.arange(3)).tolist() == [0, 1, 2]
