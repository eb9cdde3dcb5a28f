"""The client against a real server process, which is also killed."""

from __future__ import annotations

import datetime as dt
import re
import socket
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import matchmill as mm
from matchmill.client import Client, Digest, Match, Published, Rejected, Subscribed
from matchmill.errors import ServiceError
from matchmill.language.evaluate import evaluate
from tests.support.generators import cases
from tests.support.running_service import ServerProcess, new_key, running

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    folder = tmp_path_factory.mktemp("client") / "served"
    with running(folder) as server:
        yield folder, server.address


@pytest.fixture
def client(home: tuple[Path, str], request: pytest.FixtureRequest) -> Iterator[Client]:
    """With a key of a tenant that this test has for itself."""
    folder, address = home
    with Client(address, key=new_key(folder, tenant=request.node.name)) as found:
        yield found


def seqs(received: list[object]) -> list[int]:
    return [one.seq for one in received if isinstance(one, Match | Digest)]


# -- subscriptions --------------------------------------------------------------------------------


def test_a_subscription_from_its_beginning_to_its_end(client: Client) -> None:
    made = client.subscribe(mm.attr("price") < 10, id="ä b?#%", valid_seconds=60, max_per_minute=5)
    assert made.id == "ä b?#%"
    stored = client.get(made.id)
    assert stored == client.get(made.id, made.ticket)
    assert (stored.expression, stored.max_per_minute, stored.webhook) == ("price < 10", 5, None)
    assert stored.expires_at == made.expires_at
    assert client.renew(made.id, made.ticket, 3600) > made.expires_at + dt.timedelta(minutes=50)
    client.unsubscribe(made.id, made.ticket)
    with pytest.raises(ServiceError) as caught:
        client.get(made.id)
    assert (caught.value.status, caught.value.code) == (404, "not_found")


def test_errors_show_the_place(client: Client) -> None:
    with pytest.raises(ServiceError) as caught:
        client.subscribe("price < < 10")
    assert caught.value.position == {"offset": 8, "line": 1, "column": 9, "length": 1}
    assert "  price < < 10\n          ^" in str(caught.value)
    checked = client.check("price < < 10")
    assert (checked.ok, str(checked.error)) == (False, str(caught.value))
    assert client.check("price<10").normalized == "price < 10"


def test_many_subscriptions(client: Client) -> None:
    rows: list[tuple[str | None, str]] = [(f"s{n:04}", f"n = {n}") for n in range(1_200)]
    rows[7] = ("s0007", "n = = 7")
    rows[8] = (None, "n = 8")
    made = client.subscribe_many(rows, valid_seconds=600)
    bad = made[7]
    assert isinstance(bad, Rejected)
    assert (bad.row, bad.id, bad.error.code) == (7, "s0007", "bad_expression")
    good = [one for one in made if isinstance(one, Subscribed)]
    assert len(good) == 1_199
    assert sorted(one.id for one in good) == [one.id for one in client.list()]
    assert client.test({"n": 1_199}) == ["s1199"]
    assert [one.id for one in client.list(after="s1197")] == ["s1198", "s1199"]
    again = client.subscribe_many({"s0000": "n = 0", "new": {"n": [0]}})
    assert [isinstance(one, Subscribed) for one in again] == [False, True]


# -- questions ------------------------------------------------------------------------------------


def test_questions(client: Client) -> None:
    client.subscribe("n > 5", id="a")
    explained = client.explain({"n": 3}, id="a")
    assert (explained.matches, explained.tree["note"]) == (
        False,
        "n is 3, needs > 5 (2 too little)",
    )
    assert client.explain({"n": 3}, expression=mm.attr("n") > 2).matches
    with pytest.raises(ServiceError, match="give either the id"):
        client.explain({"n": 3})
    client.publish_many({"n": n} for n in range(100))
    tried = client.backtest("n < 10", last=50)
    assert (tried.events, tried.matched) == (50, 0)
    assert client.backtest("n < 10").matched == 10
    assert client.stats()["subscriptions"] == 1


def test_the_service_agrees_with_the_oracle(client: Client) -> None:
    """Generated expressions and events, as far as JSON can say them."""
    expressions, events = cases(seed=11, n_expressions=60, n_events=60)
    made = client.subscribe_many((str(k), one) for k, one in enumerate(expressions))
    assert all(isinstance(one, Subscribed) for one in made)
    n_matches = 0
    for event in (without_dates(event) for event in events):
        expected = {str(k) for k, one in enumerate(expressions) if evaluate(one, event) is True}
        assert set(client.test(event)) == expected
        n_matches += len(expected)
    assert n_matches > 100


def without_dates(value: Any) -> Any:
    """Generated events have dates, which JSON lacks: in their place there is nothing."""
    if isinstance(value, dict):
        return {name: without_dates(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [inner for inner in value if not isinstance(inner, dt.date)]
    return None if isinstance(value, dt.date) else value


# -- events and matches ---------------------------------------------------------------------------


def test_publishing(client: Client) -> None:
    client.subscribe("n >= 0", id="a")
    first = client.publish({"n": 1}, event_id="e1")
    assert first == Published("e1", 1) == client.publish({"n": 1}, event_id="e1")
    report = client.publish_many(
        [("e2", {"n": 2}), {"n": -1}, {"n": 2**70}, {"d": dt.date.today()}]
    )
    assert (report.n_published, report.n_matches) == (2, 1)
    assert [one.row for one in report.rejected] == [2, 3]
    assert "JSON has no dates" in report.rejected[1].error.message
    results = list(client.publish_stream(({"n": n} for n in (1, 2**70, -3)), at_once=2))
    assert [isinstance(one, Published) for one in results] == [True, False, True]
    assert client.get("a").pending == 3


def test_a_stream_of_events_is_answered_as_it_goes(client: Client) -> None:
    """Each event is made only after the one before it was answered."""
    client.subscribe("n >= 0", id="a")
    n_answered = 0

    def events() -> Iterator[dict[str, int]]:
        for n in range(5):
            assert n_answered == n
            yield {"n": n}

    for result in client.publish_stream(events(), at_once=1):
        assert isinstance(result, Published)
        n_answered += 1
    assert n_answered == 5


def test_matches_are_acknowledged_when_the_next_is_asked_for(client: Client) -> None:
    made = client.subscribe("n >= 0", id="a")
    client.publish_many({"n": n} for n in range(5))
    received = client.matches("a", made.ticket)
    first, second, _ = islice(received, 3)
    assert isinstance(first, Match)
    assert isinstance(second, Match)
    assert (first.event, second.event) == ({"n": 0}, {"n": 1})
    assert client.get("a").pending == 3  # the third is being processed
    received.close()  # type: ignore[attr-defined]
    rest = list(client.matches("a", made.ticket, wait=0, acknowledge_every=2))
    assert [one.event["n"] for one in rest if isinstance(one, Match)] == [2, 3, 4]
    assert client.get("a").pending == 0


def test_matches_are_kept_until_they_are_acknowledged(client: Client) -> None:
    made = client.subscribe("n >= 0", id="a")
    client.publish_many({"n": n} for n in range(5))
    received = list(client.matches("a", made.ticket, wait=0, acknowledge_every=0))
    assert client.get("a").pending == 5
    client.acknowledge("a", made.ticket, seqs(received)[2])
    later = list(client.matches("a", made.ticket, wait=0))
    assert seqs(later) == seqs(received)[3:]
    resumed = list(client.matches("a", made.ticket, wait=0, after=seqs(received)[3]))
    assert resumed == []


def test_a_poll_waits_for_a_match(client: Client) -> None:
    made = client.subscribe("n >= 0", id="a")
    received = client.matches("a", made.ticket, wait=60)
    publishing = threading.Thread(target=client.publish, args=({"n": 1},))
    publishing.start()
    match = next(received)
    publishing.join()
    assert isinstance(match, Match)
    assert match.event == {"n": 1}


def test_what_goes_beyond_the_most_per_minute_waits_for_its_digest(client: Client) -> None:
    made = client.subscribe("n >= 0", id="a", max_per_minute=1)
    client.publish_many({"n": n} for n in range(3))
    (match,) = client.matches("a", made.ticket, wait=0)
    assert isinstance(match, Match)


def test_streams(client: Client) -> None:
    made = client.subscribe("n >= 0", id="a")
    live = client.live()
    stream = client.stream("a", made.ticket)
    client.publish_many({"n": n} for n in range(3))
    received = list(islice(stream, 3))
    assert [one.event["n"] for one in received if isinstance(one, Match)] == [0, 1, 2]
    after = client.stream("a", made.ticket, after=seqs(received)[1])
    assert seqs([next(after)]) == seqs(received)[2:]
    publishing = threading.Thread(
        target=client.publish_many, args=([{"n": n} for n in range(1_000)],)
    )
    publishing.start()
    shown = next(live)
    publishing.join()
    assert "a" in shown.subscriptions  # type: ignore[union-attr]
    client.unsubscribe("a")
    rest = list(stream)  # ends with the subscription
    assert len(rest) <= 1_000
    assert client._transport._idle


def test_tenants_and_scopes(home: tuple[Path, str]) -> None:
    folder, address = home
    with Client(address, key=new_key(folder, tenant="small", scopes=("read",))) as client:
        with pytest.raises(ServiceError) as caught:
            client.subscribe("x = 1")
        assert (caught.value.status, caught.value.hint) == (403, "its scopes are: read")
    with Client(address) as nobody, pytest.raises(ServiceError) as caught:
        nobody.stats()
    assert caught.value.status == 401


def test_threads_share_a_client(client: Client) -> None:
    client.subscribe("n >= 0", id="a")

    def publish() -> None:
        for n in range(20):
            client.publish({"n": n})

    threads = [threading.Thread(target=publish) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.get("a").pending == 120


# -- the guide ------------------------------------------------------------------------------------


def test_the_examples_of_the_guide_run(
    home: tuple[Path, str], client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = Path(__file__).parents[2] / "docs" / "guides" / "CLIENT.md"
    blocks = re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    monkeypatch.setenv("MATCHMILL_KEY", str(client._key))
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block.replace("http://127.0.0.1:8080", home[1]), names)


# -- a server that dies ---------------------------------------------------------------------------


def test_nothing_is_lost_or_doubled_when_the_server_is_killed(tmp_path: Path) -> None:
    """kill -9 in the middle of a stream of events, and of a reader; both go on by themselves."""
    folder = tmp_path / "served"
    key = new_key(folder)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    servers = [ServerProcess(folder, "--port", str(port))]
    servers[0].wait_ready()
    n_events = 3_000
    received: list[int] = []
    with Client(servers[0].address, key=key, retries=100) as client:
        made = client.subscribe("n >= 0", id="a")

        def read() -> None:
            for entry in islice(client.stream("a", made.ticket), n_events):
                assert isinstance(entry, Match)
                received.append(entry.event["n"])

        reading = threading.Thread(target=read)
        reading.start()
        events = ({"n": n} for n in range(n_events))
        for n_published, result in enumerate(client.publish_stream(events, at_once=100), 1):
            assert isinstance(result, Published)
            assert result.matched == 1
            if n_published in (1_000, 2_000):
                servers[-1].kill()
                servers.append(ServerProcess(folder, "--port", str(port)))
        reading.join(60)
        mailbox = list(client.matches("a", made.ticket, wait=0, acknowledge_every=500))
        assert [one.event["n"] for one in mailbox if isinstance(one, Match)] == [*range(n_events)]
        assert received == [*range(n_events)]
    servers[-1].stop()
