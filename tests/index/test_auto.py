"""Which structure the default chooses, and that all of them together find what a scan finds."""

from __future__ import annotations

import numpy as np
import pytest

from matchmill.encoding.conjunction_table import ConjunctionTable, concatenate, take_clauses
from matchmill.index.auto import Auto
from matchmill.index.bitmaps import Bitmaps
from matchmill.index.event_sample import build_statistics
from matchmill.index.grouping import BITMAPS, MILL, TREE, find_groups
from matchmill.index.mask_tree import MaskTree
from matchmill.index.mill import Mill
from tests.index.test_bitmaps import thresholds
from tests.index.test_mask_tree import boxes, check, some_events


def by_value(n: int, n_values: int, first_id: int) -> ConjunctionTable:
    """Clauses of one equality."""
    keys = np.random.default_rng(n).integers(1, n_values, n)
    return ConjunctionTable(
        np.arange(first_id, first_id + n), np.arange(n + 1), np.full(n, 7, np.int32),
        np.arange(n + 1), keys, keys,
    )  # fmt: skip


def test_ranges_get_trees_and_equalities_get_mill() -> None:
    random = np.random.default_rng(8)
    top, n = 1 << 40, 6000
    table = concatenate(
        [
            boxes(random, n, [0, 1], top),
            by_value(n, 1 << 30, n),
            boxes(random, n, [0, 2, 3], top, 2 * n),
            boxes(random, 40, [1, 2], top, 3 * n, odd=0.5),
        ]
    )
    groups = sorted(find_groups(table, None), key=lambda group: group.rows[0])
    assert [group.structure for group in groups] == [TREE, MILL, TREE]
    assert [int(group.rows[0]) for group in groups] == [0, n, 2 * n]
    index = Auto.build(table)
    events = some_events(random, 40, table, 9, top)
    assert check(index, table, events)
    assert index.stats().n_clauses == table.n_clauses
    names, figures, costs = zip(*index.parts(), strict=True)
    assert names == ("mill", "mask_tree", "mask_tree")
    assert sum(one.n_clauses for one in figures) == table.n_clauses
    assert costs[1]["mask_tree"] < costs[1]["mill"]
    ids, looked_at, held = index.clause_costs(events)
    assert np.array_equal(ids, np.arange(table.n_clauses))
    assert (looked_at >= held).all()
    found = index.match_batch(events).clause_ids
    assert np.array_equal(held, np.bincount(found, minlength=table.n_clauses))


def test_one_structure_is_used_as_it_is() -> None:
    random = np.random.default_rng(8)
    assert type(Auto.build(by_value(2000, 1 << 30, 0))) is Mill
    assert type(Auto.build(boxes(random, 100, [0, 1], 1 << 40))) is Mill  # too few
    tree = Auto.build(boxes(random, 2000, [0, 1], 1 << 40))
    assert type(tree) is MaskTree
    assert type(Auto.from_arrays(tree.arrays())) is MaskTree


def test_thresholds_get_bitmaps() -> None:
    """Also beside other clauses, and saved and opened."""
    random = np.random.default_rng(6)
    many = thresholds(random, 6000, 30, 1 << 50, 0.8)
    bitmaps = Auto.build(many)
    assert type(bitmaps) is Bitmaps
    assert type(Auto.from_arrays(bitmaps.arrays())) is Bitmaps
    both = concatenate([many, by_value(3000, 1 << 30, 6000), boxes(random, 8000, [2, 4], 1 << 50)])
    both = both._replace(clause_ids=np.arange(both.n_clauses))
    groups = find_groups(both, None)
    assert [group.structure for group in groups] == [MILL, BITMAPS, TREE]
    events = some_events(random, 40, both, 31, 1 << 50)
    assert check(Auto.build(both, build_statistics(events, 31)), both, events)


def test_many_small_groups_are_one_structure() -> None:
    """An event would visit one tree per combination of dimensions otherwise."""
    random = np.random.default_rng(2)
    n = 2000
    combinations = [[a, b, c] for a in range(6) for b in range(a) for c in range(b)]
    parts = [boxes(random, n, sorted(own), 1 << 40) for own in combinations]
    table = concatenate(parts)
    table = table._replace(clause_ids=np.arange(table.n_clauses))
    assert [group.structure for group in find_groups(table, None)] == [BITMAPS]
    three = take_clauses(table, np.arange(2 * n))
    assert [group.structure for group in find_groups(three, None)] == [TREE, TREE]


@pytest.mark.parametrize("n_values", [1, 3, 1 << 40])
def test_equalities_alone_are_for_mill(n_values: int) -> None:
    table = by_value(1000, n_values + 1, 0)
    assert [group.structure for group in find_groups(table, None)] == [MILL]
