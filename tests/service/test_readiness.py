"""/readyz: what is not ready, and when it is again. And the same event id with another event."""

from __future__ import annotations

import sqlite3
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from matchmill.errors import StoreError
from matchmill.service import health as health_module
from matchmill.service import tenant_engines as engines_module
from matchmill.service.database.open import DATABASE_NAME
from matchmill.service.tenant_engines import TenantEngines
from tests.support.running_service import Caller, Local, local_service, wait_until


def test_a_ready_service_names_its_parts(local: Local) -> None:
    answer = local.client.get("/readyz")
    assert answer.status_code == 200
    parts = {"store": "ready", "disk": "ready", "kernels": "ready", "engines": "ready"}
    assert answer.json() == {"status": "ready", "checks": parts}


def test_a_store_that_is_locked_is_not_ready(tmp_path: Path) -> None:
    with local_service(tmp_path / "s", store_timeout_seconds=1) as local:
        caller = local.caller()
        other = sqlite3.connect(tmp_path / "s" / DATABASE_NAME, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        answer = caller.post("/v1/subscriptions", {"expression": "x = 1"})
        assert (answer.status_code, answer.json()["code"]) == (503, "store")
        assert answer.headers["Retry-After"] == "1"
        answer = local.client.get("/readyz")
        assert (answer.status_code, answer.json()["code"]) == (503, "not_ready")
        assert answer.json()["checks"]["store"] != "ready"
        assert answer.json()["checks"]["engines"] == "ready"
        other.execute("ROLLBACK")
        other.close()
        wait_until(lambda: local.client.get("/readyz").status_code == 200)
        assert caller.post("/v1/subscriptions", {"expression": "x = 1"}).status_code == 201


def test_a_disk_that_is_nearly_full_is_not_ready(
    local: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = namedtuple("about", "f_bavail f_frsize")
    monkeypatch.setattr(health_module.os, "statvfs", lambda _: about(1, 4096))
    answer = local.client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["checks"]["disk"] == "too little space is free"

    def failing(*_: Any) -> None:
        raise OSError("read-only")

    monkeypatch.setattr(Path, "write_bytes", failing)
    answer = local.client.get("/readyz")
    assert answer.json()["checks"]["disk"] == "the folder cannot be written to"


def test_kernels_are_ready_before_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them: the first event waits for none."""
    done: list[str] = []
    monkeypatch.setattr(engines_module, "_is_warm", False)
    monkeypatch.setattr(engines_module, "warm", lambda progress: done.append("warm"))
    with local_service(tmp_path / "s"):
        assert done == ["warm"]
    with local_service(tmp_path / "t"):
        assert done == ["warm"]  # once in a process


def test_loading_is_tried_again_when_the_store_was_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_calls = 0
    load = TenantEngines.load

    def sometimes(engines: TenantEngines) -> None:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 1:
            raise StoreError("away")
        load(engines)

    monkeypatch.setattr(TenantEngines, "load", sometimes)
    with local_service(tmp_path / "s") as local:
        assert n_calls == 2
        assert local.caller().publish({"x": 1}) == 0


def test_changes_are_applied_before_an_event_needs_them(local: Local) -> None:
    caller = local.caller()
    assert caller.publish({"x": 1}) == 0
    body = [{"expression": f"x = {n}"} for n in range(3_000)]
    assert caller.post("/v1/subscriptions", body).json()["n_accepted"] == 3_000
    wait_until(lambda: local.service.engines.n_subscriptions() == 3_000)
    assert caller.publish({"x": 1}) == 1


# -- event ids ------------------------------------------------------------------------------------


def test_an_event_id_with_another_event_is_rejected(local: Local, caller: Caller) -> None:
    ticket = caller.subscribe("a", "x > 0")
    event = {"x": 1, "y": {"a": 1, "b": [1, 2]}}
    assert caller.publish(event, event_id="e") == 1
    assert caller.publish(event, event_id="e") == 1
    assert caller.publish(dict(reversed(event.items())), event_id="e") == 1  # the same event
    answer = caller.post("/v1/events", {"event": event | {"x": 2}, "event_id": "e"})
    assert (answer.status_code, answer.json()["code"]) == (409, "event_id_taken")
    many = [
        {"event": {"x": 1}, "event_id": "f"},
        {"event": {"x": 2}, "event_id": "f"},
        {"event": {"x": 1}, "event_id": "f"},
        {"event": {"x": 3}, "event_id": "e"},
    ]
    answer = caller.post("/v1/events", many)
    results = answer.json()["results"]
    assert [one.get("status") for one in results] == [None, 409, None, 409]
    assert [match["event_id"] for match in caller.matches("a", ticket)] == ["e", "f"]
