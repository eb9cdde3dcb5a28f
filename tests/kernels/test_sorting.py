"""Sorting inside kernels."""

from __future__ import annotations

import numpy as np
import pytest

from matchmill.kernels.sorting import sort_by_key, sort_rows

pytestmark = pytest.mark.kernels


@pytest.mark.parametrize("n", [0, 1, 2, 23, 24, 25, 48, 49, 50, 300, 1000])
@pytest.mark.parametrize("top", [1, 3, 5000, 1 << 31])
def test_sorts_as_numpy_does(n: int, top: int) -> None:
    rng = np.random.default_rng(n + top)
    keys = rng.integers(0, top, n)
    ours, places = np.tile(keys, 2), np.tile(np.arange(n), 2)
    sort_by_key(ours, places, n)
    assert places[:n].tolist() == np.argsort(keys, kind="stable").tolist()
    assert ours[:n].tolist() == np.sort(keys).tolist()

    rows = np.concatenate(([7, 3], keys, [2]))
    sort_rows(rows, np.empty(n, np.int64), 2, n + 2)
    assert rows.tolist() == [7, 3, *np.sort(keys).tolist(), 2]


def test_large_labels() -> None:
    keys = np.random.default_rng(1).integers(0, 1 << 62, 500)
    ours = np.tile(keys, 2)
    sort_by_key(ours, np.tile(np.arange(500), 2), 500)
    assert ours[:500].tolist() == np.sort(keys).tolist()
    sort_rows(keys, np.empty(500, np.int64), 0, 500)
    assert keys.tolist() == ours[:500].tolist()


def test_rows_up_to_the_last_key() -> None:
    keys = np.concatenate((np.arange(100), (1 << 63) - 1 - np.arange(100)))
    rows = np.random.default_rng(2).permutation(keys)
    sort_rows(rows, np.empty(200, np.int64), 0, 200)
    assert rows.tolist() == np.sort(keys).tolist()
