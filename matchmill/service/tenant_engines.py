"""One engine a tenant, made from the store and kept up with its change log.

    FOLDER/engines/7/            the engine of tenant 7, as `Engine.open` has it
    FOLDER/engines/7.position    a change that it is not behind of: store, number

Ids in an engine are the numbers of subscriptions, which are never used twice. So changes can be
applied again without harm: the position may lag behind what the engine holds, and an engine whose
files are lost, damaged or of another store is simply built anew.

Before a match the engine catches up: it knows every change that was committed before. What has
expired, or is cancelled meanwhile, is left out by the store.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from matchmill.engine.engine import Engine
from matchmill.errors import EventError, MatchmillError
from matchmill.service.database.interface import Change, Reading, Store
from matchmill.settings import Settings

__all__ = ["Engines", "Matched", "TenantEngine", "warm_up"]

_ENGINE_SETTINGS = Settings(sync="never")  # what a crash takes is in the store
_CHANGES_AT_ONCE = 10_000


class Matched(NamedTuple):
    """For each event the numbers of subscriptions; or why it cannot be matched."""

    numbers: list[list[int]]
    rejected: dict[int, str]


class Engines:
    def __init__(self, store: Store, folder: Path, threads: int) -> None:
        self._store = store
        self._folder = folder
        self._threads = threads
        self._places: dict[int, _Place] = {}
        self._lock = threading.Lock()
        folder.mkdir(exist_ok=True)

    def of(self, tenant: int) -> TenantEngine:
        """The engine of a tenant, as of now."""
        with self._lock:
            place = self._places.setdefault(tenant, _Place())
        with place.lock:  # one tenant's engine may take a while; others need not wait for it
            if place.engine is None:
                place.engine = TenantEngine(self._store, tenant, self._folder, self._threads)
        place.engine.catch_up()
        return place.engine

    def _made(self) -> list[TenantEngine]:
        with self._lock:
            places = list(self._places.values())
        return [place.engine for place in places if place.engine is not None]

    def load(self) -> None:
        """Make the engines of all tenants that there are."""
        with self._store.reading() as reading:
            tenants = reading.tenants()
        for tenant, _ in tenants:
            self.of(tenant)
        warm_up()

    def save(self, at_least: int) -> None:
        """Save the engines that have changed so much since they were last saved."""
        for engine in self._made():
            if engine.n_unsaved >= at_least:
                engine.save()

    def close(self) -> None:
        """Save all and let go of their folders."""
        self.save(1)
        for engine in self._made():
            engine.close()

    def n_subscriptions(self) -> int:
        return sum(len(engine.engine) for engine in self._made())


class _Place:
    """Where the engine of a tenant is, or will be."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.engine: TenantEngine | None = None


def warm_up() -> None:
    """Have the kernels loaded before the first event comes, or even compiled."""
    with Engine(settings=Settings(background=False)) as engine:
        engine.subscribe_many([(1, "x = 1"), (2, "x = 'a'")])
        for _ in range(2):
            engine.match({"x": 1})
            engine.match_many([{"x": 1}, {"x": "b"}])
            engine.unsubscribe_many(list(engine)[:1])


class TenantEngine:
    def __init__(self, store: Store, tenant: int, folder: Path, threads: int) -> None:
        self._store = store
        self._tenant = tenant
        self._folder = folder / str(tenant)
        self._position_file = folder / f"{tenant}.position"
        self._threads = threads
        self._lock = threading.Lock()
        self.n_unsaved = 0
        self.n_refused = 0
        opened = self._opened()
        if opened is None:
            with self._store.reading() as reading:
                opened = self._built(reading)
        self.engine, self._position = opened

    # -- what it holds ----------------------------------------------------------------------------

    def _opened(self) -> tuple[Engine, int] | None:
        """The saved engine; None if there is none that can be used."""
        try:
            saved = json.loads(self._position_file.read_text(encoding="utf-8"))
            if saved["store"] != self._store.identity:
                return None
            engine = Engine.open(self._folder, settings=_ENGINE_SETTINGS)
            return engine, int(saved["position"])
        except (OSError, ValueError, KeyError, TypeError, MatchmillError):
            return None  # the store has it all

    def _built(self, reading: Reading) -> tuple[Engine, int]:
        self._position_file.unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)
        position = reading.last_change()  # asked first: what comes meanwhile is applied again
        engine = Engine.open(self._folder, create=True, settings=_ENGINE_SETTINGS)
        report = engine.subscribe_many(reading.expressions(self._tenant))
        self.n_refused += report.n_rejected
        self.n_unsaved += report.n_accepted
        return engine, position

    def catch_up(self) -> None:
        """Apply all changes that are committed."""
        with self._lock, self._store.reading() as reading:
            while True:
                changes = reading.changes(self._tenant, self._position, _CHANGES_AT_ONCE)
                if changes is None:  # too far behind
                    self.engine.close()
                    self.engine, self._position = self._built(reading)
                    continue
                if not changes:
                    return
                self._apply(changes)
                self._position = changes[-1].seq

    def _apply(self, changes: Sequence[Change]) -> None:
        ended = {change.number for change in changes if not change.is_new}
        new = [
            (change.number, change.expression)
            for change in changes
            if change.is_new and change.expression is not None and change.number not in ended
        ]
        gone = [number for number in ended if number in self.engine]
        if gone:
            self.engine.unsubscribe_many(gone)
        report = self.engine.subscribe_many(row for row in new if row[0] not in self.engine)
        self.n_refused += report.n_rejected
        self.n_unsaved += len(changes)

    def save(self) -> None:
        """Write the engine to its folder, then how far it has come."""
        with self._lock:
            position, n_changes = self._position, self.n_unsaved
        self.engine.save()
        text = json.dumps({"store": self._store.identity, "position": position})
        new = self._position_file.with_suffix(".new")
        with new.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._position_file)
        with self._lock:
            self.n_unsaved -= n_changes

    def close(self) -> None:
        self.engine.close()

    # -- matching ---------------------------------------------------------------------------------

    def match(self, events: Sequence[Mapping[str, Any]]) -> Matched:
        """The subscriptions that events satisfy, whether they have expired or not."""
        if len(events) == 1:
            try:
                return Matched([[int(n) for n in self.engine.match(events[0])]], {})
            except EventError as error:
                return Matched([[]], {0: str(error)})
        matches = self.engine.match_many(list(events), threads=self._threads)
        numbers = matches.to_arrow()["subscription_id"].to_numpy().astype(np.int64).tolist()
        ends = matches.offsets.tolist()
        return Matched(
            [numbers[start:end] for start, end in pairwise(ends)],
            {one.row: one.reason for one in matches.rejected},
        )
