"""Attacks of one tenant on a service, and what another tenant notices of them.

An attack runs in a process of its own, so that making it costs the measurement as little as
possible. It prints a line when it is under way, and goes on until it is killed.

    python -m tests.support.noisy_neighbours                   list the attacks
    python -m tests.support.noisy_neighbours matches           measure one, and print the figures
"""

from __future__ import annotations

import http.client
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psutil

from tests.support.running_service import ServerProcess, new_key, running

__all__ = ["ATTACKS", "Figures", "measured"]

_OPTIONS = (
    *("--operators", "matchmill.operators.builtin"),
    *("--setting", "allow_private_webhooks=true"),
)
_LONGEST = 100.0  # seconds of one request before it is given up


class Connection:
    """Requests over one connection; `send` and `receive` apart, for those who do not wait."""

    def __init__(self, address: str, key: str) -> None:
        parts = urlsplit(address)
        self._http = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_LONGEST)
        self._key = key

    def ask(self, method: str, path: str, body: Any = None, ticket: str = "") -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"}
        if ticket:
            headers["Matchmill-Ticket"] = ticket
        else:
            headers["Authorization"] = f"Bearer {self._key}"
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        self._http.request(method, path, content, headers)
        answer = self._http.getresponse()
        return answer.status, answer.read()

    def close(self) -> None:
        self._http.close()


# -- attacks --------------------------------------------------------------------------------------


class Attacker:
    """What an attack is made with."""

    def __init__(self, address: str, key: str) -> None:
        self.address = address
        self.key = key

    def connection(self) -> Connection:
        return Connection(self.address, self.key)

    def ask(self, method: str, path: str, body: Any = None, ticket: str = "") -> Any:
        connection = self.connection()
        try:
            status, content = connection.ask(method, path, body, ticket)
        finally:
            connection.close()
        return json.loads(content) | {"status": status} if content else {"status": status}

    def subscribe_many(self, expressions: list[str]) -> None:
        for first in range(0, len(expressions), 1_000):
            rows = [{"expression": one} for one in expressions[first : first + 1_000]]
            self.ask("POST", "/v1/subscriptions", rows)

    def repeat(self, n_connections: int, method: str, path: str, body: Any = None) -> None:
        """Send a request again and again, over some connections; who is told to wait, waits."""
        content = None if body is None else json.dumps(body).encode()

        def run() -> None:
            while True:
                connection = self.connection()
                with suppress(OSError, http.client.HTTPException):
                    while True:
                        status, _ = connection.ask(method, path, content)
                        time.sleep(1.0 if status in (429, 503) else 0.0)
                connection.close()
                time.sleep(0.05)

        for _ in range(n_connections):
            threading.Thread(target=run, daemon=True).start()


def nothing(attacker: Attacker) -> None:
    """No attack: what the others are compared with."""


def regular_expressions(attacker: Attacker) -> None:
    """Ten programs that are as large as RE2 allows, and texts of 1 kB; also in explain."""
    for n in range(10):
        for n_parts in (100, 50, 20, 10, 5, 2, 1):
            expression = f"t rlike '{'(?:a?c?){1000}' * n_parts}{n}'"
            made = attacker.ask("POST", "/v1/subscriptions", {"expression": expression})
            if made["status"] == 201:
                break
    event = {"t": "ac" * 500}
    attacker.repeat(2, "POST", "/v1/events", {"event": event})
    attacker.repeat(1, "POST", "/v1/explain", {"event": event, "expression": expression})


def matches(attacker: Attacker) -> None:
    """10,000 subscriptions, and lists of 1,000 events that satisfy all of them."""
    attacker.subscribe_many(["x = 1"] * 10_000)
    attacker.repeat(4, "POST", "/v1/events", [{"event": {"x": 1}}] * 1_000)


def joins(attacker: Attacker) -> None:
    """Three variables over one list of 100 elements."""
    variables = " and ".join(f"attribute('l', ?{name})" for name in "xyz")
    attacker.subscribe_many([f"{variables} and ?x < ?y and ?y < ?z and ?z < ?x"])
    attacker.repeat(2, "POST", "/v1/events", {"event": {"l": list(range(100))}})


def backtests(attacker: Attacker) -> None:
    """300 at the same time, of 10,000 events each."""
    events = [{"event": {"x": n, "y": "text", "z": [1, 2, 3]}} for n in range(1_000)]
    for _ in range(10):
        attacker.ask("POST", "/v1/events", events)
    attacker.repeat(300, "POST", "/v1/backtest", {"expression": "x = 1", "last": 10_000})


def long_polls(attacker: Attacker) -> None:
    """Requests that wait for a minute, from a sender who hangs up at once."""
    made = attacker.ask("POST", "/v1/subscriptions", {"expression": "nothing = 1"})
    parts = urlsplit(attacker.address)
    path = f"/v1/subscriptions/{made['subscription_id']}/matches?wait=60"
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nMatchmill-Ticket: {made['ticket']}\r\n\r\n"

    def run() -> None:
        while True:
            with suppress(OSError):
                address = (parts.hostname, parts.port)
                with socket.create_connection(address, timeout=5) as connection:
                    connection.sendall(head.encode())
                    time.sleep(0.02)

    for _ in range(8):
        threading.Thread(target=run, daemon=True).start()


def open_long_polls(attacker: Attacker) -> None:
    """The same from a sender who stays, with as many tickets as it takes."""
    rows = [{"expression": "nothing = 1"}] * 600
    made = attacker.ask("POST", "/v1/subscriptions", rows)["results"]
    parts = urlsplit(attacker.address)
    kept = []
    for _ in range(10):
        for one in made:
            path = f"/v1/subscriptions/{one['subscription_id']}/matches?wait=60"
            head = f"GET {path} HTTP/1.1\r\nHost: x\r\nMatchmill-Ticket: {one['ticket']}\r\n\r\n"
            with suppress(OSError):
                connection = socket.create_connection((parts.hostname, parts.port), timeout=5)
                connection.sendall(head.encode())
                kept.append(connection)
    _KEPT.extend(kept)


_KEPT: list[socket.socket] = []


def tar_pits(attacker: Attacker) -> None:
    """100 webhooks that answer the challenge, and then nothing."""
    _webhooks(attacker, lambda handler: time.sleep(600))


def endless_continue(attacker: Attacker) -> None:
    """100 webhooks that say `100 Continue` for ever."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        with suppress(OSError):
            while True:
                handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000)

    _webhooks(attacker, answer)


def _webhooks(attacker: Attacker, answer: Callable[[BaseHTTPRequestHandler], None]) -> None:
    secrets: dict[str, str] = {}
    with _receiver(secrets, lambda _: None, answer) as url:
        for n in range(100):
            body = {"expression": "x = 1", "webhook": {"url": f"{url}/{n}"}}
            made = attacker.ask("POST", "/v1/subscriptions", body)
            secrets[made["subscription_id"]] = made["webhook_secret"]
        attacker.repeat(1, "POST", "/v1/events", {"event": {"x": 1}})
        _under_way()
        threading.Event().wait()


def large_pages(attacker: Attacker) -> None:
    """100 events of 2 MB in one mailbox, read again and again."""
    made = attacker.ask("POST", "/v1/subscriptions", {"expression": "x = 1"})
    for n in range(100):
        attacker.ask("POST", "/v1/events", {"event": {"x": 1, "n": n, "t": "a" * 2_000_000}})
    path = f"/v1/subscriptions/{made['subscription_id']}/matches?limit=100"

    def run() -> None:
        connection = attacker.connection()
        while True:
            connection.ask("GET", path, None, made["ticket"])

    for _ in range(4):
        threading.Thread(target=run, daemon=True).start()


def large_events(attacker: Attacker) -> None:
    """Events of almost 4 MB, over 20 connections."""
    attacker.subscribe_many(["x = 1"])
    attacker.repeat(20, "POST", "/v1/events", {"event": {"y": [0] * 1_900_000}})


def large_lists(attacker: Attacker) -> None:
    """Lists of 10,000 subscriptions."""
    attacker.repeat(4, "POST", "/v1/subscriptions", [{"expression": "y = 'nobody'"}] * 10_000)


def slow_headers(attacker: Attacker) -> None:
    """2,000 connections without a key that never finish their header."""
    parts = urlsplit(attacker.address)

    def run() -> None:
        kept: list[socket.socket] = []
        while True:
            with suppress(OSError):
                kept.append(socket.create_connection((parts.hostname, parts.port), timeout=5))
                kept[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost")
            if len(kept) >= 500:
                time.sleep(0.02)
                kept.pop(0).close()

    for _ in range(4):
        threading.Thread(target=run, daemon=True).start()
    time.sleep(3.0)


ATTACKS: dict[str, Callable[[Attacker], None]] = {
    attack.__name__: attack
    for attack in (
        *(
            nothing,
            regular_expressions,
            matches,
            joins,
            backtests,
            long_polls,
            open_long_polls,
            tar_pits,
        ),
        *(endless_continue, large_pages, large_events, large_lists, slow_headers),
    )
}
_FEW_DESCRIPTORS = ("slow_headers",)


def _under_way() -> None:
    print("under way", flush=True)


def _attack(name: str, address: str, key: str) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    ATTACKS[name](Attacker(address, key))
    _under_way()
    threading.Event().wait()


# -- what another tenant notices ------------------------------------------------------------------


@contextmanager
def _receiver(
    secrets: dict[str, str],
    seen: Callable[[bytes], None],
    answer: Callable[[BaseHTTPRequestHandler], None] | None = None,
) -> Iterator[str]:
    """Receive webhooks: answer challenges, and matches in some way or by 200."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            from matchmill.client import signatures

            body = self.rfile.read(int(self.headers["Content-Length"]))
            message = json.loads(body)
            text = b""
            if "challenge" in message:
                text = signatures.answer_challenge(secrets[message["subscription_id"]], body) or ""
                text = text.encode()
            else:
                seen(body)
                if answer is not None:
                    answer(self)
                    return
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class Figures(NamedTuple):
    """What another tenant measured: seconds, and statuses that were not the right ones."""

    subscribe: list[float]
    publish: list[float]
    webhook: list[float]
    failures: list[str]
    megabytes: float
    calm_p99: float  # in the same run, before the attack
    load: float  # of the machine, on average over the last minute

    def p99(self) -> float:
        return _p99([*self.subscribe, *self.publish])

    def __str__(self) -> str:
        parts = []
        for name, seconds in (
            ("subscribe", self.subscribe),
            ("publish", self.publish),
            ("webhook", self.webhook),
        ):
            ordered = sorted(seconds)
            if ordered:
                shown = (
                    f"{1000 * ordered[int(q * (len(ordered) - 1))]:.0f}" for q in (0.5, 0.99, 1)
                )
                parts.append(f"{name} p50/p99/max {'/'.join(shown)} ms of {len(ordered)}")
        parts.append(f"p99 of both {1000 * self.p99():.0f}, before {1000 * self.calm_p99:.0f} ms")
        parts.append(f"load average {self.load:.1f}")
        parts.append(f"memory {self.megabytes:.0f} MB")
        parts.append(f"failures {len(self.failures)} {self.failures[:2]}")
        return "; ".join(parts)


def _p99(seconds: list[float]) -> float:
    return sorted(seconds)[int(0.99 * (len(seconds) - 1))]


class _Victim:
    """Subscribes and publishes what only its own subscription matches; has a webhook, too."""

    def __init__(self, server: ServerProcess, key: str) -> None:
        self._server = server
        self._key = key
        self.subscribe: list[float] = []
        self.publish: list[float] = []
        self.webhook: list[float] = []
        self.failures: list[str] = []
        self._numbers = count(1)
        self._sent: dict[int, float] = {}

    def seen(self, body: bytes) -> None:
        now = time.perf_counter()
        for match in json.loads(body)["matches"]:
            started = self._sent.pop(match["event"].get("n", 0), None)
            if started is not None:
                self.webhook.append(now - started)

    def prepare(self, url: str, secrets: dict[str, str]) -> None:
        connection = Connection(self._server.address, self._key)
        body = {"expression": "hook = 1", "webhook": {"url": url}}
        _, content = connection.ask("POST", "/v1/subscriptions", body)
        made = json.loads(content)
        secrets[made["subscription_id"]] = made["webhook_secret"]
        self._one(connection, "POST", "/v1/events", {"event": {"hook": 1, "n": 0}}, 200, [])
        connection.close()

    def run_in_peace(self, seconds: float) -> float:
        """Measure what there is without an attack; return the p99, and forget the rest."""
        self.run(seconds)
        p99 = _p99([*self.subscribe, *self.publish])
        for figures in (self.subscribe, self.publish, self.webhook):
            figures.clear()
        return p99

    def run(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            connection = Connection(self._server.address, self._key)
            with suppress(OSError, http.client.HTTPException):
                self._round(connection, end)
            connection.close()
            time.sleep(0.01)

    def _round(self, connection: Connection, end: float) -> None:
        for _ in range(5):
            n = next(self._numbers)
            body = {"expression": f"victim = {n}", "ttl_seconds": 3_600}
            ticket = self._one(connection, "POST", "/v1/subscriptions", body, 201, self.subscribe)
            if not ticket:
                continue
            self._sent[n] = time.perf_counter()
            event = {"event": {"victim": n, "hook": 1, "n": n}}
            done = self._one(connection, "POST", "/v1/events", event, 200, self.publish)
            if done and done["n_matches"] != 2:
                self.failures.append(f"{done['n_matches']} matches")
            path = f"/v1/subscriptions/{ticket['subscription_id']}/matches?wait=1&after=1000000"
            if n % 20 == 1:
                status, content = connection.ask("GET", path, None, ticket["ticket"])
                if status != 200:
                    self.failures.append(f"poll: {status} {content[:80]!r}")
            time.sleep(0.005)

    def _one(
        self,
        connection: Connection,
        method: str,
        path: str,
        body: Any,
        wanted: int,
        into: list[float],
    ) -> Any:
        started = time.perf_counter()
        try:
            status, content = connection.ask(method, path, body)
        except (OSError, http.client.HTTPException) as error:
            into.append(time.perf_counter() - started)
            self.failures.append(f"{path}: {type(error).__name__}")
            raise
        into.append(time.perf_counter() - started)
        if status != wanted:
            self.failures.append(f"{path}: {status} {content[:80]!r}")
            return None
        return json.loads(content)


def measured(name: str, folder: Path, seconds: float = 10.0) -> Figures:
    """Run an attack, and measure what another tenant notices."""
    attacker_key = new_key(folder, "noisy")
    victim_key = new_key(folder, "neighbour")
    secrets: dict[str, str] = {}
    with running(folder, *_OPTIONS) as server:
        process = psutil.Process(server.process.pid)
        if name in _FEW_DESCRIPTORS:
            process.rlimit(psutil.RLIMIT_NOFILE, (1_024, 1_024))
        victim = _Victim(server, victim_key)
        memory = 0.0
        stopping = threading.Event()

        def watch() -> None:
            nonlocal memory
            while not stopping.wait(0.05):
                memory = max(memory, process.memory_info().rss / 1e6)

        with _receiver(secrets, victim.seen) as url, ThreadPoolExecutor(1) as watching:
            victim.prepare(url, secrets)
            calm_p99 = victim.run_in_peace(seconds / 2)
            watched = watching.submit(watch)
            command = [sys.executable, "-m", __spec__.name, name, server.address, attacker_key]
            with subprocess.Popen(command, stdout=subprocess.PIPE) as attack:
                try:
                    assert attack.stdout is not None
                    assert attack.stdout.readline() == b"under way\n"
                    time.sleep(1.0)
                    victim.run(seconds)
                finally:
                    attack.kill()
            stopping.set()
            watched.result()
            server.kill()  # what the attack has left is of no interest
    parts = (victim.subscribe, victim.publish, victim.webhook, victim.failures)
    return Figures(*parts, memory, calm_p99, os.getloadavg()[0])


def main() -> None:
    if len(sys.argv) == 4:
        _attack(*sys.argv[1:])
        return
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            print(f"{name}: {measured(name, Path(folder) / 'served')}", flush=True)
    if len(sys.argv) == 1:
        print("\n".join(ATTACKS))


if __name__ == "__main__":
    main()
