"""The pipeline command, end to end: the same matches as the library, restarts, bad input."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matchmill as mm
from matchmill.cli import main

pytestmark = pytest.mark.slow

ALERTS = [(f"u{i}", f"origin = '{o}' and delay > {10 * i}") for i, o in enumerate("JLEJLEJL")]
BAD_ALERTS = [("bad", "delay >"), ("u1", "delay < 0 and origin = 'zzz'")]
EVENTS = [{"event_id": i, "origin": "JLE"[i % 3], "delay": i * 7 % 90} for i in range(200)]

CONFIG = """\
output = "out"
[subscriptions]
path = "alerts.csv"
[events]
path = "events.parquet"
"""


class Pipeline:
    """A config with its files, and the command run on it in this process."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.out = folder / "out"
        self.config = folder / "p.toml"
        self._capsys = capsys
        self.write_alerts([*ALERTS, *BAD_ALERTS])
        self.write_events(EVENTS)
        self.config.write_text(CONFIG)

    def write_alerts(self, rows: list[tuple[str, str]]) -> None:
        lines = [f'{i},"{text}"' for i, text in rows]
        (self.folder / "alerts.csv").write_text(
            "\n".join(["subscription_id,expression", *lines]) + "\n"
        )

    def write_events(self, events: list[dict[str, Any]], name: str = "events.parquet") -> None:
        pq.write_table(pa.Table.from_pylist(events), self.folder / name)

    def run(self, *arguments: str, command: str = "run") -> tuple[int, str]:
        """The exit code, and what was said on standard error."""
        self._capsys.readouterr()
        code = main(["pipeline", command, str(self.config), *arguments])
        captured = self._capsys.readouterr()
        self.printed = captured.out
        return code, captured.err

    def state(self) -> dict[str, Any]:
        body = json.loads((self.out / "pipeline.json").read_text())
        return {step["step"]: step for step in body["steps"]}

    def matches(self) -> set[tuple[Any, str]]:
        table = pq.read_table(self.out / self.state()["match"]["made"])
        return {(row["event_id"], row["subscription_id"]) for row in table.to_pylist()}


def expected(alerts: list[tuple[str, str]], events: list[dict[str, Any]]) -> set[tuple[Any, str]]:
    expressions = {i: mm.parse(text) for i, text in alerts}
    return {
        (event["event_id"], i)
        for event in events
        for i, expression in expressions.items()
        if mm.evaluate(expression, event) is True
    }


# The row of u1 whose expression comes first in order is the one that is taken.
TAKEN = [("u1", BAD_ALERTS[1][1]), *(alert for alert in ALERTS if alert[0] != "u1")]


@pytest.fixture
def pipeline(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Pipeline:
    return Pipeline(tmp_path, capsys)


@pytest.mark.long
def test_a_small_job_is_matched_by_the_driver(pipeline: Pipeline) -> None:
    code, said = pipeline.run()
    assert code == 3, said
    assert "subscriptions: 10 in = 8 accepted + 2 rejected" in said
    assert "events: 200 in = 200 accepted + 0 rejected" in said
    assert "build: not needed" in said
    assert pipeline.matches() == expected(TAKEN, EVENTS) != set()
    summary = json.loads((pipeline.out / "summary.json").read_text())
    by_step = {step["step"]: step for step in summary["steps"]}
    assert by_step["match"]["counts"]["n_matches"] == len(expected(TAKEN, EVENTS))
    (first, *_) = by_step["match"]["details"]["busiest"]
    assert first[1] == max(
        sum(1 for _, i in pipeline.matches() if i == alert) for alert, _ in TAKEN
    )
    page = (pipeline.out / "summary.html").read_text()
    assert "delay &gt;" in page
    assert "<svg" in page
    assert not re.search(r"<script|https?://", page)


def test_all_steps_and_what_is_run_again(pipeline: Pipeline) -> None:
    (pipeline.folder / "incoming").mkdir()
    pipeline.write_events(EVENTS[:50], "incoming/1.parquet")
    stream = '[stream]\npath = "incoming"\n'
    pipeline.config.write_text(
        CONFIG
        + '[statistics]\nenabled = true\n[build]\nshards = 2\n[match]\nplan = "events"\n'
        + stream
    )
    code, said = pipeline.run()
    assert code == 3, said
    assert "build: 8 subscriptions, 0 rejected" in said
    assert "stream: 50 events, 1 batches" in said
    assert pipeline.matches() == expected(TAKEN, EVENTS)
    assert len(pipeline.state()["build"]["details"]["shards"]) == 2
    assert sum(t[1] for t in pipeline.state()["match"]["details"]["tasks"]) == len(
        pipeline.matches()
    )

    before = pipeline.state()
    code, said = pipeline.run()
    assert said.count("unchanged since the last run") == 5
    assert "stream: 0 events" in said
    assert code == 3  # some are still rejected

    pipeline.write_events(EVENTS[:120])
    pipeline.write_events(EVENTS[50:80], "incoming/2.parquet")
    code, said = pipeline.run()
    assert "subscriptions: unchanged" in said
    assert "events: 120 in" in said
    assert "stream: 30 events" in said
    assert pipeline.matches() == expected(TAKEN, EVENTS[:120])
    streamed = pq.read_table(pipeline.out / "stream" / "matches").select(
        ["event_id", "subscription_id"]
    )
    assert {tuple(row.values()) for row in streamed.to_pylist()} == expected(TAKEN, EVENTS[:80])

    code, said = pipeline.run("--from", "match")
    assert said.count("taken as it is") == 4
    assert pipeline.state()["match"]["made"] != before["match"]["made"]
    assert [p.name for p in (pipeline.out / "match").iterdir()] == [
        pipeline.state()["match"]["made"].partition("/")[2]
    ]

    code, said = pipeline.run("--pair", "u2", "8", "--pair", "u2", "999", command="explain")
    assert code == 0, said
    assert "subscription u2, event 8:" in pipeline.printed
    assert "needs > 20" in pipeline.printed or "delay > 20" in pipeline.printed


@pytest.mark.long
def test_steps_alone(pipeline: Pipeline) -> None:
    code, said = pipeline.run("--only", "build")
    assert code == 2
    assert "--only ingest" in said
    assert pipeline.run("--only", "ingest")[0] == 3
    pipeline.config.write_text(CONFIG + "[statistics]\nenabled = true\n")
    code, said = pipeline.run("--only", "build")
    assert code == 2
    assert "has no statistics yet" in said
    assert pipeline.run("--only", "statistics")[0] == 0
    assert pipeline.run("--only", "build")[0] == 0
    assert pipeline.run("--only", "match")[0] == 0
    assert pipeline.matches() == expected(TAKEN, EVENTS)
    assert "unchanged" in pipeline.run("--only", "match")[1]
    assert "unchanged" not in pipeline.run("--only", "match", "--force")[1]
    code, said = pipeline.run("--only", "stream")
    assert code == 2
    assert "has no section [stream]" in said


@pytest.mark.long
def test_json_lines_and_csv(pipeline: Pipeline) -> None:
    lines = [json.dumps(event) for event in EVENTS[:40]]
    (pipeline.folder / "events.jsonl").write_text("\n".join([*lines, '{"delay": ', "{}"]))
    pipeline.config.write_text(
        CONFIG.replace("events.parquet", "events.jsonl") + 'layout = "json"\n'
    )
    code, said = pipeline.run()
    assert code == 3, said
    assert "events: 42 in = 40 accepted + 2 rejected" in said
    as_text = [{**event, "event_id": str(event["event_id"])} for event in EVENTS[:40]]
    assert pipeline.matches() == expected(TAKEN, as_text)
    reasons = [row[0] for row in pipeline.state()["events"]["details"]["reasons"]]
    assert any("not valid JSON" in reason for reason in reasons)
    assert "the event_id is missing" in reasons

    rows = [f"{e['event_id']},{e['origin']},{e['delay']}" for e in EVENTS[:40]]
    (pipeline.folder / "events.csv").write_text(
        "\n".join(["event_id,origin,delay", *rows, "41,J", "42,J,5,6"]) + "\n"
    )
    pipeline.config.write_text(
        CONFIG.replace("events.parquet", "events.csv") + "[match]\nper_event = true\n"
    )
    code, said = pipeline.run()
    assert code == 3, said
    assert "events: 42 in = 40 accepted + 2 rejected" in said
    table = pq.read_table(pipeline.out / pipeline.state()["match"]["made"]).to_pylist()
    found = {(row["event_id"], i) for row in table for i in row["subscription_ids"]}
    assert found == expected(TAKEN, EVENTS[:40])


# -- bad input ------------------------------------------------------------------------------------


def test_bad_input_names_the_culprit_and_changes_nothing(pipeline: Pipeline) -> None:
    assert pipeline.run()[0] == 3
    before, matches = (pipeline.out / "pipeline.json").read_bytes(), pipeline.matches()
    damaged = (pipeline.folder / "events.parquet").read_bytes()
    whole = damaged
    for content, told in ((damaged[:-20], "events.parquet"), (b"not Parquet", "events.parquet")):
        (pipeline.folder / "events.parquet").write_bytes(content)
        code, said = pipeline.run()
        assert code == 2, said
        assert told in said
        assert "Traceback" not in said
        assert [p.name for p in (pipeline.out / "events").iterdir()] == ["0001"]
    (pipeline.folder / "events.parquet").write_bytes(whole)
    for old, new, told in (
        ('path = "events.parquet"', 'path = "events.parquet"\nevent_id = "key"', "'key'"),
        ('path = "events.parquet"', 'path = "events.parquet"\nattributes = ["x"]', "'x'"),
        ('path = "alerts.csv"', 'path = "alerts.csv"\nsubscription_id = "key"', "'key'"),
    ):
        pipeline.config.write_text(CONFIG.replace(old, new))
        code, said = pipeline.run()
        assert code == 2, said
        assert "no " in said
        assert f"column {told}" in said
    pipeline.config.write_text(CONFIG)
    assert (pipeline.out / "pipeline.json").read_bytes() == before
    assert pipeline.matches() == matches
    pipeline.run()
    assert pipeline.matches() == matches


FULL_DISK = """
import resource, sys
from matchmill.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
sys.exit(main(["pipeline", "run", sys.argv[1]]))
"""


@pytest.mark.long
def test_a_disk_that_is_full(pipeline: Pipeline) -> None:
    """No file may grow beyond a megabyte: Spark cannot write the events."""
    pipeline.config.write_text(CONFIG + '[spark]\nmaster = "local[1]"\n')
    assert pipeline.run()[0] == 3
    before, matches = (pipeline.out / "pipeline.json").read_bytes(), pipeline.matches()
    text = os.urandom(1 << 20).hex()
    pipeline.write_events([{**EVENTS[0], "note": text[i::100]} for i in range(100)])
    program = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(pipeline.config)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert program.returncode == 2, program.stderr
    assert "File too large" in program.stderr
    assert (pipeline.out / "pipeline.json").read_bytes() == before
    assert pipeline.matches() == matches
    pipeline.write_events(EVENTS)
    assert pipeline.run()[0] == 3
    assert pipeline.matches() == matches


@pytest.mark.long
def test_a_dialect(pipeline: Pipeline) -> None:
    patterns: dict[str, Any] = {
        "late": {"origin": ["J"], "delay": [{"numeric": [">", 30]}]},
        "other": {"origin": [{"anything-but": "J"}]},
        "missing": {"gate": [{"exists": False}], "origin": ["L"]},
    }
    lines = [{"subscription_id": id, "expression": one} for id, one in patterns.items()]
    text = "\n".join(map(json.dumps, [*lines, {"subscription_id": "bad", "expression": "x = 1"}]))
    (pipeline.folder / "alerts.jsonl").write_text(text)
    config = CONFIG.replace('"alerts.csv"', '"alerts.jsonl"\ndialect = "eventbridge"')
    pipeline.config.write_text(config)
    code, _ = pipeline.run()
    assert code == 3
    parsed = {id: mm.parse(one, dialect="eventbridge") for id, one in patterns.items()}
    assert pipeline.matches() == {
        (event["event_id"], id)
        for event in EVENTS
        for id, expression in parsed.items()
        if mm.evaluate(expression, event)
    }
