"""Several processes on one store in PostgreSQL; and what a real server writes to its log."""

from __future__ import annotations

import shutil
from pathlib import Path

import httpx2
import pytest

from matchmill.service.secrets import SECRET_NAME
from tests.support.postgres import Server
from tests.support.running_service import Caller, new_key, running, server_events, wait_until


@pytest.mark.slow
def test_two_processes_are_one_service(tmp_path: Path, postgres_server: Server) -> None:
    postgres_server.empty()
    url = postgres_server.url
    key = new_key(tmp_path / "one", url=url)
    (tmp_path / "two").mkdir()
    shutil.copy(tmp_path / "one" / SECRET_NAME, tmp_path / "two")
    with (
        running(tmp_path / "one", url=url) as one,
        running(tmp_path / "two", url=url) as two,
        httpx2.Client(base_url=one.address, timeout=60) as first,
        httpx2.Client(base_url=two.address, timeout=60) as second,
    ):
        here, there = Caller(first, key), Caller(second, key)
        for n in range(10):  # what one has acknowledged, the other one matches at once
            ticket = here.subscribe(f"a{n}", f"x = {n}")
            assert there.publish({"x": n}, event_id=f"e{n}") == 1
            assert here.publish({"x": n}, event_id=f"e{n}") == 1  # the same event
            assert len(here.matches(f"a{n}", ticket)) == 1
            assert there.delete(f"/v1/subscriptions/a{n}", ticket).status_code == 204
            assert here.publish({"x": n}) == 0
        ticket = here.subscribe("a", "y = 1")
        path = "/v1/subscriptions/a/matches"
        headers = {"Matchmill-Ticket": ticket, "Accept": "text/event-stream"}
        with first.stream("GET", path, headers=headers) as response:
            events = server_events(response)
            for n in range(3):  # a reader here is woken by a match there
                there.publish({"y": 1, "n": n})
                assert next(events)[2]["event"]["n"] == n
            there.delete("/v1/subscriptions/a", ticket)
            assert next(events)[0] == "end"


@pytest.mark.slow
def test_it_goes_on_when_the_database_was_away(tmp_path: Path, postgres_server: Server) -> None:
    postgres_server.empty()
    key = new_key(tmp_path / "s", url=postgres_server.url)
    with (
        running(tmp_path / "s", url=postgres_server.url) as server,
        httpx2.Client(base_url=server.address, timeout=60) as client,
    ):
        caller = Caller(client, key)
        ticket = caller.subscribe("a", "x = 1")
        postgres_server.kill()
        statuses = {caller.post("/v1/events", {"event": {"x": 1}}).status_code for _ in range(5)}
        assert statuses == {503}
        postgres_server.start()
        published = {"event": {"x": 1}, "event_id": "e"}
        wait_until(lambda: caller.post("/v1/events", published).status_code == 200)
        assert caller.post("/v1/events", published).json() == {"event_id": "e", "n_matches": 1}
        path = "/v1/subscriptions/a/matches"
        wait_until(lambda: caller.get(path, ticket).status_code == 200)
        assert [match["event_id"] for match in caller.matches("a", ticket)] == ["e"]
        wait_until(lambda: client.get("/readyz").status_code == 200)


@pytest.mark.slow
def test_no_secrets_in_the_log(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    key = new_key(folder)
    with running(folder) as server, httpx2.Client(base_url=server.address) as client:
        caller = Caller(client, key)
        body = {"subscription_id": "visible", "expression": "x = 1"}
        body |= {"webhook": {"url": "http://127.0.0.1:1/path-of-the-hook"}}  # type: ignore[dict-item]
        made = caller.post("/v1/subscriptions", body).json()
        caller.publish({"x": 1, "private": "content of an event"})
        caller.matches("visible", made["ticket"])
        new = caller.post("/v1/keys", {"name": "n", "scopes": ["read"]}).json()
        client.get(f"/v1/subscriptions/{made['ticket']}?key={key}")
        client.get("/v1/keys", headers={"Authorization": f"Bearer {key}x"})
        client.post(
            "/v1/events", content=b'{"event": "content of a bad event"', headers=caller.headers
        )
        client.get("/metrics")
        metrics = client.get("/metrics").text
    log = server.messages()
    assert '"route": "POST /v1/subscriptions"' in log
    secrets = (made["ticket"], made["webhook_secret"], key, new["key"], key.split("_")[-1])
    for secret in (*secrets, "content of", "path-of-the-hook"):
        assert secret not in log
        assert secret not in metrics
