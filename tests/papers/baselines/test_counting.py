"""What the conformance kit does not reach in `counting`: its parts, wide counters, wide ranges."""

from __future__ import annotations

from random import Random
from threading import Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchmill.encoding.conjunction_table import (
    ConjunctionTable,
    concatenate,
    empty_table,
    take_clauses,
)
from matchmill.encoding.event_batch import EventBatch
from matchmill.errors import InputError
from matchmill.index.scan import Scan
from matchmill.papers.baselines.counting import Counting
from matchmill.papers.baselines.counting_part import CountingPart
from matchmill.papers.common.clause_intervals import MAX_KEY
from tests.support.conformance_kit import brute_force, matched, random_batch, random_table

pytestmark = pytest.mark.kernels

Pairs = list[tuple[int, int]]


def table_of(clauses: list[dict[int, Pairs]]) -> ConjunctionTable:
    """Clauses given as dimension → intervals, numbered from 0."""
    predicates = [item for clause in clauses for item in clause.items()]
    intervals = [pair for _, pairs in predicates for pair in pairs]
    flat = np.array(intervals, np.int64).reshape(-1, 2)
    return ConjunctionTable(
        np.arange(len(clauses)),
        np.cumsum([0, *(len(clause) for clause in clauses)]),
        np.array([dimension for dimension, _ in predicates], np.int32),
        np.cumsum([0, *(len(pairs) for _, pairs in predicates)]),
        flat[:, 0].copy(),
        flat[:, 1].copy(),
    )


def batch_of(events: list[dict[int, int]]) -> EventBatch:
    return EventBatch(
        np.cumsum([0, *map(len, events)]),
        np.array([dimension for event in events for dimension in event], np.int32),
        np.array([key for event in events for key in event.values()], np.int64),
    )


# -- counting -------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [126, 127, 128, 255, 256, 300, 33_000])
def test_long_clauses(length: int) -> None:
    """Counters of one, two and four bytes, to their limits, also for predicates that fail."""
    present = {d: [(5, 5)] for d in range(length)}
    absent = {d: [(0, 0), (7, 9)] for d in range(length)}
    table = table_of([present, absent, present | {length // 2: [(0, 0)]}])
    batch = batch_of(
        [
            {},
            dict.fromkeys(range(length), 5),
            dict.fromkeys(range(length - 1), 5),
            dict.fromkeys(range(length), 7),
            dict.fromkeys(range(length), 8) | {3: 6},
            {d: 5 for d in range(length) if d != length // 2},
        ]
    )
    expected = [[1], [0], [], [1], [], [2]]
    index = Counting.build(table)
    assert matched(index.match_batch(batch)) == expected
    index.delete(np.array([0, 1]))
    assert matched(index.match_batch(batch)) == [[2] if 2 in ids else [] for ids in expected]


def test_candidates_are_the_counters_changed() -> None:
    table = table_of(
        [
            {0: [(1, 5)], 1: [(1, 1), (3, 3)]},
            {0: [(1, 5)], 2: [(0, 4)]},
            {2: [(0, 0), (6, MAX_KEY)]},
            {},
        ]
    )
    index = Counting.build(table)
    assert matched(index.match_batch(batch_of([{0: 2, 1: 3}]))) == [[0, 1, 2, 3]]
    assert index.stats().candidates == 3  # two on dimension 0, one on dimension 1
    assert matched(index.match_batch(batch_of([{0: 2, 2: 5}]))) == [[3]]
    assert index.stats().candidates == 3 + 4  # two that hold, two that fail


def test_the_ends_of_the_line() -> None:
    table = table_of(
        [
            {0: [(1, MAX_KEY)]},
            {0: [(MAX_KEY, MAX_KEY)]},
            {0: [(0, MAX_KEY)]},
            {0: [(0, 0), (MAX_KEY, MAX_KEY)]},
            {0: [(0, MAX_KEY - 1)]},
            {0: [(1, 1), (3, MAX_KEY - 1)]},
            {0: [(0, 0)]},
        ]
    )
    batch = batch_of([{}, {0: 1}, {0: 2}, {0: MAX_KEY - 1}, {0: MAX_KEY}, {1: 1}])
    expected = brute_force(table, batch)
    index = Counting.build(table, fresh_clauses=1)
    assert matched(index.match_batch(batch)) == expected
    index.insert(table._replace(clause_ids=table.clause_ids + 7))
    twice = [ids + [i + 7 for i in ids] for ids in expected]
    assert matched(index.match_batch(batch)) == twice


def test_wide_ranges_over_many_cut_points_take_little_memory() -> None:
    """Ranges over thousands of spaces each: a list of clauses a space would be a thousand times
    what is allowed here."""
    rng = np.random.default_rng(1)
    n = 20_000
    bounds = np.sort(rng.integers(1, 1 << 60, (n, 2)), axis=1)
    table = table_of([{0: [(int(low), int(high))]} for low, high in bounds])
    keys = np.concatenate((rng.integers(1, 1 << 60, 4), bounds[:2, 0], bounds[:2, 1] + 1))
    batch = batch_of([{0: int(key)} for key in keys])
    index = Counting.build(table)
    assert matched(index.match_batch(batch)) == matched(Scan.build(table).match_batch(batch))
    assert index.stats().n_bytes < 400 * n


def test_the_same_range_many_times_is_kept_once() -> None:
    wide = [{0: [(1, 1000)], 1: [(i % 7 + 1, i % 7 + 1)]} for i in range(5000)]
    cuts = [{0: [(k, k)]} for k in range(1, 1001)]
    index = Counting.build(table_of(wide + cuts))
    batch = batch_of([{0: 500, 1: 3}, {0: 1000, 1: 8}])
    assert matched(index.match_batch(batch)) == brute_force(table_of(wide + cuts), batch)
    assert index.stats().n_bytes < 5000 * (8 + 1 + 4 + 4) + 1000 * 80


# -- changes --------------------------------------------------------------------------------------


def test_clauses_are_read_back_from_a_part() -> None:
    for seed in range(20):
        rng = Random(seed)
        table = random_table(rng, 60, n_dimensions=1 + seed % 9, top=rng.choice((12, 40, 3000)))
        again = CountingPart.build(table).live_table()
        for name, before, after in zip(table._fields, table, again, strict=True):
            assert np.array_equal(before, after), name


@pytest.mark.parametrize("seed", range(3))
def test_parts_merge_and_wear(seed: int) -> None:
    """Long enough for parts to be built, merged, worn out and emptied, and saved in between."""
    rng = Random(seed)
    everything = random_table(rng, 90)
    batch = random_batch(rng, 8)
    index = Counting.build(take_clauses(everything, np.arange(0, 90, 3)), fresh_clauses=4)
    live = set(range(0, 90, 3))
    for step in range(120):
        dead = sorted(set(range(90)) - live)
        growing = step % 40 < 25
        if dead and (not live or rng.random() < (0.75 if growing else 0.15)):
            chosen = rng.sample(dead, min(len(dead), rng.choice((1, 1, 2, 9))))
            index.insert(take_clauses(everything, np.array(chosen)))
            live |= set(chosen)
        else:
            chosen = rng.sample(sorted(live), min(len(live), rng.choice((1, 1, 5, 15))))
            index.delete(np.array(chosen))
            live -= set(chosen)
        expected = brute_force(take_clauses(everything, np.array(sorted(live), np.int64)), batch)
        assert matched(index.match_batch(batch)) == expected
        assert index.stats().n_clauses == len(live)
        saved = {name: a.copy() for name, a in index.arrays().items()}
        assert matched(Counting.from_arrays(saved).match_batch(batch)) == expected


@given(st.lists(st.integers(-30, 30), max_size=12), st.integers(0, 2**32))
def test_any_order_of_changes(changes: list[int], seed: int) -> None:
    """A positive number inserts so many clauses, a negative one deletes up to so many."""
    rng = Random(seed)
    batch = random_batch(rng, 5)
    index = Counting.build(empty_table(), fresh_clauses=3)
    live = empty_table()
    n_used = 0
    for change in changes:
        if change >= 0:
            more = random_table(rng, change, first_id=n_used)
            n_used += change
            index.insert(more)
            live = concatenate([live, more])
        else:
            gone = rng.sample(range(live.n_clauses), min(-change, live.n_clauses))
            index.delete(live.clause_ids[gone])
            live = take_clauses(live, np.delete(np.arange(live.n_clauses), gone))
    assert matched(index.match_batch(batch)) == brute_force(live, batch)


def test_churn_does_not_pile_up() -> None:
    """Everything replaced many times over: few parts, and no more memory than a new index."""
    rng = Random(5)
    table = random_table(rng, 300)
    index = Counting.build(table, fresh_clauses=8)
    for turn in range(300):
        one = take_clauses(table, np.arange(turn % 30 * 10, turn % 30 * 10 + 10))
        index.delete(one.clause_ids)
        index.insert(one)
    n_parts = sum(name.endswith("_needed") for name in index.arrays())
    assert n_parts <= np.log2(300 / 8) + 1
    assert index.stats().n_bytes < 3 * Counting.build(table).stats().n_bytes
    batch = random_batch(rng, 20)
    assert matched(index.match_batch(batch)) == brute_force(table, batch)


def test_deleting_what_is_not_there_changes_nothing() -> None:
    rng = Random(6)
    table = random_table(rng, 30)
    batch = random_batch(rng, 10)
    index = Counting.build(take_clauses(table, np.arange(20)), fresh_clauses=100)
    index.insert(take_clauses(table, np.arange(20, 30)))
    index.delete(np.array([3, 25]))
    expected = matched(index.match_batch(batch))
    for missing in ([3], [25], [1000], [-1], [4, 3, 26]):
        with pytest.raises(InputError, match=f"1 of these {len(missing)} clauses are not"):
            index.delete(np.array(missing))
    assert matched(index.match_batch(batch)) == expected
    assert index.stats().n_clauses == 28


def test_readers_see_whole_changes() -> None:
    """Each insertion and deletion is of clauses that match everything, a hundred at a time."""
    every = table_of([{}] * 100)
    batch = batch_of([{}] * 50)
    index = Counting.build(table_of([{0: [(1, 1)]}] * 500), fresh_clauses=150)
    wrong: list[list[int]] = []
    done = False

    def read() -> None:
        while not done:
            counts = np.diff(index.match_batch(batch).offsets)
            if len(set(counts.tolist())) > 1 or counts[0] % 100:
                wrong.append(counts.tolist())

    readers = [Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(20):
        for k in range(1, 4):
            index.insert(every._replace(clause_ids=every.clause_ids + 1000 * k))
        for k in range(1, 4):
            index.delete(every.clause_ids + 1000 * k)
    done = True
    for reader in readers:
        reader.join()
    assert wrong == []
