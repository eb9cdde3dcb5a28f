"""Commands run in this process, in a folder of their own with some files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from matchmill.cli import main

SUBSCRIPTIONS = """\
subscription_id,expression
u1,price <= 580
u2,"origin in ('JFK', 'EWR') and day = date '2013-01-31'"
u3,price < 1 and price > 2
u4,true
u5,"{""origin"": [""JFK""]}"
"""
EVENTS = """\
flight,price,origin,day
A1,580,JFK,2013-01-31
A2,581,LGA,2013-01-31
A3,,EWR,2013-01-31
"""


class Result(NamedTuple):
    """What a command returned and printed."""

    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in a folder of its own, where the files above lie."""
    monkeypatch.chdir(tmp_path)
    for name in ("MATCHMILL_URL", "MATCHMILL_KEY", "MATCHMILL_TICKET"):
        monkeypatch.delenv(name, raising=False)
    Path("subs.csv").write_text(SUBSCRIPTIONS)
    Path("events.csv").write_text(EVENTS)

    def run_main(*arguments: object) -> Result:
        code = main([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Result(code, captured.out, captured.err)

    return run_main
