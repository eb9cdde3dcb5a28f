"""`matchmill client` against a real server process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from matchmill.cli import main
from matchmill.client import Client
from tests.support.running_service import new_key, running

pytestmark = pytest.mark.slow

SUBSCRIPTIONS = """\
id,expression
u1,price <= 580
u2,"origin in ('JFK', 'EWR') and price > 100"
u3,price < <
u4,true
"""
EVENTS = """\
flight,price,origin,day
A1,580,JFK,2013-01-31
A2,581,LGA,2013-01-31
A3,,EWR,2013-01-31
"""


class Result(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    folder = tmp_path_factory.mktemp("client") / "served"
    with running(folder) as server:
        yield folder, server.address


@pytest.fixture
def client(home: tuple[Path, str], request: pytest.FixtureRequest) -> Iterator[Client]:
    folder, address = home
    with Client(address, key=new_key(folder, tenant=request.node.name)) as found:
        yield found


@pytest.fixture
def run(
    client: Client,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    """Runs an action in a folder of its own, with the key of `client`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MATCHMILL_URL", client._transport.url)
    monkeypatch.setenv("MATCHMILL_KEY", str(client._key))
    Path("subs.csv").write_text(SUBSCRIPTIONS)
    Path("events.csv").write_text(EVENTS)

    def run_main(*arguments: str) -> Result:
        code = main(("client", *arguments))
        told = capfd.readouterr()
        return Result(code, told.out, told.err)

    return run_main


def test_one_subscription(run: Run, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("subscribe", "price < 10", "--id", "a", "--max-per-minute", "9")
    facts = dict(line.split(": ", 1) for line in result.out.splitlines())
    assert (result.code, list(facts)) == (0, ["id", "ticket", "expires_at"])
    assert client.get("a", facts["ticket"]).max_per_minute == 9
    assert run("renew", "a").code == 2
    Path("ticket").write_text(facts["ticket"] + "\n")
    renewed = run("renew", "a", "--ticket-file", "ticket", "--valid-seconds", "9")
    assert (renewed.code, renewed.out.strip()) == (0, client.get("a").expires_at.isoformat())
    shown = json.loads(run("show", "a", "--format", "json").out)
    assert (shown["expression"], shown["pending"]) == ("price < 10", 0)
    assert "expression: price < 10\n" in run("show", "a").out
    listed = run("list").out
    assert listed.startswith("a  20")
    assert listed.endswith("  0  price < 10\n")
    monkeypatch.setenv("MATCHMILL_TICKET", facts["ticket"])
    assert run("cancel", "a") == Result(0, "", "")
    missing = run("show", "a")
    assert missing.code == 2
    assert missing.err.startswith("matchmill: error: there is no such subscription")


def test_a_file_of_subscriptions(run: Run, client: Client) -> None:
    result = run("subscribe", "--subscriptions", "subs.csv", "--refused", "bad.jsonl")
    assert result.code == 3
    head, *lines = result.out.splitlines()
    assert head == "id,ticket,expires_at"
    tickets = {line.split(",")[0]: line.split(",")[1] for line in lines}
    assert list(tickets) == ["u1", "u2", "u4"]
    assert client.get("u1", tickets["u1"]).expression == "price <= 580"
    assert "subscriptions: 3 accepted, 1 refused" in result.err
    (bad,) = map(json.loads, Path("bad.jsonl").read_text().splitlines())
    assert (bad["row"], bad["id"]) == (4, "u3")
    Path("more.jsonl").write_text(
        '{"id": 7, "expression": {"x": [1]}}\n{"id": 8, "expression": 3}\n'
    )
    more = run("subscribe", "--subscriptions", "more.jsonl", "--format", "json")
    assert (more.code, json.loads(more.out)["id"]) == (3, "7")
    assert "row 2 (8): an expression is text, or a JSON pattern" in more.err
    assert len(run("list", "--format", "json").out.splitlines()) == 4
    assert len(run("list", "--limit", "2").out.splitlines()) == 2


def test_files_of_events(run: Run, client: Client) -> None:
    client.subscribe("price <= 580", id="cheap")
    dated = run("publish", "events.csv")
    assert (dated.code, "events: 0 published, 3 set aside" in dated.err) == (3, True)
    assert "events.csv, row 2: JSON has no dates, and 2013-01-31 is one" in dated.err
    result = run("publish", "events.csv", "--text", "day", "--event-id", "flight")
    assert (result.code, result.err) == (0, "events: 3 published, 0 set aside\nmatches: 1\n")
    assert run("publish", "events.csv", "--text", "day", "--event-id", "flight").code == 0
    assert client.get("cheap").pending == 1  # the same events
    pq.write_table(pa.table({"price": [1, 2, None]}), "events.parquet")
    assert "matches: 2" in run("publish", "events.parquet").err
    Path("events.jsonl").write_text('{"a": {"price": 1}}\n\n{"price": 1\n{"price": 1}\n')
    lines = run("publish", "events.jsonl", "--refused", "bad.csv")
    assert (lines.code, "2 published, 1 set aside" in lines.err) == (3, True)
    assert 'event,3,,"not valid JSON' in Path("bad.csv").read_text()
    assert client.backtest("a.price = 1").matched == 1


def test_questions(run: Run, client: Client) -> None:
    client.subscribe("price <= 580", id="cheap")
    assert run("test", '{"price": 580}').out == "cheap\n"
    explained = run("explain", "price < 5", '{"price": 7}')
    assert (explained.code, "needs < 5" in explained.out) == (1, True)
    assert run("explain", "--id", "cheap", '{"price": 7}').code == 0
    assert run("explain", '{"price": 7}').code == 2
    client.publish_many({"price": n} for n in range(10))
    assert run("backtest", "price < 4").out == "4 of the latest 10 events would have matched\n"
    bad = run("backtest", "price < < 4")
    assert (bad.code, "price < < 4\n          ^" in bad.err) == (2, True)


def test_receiving(run: Run, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    made = client.subscribe("n >= 0", id="a")
    client.publish_many({"n": n} for n in range(3))
    monkeypatch.setenv("MATCHMILL_TICKET", made.ticket)
    kept = run("receive", "a", "--keep").out.splitlines()
    first, second, third = map(json.loads, kept)
    assert (first["event"], third["event"]) == ({"n": 0}, {"n": 2})
    later = run("receive", "a", "--after", str(second["seq"]), "--keep").out
    assert json.loads(later) == third
    assert run("receive", "a").out.splitlines() == kept
    assert run("receive", "a") == Result(0, "", "")


def test_receiving_goes_on_until_it_is_told_to_stop(run: Run, client: Client) -> None:
    made = client.subscribe("n >= 0", id="a")
    arguments = [sys.executable, "-m", "matchmill", "client", "receive", "a", "--follow"]
    secrets = {"MATCHMILL_TICKET": made.ticket}
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, text=True, env=os.environ | secrets
    ) as receiving:
        assert receiving.stdout is not None
        for n in range(3):
            client.publish({"n": n})
            assert json.loads(receiving.stdout.readline())["event"] == {"n": n}
        command = Path(f"/proc/{receiving.pid}/cmdline")
        if command.exists():
            assert made.ticket.encode() not in command.read_bytes()
        receiving.send_signal(signal.SIGINT)
        assert receiving.wait(30) == 130
    # The last one may have been stopped between being written and being acknowledged.
    left = [one.event for one in client.matches("a", made.ticket, wait=0)]  # type: ignore[union-attr]
    assert left in ([], [{"n": 2}])


def test_secrets_and_addresses(run: Run, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MATCHMILL_KEY")
    nobody = run("list")
    assert (nobody.code, "send an API key" in nobody.err) == (2, True)
    Path("key").write_text(f"{client._key}\n")
    assert run("list", "--key-file", "key").code == 0
    assert "empty" in run("list", "--key-file", os.devnull).err
    assert "No such file" in run("list", "--key-file", "nothing").err
    monkeypatch.delenv("MATCHMILL_URL")
    assert run("list", "--url", client._transport.url, "--key-file", "key").code == 0
    assert "the url must be like" in run("list", "--url", "nonsense", "--key-file", "key").err
