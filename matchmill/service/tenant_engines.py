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

import gc
import json
import logging
import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from matchmill.engine.engine import Engine
from matchmill.engine.warm import warm
from matchmill.errors import EventError, MatchmillError
from matchmill.service.database.reads import Reads
from matchmill.service.database.rows import Change
from matchmill.service.database.store import Store
from matchmill.service.file_limit import file_limit
from matchmill.service.settings import ServiceSettings
from matchmill.settings import Settings

__all__ = ["Matched", "TenantEngine", "TenantEngines", "warm_up"]

_CHANGES_AT_ONCE = 10_000
_FOLLOWED_AT_ONCE = 1_000  # a match waits for no more of them
_FOLLOW_SECONDS = 0.2
_FILES_PER_ENGINE = 8  # its lock, its log, what it has mapped, and some while it is saved
_LEAST_OPEN = 4

logger = logging.getLogger("matchmill.service")


class Matched(NamedTuple):
    """For each event the numbers of subscriptions; or why it cannot be matched."""

    numbers: list[list[int]]
    rejected: dict[int, str]


class TenantEngines:
    """The engines of all tenants, by number.

    An engine has some files open. Where the process may not have many, only those that were used
    last are open; the others are saved, closed, and opened when they are needed again.
    """

    def __init__(self, store: Store, folder: Path, settings: ServiceSettings) -> None:
        self._store = store
        self._folder = folder
        self._settings = settings
        self._engines: OrderedDict[int, TenantEngine] = OrderedDict()  # used last at the end
        self._lock = threading.Lock()
        self._closing = threading.Lock()
        self._most_open = max(_LEAST_OPEN, file_limit() // 2 // _FILES_PER_ENGINE)
        self._are_kernels_ready = False
        self._n_loaded = self._n_to_load = 0
        self._stopping = threading.Event()
        self._follower: threading.Thread | None = None
        folder.mkdir(exist_ok=True)

    def of(self, tenant: int) -> TenantEngine:
        """Return the engine of a tenant, up to date."""
        with self._lock:
            engine = self._engines.get(tenant)
            if engine is None:
                engine = TenantEngine(self._store, tenant, self._folder, self._settings)
                self._engines[tenant] = engine
            self._engines.move_to_end(tenant)
        engine.catch_up()
        self._close_idle()
        return engine

    def _made(self) -> list[TenantEngine]:
        with self._lock:
            return list(self._engines.values())

    def _close_idle(self) -> None:
        """Close the engines that were not used for longest, if too many are open."""
        if len(self._engines) <= self._most_open:
            return
        with self._closing:
            opened = [engine for engine in self._made() if engine.is_open]
            if len(opened) <= self._most_open:
                return
            # A few more than necessary: what a closed engine has mapped stays open until Python
            # collects its garbage, which takes a while.
            for engine in opened[: len(opened) - self._most_open * 7 // 8]:
                engine.close_if_idle()
            gc.collect()

    def load(self) -> None:
        """Load or compile the kernels, and open or build the engines of all tenants."""
        warm_up()
        self._are_kernels_ready = True
        with self._store.reading() as reading:
            tenants = reading.tenants()
        self._n_to_load, self._n_loaded = len(tenants), 0
        for tenant, _ in tenants:
            if self._stopping.is_set():
                return
            self.of(tenant)
            self._n_loaded += 1

    def loading(self) -> dict[str, str | None]:
        """Return why kernels and engines are not ready; None for what is."""
        kernels = None if self._are_kernels_ready else "they are being compiled or loaded"
        if not self._are_kernels_ready:
            engines: str | None = "they wait for the kernels"
        elif self._n_loaded < self._n_to_load:
            engines = f"{self._n_loaded:,} of {self._n_to_load:,} are loaded"
        else:
            engines = None
        return {"kernels": kernels, "engines": engines}

    def follow(self) -> None:
        """Begin to apply changes in the background.

        A match applies what was committed before; with this it finds little to do, also after
        many subscriptions at once.
        """
        self._follower = threading.Thread(target=self._follow, name="matchmill-follow", daemon=True)
        self._follower.start()

    def _follow(self) -> None:
        seen = 0
        while not self._stopping.wait(_FOLLOW_SECONDS):
            try:
                seen = self._followed(seen)
            except Exception:  # a match will have the same error, and the thread goes on
                logger.debug("following the changes failed; it is tried again", exc_info=True)

    def _followed(self, seen: int) -> int:
        with self._store.reading() as reading:
            last = reading.last_change()
            if last == seen:
                return seen
            changed = set(reading.changed_tenants(seen))
        with self._lock:
            engines = [engine for tenant, engine in self._engines.items() if tenant in changed]
        for engine in engines:
            while engine.is_open and not self._stopping.is_set() and engine.apply_some():
                pass
        return last

    def stop(self) -> None:
        """Begin nothing new: loading and following end soon."""
        self._stopping.set()

    def save(self, at_least: int) -> None:
        """Save the engines that have had so many changes since they were last saved."""
        for engine in self._made():
            if engine.n_unsaved >= at_least:
                engine.save()

    def close(self) -> None:
        """Save and close all engines."""
        self.stop()
        if self._follower is not None:
            self._follower.join()
        self.save(1)
        for engine in self._made():
            engine.close()

    def n_subscriptions(self) -> int:
        """Return how many subscriptions the engines hold."""
        return sum(engine.n_subscriptions for engine in self._made())


_warming = threading.Lock()
_is_warm = False


def warm_up() -> None:
    """Load or compile all kernels, before the first event arrives; once in a process."""
    global _is_warm  # noqa: PLW0603
    with _warming:
        if not _is_warm:
            warm(progress=False)
            _match_something()
            _is_warm = True


def _match_something() -> None:
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
        self._types = settings.attribute_types()
        self._threads = settings.threads
        self._lock = threading.Lock()  # of who changes, opens or closes the engine
        self._counting = threading.Lock()
        self._n_uses = 0
        self._engine: Engine | None = None
        self._position = 0
        self._n_subscriptions = 0  # while it is closed
        self.n_unsaved = 0
        self.n_rejected = 0

    @property
    def is_open(self) -> bool:
        """Return whether its files are open."""
        return self._engine is not None

    @property
    def n_subscriptions(self) -> int:
        """Return how many subscriptions it holds."""
        engine = self._engine
        return self._n_subscriptions if engine is None else len(engine)

    @property
    def engine(self) -> Engine:
        """Return the engine, opened if it is not; `using` keeps it open."""
        with self.using() as engine:
            return engine

    @contextmanager
    def using(self) -> Iterator[Engine]:
        """Give the engine, which stays open meanwhile."""
        with self._counting:
            self._n_uses += 1
        try:
            engine = self._engine
            if engine is None:
                with self._lock:
                    engine = self._opened_engine()
            yield engine
        finally:
            with self._counting:
                self._n_uses -= 1

    def _opened_engine(self) -> Engine:
        """Return the engine, opened or built if it is not there; the lock is held."""
        if self._engine is None:
            opened = self._opened()
            if opened is None:
                with self._store.reading() as reading:
                    opened = self._built(reading)
            self._engine, self._position = opened
        return self._engine

    def close_if_idle(self) -> None:
        """Save and close the engine, unless somebody uses it."""
        with self._lock:
            with self._counting:
                if self._n_uses or self._engine is None:
                    return
                engine, self._engine = self._engine, None
            self._n_subscriptions = len(engine)
            try:
                if self.n_unsaved:
                    engine.save()
                    self._note_position(self._position)
                    self.n_unsaved = 0
            finally:
                engine.close()

    # -- what it holds ----------------------------------------------------------------------------

    def _opened(self) -> tuple[Engine, int] | None:
        """Return the saved engine and its position; None if it cannot be used."""
        try:
            saved = json.loads(self._position_file.read_text(encoding="utf-8"))
            if saved["store"] != self._store.identity:
                return None
            engine = Engine.open(self._folder, types=self._types, settings=self._settings)
            return engine, int(saved["position"])
        except (OSError, ValueError, KeyError, TypeError, MatchmillError):
            return None  # it is built from the store

    def _built(self, reading: Reads) -> tuple[Engine, int]:
        self._position_file.unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)
        position = reading.last_change()  # read first: what is committed meanwhile is applied again
        engine = Engine.open(self._folder, create=True, types=self._types, settings=self._settings)
        try:
            report = engine.subscribe_many(reading.expressions(self._tenant))
        except BaseException:  # the store is away: the folder must be free for the next attempt
            engine.close()
            raise
        self.n_rejected += report.n_rejected
        self.n_unsaved += report.n_accepted
        return engine, position

    def catch_up(self) -> None:
        """Apply all changes that are committed."""
        with self._lock:
            while self._apply_next(_CHANGES_AT_ONCE):
                pass

    def apply_some(self) -> bool:
        """Apply some of the changes that are committed; return whether there may be more."""
        with self._lock:
            return self._apply_next(_FOLLOWED_AT_ONCE)

    def _apply_next(self, limit: int) -> bool:
        engine = self._opened_engine()
        with self._store.reading() as reading:
            changes = reading.changes(self._tenant, self._position, limit)
            if changes is None:  # too far behind
                self._engine = None
                engine.close()
                self._engine, self._position = self._built(reading)
                return True
        if changes:
            self._apply(engine, changes)
            self._position = changes[-1].seq
        return len(changes) == limit

    def _apply(self, engine: Engine, changes: Sequence[Change]) -> None:
        ended = {change.number for change in changes if change.is_end}
        expressions = {
            change.number: change.expression
            for change in changes
            if change.expression is not None
            and change.number not in ended
            and not (change.is_new and change.number in engine)  # applied before
        }
        gone = [number for number in ended if number in engine]
        if gone:
            engine.unsubscribe_many(gone)
        report = engine.subscribe_many(expressions, replace=True)
        self.n_rejected += report.n_rejected
        self.n_unsaved += len(changes)

    def save(self) -> None:
        """Write the engine to its folder, then its position."""
        with self.using() as engine:
            with self._lock:
                position, n_changes = self._position, self.n_unsaved
            engine.save()
            self._note_position(position)
        with self._lock:
            self.n_unsaved -= n_changes

    def _note_position(self, position: int) -> None:
        text = json.dumps({"store": self._store.identity, "position": position})
        new = self._position_file.with_suffix(".new")
        with new.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._position_file)

    def close(self) -> None:
        """Close the engine."""
        with self._lock:
            if self._engine is not None:
                self._engine.close()

    # -- matching ---------------------------------------------------------------------------------

    def match(self, events: Sequence[Mapping[str, Any]]) -> Matched:
        """Return the subscriptions that events satisfy, expired ones included."""
        with self.using() as engine:
            return self._matched(engine, events)

    def _matched(self, engine: Engine, events: Sequence[Mapping[str, Any]]) -> Matched:
        if len(events) == 1:
            try:
                return Matched([[int(n) for n in engine.match(events[0])]], {})
            except EventError as error:
                return Matched([[]], {0: str(error)})
        matches = engine.match_many(list(events), threads=self._threads)
        numbers = matches.to_arrow()["subscription_id"].to_numpy().astype(np.int64).tolist()
        ends = matches.offsets.tolist()
        return Matched(
            [numbers[start:end] for start, end in pairwise(ends)],
            {one.row: one.reason for one in matches.rejected},
        )
