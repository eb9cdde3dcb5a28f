"""A generator and indexes to try the bench on: right, wrong, failing, slow and hungry ones."""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from typing import Any, ClassVar

import numpy as np
import pytest

from matchmill.encoding.conjunction_table import ConjunctionTable
from matchmill.encoding.event_batch import EventBatch
from matchmill.errors import InputError
from matchmill.index.base import ClauseMatches, IndexStats, Statistics
from matchmill.index.registry import INDEXES
from matchmill.index.scan import Scan
from matchmill.lab.workloads.flat import FlatEvents, FlatSubscriptions, IntegerDomain, Workload
from matchmill.lab.workloads.registry import GENERATORS
from matchmill.lab.workloads.spec import WorkloadSpec

HUNGER = 8 << 30
SLOWNESS = 30.0


def toy(spec: WorkloadSpec) -> Workload:
    """One predicate a clause, on one of 4 attributes; two clauses per subscription if `pairs`."""
    unknown = set(spec.parameters) - {"cardinality", "width", "pairs"}
    if unknown:
        raise InputError(f"toy has no parameter {sorted(unknown)[0]!r}")
    cardinality = int(spec.parameters.get("cardinality", 20))
    width = int(spec.parameters.get("width", 1))
    clauses_each = 2 if spec.parameters.get("pairs") else 1
    n = spec.n_subscriptions * clauses_each
    random = spec.random("subscriptions")
    lows = random.integers(1, max(2, cardinality - width + 2), n)
    subscriptions = FlatSubscriptions(
        np.repeat(np.arange(spec.n_subscriptions), clauses_each),
        np.arange(n + 1),
        random.integers(0, 4, n).astype(np.int32),
        np.arange(n + 1),
        lows,
        lows + width - 1,
    )
    return Workload(
        spec,
        IntegerDomain(4, cardinality),
        subscriptions,
        _events(spec, "events", spec.n_events, cardinality),
        _events(spec, "training", spec.n_training_events, cardinality),
    )


def _events(spec: WorkloadSpec, stream: str, n: int, cardinality: int) -> FlatEvents:
    codes = spec.random(stream).integers(1, cardinality + 1, 4 * n)
    return FlatEvents(np.arange(n + 1) * 4, np.tile(np.arange(4, dtype=np.int32), n), codes)


class Wrapped:
    """A scan under another name."""

    name: ClassVar[str] = "wrapped"

    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self.n_calls = 0

    @classmethod
    def build(
        cls, table: ConjunctionTable, statistics: Statistics | None = None, **options: Any
    ) -> Any:
        return cls(Scan.build(table))

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        self.n_calls += 1
        return self.scan.match_batch(events)

    def arrays(self) -> dict[str, np.ndarray]:
        return self.scan.arrays()

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Any:
        return cls(Scan.from_arrays(arrays))

    def stats(self) -> IndexStats:
        return self.scan.stats()


class DropsOne(Wrapped):
    """Leaves out the last match of the last event that has any."""

    name = "drops_one"

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        offsets, ids = super().match_batch(events)
        if not len(ids):
            return ClauseMatches(offsets, ids)
        offsets = np.minimum(offsets, len(ids) - 1)
        return ClauseMatches(offsets, ids[:-1])


class SwapsOne(Wrapped):
    """As many matches as there should be, one of them of another subscription."""

    name = "swaps_one"

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        offsets, ids = super().match_batch(events)
        ids = ids.copy()
        if events.n_events > 4:
            start, stop = offsets[4], offsets[5]
            ids[start] = np.setdiff1d(np.arange(self.scan.stats().n_clauses), ids[start:stop])[0]
        return ClauseMatches(offsets, ids)


class GivesTwice(Wrapped):
    name = "gives_twice"

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        offsets, ids = super().match_batch(events)
        last = np.concatenate((offsets[:-1], [offsets[-1] + 1]))
        return ClauseMatches(last, np.concatenate((ids, ids[-1:])))


class Reversed(Wrapped):
    """Right, in another order."""

    name = "reversed"

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        offsets, ids = super().match_batch(events)
        order = np.lexsort((-ids, np.repeat(np.arange(events.n_events), np.diff(offsets))))
        return ClauseMatches(offsets, ids[order])


class Moody(Wrapped):
    """Right at first, wrong in a later round."""

    name = "moody"

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        matches = super().match_batch(events)
        if self.n_calls > 8:
            return ClauseMatches(np.minimum(matches.offsets, 1), matches.clause_ids[:1])
        return matches


class Fails(Wrapped):
    name = "fails"

    @classmethod
    def build(cls, table: ConjunctionTable, *_: Any, **options: Any) -> Any:
        if table.n_clauses > 64:
            raise ValueError("no more than 64 clauses, please")
        return super().build(table)


class FailsLate(Wrapped):
    """Stands its trial, and fails in the race: there the whole batch is asked more than once."""

    name = "fails_late"

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        matches = super().match_batch(events)
        if events.n_events >= 32:
            self.n_whole = getattr(self, "n_whole", 0) + 1
            if self.n_whole > 2:
                raise ZeroDivisionError("in a later round")
        return matches


class Dies(Wrapped):
    """Takes its process with it."""

    name = "dies"

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        faulthandler.disable()  # pytest's would print a traceback
        os.kill(os.getpid(), signal.SIGSEGV)
        return super().match_batch(events)


class SlowToBuild(Wrapped):
    name = "slow_to_build"

    @classmethod
    def build(cls, table: ConjunctionTable, *_: Any, **options: Any) -> Any:
        if table.n_clauses > 64:
            time.sleep(SLOWNESS)
        return super().build(table)


class SlowToMatch(Wrapped):
    """So slow an event that only some of them fit the budget."""

    name = "slow_to_match"

    def match_batch(self, events: EventBatch) -> ClauseMatches:
        time.sleep(0.04 * events.n_events)
        return super().match_batch(events)


class NeedsStatistics(Wrapped):
    name = "needs_statistics"

    @classmethod
    def build(
        cls, table: ConjunctionTable, statistics: Statistics | None = None, **options: Any
    ) -> Any:
        if statistics is None:
            raise ValueError("there are no statistics")
        return super().build(table)


class Hungry(Wrapped):
    name = "hungry"

    @classmethod
    def build(cls, table: ConjunctionTable, *_: Any, **options: Any) -> Any:
        index = super().build(table)
        if table.n_clauses > 64:
            index.more = np.ones(HUNGER, np.uint8)
        return index


TOYS: tuple[type[Wrapped], ...] = (
    Wrapped, DropsOne, SwapsOne, GivesTwice, Reversed, Moody, Fails, FailsLate, Dies, SlowToBuild,
    SlowToMatch, NeedsStatistics, Hungry,
)  # fmt: skip


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator `toy` and all toy indexes are there."""
    monkeypatch.setitem(GENERATORS, "toy", toy)
    for index in TOYS:
        monkeypatch.setitem(INDEXES, index.name, index)
