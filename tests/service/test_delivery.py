"""Long polls and streams from a real server; limits of mailboxes and of who only watches."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import psutil
import pytest

from matchmill.service.database.open import open_store
from matchmill.service.hub import Watcher
from tests.support.running_service import (
    Caller,
    Local,
    ServerProcess,
    local_service,
    new_key,
    running,
    server_events,
    wait_until,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("delivery") / "served"


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ServerProcess]:
    new_key(folder)
    with running(folder, "--setting", "heartbeat_seconds=1", "--setting", "max_live=10") as server:
        yield server


@pytest.fixture
def remote(server: ServerProcess, folder: Path) -> Iterator[Caller]:
    with httpx2.Client(base_url=server.address, timeout=60) as client:
        yield Caller(client, new_key(folder))


def opened(remote: Caller, path: str, **headers: str) -> Any:
    headers = {"Accept": "text/event-stream"} | headers
    return remote.client.stream("GET", path, headers=headers)


def test_a_stream_goes_on_where_it_was_left(remote: Caller) -> None:
    ticket = remote.subscribe("streamed", "s = 1")
    path = "/v1/subscriptions/streamed/matches"
    for n in range(3):
        remote.publish({"s": 1, "n": n})
    with opened(remote, path, **{"Matchmill-Ticket": ticket}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        events = server_events(response)
        seen = [next(events) for _ in range(3)]
        assert [data["event"]["n"] for _, _, data in seen] == [0, 1, 2]
        assert [(kind, data["seq"]) for kind, _, data in seen] == [
            ("match", int(seq)) for _, seq, _ in seen
        ]
        remote.publish({"s": 1, "n": 3})
        assert next(events)[2]["event"]["n"] == 3
    headers = {"Matchmill-Ticket": ticket, "Last-Event-ID": seen[1][1]}
    with opened(remote, path, **headers) as response:
        events = server_events(response)
        assert [next(events)[2]["event"]["n"] for _ in range(2)] == [2, 3]
    remote.post("/v1/subscriptions/streamed/acknowledge", {"up_to": int(seen[2][1])}, ticket)
    with opened(remote, path, **{"Matchmill-Ticket": ticket}) as response:
        events = server_events(response)
        assert next(events)[2]["event"]["n"] == 3
        assert remote.delete("/v1/subscriptions/streamed", ticket).status_code == 204
        assert next(events)[0] == "end"


def test_a_silent_stream_has_a_heartbeat(remote: Caller) -> None:
    ticket = remote.subscribe("silent", "s = 2")
    with opened(
        remote, "/v1/subscriptions/silent/matches", **{"Matchmill-Ticket": ticket}
    ) as response:
        lines = response.iter_lines()
        assert next(line for line in lines if line.startswith(":")) == ": heartbeat"


def test_a_long_poll_ends_when_there_is_something(remote: Caller) -> None:
    ticket = remote.subscribe("polled", "p = 1")
    answers: list[Any] = []

    def poll() -> None:
        answers.append(remote.matches("polled", ticket, wait=60))

    waiting = threading.Thread(target=poll)
    waiting.start()
    wait_until(lambda: "matchmill_streams 1.0\n" in remote.client.get("/metrics").text)
    remote.publish({"p": 1})
    waiting.join()
    assert [len(answer) for answer in answers] == [1]
    assert remote.matches("polled", ticket, after=answers[0][0]["seq"], wait=1) == []


def test_the_live_view_shows_matches_and_tells_of_drops(remote: Caller) -> None:
    remote.subscribe("live1", "live = 1")
    remote.subscribe("live2", "live = 1")
    with opened(remote, "/v1/live", **remote.headers) as response:
        events = server_events(response)
        wait_until(lambda: "matchmill_streams 1.0\n" in remote.client.get("/metrics").text)
        remote.publish({"live": 2})
        remote.publish({"live": 1}, event_id="seen")
        kind, _, data = next(events)
        assert (kind, data["event_id"], data["n_matches"]) == ("match", "seen", 2)
        assert data["subscription_ids"] == ["live1", "live2"]
        remote.post("/v1/events", [{"event": {"live": 1}} for _ in range(50)])
        # They arrive in a few slices; of each, ten find room, and the others are counted.
        n_seen = n_dropped = 0
        while n_seen + n_dropped < 50:
            kind, _, data = next(events)
            n_seen += kind == "match"
            n_dropped += data.get("n_dropped", 0)
        assert n_seen + n_dropped == 50
        assert n_dropped > 0


def test_broken_requests_leave_no_trace_but_a_line(remote: Caller, server: ServerProcess) -> None:
    parts = urlsplit(server.address)
    before = server.messages().count('"route": "POST /v1/events"')
    head = "POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: {}\r\nContent-Type: {}\r\n"
    key = remote.headers["Authorization"]
    cut_off = head.format(key, "application/json") + 'Content-Length: 100\r\n\r\n{"event'
    lines = head.format(key, "application/x-ndjson")
    lines += 'Transfer-Encoding: chunked\r\n\r\n14\r\n{"event": {"cut": 1}}\r\n'
    for text in ("nonsense\r\n\r\n", "GET / HTTP/9\r\n\r\n", "x" * 100_000, cut_off, lines):
        address = (parts.hostname, parts.port)
        # It may hang up before the end.
        with socket.create_connection(address) as connection, suppress(OSError):
            connection.sendall(text.encode())
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
    wait_until(lambda: server.messages().count('"route": "POST /v1/events"') >= before + 2)
    assert remote.publish({}) == 0
    assert "Traceback" not in server.messages()


def test_who_only_watches_cannot_fill_the_memory() -> None:
    watcher = Watcher(3)
    for n in range(5):
        watcher.put(str(n))
    assert watcher.take() == (["0", "1", "2"], 2)
    assert watcher.take() == ([], 0)


def test_a_full_mailbox_tells_what_it_dropped(tmp_path: Path) -> None:
    with local_service(tmp_path / "s", max_mailbox=3) as local:
        caller = local.caller()
        ticket = caller.subscribe("a", "x = 1")
        for n in range(5):
            caller.publish({"x": 1, "n": n})
        answer = caller.get("/v1/subscriptions/a/matches", ticket).json()
        assert [match["event"]["n"] for match in answer["matches"]] == [2, 3, 4]
        assert answer["n_dropped"] == 2


def test_a_digest_after_so_many_a_minute(local: Local) -> None:
    caller = local.caller()
    local.clock.now -= local.clock.now % 60_000_000  # the beginning of a minute
    ticket = caller.subscribe("a", "x = 1", max_per_minute=2)
    for _ in range(5):
        assert caller.publish({"x": 1}) == 1
        local.clock.move(1)
    assert [match["seq"] for match in caller.matches("a", ticket)] == [1, 2]
    local.clock.move(60)
    *_, digest = caller.matches("a", ticket)
    assert (digest["seq"], digest["digest"]["n_matches"]) == (3, 3)
    assert digest["digest"]["first_at"] < digest["digest"]["last_at"]


def test_there_may_be_so_many_streams(tmp_path: Path) -> None:
    with local_service(tmp_path / "s", max_streams=1) as local:
        caller = local.caller()
        ticket = caller.subscribe("a", "x = 1")
        local.service.hub.n_streams = 1
        headers = {"Matchmill-Ticket": ticket, "Accept": "text/event-stream"}
        answer = caller.client.get("/v1/subscriptions/a/matches", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (503, "too_many_streams")
        local.service.hub.n_streams = 0


@pytest.mark.slow
def test_it_stops_in_good_order_while_streams_are_open(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    key = new_key(folder)
    with running(folder) as server, httpx2.Client(base_url=server.address, timeout=60) as client:
        caller = Caller(client, key)
        ticket = caller.subscribe("a", "x = 1")
        headers = {"Matchmill-Ticket": ticket, "Accept": "text/event-stream"}
        with client.stream("GET", "/v1/subscriptions/a/matches", headers=headers) as response:
            caller.publish({"x": 1})
            events = server_events(response)
            assert next(events)[0] == "match"
            assert server.stop() == 0
            assert list(events) == []
    with running(folder) as server, httpx2.Client(base_url=server.address) as client:
        assert len(Caller(client, key).matches("a", ticket)) == 1


# -- who may go on reading ------------------------------------------------------------------------


def test_a_stream_ends_when_its_key_is_revoked(remote: Caller, folder: Path) -> None:
    admin = Caller(remote.client, new_key(folder, "other"))
    made = admin.post("/v1/keys", {"name": "reader", "scopes": ["read"]}).json()
    headers = {"Authorization": f"Bearer {made['key']}"}
    with opened(remote, "/v1/live", **headers) as response:
        events = server_events(response)
        wait_until(lambda: "matchmill_streams 1.0\n" in remote.client.get("/metrics").text)
        assert admin.delete(f"/v1/keys/{made['key_id']}").status_code == 204
        assert next(events) == ("end", "", {"reason": "the key was revoked"})
        assert list(events) == []


@pytest.mark.slow
def test_a_stream_ends_when_its_key_is_revoked_elsewhere(
    remote: Caller, folder: Path, server: ServerProcess
) -> None:
    """As by `matchmill keys revoke`: the service looks once a second."""
    key = new_key(folder, "third", ("read",))
    with opened(remote, "/v1/live", Authorization=f"Bearer {key}") as response:
        events = server_events(response)
        wait_until(lambda: "matchmill_streams 1.0\n" in remote.client.get("/metrics").text)
        store = open_store(folder, None)
        with store.writing() as writing:
            tenant = writing.tenant("third")
            assert tenant is not None
            assert writing.revoke_key(tenant, key.split("_")[1])
        store.close()
        assert next(events)[0] == "end"


def test_a_stream_ends_when_its_ticket_is_replaced(remote: Caller) -> None:
    ticket = remote.subscribe("replaced", "r = 1")
    path = "/v1/subscriptions/replaced/matches"
    with opened(remote, path, **{"Matchmill-Ticket": ticket}) as response:
        events = server_events(response)
        remote.publish({"r": 1})
        assert next(events)[0] == "match"
        answer = remote.put("/v1/subscriptions/replaced", {"expression": "r = 1"}, "n" * 43)
        assert answer.status_code == 200
        remote.publish({"r": 1})
        assert next(events)[0] == "end"


def test_a_long_poll_ends_when_its_sender_is_gone(remote: Caller, server: ServerProcess) -> None:
    ticket = remote.subscribe("abandoned", "a = 1")
    parts = urlsplit(server.address)
    path = "/v1/subscriptions/abandoned/matches?wait=60"
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nMatchmill-Ticket: {ticket}\r\n\r\n"
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        connection.sendall(head.encode())
        wait_until(lambda: "matchmill_streams 1.0\n" in remote.client.get("/metrics").text)
    wait_until(lambda: "matchmill_streams 0.0\n" in remote.client.get("/metrics").text, 30)


# -- connections that send nothing ----------------------------------------------------------------


def test_silent_connections_do_not_keep_others_out(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    new_key(folder)
    with running(folder, "--setting", "max_silent_connections=20") as server:
        parts = urlsplit(server.address)
        address = (parts.hostname, parts.port)
        silent = [socket.create_connection(address) for _ in range(30)]
        for connection in silent:
            connection.sendall(b"GET /healthz HTTP/1.1\r\n")
        assert httpx2.get(f"{server.address}/healthz").status_code == 200
        silent[0].settimeout(60)
        with suppress(ConnectionResetError):  # the oldest is closed
            assert silent[0].recv(1) == b""
        silent[-1].sendall(b"Host: x\r\n\r\n")  # the latest is not
        silent[-1].settimeout(60)
        assert silent[-1].recv(12) == b"HTTP/1.1 200"
        for connection in silent:
            connection.close()


def test_a_flood_of_silent_connections_leaves_descriptors(tmp_path: Path) -> None:
    """Were there none left for a moment, nothing would be accepted for a second."""
    folder = tmp_path / "served"
    new_key(folder)
    with running(folder) as server:
        parts = urlsplit(server.address)
        process = psutil.Process(server.process.pid)
        process.rlimit(psutil.RLIMIT_NOFILE, (300, 300))
        process.suspend()
        silent = []
        for _ in range(600):  # all are in the queue before the first is accepted
            silent.append(one := socket.socket())
            one.setblocking(False)
            one.connect_ex((parts.hostname, parts.port))
        process.resume()
        assert httpx2.get(f"{server.address}/healthz", timeout=60).status_code == 200
        assert "out of system resource" not in server.messages()
        for one in silent:
            one.close()


def test_a_header_that_does_not_end_is_given_up(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    new_key(folder)
    with running(folder, "--setting", "request_seconds=1") as server:
        parts = urlsplit(server.address)
        with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.1 200"
            connection.sendall(b"GET /healthz HTTP/1.1\r\n")  # and no more
            with suppress(ConnectionResetError):
                while connection.recv(4096):
                    pass
