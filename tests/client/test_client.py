"""Both clients against a real server process, which is also killed."""

from __future__ import annotations

import datetime as dt
import re
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import matchmill as mm
from matchmill.client import AsyncClient, Client, Digest, Match, Published
from matchmill.errors import (
    DuplicateIdError,
    EventError,
    ExpressionError,
    InputError,
    ServiceError,
    UnknownIdError,
)
from matchmill.language.evaluate import evaluate
from tests.support.awaited_client import AwaitedClient
from tests.support.generators import cases
from tests.support.running_service import ServerProcess, new_key, running

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    folder = tmp_path_factory.mktemp("client") / "served"
    with running(folder) as server:
        yield folder, server.address


@pytest.fixture
def key(home: tuple[Path, str], request: pytest.FixtureRequest) -> str:
    """A key of a tenant that this test has for itself."""
    return new_key(home[0], tenant=request.node.name)


@pytest.fixture(params=[Client, AwaitedClient], ids=["blocking", "asyncio"])
def client(home: tuple[Path, str], key: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Make one client of each kind."""
    with request.param(home[1], key=key) as found:
        yield found


def seqs(received: list[Any]) -> list[int]:
    return [one.seq for one in received if isinstance(one, Match | Digest)]


# -- subscriptions --------------------------------------------------------------------------------


def test_a_subscription_from_its_beginning_to_its_end(client: Any) -> None:
    made = client.subscribe("ä b?#%", mm.attr("price") < 10, ttl_seconds=60, max_per_minute=5)
    assert (made.id, made.expression) == ("ä b?#%", "price < 10")
    stored = client.get(made.id)
    assert stored == client.get(made.id, ticket=made.ticket)
    assert (stored.expression, stored.max_per_minute, stored.webhook) == ("price < 10", 5, None)
    assert (stored.expires_at, stored.ticket) == (made.expires_at, None)
    renewed = client.renew(made.id, ttl_seconds=3600, ticket=made.ticket)
    assert renewed.expires_at > made.expires_at + dt.timedelta(minutes=50)
    assert client.renew(made.id, ticket=made.ticket).expires_at > renewed.expires_at
    updated = client.update(made.id, expression={"price": [7]}, max_per_minute=9)
    assert (updated.max_per_minute, updated.expires_at > renewed.expires_at) == (9, True)
    assert client.match({"price": 7}) == {made.id}
    assert client.match({"price": 8}) == set()
    client.unsubscribe(made.id, ticket=made.ticket)
    for call in (client.get, client.unsubscribe, client.renew):
        with pytest.raises(UnknownIdError):
            call(made.id)
    with pytest.raises(InputError, match="something to change"):
        client.update("a")


def test_an_id_is_taken_once_or_replaced(client: Any) -> None:
    first = client.subscribe("a", "price < 10")
    with pytest.raises(DuplicateIdError):
        client.subscribe("a", "price < 20")
    second = client.subscribe("a", "price < 20", replace=True)
    assert (second.expression, client.get("a").expression) == ("price < 20", "price < 20")
    assert second.ticket not in (None, first.ticket)
    assert client.get("a", ticket=second.ticket).id == "a"
    assert client.subscribe(None, "price < 30").id != "a"


def test_expression_errors_show_the_place(client: Any) -> None:
    """As an engine does, so that code can be shared."""
    with pytest.raises(ExpressionError) as ours:
        mm.Engine().subscribe("a", "price < < 10")
    with pytest.raises(ExpressionError) as theirs:
        client.subscribe("a", "price < < 10")
    assert str(theirs.value) == str(ours.value)
    assert (theirs.value.position, theirs.value.column) == (8, 9)
    report = client.check("price < < 10")
    assert (report.ok, len(report.rejected)) == (False, 1)
    assert "at line 1, column 9" in report.rejected[0].reason
    assert "\n" not in report.rejected[0].reason
    assert client.check("price<10").normalized == "price < 10"
    assert [one.kind for one in client.check("x < 1 and x > 2").warnings] == ["never"]
    report = client.check("prize < 20", [{"price": n} for n in range(30)])
    assert (report.n_subscriptions, report.n_events) == (1, 30)
    assert str(report.warnings[0]).endswith("has prize; did you mean 'price'?")


def test_many_subscriptions(client: Any) -> None:
    rows: list[tuple[str | None, str]] = [(f"s{n:04}", f"n = {n}") for n in range(1_200)]
    rows[7] = ("s0007", "n = = 7")
    rows[8] = (None, "m = 8")
    report = client.subscribe_many(rows, ttl_seconds=600)
    (bad,) = report.rejected
    assert (bad.row, bad.id) == (7, "s0007")
    assert "\n" not in bad.reason
    assert (report.n_accepted, len(report.subscriptions)) == (1_199, 1_199)
    listed = list(client.subscriptions())
    assert sorted(one.id for one in report.subscriptions) == [one.id for one in listed]
    assert [one.expression for one in client.subscriptions(attribute="m")] == ["m = 8"]
    assert client.match({"n": 1_199}) == {"s1199"}
    again = client.subscribe_many({"s0000": "n = 0", "new": {"n": [0]}})
    assert [one.id for one in again.subscriptions] == ["new"]
    assert [one.id for one in again.rejected] == ["s0000"]
    replaced = client.subscribe_many({"s0000": "n = 5000", "newer": "n = 5000"}, replace=True)
    assert (replaced.n_accepted, replaced.n_replaced) == (2, 1)
    assert client.match({"n": 5000}) == {"s0000", "newer"}


def test_subscriptions_of_a_file(client: Any, tmp_path: Path) -> None:
    path = tmp_path / "alerts.csv"
    path.write_text("rule,name\nx = 1,u1\nx =,u2\n")
    report = client.subscribe_many(path, subscription_id="name", expression="rule")
    assert [one.id for one in report.subscriptions] == ["u1"]
    (bad,) = report.rejected
    assert (bad.row, bad.line, bad.source, bad.id) == (1, 3, str(path), "u2")


# -- queries --------------------------------------------------------------------------------------


def test_queries(client: Any) -> None:
    client.subscribe("a", "n > 5 and m = 1")
    event = {"n": 3, "m": 1}
    explained = client.explain("a", event)
    engine = mm.Engine()
    engine.subscribe("a", "n > 5 and m = 1")
    assert explained == engine.explain("a", event)
    assert (explained.id, explained.matched, explained.n_missing) == ("a", False, 1)
    assert "n is 3, needs > 5 (2 too little)" in str(explained)
    assert client.explain(None, {"n": 3}, expression=mm.attr("n") > 2).matched
    with pytest.raises(InputError, match="the id of a subscription or an expression"):
        client.explain(None, {"n": 3})
    client.publish_many({"n": n} for n in range(100))
    tried = client.backtest("n < 10", last=50)
    assert (tried.n_events, tried.n_matches) == (50, 0)
    found = client.backtest("n < 10")
    assert (found.n_matches, len(found.event_ids)) == (10, 10)
    assert client.stats()["n_subscriptions"] == 1


def test_patterns_of_another_dialect(client: Any) -> None:
    pattern, stored = {"a": [None]}, """eventbridge '{"a":[null]}'"""
    assert client.subscribe("a", pattern, dialect="eventbridge").expression == stored
    report = client.subscribe_many({"b": pattern, "c": "x = 1"}, dialect="eventbridge")
    assert [one.id for one in report.subscriptions] == ["b"]
    assert "not valid JSON" in report.rejected[0].reason
    client.subscribe("c", pattern)
    assert client.match({"a": None}) == {"a", "b", "c"}
    assert client.match({}) == {"c"}
    client.update("c", expression=pattern, dialect="eventbridge")
    assert client.match({}) == set()
    parsed = mm.parse(pattern, dialect="eventbridge")
    for expression in (pattern, parsed):
        assert client.check(expression, dialect="eventbridge").normalized == stored
        explained = client.explain(None, {}, expression=expression, dialect="eventbridge")
        assert not explained.matched
        assert client.backtest(expression, dialect="eventbridge").n_matches == 0
    assert [one.id for one in client.subscriptions(attribute="a")] == ["a", "b", "c"]
    with pytest.raises(InputError, match="did you mean 'eventbridge'"):
        client.subscribe("d", pattern, dialect="eventbrigde")


def test_the_service_agrees_with_the_oracle(client: Any) -> None:
    """Generated expressions and events, as far as JSON can hold them."""
    expressions, events = cases(seed=11, n_expressions=60, n_events=60)
    made = client.subscribe_many((str(k), one) for k, one in enumerate(expressions))
    assert made.rejected == []
    n_matches = 0
    for event in (without_dates(event) for event in events):
        expected = {str(k) for k, one in enumerate(expressions) if evaluate(one, event) is True}
        assert client.match(event) == expected
        n_matches += len(expected)
    assert n_matches > 100


def without_dates(value: Any) -> Any:
    """Leave out the dates of generated events, which JSON does not have."""
    if isinstance(value, dict):
        return {name: without_dates(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [inner for inner in value if not isinstance(inner, dt.date)]
    return None if isinstance(value, dt.date) else value


# -- events and matches ---------------------------------------------------------------------------


def test_publishing(client: Any) -> None:
    client.subscribe("a", "n >= 0")
    first = client.publish({"n": 1}, event_id="e1")
    assert first == Published("e1", 1) == client.publish({"n": 1}, event_id="e1")
    with pytest.raises(EventError):
        client.publish({"n": float("inf")})
    bad = {"n": float("inf"), "name": "e4"}  # JSON has no infinity
    events = [{"n": 2, "name": "e2"}, {"n": -1, "name": "e3"}, bad, {"n": 3}]
    report = client.publish_many(events, event_id="name")
    assert (report.n_published, report.n_matches) == (2, 1)
    assert [(one.row, one.id) for one in report.rejected] == [(2, "e4"), (3, None)]
    assert client.get("a").n_pending == 2


def test_a_csv_with_times_is_published(client: Any, tmp_path: Path) -> None:
    """What `match` reads as a time is published as text, since JSON has no times."""
    path = tmp_path / "flights.csv"
    path.write_text("flight,delay,at\n1,70,2013-01-31T10:00\n2,10,2013-01-31T11:00\n")
    made = client.subscribe("a", "delay > 60")
    report = client.publish_many(str(path), event_id="flight")
    assert (report.n_published, report.n_matches, report.rejected) == (2, 1, [])
    (match,) = client.receive("a", ticket=made.ticket, wait=0)
    assert match.event_id == "1"
    assert match.event == {"flight": 1, "delay": 70, "at": "2013-01-31T10:00:00+00:00"}


def test_events_are_published_as_they_come(client: Any) -> None:
    """Each event is made only after the one before it was published."""
    client.subscribe("a", "n >= 0")
    n_published = 0

    def events() -> Iterator[dict[str, int]]:
        for n in range(5):
            assert n_published == n
            yield {"n": n}

    for report in client.publish_batches(events(), batch_size=1):
        n_published += report.n_published
    assert n_published == 5


def test_matches_are_acknowledged_when_the_next_is_asked_for(client: Any) -> None:
    made = client.subscribe("a", "n >= 0")
    client.publish_many({"n": n} for n in range(5))
    received = client.receive("a", ticket=made.ticket)
    first, second, _ = islice(received, 3)
    assert (first.event, second.event) == ({"n": 0}, {"n": 1})
    assert (first.subscription_id, second.seq > first.seq) == ("a", True)
    assert client.get("a").n_pending == 3  # the third is being processed
    received.close()
    rest = list(client.receive("a", ticket=made.ticket, wait=0, acknowledge_every=2))
    assert [one.event["n"] for one in rest] == [2, 3, 4]
    assert client.get("a").n_pending == 0


def test_matches_are_kept_until_they_are_acknowledged(client: Any) -> None:
    made = client.subscribe("a", "n >= 0")
    client.publish_many({"n": n} for n in range(5))
    received = list(client.receive("a", ticket=made.ticket, wait=0, acknowledge_every=0))
    assert client.get("a").n_pending == 5
    client.acknowledge("a", seqs(received)[2], ticket=made.ticket)
    later = list(client.receive("a", ticket=made.ticket, wait=0))
    assert seqs(later) == seqs(received)[3:]
    after = seqs(received)[3]
    assert list(client.receive("a", ticket=made.ticket, wait=0, after=after)) == []


def test_a_poll_waits_for_a_match(home: tuple[Path, str], key: str, client: Any) -> None:
    made = client.subscribe("a", "n >= 0")
    received = client.receive("a", ticket=made.ticket, wait=60)
    with Client(home[1], key=key) as other:
        publishing = threading.Timer(0.2, other.publish, args=({"n": 1},))
        publishing.start()
        match = next(received)
        publishing.join()
    assert match.event == {"n": 1}


def test_matches_beyond_the_most_per_minute_wait_for_their_digest(client: Any) -> None:
    made = client.subscribe("a", "n >= 0", max_per_minute=1)
    client.publish_many({"n": n} for n in range(3))
    (match,) = client.receive("a", ticket=made.ticket, wait=0)
    assert isinstance(match, Match)


def test_live(home: tuple[Path, str], key: str, client: Any) -> None:
    client.subscribe("a", "n >= 0")
    client.subscribe("b", "n >= 0")
    with Client(home[1], key=key) as other:
        publishing = threading.Timer(0.3, other.publish, args=({"n": 1},))
        publishing.start()
        shown = list(islice(client.live(), 2))
        publishing.join()
    assert [(one.subscription_id, one.event) for one in shown] == [("a", {"n": 1}), ("b", {"n": 1})]


def test_dead_letters(client: Any) -> None:
    made = client.subscribe("a", "n >= 0", webhook="http://203.0.113.1/hook")
    assert made.webhook_secret
    assert client.dead_letters("a", ticket=made.ticket) == []
    assert client.retry_dead_letters("a", ticket=made.ticket) == 0


def test_tenants_and_scopes(home: tuple[Path, str]) -> None:
    folder, address = home
    with Client(address, key=new_key(folder, tenant="small", scopes=("read",))) as client:
        with pytest.raises(ServiceError) as caught:
            client.subscribe("a", "x = 1")
        assert caught.value.status == 403
    with Client(address) as nobody, pytest.raises(ServiceError) as caught:
        nobody.stats()
    assert caught.value.status == 401


def test_threads_share_a_client(home: tuple[Path, str], key: str) -> None:
    with Client(home[1], key=key) as client:
        client.subscribe("a", "n >= 0")

        def publish() -> None:
            for n in range(20):
                client.publish({"n": n})

        threads = [threading.Thread(target=publish) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert client.get("a").n_pending == 120


def test_tasks_share_an_asynchronous_client(home: tuple[Path, str], key: str) -> None:
    import asyncio

    async def events() -> AsyncIterator[dict[str, int]]:
        for n in range(7):
            yield {"n": n}

    async def work() -> None:
        async with AsyncClient(home[1], key=key) as client:
            made = await client.subscribe("a", "n >= 0")
            await asyncio.gather(*(client.publish({"n": n}) for n in range(30)))
            reports = [one async for one in client.publish_batches(events(), batch_size=3)]
            assert [one.n_published for one in reports] == [3, 3, 1]
            assert (await client.get("a")).n_pending == 37
            async for match in client.receive("a", ticket=made.ticket):
                assert isinstance(match, Match)
                break

    asyncio.run(work())


# -- the guide ------------------------------------------------------------------------------------


def test_the_examples_of_the_guide_run(
    home: tuple[Path, str], key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = Path(__file__).parents[2] / "docs" / "guides" / "CLIENT.md"
    blocks = re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    monkeypatch.setenv("MATCHMILL_KEY", key)
    monkeypatch.setenv("MATCHMILL_URL", home[1])
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block.replace("http://127.0.0.1:8080", home[1]), names)


# -- a server that dies ---------------------------------------------------------------------------


def test_nothing_is_lost_or_doubled_when_the_server_is_killed(tmp_path: Path) -> None:
    """kill -9 while events are published and matches are read; both go on."""
    folder = tmp_path / "served"
    key = new_key(folder)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    servers = [ServerProcess(folder, "--port", str(port))]
    servers[0].wait_ready()
    n_events = 3_000
    received: list[int] = []
    with Client(servers[0].address, key=key, retries=100) as client:
        made = client.subscribe("a", "n >= 0")

        def read() -> None:
            ticket = made.ticket or ""
            mailbox = client.receive("a", ticket=ticket, acknowledge_every=0)
            for entry in islice(mailbox, n_events):
                assert isinstance(entry, Match)
                received.append(entry.event["n"])

        reading = threading.Thread(target=read)
        reading.start()
        events = ({"n": n} for n in range(n_events))
        n_published = 0
        for report in client.publish_batches(events, batch_size=100):
            assert (report.n_published, report.n_matches) == (100, 100)
            n_published += 100
            if n_published in (1_000, 2_000):
                servers[-1].kill()
                servers.append(ServerProcess(folder, "--port", str(port)))
        reading.join(60)
        mailbox = list(client.receive("a", ticket=made.ticket, wait=0, acknowledge_every=500))
        assert [one.event["n"] for one in mailbox if isinstance(one, Match)] == [*range(n_events)]
        assert received == [*range(n_events)]
    servers[-1].stop()
