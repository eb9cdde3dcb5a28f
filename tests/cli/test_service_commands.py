"""Commands with the URL of a service, against a real server process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from matchmill.client import Client
from tests.support.running_service import new_key, running

pytestmark = pytest.mark.slow

Run = Callable[..., Any]

SUBSCRIPTIONS = """\
subscription_id,expression
u1,price <= 580
u2,"origin in ('JFK', 'EWR') and price > 100"
u3,price < <
u4,true
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    folder = tmp_path_factory.mktemp("client") / "served"
    with running(folder) as server:
        yield folder, server.address


@pytest.fixture
def key(home: tuple[Path, str], request: pytest.FixtureRequest) -> str:
    return new_key(home[0], tenant=request.node.name)


@pytest.fixture
def url(home: tuple[Path, str], key: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of the service; the key is in the environment."""
    monkeypatch.setenv("MATCHMILL_KEY", key)
    Path("subs.csv").write_text(SUBSCRIPTIONS)
    return home[1]


@pytest.fixture
def client(url: str, key: str) -> Iterator[Client]:
    with Client(url, key=key) as found:
        yield found


def test_one_subscription(
    run: Run, url: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run("subscribe", url, "a", "price < 10", "--max-per-minute", "9")
    facts = dict(line.split(": ", 1) for line in result.out.splitlines())
    assert (result.code, list(facts)) == (0, ["subscription_id", "ticket", "expires_at"])
    assert client.get("a", ticket=facts["ticket"]).max_per_minute == 9
    assert run("subscribe", url, "a", "price < 9").code == 2
    again = run("subscribe", url, "a", "price < 9", "--replace", "--format", "json")
    ticket = json.loads(again.out)["ticket"]
    listed = run("list", url).out
    assert listed.startswith("a  20")
    assert listed.endswith("  0  price < 9\n")
    monkeypatch.setenv("MATCHMILL_TICKET", ticket)
    assert "give one ID" in run("unsubscribe", url, "a", "b").err
    assert run("unsubscribe", url, "a") == (0, "", "")
    missing = run("unsubscribe", url, "a")
    assert missing.code == 2
    assert missing.err.startswith("matchmill: error: there is no such subscription")


def test_a_file_of_subscriptions(run: Run, url: str, client: Client) -> None:
    result = run("subscribe", url, "--file", "subs.csv", "--rejected", "bad.jsonl")
    assert result.code == 3
    head, *lines = result.out.splitlines()
    assert head == "subscription_id,ticket,expires_at"
    tickets = {line.split(",")[0]: line.split(",")[1] for line in lines}
    assert list(tickets) == ["u1", "u2", "u4"]
    assert client.get("u1", ticket=tickets["u1"]).expression == "price <= 580"
    assert "subscriptions: 3 accepted, 1 rejected" in result.err
    assert "  subs.csv:4: u3: " in result.err
    (bad,) = map(json.loads, Path("bad.jsonl").read_text().splitlines())
    assert (bad["row"], bad["line"], bad["id"]) == (2, 4, "u3")
    assert "\n" not in bad["reason"]
    Path("more.jsonl").write_text(
        '{"subscription_id": 7, "expression": {"x": [1]}}\n'
        '{"subscription_id": 8, "expression": 3}\n'
    )
    more = run("subscribe", url, "--file", "more.jsonl", "--format", "json")
    assert (more.code, json.loads(more.out)["subscription_id"]) == (3, "7")
    assert "more.jsonl:2: 8: an expression is text" in more.err
    assert len(run("list", url, "--format", "json").out.splitlines()) == 4
    assert len(run("list", url, "--limit", "2").out.splitlines()) == 2
    assert [line.split()[0] for line in run("list", url, "--attribute", "x").out.splitlines()] == [
        "7"
    ]


def test_publish_what_match_reads(run: Run, url: str, client: Client) -> None:
    """The CSV of flights has a date, which JSON has not: it is published as text."""
    client.subscribe("cheap", "price <= 580")
    result = run("publish", url, "events.csv", "--event-id", "flight")
    assert (result.code, result.err) == (0, "events: 3 published, 0 rejected\nmatches: 1\n")
    assert run("publish", url, "events.csv", "--event-id", "flight").code == 0
    assert client.get("cheap").n_pending == 1  # the same events
    pq.write_table(pa.table({"price": [1, 2, None]}), "events.parquet")
    assert "matches: 2" in run("publish", url, "events.parquet").err
    Path("events.jsonl").write_text('{"a": {"price": 1}}\n\n{"price": 1\n{"price": 1}\n')
    lines = run("publish", url, "events.jsonl", "events.parquet", "--rejected", "bad.csv")
    assert (lines.code, "5 published, 1 rejected" in lines.err) == (3, True)
    assert 'event,1,3,events.jsonl,,"not valid JSON' in Path("bad.csv").read_text()
    assert client.backtest("a.price = 1").n_matches == 1
    assert "is not the URL of a service" in run("publish", "saved", "events.csv").err


def test_queries(run: Run, url: str, client: Client) -> None:
    client.subscribe("cheap", "price <= 580")
    matched = run("match", url, "events.csv", "--event-id", "flight")
    assert matched.out.split() == ["event_id,subscription_id", "A1,cheap"]
    assert f"subscriptions: of {url}" in matched.err
    lists = run("match", url, "events.csv", "--per-event", "--quiet", "--format", "jsonl").out
    assert [json.loads(line)["subscription_ids"] for line in lists.splitlines()] == [
        ["cheap"],
        [],
        [],
    ]
    explained = run("explain", url, "cheap", '{"price": 700}')
    assert (explained.code, "needs <= 580" in explained.out) == (1, True)
    assert run("explain", url, "cheap", '{"price": 7}').code == 0
    assert run("explain", url, "nobody", '{"price": 7}').code == 2
    client.publish_many({"price": n} for n in range(10))
    tried = run("backtest", "price < 4", url)
    assert tried.out == "4 of the latest 10 events would have matched\n"
    bad = run("backtest", "price < < 4", url)
    assert (bad.code, "price < < 4\n          ^" in bad.err) == (2, True)
    assert json.loads(run("stats", url, "--format", "json").out)["n_subscriptions"] == 1
    assert "n_subscriptions: 1\n" in run("stats", url).out
    assert run("check", url).out == "1 accepted, 0 rejected\n"
    assert run("build", url, "saved").code == 0
    assert run("match", "saved", "events.csv", "--quiet").out.split()[1:] == ["0,cheap"]


def test_receiving(run: Run, url: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    made = client.subscribe("a", "n >= 0")
    client.publish_many({"n": n} for n in range(3))
    assert "needs the subscription's ticket" in run("receive", url, "a").err
    monkeypatch.setenv("MATCHMILL_TICKET", made.ticket or "")
    kept = run("receive", url, "a", "--keep").out.splitlines()
    first, second, third = map(json.loads, kept)
    assert (first["event"], third["event"]) == ({"n": 0}, {"n": 2})
    assert list(first) == ["seq", "event_id", "subscription_id", "event", "matched_at"]
    later = run("receive", url, "a", "--after", second["seq"], "--keep").out
    assert json.loads(later) == third
    assert run("receive", url, "a").out.splitlines() == kept
    assert run("receive", url, "a") == (0, "", "")


def test_receiving_goes_on_until_it_is_stopped(run: Run, url: str, client: Client) -> None:
    made = client.subscribe("a", "n >= 0")
    ticket = made.ticket or ""
    arguments = [sys.executable, "-m", "matchmill", "receive", url, "a", "--follow"]
    with subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"MATCHMILL_TICKET": ticket},
    ) as receiving:
        assert receiving.stdout is not None
        for n in range(3):
            client.publish({"n": n})
            assert json.loads(receiving.stdout.readline())["event"] == {"n": n}
        command = Path(f"/proc/{receiving.pid}/cmdline")
        if command.exists():
            assert ticket.encode() not in command.read_bytes()
        receiving.send_signal(signal.SIGINT)
        assert receiving.wait(30) == 130
    # The last one may have been stopped between being written and being acknowledged.
    left = [one.event for one in client.receive("a", ticket=ticket, wait=0)]  # type: ignore[union-attr]
    assert left in ([], [{"n": 2}])


def test_secrets_and_addresses(
    run: Run, url: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MATCHMILL_KEY")
    nobody = run("list", url)
    assert (nobody.code, "API key" in nobody.err) == (2, True)
    Path("key").write_text(f"{key}\n")
    assert run("list", url, "--key-file", "key").code == 0
    assert "empty" in run("list", url, "--key-file", os.devnull).err
    assert "No such file" in run("list", url, "--key-file", "nothing").err
    closed = run("stats", "http://127.0.0.1:1", "--key-file", "key", "--timeout", "1")
    assert (closed.code, "does not respond" in closed.err) == (2, True)
    useless = run("list", url, "--key-file", "key", "--setting", "max_clauses=3")
    assert (useless.code, "has no effect on a service" in useless.err) == (2, True)
