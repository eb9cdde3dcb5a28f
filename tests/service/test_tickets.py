"""Tickets and expiry: who has none gets nothing, and an end is exact."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from matchmill.errors import StoreError
from matchmill.service.database.open import DATABASE_NAME
from matchmill.service.json_body import iso
from matchmill.service.secrets import SECRET_NAME, SecretKey
from tests.support.running_service import START, Caller, Local, local_service, new_key

OWN = [
    ("GET", "/v1/subscriptions/a", None, 200),
    ("GET", "/v1/subscriptions/a/matches", None, 200),
    ("POST", "/v1/subscriptions/a/acknowledge", {"up_to": 1}, 204),
    ("GET", "/v1/subscriptions/a/dead-letters", None, 200),
    ("POST", "/v1/subscriptions/a/dead-letters/retry", None, 200),
    ("PATCH", "/v1/subscriptions/a", {"ttl_seconds": None}, 200),
    ("DELETE", "/v1/subscriptions/a", None, 204),
]


def ask(local: Local, method: str, path: str, body: Any, headers: dict[str, str]) -> int:
    status: int = local.client.request(method, path, json=body, headers=headers).status_code
    return status


def test_a_ticket_is_needed_and_must_be_the_right_one(local: Local) -> None:
    caller = local.caller()
    ticket, other = caller.subscribe("a", "x = 1"), caller.subscribe("b", "x = 1")
    for method, path, body, status in OWN:
        assert ask(local, method, path, body, {}) == 401
        for wrong in ("", "nonsense", other, ticket + "x", ticket[:-1], "x" * 10_000):
            assert ask(local, method, path, body, {"Matchmill-Ticket": wrong}) == 404
        assert ask(local, method, path, body, {"Matchmill-Ticket": ticket}) == status
    assert ask(local, *OWN[0][:3], {"Matchmill-Ticket": ticket}) == 404  # unsubscribed


def test_a_key_is_no_ticket_but_for_admins(local: Local) -> None:
    caller = local.caller()
    caller.subscribe("a", "x = 1")
    for method, path, body, _ in OWN[1:-2]:
        assert ask(local, method, path, body, caller.headers) == 401
    answer = caller.get("/v1/subscriptions/a/matches").json()
    assert answer["detail"] == "the header Matchmill-Ticket is missing"
    assert caller.patch("/v1/subscriptions/a", {"ttl_seconds": 5}).status_code == 200
    reader = local.caller(scopes=("read", "subscribe", "publish"))
    assert reader.get("/v1/subscriptions/a").status_code == 200
    assert reader.delete("/v1/subscriptions/a").status_code == 403
    assert reader.patch("/v1/subscriptions/a", {"ttl_seconds": 5}).status_code == 403
    assert caller.delete("/v1/subscriptions/a").status_code == 204


def test_secrets_are_not_in_the_store(local: Local) -> None:
    caller = local.caller()
    answer = caller.post(
        "/v1/subscriptions", {"expression": "x = 1", "webhook": {"url": "https://example.org/"}}
    ).json()
    key = caller.headers["Authorization"].removeprefix("Bearer ")
    with sqlite3.connect(local.folder / DATABASE_NAME) as connection:
        dump = "\n".join(connection.iterdump())
    connection.close()
    assert "example.org" in dump
    for secret in (answer["ticket"], answer["webhook_secret"], key):
        assert secret not in dump
        assert secret.encode().hex() not in dump.lower()


def test_the_secret_key_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / SECRET_NAME
    key = SecretKey.read(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert SecretKey.read(path).fingerprint == key.fingerprint
    path.chmod(0o644)
    with pytest.raises(StoreError, match="chmod 600"):
        SecretKey.read(path)
    path.chmod(0o600)
    path.write_bytes(b"short")
    with pytest.raises(StoreError, match="5 bytes"):
        SecretKey.read(path)


def test_a_store_with_another_secret_key_is_rejected(tmp_path: Path) -> None:
    new_key(tmp_path)
    (tmp_path / SECRET_NAME).unlink()
    with pytest.raises(StoreError, match="another secret key"):
        new_key(tmp_path)


# -- expiry ---------------------------------------------------------------------------------------


def test_an_expired_one_gets_nothing_from_its_moment_on(local: Local) -> None:
    caller = local.caller()
    ticket = caller.subscribe("a", "x = 1", ttl_seconds=10)
    local.clock.move(9.999999)
    assert caller.publish({"x": 1}) == 1
    assert len(caller.matches("a", ticket)) == 1
    local.clock.move(0.000001)
    assert caller.publish({"x": 1}) == 0
    assert caller.post("/v1/match", {"event": {"x": 1}}).json() == {"matches": []}
    for method, path, body, _ in OWN:
        if method != "PATCH":  # which brings it back, as `test_clock.py` shows
            assert ask(local, method, path, body, {"Matchmill-Ticket": ticket}) == 404
    assert caller.get("/v1/subscriptions").json()["subscriptions"] == []
    again = caller.subscribe("a", "x = 1")
    assert caller.matches("a", again) == []
    assert caller.publish({"x": 1}) == 1


def test_renewing_counts_from_now(local: Local) -> None:
    caller = local.caller()
    ticket = caller.subscribe("a", "x = 1", ttl_seconds=10)
    local.clock.move(5)
    path = "/v1/subscriptions/a"
    renewed = caller.patch(path, {"ttl_seconds": 20}, ticket)
    assert renewed.json()["expires_at"] == iso(START + 25_000_000)
    headers = {"Matchmill-Ticket": ticket}
    assert local.client.patch(path, content=b"{}", headers=headers).status_code == 415
    local.clock.move(19)
    assert caller.publish({"x": 1}) == 1
    local.clock.move(1)
    assert caller.publish({"x": 1}) == 0


def test_cleaning_changes_no_answer(local: Local) -> None:
    caller = local.caller()
    caller.subscribe("a", "x = 1", ttl_seconds=10)
    caller.subscribe("b", "x = 1", ttl_seconds=20)
    assert caller.publish({"x": 1}) == 2
    local.clock.move(10)
    assert caller.publish({"x": 1}) == 1
    for _ in range(2):
        local.service.cleanup.clean()
        assert caller.publish({"x": 1}) == 1
        local.clock.move(9)


def test_ttl_is_bounded(tmp_path: Path) -> None:
    with local_service(tmp_path / "s", default_ttl_seconds=100, max_ttl_seconds=1000) as local:
        caller: Caller = local.caller()
        made = caller.post("/v1/subscriptions", {"expression": "x = 1"}).json()
        assert made["expires_at"] == iso(START + 100_000_000)
        body = {"expression": "x = 1", "ttl_seconds": 1001}
        assert caller.post("/v1/subscriptions", body).status_code == 400
