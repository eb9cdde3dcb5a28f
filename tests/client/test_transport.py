"""What the client does when a service is busy, silent, gone, or no service at all."""

from __future__ import annotations

import json
import pickle
import shutil
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

import matchmill as mm
from matchmill.client import Client, Digest, Dropped, Match, Published, Rejected
from matchmill.errors import InputError, ServiceError
from tests.support.scripted_transport import answer, raw, scripted

MADE = {"id": "a", "ticket": "t", "expires_at": "2026-11-16T10:00:00.000000Z"}
PUBLISHED = {"event_id": "e", "matched": 2}


def problem(code: str, **more: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": "no", "hint": "do", **more}}


def test_it_is_loaded_when_it_is_asked_for() -> None:
    assert mm.Client is Client
    with pytest.raises(AttributeError, match="no attribute 'Clients'"):
        _ = mm.Clients  # type: ignore[attr-defined]


def test_connections_are_kept() -> None:
    with scripted(*[answer(200, PUBLISHED)] * 3) as server, Client(server.url, key="k") as client:
        for _ in range(3):
            assert client.publish({"x": 1}) == Published("e", 2)
        assert server.n_connections == 1
        assert [asked.headers["authorization"] for asked in server.asked] == ["Bearer k"] * 3


def test_a_connection_that_was_closed_meanwhile_is_not_used() -> None:
    """Not even for a call that may not be repeated."""

    def last_words(connection: socket.socket) -> bool:
        answer(200, PUBLISHED)(connection)
        return False

    with scripted(last_words, answer(201, MADE)) as server, Client(server.url) as client:
        client.publish({"x": 1})
        while client._transport._idle and not _is_closed(client):
            pass
        assert client.subscribe("x = 1").id == "a"
        assert server.n_connections == 2


def _is_closed(client: Client) -> bool:
    import select

    poll = select.poll()
    poll.register(client._transport._idle[0].sock, select.POLLIN)
    return bool(poll.poll(1000))


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_service_is_asked_again(status: int) -> None:
    busy = answer(status, problem("overloaded"), "Retry-After: 0")
    with scripted(busy, answer(201, MADE)) as server, Client(server.url) as client:
        assert client.subscribe("x = 1").ticket == "t"
        assert len(server.asked) == 2


def test_an_error_is_told_as_it_is() -> None:
    position = {"offset": 4, "line": 1, "column": 5, "length": 1}
    told = problem("bad_expression", field="expression", position=position)
    with (
        scripted(answer(422, told)) as server,
        Client(server.url) as client,
        pytest.raises(ServiceError) as caught,
    ):
        client.subscribe("x = = 1")
    error = caught.value
    assert (error.status, error.code, error.hint) == (422, "bad_expression", "do")
    assert (error.field, error.position) == ("expression", position)
    assert str(error) == "no (line 1, column 5)\n  x = = 1\n      ^\nhint: do"
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.status, again.position) == (str(error), 422, position)


def test_events_are_sent_again_with_the_same_id() -> None:
    with scripted(raw(b""), raw(b"HTTP/1.1 200 OK\r\nCont"), answer(200, PUBLISHED)) as server:
        with Client(server.url) as client:
            assert client.publish({"x": 1}).matched == 2
        first, *others = [json.loads(asked.body) for asked in server.asked]
        assert len(first["event_id"]) == 30
        assert others == [first, first]


def test_what_may_not_be_repeated_is_not() -> None:
    with scripted(raw(b"")) as server, Client(server.url) as client:
        with pytest.raises(ServiceError, match="whether it was done is not known") as caught:
            client.subscribe("x = 1")
        assert (caught.value.code, len(server.asked)) == ("unknown_outcome", 1)


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with (
        Client(url, retries=1) as client,
        pytest.raises(ServiceError, match="does not answer") as c,
    ):
        client.subscribe("x = 1")
    assert c.value.code == "unreachable"


def test_redirections_are_not_followed() -> None:
    with scripted() as other:
        moved = answer(307, None, f"Location: {other.url}/v1/stats")
        with (
            scripted(moved) as server,
            Client(server.url, key="secret") as client,
            pytest.raises(ServiceError, match=f"it points to {other.url}/v1/stats"),
        ):
            client.stats()
        assert other.n_connections == 0


@pytest.mark.parametrize("data", [b"<html>", b'{"error": "no"}', b"[]"])
def test_an_answer_that_is_not_ours(data: bytes) -> None:
    head = b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n" % len(data)
    with (
        scripted(raw(head + data)) as server,
        Client(server.url) as client,
        pytest.raises(ServiceError, match="is not one of matchmill's"),
    ):
        client.stats()


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:8080", "ftp://host", "http://", "http://u:p@host", "http://host/?key=1"],
)
def test_bad_urls(url: str) -> None:
    with pytest.raises(InputError, match="the url"):
        Client(url)


@pytest.mark.parametrize("key", ["", "a b", "a\nb", "é"])
def test_bad_keys(key: str) -> None:
    with pytest.raises(InputError, match="the key is empty, or has spaces"):
        Client("http://host", key=key)


def test_a_secret_is_not_shown() -> None:
    assert "secret" not in repr(Client("http://host/x", key="secret"))


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


def test_tls(certificate: Path) -> None:
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(certificate)
    trusting = ssl.create_default_context(cafile=str(certificate))
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    lines = raw(head + json.dumps(PUBLISHED).encode() + b"\n")
    answers = (answer(200, PUBLISHED), answer(201, MADE), lines)
    with (
        scripted(*answers, context=ours) as server,
        Client(server.url, context=trusting) as client,
    ):
        assert client.publish({"x": 1}).matched == 2
        assert client.subscribe("x = 1").ticket == "t"
        assert server.n_connections == 1  # kept, tickets of TLS or not
        assert list(client.publish_stream([{"x": 1}])) == [Published("e", 2)]


def test_who_is_not_trusted_learns_nothing(certificate: Path) -> None:
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(certificate)
    with scripted(context=ours) as server, Client(server.url, key="k", retries=0) as client:
        with pytest.raises(ServiceError, match="certificate verify failed"):
            client.stats()
        assert server.asked == []


# -- streams --------------------------------------------------------------------------------------


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def match(seq: int) -> bytes:
    moment = "2026-11-16T10:00:00.000000Z"
    value = {"seq": seq, "event_id": "e", "event": {"x": seq}, "matched_at": moment}
    return b"id: %d\nevent: match\ndata: %b\n\n" % (seq, json.dumps(value).encode())


def test_a_stream_is_opened_again_where_it_broke() -> None:
    digest = (
        b'id: 7\nevent: digest\ndata: {"seq": 7, "digest": {"count": 3, "first_at":'
        b' "2026-11-16T10:00:00Z",\ndata:  "last_at": "2026-11-16T10:01:00Z"}}\n\n'
    )
    answers = (
        raw(STREAM + b"retry: 1000\n\n: heartbeat\n\n" + match(4) + match(5) + match(6)[:30]),
        answer(503, problem("not_ready"), "Retry-After: 0"),
        raw(STREAM + match(6) + b'event: dropped\ndata: {"count": 9}\n\n' + digest),
        raw(STREAM + b'event: dropped\ndata: {"count": 9}\n\nevent: end\ndata: {}\n\n'),
    )
    with scripted(*answers) as server, Client(server.url) as client:
        received = list(client.stream("a", "ticket", after=3))
        told = [asked.headers.get("last-event-id") for asked in server.asked]
    assert told == ["3", "5", "5", "7"]
    assert {asked.headers["matchmill-ticket"] for asked in server.asked} == {"ticket"}
    assert [one.seq for one in received if isinstance(one, Match | Digest)] == [4, 5, 6, 7]
    assert [one for one in received if isinstance(one, Dropped)] == [Dropped(9)]


def test_a_stream_that_is_refused_ends() -> None:
    with (
        scripted(answer(404, problem("not_found"))) as server,
        Client(server.url) as client,
        pytest.raises(ServiceError) as caught,
    ):
        next(client.stream("a", "ticket"))
    assert caught.value.status == 404


def test_lines_without_results_are_sent_again() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n"
    one = json.dumps(PUBLISHED).encode() + b"\n"
    with scripted(raw(head + one + one[:5]), raw(head + one * 3)) as server:
        with Client(server.url) as client:
            results = list(client.publish_stream({"x": n} for n in range(3)))
        first, second = (asked.body for asked in server.asked)
    assert first == second
    assert len(first.splitlines()) == 3
    assert results == [Published("e", 2)] * 3


def test_a_stream_of_lines_that_is_refused() -> None:
    with (
        scripted(answer(401, problem("unauthorized"))) as server,
        Client(server.url) as client,
        pytest.raises(ServiceError) as caught,
    ):
        next(client.publish_stream([{"x": 1}]))
    assert caught.value.status == 401


def test_a_bulk_that_breaks_keeps_its_tickets() -> None:
    """The first thousand are in; the second request is lost."""
    results = [{**MADE, "id": str(n)} for n in range(1_000)]
    taken = answer(200, {"results": results, "accepted": 1_000, "rejected": 0})
    with scripted(taken, raw(b"")) as server, Client(server.url) as client:
        made = client.subscribe_many((str(n), "x = 1") for n in range(1_003))
    assert [type(one).__name__ for one in made] == ["Subscribed"] * 1_000 + ["Rejected"] * 3
    last = made[-1]
    assert isinstance(last, Rejected)
    assert (last.row, last.id, last.error.code) == (1_002, "1002", "unknown_outcome")


def test_a_bulk_that_never_began_is_an_error() -> None:
    with (
        scripted(answer(403, problem("forbidden"))) as server,
        Client(server.url) as client,
        pytest.raises(ServiceError),
    ):
        client.subscribe_many({"a": "x = 1"})
