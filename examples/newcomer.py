"""Fifteen tasks of somebody who meets matchmill for the first time.

    python examples/newcomer.py

Each task prints what it does and what came of it. Files go to a temporary folder; a service is
started on loopback for the tasks that need one. pandas, polars, DuckDB and the extra `service`
are needed.
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pandas as pd
import polars as pl

import matchmill as mm

ALERTS = """subscription_id,expression,owner
u1,origin = 'JFK' and dep_delay > 60,ann
u2,carrier in ('AA' 'UA'),bob
u3,dest like 'SF%' and dep_delay > 30,eve
"""
FLIGHTS = """flight,origin,dest,carrier,dep_delay,ts
1,JFK,SFO,AA,75,2013-01-31 11:00:00
2,LGA,SFO,UA,40,2013-01-31 12:00:00
3,EWR,MIA,B6,0,2013-01-31 13:00:00
"""
EVENT = {"origin": "JFK", "dest": "SFO", "carrier": "AA", "dep_delay": 45}


def say(text: object) -> None:
    """Print what came of a step, indented."""
    print("    " + str(text).rstrip().replace("\n", "\n    "))


def error_of(call: Callable[[], object]) -> str:
    """Return the error that a call raises, with its class."""
    try:
        result = call()
    except (mm.MatchmillError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return f"no error: {result!r}"


def shell(*arguments: str, stdin: str | None = None) -> None:
    """Run a command of matchmill and show what it prints."""
    shown = " ".join(f"'{a}'" if " " in a or '"' in a else a for a in arguments)
    say(f"$ matchmill {shown}")
    done = subprocess.run(
        [sys.executable, "-m", "matchmill", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    say((done.stdout + done.stderr) or "(nothing)")
    if done.returncode:
        say(f"exit code {done.returncode}")


@contextmanager
def service(folder: Path) -> Iterator[tuple[str, str]]:
    """Serve a new folder on loopback; yields its URL and an admin key."""
    command = [sys.executable, "-m", "matchmill"]
    added = subprocess.run(
        [*command, "keys", "add", str(folder), "--tenant", "me"],
        capture_output=True,
        text=True,
        check=True,
    )
    key = added.stdout.split()[0]
    server = subprocess.Popen(
        [*command, "serve", str(folder), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # its access log
        text=True,
    )
    assert server.stdout is not None
    try:
        line = server.stdout.readline()  # says where it listens
        yield line[line.index("http://") :].split()[0].rstrip("/"), key
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


def curl(url: str, key: str, path: str, body: object, method: str = "POST") -> None:
    """Send a request as curl would, and show the answer."""
    text = json.dumps(body)
    say(f"$ curl -X {method} {path} -d '{text}'")
    request = urllib.request.Request(
        url + path,
        text.encode(),
        {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
        method=method,
    )
    try:
        with urllib.request.urlopen(request) as answer:
            say(f"{answer.status} {answer.read().decode()}")
    except urllib.error.HTTPError as error:
        say(f"{error.code} {error.read().decode()}")


# -- the tasks ------------------------------------------------------------------------------------


def files_to_matches() -> None:
    """Match alerts.csv, with a column subscription_id, against flights.csv."""
    shell("match", "alerts.csv", "flights.csv")
    Path("other.csv").write_text(ALERTS.replace("subscription_id", "name"))
    shell("match", "other.csv", "flights.csv")


def many_files_and_pipes() -> None:
    """Read from standard input, several event files, -o, --threads."""
    shell("match", "alerts.csv", "-", stdin=json.dumps(EVENT) + "\n")
    shell("match", "alerts.csv", "flights.csv", "flights.csv", "-o", "out.csv", "--threads", "2")
    say(Path("out.csv").read_text())


def results_to_polars_and_duckdb() -> None:
    """Take matches to polars, pandas, Arrow and DuckDB."""
    matches = mm.match("alerts.csv", "flights.csv", event_id="flight")
    say(repr(matches))
    say(pl.DataFrame(matches))
    say(matches.to_pandas())
    say(duckdb.sql("select subscription_id, count(*) as n from matches group by all order by all"))


def events_from_duckdb() -> None:
    """Match the result of a DuckDB query."""
    engine = mm.Engine({"u1": "origin = 'JFK' and dep_delay > 60"})
    query = "select * from (values ('JFK', 75), ('JFK', 5)) as t(origin, dep_delay)"
    say(list(engine.match_many(duckdb.sql(query))))
    say(list(engine.match_many(duckdb.sql(query).to_arrow_reader())))


def json_lines_with_times() -> None:
    """Read a log of JSON lines with ISO times."""
    Path("events.jsonl").write_text('{"ts": "2013-01-31 11:00:00", "x": 1}\n')
    engine = mm.Engine({"late": "ts > timestamp '2013-01-01 00:00:00'", "x": "x = 1"})
    say(list(engine.match_many("events.jsonl")))
    say(engine.explain("late", {"ts": "2013-01-31 11:00:00", "x": 1}))


def publish_the_same_csv(url: str, key: str) -> None:
    """Publish the CSV that `match` takes."""
    os.environ["MATCHMILL_KEY"] = key
    shell("subscribe", url, "--file", "alerts.csv")
    shell("publish", url, "flights.csv")


def update_a_subscription(url: str, key: str) -> None:
    """Change the expression of a subscription: engine, client, HTTP."""
    engine = mm.Engine({"u1": "x > 60"})
    engine.update("u1", expression="x > 30")
    say(engine["u1"])
    with mm.Client(url, key=key) as client:
        made = client.subscribe("mine", "x > 60")
        client.update("mine", ticket=made.ticket, expression="x > 30")
        say(client.get("mine", ticket=made.ticket).expression)
    curl(url, key, "/v1/subscriptions/mine", {"expression": "x > 20"}, method="PUT")


def list_subscriptions(url: str, key: str) -> None:
    """List subscriptions, and those that mention an attribute."""
    engine = mm.Engine("good.csv")
    say(list(engine))
    say([one.id for one in engine.subscriptions(attribute="origin")])
    say(sorted(mm.parse("a = 1 and b.c > 2").attributes))
    engine.save("good.mill")
    shell("list", "good.mill", "--attribute", "origin")
    shell("stats", "good.mill")


def explain_a_near_miss() -> None:
    """Ask why an event does not match."""
    say(mm.explain("dep_delay > 60 and origin = 'JFK'", EVENT))
    say(mm.evaluate("dep_delay > 60", EVENT))
    shell("explain", "good.csv", "u1", json.dumps(EVENT))
    shell("explain", "u1", json.dumps(EVENT))


def folders_and_pickles() -> None:
    """Open a folder twice, open a missing one, pickle an engine."""
    with mm.Engine.open("good.mill") as engine:
        say(error_of(lambda: mm.Engine.open("good.mill")))
        say(repr(pickle.loads(pickle.dumps(engine))))
    say(error_of(lambda: mm.Engine.open("missing.mill")))
    say(error_of(lambda: pickle.dumps(mm.Engine())))


def bulk_with_bad_rows() -> None:
    """Load rows of which some are bad."""
    engine = mm.Engine()
    report = engine.subscribe_many([("a", "x = 1"), ["b", "y >"], ("c", "z = 1", 0.7)])
    say(repr(report))
    say(report)
    say(report.rejected[0])
    say(mm.check({"a": "origin = 'JFK' and dep_dealy > 60"}, "flights.csv"))
    shell("check", "alerts.csv", "--events", "flights.csv")
    say(error_of(lambda: mm.Engine(nonsense=42)))  # type: ignore[call-arg]
    say(error_of(lambda: mm.Settings(max_clause=16)))


class Flight(NamedTuple):
    """An event as a named tuple."""

    origin: str
    dep_delay: int


@dataclass
class Departure:
    """An event as a dataclass."""

    origin: str
    dep_delay: int


def other_kinds_of_events() -> None:
    """Match a pandas Series, a dataclass and a named tuple."""
    engine = mm.Engine({"u1": "origin = 'JFK' and dep_delay > 60"})
    say(engine.match(pd.Series({"origin": "JFK", "dep_delay": 75})))
    say(engine.match(Departure("JFK", 75)))
    say(engine.match(Flight("JFK", 75)))
    with open("flights.csv", encoding="utf-8") as file:
        say(error_of(lambda: engine.match_many(file)))


def operators_and_async(url: str, key: str) -> None:
    """Register an operator; use a service from an async application."""

    @mm.operator(cost_ms=2.0)
    def is_far(event: Any, kilometres: float) -> bool:
        return bool(event.get("distance", 0) > kilometres)

    engine = mm.Engine({"far": "is_far(1000) and origin = 'JFK'"})
    say(engine.match({"origin": "JFK", "distance": 4000}))
    say([name for name in mm.operator_names() if name == "is_far"])
    mm.unregister_operator("is_far")

    async def use() -> None:
        async with mm.AsyncClient(url, key=key) as client:
            made = await client.subscribe("async", "x > 1")
            say((await client.publish({"x": 2})).n_matches)
            await client.unsubscribe("async", ticket=made.ticket)

    asyncio.run(use())


def notebook() -> None:
    """Look at things in a notebook."""
    engine = mm.Engine({"u1": "origin = 'JFK' and dep_delay > 60"})
    shown: list[Any] = [
        engine,
        engine.stats(),
        engine.explain("u1", EVENT),
        mm.parse("a = 1 or b > 2"),
        engine.match_many([EVENT]),
    ]
    for value in shown:
        say(f"{value!r}   ({len(value._repr_html_())} characters of HTML)")


def with_curl(url: str, key: str) -> None:
    """Use the service with curl."""
    curl(url, key, "/v1/match", {"event": {"x": 99}})
    curl(url, key, "/v1/events", {"x": 99})
    curl(url, key, "/v1/subscriptions/mine/matches", None, method="GET")


TASKS: tuple[Callable[..., None], ...] = (
    files_to_matches,
    many_files_and_pipes,
    results_to_polars_and_duckdb,
    events_from_duckdb,
    json_lines_with_times,
    publish_the_same_csv,
    update_a_subscription,
    list_subscriptions,
    explain_a_near_miss,
    folders_and_pickles,
    bulk_with_bad_rows,
    other_kinds_of_events,
    operators_and_async,
    notebook,
    with_curl,
)


def main() -> None:
    """Run all tasks in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("alerts.csv").write_text(ALERTS)
        Path("good.csv").write_text("".join(ALERTS.splitlines(True)[i] for i in (0, 1, 3)))
        Path("flights.csv").write_text(FLIGHTS)
        Path("served").mkdir()
        with service(Path("served")) as (url, key):
            for number, task in enumerate(TASKS, 1):
                print(f"{number}. {task.__doc__}")
                task(*((url, key) if task.__code__.co_argcount else ()))


if __name__ == "__main__":
    main()
