"""One engine per tenant, made from the store and kept up to date by its change log.

    FOLDER/engines/7/            the engine of tenant 7, as `Engine.open` reads it
    FOLDER/engines/7.position    the store, and the number of a change that the engine holds

Ids in an engine are the numbers of subscriptions, which are never used twice. So changes can be
applied again without harm: the position may be behind what the engine holds, and an engine whose
files are lost, damaged or of another store is built again.

Before a match the engine applies every change that was committed before. The store leaves out what
has expired or ended since.
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
from matchmill.service.database.reads import Reads
from matchmill.service.database.rows import Change
from matchmill.service.database.store import Store
from matchmill.service.settings import ServiceSettings
from matchmill.settings import Settings

__all__ = ["Matched", "TenantEngine", "TenantEngines", "warm_up"]

_CHANGES_AT_ONCE = 10_000


class Matched(NamedTuple):
    """For each event the numbers of subscriptions; or why it cannot be matched."""

    numbers: list[list[int]]
    rejected: dict[int, str]


class TenantEngines:
    """The engines of all tenants, by number."""

    def __init__(self, store: Store, folder: Path, settings: ServiceSettings) -> None:
        self._store = store
        self._folder = folder
        self._settings = settings
        self._slots: dict[int, _Slot] = {}
        self._lock = threading.Lock()
        folder.mkdir(exist_ok=True)

    def of(self, tenant: int) -> TenantEngine:
        """Return the engine of a tenant, up to date."""
        with self._lock:
            slot = self._slots.setdefault(tenant, _Slot())
        with slot.lock:  # building takes a while; other tenants do not wait for it
            if slot.engine is None:
                slot.engine = TenantEngine(self._store, tenant, self._folder, self._settings)
        slot.engine.catch_up()
        return slot.engine

    def _made(self) -> list[TenantEngine]:
        with self._lock:
            slots = list(self._slots.values())
        return [slot.engine for slot in slots if slot.engine is not None]

    def load(self) -> None:
        """Open or build the engines of all tenants."""
        with self._store.reading() as reading:
            tenants = reading.tenants()
        for tenant, _ in tenants:
            self.of(tenant)
        warm_up()

    def save(self, at_least: int) -> None:
        """Save the engines that have had so many changes since they were last saved."""
        for engine in self._made():
            if engine.n_unsaved >= at_least:
                engine.save()

    def close(self) -> None:
        """Save and close all engines."""
        self.save(1)
        for engine in self._made():
            engine.close()

    def n_subscriptions(self) -> int:
        """Return how many subscriptions the engines hold."""
        return sum(len(engine.engine) for engine in self._made())


class _Slot:
    """Holds the engine of a tenant, once there is one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.engine: TenantEngine | None = None


def warm_up() -> None:
    """Load or compile the kernels, before the first event arrives."""
    with Engine(settings=Settings(background=False)) as engine:
        engine.subscribe_many([(1, "x = 1"), (2, "x = 'a'")])
        for _ in range(2):
            engine.match({"x": 1})
            engine.match_many([{"x": 1}, {"x": "b"}])
            engine.unsubscribe_many(list(engine)[:1])


class TenantEngine:
    """The engine of one tenant."""

    def __init__(self, store: Store, tenant: int, folder: Path, settings: ServiceSettings) -> None:
        self._store = store
        self._tenant = tenant
        self._folder = folder / str(tenant)
        self._position_file = folder / f"{tenant}.position"
        self._settings = settings.engine_settings()
        self._threads = settings.threads
        self._lock = threading.Lock()
        self.n_unsaved = 0
        self.n_rejected = 0
        opened = self._opened()
        if opened is None:
            with self._store.reading() as reading:
                opened = self._built(reading)
        self.engine, self._position = opened

    # -- what it holds ----------------------------------------------------------------------------

    def _opened(self) -> tuple[Engine, int] | None:
        """Return the saved engine and its position; None if it cannot be used."""
        try:
            saved = json.loads(self._position_file.read_text(encoding="utf-8"))
            if saved["store"] != self._store.identity:
                return None
            engine = Engine.open(self._folder, settings=self._settings)
            return engine, int(saved["position"])
        except (OSError, ValueError, KeyError, TypeError, MatchmillError):
            return None  # it is built from the store

    def _built(self, reading: Reads) -> tuple[Engine, int]:
        self._position_file.unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)
        position = reading.last_change()  # read first: what is committed meanwhile is applied again
        engine = Engine.open(self._folder, create=True, settings=self._settings)
        report = engine.subscribe_many(reading.expressions(self._tenant))
        self.n_rejected += report.n_rejected
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
        ended = {change.number for change in changes if change.is_end}
        expressions = {
            change.number: change.expression
            for change in changes
            if change.expression is not None
            and change.number not in ended
            and not (change.is_new and change.number in self.engine)  # applied before
        }
        gone = [number for number in ended if number in self.engine]
        if gone:
            self.engine.unsubscribe_many(gone)
        report = self.engine.subscribe_many(expressions, replace=True)
        self.n_rejected += report.n_rejected
        self.n_unsaved += len(changes)

    def save(self) -> None:
        """Write the engine to its folder, then its position."""
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
        """Close the engine."""
        self.engine.close()

    # -- matching ---------------------------------------------------------------------------------

    def match(self, events: Sequence[Mapping[str, Any]]) -> Matched:
        """Return the subscriptions that events satisfy, expired ones included."""
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
