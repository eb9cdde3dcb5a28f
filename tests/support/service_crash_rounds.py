"""Rounds of load and kill -9, and what must hold after each of them.

Workers subscribe, change, unsubscribe, publish, read and acknowledge, and note when each request
was sent and when its response came; a counter serves as the clock. At a random moment the server is
killed, now and then it is stopped. After the restart everything that was acknowledged must be
there, and nothing that has ended:

- a match is there if its subscription, with this expression, was acknowledged before the event was
  sent, and the event was acknowledged before the expression was to change, or the subscription to
  end;
- it is not there if the event was acknowledged before the expression was sent, or sent after the
  next expression was acknowledged;
- an event that was never acknowledged, sent again with its id, is in each mailbox once;
- what was acknowledged by its reader does not come again;
- a subscription that has ended is not listed, cannot be read, and gets nothing;
- each value finds exactly as many subscriptions as are live.

Each expression is `k = value` and each event `{"k": value}`, so that anyone can tell what matches.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

from tests.support.prefork import ForkedServer, Nursery
from tests.support.running_service import ServerProcess, new_key

__all__ = ["CrashRounds"]

_WORKERS = 4
_VALUES = 12
_MOST_LIVE = 15  # subscriptions of one worker

Fault = AssertionError


@dataclass
class Version:
    """An expression, `k = value`, of a subscription."""

    value: int
    sent: int
    acknowledged: int | None = None


@dataclass
class Subscription:
    id: str
    versions: list[Version]  # the present one last
    ticket: str = ""
    end_sent: int | None = None
    acked_up_to: int = 0  # and the server said yes
    asked_up_to: int = 0
    seen: dict[str, int] = field(default_factory=dict)  # event_id → seq

    @property
    def value(self) -> int:
        return self.versions[-1].value

    def must_have(self, event: Event) -> bool:
        """Whether the event arrived while one version of its value was there for certain."""
        for version, following in zip(self.versions, [*self.versions[1:], None], strict=True):
            if version.value != event.value or version.acknowledged is None:
                continue
            if version.acknowledged < event.sent and (
                following is None
                or (event.acknowledged is not None and event.acknowledged < following.sent)
            ):
                return True
        return False

    def may_have(self, event: Event) -> bool:
        """Whether the event may have met a version of its value."""
        for version, following in zip(self.versions, [*self.versions[1:], None], strict=True):
            is_too_early = event.acknowledged is not None and event.acknowledged < version.sent
            is_too_late = (
                following is not None
                and following.acknowledged is not None
                and following.acknowledged < event.sent
            )
            if version.value == event.value and not is_too_early and not is_too_late:
                return True
        return False


@dataclass
class Event:
    id: str
    value: int
    sent: int
    acknowledged: int | None = None


class Connection:
    """Requests over one connection; ConnectionError when the server is gone."""

    def __init__(self, address: str, key: str) -> None:
        parts = urlsplit(address)
        self._http = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        self._key = key

    def ask(self, method: str, path: str, body: Any = None, ticket: str = "") -> tuple[int, Any]:
        headers = {"Content-Type": "application/json"}
        if ticket:
            headers["Matchmill-Ticket"] = ticket
        else:
            headers["Authorization"] = f"Bearer {self._key}"
        content = None if body is None else json.dumps(body)
        try:
            self._http.request(method, path, content, headers)
            answer = self._http.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionError from error
        if answer.status == 503:  # it is about to stop
            raise ConnectionError
        if answer.status >= 500:
            raise Fault(f"{method} {path}: {answer.status} {text!r}")
        return answer.status, json.loads(text) if text else None

    def close(self) -> None:
        self._http.close()


class CrashRounds:
    """Rounds on one folder, or on one folder and a database."""

    def __init__(
        self, folder: Path, seed: int, url: str | None = None, home: Nursery | None = None
    ) -> None:
        self._folder = folder
        self._home = home
        self._url = url
        self._rng = Random(seed)
        self._key = new_key(folder, url=url)
        self._ticks = count(1)
        self._names = count(1)
        self._lock = threading.Lock()
        self._owned: list[list[Subscription]] = [[] for _ in range(_WORKERS)]
        self._free_ids: list[list[str]] = [[] for _ in range(_WORKERS)]
        self._events: list[Event] = []
        self._patience = 1.0
        self.counts: Counter[str] = Counter()

    def run(self, n_rounds: int, said: Any = None) -> None:
        for n in range(n_rounds):
            self._round()
            self.counts["rounds"] += 1
            if said is not None:
                said(n + 1, self.counts)
        server = self._started()
        self._verify(server)
        server.stop()

    def _started(self) -> ServerProcess | ForkedServer:
        while True:
            start = ServerProcess if self._home is None else self._home.start
            options = ("--setting", "cleanup_seconds=1", "--setting", "checkpoint_changes=5")
            server = start(self._folder, *options, url=self._url)
            if self._rng.random() < 0.1:  # also while it reads what it has
                time.sleep(self._rng.random() * 0.5)
                server.kill()
                self.counts["killed while starting"] += 1
                continue
            server.wait_ready()
            return server

    def _round(self) -> None:
        server = self._started()
        self._verify(server)
        n_acknowledged = self.counts["events acknowledged"]
        workers = [Worker(self, k, server.address, self._rng.random()) for k in range(_WORKERS)]
        for worker in workers:
            worker.start()
        if self._rng.random() < 0.1:
            time.sleep(self._rng.uniform(0.9, 1.3))  # while it cleans up and saves engines
        else:
            time.sleep(self._patience * self._rng.uniform(0.02, 0.5))
        if self._rng.random() < 0.1:
            server.stop()  # the next one opens what this one has saved
            self.counts["stopped in good order"] += 1
        else:
            server.kill()
        for worker in workers:
            worker.join()
            if worker.fault is not None:
                raise worker.fault
        if self.counts["events acknowledged"] == n_acknowledged:  # the machine is that busy
            self._patience *= 2

    # -- what must hold ---------------------------------------------------------------------------

    def _verify(self, server: ServerProcess | ForkedServer) -> None:
        connection = Connection(server.address, self._key)
        try:
            self._resolve(connection)
            self._publish_again(connection)
            live = [one for owned in self._owned for one in owned]
            self._compare_lists(connection, live)
            for one in live:
                self._check_mailbox(connection, one)
            self._check_values(connection, live)
        finally:
            connection.close()
        self._events.clear()

    def _resolve(self, connection: Connection) -> None:
        """What became of requests without an answer?"""
        for k, owned in enumerate(self._owned):
            for one in list(owned):
                if one.versions[0].acknowledged is None:  # nobody knows its ticket
                    status, _ = connection.ask("DELETE", f"/v1/subscriptions/{one.id}")
                    self.counts["unanswered subscriptions found"] += status == 204
                elif one.end_sent is not None:
                    path = f"/v1/subscriptions/{one.id}"
                    status, _ = connection.ask("DELETE", path, ticket=one.ticket)
                    self.counts["unanswered ends found"] += status == 404
                else:
                    self._resolve_change(connection, one)
                    continue
                owned.remove(one)
                self._free_ids[k].append(one.id)

    def _resolve_change(self, connection: Connection, one: Subscription) -> None:
        if one.versions[-1].acknowledged is not None:
            return
        _, shown = connection.ask("GET", f"/v1/subscriptions/{one.id}", ticket=one.ticket)
        if shown["expression"] == f"k = {one.value}":
            one.versions[-1].acknowledged = next(self._ticks)
            self.counts["unanswered changes found"] += 1
        else:
            one.versions.pop()

    def _publish_again(self, connection: Connection) -> None:
        unanswered = [event for event in self._events if event.acknowledged is None]
        if unanswered:
            publish(connection, unanswered)
            for event in unanswered:
                event.acknowledged = next(self._ticks)
            self.counts["unanswered events sent again"] += len(unanswered)

    def _compare_lists(self, connection: Connection, live: list[Subscription]) -> None:
        _, listed = connection.ask("GET", "/v1/subscriptions?limit=1000")
        found = {row["subscription_id"] for row in listed["subscriptions"]}
        wanted = {one.id for one in live}
        if found != wanted:
            raise Fault(f"lost: {sorted(wanted - found)}; resurrected: {sorted(found - wanted)}")

    def _check_mailbox(self, connection: Connection, one: Subscription) -> None:
        entries = read(connection, one)
        ids = [entry["event_id"] for entry in entries]
        if len(set(ids)) != len(ids):
            raise Fault(f"{one.id}: an event is there twice")
        for entry in entries:
            if entry["seq"] <= one.acked_up_to:
                raise Fault(f"{one.id}: {entry['event_id']} came again after its acknowledgement")
            if entry["event"]["k"] not in {version.value for version in one.versions}:
                raise Fault(f"{one.id}: {entry['event']} never matched")
        there = set(ids)
        for event in self._events:
            if one.must_have(event):
                taken = event.id in one.seen and one.seen[event.id] <= one.asked_up_to
                if event.id not in there and not taken:
                    raise Fault(f"{one.id}: lost the match of {event.id}")
                self.counts["matches verified"] += 1
            elif event.id in there and not one.may_have(event):
                raise Fault(f"{one.id}: has {event.id}, which did not match when it came")
        self.counts["mailboxes verified"] += 1

    def _check_values(self, connection: Connection, live: list[Subscription]) -> None:
        probes = [self.event(value) for value in range(_VALUES)]
        wanted = Counter(one.value for one in live)
        for probe, result in zip(probes, publish(connection, probes), strict=True):
            if result["n_matches"] != wanted[probe.value]:
                raise Fault(
                    f"k = {probe.value} matched {result['n_matches']} subscriptions,"
                    f" and {wanted[probe.value]} are live"
                )
        self.counts["values verified"] += len(probes)
        for one in live:
            acknowledge(connection, one)

    # -- for workers ------------------------------------------------------------------------------

    def tick(self) -> int:
        return next(self._ticks)  # one step of the interpreter: no lock is needed

    def event(self, value: int) -> Event:
        event = Event(f"e{next(self._names)}", value, self.tick())
        with self._lock:
            self._events.append(event)
        return event

    def count(self, what: str, n: int = 1) -> None:
        with self._lock:
            self.counts[what] += n

    def owned(self, k: int) -> tuple[list[Subscription], list[str]]:
        return self._owned[k], self._free_ids[k]

    def name(self) -> str:
        return f"s{next(self._names)}"


def publish(connection: Connection, events: list[Event]) -> list[dict[str, Any]]:
    body = [{"event": {"k": one.value}, "event_id": one.id} for one in events]
    status, answer = connection.ask("POST", "/v1/events", body)
    if status != 200:
        raise Fault(f"publishing: {status} {answer}")
    results: list[dict[str, Any]] = answer["results"]
    return results


def read(connection: Connection, one: Subscription) -> list[dict[str, Any]]:
    path = f"/v1/subscriptions/{one.id}/matches?limit=1000"
    status, answer = connection.ask("GET", path, ticket=one.ticket)
    if status != 200:
        raise Fault(f"{one.id}: cannot be read: {status} {answer}")
    entries: list[dict[str, Any]] = answer["matches"]
    one.seen.update((entry["event_id"], entry["seq"]) for entry in entries)
    return entries


def acknowledge(connection: Connection, one: Subscription) -> int:
    """Read and acknowledge; returns how many."""
    entries = read(connection, one)
    if not entries:
        return 0
    one.asked_up_to = entries[-1]["seq"]
    path = f"/v1/subscriptions/{one.id}/acknowledge"
    status, answer = connection.ask("POST", path, {"up_to": one.asked_up_to}, one.ticket)
    if status != 204:
        raise Fault(f"{one.id}: acknowledging: {status} {answer}")
    one.acked_up_to = one.asked_up_to
    return len(entries)


class Worker(threading.Thread):
    """One connection that asks for this and that until the server is gone."""

    def __init__(self, rounds: CrashRounds, k: int, address: str, seed: float) -> None:
        super().__init__()
        self._rounds = rounds
        self._rng = Random(seed)
        self._connection = Connection(address, rounds._key)
        self._owned, self._free_ids = rounds.owned(k)
        self.fault: BaseException | None = None

    def run(self) -> None:
        try:
            while True:
                self._step()
        except ConnectionError:
            pass  # this is what the round is for
        except BaseException as fault:
            self.fault = fault
        finally:
            self._connection.close()

    def _step(self) -> None:
        draw = self._rng.random()
        usable = [one for one in self._owned if one.end_sent is None]
        if draw < 0.2 and len(usable) < _MOST_LIVE:
            self._subscribe()
        elif draw < 0.3 and usable:
            self._change(self._rng.choice(usable))
        elif draw < 0.4 and usable:
            self._unsubscribe(self._rng.choice(usable))
        elif draw < 0.65 and usable:
            n_entries = acknowledge(self._connection, self._rng.choice(usable))
            self._rounds.count("matches acknowledged", n_entries)
        else:
            self._publish()

    def _subscribe(self) -> None:
        rng, rounds = self._rng, self._rounds
        name = self._free_ids.pop(0) if self._free_ids and rng.random() < 0.5 else rounds.name()
        one = Subscription(name, [Version(rng.randrange(_VALUES), rounds.tick())])
        self._owned.append(one)
        body = {"subscription_id": name, "expression": f"k = {one.value}"}
        status, answer = self._connection.ask("POST", "/v1/subscriptions", body)
        if status != 201:
            raise Fault(f"subscribing: {status} {answer}")
        one.ticket = answer["ticket"]
        one.versions[0].acknowledged = rounds.tick()
        rounds.count("subscriptions acknowledged")

    def _change(self, one: Subscription) -> None:
        rng, rounds = self._rng, self._rounds
        version = Version(rng.randrange(_VALUES), rounds.tick())
        one.versions.append(version)
        method, body = rng.choice(("PUT", "PATCH")), {"expression": f"k = {version.value}"}
        path = f"/v1/subscriptions/{one.id}"
        status, answer = self._connection.ask(method, path, body, one.ticket)
        if status != 200:
            raise Fault(f"changing: {status} {answer}")
        version.acknowledged = rounds.tick()
        rounds.count("changes acknowledged")

    def _unsubscribe(self, one: Subscription) -> None:
        one.end_sent = self._rounds.tick()
        path = f"/v1/subscriptions/{one.id}"
        status, answer = self._connection.ask("DELETE", path, ticket=one.ticket)
        if status != 204:
            raise Fault(f"unsubscribing: {status} {answer}")
        self._owned.remove(one)
        self._free_ids.append(one.id)
        self._rounds.count("ends acknowledged")

    def _publish(self) -> None:
        n_events = self._rng.choice((1, 1, 2, 5, 20))
        events = [self._rounds.event(self._rng.randrange(_VALUES)) for _ in range(n_events)]
        publish(self._connection, events)
        now = self._rounds.tick()
        for event in events:
            event.acknowledged = now
        self._rounds.count("events acknowledged", n_events)
