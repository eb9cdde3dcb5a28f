"""Services for tests: one in this process with a clock of the test's, or a real server process."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
from starlette.testclient import TestClient

from matchmill.service.app import make_app
from matchmill.service.database.open import open_store
from matchmill.service.database.rows import SECOND
from matchmill.service.secrets import SECRET_NAME, TICKET_HEADER, SecretKey, make_key
from matchmill.service.service import Service
from matchmill.service.settings import ServiceSettings

SCOPES = ("subscribe", "publish", "read", "admin")
START = 1_700_000_000 * SECOND
_START_SECONDS = 120.0  # kernels may have to be compiled


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = START
        self.passed = 0

    def wall(self) -> int:
        return self.now

    def elapsed(self) -> int:
        return self.passed

    def move(self, seconds: float) -> None:
        """Time passes."""
        self.now += int(seconds * SECOND)
        self.passed += int(seconds * SECOND)

    def jump(self, seconds: float) -> None:
        """The clock shows another time, and no time passes."""
        self.now += int(seconds * SECOND)


class Asked(Clock):
    """Shows what a function returns, and believes it."""

    def __init__(self, now: Callable[[], int]) -> None:
        super().__init__()
        self._now = now

    def wall(self) -> int:
        return self._now()

    elapsed = wall


def new_key(
    folder: Path, tenant: str = "acme", scopes: tuple[str, ...] = SCOPES, url: str | None = None
) -> str:
    """A key of a tenant, made as `matchmill keys add` does it."""
    folder.mkdir(parents=True, exist_ok=True)
    secret_key = SecretKey.read(folder / SECRET_NAME)
    store = open_store(folder, url)
    store.check_secret(secret_key.fingerprint)
    with store.writing() as writing:
        number = writing.add_tenant(tenant)
        _, secret = make_key(writing, secret_key, (number, tenant), "test", scopes)
    store.close()
    return secret


class Caller:
    """Speaks to a service with one key."""

    def __init__(self, client: Any, key: str | None) -> None:
        self.client = client
        self.headers = {} if key is None else {"Authorization": f"Bearer {key}"}

    def get(self, path: str, ticket: str | None = None, **query: Any) -> Any:
        return self.client.get(path, headers=self._headers(ticket), params=query)

    def post(self, path: str, body: Any = None, ticket: str | None = None) -> Any:
        return self.client.post(path, json=body, headers=self._headers(ticket))

    def put(self, path: str, body: Any, ticket: str | None = None) -> Any:
        """With the key, and with a ticket if there is one."""
        headers = self.headers if ticket is None else self.headers | {TICKET_HEADER: ticket}
        return self.client.put(path, json=body, headers=headers)

    def patch(self, path: str, body: Any, ticket: str | None = None) -> Any:
        return self.client.patch(path, json=body, headers=self._headers(ticket))

    def delete(self, path: str, ticket: str | None = None) -> Any:
        return self.client.delete(path, headers=self._headers(ticket))

    def _headers(self, ticket: str | None) -> dict[str, str]:
        return self.headers if ticket is None else {TICKET_HEADER: ticket}

    # -- what tests do most -----------------------------------------------------------------------

    def subscribe(self, identifier: str, expression: str, **more: Any) -> str:
        """Subscribe; returns the ticket."""
        body = {"subscription_id": identifier, "expression": expression, **more}
        answer = self.post("/v1/subscriptions", body)
        assert answer.status_code == 201, answer.text
        ticket: str = answer.json()["ticket"]
        return ticket

    def publish(self, event: dict[str, Any], **more: Any) -> int:
        """Publish; returns how many subscriptions matched."""
        answer = self.post("/v1/events", {"event": event, **more})
        assert answer.status_code == 200, answer.text
        n_matches: int = answer.json()["n_matches"]
        return n_matches

    def matches(self, identifier: str, ticket: str, **query: Any) -> list[dict[str, Any]]:
        answer = self.get(f"/v1/subscriptions/{identifier}/matches", ticket, **query)
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["matches"]
        return found


class Local:
    """A service in this process."""

    def __init__(self, folder: Path, service: Service, client: TestClient, clock: Clock) -> None:
        self.folder = folder
        self.service = service
        self.client = client
        self.clock = clock

    def caller(self, tenant: str = "acme", scopes: tuple[str, ...] = SCOPES) -> Caller:
        return Caller(self.client, new_key(self.folder, tenant, scopes))


@contextmanager
def local_service(
    folder: Path,
    clock: Clock | Callable[[], int] | None = None,
    url: str | None = None,
    **settings: Any,
) -> Iterator[Local]:
    if not isinstance(clock, Clock):
        clock = Clock() if clock is None else Asked(clock)
    service = Service(folder, ServiceSettings(**settings), store_url=url, clock=clock)
    with TestClient(make_app(service), raise_server_exceptions=True) as client:
        wait_until(lambda: client.get("/readyz").status_code == 200)
        yield Local(folder, service, client, clock)


def wait_until(holds: Any, seconds: float = _START_SECONDS) -> None:
    """Ask again and again, until it holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.005)


class ServerProcess:
    """A real `matchmill serve`."""

    def __init__(self, folder: Path, *options: str, url: str | None = None) -> None:
        self.folder = folder
        store = ("--store", url) if url is not None else ()
        self.log = (folder.parent / f"{folder.name}.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "matchmill", "serve", folder, "--port", "0", *store, *options],
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=os.environ,
        )
        self.address = self._address()

    def _address(self) -> str:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], _START_SECONDS)
        line = self.process.stdout.readline() if ready else ""
        if "http://" not in line:
            self.kill()
            raise AssertionError(f"the service did not start: {line!r}\n{self.messages()}")
        return line[line.index("http://") :].strip()

    def messages(self) -> str:
        return Path(self.log.name).read_text(encoding="utf-8")

    def wait_ready(self) -> None:
        def is_ready() -> bool:
            with suppress(httpx2.TransportError):
                return httpx2.get(f"{self.address}/readyz").status_code == 200
            return False

        wait_until(is_ready)

    def kill(self) -> None:
        """kill -9"""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        return self._end(signal.SIGTERM)

    def _end(self, number: int) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.log.close()
        return code


@contextmanager
def running(folder: Path, *options: str, url: str | None = None) -> Iterator[ServerProcess]:
    server = ServerProcess(folder, *options, url=url)
    try:
        server.wait_ready()
        yield server
    finally:
        server.stop()


def server_events(response: Any) -> Iterator[tuple[str, str, Any]]:
    """(event, id, data) of a stream of server-sent events."""
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        else:
            if "data" in fields:
                yield fields["event"], fields.get("id", ""), json.loads(fields["data"])
            fields = {}
