"""Webhooks: a real receiver on the loopback address; signatures, patience, dead letters, SSRF."""

from __future__ import annotations

import hashlib
import hmac
import json
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from matchmill.client.signatures import answer_challenge
from matchmill.errors import InputError
from matchmill.service.database.rows import DueWebhook
from matchmill.service.outbound import NotDelivered, check_url, post
from matchmill.service.service import system_clock
from tests.support.running_service import local_service, wait_until


class Receiver:
    """Notes what it gets; answers with the statuses that it was given, the last one for ever."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.messages: list[tuple[dict[str, str], bytes]] = []
        self.secrets: dict[str, str] = {}  # by subscription; whose is there gets an answer
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook?x=1"

    def _handler(receiver) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.messages.append((dict(self.headers.items()), body))
                statuses = receiver.statuses
                status = statuses.pop(0) if len(statuses) > 1 else statuses[0]
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", receiver.url + "&redirected=1")
                secret = receiver.secrets.get(json.loads(body).get("subscription_id"))
                answer = (answer_challenge(secret, body) if secret else None) or ""
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer.encode())

            def log_message(self, *_: Any) -> None:
                pass

        return Handler

    @property
    def events(self) -> list[Any]:
        """The events of all matches, as they came."""
        return [
            match["event"] for _, body in self.messages for match in json.loads(body)["matches"]
        ]


@contextmanager
def receiver(*statuses: int) -> Iterator[Receiver]:
    receiving = Receiver(*statuses)
    thread = threading.Thread(target=receiving.server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield receiving
    finally:
        receiving.server.shutdown()
        thread.join()
        receiving.server.server_close()


@contextmanager
def service(folder: Path, **settings: Any) -> Iterator[Any]:
    settings = {"allow_private_webhooks": True, "webhook_challenge": False} | settings
    with local_service(folder, system_clock, **settings) as local:  # type: ignore[arg-type]
        yield local


def test_matches_are_sent_signed_and_acknowledged(tmp_path: Path) -> None:
    with receiver(200) as hook, service(tmp_path / "s") as local:
        caller = local.caller()
        body = {"subscription_id": "a", "expression": "x = 1", "webhook": {"url": hook.url}}
        made = caller.post("/v1/subscriptions", body).json()
        for n in range(3):
            caller.publish({"x": 1, "n": n, "name": "é"})
        wait_until(lambda: caller.matches("a", made["ticket"]) == [])
        assert [event["n"] for event in hook.events] == [0, 1, 2]
        for headers, sent in hook.messages:
            parts = dict(part.split("=") for part in headers["Matchmill-Signature"].split(","))
            signed = parts["t"].encode() + b"." + sent
            right = hmac.new(made["webhook_secret"].encode(), signed, hashlib.sha256).hexdigest()
            assert parts["v1"] == right
            assert json.loads(sent)["subscription_id"] == "a"


@pytest.mark.slow
def test_a_failing_one_is_called_again_in_order(tmp_path: Path) -> None:
    with receiver(500, 302, 200) as hook, service(tmp_path / "s") as local:
        caller = local.caller()
        ticket = caller.subscribe("a", "x = 1", webhook={"url": hook.url})
        caller.publish({"x": 1, "n": 0})
        wait_until(lambda: caller.matches("a", ticket) == [])
        assert len(hook.messages) == 3
        assert len({body for _, body in hook.messages}) == 1


def test_after_the_last_try_matches_are_dead_letters(tmp_path: Path) -> None:
    with receiver(500) as hook, service(tmp_path / "s", webhook_attempts=1) as local:
        caller = local.caller()
        ticket = caller.subscribe("a", "x = 1", webhook={"url": hook.url})
        path = "/v1/subscriptions/a/dead-letters"
        caller.publish({"x": 1, "n": 0})
        wait_until(lambda: len(caller.get(path, ticket).json()["dead_letters"]) == 1)
        (letter,) = caller.get(path, ticket).json()["dead_letters"]
        assert letter["event"] == {"x": 1, "n": 0}
        assert (letter["n_attempts"], letter["reason"]) == (1, "the response has status 500")
        assert caller.get("/v1/subscriptions/a").json()["n_dead_letters"] == 1
        assert caller.matches("a", ticket) == []
        hook.statuses[:] = [200]
        assert caller.post(f"{path}/retry", None, ticket).json() == {"n_retried": 1}
        wait_until(lambda: caller.get("/v1/subscriptions/a").json()["n_pending"] == 0)
        assert hook.events[-1] == {"x": 1, "n": 0}


def test_what_was_not_delivered_is_delivered_after_a_restart(tmp_path: Path) -> None:
    with receiver(503, 200) as hook:
        with service(tmp_path / "s", webhook_backoff_seconds=3600) as local:
            ticket = local.caller().subscribe("a", "x = 1", webhook={"url": hook.url})
            local.caller().publish({"x": 1})
            wait_until(lambda: len(hook.messages) == 1)
        clock = lambda: system_clock() + 2 * 3600 * 1_000_000  # noqa: E731
        with local_service(
            tmp_path / "s",
            clock,  # type: ignore[arg-type]
            allow_private_webhooks=True,
            webhook_challenge=False,
        ) as local:
            wait_until(lambda: local.caller().matches("a", ticket) == [])
        assert hook.events == [{"x": 1}, {"x": 1}]


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://example.org/", "example.org", "http://", "http://user:pw@example.org/"),
        *("http://example.org:99999/", "http://exa mple.org/", "http://example.org/\r\nX: y"),
        *("http://[::1", "file:///etc/passwd", "http://example.org:0/", "http://exämple.org/"),
    ],
)
def test_bad_urls_are_rejected_when_subscribing(url: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="URL"):
        check_url(url)


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "0.0.0.0", "10.0.0.1", "192.168.1.1", "172.16.0.1"),
        *("169.254.169.254", "100.64.0.1", "[::1]", "[::ffff:127.0.0.1]", "[fe80::1]", "[fc00::1]"),
        *("2130706433", "0x7f.1", "224.0.0.1", "255.255.255.255", "[64:ff9b::7f00:1]", "[::]"),
        *("[2002:7f00:1::]", "192.0.0.1", "[64:ff9b:1::7f00:1]", "[::7f00:1]", "[fec0::1]"),
        *("168.63.129.16", "[2001::1]", "[2001:db8::1]", "[fd00:ec2::254]", "198.18.0.1"),
    ],
)
def test_private_addresses_are_not_called(host: str) -> None:
    with receiver(200) as hook:
        port = hook.server.server_address[1]
        url = f"http://{host}:{port}/"
        with pytest.raises(OSError, match="no address that may be called"):
            post(url, b"{}", {}, timeout=2, allow_private=False)
        assert hook.messages == []


def test_a_certificate_that_is_not_known_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is missing: apt install openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with receiver(200) as hook:
        hook.server.socket = context.wrap_socket(hook.server.socket, server_side=True)
        url = f"https://localhost:{hook.server.server_address[1]}/"
        with pytest.raises(OSError, match="no secure connection"):
            post(url, b"{}", {}, timeout=10, allow_private=True)
        assert hook.messages == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        post(url, b"{}", {}, timeout=10, allow_private=True)
        assert [body for _, body in hook.messages] == [b"{}"]


def test_a_receiver_that_drips_is_cut_off() -> None:
    """One byte now and then keeps a socket's own timeout from ever passing."""
    stopping = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            connection, _ = listening.accept()
            with connection:
                for byte in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 10_000:
                    try:
                        connection.send(bytes([byte]))
                    except OSError:
                        return
                    if stopping.wait(0.05):
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        with pytest.raises(OSError, match=r"there was no complete response in 0\.5 seconds"):
            post(url, b"{}", {}, timeout=0.5, allow_private=True)
        stopping.set()
        thread.join()


# -- challenges -----------------------------------------------------------------------------------


def test_only_who_knows_the_secret_gets_matches(tmp_path: Path) -> None:
    settings = {"webhook_challenge": True, "webhook_backoff_seconds": 1, "webhook_attempts": 1}
    with receiver(200) as hook, service(tmp_path / "s", **settings) as local:
        caller = local.caller()
        webhook = {"webhook": {"url": hook.url}}
        body = {"subscription_id": "a", "expression": "x = 1", **webhook}
        made = caller.post("/v1/subscriptions", body).json()
        path = "/v1/subscriptions/a/dead-letters"
        caller.publish({"x": 1, "n": 0})  # the receiver answers 200, and nothing else
        wait_until(lambda: caller.get(path, made["ticket"]).json()["dead_letters"])
        (letter,) = caller.get(path, made["ticket"]).json()["dead_letters"]
        assert letter["reason"] == "the receiver has not answered the challenge"
        (_, asked), *rest = hook.messages
        assert rest == []
        assert set(json.loads(asked)) == {"subscription_id", "challenge"}  # nothing of an event
        hook.secrets["a"] = made["webhook_secret"]
        caller.post(f"{path}/retry", None, made["ticket"])
        wait_until(lambda: caller.matches("a", made["ticket"]) == [])
        caller.publish({"x": 1, "n": 1})
        wait_until(lambda: caller.matches("a", made["ticket"]) == [])
        kinds = ["challenge" in json.loads(sent) for _, sent in hook.messages]
        assert kinds == [True, True, False, False]  # asked once more, and then never again
        # Another URL is another receiver.
        caller.patch("/v1/subscriptions/a", {"webhook": {"url": hook.url + "2"}}, made["ticket"])
        caller.publish({"x": 1, "n": 2})
        wait_until(lambda: len(hook.messages) == 5)
        assert "challenge" in json.loads(hook.messages[-1][1])


def test_an_echo_is_no_answer() -> None:
    body = b'{"subscription_id": "a", "challenge": "text"}'
    answer = answer_challenge("whsec_1", body)
    assert answer is not None
    assert answer.encode() not in body
    assert answer != answer_challenge("whsec_2", body)
    assert answer_challenge("whsec_1", b'{"matches": []}') is None
    assert answer_challenge("whsec_1", b"[]") is None


# -- turns ----------------------------------------------------------------------------------------


def due(tenant: int, number: int, host: str) -> DueWebhook:
    return DueWebhook(number, tenant, f"s{number}", f"http://{host}/{number}", b"", 0, True)


def test_tar_pits_leave_threads_for_others(tmp_path: Path) -> None:
    limits = {"webhook_threads": 6, "webhook_tenant_threads": 4, "webhook_host_threads": 2}
    with service(tmp_path / "s", **limits) as local:
        webhooks = local.service.webhooks
        pits = [due(1, n, "pit.example") for n in range(9)]
        others = [due(1, n, f"h{n}.example") for n in range(20, 29)]
        chosen = webhooks._chosen([*pits, *others])
        assert [one.number for one in chosen] == [0, 1, 20, 21]
        assert webhooks._chosen([*pits, *others]) == []
        # Of another tenant also at the same host: a host's limit is not shared.
        neighbours = [due(2, n, "pit.example") for n in range(40, 49)]
        chosen += webhooks._chosen([*pits, *neighbours])
        assert [one.number for one in chosen[4:]] == [40, 41]
        assert webhooks.figures(1)["n_running"] == 4
        assert webhooks._chosen([due(3, 60, "h.example")]) == []  # all threads
        for one in chosen:
            webhooks._count(one, -1)
        assert webhooks.figures(1) == {"n_running": 0, "n_failed": 0}


def test_what_is_due_comes_by_turns_of_the_tenants(tmp_path: Path) -> None:
    with service(tmp_path / "s", webhook_attempts=1) as local:
        local.service.webhooks.stop()
        loud, quiet = local.caller("loud"), local.caller("quiet")
        for n in range(5):
            loud.subscribe(f"l{n}", "x = 1", webhook={"url": "http://127.0.0.1:9/"})
        quiet.subscribe("q", "x = 1", webhook={"url": "http://127.0.0.1:9/"})
        loud.publish({"x": 1})
        quiet.publish({"x": 1})
        found = local.service.read_now(lambda r: r.due_webhooks(system_clock(), 3, 10))
        assert [one.id[0] for one in found] == ["l", "q", "l", "l"]


# -- responses without an end ---------------------------------------------------------------------


@contextmanager
def answering(*pieces: bytes, forever: bool = False) -> Iterator[str]:
    """A receiver that sends these bytes, once or again and again."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def run() -> None:
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                for piece in pieces:
                    connection.sendall(piece)
                while forever:
                    connection.sendall(pieces[-1])
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(4096):
                    pass

        thread = threading.Thread(target=run)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        thread.join()


CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
NO_END = "the response is not HTTP, or its header has no end"
REASONS = {
    "continue": (CONTINUE, True, NO_END),
    "one header": (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 99, True, NO_END),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", False, "the response is not HTTP"),
    "elsewhere": (b"HTTP/1.1 302 Found\r\n\r\n", False, "the response has status 302"),
}


@pytest.mark.parametrize("name", REASONS)
def test_a_response_without_an_end_is_cut_off(name: str) -> None:
    piece, forever, reason = REASONS[name]
    with answering(piece, forever=forever) as url:
        with pytest.raises(NotDelivered) as caught:
            post(url, b"{}", {}, timeout=60, allow_private=True)
        assert str(caught.value) == reason


def test_one_that_says_continue_first_is_accepted() -> None:
    good = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more"
    with answering(CONTINUE, CONTINUE + good[:20], good[20:]) as url:
        response = post(url, b"{}", {}, timeout=60, allow_private=True)
    assert (response.status, response.body[:5]) == (200, b"hello")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/", "http://no-such-host.invalid/"])
def test_reasons_reveal_nothing_of_the_network(url: str) -> None:
    with pytest.raises(NotDelivered) as caught:
        post(url, b"{}", {}, timeout=10, allow_private=True)
    assert "127.0.0.1" not in str(caught.value)
    assert "Errno" not in str(caught.value)
    assert "invalid" not in str(caught.value)
