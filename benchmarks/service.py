"""A real server under load: events per second, and how long a match takes to its reader.

n subscriptions; events are published in batches over several connections; readers are connected as
server-sent events and get a share of the matches; meanwhile others subscribe and unsubscribe, and
readers acknowledge. The latency is from just before the request that publishes an event to its
arrival at the reader. The load is made on the same machine, and takes its part of it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from benchmarks.support.timing import print_table
from tests.support.postgres import running_server
from tests.support.running_service import ServerProcess, new_key

__all__ = ["add_arguments", "run"]

_BATCH = 5_000  # subscriptions in one request


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of this command."""
    parser.add_argument("-n", type=int, default=100_000, help="subscriptions")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--readers", type=int, default=1_000, help="streams that are connected")
    parser.add_argument("--publishers", type=int, default=4, help="connections that publish")
    parser.add_argument("--batch", type=int, default=100, help="events in one request")
    parser.add_argument(
        "--read-share", type=float, default=0.1, help="of the events that match a reader"
    )
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")


class Connection:
    """HTTP over one connection, with as little effort as possible."""

    def __init__(self, address: str, key: str) -> None:
        parts = urlsplit(address)
        self._place = (parts.hostname, parts.port)
        self._key = f"Authorization: Bearer {key}"

    async def open(self) -> Connection:
        self._reader, self._writer = await asyncio.open_connection(*self._place, limit=1 << 22)
        return self

    def send(
        self, method: str, path: str, body: bytes = b"", ticket: str = "", accept: str = "*/*"
    ) -> None:
        sender = f"Matchmill-Ticket: {ticket}" if ticket else self._key
        head = f"{method} {path} HTTP/1.1\r\nHost: bench\r\n{sender}\r\nAccept: {accept}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)

    async def head(self) -> tuple[int, int]:
        """Return the status of an answer, and how long its body is."""
        text = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = text.partition("content-length: ")[2].partition("\r\n")[0]
        return int(text.split(" ", 2)[1]), int(length or 0)

    async def ask(self, method: str, path: str, body: Any = None, ticket: str = "") -> Any:
        self.send(method, path, b"" if body is None else json.dumps(body).encode(), ticket)
        content = await self._body(path)
        return json.loads(content) if content else None

    async def text(self, path: str) -> str:
        self.send("GET", path)
        return (await self._body(path)).decode()

    async def _body(self, path: str) -> bytes:
        status, length = await self.head()
        content = await self._reader.readexactly(length)
        if status >= 300:
            raise AssertionError(f"{path}: {status} {content[:300]!r}")
        return content

    async def lines(self) -> Any:
        while line := await self._reader.readline():
            yield line

    def close(self) -> None:
        self._writer.close()


class Load:
    def __init__(self, arguments: argparse.Namespace, server: ServerProcess, key: str) -> None:
        self._arguments = arguments
        self._server = server
        self._key = key
        self._rng = random.Random(1)
        self._end = 0.0
        self.tickets: dict[str, str] = {}
        self.read_up_to: dict[str, int] = {}
        self.latencies: list[float] = []
        self.requests: list[float] = []
        self.n_events = self.n_matches = self.n_changes = 0
        self.memory: list[float] = []
        self.cpu_seconds = 0.0

    def connection(self) -> Connection:
        return Connection(self._server.address, self._key)

    async def run(self) -> None:
        arguments = self._arguments
        started = time.perf_counter()
        await self._subscribe_all()
        print(f"{arguments.n:,} subscriptions in {time.perf_counter() - started:.1f} s")
        readers = [asyncio.create_task(self._read(f"s{n}")) for n in range(arguments.readers)]
        connection = await self.connection().open()
        while f"matchmill_streams {arguments.readers}.0\n" not in await connection.text("/metrics"):
            await asyncio.sleep(0.01)
        connection.close()
        self._end = time.monotonic() + arguments.seconds
        await asyncio.gather(
            *(self._publish(n) for n in range(arguments.publishers)),
            self._change(),
            self._acknowledge(),
            self._watch_memory(),
        )
        await asyncio.sleep(1.0)  # what is still on its way
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)

    async def _subscribe_all(self) -> None:
        connection = await self.connection().open()
        for first in range(0, self._arguments.n, _BATCH):
            rows = [
                {
                    "subscription_id": f"s{n}",
                    "expression": f"topic = {n} and price < {100 + n % 900}",
                }
                for n in range(first, min(first + _BATCH, self._arguments.n))
            ]
            answer = await connection.ask("POST", "/v1/subscriptions", rows)
            for one in answer["results"]:
                self.tickets[one["subscription_id"]] = one["ticket"]
        connection.close()

    async def _read(self, name: str) -> None:
        connection = await self.connection().open()
        try:
            path = f"/v1/subscriptions/{name}/matches"
            connection.send("GET", path, ticket=self.tickets[name], accept="text/event-stream")
            status, _ = await connection.head()
            assert status == 200
            async for line in connection.lines():
                if line.startswith(b"data: "):
                    match = json.loads(line[6:])
                    self.latencies.append(time.time() - match["event"]["sent_at"])
                    self.read_up_to[name] = match["seq"]
        finally:
            connection.close()

    def _event(self, sent_at: float) -> dict[str, Any]:
        arguments, rng = self._arguments, self._rng
        is_read = rng.random() < arguments.read_share
        topic = rng.randrange(arguments.readers if is_read else arguments.n)
        return {"topic": topic, "price": rng.randrange(100), "shop": "x", "sent_at": sent_at}

    async def _publish(self, _: int) -> None:
        connection = await self.connection().open()
        while time.monotonic() < self._end:
            now = time.time()
            events = [{"event": self._event(now)} for _ in range(self._arguments.batch)]
            started = time.perf_counter()
            answer = await connection.ask("POST", "/v1/events", events)
            self.requests.append(time.perf_counter() - started)
            self.n_events += len(events)
            self.n_matches += sum(result["n_matches"] for result in answer["results"])
        connection.close()

    async def _change(self) -> None:
        """Subscribe and unsubscribe, in turn."""
        connection = await self.connection().open()
        while time.monotonic() < self._end:
            body = {"subscription_id": "comes and goes", "expression": f"topic = {self.n_changes}"}
            made = await connection.ask("POST", "/v1/subscriptions", body)
            path = "/v1/subscriptions/comes%20and%20goes"
            await connection.ask("DELETE", path, ticket=made["ticket"])
            self.n_changes += 2
        connection.close()

    async def _acknowledge(self) -> None:
        connection = await self.connection().open()
        while time.monotonic() < self._end:
            for name, seq in list(self.read_up_to.items()):
                path, ticket = f"/v1/subscriptions/{name}/acknowledge", self.tickets[name]
                await connection.ask("POST", path, {"up_to": seq}, ticket)
                if time.monotonic() >= self._end:
                    break
            await asyncio.sleep(0.1)
        connection.close()

    async def _watch_memory(self) -> None:
        process = psutil.Process(self._server.process.pid)
        pause = max(1.0, self._arguments.seconds / 20)
        before = process.cpu_times()
        while time.monotonic() < self._end:
            self.memory.append(process.memory_info().rss / 2**20)
            await asyncio.sleep(min(pause, max(0.0, self._end - time.monotonic())))
        after = process.cpu_times()
        self.cpu_seconds = after.user + after.system - before.user - before.system


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the table."""
    n_files = 2 * arguments.readers + 1_000
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(n_files, 4096), most), most))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "served"
        url = None
        if arguments.store == "postgresql":
            url = stack.enter_context(running_server()).url
        key = new_key(folder, url=url)
        rate = ("--setting", "requests_per_second=1000000", "--setting", "request_burst=1000000")
        server = ServerProcess(folder, *rate, url=url)
        try:
            server.wait_ready()
            load = Load(arguments, server, key)
            asyncio.run(load.run())
        finally:
            server.stop()
    _report(arguments, load)
    return 0


def _report(arguments: argparse.Namespace, load: Load) -> None:
    seconds = arguments.seconds
    latencies, requests = sorted(load.latencies), sorted(load.requests)

    def part(values: list[float], share: float) -> str:
        return f"{1000 * values[int(share * (len(values) - 1))]:.1f} ms" if values else "–"

    memory = [f"{megabytes:,.0f}" for megabytes in load.memory]
    rows = [
        ("events published", f"{load.n_events / seconds:,.0f} / s"),
        ("matches stored", f"{load.n_matches / seconds:,.0f} / s"),
        ("matches delivered", f"{len(latencies) / seconds:,.0f} / s"),
        ("subscribed and unsubscribed", f"{load.n_changes / seconds:,.0f} / s"),
        ("publish to delivery, p50", part(latencies, 0.5)),
        ("publish to delivery, p99", part(latencies, 0.99)),
        ("request to publish, p50", part(requests, 0.5)),
        ("request to publish, p99", part(requests, 0.99)),
        ("server's CPU per event", f"{1e6 * load.cpu_seconds / max(1, load.n_events):,.0f} µs"),
        ("memory, MiB", " ".join(memory)),
    ]
    title = f"service, {arguments.store}, {arguments.n:,} subscriptions, {seconds:.0f} s"
    print_table(title, ("what", "figure"), rows)
