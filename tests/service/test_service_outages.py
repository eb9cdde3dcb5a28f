"""Outages under load, in a real process; `script/bench service-outages` runs them for longer."""

from __future__ import annotations

import pytest

from tests.support.outages import OUTAGES, outage_round
from tests.support.postgres import Server
from tests.support.tiers import first_cases

LONG = 30.0


def check(name: str, seconds: float, database: Server | None = None) -> None:
    outcome = outage_round(name, seconds, database)
    assert outcome.n_acknowledged > 100
    if name.startswith("clock"):
        assert outcome.n_failed == 0
    elif seconds >= LONG:
        assert outcome.back_after < 5


@pytest.mark.slow
@pytest.mark.parametrize("name", first_cases(1, ["disk full", "locked", "clock +40 days"]))
def test_with_sqlite(name: str) -> None:
    check(name, 2.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", first_cases(1, ["frozen", "stopped", "read-only", "locked"]))
def test_with_postgresql(name: str, postgres_server: Server) -> None:
    check(name, 3.0, postgres_server)


@pytest.mark.long
@pytest.mark.parametrize("name", OUTAGES["sqlite"])
def test_long_with_sqlite(name: str) -> None:
    check(name, LONG)


@pytest.mark.long
@pytest.mark.parametrize("name", OUTAGES["postgresql"])
def test_long_with_postgresql(name: str, postgres_server: Server) -> None:
    check(name, LONG, postgres_server)
