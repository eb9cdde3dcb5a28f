"""An index is the same, bit by bit, however many threads build it."""

from __future__ import annotations

from random import Random

import pytest

from tests.support.conformance_kit import random_table
from tests.support.mill_checks import check_threads

pytestmark = pytest.mark.kernels


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_clauses", [0, 1, 7, 300])
def test_any_number_of_threads_builds_the_same(
    n_clauses: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = random_table(Random(seed), n_clauses)
    check_threads(table, monkeypatch)
