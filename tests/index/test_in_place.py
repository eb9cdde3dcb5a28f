"""An index that changes in place, behind snapshots that do not."""

from __future__ import annotations

import gc
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from matchmill.encoding.conjunction_table import ConjunctionTable, empty_table, take_clauses
from matchmill.encoding.cut_points import Relabelling, region_floor
from matchmill.errors import InputError, LimitError
from matchmill.index.base import ClauseMatches
from matchmill.index.in_place import InPlaceSegments, Structure, View
from matchmill.index.segments import Merge, Segment, Snapshot
from matchmill.language.values import Region
from matchmill.papers.baselines.counting import Counting
from matchmill.papers.be_tree import BeTree
from matchmill.papers.op_index import OpIndex
from tests.support.conformance_kit import (
    batch_of,
    brute_force,
    matched,
    random_batch,
    random_table,
    table_of,
)
from tests.support.in_place_checks import check_structure

BATCH = random_batch(Random(2), 8)
N_CLAUSES = 400
EVERYTHING = random_table(Random(1), N_CLAUSES)
NO_IDS = np.empty(0, np.int64)


def structure_of(snapshot: Snapshot) -> Structure:
    (segment,) = snapshot.segments
    assert isinstance(segment.built, View)
    return segment.built.structure


class Interleaved(RuleBasedStateMachine):
    """Changes, some of them given up, while readers keep snapshots and codes are renewed."""

    @initialize(kind=st.sampled_from([BeTree, Counting, OpIndex]))
    def start(self, kind: Any) -> None:
        self.segments = InPlaceSegments(kind, fresh_clauses=4)
        self.n_used = 0
        self.live: set[int] = set()
        self.kept: list[tuple[Snapshot, list[list[int]]]] = []
        self.merge: Merge | None = None
        self.merged: Segment | None = None

    def _next(self, n: int) -> tuple[ConjunctionTable, set[int]]:
        ids = np.arange(self.n_used, min(self.n_used + n, N_CLAUSES))
        return take_clauses(EVERYTHING, ids), set(ids.tolist())

    def _some(self, seed: int, n: int) -> set[int]:
        return set(Random(seed).sample(sorted(self.live), min(n, len(self.live))))

    def _expected(self) -> list[list[int]]:
        return brute_force(take_clauses(EVERYTHING, np.array(sorted(self.live), np.int64)), BATCH)

    @rule(n=st.sampled_from([1, 1, 1, 3, 30]), seed=st.integers(0, 99), n_gone=st.integers(0, 4))
    def change(self, n: int, seed: int, n_gone: int) -> None:
        table, new = self._next(n)
        gone = self._some(seed, n_gone)
        self.segments.apply(table, np.array(sorted(gone), np.int64))
        self.live = (self.live - gone) | new
        self.n_used += len(new)

    @rule(seed=st.integers(0, 99), n=st.sampled_from([1, 2, 50]))
    def delete(self, seed: int, n: int) -> None:
        gone = self._some(seed, n)
        self.segments.apply(None, np.array(sorted(gone), np.int64))
        self.live -= gone

    @rule(n=st.sampled_from([1, 2, 40]), seed=st.integers(0, 99), relabels=st.booleans())
    def give_up(self, n: int, seed: int, relabels: bool) -> None:
        before = self.segments.snapshot
        if relabels:
            self.relabel()
        gone = self._some(seed, n // 2)
        self.segments.apply(self._next(n)[0], np.array(sorted(gone), np.int64))
        assert matched(before.match_batch(BATCH)) == self._sorted_expected()
        self.segments.restore(before)

    def _sorted_expected(self) -> list[list[int]]:
        return self._expected()

    @rule()
    def relabel(self) -> None:
        nothing_moves = np.arange(1, 50)
        self.segments.relabel({0: [Relabelling(0, nothing_moves, nothing_moves)]})

    @rule()
    def keep_a_snapshot(self) -> None:
        self.kept.append((self.segments.snapshot, self._expected()))

    @precondition(lambda self: self.kept)
    @rule(n=st.integers(0, 99))
    def let_one_go(self, n: int) -> None:
        self.kept.pop(n % len(self.kept))

    @precondition(lambda self: self.merge is None)
    @rule()
    def plan(self) -> None:
        self.merge = self.segments.plan()

    @precondition(lambda self: self.merge is not None)
    @rule()
    def build(self) -> None:
        assert self.merge is not None
        self.merged = self.segments.build(self.merge)

    @precondition(lambda self: self.merged is not None)
    @rule()
    def finish(self) -> None:
        assert self.merge is not None
        assert self.merged is not None
        self.segments.finish(self.merge, self.merged)
        self.merge = self.merged = None

    @invariant()
    def readers_have_what_they_took(self) -> None:
        if hasattr(self, "segments"):
            for snapshot, expected in self.kept:
                assert matched(snapshot.match_batch(BATCH)) == expected

    @invariant()
    def matches_what_is_live(self) -> None:
        if hasattr(self, "segments"):
            snapshot = self.segments.snapshot
            assert matched(snapshot.match_batch(BATCH)) == self._expected()
            assert snapshot.n_clauses == len(self.live)
            if snapshot.segments:
                check_structure(structure_of(snapshot))


TestInterleaved = pytest.mark.slow(Interleaved.TestCase)
TestInterleaved.settings = settings(max_examples=30, stateful_step_count=30)


def points(first: int, n: int) -> ConjunctionTable:
    """n clauses of one predicate, the key of each its number."""
    ids = np.arange(first, first + n)
    offsets = np.arange(n + 1)
    return ConjunctionTable(ids, offsets, np.zeros(n, np.int32), offsets, ids + 1, ids + 1)


def in_place(**sizes: int) -> InPlaceSegments:
    return InPlaceSegments(Counting, **{"fresh_clauses": 1000, **sizes})


def found(segments: InPlaceSegments, *keys: int) -> list[list[int]]:
    return matched(segments.match_batch(batch_of([{0: key} for key in keys])))


def test_deleted_clauses_leave_when_nobody_needs_them() -> None:
    segments = in_place()
    segments.apply(points(0, 50), NO_IDS)
    kept = segments.snapshot
    segments.apply(None, np.array([3]))
    segments.apply(points(50, 1), NO_IDS)
    structure = structure_of(segments.snapshot)
    assert structure.index.stats().n_clauses == 51
    del kept
    gc.collect()
    segments.apply(points(51, 1), NO_IDS)
    assert structure.index.stats().n_clauses == 51
    assert structure.removed.all_ids().tolist() == [3]
    assert found(segments, 4, 5, 52) == [[], [4], [51]]


def test_a_view_that_nobody_has_waits_for_older_ones() -> None:
    """What the second change deleted is still in the first snapshot, which a reader keeps."""
    segments = in_place()
    segments.apply(points(0, 5), NO_IDS)
    oldest = segments.snapshot
    segments.apply(points(5, 1), NO_IDS)
    segments.apply(None, np.array([2]))
    for n in range(6, 9):
        segments.apply(points(n, 1), NO_IDS)
    assert matched(oldest.match_batch(batch_of([{0: 3}]))) == [[2]]
    assert found(segments, 3) == [[]]


def test_a_relabelling_leaves_the_index_as_it_is() -> None:
    segments = in_place()
    floor = region_floor(Region.NUMBER)
    labels = np.arange(2, 100, 2)  # cut points have at least one key between them
    segments.apply(table_of([{0: [(floor + int(x), floor + int(x))]} for x in labels[:40]]), NO_IDS)
    built = structure_of(segments.snapshot).index
    before = segments.snapshot
    change = Relabelling(Region.NUMBER, floor + labels, floor + 3 * labels)
    segments.relabel({0: [change]})
    assert structure_of(segments.snapshot).index is built
    assert found(segments, floor + 29, floor + 30, floor + 31) == [[], [4], []]
    assert matched(before.match_batch(batch_of([{0: floor + 30}]))) == [[14]]
    segments.apply(table_of([{0: [(floor + 31, floor + 35)]}], first_id=40), NO_IDS)
    keys = (floor + key for key in (30, 31, 35, 36))
    assert found(segments, *keys) == [[4], [40], [40], [5]]


def test_what_fails_half_way_is_built_again(monkeypatch: pytest.MonkeyPatch) -> None:
    segments = in_place()
    segments.apply(points(0, 40), NO_IDS)
    before = segments.snapshot
    index = structure_of(before).index
    insert = index.insert

    def half(table: ConjunctionTable) -> None:
        insert(take_clauses(table, np.arange(2)))
        raise MemoryError

    monkeypatch.setattr(index, "insert", half)
    with pytest.raises(MemoryError):
        segments.apply(points(40, 4), np.array([7]))
    assert segments.snapshot is before
    assert found(segments, 8, 41) == [[7], []]
    assert structure_of(before).index is not index
    segments.apply(points(40, 4), np.array([7]))
    assert found(segments, 8, 41) == [[], [40]]
    check_structure(structure_of(segments.snapshot))


@pytest.mark.parametrize(("error", "is_same"), [(InputError("x"), True), (LimitError("x"), False)])
def test_only_an_input_error_says_that_nothing_has_changed(
    monkeypatch: pytest.MonkeyPatch, error: Exception, is_same: bool
) -> None:
    segments = in_place()
    segments.apply(points(0, 40), NO_IDS)
    index = structure_of(segments.snapshot).index

    def reject(_: ConjunctionTable) -> None:
        raise error

    monkeypatch.setattr(index, "insert", reject)
    with pytest.raises(InputError):
        segments.apply(points(40, 4), NO_IDS)
    assert found(segments, 8, 41) == [[7], []]
    assert (structure_of(segments.snapshot).index is index) == is_same


def test_an_undoing_that_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    segments = in_place()
    segments.apply(points(0, 40), NO_IDS)
    before = segments.snapshot
    segments.apply(points(40, 4), np.array([7]))

    def fail(_: np.ndarray) -> None:
        raise MemoryError

    monkeypatch.setattr(structure_of(before).index, "delete", fail)
    segments.restore(before)
    assert "could not be undone" in caplog.text
    assert found(segments, 8, 41) == [[7], []]
    segments.apply(points(40, 1), np.array([7]))
    assert found(segments, 8, 41, 42) == [[], [40], []]


def test_what_is_not_there_cannot_be_deleted() -> None:
    segments = in_place()
    segments.apply(points(0, 5), NO_IDS)
    before = segments.snapshot
    with pytest.raises(InputError, match="2 of these clauses are not in the index"):
        segments.apply(points(5, 1), np.array([3, 77, 78]))
    assert segments.snapshot is before
    segments.apply(empty_table(), NO_IDS)
    assert segments.snapshot.n_clauses == 5


def test_constants_in_between_are_doubtful_until_codes_are_new() -> None:
    segments = in_place(fresh_clauses=1)
    segments.apply(table_of([{0: [(10, 20)]}, {0: [(30, 40)]}]), NO_IDS)
    wide = [(12, 14), (13, 13), (35, 50)]
    for n, interval in enumerate(wide, 2):
        segments.apply(table_of([{0: [interval]}], first_id=n), NO_IDS)
    structure = structure_of(segments.snapshot)
    assert structure.contents.n_doubtful == 3
    keys = [11, 12, 13, 15, 20, 21, 35, 41, 50, 51]
    expected = [[0], [0, 2], [0, 2, 3], [0], [0], [], [1, 4], [4], [4], []]
    assert found(segments, *keys) == expected
    assert segments.is_merge_due
    segments.settle()
    assert structure_of(segments.snapshot).contents.n_doubtful == 0
    assert found(segments, *keys) == expected


class Adjusting(Counting):
    """Adjusts itself, as it says, and counts how often."""

    n_adjusted = 0
    adjusts = True

    def adjust(self) -> int:
        self.n_adjusted += 1
        return 0


def test_an_index_adjusts_itself_to_what_it_matches() -> None:
    segments = InPlaceSegments(Adjusting)
    segments.apply(points(0, 5), NO_IDS)
    events = batch_of([{0: 1}] * 1000)
    for _ in range(35):
        segments.match_batch(events)
    index: Any = structure_of(segments.snapshot).index
    assert index.n_adjusted == 2
    Adjusting.adjusts = False
    for _ in range(35):
        segments.match_batch(events)
    assert index.n_adjusted == 2


def test_no_matches_no_work() -> None:
    segments = in_place()
    nothing: ClauseMatches = segments.match_batch(batch_of([{}, {0: 1}]))
    assert matched(nothing) == [[], []]
    segments.apply(points(0, 3), NO_IDS)
    segments.apply(None, np.arange(3))
    assert segments.snapshot.segments == ()
