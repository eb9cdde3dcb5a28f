"""The bench as a whole, by its command line: files, resuming, comparing, reports."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from matchmill.cli import main
from matchmill.errors import InputError
from matchmill.lab.experiments import run as run_module
from matchmill.lab.experiments.results import COLUMNS, read_results
from matchmill.lab.experiments.run import with_changes
from matchmill.lab.experiments.spec import load_experiment, points
from tests.support.toy_experiments import toys  # noqa: F401

pytestmark = pytest.mark.usefixtures("toys")

SPEC = """\
title = "Time & size"
paper = "matchmill"
shows = "Figure 1"
claim = "a scan looks at <every> clause"
measures = ["match", "memory"]
indexes = ["scan", "wrapped", "drops_one", "fails", "be_bush"]
[workload]
generator = "toy"
n_subscriptions = 100
n_events = 16
n_training_events = 4
[grid]
n_subscriptions = [100, 200]
width = [1, 3]
[small.grid]
width = [1]
[plot]
x = "n_subscriptions"
y = "us_per_event"
panels = "width"
log_x = true
log_y = true
"""
FILE = "toys.sizes.small.parquet"
CONTENDERS = ("scan", "wrapped", "drops_one", "fails", "be_bush")


@pytest.fixture
def spec(tmp_path: Path) -> str:
    path = tmp_path / "toys" / "sizes.toml"
    path.parent.mkdir()
    path.write_text(SPEC, encoding="utf-8")
    return str(path)


def bench(spec: str, folder: Path, *options: str) -> int:
    return main(["bench", "run", spec, "--out", str(folder), "--rounds", "2", *options])


def test_run_resume_report_compare(
    spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run, stopped and taken up again, then all that is made of it."""
    folder = tmp_path / "results"
    measured = []
    real = run_module.measure

    def interrupted(point, *arguments, **options):  # type: ignore[no-untyped-def]
        if measured:
            raise KeyboardInterrupt
        measured.append(dict(point.labels))
        return real(point, *arguments, **options)

    monkeypatch.setattr(run_module, "measure", interrupted)
    assert bench(spec, folder) == 130
    assert "--resume goes on" in capsys.readouterr().err
    assert os.listdir(folder) == [FILE]
    first = read_results(folder / FILE).table
    assert set(first["point"].to_pylist()) == {0}

    def counted(point, *arguments, **options):  # type: ignore[no-untyped-def]
        measured.append(dict(point.labels))
        return real(point, *arguments, **options)

    monkeypatch.setattr(run_module, "measure", counted)
    assert bench(spec, folder) == 2
    assert "--resume goes on with it, --overwrite replaces it" in capsys.readouterr().err
    assert bench(spec, folder, "--resume", "--rounds", "3") == 2
    assert "other rounds" in capsys.readouterr().err
    assert bench(spec, folder, "--resume", "--clock", "cpu") == 2
    assert "--clock wall" in capsys.readouterr().err
    assert bench(spec, folder, "--resume") == 1  # one is wrong, one fails
    assert measured == [
        {"n_subscriptions": 100, "width": 1},
        {"n_subscriptions": 200, "width": 1},
    ]
    errors = capsys.readouterr().err
    assert "[1/2] n_subscriptions=100 width=1: measured before" in errors
    assert "drops_one WRONG, fails failed, be_bush absent" in errors
    again = read_results(folder / FILE).table
    assert again.slice(0, first.num_rows).equals(first)
    assert bench(spec, folder, "--resume") == 1
    assert len(measured) == 2

    _check_file(folder / FILE)
    _check_report(folder, tmp_path / "report")
    _check_compare(folder, tmp_path / "other", capsys)
    _check_a_slow_machine(folder, tmp_path / "other", capsys)


def _check_file(path: Path) -> None:
    results = read_results(path)
    assert results.table.column_names == [column.name for column in COLUMNS]
    assert results.experiment.text == SPEC
    assert {"cpu", "cores", "memory_gib", "python", "numba", "numpy"} <= set(results.machine)
    summaries = results.summaries()
    assert [s.contender for s in summaries] == [*CONTENDERS, *CONTENDERS]
    statuses = {s.contender: s.status for s in summaries}
    assert statuses == {
        "scan": "ok",
        "wrapped": "ok",
        "drops_one": "wrong",
        "fails": "failed",
        "be_bush": "absent",
    }
    for s in summaries:
        assert len(s.rounds) == (2 if s.status in ("ok", "wrong") else 0)
        assert bool(s.columns["reason"]) == (s.status != "ok")
        assert json.loads(s.columns["workload"])["generator"] == "toy"
    scan = summaries[0].columns
    assert scan["us_per_event_min"] <= scan["us_per_event"] <= scan["us_per_event_max"]
    assert scan["matches_per_event"] * 16 == scan["n_matches"]
    assert scan["bytes_per_subscription"] == scan["index_bytes"] / 100


class _Page(HTMLParser):
    """Whether tags are balanced, and what is fetched from elsewhere."""

    VOID = ("meta", "br", "hr", "img", "link", "input")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href") and value and not value.startswith("#"):
                self.fetched.append(value)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _check_report(results: Path, folder: Path) -> None:
    assert main(["bench", "report", str(results), "--out", str(folder), "--quiet"]) == 0
    page = (folder / "index.html").read_text(encoding="utf-8")
    markdown = (folder / "report.md").read_text(encoding="utf-8")
    for text in (page, markdown):
        for contender in CONTENDERS:
            assert contender.replace("_", " ") in text or contender in text
        for words in ("Figure 1", "other matches than the scan", "no more than 64", "Numba", "GiB"):
            assert words in text
        assert "be_bush: not there" in text
        assert "drops_one: wrong" in text
    assert "a scan looks at &lt;every&gt; clause" in page
    assert "Time &amp; size" in page
    parser = _Page()
    parser.feed(page)
    assert parser.open == []
    assert parser.fetched == []
    assert "url(http" not in page
    assert "@import" not in page
    assert page.count("<svg") == 1
    assert "currentColor" in page
    (picture,) = re.findall(r"!\[.*\]\((.*)\)", markdown)
    assert (folder / picture).read_bytes().startswith(b"\x89PNG")


def _check_compare(before: Path, after: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same file with the scan at twice its time."""
    table = pq.read_table(before / FILE)
    rows = table.to_pylist()
    for row in rows:
        if row["contender"] == "scan":
            for name in ("round_us_per_event", "us_per_event"):
                row[name] *= 2 if row["n_events"] else 1
    after.mkdir()
    pq.write_table(type(table).from_pylist(rows, table.schema), after / FILE)
    capsys.readouterr()
    command = ["bench", "compare", str(before), str(before), "--fail-on-slower"]
    assert main(command) == 0
    assert capsys.readouterr().out == "6 not measured, 4 noise\n"
    _widen(before / FILE)
    _widen(after / FILE)
    command = ["bench", "compare", str(before), str(after)]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert out.count("slower") == 3  # two points, and the count
    assert "x 2.00" in out
    assert main([*command, "--fail-on-slower"]) == 1
    assert main(["bench", "compare", str(after), str(before), "--fail-on-slower"]) == 0
    assert "2 faster" in capsys.readouterr().out
    assert main([*command, "--format", "json"]) == 0
    assert {c["label"] for c in json.loads(capsys.readouterr().out)} == {
        "slower",
        "noise",
        "not measured",
    }


def _check_a_slow_machine(before: Path, after: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is slower only because all else is slower, too, is noise."""
    table = pq.read_table(after / FILE)
    rows = table.to_pylist()
    for row in rows:
        if row["round"] is not None:
            row["round_yardstick_us"] *= 2
    pq.write_table(type(table).from_pylist(rows, table.schema), after / FILE)
    capsys.readouterr()
    assert main(["bench", "compare", str(before), str(after), "--fail-on-slower", "--all"]) == 0
    assert "the machine itself took 2.00 times as long" in capsys.readouterr().out


def _widen(path: Path) -> None:
    """Rounds close together, whatever the machine did."""
    table = pq.read_table(path)
    rows = table.to_pylist()
    for row in rows:
        if row["round"] is not None:
            factor = 2 if row["contender"] == "scan" and "other" in str(path) else 1
            row["us_per_event"] = 100.0 * factor
            row["round_us_per_event"] = 100.0 * factor + row["round"]
            row["round_yardstick_us"] = 50.0
    pq.write_table(type(table).from_pylist(rows, table.schema), path)


def test_a_workload_that_failed_is_tried_again(spec: str, tmp_path: Path) -> None:
    text = SPEC.replace('"drops_one", "fails", ', "").replace("width", "weight")
    Path(spec).write_text(text, encoding="utf-8")
    folder = tmp_path / "results"
    assert bench(spec, folder) == 1
    results = read_results(folder / FILE)
    assert {s.status for s in results.summaries()} == {"no workload", "absent"}
    assert results.finished == set()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["run", "nothing", "--out", "x"], "there is no experiment 'nothing'"),
        (["run", "SPEC", "--out", "x", "--indexes", "oak"], "no contender 'oak'"),
        (["run", "SPEC", "--out", "x", "--rounds", "0"], "rounds must be at least 1"),
        (["run", "SPEC", "--out", "x", "--budget-seconds", "0"], "--budget-seconds must be"),
        (["run", "SPEC", "--out", "x", "--budget-gib", "-1"], "--budget-gib must be"),
        (["report", "EMPTY", "--out", "x"], "there are no results"),
        (["compare", "EMPTY", "EMPTY"], "there are no results"),
        (["compare", "SPEC", "SPEC"], "cannot be read as Parquet"),
    ],
)
def test_mistakes(
    arguments: list[str],
    problem: str,
    spec: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("EMPTY").mkdir()
    assert main(["bench", *(spec if a == "SPEC" else a for a in arguments)]) == 2
    assert problem in capsys.readouterr().err
    assert not Path("x").exists()


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "list", "--format", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert all({"name", "paper", "shows", "title", "absent"} <= set(row) for row in listed)
    assert main(["bench", "list"]) == 0


@pytest.mark.parametrize("action", [(), ("run",), ("list",), ("compare",), ("report",), ("page",)])
def test_help(action: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *action, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: matchmill bench {' '.join(action)}")
    assert all(len(line) <= 88 for line in text.splitlines())


@pytest.mark.slow
def test_ctrl_c_in_a_process(tmp_path: Path) -> None:
    """Its child goes with it, and no half of a file remains."""
    spec = tmp_path / "toys" / "sizes.toml"
    spec.parent.mkdir()
    text = SPEC.replace('"drops_one", "fails", "be_bush"', '"slow_to_build"')
    spec.write_text(text.replace("[100, 200]", "[10, 200]"), encoding="utf-8")
    program = (
        "import sys; from tests.support.toy_experiments import *; from matchmill.cli import main\n"
        "GENERATORS['toy'] = toy; INDEXES.update({t.name: t for t in TOYS})\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "bench", "run", str(spec), "--out", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        assert "[1/2]" in process.stderr.readline()  # the second point sleeps while it builds
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=20)[1]  # waits for all that hold standard error
    assert process.returncode == 130
    assert "the same command with --resume goes on" in errors
    results = read_results(tmp_path / FILE)
    assert [s.status for s in results.summaries()] == ["ok", "ok", "ok"]
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_points_of_another_experiment_are_taken_from_there(
    spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results"
    part = tmp_path / "toys" / "part.toml"
    part.write_text(
        SPEC.replace('"wrapped", "drops_one", "fails", "be_bush"', '"fails"').replace(
            "[100, 200]", "[200, 300]"
        ),
        encoding="utf-8",
    )
    options = ["--out", str(out), "--rounds", "1"]
    main(["bench", "run", spec, *options])
    capsys.readouterr()
    main(["bench", "run", str(part), *options])
    said = capsys.readouterr().err
    assert "part [1/2] n_subscriptions=200 width=1: measured in toys/sizes" in said
    assert "part [2/2] n_subscriptions=300 width=1: scan" in said
    whole, own = (read_results(out / f"toys.{name}.small.parquet") for name in ("sizes", "part"))
    (taken,) = (s for s in own.summaries() if s.contender == "scan" and "200" in s.key[0])
    (there,) = (s for s in whole.summaries() if s.key == taken.key)
    assert taken.rounds == there.rounds
    assert set(own.table["experiment"].to_pylist()) == {"toys/part"}
    # With other rounds they are other measurements.
    main(["bench", "run", str(part), "--out", str(out), "--rounds", "2", "--overwrite"])
    assert "measured in" not in capsys.readouterr().err


def test_sparse_grids_keep_their_ends(tmp_path: Path) -> None:
    path = tmp_path / "toys" / "long.toml"
    path.parent.mkdir()
    path.write_text(SPEC.replace("[100, 200]", "[1, 2, 3, 4, 5, 6]"), encoding="utf-8")
    chosen = points(load_experiment(path), "full", sparse=True)
    assert [tuple(p.labels.values()) for p in chosen] == [
        (n, width) for n in (1, 3, 6) for width in (1, 3)
    ]
    out = tmp_path / "results"
    main(["bench", "run", str(path), "--out", str(out), "--rounds", "1", "--sparse"])
    numbers = read_results(out / "toys.long.small.parquet").table["point"].to_pylist()
    assert sorted(set(numbers)) == [0, 2, 5]


def test_changes_hold_at_every_point() -> None:
    chosen = load_experiment("ps_tree/fig15_query_log")
    (changed,) = with_changes([chosen], ["path=trace.gz", "n_events=7", "synthetic=false"])
    for point in points(changed, "full"):
        assert point.workload.n_events == 7
        assert point.workload.parameters["path"] == "trace.gz"
        assert point.workload.parameters["synthetic"] is False
    assert "# set: path = 'trace.gz'" in changed.text
    with pytest.raises(InputError, match="not of the form name=value"):
        with_changes([chosen], ["path"])
    grid = load_experiment("ps_tree/fig06_workload_size")
    with pytest.raises(InputError, match="n_subscriptions is what changes from point to point"):
        with_changes([grid], ["n_subscriptions=5"])
