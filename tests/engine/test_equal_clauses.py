"""Which clauses are the same: against Python's own dictionaries, also if hashes collide."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from matchmill.encoding.conjunction_table import ConjunctionTable, empty_table, take_clauses
from matchmill.engine import equal_clauses
from matchmill.engine.equal_clauses import Items, leaders_of, repeated_clauses
from tests.support.conformance_kit import random_table

pytestmark = pytest.mark.kernels


def items_of(sequences: list[list[int]]) -> Items:
    offsets = np.concatenate(([0], np.cumsum([len(s) for s in sequences]))).astype(np.int64)
    return Items(offsets, np.array([n for s in sequences for n in s], np.int64))


def random_sequences(rng: Random, n: int) -> list[list[int]]:
    numbers = [0, 1, 2, -1, 1 << 31, 1 << 32, 3 << 61, -(1 << 63), (1 << 63) - 1]
    return [rng.choices(numbers, k=rng.randrange(4)) for _ in range(n)]


def first_alike(sequences: list[list[int]]) -> list[int]:
    return [sequences.index(sequence) for sequence in sequences]


@pytest.mark.parametrize("seed", range(5))
def test_leaders(seed: int) -> None:
    sequences = random_sequences(Random(seed), 300)
    assert leaders_of(items_of(sequences)).tolist() == first_alike(sequences)


def test_leaders_if_all_hashes_collide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equal_clauses, "_hash_items", lambda items, out: out.fill(7))
    sequences = random_sequences(Random(9), 200)
    assert leaders_of(items_of(sequences)).tolist() == first_alike(sequences)


def test_keys_that_differ_in_one_bit_have_different_hashes() -> None:
    """Labels of cut points leave gaps, so that keys may differ in any bits, and in few."""
    numbers = np.array([0, *(1 << bit for bit in range(63)), -(1 << 63)], np.int64)
    hashes = np.empty(len(numbers), np.int64)
    equal_clauses._hash_items(Items(np.arange(len(numbers) + 1), numbers), hashes)
    assert len(set(hashes.tolist())) == len(numbers)
    assert (hashes >= 0).all()


def content(table: ConjunctionTable, i: int) -> tuple[tuple[int, tuple[tuple[int, int], ...]], ...]:
    out = []
    for p in range(table.clause_offsets[i], table.clause_offsets[i + 1]):
        span = slice(int(table.interval_offsets[p]), int(table.interval_offsets[p + 1]))
        bounds = zip(table.lows[span].tolist(), table.highs[span].tolist(), strict=True)
        out.append((int(table.dimensions[p]), tuple(bounds)))
    return tuple(out)


@pytest.mark.parametrize("seed", range(5))
def test_repeated_clauses_of_several_tables(seed: int) -> None:
    rng = Random(seed)
    pool = random_table(rng, 120, n_dimensions=3, top=9)
    ids = rng.sample(range(1000), 150)
    tables = [
        take_clauses(pool, np.array(rng.choices(range(120), k=50)))._replace(
            clause_ids=np.array(ids[50 * t : 50 * (t + 1)])
        )
        for t in range(3)
    ]
    by_content: dict[object, list[int]] = {}
    for table in tables:
        for i in range(table.n_clauses):
            by_content.setdefault(content(table, i), []).append(int(table.clause_ids[i]))
    expected = {c: same[0] for same in by_content.values() if len(same) > 1 for c in same}
    clause_ids, leaders = repeated_clauses(tables)
    assert dict(zip(clause_ids.tolist(), leaders.tolist(), strict=True)) == expected
    assert len(clause_ids) == len(expected)
    assert 0 < len(expected) < 150


@pytest.mark.parametrize("tables", [[], [empty_table()], [random_table(Random(0), 1)]])
def test_nothing_repeated(tables: list[ConjunctionTable]) -> None:
    assert [a.tolist() for a in repeated_clauses(tables)] == [[], []]
