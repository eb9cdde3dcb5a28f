"""The endpoints, one by one."""

from __future__ import annotations

import json
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from matchmill.errors import InputError
from matchmill.service.json_body import iso
from matchmill.service.settings import ServiceSettings
from tests.support.running_service import START, Caller, Local, local_service

DAY = 24 * 60 * 60
LARGE = {"x": [0] * 1_000_001}  # more values than an event may have


def error_of(answer: Any, status: int, code: str) -> dict[str, Any]:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    error: dict[str, Any] = answer.json()
    assert error["status"] == status
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
        "subscription_id": "u42",
        "event": {"origin": "JFK", "dep_delay": 75},
        "matched_at": iso(START),
    }
    assert caller.post("/v1/subscriptions/u42/acknowledge", {"up_to": 1}, ticket).status_code == 204
    assert caller.matches("u42", ticket) == []


def test_an_id_is_given_if_there_is_none(caller: Caller) -> None:
    answer = caller.post("/v1/subscriptions", {"expression": "x = 1"})
    assert answer.status_code == 201
    made = answer.json()
    assert made == shown_by(made) | {"ticket": made["ticket"]}
    assert made["expires_at"] == iso(START + DAY * 1_000_000)
    path = f"/v1/subscriptions/{made['subscription_id']}"
    assert caller.get(path, made["ticket"]).json() == shown_by(made)


def shown_by(made: dict[str, Any]) -> dict[str, Any]:
    """A new subscription without webhook."""
    return {
        "subscription_id": made["subscription_id"],
        "expression": "x = 1",
        "created_at": iso(START),
        "expires_at": iso(START + DAY * 1_000_000),
        "n_pending": 0,
        "webhook": None,
        "max_per_minute": None,
        "n_dropped": 0,
        "n_dead_letters": 0,
    }


def test_a_bad_expression_is_told_with_its_place(caller: Caller) -> None:
    answer = caller.post("/v1/subscriptions", {"expression": "price <=\n  frum 3"})
    error = error_of(answer, 422, "bad_expression")
    assert error["field"] == "expression"
    assert error["position"] == {"offset": 16, "line": 2, "column": 8, "length": 1}
    assert (error["type"], error["title"]) == (
        "urn:matchmill:bad_expression",
        HTTPStatus(422).phrase,
    )
    (rejected,) = error["rejected"]
    assert (rejected["kind"], rejected["row"], rejected["id"]) == ("subscription", 0, None)
    assert "line 2, column 8" in rejected["reason"]
    assert "\n" not in rejected["reason"]


def test_a_taken_id_is_rejected(caller: Caller) -> None:
    ticket = caller.subscribe("a", "x = 1")
    answer = caller.post("/v1/subscriptions", {"subscription_id": "a", "expression": "x = 2"})
    error_of(answer, 409, "duplicate_id")
    assert caller.publish({"x": 2}) == 0
    assert caller.delete("/v1/subscriptions/a", ticket).status_code == 204
    again = caller.subscribe("a", "x = 2")
    error_of(caller.get("/v1/subscriptions/a", ticket), 404, "not_found")
    assert caller.publish({"x": 2}) == 1
    assert len(caller.matches("a", again)) == 1


def test_many_subscriptions_at_once(caller: Caller) -> None:
    body = [
        {"subscription_id": "a", "expression": "x = 1"},
        {"subscription_id": "b", "expression": "x ="},
        {"subscription_id": "a", "expression": "x = 2"},
        {"subscription_id": "c/d", "expression": "x = 2"},
        {"expression": "x = 1", "nonsense": 1},
        {"expression": "x = 1"},
    ]
    answer = caller.post("/v1/subscriptions", body).json()
    assert (answer["n_accepted"], answer["n_rejected"]) == (2, 4)
    results = answer["results"]
    codes = [None, "bad_expression", "duplicate_id", "bad_request", "bad_request", None]
    assert [result.get("code") for result in results] == codes
    rejected = [result["rejected"][0] for result in results if "code" in result]
    assert [(one["row"], one["id"]) for one in rejected] == [
        *((1, "b"), (2, "a"), (3, "c/d"), (4, None))
    ]
    assert all(result["ticket"] for result in results if "code" not in result)
    assert caller.publish({"x": 1}) == 2


def lines_of(caller: Caller, path: str, content: bytes) -> list[dict[str, Any]]:
    headers = caller.headers | {"Content-Type": "application/x-ndjson"}
    answer = caller.client.post(path, content=content, headers=headers)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


def test_subscriptions_as_lines(caller: Caller) -> None:
    lines = b'{"subscription_id": "a", "expression": "x = 1"}\nnonsense\n{"expression": "x ="}\n'
    made, nonsense, bad = lines_of(caller, "/v1/subscriptions", lines)
    assert (made["subscription_id"], nonsense["code"], bad["code"]) == (
        *("a", "bad_json", "bad_expression"),
    )
    assert bad["rejected"][0]["row"] == 2
    assert caller.publish({"x": 1}) == 1


def test_a_pattern_may_be_an_object(caller: Caller) -> None:
    pattern = {"carrier": ["AA", "UA"], "dep_delay": [{"numeric": [">", 60]}]}
    ticket = caller.subscribe("a", pattern)
    assert caller.publish({"carrier": "UA", "dep_delay": 61}) == 1
    assert caller.publish({"carrier": "UA", "dep_delay": 60}) == 0
    shown = caller.get("/v1/subscriptions/a", ticket).json()
    assert json.loads(shown["expression"]) == pattern
    event = {"carrier": "UA", "dep_delay": 61}
    body = {"event": event, "expression": pattern}
    assert caller.post("/v1/explain", body).json()["matched"] is True
    assert caller.post("/v1/check", {"expression": pattern}).json()["rejected"] == []
    assert caller.post("/v1/backtest", {"expression": pattern}).json()["n_matches"] == 1
    bad = caller.post("/v1/subscriptions", {"expression": {"x": [{"numeric": [">"]}]}})
    assert "position" not in error_of(bad, 422, "bad_expression")
    error_of(caller.post("/v1/subscriptions", {"expression": [1]}), 400, "bad_request")


def test_a_subscription_has_a_dialect(caller: Caller) -> None:
    pattern, dialect = {"a": [None]}, {"dialect": "eventbridge"}
    ticket = caller.subscribe("null", pattern, dialect="eventbridge")
    caller.subscribe("ours", pattern)
    stored = """eventbridge '{"a":[null]}'"""
    assert caller.get("/v1/subscriptions/null", ticket).json()["expression"] == stored
    assert caller.publish({"a": None}) == 2
    assert caller.publish({"b": None}) == 1
    for body, matched in (
        ({"subscription_id": "null"}, False),
        ({"expression": stored}, False),
        ({"expression": pattern} | dialect, False),
        ({"expression": pattern}, True),
    ):
        found = caller.post("/v1/explain", {"event": {}} | body).json()
        assert found["matched"] is matched
    assert caller.post("/v1/check", {"expression": pattern} | dialect).json() == {
        "rejected": [],
        "warnings": [],
        "n_events": 2,
        "normalized": stored,
    }
    tried = caller.post("/v1/backtest", {"expression": pattern} | dialect).json()
    assert tried["n_matches"] == 1
    path = "/v1/subscriptions/ours"
    changed = caller.patch(path, {"expression": json.dumps(pattern)} | dialect)
    assert changed.json()["expression"] == stored
    error_of(caller.patch(path, dialect), 400, "bad_request")
    error_of(caller.patch(path, {"expression": "x = 1"} | dialect), 422, "bad_expression")
    bad = {"expression": pattern, "dialect": "eventbrigde"}
    error_of(caller.post("/v1/subscriptions", bad), 400, "bad_request")


# -- replace and update ---------------------------------------------------------------------------

TICKET = "t" * 43


def test_put_creates_and_can_be_repeated(caller: Caller) -> None:
    body = {"expression": "x = 1", "webhook": {"url": "https://example.org/"}}
    made = caller.put("/v1/subscriptions/a", body, TICKET)
    assert (made.status_code, made.json()["ticket"]) == (201, TICKET)
    assert caller.publish({"x": 1}) == 1
    again = caller.put("/v1/subscriptions/a", body, TICKET)
    assert again.status_code == 200
    assert again.json() == made.json() | {"n_pending": 1}
    assert len(caller.matches("a", TICKET)) == 1


def test_put_replaces_and_keeps_the_matches(local: Local) -> None:
    caller = local.caller()
    ticket = caller.subscribe("a", "x = 1", ttl_seconds=10, max_per_minute=3)
    assert caller.publish({"x": 1}) == 1
    local.clock.move(5)
    replaced = caller.put("/v1/subscriptions/a", {"expression": "x = 2", "ttl_seconds": 20}, ticket)
    assert replaced.status_code == 200
    shown = replaced.json()
    assert (shown["expression"], shown["max_per_minute"]) == ("x = 2", None)
    assert shown["expires_at"] == iso(START + 25_000_000)
    assert (caller.publish({"x": 1}), caller.publish({"x": 2})) == (0, 1)
    assert [match["event"]["x"] for match in caller.matches("a", ticket)] == [1, 2]
    by_ticket = {"Matchmill-Ticket": ticket}
    answer = local.client.put(
        "/v1/subscriptions/a", json={"expression": "x = 3"}, headers=by_ticket
    )
    assert answer.status_code == 200
    assert caller.publish({"x": 3}) == 1


def test_who_may_replace(local: Local) -> None:
    admin, other = local.caller(), local.caller(scopes=("subscribe",))
    ticket = admin.subscribe("a", "x = 1")
    path, body = "/v1/subscriptions/a", {"expression": "x = 2"}
    for brought in (None, TICKET):
        problem = error_of(other.put(path, body, brought), 403, "forbidden")
        assert "without its ticket" in problem["detail"]
    assert other.put(path, body, ticket).status_code == 200
    kept = admin.put(path, body)
    assert (kept.status_code, "ticket" in kept.json()) == (200, False)
    assert admin.get(path, ticket).status_code == 200
    assert admin.put(path, body, TICKET).json()["ticket"] == TICKET
    assert admin.get(path, ticket).status_code == 404
    assert admin.get(path, TICKET).status_code == 200
    error_of(admin.put(path, {"expression": "x ="}, TICKET), 422, "bad_expression")
    error_of(admin.put(path, body, "short"), 400, "bad_request")
    error_of(admin.put(path, body | {"subscription_id": "b"}), 400, "bad_request")
    error_of(admin.put("/v1/subscriptions/" + "x" * 201, body), 400, "bad_request")
    error_of(local.client.put(path, json=body), 401, "unauthorized")
    error_of(local.caller("another").put(path, body, TICKET), 409, "ticket_taken")


def test_patch_changes_some_fields(caller: Caller) -> None:
    ticket = caller.subscribe("a", "x = 1", max_per_minute=3)
    path = "/v1/subscriptions/a"
    before = caller.get(path, ticket).json()
    changed = caller.patch(path, {"expression": "x = 2"}, ticket)
    assert changed.json() == before | {"expression": "x = 2"}
    assert (caller.publish({"x": 1}), caller.publish({"x": 2})) == (0, 1)
    changed = caller.patch(path, {"max_per_minute": None}).json()
    assert changed["max_per_minute"] is None
    hook = {"webhook": {"url": "https://example.org/"}}
    changed = caller.patch(path, hook, ticket).json()
    assert (changed["webhook"], "webhook_secret" in changed) == (hook["webhook"], True)
    assert caller.patch(path, {"webhook": None}, ticket).json()["webhook"] is None
    error_of(caller.patch(path, {}, ticket), 400, "bad_request")
    error_of(caller.patch(path, {"subscription_id": "b"}, ticket), 400, "bad_request")
    error_of(caller.patch(path, {"expression": "x ="}, ticket), 422, "bad_expression")
    error_of(caller.patch(path, {"ttl_seconds": 1}, TICKET), 404, "not_found")


def test_the_list_goes_on_page_by_page(caller: Caller) -> None:
    for name in "dacb":
        caller.subscribe(name, "x = 1")
    first = caller.get("/v1/subscriptions", limit=3).json()
    assert [row["subscription_id"] for row in first["subscriptions"]] == ["a", "b", "c"]
    last = caller.get("/v1/subscriptions", limit=3, cursor=first["next_cursor"]).json()
    assert [row["subscription_id"] for row in last["subscriptions"]] == ["d"]
    assert "next_cursor" not in last


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
    assert caller.publish({"x": 1}, event_id="e") == 1
    body = [{"event": {"x": 1}, "event_id": name} for name in ("e", "f", "f")]
    results = caller.post("/v1/events", body).json()["results"]
    assert [result["n_matches"] for result in results] == [1, 1, 1]
    assert [match["event_id"] for match in caller.matches("a", ticket)] == ["e", "f"]


def test_bad_events_of_many_are_rejected(caller: Caller) -> None:
    caller.subscribe("a", "x = 1")
    events: list[Any] = [
        {"event": {"x": 1}},
        {"event": LARGE, "event_id": "large"},
        {"event": 3},
        {"even": {}},
        "no event",
        {"event": {"x": 1}},
    ]
    answer = caller.post("/v1/events", events).json()
    assert (answer["n_accepted"], answer["n_rejected"]) == (2, 4)
    codes = [result.get("code") for result in answer["results"]]
    assert codes == [None, "bad_event", "bad_request", "bad_request", "bad_request", None]
    assert [result.get("n_matches") for result in answer["results"]] == [1, *[None] * 4, 1]
    (rejected,) = answer["results"][1]["rejected"]
    assert (rejected["kind"], rejected["row"], rejected["id"]) == ("event", 1, "large")
    one = error_of(caller.post("/v1/events", events[1]), 422, "bad_event")
    assert one["rejected"] == [rejected | {"row": 0}]


def test_the_form_of_a_request_is_shown(caller: Caller) -> None:
    missing = error_of(caller.post("/v1/events", {"x": 1}), 400, "bad_request")
    assert missing["field"] == "event"
    assert '{"event": {…}}' in missing["hint"]
    missing = error_of(caller.post("/v1/subscriptions", {}), 400, "bad_request")
    assert '{"expression": "…"}' in missing["hint"]


def test_events_as_lines(caller: Caller) -> None:
    caller.subscribe("a", "x = 1")
    lines = b'{"event": {"x": 1}}\n\nnonsense\n{"event": {"x": 2}}\n[1]\n{"event": {"x": 1}}'
    results = lines_of(caller, "/v1/events", lines)
    assert [result.get("n_matches") for result in results] == [1, None, 0, None, 1]
    assert results[1]["code"] == "bad_json"
    assert results[3]["rejected"][0]["row"] == 3


def test_anonymous_publishing_is_a_setting(caller: Caller, tmp_path: Path) -> None:
    nobody = Caller(caller.client, None)
    problem = error_of(nobody.post("/v1/events", {"event": {}}), 401, "unauthorized")
    assert "Authorization: Bearer KEY" in problem["hint"]
    with local_service(tmp_path / "open", anonymous_tenant="acme") as local:
        ticket = local.caller().subscribe("a", "x = 1")
        nobody = Caller(local.client, None)
        assert nobody.publish({"x": 1}) == 1
        error_of(nobody.get("/v1/subscriptions"), 401, "unauthorized")
        assert len(nobody.matches("a", ticket)) == 1


# -- questions ------------------------------------------------------------------------------------


def test_match_stores_nothing(caller: Caller) -> None:
    ticket = caller.subscribe("a", "x = 1")
    caller.subscribe("b", "x = 2")
    found = caller.post("/v1/match", {"event": {"x": 1}}).json()
    assert found == {"matches": [{"subscription_id": "a"}]}
    error_of(caller.post("/v1/match", {"event": LARGE}), 422, "bad_event")
    assert caller.matches("a", ticket) == []


def test_explain(caller: Caller) -> None:
    caller.subscribe("a", "x = 1 and y > 2")
    response = caller.post(
        "/v1/explain", {"event": {"x": 1, "y": 1}, "subscription_id": "a"}
    ).json()
    assert (response["matched"], response["n_missing"]) == (False, 1)
    assert [part["truth"] for part in response["tree"]["parts"]] == [True, False]
    assert "y is 1, needs > 2" in response["text"]
    body = {"event": {"x": 1}, "expression": "x = 1"}
    assert caller.post("/v1/explain", body).json()["matched"] is True
    error_of(caller.post("/v1/explain", {"event": {}, "subscription_id": "zz"}), 404, "not_found")
    error_of(caller.post("/v1/explain", {"event": {}}), 400, "bad_request")
    body = {"event": {"x": -1.7e308}, "expression": "x > 1.7e308"}
    assert caller.post("/v1/explain", body).json()["tree"]["distance"] > 1e308


def test_check(caller: Caller) -> None:
    response = caller.post("/v1/check", {"expression": "x=1 AND y<2"}).json()
    normalized = "x = 1 and y < 2"
    assert response == {"rejected": [], "warnings": [], "n_events": 0, "normalized": normalized}
    response = caller.post("/v1/check", {"expression": "x = "}).json()
    (rejected,) = response["rejected"]
    assert (rejected["code"], rejected["position"]["offset"]) == ("bad_expression", 3)
    assert "normalized" not in response
    response = caller.post("/v1/check", {"expression": "x < 1 and x > 2"}).json()
    assert [warning["kind"] for warning in response["warnings"]] == ["never"]
    response = caller.post("/v1/check", {"expression": "true"}).json()
    assert [warning["kind"] for warning in response["warnings"]] == ["always"]


def test_check_shows_no_events_to_a_key_that_may_not_read_them(local: Local) -> None:
    local.caller().publish({"origin": "secret"}, event_id="e1")
    response = local.caller(scopes=("subscribe",)).post("/v1/check", {"expression": "x = 1"}).json()
    assert (response["n_events"], response["warnings"]) == (0, [])


def test_check_against_events(caller: Caller) -> None:
    for n in range(20):
        caller.publish({"price": n}, event_id=f"e{n}")
    response = caller.post("/v1/check", {"expression": "prize < 20"}).json()
    (warning,) = response["warnings"]
    assert (response["n_events"], warning["kind"]) == (20, "unknown_attribute")
    assert warning["suggestion"] == "did you mean 'price'?"
    events = [{"prize": n} for n in range(20)]
    response = caller.post("/v1/check", {"expression": "prize < 20", "events": events}).json()
    assert (response["n_events"], response["warnings"]) == (20, [])
    events = [{"prize": 1}, {"prize": LARGE["x"]}]
    response = caller.post("/v1/check", {"expression": "prize < 20", "events": events}).json()
    assert [(one["kind"], one["row"]) for one in response["rejected"]] == [("event", 1)]
    assert (response["n_events"], response["normalized"]) == (1, "prize < 20")


def test_backtest(caller: Caller) -> None:
    for n in range(10):
        caller.publish({"x": n}, event_id=f"e{n}")
    response = caller.post("/v1/backtest", {"expression": "x >= 7", "last": 5}).json()
    assert response == {"n_events": 5, "n_matches": 3, "event_ids": ["e7", "e8", "e9"]}


def test_stats(caller: Caller) -> None:
    caller.subscribe("a", "x = 1")
    for _ in range(3):
        caller.publish({"x": 1})
    response = caller.get("/v1/stats").json()
    assert response["n_subscriptions"] == 1
    assert response["last_60_seconds"]["events_per_second"] == pytest.approx(3 / 60, abs=0.001)
    assert set(response["publish_milliseconds"]) == {"p50", "p95", "p99"}
    assert [one["subscription_id"] for one in response["costly"]] == ["a"]


# -- keys -----------------------------------------------------------------------------------------


def test_keys_are_made_and_revoked(caller: Caller) -> None:
    made = caller.post("/v1/keys", {"name": "importer", "scopes": ["publish"]}).json()
    importer = Caller(caller.client, made["key"])
    assert importer.publish({"x": 1}) == 0
    problem = error_of(importer.get("/v1/subscriptions"), 403, "forbidden")
    assert "may not read subscriptions" in problem["detail"]
    assert "publish" in problem["hint"]
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
    assert caller.client.get("/readyz").json()["status"] == "ready"
    caller.subscribe("a", "x = 1")
    caller.publish({"x": 1})
    text = caller.client.get("/metrics").text
    assert "matchmill_events_total 1.0\n" in text
    assert "matchmill_matches_total 1.0\n" in text
    assert 'matchmill_requests_total{route="POST /v1/events",status="200"} 1.0\n' in text


def test_the_page_is_strict(caller: Caller) -> None:
    page = caller.client.get("/")
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"
    error_of(caller.client.get("/nothing/here"), 404, "not_found")
    error_of(caller.client.get("/v1/nothing"), 404, "not_found")
    rejected = caller.client.put("/v1/events")
    error_of(rejected, 405, "bad_method")
    assert rejected.headers["allow"] == "POST"


def test_a_key_may_ask_so_often(tmp_path: Path) -> None:
    with local_service(tmp_path / "s", requests_per_second=1, request_burst=3) as local:
        one, other = local.caller(), local.caller()
        statuses = [one.get("/v1/keys").status_code for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]
        rejected = one.get("/v1/keys")
        assert int(rejected.headers["retry-after"]) >= 1
        assert other.get("/v1/keys").status_code == 200


def test_types_of_attributes_are_a_setting(tmp_path: Path) -> None:
    expression = "ts > timestamp '2013-01-01'"
    for types, n_matches in (("", 0), ("ts=timestamp", 1)):
        with local_service(tmp_path / (types or "none"), types=types) as local:
            caller = local.caller()
            caller.subscribe("late", expression)
            assert caller.publish({"ts": "2013-02-01"}) == n_matches
            assert caller.publish({"ts": "2013-02-01T00:00Z"}) == 1
            body = {"expression": expression, "event": {"ts": "2013-02-01"}}
            assert caller.post("/v1/explain", body).json()["matched"] is bool(n_matches)
    with pytest.raises(InputError, match="no type 'day'"):
        ServiceSettings(types="ts=day")
