"""Cut points and keys: exact order for any values, however the cut points arrive."""

from __future__ import annotations

import random
from math import isqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.encoding import cut_points as cuts
from matchmill.encoding.cut_points import CutTable, region_ceiling, region_floor, sorted_places
from matchmill.encoding.numbers import number_pairs
from matchmill.encoding.texts import strings_to_texts
from matchmill.language.values import INT64_MAX, INT64_MIN, Region

pytestmark = pytest.mark.kernels

NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        [0, -0.0, 2**53, 2.0**53, 2**53 + 1, 2**63 - 1, 2.0**63, -(2.0**63), 1.5, 5e-324]
    ),
    st.integers(-3, 3),
)
STRINGS = st.text(st.sampled_from("ab\x00é\uffff\U0001f600"), max_size=12)


def number_keys(table: CutTable, values: list[Any]) -> list[int]:
    return table.number_keys(*number_pairs(Region.NUMBER, values)).tolist()


def string_keys(table: CutTable, values: list[str]) -> list[int]:
    return table.string_keys(strings_to_texts(values)).tolist()


def check_keys(points: list[Any], values: list[Any], keys: list[int], labels: list[int]) -> None:
    """A key tells, for every cut point, on which side of it a value lies."""
    for point, label in zip(points, labels, strict=True):
        for value, key in zip(values, keys, strict=True):
            assert (key == label) == (value == point)
            assert (key < label) == (value < point)


@given(
    st.lists(st.lists(NUMBERS, min_size=1, max_size=6), max_size=5), st.lists(NUMBERS, max_size=8)
)
def test_numbers_in_any_order(groups: list[list[Any]], values: list[Any]) -> None:
    table = CutTable(Region.NUMBER)
    points: list[Any] = []
    for group in groups:
        before = table.labels_of(points) if points else None
        table, relabelling = table.added(group)
        assert relabelling is None
        if before is not None:  # labels are stable
            assert table.labels_of(points).tolist() == before.tolist()  # type: ignore[union-attr]
        points += group
    assert table.n_cuts == len(set(points))
    values = values + points
    labels = table.labels_of(points).tolist() if points else []  # type: ignore[union-attr]
    check_keys(points, values, number_keys(table, values), labels)


@given(
    st.lists(st.lists(STRINGS, min_size=1, max_size=6), max_size=5), st.lists(STRINGS, max_size=8)
)
def test_strings_in_any_order(groups: list[list[str]], values: list[str]) -> None:
    table = CutTable(Region.STRING)
    points: list[str] = []
    for group in groups:
        table, _ = table.added(group)
        points += group
    values = values + points
    labels = table.labels_of(points).tolist() if points else []  # type: ignore[union-attr]
    check_keys(points, values, string_keys(table, values), labels)


def test_missing_cut_points_have_no_label() -> None:
    table, _ = CutTable(Region.NUMBER).added([1, 2])
    assert table.labels_of([1, 3]) is None
    assert CutTable(Region.NUMBER).labels_of([1]) is None


@pytest.mark.parametrize("region", [Region.NUMBER, Region.STRING])
def test_runs_are_merged(region: Region, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuts, "_FRESH_LIMIT", 4)
    table = CutTable(region)
    points: list[Any] = [f"p{n:03}" if region == Region.STRING else n / 2 for n in range(120)]
    order = np.random.default_rng(1).permutation(120)
    for n in order:
        table, _ = table.added([points[n]])
    labels = table.labels_of(points)
    assert labels is not None
    assert (np.diff(labels) >= 2).all()
    assert len(table.fresh.labels) <= max(4, 4 * isqrt(len(table.base.labels)))
    assert table.merged().labels.tolist() == labels.tolist()
    assert table.n_bytes > 0


def test_ascending_cut_points_never_fill_a_gap() -> None:
    table = CutTable(Region.NUMBER)
    for n in range(500):
        table, up = table.added([n])
        table, down = table.added([-n])
        assert up is None
        assert down is None


def test_a_full_gap_is_relabelled() -> None:
    """Halving one gap again and again uses it up; order and stability hold on both sides."""
    table, _ = CutTable(Region.NUMBER).added([0, 1])
    points: list[Any] = [0, 1]
    high = 1.0
    n_relabelled = 0
    for _ in range(120):
        high /= 2
        before = table.labels_of(points)
        table, relabelling = table.added([high])
        after = table.labels_of(points)
        assert before is not None
        assert after is not None
        if relabelling is not None:
            n_relabelled += 1
            moved = relabelling.new[np.searchsorted(relabelling.old, before)]
            assert moved.tolist() == after.tolist()
        else:
            assert before.tolist() == after.tolist()
        points.append(high)
    assert n_relabelled >= 2
    labels = table.labels_of(points)
    assert labels is not None
    check_keys(points, points, number_keys(table, points), labels.tolist())
    assert labels.min() > region_floor(Region.NUMBER)
    assert labels.max() < region_ceiling(Region.NUMBER)


def test_timestamps_are_exact_to_the_nanosecond() -> None:
    microsecond = 1_600_000_000_000_000
    table, _ = CutTable(Region.TIMESTAMP).added([microsecond * 1000, -5000])
    keys = table.number_keys(
        np.array([microsecond - 1, microsecond, microsecond, -5, -5]),
        np.array([0.999, 0.0, 0.001, 0.0, 0.5]),
    )
    labels = table.labels_of([microsecond * 1000, -5000])
    assert labels is not None
    assert keys.tolist() == [labels[1] + 1, labels[0], labels[0] + 1, labels[1], labels[1] + 1]


@pytest.mark.parametrize("region", [Region.NUMBER, Region.TIMESTAMP])
def test_a_few_cut_points_are_like_many(region: Region, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done one by one for a few, and by NumPy for many, is the same."""
    rng = random.Random(int(region))
    floor, ceiling = region_floor(region), region_ceiling(region)
    values: list[Any] = [0, -1, 999, 10**18, 5 * 10**17 + 1, 2**53, 2**53 + 1, INT64_MAX, INT64_MIN]
    if region == Region.NUMBER:
        values += [-0.0, 5.0, 2.0**53 + 2, 1e300, -1e300, 2.0**63, -(2.0**63), 0.5, -0.5, 5e-324]
    for _ in range(300):
        scale = rng.choice((1, 2, 1 << 20, 1 << 31, 1 << 40))
        start = rng.choice((floor + 50 * scale, (floor + ceiling) // 2, ceiling - 50 * scale))
        marks = [start + scale * k for k in sorted(rng.sample(range(1, 40), rng.randint(0, 6)))]
        ends = np.array([floor, *marks, ceiling])
        gaps = np.array(sorted(rng.randrange(len(ends) - 1) for _ in range(rng.randint(1, 8))))
        some = [rng.choice(values) for _ in range(rng.randint(1, 8))]
        found = []
        for few in (8, 0):
            monkeypatch.setattr(cuts, "_FEW", few)
            labels = cuts._labels_between(ends[gaps], ends[gaps + 1], region)
            run, at = sorted_places(region, some)
            none = labels is None
            found.append((none, none or labels.tolist(), *map(list, run), at.tolist()))
        assert found[0] == found[1]
