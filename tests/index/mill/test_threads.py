"""An index is the same, bit by bit, however many threads build it; places are in order."""

from __future__ import annotations

from random import Random

import pytest

from matchmill.index.mill import arrays
from matchmill.index.mill.arrays import BlockViews, MillArrays
from matchmill.index.mill.match import block as many_events
from matchmill.index.mill.match import single as one_event
from matchmill.index.mill.match.block import BlockState
from matchmill.index.mill.match.single import EventState
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


def test_the_numbers_of_places_are_those_of_the_fields() -> None:
    for n, name in enumerate((*MillArrays._fields, *BlockViews._fields)):
        assert getattr(arrays, name.upper()) == n
    for n, name in enumerate(EventState._fields):
        assert getattr(one_event, name.upper()) == n
    renamed = {"VALUES": "BLOCK_VALUES", "KEYS": "BLOCK_KEYS", "CODES": "BLOCK_CODES"}
    for n, name in enumerate(BlockState._fields):
        assert getattr(many_events, renamed.get(name.upper(), name.upper())) == n
