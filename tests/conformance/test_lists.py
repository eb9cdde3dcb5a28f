"""Every index on clauses with multi-valued dimensions, against a brute-force loop."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from matchmill.encoding.conjunction_table import concatenate, divide, take_clauses
from matchmill.index.event_sample import build_statistics
from matchmill.index.in_place import InPlaceSegments
from matchmill.index.lists import ListIndex
from matchmill.index.mixed import build_index, open_index
from matchmill.index.registry import changes_in_place
from matchmill.index.segments import Segmented
from matchmill.storage.array_folder import SavedFolder, map_arrays, read_manifest, write_folder
from tests.support.conformance_kit import (
    BUILDABLE,
    INDEX_NAMES,
    brute_force,
    matched,
    random_list_batch,
    random_list_table,
    random_statistics,
)

pytestmark = pytest.mark.kernels
by_index = pytest.mark.parametrize("name", sorted(BUILDABLE))


@by_index
@pytest.mark.parametrize("seed", range(2))
def test_agrees_with_brute_force(name: str, seed: int) -> None:
    rng = Random(seed)
    table, batch = random_list_table(rng, 120), random_list_batch(rng, 60)
    expected = brute_force(table, batch)
    assert sum(map(len, expected)) > 100
    assert matched(build_index(BUILDABLE[name], table).match_batch(batch)) == expected


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_known_of_events(seed: int) -> None:
    """Many cut points, few of them, statistics that are right, wrong, or missing."""
    rng = Random(seed)
    top = rng.choice((5, 12, 40, 300, 3000))
    table = random_list_table(rng, rng.choice((1, 20, 300)), top=top + 5)
    batch = random_list_batch(rng, 30, top=top)
    expected = brute_force(table, batch)
    some = (None, build_statistics(batch, 10), random_statistics(rng, 10, top))
    for statistics in some:
        index = ListIndex.build(table, statistics)
        assert matched(index.match_batch(batch)) == expected
        assert matched(index.match_batch(batch)) == expected  # everything is at rest again
        for e in range(batch.n_events):
            own = slice(int(batch.offsets[e]), int(batch.offsets[e + 1]))
            pairs = np.stack((batch.dimensions[own].astype(np.int64), batch.keys[own]), axis=1)
            assert sorted(index.match_pairs(pairs.tobytes()).tolist()) == expected[e]


@by_index
def test_saved_and_mapped(name: str, tmp_path: Path) -> None:
    rng = Random(4)
    table, batch = random_list_table(rng, 60), random_list_batch(rng, 20)
    built = build_index(BUILDABLE[name], table)
    write_folder(tmp_path / "i", SavedFolder(built.arrays(), {}))
    arrays = map_arrays(tmp_path / "i", read_manifest(tmp_path / "i"), verify=False)
    again = open_index(BUILDABLE[name], arrays)
    assert matched(again.match_batch(batch)) == brute_force(table, batch)
    assert again.stats().n_clauses == 60
    assert again.name == name or name == "auto"  # which is the structure that it chose


@pytest.mark.parametrize("name", INDEX_NAMES)
def test_updates(name: str) -> None:
    """Insert, delete, insert again, in segments or in place."""
    rng = Random(5)
    everything, batch = random_list_table(rng, 80), random_list_batch(rng, 12)
    index: Any
    if changes_in_place(BUILDABLE[name]):
        index = InPlaceSegments(BUILDABLE[name], fresh_clauses=5)
    else:
        index = Segmented(BUILDABLE[name], fresh_clauses=5, merge_factor=2)
    live: set[int] = set()
    n_used = 0
    for _ in range(25):
        if n_used < 80 and (not live or rng.random() < 0.6):
            chosen = list(range(n_used, min(80, n_used + rng.choice((1, 1, 4, 15)))))
            n_used += len(chosen)
            index.insert(take_clauses(everything, np.array(chosen)))
            live |= set(chosen)
        else:
            gone = rng.sample(sorted(live), min(len(live), rng.choice((1, 1, 3))))
            index.delete(np.array(gone))
            live -= set(gone)
        expected = take_clauses(everything, np.array(sorted(live), np.int64))
        assert matched(index.match_batch(batch)) == brute_force(expected, batch)


def test_division_of_tables() -> None:
    table = random_list_table(Random(6), 50)
    plain, lists = divide(table)
    assert not plain.has_lists
    assert lists.has_lists
    assert min(plain.n_clauses, lists.n_clauses) > 0
    assert divide(plain)[0] is plain
    whole = concatenate([plain, lists])
    order = np.argsort(whole.clause_ids)
    for one, other in zip(take_clauses(whole, order), table, strict=True):
        assert np.array_equal(one, other)
