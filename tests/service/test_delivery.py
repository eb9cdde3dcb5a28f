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
import pytest

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
        told = [next(events) for _ in range(11)]
        assert [kind for kind, _, _ in told] == ["match"] * 10 + ["dropped"]
        assert told[-1][2] == {"n_dropped": 40}


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
