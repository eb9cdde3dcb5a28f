"""A real server, killed by -9 under load; `script/bench service-crashes` runs many more rounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.postgres import Server
from tests.support.prefork import nursery
from tests.support.service_crash_rounds import CrashRounds
from tests.support.tiers import first_cases

by_rounds = pytest.mark.parametrize("n_rounds", first_cases(1, [3, 12]))


def check(rounds: CrashRounds, n_rounds: int) -> None:
    rounds.run(n_rounds)
    wanted = ("subscriptions acknowledged", "events acknowledged", "matches verified")
    for _ in range(10):  # more rounds, which take longer, where a busy machine has done nothing
        if all(rounds.counts[what] for what in wanted):
            return
        rounds.run(1)
    raise AssertionError(rounds.counts)


@pytest.mark.slow
@by_rounds
def test_killed_with_sqlite(n_rounds: int, tmp_path: Path) -> None:
    with nursery() as home:
        check(CrashRounds(tmp_path / "served", 1, home=home), n_rounds)


@pytest.mark.slow
def test_killed_and_started_again(tmp_path: Path) -> None:
    CrashRounds(tmp_path / "served", 3).run(1)


@pytest.mark.slow
@by_rounds
def test_killed_with_postgresql(n_rounds: int, tmp_path: Path, postgres_server: Server) -> None:
    postgres_server.empty()
    with nursery() as home:
        check(CrashRounds(tmp_path / "served", 2, postgres_server.url, home), n_rounds)
