"""Outages under load, in a real process; `script/bench service-outages` runs them for longer."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from tests.support.outages import OUTAGES, outage_round
from tests.support.postgres import Server
from tests.support.running_service import Caller, ServerProcess, new_key
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


@pytest.mark.slow
def test_it_ends_while_its_database_is_silent(tmp_path: Path, postgres_server: Server) -> None:
    """SIGTERM ends it long before the statements that wait would end."""
    postgres_server.empty()
    key = new_key(tmp_path / "s", url=postgres_server.url)
    options = ("--setting", "shutdown_seconds=1", "--setting", "store_timeout_seconds=600")
    server = ServerProcess(tmp_path / "s", *options, url=postgres_server.url)
    try:
        server.wait_ready()
        with httpx2.Client(base_url=server.address, timeout=60) as client:
            assert Caller(client, key).publish({"x": 1}) == 0
            postgres_server.freeze()
            asked: list[object] = []

            def ask() -> None:
                with suppress(httpx2.TransportError):
                    asked.append(client.get("/readyz").status_code)

            asking = threading.Thread(target=ask)
            asking.start()
            assert server.stop() == 0
            asking.join(60)
    finally:
        postgres_server.thaw()
        server.kill()


@pytest.mark.long
@pytest.mark.parametrize("name", OUTAGES["sqlite"])
def test_long_with_sqlite(name: str) -> None:
    check(name, LONG)


@pytest.mark.long
@pytest.mark.parametrize("name", OUTAGES["postgresql"])
def test_long_with_postgresql(name: str, postgres_server: Server) -> None:
    check(name, LONG, postgres_server)
