"""Hostile requests: a clear error, and the service goes on."""

from __future__ import annotations

import gzip
import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from matchmill.service import request_parts
from matchmill.service.routes import queries
from tests.support.running_service import Caller, Local, local_service

EVENTS = "/v1/events"
SUBSCRIPTIONS = "/v1/subscriptions"


def send(caller: Caller, path: str, content: bytes, **headers: str) -> Any:
    kind = {"Content-Type": "application/json"} | headers
    return caller.client.post(path, content=content, headers=caller.headers | kind)


BAD_JSON: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"hello",
    "cut off": b'{"event": {"x": 1}',
    "two values": b'{"event": {}} {}',
    "NaN": b'{"event": {"x": NaN}}',
    "infinity": b'{"event": {"x": -Infinity}}',
    "a name twice": b'{"event": {"x": 1, "x": 2}}',
    "a name twice at the top": b'{"event": {}, "event": {}}',
    "not UTF-8": b'{"event": {"x": "\xff\xfe"}}',
    "UTF-16": '{"event": {}}'.encode("utf-16"),
    "half a character": b'{"event": {"x": "\\ud800"}}',
    "half a character as a name": b'{"event": {"\\udfff": 1}}',
    "half a character as an id": b'{"event": {}, "event_id": "\\ud800"}',
    "nested deeply": b'{"event": {"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    "objects nested deeply": b'{"event": ' + b'{"x":' * 50_000 + b"1" + b"}" * 50_000 + b"}",
    "a number of many digits": b'{"event": {"x": ' + b"9" * 100_000 + b"}}",
    "a zero byte": b'{"event": {"x": "\x00"}}',
    "a list": b"[]",
    "null": b"null",
    "a string": b'"event"',
    "no event": b"{}",
    "an event that is a list": b'{"event": []}',
    "a field too many": b'{"event": {}, "extra": 1}',
    "an id that is a number": b'{"event": {}, "event_id": 1}',
    "an empty id": b'{"event": {}, "event_id": ""}',
    "an id with a line break": b'{"event": {}, "event_id": "a\\n"}',
    "an id with a zero": b'{"event": {}, "event_id": "a\\u0000"}',
    "a long id": b'{"event": {}, "event_id": "' + b"x" * 201 + b'"}',
}
BAD_EVENTS: dict[str, bytes] = {
    "a huge number": b'{"event": {"x": 1e999}}',
    "an integer beyond 64 bits": b'{"event": {"x": 9223372036854775808}}',
    "nested beyond the limit": b'{"event": ' + b'{"x":' * 100 + b"1" + b"}" * 100 + b"}",
    "objects in a list": b'{"event": {"x": [{"y": 1}]}}',
    "an empty name": b'{"event": {"": 1}}',
}


def test_what_is_not_json_is_rejected(caller: Caller) -> None:
    for name, content in BAD_JSON.items():
        answer = send(caller, EVENTS, content)
        assert answer.status_code == 400, (name, answer.text)
        assert answer.json()["code"] in ("bad_json", "bad_request"), name
        assert len(answer.text) < 1_000, name
    assert caller.publish({"x": 1}) == 0


def test_what_cannot_be_delivered_as_json_is_rejected(caller: Caller) -> None:
    answer = send(caller, EVENTS, BAD_EVENTS["a huge number"])
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_event")


def test_what_cannot_be_compared_is_accepted(caller: Caller) -> None:
    for name in ("an integer beyond 64 bits", "objects in a list"):
        assert send(caller, EVENTS, BAD_EVENTS[name]).status_code == 200, name


def test_odd_events_get_an_answer_and_do_not_hurt_others(caller: Caller) -> None:
    ticket = caller.subscribe("a", "x = 1")
    for name, content in BAD_EVENTS.items():
        assert send(caller, EVENTS, content).status_code in (200, 422), name
        assert send(caller, "/v1/match", content).status_code in (200, 422), name
        asked = content[:-1] + b', "subscription_id": "a"}'
        assert send(caller, "/v1/explain", asked).status_code in (200, 422), name
    events = ",".join(content.decode() for content in BAD_EVENTS.values())
    body = f'[{events}, {{"event": {{"x": 1}}}}]'
    results = send(caller, EVENTS, body.encode()).json()["results"]
    assert results[-1]["n_matches"] == 1
    assert len(caller.matches("a", ticket)) == 1


BAD_EXPRESSIONS = [
    "(" * 5_000,
    "not " * 2_000 + "x",
    "x = '" + "a" * 9_000,
    "x rlike '" + "(" * 1_000 + "'",
    "x rlike '(a{1000}){1000}'",
    "x rlike '(?P<n>a)(?=b)'",
    "unheardOf(x)",
    "x = 1; drop table subscriptions",
    "\x00",
    '{"x": [{"numeric": [">"]}]}',
    '{"x": ' * 500,
]


def test_bad_expressions_are_rejected(caller: Caller) -> None:
    for text in BAD_EXPRESSIONS:
        answer = caller.post(SUBSCRIPTIONS, {"expression": text})
        assert answer.status_code == 422, (text[:50], answer.text[:200])
        assert answer.json()["code"] == "bad_expression"
        told = caller.post("/v1/check", {"expression": text}).json()
        assert [one["code"] for one in told["rejected"]] == ["bad_expression"]
    assert caller.get(SUBSCRIPTIONS).json()["subscriptions"] == []


def test_costly_expressions_are_harmless(caller: Caller) -> None:
    """RE2 takes linear time, and products of disjunctions are not written out."""
    caller.subscribe("regex", "x rlike '" + "(a*)*" * 50 + "b'")
    caller.subscribe("product", " and ".join(f"(a{i} = 1 or b{i} = 1)" for i in range(300)))
    caller.subscribe("like", "x like '" + "%a_" * 1_000 + "'")
    assert caller.publish({"x": "a" * 100_000}) == 1


def test_an_event_that_patterns_would_take_long_for_is_rejected(caller: Caller) -> None:
    caller.subscribe("regex", "x rlike '" + "(?:a?c?){100}" * 10 + "b'")
    assert caller.publish({"x": "a" * 100}) == 0
    answer = caller.post(EVENTS, {"event": {"x": "a" * 100_000}})
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_event")
    assert "max_pattern_work" in answer.text
    assert caller.post("/v1/match", {"event": {"x": "a" * 100_000}}).status_code == 422
    body = {"event": {"x": "a" * 100_000}, "subscription_id": "regex"}
    answer = caller.post("/v1/explain", body)
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_event")


def test_a_check_looks_at_few_events_if_they_are_large_or_its_patterns_costly(
    tmp_path: Path,
) -> None:
    with local_service(tmp_path / "s", max_page_size=20_000, max_pattern_work=220_000) as local:
        caller = local.caller()
        events = [{"t": "a" * 988}] * 25
        for event in events:
            caller.publish(event)
        costly = "t rlike '(?:a?c?){50}'"
        for expression, n_events in (("t = 'a'", 20), (costly, 10)):
            for given in ({}, {"events": events}):
                body = {"expression": expression, **given}
                assert caller.post("/v1/check", body).json()["n_events"] == n_events
        content = b'{"expression": "t = 1", "events": [{"x": 1e999}]}'
        assert send(caller, "/v1/check", content).status_code == 422


def test_a_backtest_ends_in_time_however_long_an_event_takes(
    caller: Caller, local: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(20):
        caller.publish({"n": n})
    seconds = 0.0
    monkeypatch.setattr(queries, "time", SimpleNamespace(monotonic=lambda: seconds))
    sizes = []
    for events in queries._slices(local.service, 1, 20):
        sizes.append(len(events))
        seconds += 1.5 * len(events)
    assert sizes == [1] * 7  # query_seconds is 10
    seconds, sizes = 0.0, []
    for events in queries._slices(local.service, 1, 19):
        sizes.append(len(events))
        seconds += 0.01
    assert sizes == [1, 2, 4, 8, 4]


def test_limits_of_size(tmp_path: Path) -> None:
    with local_service(
        tmp_path / "s", max_body_bytes=1_000, max_batch_items=3, max_expression_length=100
    ) as local:
        caller = local.caller()
        large = b'{"event": {"x": "' + b"x" * 1_000 + b'"}}'
        assert send(caller, EVENTS, large).status_code == 413

        def pieces() -> Any:  # without a length that could be looked at
            yield from (b'{"event": {"x": "', b"x" * 600, b"x" * 600, b'"}}')

        headers = caller.headers | {"Content-Type": "application/json"}
        assert caller.client.post(EVENTS, content=pieces(), headers=headers).status_code == 413
        answer = caller.post(EVENTS, [{"event": {}}] * 4)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
        assert "3 items" in answer.json()["detail"]
        answer = caller.post(SUBSCRIPTIONS, {"expression": "x = 1 or " * 20 + "x = 1"})
        assert (answer.status_code, answer.json()["field"]) == (400, "expression")
        lines = b'{"event": {"x": 1}}\n' + b'{"event": {"x": "' + b"x" * 2_000
        answer = send(caller, EVENTS, lines, **{"Content-Type": "application/x-ndjson"})
        results = [json.loads(line) for line in answer.text.splitlines()]
        assert results[0]["n_matches"] == 0
        assert results[1]["code"] == "too_large"


def test_other_types_of_bodies_are_rejected(caller: Caller) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        answer = send(caller, EVENTS, b'{"event": {}}', **{"Content-Type": kind})
        assert (answer.status_code, answer.json()["code"]) == (
            415,
            "unsupported_media_type",
        )
    kind = "Application/JSON; charset=utf-8"
    assert send(caller, EVENTS, b'{"event": {}}', **{"Content-Type": kind}).status_code == 200


def test_bad_parameters_are_rejected(caller: Caller) -> None:
    ticket = caller.subscribe("a", "x = 1")
    for query in ("limit=0", "limit=x", "limit=1001", "limit=1&limit=2", "other=1", "limit=-1"):
        answer = caller.client.get(f"{SUBSCRIPTIONS}?{query}", headers=caller.headers)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_request"), query
    for query in ("wait=61", "after=-1", "after=" + "9" * 30, "after=٣"):
        answer = caller.client.get(
            f"{SUBSCRIPTIONS}/a/matches?{query}", headers={"Matchmill-Ticket": ticket}
        )
        assert answer.status_code == 400, query
    for value in ("x", "-1", "9" * 30, "1.5", ""):
        headers = {"Matchmill-Ticket": ticket, "Last-Event-ID": value}
        headers["Accept"] = "text/event-stream"
        answer = caller.client.get(f"{SUBSCRIPTIONS}/a/matches", headers=headers)
        assert answer.status_code == 400, value


def test_odd_ids(caller: Caller) -> None:
    for name in ("a b", "é", "😀", "100%", "a+b", "a?b#c", "'; drop table events; --", '"', "..."):
        ticket = caller.subscribe(name, "x = 1")
        answer = caller.get(f"{SUBSCRIPTIONS}/{quote(name, safe='')}", ticket)
        assert answer.json()["subscription_id"] == name
    for name in ("", ".", "..", "a/b", "a\nb", "\x7f", "x" * 201):
        body = {"subscription_id": name, "expression": "x = 1"}
        assert caller.post(SUBSCRIPTIONS, body).status_code == 400


def test_too_many_events_at_once_are_rejected(tmp_path: Path) -> None:
    with local_service(tmp_path / "s", max_queued_events=5) as local:
        caller = local.caller()
        answer = caller.post(EVENTS, [{"event": {}}] * 6)
        assert (answer.status_code, answer.json()["code"]) == (503, "overloaded")
        assert answer.headers["retry-after"] == "1"
        assert caller.publish({}) == 0


def test_an_error_inside_is_told_without_details(local: Local, monkeypatch: Any) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError("details")

    caller = local.caller()
    monkeypatch.setattr(local.service, "read", broken)
    client = TestClient(local.client.app, raise_server_exceptions=False)
    answer = client.get("/v1/keys", headers=caller.headers)
    assert (answer.status_code, answer.json()["code"]) == (500, "bug")
    assert "details" not in answer.text


def test_a_compressed_body_is_rejected(caller: Caller) -> None:
    content = gzip.compress(b'{"event": {"x": 1}}')
    for path in (EVENTS, "/v1/match"):
        answer = send(caller, path, content, **{"Content-Encoding": "gzip"})
        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
        assert "Content-Encoding" in answer.json()["detail"]
    lines = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
    assert send(caller, EVENTS, content, **lines).status_code == 415
    headers = {"Content-Encoding": "identity"}
    assert send(caller, EVENTS, b'{"event": {}}', **headers).status_code == 200


def test_a_large_body_is_not_read_on_the_event_loop(local: Local, monkeypatch: Any) -> None:
    threads: set[str] = set()
    original = request_parts.from_body

    def noted(data: bytes) -> Any:
        threads.add(threading.current_thread().name)
        return original(data)

    monkeypatch.setattr(request_parts, "from_body", noted)
    caller = local.caller()
    caller.publish({"x": "x" * 100_000})
    caller.post(EVENTS, [{"event": {"x": n}} for n in range(3_000)])
    assert threads
    assert all(name.startswith("matchmill-requests") for name in threads)


def test_only_its_owner_sees_the_url_of_a_webhook(local: Local) -> None:
    admin, reader = local.caller(), local.caller(scopes=("read",))
    url = "https://hooks.example.org:8443/services/T0/secret?token=1"
    ticket = admin.subscribe("a", "x = 1", webhook={"url": url})
    path = f"{SUBSCRIPTIONS}/a"
    assert reader.get(path).json()["webhook"] == {"url": "https://hooks.example.org:8443/…"}
    assert admin.get(path).json()["webhook"] == {"url": url}
    assert reader.get(path, ticket).json()["webhook"] == {"url": url}
