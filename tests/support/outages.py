"""A real service under load while its database, its disk or its clock fails; and what must hold.

    before ─► outage, so many seconds ─► after: asked again and again until it works

Subscribers and publishers go on all the time. Whoever gets no response of success sends the same
request again, as a client does. At the end:

- every acknowledged subscription is there, with every event once that was acknowledged after it;
- the same process serves, without a restart, and `/readyz` says so;
- each part of it worked again at most so many seconds after the end of the outage.

The clock of the server is moved by the program that starts it: it shows what a shared file says.
"""

from __future__ import annotations

import http.client
import json
import mmap
import os
import resource
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from matchmill.service.database.open import DATABASE_NAME
from tests.support.postgres import Server
from tests.support.running_service import ServerProcess, new_key, wait_until

__all__ = ["OUTAGES", "Outcome", "outage_round"]

_PUBLISHERS = 3
_VALUES = 5
_DAY = 24 * 60 * 60
_BETWEEN = 0.5  # seconds of load before and after

_PROGRAM = """
import mmap, os, struct, sys, time

file = os.open(sys.argv[1], os.O_RDONLY)
moved = mmap.mmap(file, 8, prot=mmap.PROT_READ)
real_time, real_time_ns = time.time, time.time_ns
time.time = lambda: real_time() + struct.unpack("q", moved)[0]
time.time_ns = lambda: real_time_ns() + struct.unpack("q", moved)[0] * 10**9

from matchmill.cli import main

sys.exit(main(sys.argv[2:]))
"""


class Outcome(NamedTuple):
    """What happened in one round."""

    n_acknowledged: int  # events, in all
    n_in_between: int  # of them while it lasted
    n_failed: int  # requests without success, in all
    longest: float  # seconds of one request
    back_after: float  # seconds from the end until everything worked
    statuses: Counter[int]


class _Process(ServerProcess):
    """A `matchmill serve` whose clock can be moved."""

    def __init__(self, folder: Path, *options: str, url: str | None = None) -> None:
        self._offset = folder.parent / "offset"
        self._offset.write_bytes(bytes(8))
        self.folder = folder
        store = ("--store", url) if url is not None else ()
        self.log = (folder.parent / f"{folder.name}.log").open("ab")
        arguments = ["serve", str(folder), "--port", "0", *store, *options]
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, self._offset, *arguments],
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=os.environ,
        )
        self.address = self._address()

    def move_clock(self, seconds: int) -> None:
        with self._offset.open("r+b") as file, mmap.mmap(file.fileno(), 8) as shared:
            shared[:] = struct.pack("q", seconds)


class _Load:
    """Publishers and a subscriber that go on through everything."""

    def __init__(self, server: _Process, key: str) -> None:
        self._server = server
        self._key = key
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._n_names = 0
        self.events: list[tuple[str, int, float, float]] = []  # id, value, sent, acknowledged
        self.subscriptions: list[tuple[str, int, str, float]] = []  # and when acknowledged
        self.statuses: Counter[int] = Counter()
        self.longest = 0.0
        self.faults: list[str] = []
        self._threads = [
            *(threading.Thread(target=self._publish, args=(n,)) for n in range(_PUBLISHERS)),
            threading.Thread(target=self._subscribe),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(120)
            assert not thread.is_alive()

    @contextmanager
    def connection(self) -> Iterator[Callable[..., tuple[int, Any]]]:
        """Gives a function that asks; status 0 is no response."""
        parts = urlsplit(self._server.address)
        http_connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)

        def ask(method: str, path: str, body: Any = None, ticket: str = "") -> tuple[int, Any]:
            headers = {"Content-Type": "application/json"}
            headers |= {"Matchmill-Ticket": ticket} if ticket else {}
            headers |= {} if ticket else {"Authorization": f"Bearer {self._key}"}
            started = time.monotonic()
            try:
                content = None if body is None else json.dumps(body)
                http_connection.request(method, path, content, headers)
                answer = http_connection.getresponse()
                status, text = answer.status, answer.read()
            except (OSError, http.client.HTTPException):
                http_connection.close()
                status, text = 0, b""
            with self._lock:
                self.statuses[status] += 1
                self.longest = max(self.longest, time.monotonic() - started)
                if status >= 500 and status != 503:
                    self.faults.append(f"{method} {path}: {status} {text[:300]!r}")
            return status, json.loads(text) if text else None

        try:
            yield ask
        finally:
            http_connection.close()

    def _until_done(self, ask: Any, wanted: int, *request: Any) -> Any:
        """Send the same request until it succeeds; None if the load ends before."""
        while True:
            status, answer = ask(*request)
            if status in (wanted, 200):
                return answer
            if status not in (0, 503):
                self.faults.append(f"{request}: {status} {answer}")
                return None
            if self._stopping.wait(0.02):
                return None

    def _publish(self, k: int) -> None:
        n = 0
        with self.connection() as ask:
            while not self._stopping.is_set():
                n += 1
                name, value, sent = f"e{k}-{n}", n % _VALUES, time.monotonic()
                body = {"event": {"k": value}, "event_id": name}
                if self._until_done(ask, 200, "POST", "/v1/events", body) is not None:
                    with self._lock:
                        self.events.append((name, value, sent, time.monotonic()))
                time.sleep(0.005)

    def _subscribe(self) -> None:
        with self.connection() as ask:
            while not self._stopping.wait(0.1):
                self.add_subscription(ask)

    def add_subscription(self, ask: Any) -> None:
        """With a ticket of its own, so that the request can be repeated."""
        n = self._n_names = self._n_names + 1
        name, value, ticket = f"s{n}", n % _VALUES, f"{n:043}"
        parts = urlsplit(self._server.address)
        body = json.dumps({"expression": f"k = {value}"})
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {self._key}",
            "Matchmill-Ticket": ticket,
        }
        while True:
            one = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
            status = 0
            with suppress(OSError, http.client.HTTPException):
                one.request("PUT", f"/v1/subscriptions/{name}", body, headers)
                status = one.getresponse().status
            one.close()
            with self._lock:
                self.statuses[status] += 1
            if status in (200, 201):
                self.subscriptions.append((name, value, ticket, time.monotonic()))
                return
            if status not in (0, 503):
                self.faults.append(f"PUT {name}: {status}")
                return
            if self._stopping.wait(0.02):
                return


def _check(load: _Load) -> None:
    """Compare what was acknowledged with what is there."""
    assert load.faults == []
    with load.connection() as ask:
        for name, value, ticket, there in load.subscriptions:
            path = f"/v1/subscriptions/{name}/matches"
            found: list[str] = []
            after = 0
            while True:
                status, page = ask("GET", f"{path}?limit=1000&after={after}", None, ticket)
                assert status == 200, (name, status, page)
                found += [one["event_id"] for one in page["matches"]]
                if len(page["matches"]) < 1000:
                    break
                after = page["matches"][-1]["seq"]
            assert len(found) == len(set(found)), f"{name} has an event twice"
            wanted = {event for event, k, sent, _ in load.events if k == value and sent > there}
            assert not wanted - set(found), f"{name} has lost {sorted(wanted - set(found))[:5]}"


# -- outages --------------------------------------------------------------------------------------


class _Place(NamedTuple):
    """Where an outage happens."""

    process: _Process
    database: Server | None
    folder: Path


@contextmanager
def _stopped(place: _Place) -> Iterator[None]:
    assert place.database is not None
    place.database.stop()
    try:
        yield
    finally:
        place.database.start()


@contextmanager
def _frozen(place: _Place) -> Iterator[None]:
    assert place.database is not None
    place.database.freeze()
    try:
        yield
    finally:
        place.database.thaw()


@contextmanager
def _read_only(place: _Place) -> Iterator[None]:
    assert place.database is not None
    place.database.set_read_only(True)
    try:
        yield
    finally:
        place.database.set_read_only(False)


@contextmanager
def _locked(place: _Place) -> Iterator[None]:
    if place.database is None:
        other = sqlite3.connect(place.folder / DATABASE_NAME, timeout=30, isolation_level=None)
        try:
            other.execute("BEGIN EXCLUSIVE")
            yield
        finally:
            other.close()
        return
    import psycopg

    with psycopg.connect(place.database.dsn) as connection:
        connection.execute("LOCK TABLE events, subscriptions, facts IN ACCESS EXCLUSIVE MODE")
        yield
        connection.rollback()


@contextmanager
def _disk_full(place: _Place) -> Iterator[None]:
    """No file can be longer than a page, as if the disk were full; also the engines' files."""
    limits = resource.prlimit(place.process.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(place.process.process.pid, resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        yield
    finally:
        resource.prlimit(place.process.process.pid, resource.RLIMIT_FSIZE, limits)


def _clock(days: int) -> Callable[[_Place], Any]:
    @contextmanager
    def moved(place: _Place) -> Iterator[None]:
        place.process.move_clock(days * _DAY)
        try:
            yield
        finally:
            place.process.move_clock(0)

    return moved


OUTAGES: dict[str, dict[str, Callable[[_Place], Any]]] = {
    "postgresql": {
        "stopped": _stopped,
        "frozen": _frozen,
        "read-only": _read_only,
        "locked": _locked,
        "clock +40 days": _clock(40),
        "clock -40 days": _clock(-40),
    },
    "sqlite": {
        "locked": _locked,
        "disk full": _disk_full,
        "clock +40 days": _clock(40),
        "clock -40 days": _clock(-40),
    },
}


def outage_round(name: str, seconds: float, database: Server | None = None) -> Outcome:
    """Run one outage; AssertionError if something is lost or does not come back."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder, url = home / "served", None
        if database is not None:
            database.empty()
            url = database.url
        key = new_key(folder, url=url)
        options = ("store_timeout_seconds=2", "cleanup_seconds=1", "keep_expired_seconds=3600")
        settings = [part for one in options for part in ("--setting", one)]
        process = _Process(folder, *settings, url=url)
        try:
            process.wait_ready()
            outcome = _round(name, seconds, _Place(process, database, folder), key)
            assert process.stop() == 0, process.messages()
        finally:
            if process.process.poll() is None:
                process.process.send_signal(signal.SIGKILL)
                process.process.wait()
    return outcome


def _round(name: str, seconds: float, place: _Place, key: str) -> Outcome:
    outages = OUTAGES["sqlite" if place.database is None else "postgresql"]
    load = _Load(place.process, key)
    with load.connection() as ask:
        for _ in range(_VALUES):
            load.add_subscription(ask)
    load.start()
    try:
        wait_until(lambda: len(load.events) > 50)
        time.sleep(_BETWEEN)
        with outages[name](place):
            began = time.monotonic()
            time.sleep(seconds)
            ended = time.monotonic()
        mended = time.monotonic()
        back_after = _wait_for_all(load) - mended
        n_events = len(load.events)
        wait_until(lambda: len(load.events) > n_events + 50)
    finally:
        load.stop()
    _check(load)
    n_in_between = sum(began < at < ended for *_, at in load.events)
    n_failed = sum(n for status, n in load.statuses.items() if status in (0, 503))
    return Outcome(
        len(load.events), n_in_between, n_failed, load.longest, back_after, load.statuses
    )


def _wait_for_all(load: _Load) -> float:
    """Wait until a publish, a subscribe, a read and /readyz succeed; return when they all did."""
    with load.connection() as ask:
        wait_until(lambda: ask("POST", "/v1/events", {"event": {"k": 0}})[0] == 200)
        load.add_subscription(ask)
        wait_until(lambda: ask("GET", "/v1/subscriptions/s1", None, f"{1:043}")[0] == 200)
        wait_until(lambda: ask("GET", "/readyz")[0] == 200)
        return time.monotonic()
