"""Segments: how many there are, what a merge does while others write, what is dropped."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from matchmill.encoding.conjunction_table import ConjunctionTable, empty_table, take_clauses
from matchmill.encoding.cut_points import Relabelling
from matchmill.errors import InputError
from matchmill.index.base import Statistics
from matchmill.index.scan import Scan
from matchmill.index.segments import Merge, Segment, Segmented
from tests.support.conformance_kit import brute_force, matched, random_batch, random_table

N_CLAUSES = 60
EVERYTHING = random_table(Random(1), N_CLAUSES)
BATCH = random_batch(Random(2), 6)
some_ids = st.sets(st.integers(0, N_CLAUSES - 1), min_size=1, max_size=12)


def some(ids: set[int]) -> ConjunctionTable:
    return take_clauses(EVERYTHING, np.array(sorted(ids), np.int64))


class Interleaved(RuleBasedStateMachine):
    """Insertions and deletions while a merge is planned, built and finished, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.segmented = Segmented(Scan, fresh_clauses=3, merge_factor=2)
        self.live: set[int] = set()
        self.merge: Merge | None = None
        self.merged: Segment | None = None

    @rule(ids=some_ids)
    def insert(self, ids: set[int]) -> None:
        new = ids - self.live
        self.segmented.apply(some(new), np.empty(0, np.int64))
        self.live |= new

    @rule(ids=some_ids)
    def delete(self, ids: set[int]) -> None:
        gone = ids & self.live
        self.segmented.apply(None, np.array(sorted(gone), np.int64))
        self.live -= gone

    @rule(inserted=some_ids, deleted=some_ids)
    def replace(self, inserted: set[int], deleted: set[int]) -> None:
        gone = deleted & self.live
        new = inserted - self.live
        self.segmented.apply(some(new), np.array(sorted(gone), np.int64))
        self.live = (self.live - gone) | new

    @rule()
    def relabel(self) -> None:
        nothing_moves = np.arange(1, 50)
        self.segmented.relabel({0: [Relabelling(0, nothing_moves, nothing_moves)]})

    @precondition(lambda self: self.merge is None)
    @rule()
    def plan(self) -> None:
        self.merge = self.segmented.plan()

    @precondition(lambda self: self.merge is not None)
    @rule()
    def build(self) -> None:
        assert self.merge is not None
        self.merged = self.segmented.build(self.merge)

    @precondition(lambda self: self.merged is not None)
    @rule()
    def finish(self) -> None:
        assert self.merge is not None
        assert self.merged is not None
        self.segmented.finish(self.merge, self.merged)
        self.merge = self.merged = None

    @precondition(lambda self: self.merge is not None)
    @rule()
    def abandon(self) -> None:
        assert self.merge is not None
        self.segmented.abandon(self.merge)
        self.merge = self.merged = None

    @invariant()
    def matches_what_is_live(self) -> None:
        expected = brute_force(some(self.live), BATCH) if self.live else [[]] * 6
        assert matched(self.segmented.match_batch(BATCH)) == expected
        assert self.segmented.snapshot.n_clauses == len(self.live)


TestInterleaved = pytest.mark.kernels(Interleaved.TestCase)
TestInterleaved.settings = settings(max_examples=40, stateful_step_count=40)


def points(first: int, n: int) -> ConjunctionTable:
    """n clauses of one predicate, the key of each its number."""
    ids = np.arange(first, first + n)
    offsets = np.arange(n + 1)
    return ConjunctionTable(ids, offsets, np.zeros(n, np.int32), offsets, ids + 1, ids + 1)


def sizes(segmented: Segmented) -> list[int]:
    return [segment.n_live for segment in segmented.snapshot.segments]


def test_segments_stay_few_and_builds_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    n_built = 0
    build = Scan.build

    def counted(table: ConjunctionTable, *rest: Any) -> Scan:
        nonlocal n_built
        n_built += table.n_clauses
        return build(table, *rest)

    monkeypatch.setattr(Scan, "build", counted)
    segmented = Segmented(Scan, fresh_clauses=4, merge_factor=4)
    segmented.insert(points(0, 20_000))
    n_built = 0
    most = 0
    for n in range(4000):
        segmented.insert(points(20_000 + n, 1))
        most = max(most, len(segmented.snapshot.segments))
    assert segmented.snapshot.n_clauses == 24_000
    assert most <= 6
    # A clause is built again some merge_factor times in each of few tiers.
    assert n_built < 4000 * 4 * 10


def test_few_clauses_are_scanned_and_more_are_built() -> None:
    segmented = Segmented(Scan, fresh_clauses=4, merge_factor=2)
    for n in range(3):
        segmented.insert(points(n, 1))
    assert [s.is_fresh for s in segmented.snapshot.segments] == [True]
    segmented.insert(points(3, 1))
    assert [s.is_fresh for s in segmented.snapshot.segments] == [False]
    segmented.insert(points(4, 1))
    assert [s.is_fresh for s in segmented.snapshot.segments] == [False, True]


def test_dead_clauses_leave_memory() -> None:
    segmented = Segmented(Scan, fresh_clauses=4, merge_factor=2)
    segmented.insert(points(0, 1000))
    for n in range(250):
        segmented.delete(np.array([4 * n]))
    (segment,) = segmented.snapshot.segments
    assert (segment.table.n_clauses, segment.dead.n_dead) == (1000, 250)
    segmented.delete(np.array([1]))
    (segment,) = segmented.snapshot.segments
    assert (segment.table.n_clauses, segment.dead.n_dead) == (749, 0)
    segmented.delete(segment.table.clause_ids)
    assert segmented.snapshot.segments == ()


def test_a_reader_keeps_its_snapshot() -> None:
    segmented = Segmented(Scan, fresh_clauses=4, merge_factor=2)
    segmented.insert(points(0, 50))
    taken = segmented.snapshot
    segmented.delete(np.arange(50))
    segmented.insert(points(50, 10))
    assert taken.n_clauses == 50
    assert segmented.snapshot.n_clauses == 10


def test_insertions_during_a_merge_go_elsewhere() -> None:
    segmented = Segmented(Scan, fresh_clauses=4, merge_factor=2)
    for first in (0, 100, 200):
        segmented.apply(points(first, 40), np.empty(0, np.int64))
    merge = segmented.plan()
    assert merge is not None
    assert segmented.plan() is None  # one at a time
    segmented.apply(points(300, 10), np.array([0, 100]))
    assert segmented.finish(merge, segmented.build(merge))
    assert sizes(segmented) == [118, 10]


def test_a_relabelling_ends_a_merge() -> None:
    segmented = Segmented(Scan, fresh_clauses=4, merge_factor=2)
    segmented.apply(points(0, 40), np.empty(0, np.int64))
    segmented.apply(points(50, 40), np.empty(0, np.int64))
    merge = segmented.plan()
    assert merge is not None
    merged = segmented.build(merge)
    labels = np.arange(1, 200)
    segmented.relabel({0: [Relabelling(0, labels, 2 * labels)]})
    assert not segmented.finish(merge, merged)
    assert sizes(segmented) == [40, 40]
    assert segmented.snapshot.segments[0].table.lows[3] == 8
    assert segmented.plan() is not None


def test_every_build_is_told_the_statistics() -> None:
    told: list[object] = []

    class Told(Scan):
        @classmethod
        def build(cls, table: ConjunctionTable, statistics: Any = None, **options: Any) -> Any:
            told.append(statistics)
            return super().build(table, statistics, **options)

    nothing = np.empty(0, np.int64)
    segmented = Segmented(Told, fresh_clauses=2, merge_factor=2)
    segmented.statistics = known = Statistics(1, nothing, nothing, nothing)
    segmented.insert(points(0, 20))
    segmented.insert(points(30, 60))
    labels = np.arange(1, 100)
    segmented.relabel({0: [Relabelling(0, labels, labels)]})
    assert len(told) >= 3
    assert all(one is known for one in told)


def test_unknown_clauses_are_an_error_and_change_nothing() -> None:
    segmented = Segmented(Scan)
    segmented.insert(points(0, 5))
    before = segmented.snapshot
    with pytest.raises(InputError, match="2 of these clauses are not in the index"):
        segmented.delete(np.array([3, 77, 78]))
    assert segmented.snapshot is before
    segmented.insert(empty_table())
    assert segmented.snapshot.n_clauses == 5
