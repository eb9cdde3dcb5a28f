"""The endpoints, one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from matchmill.service.json_body import iso
from tests.support.running_service import START, Caller, Local, local_service

DAY = 24 * 60 * 60


def error_of(answer: Any, status: int, code: str) -> dict[str, Any]:
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), answer.text
    error: dict[str, Any] = answer.json()["error"]
    return error


# -- subscriptions --------------------------------------------------------------------------------


def test_subscribe_publish_read_acknowledge(caller: Caller) -> None:
    ticket = caller.subscribe("u42", "origin = 'JFK' and dep_delay > 60")
    assert caller.publish({"origin": "JFK", "dep_delay": 75}, event_id="e1") == 1
    assert caller.publish({"origin": "LGA", "dep_delay": 75}) == 0
    (match,) = caller.matches("u42", ticket)
    assert match == {
        "seq": 1,
        "event_id": "e1",
        "event": {"origin": "JFK", "dep_delay": 75},
        "matched_at": iso(START),
    }
    assert caller.post("/v1/subscriptions/u42/ack", {"up_to": 1}, ticket).status_code == 204
    assert caller.matches("u42", ticket) == []


def test_an_id_is_given_if_there_is_none(caller: Caller) -> None:
    answer = caller.post("/v1/subscriptions", {"expression": "x = 1"})
    assert answer.status_code == 201
    made = answer.json()
    assert set(made) == {"id", "ticket", "expires_at"}
    assert made["expires_at"] == iso(START + DAY * 1_000_000)
    shown = caller.get(f"/v1/subscriptions/{made['id']}", made["ticket"]).json()
    assert (shown["expression"], shown["pending"], shown["webhook"]) == ("x = 1", 0, None)


def test_a_bad_expression_is_told_with_its_place(caller: Caller) -> None:
    answer = caller.post("/v1/subscriptions", {"expression": "price <=\n  frum 3"})
    error = error_of(answer, 422, "bad_expression")
    assert error["field"] == "expression"
    assert error["position"] == {"offset": 11, "line": 2, "column": 3, "length": 4}


def test_a_taken_id_is_refused(caller: Caller) -> None:
    ticket = caller.subscribe("a", "x = 1")
    answer = caller.post("/v1/subscriptions", {"id": "a", "expression": "x = 2"})
    error_of(answer, 409, "duplicate_id")
    assert caller.publish({"x": 2}) == 0
    assert caller.delete("/v1/subscriptions/a", ticket).status_code == 204
    again = caller.subscribe("a", "x = 2")
    error_of(caller.get("/v1/subscriptions/a", ticket), 404, "not_found")
    assert caller.publish({"x": 2}) == 1
    assert len(caller.matches("a", again)) == 1


def test_many_subscriptions_at_once(caller: Caller) -> None:
    body = [
        {"id": "a", "expression": "x = 1"},
        {"id": "b", "expression": "x ="},
        {"id": "a", "expression": "x = 2"},
        {"id": "c/d", "expression": "x = 2"},
        {"expression": "x = 1", "nonsense": 1},
        {"expression": "x = 1"},
    ]
    answer = caller.post("/v1/subscriptions/batch", {"subscriptions": body}).json()
    assert (answer["accepted"], answer["rejected"]) == (2, 4)
    codes = [result.get("error", {}).get("code") for result in answer["results"]]
    assert codes == [None, "bad_expression", "duplicate_id", "bad_request", "bad_request", None]
    assert caller.publish({"x": 1}) == 2


def test_the_list_goes_on_page_by_page(caller: Caller) -> None:
    for name in "dacb":
        caller.subscribe(name, "x = 1")
    first = caller.get("/v1/subscriptions", limit=3).json()
    assert ([row["id"] for row in first["subscriptions"]], first["next"]) == (["a", "b", "c"], "c")
    last = caller.get("/v1/subscriptions", limit=3, after="c").json()
    assert [row["id"] for row in last["subscriptions"]] == ["d"]
    assert "next" not in last


def test_there_may_be_so_many_subscriptions(tmp_path: Path) -> None:
    with local_service(tmp_path / "served", max_subscriptions=1) as local:
        caller = local.caller()
        caller.subscribe("a", "x = 1")
        answer = caller.post("/v1/subscriptions", {"expression": "x = 2"})
        error_of(answer, 409, "quota")
        local.caller("another").subscribe("a", "x = 1")


# -- events ---------------------------------------------------------------------------------------


def test_a_repeated_event_does_nothing_twice(caller: Caller) -> None:
    ticket = caller.subscribe("a", "x = 1")
    assert caller.publish({"x": 1}, event_id="e") == 1
    assert caller.publish({"x": 2}, event_id="e") == 1
    body = {"events": [{"event": {"x": 1}, "event_id": name} for name in ("e", "f", "f")]}
    results = caller.post("/v1/events/batch", body).json()["results"]
    assert [result["matched"] for result in results] == [1, 1, 1]
    assert [match["event_id"] for match in caller.matches("a", ticket)] == ["e", "f"]


def test_bad_events_of_many_are_set_aside(caller: Caller) -> None:
    caller.subscribe("a", "x = 1")
    events: list[Any] = [
        {"event": {"x": 1}},
        {"event": {"x": 2**70}},
        {"event": 3},
        {"even": {}},
        {"event": {"x": 1}},
    ]
    results = caller.post("/v1/events/batch", {"events": events}).json()["results"]
    codes = [result.get("error", {}).get("code") for result in results]
    assert codes == [None, "bad_event", "bad_request", "bad_request", None]
    assert [result.get("matched") for result in results] == [1, None, None, None, 1]
    error_of(caller.post("/v1/events", {"event": {"x": 2**70}}), 422, "bad_event")


def test_events_as_lines(caller: Caller) -> None:
    caller.subscribe("a", "x = 1")
    lines = b'{"event": {"x": 1}}\n\nnonsense\n{"event": {"x": 2}}\n[1]\n{"event": {"x": 1}}'
    answer = caller.client.post(
        "/v1/events/stream",
        content=lines,
        headers=caller.headers | {"Content-Type": "application/x-ndjson"},
    )
    results = [json.loads(line) for line in answer.text.splitlines()]
    assert [result.get("matched") for result in results] == [1, None, 0, None, 1]
    assert results[1]["error"]["code"] == "bad_json"


def test_anonymous_publishing_is_a_setting(caller: Caller, tmp_path: Path) -> None:
    nobody = Caller(caller.client, None)
    error_of(nobody.post("/v1/events", {"event": {}}), 401, "unauthorized")
    with local_service(tmp_path / "open", anonymous_tenant="acme") as local:
        ticket = local.caller().subscribe("a", "x = 1")
        nobody = Caller(local.client, None)
        assert nobody.publish({"x": 1}) == 1
        error_of(nobody.get("/v1/subscriptions"), 401, "unauthorized")
        assert len(nobody.matches("a", ticket)) == 1


# -- questions ------------------------------------------------------------------------------------


def test_test_stores_nothing(caller: Caller) -> None:
    ticket = caller.subscribe("a", "x = 1")
    caller.subscribe("b", "x = 2")
    assert caller.post("/v1/test", {"event": {"x": 1}}).json() == {"matches": ["a"]}
    error_of(caller.post("/v1/test", {"event": {"x": 2**70}}), 422, "bad_event")
    assert caller.matches("a", ticket) == []


def test_explain(caller: Caller) -> None:
    caller.subscribe("a", "x = 1 and y > 2")
    told = caller.post("/v1/explain", {"event": {"x": 1, "y": 1}, "id": "a"}).json()
    assert told["matches"] is False
    assert [part["truth"] for part in told["tree"]["parts"]] == [True, False]
    assert "y is 1, needs > 2" in told["text"]
    body = {"event": {"x": 1}, "expression": "x = 1"}
    assert caller.post("/v1/explain", body).json()["matches"] is True
    error_of(caller.post("/v1/explain", {"event": {}, "id": "zz"}), 404, "not_found")
    error_of(caller.post("/v1/explain", {"event": {}}), 400, "bad_request")
    body = {"event": {"x": -1.7e308}, "expression": "x > 1.7e308"}
    assert caller.post("/v1/explain", body).json()["tree"]["distance"] > 1e308


def test_check(caller: Caller) -> None:
    told = caller.post("/v1/check", {"expression": "x=1 AND y<2"}).json()
    assert told == {"ok": True, "normalized": "x = 1 and y < 2"}
    told = caller.post("/v1/check", {"expression": "x = "}).json()
    assert (told["ok"], told["error"]["code"]) == (False, "bad_expression")


def test_backtest(caller: Caller) -> None:
    for n in range(10):
        caller.publish({"x": n}, event_id=f"e{n}")
    told = caller.post("/v1/backtest", {"expression": "x >= 7", "last": 5}).json()
    assert told == {"events": 5, "matched": 3, "sample": ["e7", "e8", "e9"]}


def test_stats(caller: Caller) -> None:
    caller.subscribe("a", "x = 1")
    for _ in range(3):
        caller.publish({"x": 1})
    told = caller.get("/v1/stats").json()
    assert told["subscriptions"] == 1
    assert told["last_60_seconds"]["events_per_second"] == pytest.approx(3 / 60, abs=0.001)
    assert set(told["publish_milliseconds"]) == {"p50", "p95", "p99"}
    assert [one["id"] for one in told["costly"]] == ["a"]


# -- keys -----------------------------------------------------------------------------------------


def test_keys_are_made_and_revoked(caller: Caller) -> None:
    made = caller.post("/v1/keys", {"name": "importer", "scopes": ["publish"]}).json()
    importer = Caller(caller.client, made["key"])
    assert importer.publish({"x": 1}) == 0
    error_of(importer.get("/v1/subscriptions"), 403, "forbidden")
    listed = caller.get("/v1/keys").json()["keys"]
    assert {"importer", "test"} == {key["name"] for key in listed}
    assert not any("key" in key for key in listed)
    assert caller.delete(f"/v1/keys/{made['key_id']}").status_code == 204
    error_of(importer.post("/v1/events", {"event": {}}), 401, "unauthorized")
    error_of(caller.delete(f"/v1/keys/{made['key_id']}"), 404, "not_found")


@pytest.mark.parametrize("scope", ["subscribe", "publish", "read", "admin"])
def test_a_scope_is_needed(local: Local, scope: str) -> None:
    local.caller().subscribe("a", "x = 1")
    asked = {
        "subscribe": ("POST", "/v1/subscriptions", {"expression": "y = 1"}, 201),
        "publish": ("POST", "/v1/events", {"event": {}}, 200),
        "read": ("GET", "/v1/subscriptions/a", None, 200),
        "admin": ("GET", "/v1/keys", None, 200),
    }
    caller = local.caller(scopes=(scope,))
    for name, (method, path, body, status) in asked.items():
        answer = caller.client.request(method, path, json=body, headers=caller.headers)
        assert answer.status_code == (status if name == scope else 403)
    assert caller.post("/v1/check", {"expression": "x = 1"}).status_code == 200


# -- around them ----------------------------------------------------------------------------------


def test_health_readiness_metrics(caller: Caller) -> None:
    assert caller.client.get("/healthz").json() == {"status": "alive"}
    assert caller.client.get("/readyz").json() == {"status": "ready"}
    caller.subscribe("a", "x = 1")
    caller.publish({"x": 1})
    text = caller.client.get("/metrics").text
    assert "matchmill_events_total 1\n" in text
    assert "matchmill_matches_total 1\n" in text
    assert 'matchmill_requests_total{route="POST /v1/events",status="200"} 1\n' in text


def test_the_page_is_strict(caller: Caller) -> None:
    page = caller.client.get("/")
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"
    error_of(caller.client.get("/nothing/here"), 404, "not_found")
    error_of(caller.client.get("/v1/nothing"), 404, "not_found")
    refused = caller.client.put("/v1/events")
    error_of(refused, 405, "bad_method")
    assert refused.headers["allow"] == "POST"


def test_a_key_may_ask_so_often(tmp_path: Path) -> None:
    with local_service(tmp_path / "s", requests_per_second=1, request_burst=3) as local:
        one, other = local.caller(), local.caller()
        statuses = [one.get("/v1/keys").status_code for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]
        refused = one.get("/v1/keys")
        assert int(refused.headers["retry-after"]) >= 1
        assert other.get("/v1/keys").status_code == 200
