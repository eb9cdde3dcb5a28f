"""Sorting inside kernels."""

from __future__ import annotations

import numpy as np
import pytest

from matchmill._sorting import sort_by_key, sort_rows

pytestmark = pytest.mark.kernels


@pytest.mark.parametrize("n", [0, 1, 2, 23, 24, 25, 48, 49, 50, 300, 1000])
@pytest.mark.parametrize("top", [1, 3, 5000, 1 << 31])
def test_sorts_as_numpy_does(n: int, top: int) -> None:
    rng = np.random.default_rng(n + top)
    keys = rng.integers(0, top, n)
    ours, places = keys.copy(), np.arange(n)
    sort_by_key(ours, places)
    assert places.tolist() == np.argsort(keys, kind="stable").tolist()
    assert ours.tolist() == np.sort(keys).tolist()

    rows = np.concatenate(([7, 3], keys, [2]))
    sort_rows(rows, np.empty(n, np.int64), 2, n + 2)
    assert rows.tolist() == [7, 3, *np.sort(keys).tolist(), 2]


def test_large_labels() -> None:
    keys = np.random.default_rng(1).integers(0, 1 << 62, 500)
    ours = keys.copy()
    sort_by_key(ours, np.arange(500))
    assert ours.tolist() == np.sort(keys).tolist()
