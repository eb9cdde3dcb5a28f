"""`mill` against the oracle on a million pairs of an expression and an event, no two alike."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

from matchmill.index.base import Statistics
from matchmill.index.mill import Mill
from matchmill.index.mill.index import KERNELS
from matchmill.index.mixed import build_index
from matchmill.language.expression import Expression
from tests.support.conformance_kit import (
    Encoded,
    check_against_oracle,
    encode,
    random_statistics,
    statistics_of,
)
from tests.support.generators import random_event, random_expression

# Seed, expressions, events, clause limit, whether types are mixed.
SHAPES = [
    (201, 1000, 310, 64, True),
    (202, 100, 2700, 64, True),
    (203, 420, 500, 3, True),
    (204, 1100, 200, 64, False),
]


def distinct_expressions(rng: Random, n: int, mixed: bool) -> list[Expression]:
    found: dict[str, Expression] = {}
    while len(found) < n:
        expression = random_expression(rng, mixed=mixed)
        found.setdefault(str(expression), expression)
    return list(found.values())


def distinct_events(rng: Random, n: int, mixed: bool, seen: set[str]) -> list[dict[str, Any]]:
    """Events of which none has been seen; their order of names does not tell them apart."""
    events: list[dict[str, Any]] = []
    while len(events) < n:
        event = random_event(rng, mixed=mixed)
        text = repr(sorted((name, repr(value)) for name, value in event.items()))
        if text not in seen:
            seen.add(text)
            events.append(event)
    return events


def knowledge(rng: Random, case: Encoded) -> Iterator[Statistics | None]:
    """No statistics, those of the events themselves, and some that are wrong."""
    n_dimensions = case.table.n_dimensions
    yield None
    yield statistics_of(case.batch, n_dimensions)
    yield random_statistics(rng, n_dimensions, top=1 << 61)


@pytest.mark.long
def test_a_million_generated_pairs() -> None:
    """Expressions of one table differ, events differ altogether, so all pairs do."""
    seen: set[str] = set()
    n_pairs = n_true = 0
    for seed, n_expressions, n_events, max_clauses, mixed in SHAPES:
        rng = Random(seed)
        case = encode(
            distinct_expressions(rng, n_expressions, mixed),
            distinct_events(rng, n_events, mixed, seen),
            max_clauses,
        )
        for statistics in knowledge(rng, case):
            for kernel in KERNELS:
                check_against_oracle(build_index(Mill, case.table, statistics, kernel=kernel), case)
        assert max_clauses > 3 or not case.is_exact.all()
        n_pairs += case.truth.size
        n_true += int(np.count_nonzero(case.truth))
    assert n_pairs >= 1_000_000
    assert 0.2 < n_true / n_pairs < 0.5  # both answers are common
