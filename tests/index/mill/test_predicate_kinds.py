"""Predicates of every kind in `mill`, under limits that leave only some ways to test them: what the
ways are may change, the answers may not."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.encoding.conjunction_table import concatenate
from matchmill.index.mill.build import inline_tests, shared_predicates
from tests.support.conformance_kit import (
    batch_of,
    random_batch,
    random_statistics,
    random_table,
    table_of,
)
from tests.support.mill_checks import check

NONE_SHARED = (shared_predicates, "_MOST", 0)
NO_MASKS = (inline_tests, "_MOST_MASKS", 0)
NO_WIDE_CODES = (inline_tests, "CODE_BITS", 0)

LIMITS: dict[str, list[tuple[ModuleType, str, int]]] = {
    "as they are": [],
    "none shared": [NONE_SHARED],
    "few shared": [(shared_predicates, "_MOST", 9)],
    "few on a dimension": [
        (shared_predicates, "_MOST_ON_DIMENSION", 3),
        (inline_tests, "_MOST_MASKS", 1),
    ],
    "none shared, few masks": [NONE_SHARED, (inline_tests, "_MOST_MASKS", 2)],
    "none shared, no masks": [NONE_SHARED, NO_MASKS],
    "none shared, no wide codes": [NONE_SHARED, NO_WIDE_CODES],
    "none shared, no masks, no wide codes": [NONE_SHARED, NO_MASKS, NO_WIDE_CODES],
}


@pytest.fixture(params=LIMITS)
def limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    for module, name, value in LIMITS[request.param]:
        monkeypatch.setattr(module, name, value)
    return str(request.param)


def scattered(rng: Random, n: int, top: int, width: int = 1) -> list[tuple[int, int]]:
    """n intervals of a width, apart from each other."""
    step = width + 1
    return [(k * step + 1, k * step + width) for k in sorted(rng.sample(range(top // step), n))]


def all_but(rng: Random, n: int, first: int = 1, last: int = 400) -> list[tuple[int, int]]:
    """Everything but n points, some of them side by side."""
    points = sorted({*rng.sample(range(2, 400), n - n // 3), *range(100, 100 + n // 3)})
    gaps = zip([first - 1, *points], [*points, last + 1], strict=True)
    return [(low + 1, high - 1) for low, high in gaps if low + 1 < high]


KINDS: dict[str, Callable[[Random], list[tuple[int, int]]]] = {
    "point": lambda rng: scattered(rng, 1, 400),
    "two points": lambda rng: scattered(rng, 2, 400),
    "points": lambda rng: scattered(rng, rng.choice((3, 4, 5, 15, 16, 17)), 400),
    "59 to 62 points": lambda rng: scattered(rng, rng.choice((59, 60, 61, 62)), 400),
    "many points": lambda rng: scattered(rng, 150, 400),
    "range": lambda rng: scattered(rng, 1, 400, rng.choice((2, 30, 190))),
    "ranges": lambda rng: scattered(rng, rng.choice((2, 3, 6)), 400, rng.choice((2, 7, 30))),
    "a wide range and a point": lambda rng: [(1, at := rng.randrange(60, 300)), (at + 9, at + 9)],
    "all but a point": lambda rng: [(1, (at := rng.randrange(3, 397)) - 1), (at + 1, 400)],
    "all but points": lambda rng: all_but(rng, rng.choice((2, 3, 4, 5, 11, 12))),
    "all but 56 to 62 points": lambda rng: all_but(rng, rng.randrange(56, 63)),
    "absent or all but points": lambda rng: all_but(rng, rng.choice((2, 5, 9)), first=0),
    "there, but none of some points": lambda rng: all_but(rng, 3, last=1 << 60),
    "from there on": lambda rng: [(rng.randrange(1, 400), 1 << 60)],
    "absent or a range": lambda rng: [(0, 0), (low := rng.randrange(2, 300), low + 50)],
    "absent or points": lambda rng: [(0, 0), *((k + 1, k + 1) for k, _ in scattered(rng, 9, 400))],
    "up to there": lambda rng: [(0, rng.randrange(1, 400))],
    "absent": lambda rng: [(0, 0)],
    "present": lambda rng: [(1, 1 << 60)],
}


@pytest.mark.parametrize("kind", KINDS)
def test_one_kind_of_predicate(kind: str, limits: str) -> None:
    """Alone and with a second attribute, on every key that can tell them apart."""
    rng = Random(kind)
    ones = [{0: KINDS[kind](rng)} for _ in range(12)]
    twos = [{0: KINDS[kind](rng), 1: KINDS[kind](rng)} for _ in range(12)]
    table = table_of(ones + twos + [{0: [(3, 3)], 1: KINDS[kind](rng)} for _ in range(6)])
    keys = sorted({key + k for key in [*table.lows, *table.highs] for k in (-1, 0, 1)} - {-1})
    keys = keys if len(keys) < 150 else rng.sample(keys, 150)
    events = [{0: int(key), 1: int(rng.choice(keys))} for key in keys]
    check(table, batch_of([{}, {1: 3}, {0: 3}, {0: 3, 1: 400}, *events]))


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.kernels), 1, 2, 3])
def test_all_kinds_together(seed: int, limits: str) -> None:
    rng = Random(seed)
    clauses = []
    for _ in range(60):
        used = sorted(rng.sample(range(12), rng.choice((0, 1, 2, 3, 5, 12))))
        clauses.append({d: KINDS[rng.choice(list(KINDS))](rng) for d in used})
    table = table_of(clauses + clauses[::3])
    events = [
        {d: rng.choice((0, 1, 3, rng.randrange(1, 410))) for d in range(13) if rng.random() < 0.8}
        for _ in range(66)
    ]
    check(table, batch_of(events), random_statistics(rng, 12, 400) if seed % 2 else None)


KERNELS_TOO = pytest.param(47, marks=pytest.mark.kernels)


@pytest.mark.parametrize("n_values", [5, 46, KERNELS_TOO, 48, 49, 50, 63, 64, 65])
def test_domains_around_the_size_of_a_mask(n_values: int, limits: str) -> None:
    """Every value accepted by some clause, with and without absence: points, pairs of points,
    everything but a point. Events that have an attribute come before some that have not."""
    rng = Random(n_values)
    points = [[(k, k)] for k in range(1, n_values + 1)]
    pairs = [[(k, k), (k + 2, k + 2)] for k in range(1, n_values - 1)]
    rest = [[(1, k - 1), (k + 1, n_values)] for k in range(2, n_values)]
    for absent in (False, True):
        if absent:
            rest = [[(0, high), above] for (_, high), above in rest]
        some = rng.choices(points, k=15) + rng.choices(pairs, k=15) + rng.choices(rest, k=15)
        table = table_of([{0: a, 1: b} for a, b in zip(some, reversed(some), strict=True)])
        last = n_values + 2
        events = [{0: k, 1: rng.randrange(last)} for k in range(last)]
        events += [{0: rng.randrange(last), 1: k} for k in range(last)]
        check(table, batch_of([{}, *events, {}, {1: 1}, {0: 1}, {}]))


@pytest.mark.parametrize("n_values", [32_765, 32_766, 32_767, 32_768])
def test_domains_around_the_size_of_a_point(n_values: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets of the highest values, and all but those, where codes just fit or do not."""
    monkeypatch.setattr(*NONE_SHARED)
    top = n_values
    sets = [[(top - k, top - k) for k in range(2 * n, -1, -2)] for n in range(1, 9)]
    rest = [[(1, top - 2), (top, top)], [(1, top - 4), (top - 2, top - 2), (top, top + 9)]]
    clauses = [{0: [(k, k)], 1: [(1, 1)]} for k in range(1, top + 1)]
    clauses += [{0: values, 1: [(1, 5)]} for values in sets + rest]
    events = [{0: k, 1: one} for k in (1, *range(top - 17, top + 2)) for one in (1, 3)]
    check(table_of(clauses), batch_of([{}, {1: 1}, *events]))


@pytest.mark.kernels
def test_keys_beside_neighbouring_edges(limits: str) -> None:
    """Values without gaps, where the code follows from the key, and values with gaps."""
    for steps in ([1] * 9, [1, 1, 2, 1], [5], [1 << 61]):
        starts = [7 + sum(steps[:k]) for k in range(len(steps) + 1)]
        clauses = [{d: [(k, k)]} for d in (0, 1) for k in starts]
        clauses += [{0: [(starts[0], k)], 1: [(k, starts[-1])]} for k in starts]
        keys = sorted({key + k for key in starts for k in (-1, 0, 1)} | {0, 1, 2**63 - 1})
        events = [{0: a, 1: b} for a in keys for b in (keys[0], keys[2], keys[-1])]
        check(table_of(clauses), batch_of([{}, *events]))


@given(st.integers(0, 2**32), st.sampled_from(sorted(LIMITS)))
def test_any_order_of_tables_and_events(seed: int, limited: str) -> None:
    rng = Random(seed)
    n_dimensions, top = rng.choice((1, 3, 12)), rng.choice((9, 40, 300))
    tables = [random_table(rng, rng.choice((1, 5, 40)), n_dimensions, top=top)]
    ids = count(len(tables[0].clause_ids) if rng.random() < 0.7 else 2**32 - 3)
    for _ in range(rng.choice((0, 0, 3))):  # the same predicates again
        again = [next(ids) for _ in tables[0].clause_ids]
        tables.append(tables[0]._replace(clause_ids=np.array(again, np.int64)))
    table = concatenate(tables)
    statistics = random_statistics(rng, n_dimensions, top) if rng.random() < 0.5 else None
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in LIMITS[limited]:
            patch.setattr(module, name, value)
        check(table, random_batch(rng, rng.choice((1, 5, 65)), n_dimensions + 1, top), statistics)
