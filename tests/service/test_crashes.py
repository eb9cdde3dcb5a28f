"""A real server, killed by -9 under load; `script/bench service-crashes` runs many more rounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.postgres import Server
from tests.support.prefork import nursery
from tests.support.service_crash_rounds import CrashRounds

N_ROUNDS = 5


def check(rounds: CrashRounds) -> None:
    rounds.run(N_ROUNDS)
    for what in ("subscriptions acknowledged", "events acknowledged", "matches verified"):
        assert rounds.counts[what] > 0


@pytest.mark.slow
def test_killed_with_sqlite(tmp_path: Path) -> None:
    with nursery() as home:
        check(CrashRounds(tmp_path / "served", 1, home=home))


@pytest.mark.slow
def test_killed_and_started_again(tmp_path: Path) -> None:
    CrashRounds(tmp_path / "served", 3).run(1)


@pytest.mark.slow
def test_killed_with_postgresql(tmp_path: Path, postgres_server: Server) -> None:
    postgres_server.empty()
    with nursery() as home:
        check(CrashRounds(tmp_path / "served", 2, postgres_server.url, home))
