"""Anonymous publishing (Expensive operators, section 5.1) over HTTP, through a real server."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from tests.support.running_service import Caller, new_key, running


@pytest.mark.slow
def test_anyone_may_publish_and_do_nothing_else(tmp_path: Path) -> None:
    key = new_key(tmp_path / "s")
    other = new_key(tmp_path / "s", tenant="other")
    with (
        running(tmp_path / "s", "--setting", "anonymous_tenant=acme") as server,
        httpx2.Client(base_url=server.address, timeout=60) as client,
    ):
        subscriber, nobody = Caller(client, key), Caller(client, None)
        ticket = subscriber.subscribe("a", "x = 1")
        Caller(client, other).subscribe("b", "x = 1")  # of another tenant: not reached
        assert nobody.publish({"x": 1}, event_id="e1") == 1
        assert nobody.publish({"x": 1}, event_id="e1") == 1  # the same event
        assert nobody.publish({"x": 2}) == 0
        lines = b'{"event": {"x": 1}}\n{"event": {"x": 3}}\n'
        headers = {"Content-Type": "application/x-ndjson"}
        response = client.post("/v1/events", content=lines, headers=headers)
        assert response.status_code == 200
        assert len(response.text.splitlines()) == 2
        for one in (
            nobody.post("/v1/match", {"event": {"x": 1}}),
            nobody.post("/v1/subscriptions", {"expression": "true"}),
            nobody.get("/v1/subscriptions"),
            nobody.get("/v1/stats"),
            Caller(client, "mk_wrong").post("/v1/events", {"event": {"x": 1}}),
        ):
            assert one.status_code == 401
        assert nobody.get("/v1/subscriptions/a/matches").status_code in (401, 404)
        found = subscriber.matches("a", ticket)
        assert [one["event"] for one in found] == [{"x": 1}, {"x": 1}]
    with (
        running(tmp_path / "s") as server,
        httpx2.Client(base_url=server.address, timeout=60) as client,
    ):
        assert Caller(client, None).post("/v1/events", {"event": {}}).status_code == 401


@pytest.mark.slow
def test_without_its_tenant_nobody_is_anonymous(tmp_path: Path) -> None:
    new_key(tmp_path / "s")
    with (
        running(tmp_path / "s", "--setting", "anonymous_tenant=misspelt") as server,
        httpx2.Client(base_url=server.address, timeout=60) as client,
    ):
        assert Caller(client, None).post("/v1/events", {"event": {}}).status_code == 401
