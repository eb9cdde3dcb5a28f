"""BE-Tree with keys of all sizes: any sequence of changes, matches and adjustments, step by step.

The record of a clause has one form for keys below 2**15, one for keys that lie near together
below 2**31, and one for all others. The tree must be the same whatever form its clauses have.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from matchmill.encoding.conjunction_table import ConjunctionTable, take_clauses
from matchmill.encoding.event_batch import EventBatch
from matchmill.papers.be_tree import BeTree
from tests.support.be_tree_checks import check_tree, clauses_of
from tests.support.conformance_kit import (
    batch_of,
    brute_force,
    matched,
    random_batch,
    random_table,
    table_of,
)
from tests.support.tiers import first_cases

pytestmark = pytest.mark.kernels

BASES = [1, 64, 2**15 - 64, 2**15, 40_000, 2**16, 2**31 - 128, 2**31 - 64, 2**31, 2**33, 2**62]


@pytest.mark.parametrize("base", BASES)
def test_subsumed_predicates_at_all_sizes(base: int) -> None:
    """A predicate that asks for exactly the bucket above it is not tested again: points, dyadic
    ranges, the widest mask; a mask with a hole is."""
    start = -(-base // 64) * 64
    ranges = [[(key, key)] for key in range(base, base + 8)]
    ranges += [
        [(start, start + 7)],
        [(start, start + 63)],
        [(start, start + 2), (start + 4, start + 7)],
    ]
    clauses = [{0: pairs, 1: [(k % 5 + 1, k % 5 + 1)]} for k in range(6) for pairs in ranges]
    table = table_of(clauses)
    for build in ("batch", "single"):
        index = BeTree.build(table, build=build, max_capacity=2)
        check_tree(index, clauses_of(table))
        batch = batch_of([{0: key, 1: 3} for key in (base, base + 3, start + 3, start + 63)])
        assert matched(index.match_batch(batch)) == brute_force(table, batch)


def places(rng: Random, n: int) -> np.ndarray:
    """0 and n keys in order: runs of neighbours at sizes of all kinds."""
    keys: set[int] = set()
    while len(keys) < n:
        start = rng.choice(BASES) + rng.choice((0, 0, rng.randrange(200), rng.randrange(2**20)))
        keys |= set(range(start, start + rng.choice((1, 4, 70))))
    return np.array([0, *sorted(rng.sample(sorted(keys), n))])


def random_sequence(rng: Random, n_steps: int, **options: object) -> None:
    """Insert, delete, match, adjust, save and open, with the tree checked after each step."""
    top = rng.choice((9, 30, 120))
    at = places(rng, top + 9)
    everything = random_table(rng, 50, rng.choice((2, 8)), top=top)
    everything = everything._replace(lows=at[everything.lows], highs=at[everything.highs])
    drawn = random_batch(rng, 6, top=top + 9)
    batch = EventBatch(drawn.offsets, drawn.dimensions, at[drawn.keys])
    clauses = clauses_of(everything)

    def chosen(ids: list[int]) -> ConjunctionTable:
        return take_clauses(everything, np.array(sorted(ids), np.int64))

    live = set(rng.sample(range(50), rng.choice((0, 25))))
    index = BeTree.build(chosen(list(live)), **options)  # type: ignore[arg-type]
    check_tree(index, {i: clauses[i] for i in live})
    for _ in range(n_steps):
        dead, step = sorted(set(clauses) - live), rng.random()
        if step < 0.3 and dead:
            ids = rng.sample(dead, min(len(dead), rng.choice((1, 1, 10))))
            index.insert(chosen(ids))
            live |= set(ids)
        elif step < 0.55 and live:
            ids = rng.sample(sorted(live), min(len(live), rng.choice((1, 1, 10))))
            index.delete(np.array(ids))
            live -= set(ids)
        elif step < 0.8:
            expected = brute_force(chosen(list(live)), batch)
            for _ in range(rng.choice((1, 1, 8))):  # windows are 16 operations at least
                assert matched(index.match_batch(batch)) == expected
        elif step < 0.9:
            index.adjust()
        elif step < 0.95:
            index.set_capacity(rng.randint(1, 8))
        else:
            index = BeTree.from_arrays({name: a.copy() for name, a in index.arrays().items()})
        check_tree(index, {i: clauses[i] for i in live})
    assert matched(index.match_batch(batch)) == brute_force(chosen(list(live)), batch)


@pytest.mark.parametrize("seed", first_cases(6, range(400)))
def test_any_sequence_at_all_sizes(seed: int) -> None:
    rng = Random(seed)
    random_sequence(
        rng,
        25,
        max_capacity=rng.choice((1, 2, 5, 20)),
        min_size=rng.choice((1, 2, 3)),
        self_adjust=rng.random() < 0.7,
        build=rng.choice(("batch", "single")),
        first=rng.choice(("popular", "rare")),
    )


@pytest.mark.parametrize("seed", first_cases(6, range(600)))
def test_any_sequence_with_any_options(seed: int) -> None:
    rng = Random(seed)
    first = rng.choice(("popular", "popular", "rare"))
    random_sequence(
        rng,
        25,
        max_capacity=rng.choice((1, 2, 5)),
        min_size=rng.choice((1, 2, 3)),
        build=rng.choice(("batch", "single")),
        first=first,
        windows=rng.choice(("changes", "operations")),
        threshold=rng.choice((None, 0.0, 5.0, 1000.0)),
        alpha_subsumed=rng.random(),
        alpha_covered=rng.random(),
        beta=rng.random(),
        gamma=rng.random(),
        histogram_buckets=rng.choice((0, 1, 16)) if first == "popular" else 0,
        exploration=rng.choice((0.0, 0.3, 1.0)),
        reinsert=rng.random() < 0.7,
        adjust_capacity=rng.random() < 0.3,
    )
