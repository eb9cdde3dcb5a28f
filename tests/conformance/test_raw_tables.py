"""Every index against a brute-force loop over raw tables; also run without compilation."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest

from matchmill.papers.common.clause_intervals import MAX_KEY
from matchmill.storage.array_folder import SavedFolder, map_arrays, read_manifest, write_folder
from tests.support.conformance_kit import (
    BUILDABLE,
    batch_of,
    brute_force,
    matched,
    random_batch,
    random_table,
    table_of,
)

pytestmark = [pytest.mark.kernels, pytest.mark.parametrize("name", sorted(BUILDABLE))]


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_brute_force(name: str, seed: int) -> None:
    rng = Random(seed)
    table = random_table(rng, 120)
    batch = random_batch(rng, 70)
    index = BUILDABLE[name].build(table)
    expected = brute_force(table, batch)
    assert sum(map(len, expected)) > 100
    assert matched(index.match_batch(batch)) == expected


@pytest.mark.parametrize("n_events", [0, 1, 63, 64, 65])
def test_batch_sizes(name: str, n_events: int) -> None:
    rng = Random(n_events)
    table = random_table(rng, 40)
    batch = random_batch(rng, n_events)
    assert matched(BUILDABLE[name].build(table).match_batch(batch)) == brute_force(table, batch)


@pytest.mark.parametrize("n_clauses", [0, 1, 2])
def test_tiny_tables(name: str, n_clauses: int) -> None:
    rng = Random(n_clauses)
    batch = random_batch(rng, 10)
    for _ in range(10):
        table = random_table(rng, n_clauses)
        assert matched(BUILDABLE[name].build(table).match_batch(batch)) == brute_force(table, batch)


def test_clauses_without_predicates_match_the_empty_event(name: str) -> None:
    table = random_table(Random(1), 5, n_dimensions=0)
    batch = random_batch(Random(1), 3, n_dimensions=0)
    assert matched(BUILDABLE[name].build(table).match_batch(batch)) == [[0, 1, 2, 3, 4]] * 3


def test_the_ends_of_the_line(name: str) -> None:
    table = table_of(
        [
            {0: [(1, MAX_KEY)]},
            {0: [(MAX_KEY, MAX_KEY)]},
            {0: [(0, MAX_KEY)]},
            {0: [(0, 0), (MAX_KEY, MAX_KEY)]},
            {0: [(0, MAX_KEY - 1)]},
            {0: [(1, 1), (3, MAX_KEY - 1)]},
            {0: [(0, 0)]},
        ]
    )
    batch = batch_of([{}, {0: 1}, {0: 2}, {0: MAX_KEY - 1}, {0: MAX_KEY}, {1: 1}])
    index = BUILDABLE[name].build(table)
    assert matched(index.match_batch(batch)) == brute_force(table, batch)


def test_key_0_is_absence_also_if_it_is_given(name: str) -> None:
    rng = Random(6)
    table = random_table(rng, 60)
    batch = batch_of([{}, dict.fromkeys(range(9), 0), {0: 0, 3: 5}, {3: 5}, {9: 0, 7: 1}, {7: 1}])
    expected = brute_force(table, batch)
    assert expected[0] == expected[1]
    assert matched(BUILDABLE[name].build(table).match_batch(batch)) == expected


def test_dimensions_far_apart(name: str) -> None:
    table = table_of([{3: [(1, 4)], 5000: [(2, 2)]}, {5000: [(0, 1)]}, {70_000: [(0, 0)]}])
    batch = batch_of([{}, {3: 4, 5000: 2}, {5000: 1, 70_000: 1}, {70_001: 5, 80_000: 1, 3: 1}])
    assert matched(BUILDABLE[name].build(table).match_batch(batch)) == brute_force(table, batch)


def test_everything_matches(name: str) -> None:
    """More matches than any first guess at the size of the output."""
    table = random_table(Random(2), 700, n_dimensions=0)
    batch = random_batch(Random(2), 66)
    matches = BUILDABLE[name].build(table).match_batch(batch)
    assert np.diff(matches.offsets).tolist() == [700] * 66
    assert matched(matches)[65] == list(range(700))


def test_clause_ids_are_the_tables(name: str) -> None:
    rng = Random(3)
    table = random_table(rng, 30)
    table = table._replace(clause_ids=table.clause_ids[::-1] * 1000 + 7)
    batch = random_batch(rng, 20)
    expected = [sorted(ids) for ids in brute_force(table, batch)]
    assert matched(BUILDABLE[name].build(table).match_batch(batch)) == expected


def test_saved_and_mapped(name: str, tmp_path: Path) -> None:
    rng = Random(4)
    batch = random_batch(rng, 30)
    for n_clauses in (0, 60):
        table = random_table(rng, n_clauses)
        write_folder(tmp_path / "i", SavedFolder(BUILDABLE[name].build(table).arrays(), {}))
        arrays = map_arrays(tmp_path / "i", read_manifest(tmp_path / "i"), verify=False)
        again = BUILDABLE[name].from_arrays(arrays)
        assert matched(again.match_batch(batch)) == brute_force(table, batch)
        assert again.stats().n_clauses == n_clauses


def test_building_and_matching_change_no_input(name: str) -> None:
    rng = Random(7)
    table, batch = random_table(rng, 60), random_batch(rng, 66)
    before = [array.copy() for array in (*table, *batch)]
    index = BUILDABLE[name].build(table)
    index.match_batch(batch)
    for array, copy in zip((*table, *batch), before, strict=True):
        assert np.array_equal(array, copy)
    arrays = {key: array.copy() for key, array in index.arrays().items()}
    index.match_batch(batch)
    again = BUILDABLE[name].build(table).arrays()
    for key, array in index.arrays().items():
        assert np.array_equal(array, arrays[key]), key
        assert np.array_equal(array, again[key]), key


def test_statistics(name: str) -> None:
    table = random_table(Random(5), 25)
    index = BUILDABLE[name].build(table)
    assert index.name == name or name == "auto"  # which is the structure that it chose
    before = index.stats()
    assert before.n_clauses == 25
    assert before.n_bytes > 0
    assert before.build_seconds >= 0
    index.match_batch(random_batch(Random(5), 64))
    assert index.stats().candidates > before.candidates
