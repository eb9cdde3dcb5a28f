"""Matches that arrive in mailboxes are those that the oracle says, on generated cases."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path
from random import Random
from typing import Any

import pytest

import matchmill as mm
from matchmill.language.evaluate import evaluate
from tests.support.generators import random_event, random_expression
from tests.support.postgres import Server
from tests.support.running_service import Caller, local_service, new_key


def as_json(value: Any) -> Any:
    """A value as JSON has it: no dates, no NaN."""
    if isinstance(value, dict):
        return {name: as_json(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [as_json(inner) for inner in value]
    if isinstance(value, (dt.date, dt.datetime)):
        return value.isoformat()
    return None if isinstance(value, float) and math.isnan(value) else value


def check(caller: Caller, seed: int, n_subscriptions: int, n_events: int) -> None:
    rng = Random(seed)
    expressions = {f"s{n}": str(random_expression(rng)) for n in range(n_subscriptions)}
    events = [as_json(random_event(rng)) for _ in range(n_events)]
    body = [{"subscription_id": name, "expression": text} for name, text in expressions.items()]
    made = caller.post("/v1/subscriptions", body).json()
    assert made["n_rejected"] == 0
    tickets = {one["subscription_id"]: one["ticket"] for one in made["results"]}
    for gone in rng.sample(sorted(tickets), n_subscriptions // 10):
        assert caller.delete(f"/v1/subscriptions/{gone}", tickets.pop(gone)).status_code == 204
    sent = {f"e{n}": event for n, event in enumerate(events)}
    results = []
    for batch in (list(sent.items())[:1], list(sent.items())[1:]):  # alone, and many at once
        body = [{"event": event, "event_id": name} for name, event in batch]
        results += caller.post("/v1/events", body).json()["results"]
    wanted: dict[str, list[str]] = {name: [] for name in tickets}
    parsed = {name: mm.parse(expressions[name]) for name in tickets}
    for name, event in sent.items():
        for identifier, expression in parsed.items():
            if evaluate(expression, event) is True:
                wanted[identifier].append(name)
    assert sum(map(len, wanted.values())) > n_events
    found = {
        identifier: [match["event_id"] for match in caller.matches(identifier, ticket, limit=1000)]
        for identifier, ticket in tickets.items()
    }
    assert found == wanted
    counts = {result["event_id"]: result["n_matches"] for result in results}
    assert counts == {name: sum(name in some for some in wanted.values()) for name in sent}


def test_with_sqlite(tmp_path: Path) -> None:
    with local_service(tmp_path / "s") as local:
        check(local.caller(), 1, 40, 40)


@pytest.mark.slow
def test_more_with_sqlite(tmp_path: Path) -> None:
    with local_service(tmp_path / "s") as local:
        check(local.caller(), 2, 200, 200)


@pytest.mark.slow
def test_with_postgresql(tmp_path: Path, postgres_server: Server) -> None:
    postgres_server.empty()
    with local_service(tmp_path / "s", url=postgres_server.url) as local:
        key = new_key(tmp_path / "s", url=postgres_server.url)
        check(Caller(local.client, key), 9, 100, 100)
