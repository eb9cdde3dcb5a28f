"""What the clients do when a service is busy, silent, gone, or no service at all."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import matchmill as mm
from matchmill.client import AsyncClient, Client, Digest, Dropped, Match, Published
from matchmill.client.messages import Request
from matchmill.client.transport import Transport
from matchmill.errors import (
    DuplicateIdError,
    EventError,
    ExpressionError,
    InputError,
    MissingDependencyError,
    QuotaError,
    ServiceError,
    UnknownIdError,
)
from tests.support.awaited_client import AwaitedClient
from tests.support.scripted_transport import problem, raw, respond, scripted

MOMENT = "2026-11-16T10:00:00.000000Z"
MADE = {
    "subscription_id": "a",
    "expression": "x = 1",
    "ticket": "t",
    "created_at": MOMENT,
    "expires_at": MOMENT,
    "n_pending": 0,
}
PUBLISHED = {"event_id": "e", "n_matches": 2}


@pytest.fixture(params=[Client, AwaitedClient], ids=["blocking", "asyncio"])
def make(request: pytest.FixtureRequest) -> Any:
    """Make a client; every test runs with both kinds."""
    return request.param


def test_they_are_loaded_when_they_are_asked_for() -> None:
    assert mm.Client is Client
    assert mm.AsyncClient is AsyncClient
    with pytest.raises(AttributeError, match="no attribute 'Clients'"):
        _ = mm.Clients  # type: ignore[attr-defined]


def test_connections_are_kept(make: Any) -> None:
    with scripted(*[respond(200, PUBLISHED)] * 3) as server, make(server.url, key="k") as client:
        for _ in range(3):
            assert client.publish({"x": 1}) == Published("e", 2)
        assert server.n_connections == 1
        assert [asked.headers["authorization"] for asked in server.asked] == ["Bearer k"] * 3


def test_a_connection_that_was_closed_meanwhile_is_not_used(make: Any) -> None:
    """Not even for a call that may not be repeated."""

    def last_words(connection: socket.socket) -> bool:
        respond(200, PUBLISHED)(connection)
        return False

    with scripted(last_words, respond(201, MADE)) as server, make(server.url) as client:
        client.publish({"x": 1})
        time.sleep(0.2)
        assert client.subscribe("a", "x = 1").id == "a"
        assert server.n_connections == 2


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_service_is_asked_again(make: Any, status: int) -> None:
    busy = problem(status, "overloaded", "Retry-After: 0")
    with scripted(busy, respond(201, MADE)) as server, make(server.url) as client:
        assert client.subscribe("a", "x = 1").ticket == "t"
        assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "bad_request", InputError),
        (404, "not_found", UnknownIdError),
        (409, "duplicate_id", DuplicateIdError),
        (409, "quota", QuotaError),
        (422, "bad_expression", ExpressionError),
        (422, "bad_event", EventError),
        (403, "forbidden", ServiceError),
    ],
)
def test_errors_are_those_of_an_engine(make: Any, status: int, code: str, kind: type) -> None:
    with (
        scripted(problem(status, code)) as server,
        make(server.url) as client,
        pytest.raises(kind) as caught,
    ):
        client.get("a")
    assert (type(caught.value), caught.value.code) == (kind, code)
    assert (caught.value.message, caught.value.hint) == ("no", "do")
    if isinstance(caught.value, ServiceError):
        assert caught.value.status == status


def test_an_expression_error_has_its_place(make: Any) -> None:
    position = {"offset": 4, "line": 1, "column": 5, "length": 1}
    rejected = problem(422, "bad_expression", field="expression", position=position)
    with (
        scripted(rejected) as server,
        make(server.url) as client,
        pytest.raises(ExpressionError) as caught,
    ):
        client.subscribe("a", "x = = 1")
    error = caught.value
    assert (error.text, error.position, error.column) == ("x = = 1", 4, 5)
    assert str(error) == "no (line 1, column 5)\n  x = = 1\n      ^\nhint: do"


def test_events_are_sent_again_with_the_same_id(make: Any) -> None:
    with scripted(raw(b""), raw(b"HTTP/1.1 200 OK\r\nCont"), respond(200, PUBLISHED)) as server:
        with make(server.url) as client:
            assert client.publish({"x": 1}).n_matches == 2
        first, *others = [asked.json() for asked in server.asked]
        assert len(first["event_id"]) == 30
        assert others == [first, first]


def test_what_may_not_be_repeated_is_not(make: Any) -> None:
    with scripted(raw(b"")) as server, make(server.url) as client:
        with pytest.raises(ServiceError, match="not known whether the call took effect") as caught:
            client.subscribe("a", "x = 1")
        assert (caught.value.code, len(server.asked)) == ("unknown_outcome", 1)


def test_a_replacement_may_be_repeated(make: Any) -> None:
    """It brings its own ticket, so the second request finds what the first one made."""
    with scripted(raw(b""), respond(200, MADE)) as server, make(server.url, key="k") as client:
        assert client.subscribe("a", "x = 1", replace=True).ticket == "t"
        first, second = server.asked
    assert first.line == "PUT /v1/subscriptions/a HTTP/1.1"
    assert len(first.headers["matchmill-ticket"]) == 43
    assert first.headers["authorization"] == "Bearer k"
    assert first.headers["matchmill-ticket"] == second.headers["matchmill-ticket"]


def test_a_response_without_a_length_may_be_cut_off(make: Any) -> None:
    cut = raw(b'HTTP/1.1 200 OK\r\n\r\n{"event_id": "e", "n_matches": 2}')
    with scripted(cut, respond(200, PUBLISHED)) as server, make(server.url) as client:
        assert client.publish({"x": 1}) == Published("e", 2)
        assert len(server.asked) == 2


def test_nobody_there(make: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with (
        make(url, retries=1) as client,
        pytest.raises(ServiceError, match="does not respond") as caught,
    ):
        client.subscribe("a", "x = 1")
    assert (caught.value.code, caught.value.status) == ("unreachable", None)


def test_redirections_are_not_followed(make: Any) -> None:
    with scripted() as other:
        moved = respond(307, None, f"Location: {other.url}/v1/stats")
        with (
            scripted(moved) as server,
            make(server.url, key="secret") as client,
            pytest.raises(ServiceError, match=f"it points to {other.url}/v1/stats"),
        ):
            client.stats()
        assert other.n_connections == 0


@pytest.mark.parametrize("status", [b"200 OK", b"404 Not Found"])
@pytest.mark.parametrize("data", [b"<html>", b'{"code": 3}', b'"no"', b"[3]"])
def test_a_response_that_is_not_ours(make: Any, status: bytes, data: bytes) -> None:
    head = b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n" % (status, len(data))
    with (
        scripted(raw(head + data)) as server,
        make(server.url) as client,
        pytest.raises(ServiceError, match="is not matchmill's") as caught,
    ):
        client.get("a")
    assert caught.value.code == "not_matchmill"


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:8080", "ftp://host", "http://", "http://u:p@host", "http://host/?key=1"],
)
def test_bad_urls(make: Any, url: str) -> None:
    with pytest.raises(InputError, match="the url"):
        make(url)


@pytest.mark.parametrize("key", ["", "a b", "a\nb", "é"])
def test_bad_keys(make: Any, key: str) -> None:
    with pytest.raises(InputError, match="the key is empty, or has spaces"):
        make("http://host", key=key)


def test_address_and_key_of_the_environment(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MATCHMILL_URL", raising=False)
    with pytest.raises(InputError, match="set MATCHMILL_URL"):
        make()
    with scripted(respond(200, {"n_subscriptions": 3})) as server:
        monkeypatch.setenv("MATCHMILL_URL", server.url)
        monkeypatch.setenv("MATCHMILL_KEY", "k")
        with make() as client:
            assert client.stats() == {"n_subscriptions": 3}
        assert server.asked[0].headers["authorization"] == "Bearer k"


def test_a_secret_is_not_shown(make: Any) -> None:
    with make("http://host/x", key="secret") as client:
        assert repr(client).endswith("Client: http://host/x>")


def test_httpx2_is_needed(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "httpx2", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'matchmill\[client\]'"):
        make("http://host")


# -- TLS ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate and its key, in one file, that only we trust."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes a certificate for this test: install openssl")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", path, "-out", path.with_suffix(".crt")],
        check=True,
        capture_output=True,
    )  # fmt: skip
    path.write_text(path.read_text() + path.with_suffix(".crt").read_text())
    return path


def test_tls(make: Any, certificate: Path) -> None:
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(certificate)
    trusting = ssl.create_default_context(cafile=str(certificate))
    responses = (respond(200, PUBLISHED), respond(201, MADE))
    with (
        scripted(*responses, context=ours) as server,
        make(server.url, ssl_context=trusting) as client,
    ):
        assert client.publish({"x": 1}).n_matches == 2
        assert client.subscribe("a", "x = 1").ticket == "t"
        assert server.n_connections == 1


def test_a_server_that_is_not_trusted_learns_nothing(make: Any, certificate: Path) -> None:
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(certificate)
    with scripted(context=ours) as server, make(server.url, key="k", retries=0) as client:
        with pytest.raises(ServiceError, match="certificate verify failed"):
            client.stats()
        assert server.asked == []


# -- streams --------------------------------------------------------------------------------------


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def event(name: str, data: bytes, id: bytes = b"") -> bytes:
    number = b"id: %b\n" % id if id else b""
    return b"%bevent: %b\ndata: %b\n\n" % (number, name.encode(), data)


def test_a_stream_is_opened_again_where_it_broke() -> None:
    """Also when half of an event has arrived, and when a text has other ends of lines."""
    responses = (
        raw(
            STREAM
            + b"retry: 1000\n\n: heartbeat\n\n"
            + event("match", b'{"x":\ndata: "\xe2\x80\xa8"}', b"4")
            + event("match", b"5", b"5")
            + event("match", b"6", b"6")[:20]
        ),
        problem(503, "not_ready", "Retry-After: 0"),
        raw(STREAM + event("match", b"6", b"6")),
        raw(STREAM + event("end", b"{}")),
    )
    with scripted(*responses) as server:
        transport = Transport(server.url)
        request = Request("GET", "/v1/subscriptions/a/matches", ticket="ticket")
        received = [(one.name, one.value) for one in transport.events(request, "3")]
        transport.close()
    told = [asked.headers.get("last-event-id") for asked in server.asked]
    assert told == ["3", "5", "5", "6"]
    assert {asked.headers["matchmill-ticket"] for asked in server.asked} == {"ticket"}
    assert {asked.headers["accept"] for asked in server.asked} == {"text/event-stream"}
    assert received == [("match", {"x": "\u2028"}), ("match", 5), ("match", 6), ("end", {})]


def test_live_matches(make: Any) -> None:
    value = (
        b'{"event_id": "e", "event": {"x": 1}, "matched_at": "2026-11-16T10:00:00Z",'
        b' "n_matches": 9, "subscription_ids": ["a", "b"]}'
    )
    dropped = event("dropped", b'{"n_dropped": 3}')
    stream = raw(STREAM + event("match", value) + dropped + event("end", b"{}"))
    with scripted(stream) as server, make(server.url) as client:
        received = list(client.live())
    assert [one.subscription_id for one in received if isinstance(one, Match)] == ["a", "b"]
    assert [one for one in received if isinstance(one, Dropped)] == [Dropped(7), Dropped(3)]


def test_a_stream_that_is_rejected_ends(make: Any) -> None:
    with (
        scripted(problem(403, "forbidden")) as server,
        make(server.url) as client,
        pytest.raises(ServiceError) as caught,
    ):
        next(client.live())
    assert caught.value.status == 403


# -- many -----------------------------------------------------------------------------------------


def results(*values: Any) -> Any:
    return respond(200, {"results": list(values), "n_accepted": 0, "n_rejected": 0})


def bad(code: str, **more: Any) -> dict[str, Any]:
    return {"code": code, "detail": "no\nno", "hint": "do", "status": 422, **more}


def test_many_subscriptions_are_reported_by_row(make: Any) -> None:
    position = {"offset": 4, "line": 1, "column": 5, "length": 1}
    rejected = bad("bad_expression", position=position)
    with scripted(results(MADE, rejected)) as server, make(server.url) as client:
        report = client.subscribe_many(
            [("a", "x = 1"), ("b", "x = = 1"), (True, "x = 1"), ("d", 3)], ttl_seconds=60
        )
        assert [one["subscription_id"] for one in server.asked[0].json()] == ["a", "b"]
        assert server.asked[0].json()[0]["ttl_seconds"] == 60
    assert (report.n_accepted, report.n_rejected, report.n_replaced) == (1, 3, 0)
    assert [one.ticket for one in report.subscriptions] == ["t"]
    assert [(one.kind, one.row, one.id) for one in report.rejected] == [
        ("subscription", 1, "b"),
        ("subscription", 2, True),
        ("subscription", 3, "d"),
    ]
    assert report.rejected[0].reason == "no no at line 1, column 5; do"
    assert repr(report) == "<SubscribeReport: 1 accepted, 3 rejected>"


def test_many_subscriptions_replace_those_that_are_there(make: Any) -> None:
    other = MADE | {"subscription_id": "b"}
    with (
        scripted(results(bad("duplicate_id"), other), respond(200, MADE)) as server,
        make(server.url, key="k") as client,
    ):
        report = client.subscribe_many({"a": "x = 1", "b": "x = 2"}, replace=True)
        assert server.asked[1].line == "PUT /v1/subscriptions/a HTTP/1.1"
    assert (report.n_accepted, report.n_replaced, report.rejected) == (2, 1, [])
    assert [one.id for one in report.subscriptions] == ["a", "b"]


def test_strict_keeps_none_or_all(make: Any) -> None:
    responses = (results(MADE, bad("bad_expression")), respond(204))
    with scripted(*responses) as server, make(server.url) as client:
        with pytest.raises(ExpressionError):
            client.subscribe_many({"a": "x = 1", "b": "x ="}, strict=True)
        assert server.asked[1].line == "DELETE /v1/subscriptions/a HTTP/1.1"
        assert server.asked[1].headers["matchmill-ticket"] == "t"
        with pytest.raises(InputError, match="cannot be combined"):
            client.subscribe_many({}, strict=True, replace=True)


def test_a_bulk_that_breaks_keeps_its_tickets(make: Any) -> None:
    """The first five hundred are accepted; the second request is lost."""
    made = [MADE | {"subscription_id": str(n)} for n in range(500)]
    with scripted(results(*made), raw(b"")) as server, make(server.url) as client:
        report = client.subscribe_many((str(n), "x = 1") for n in range(503))
    assert [one.id for one in report.subscriptions] == [str(n) for n in range(500)]
    assert [(one.row, one.id) for one in report.rejected] == [
        (500 + n, f"{500 + n}") for n in range(3)
    ]
    assert "not known whether" in report.rejected[0].reason


def test_a_bulk_that_never_began_is_an_error(make: Any) -> None:
    with (
        scripted(problem(403, "forbidden")) as server,
        make(server.url) as client,
        pytest.raises(ServiceError),
    ):
        client.subscribe_many({"a": "x = 1"})


def test_progress_of_many(make: Any) -> None:
    seen: list[tuple[int, int | None]] = []
    with scripted(results(MADE)) as server, make(server.url) as client:
        client.subscribe_many({"a": "x"}, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, None)]


def test_many_events_are_reported_by_row(make: Any) -> None:
    record = {"kind": "event", "row": 1, "id": "e2", "reason": "no"}
    rejected = bad("bad_event", rejected=[record])
    with scripted(results(PUBLISHED, rejected)) as server, make(server.url) as client:
        events = [{"n": "e1"}, {"n": "e2"}, {"n": "e3", "x": float("inf")}, {"m": 1}]
        report = client.publish_many(events, event_id="n")
        assert [one["event_id"] for one in server.asked[0].json()] == ["e1", "e2"]
    assert (report.n_published, report.n_matches, report.n_rejected) == (1, 2, 3)
    assert [(one.row, one.id) for one in report.rejected] == [(1, "e2"), (2, "e3"), (3, None)]
    assert "the event has no 'n'" in report.rejected[2].reason
    assert repr(report) == "<PublishReport: 1 published, 3 rejected, 2 matches>"
    assert "<td>e2</td>" in report._repr_html_()


def test_how_far_it_came_is_told(make: Any) -> None:
    with (
        scripted(results(PUBLISHED), problem(403, "forbidden")) as server,
        make(server.url) as client,
    ):
        published = client.publish_batches(({"n": n} for n in range(2)), batch_size=1)
        assert next(published).n_published == 1
        with pytest.raises(ServiceError):
            next(published)


# -- mailboxes ------------------------------------------------------------------------------------


def entry(seq: int) -> dict[str, Any]:
    return {
        "seq": seq,
        "event_id": "e",
        "subscription_id": "a",
        "event": {"x": seq},
        "matched_at": MOMENT,
    }


def test_what_was_received_is_acknowledged(make: Any) -> None:
    digest = {"n_matches": 3, "first_at": MOMENT, "last_at": MOMENT}
    pages = [
        respond(200, {"matches": [entry(4), entry(5)], "n_dropped": 9}),
        respond(204),
        respond(200, {"matches": [{"seq": 7, "digest": digest}], "n_dropped": 9}),
        respond(204),
        respond(200, {"matches": [], "n_dropped": 10}),
    ]
    with scripted(*pages) as server, make(server.url, key="k") as client:
        received = list(client.receive("a", ticket="t", after=3, wait=0, acknowledge_every=2))
        lines = [asked.line.split()[1] for asked in server.asked]
        assert [asked.json() for asked in server.asked if asked.body] == [
            {"up_to": 5},
            {"up_to": 7},
        ]
        assert {asked.headers["matchmill-ticket"] for asked in server.asked} == {"t"}
        assert not any("authorization" in asked.headers for asked in server.asked)
    assert [one.seq for one in received if isinstance(one, Match | Digest)] == [4, 5, 7]
    assert [one for one in received if isinstance(one, Dropped)] == [Dropped(9), Dropped(1)]
    assert [line.partition("&")[0] for line in lines if "?" in line] == [
        "/v1/subscriptions/a/matches?after=3",
        "/v1/subscriptions/a/matches?after=5",
        "/v1/subscriptions/a/matches?after=7",
    ]


def test_a_reader_that_stops_acknowledges_what_it_processed(make: Any) -> None:
    page = respond(200, {"matches": [entry(4), entry(5), entry(6)], "n_dropped": 0})
    with scripted(page, respond(204)) as server, make(server.url) as client:
        received = client.receive("a", ticket="t", acknowledge_every=10)
        assert [next(received).seq for _ in range(3)] == [4, 5, 6]
        received.close()
        assert server.asked[-1].json() == {"up_to": 5}  # the third was being processed
