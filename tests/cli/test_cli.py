"""The command line, mostly in this process through `main`, some of it as a real one."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matchmill.cli.match
import matchmill.engine.match_many
from matchmill.cli import main
from matchmill.cli.parser import build_parser, documentation
from matchmill.cli.progress import Progress
from matchmill.engine.match_many import ChunkSize
from matchmill.language.evaluate import evaluate
from matchmill.language.expression import Expression
from tests.support.generators import HOMES, cases

REPOSITORY = Path(__file__).parents[2]
SUBSCRIPTIONS = """\
id,expression
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
MATCHES = ["0,u1", "0,u2", "0,u4", "0,u5", "1,u4", "2,u2", "2,u4"]


class Result(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in a folder of its own, where the files above lie."""
    monkeypatch.chdir(tmp_path)
    Path("subs.csv").write_text(SUBSCRIPTIONS)
    Path("events.csv").write_text(EVENTS)

    def run_main(*arguments: str) -> Result:
        code = main(arguments)
        captured = capfd.readouterr()
        return Result(code, captured.out, captured.err)

    return run_main


# -- match ----------------------------------------------------------------------------------------


def test_match_prints_pairs_and_a_summary(run: Run) -> None:
    result = run("match", "subs.csv", "events.csv")
    assert result.code == 0
    assert result.out.splitlines() == ["event,subscription", *MATCHES]
    assert "5 accepted, 0 refused, 1 can never match (u3), 1 match every event (u4)" in result.err
    assert "events: 3 read, 0 set aside" in result.err
    assert "columns: text flight, origin; number price; date day" in result.err
    assert "matches: 7\n" in result.err
    assert "per second" in result.err


def test_match_quietly(run: Run) -> None:
    result = run("match", "subs.csv", "events.csv", "--quiet", "--format", "jsonl")
    assert result.err == ""
    assert result.out.splitlines()[0] == '{"event": 0, "subscription": "u1"}'
    assert len(result.out.splitlines()) == len(MATCHES)


def test_match_names_events(run: Run) -> None:
    result = run("match", "subs.csv", "events.csv", "--event-id", "flight", "--out", "m.csv")
    assert (result.code, result.out) == (0, "")
    lines = Path("m.csv").read_text().splitlines()
    assert lines == ["event,subscription", *(f"A{int(m[0]) + 1}{m[1:]}" for m in MATCHES)]
    assert "matches: 7 in m.csv" in result.err
    result = run("match", "subs.csv", "events.csv", "--event-id", "Flight")
    assert result.code == 2
    assert "no column 'Flight'" in result.err
    assert "did you mean 'flight'?" in result.err


def test_match_sets_events_without_a_name_aside(run: Run) -> None:
    result = run("match", "subs.csv", "events.csv", "--event-id", "price", "--out", "m.jsonl")
    assert result.code == 3
    found = [json.loads(line) for line in Path("m.jsonl").read_text().splitlines()]
    assert {row["event"] for row in found} == {580, 581}
    assert "events.csv, row 4: there is no event id: 'price' is missing" in result.err


def test_match_sets_bad_rows_and_events_aside(run: Run) -> None:
    with open("subs.csv", "a") as stream:
        stream.write("u6,price <=\nu1,price > 0\n,x\nu7,a,b\nu8,a ==== 1\nu9,price like 5\n")
    with open("events.csv", "a") as stream:
        stream.write("A4,1\nA5,5,JFK,2013-02-01\n")
    result = run("match", "subs.csv", "events.csv", "--out", "m.csv", "--refused", "refused.csv")
    assert result.code == 3
    assert "5 accepted, 6 refused" in result.err
    assert "events: 5 read, 1 set aside" in result.err
    assert "… and 2 more\n" in result.err
    assert Path("m.csv").read_text().splitlines()[1:] == [*MATCHES, "4,u1", "4,u4", "4,u5"]
    with open("refused.csv", newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["kind", "row", "id", "reason"]
    assert [row[:3] for row in rows[1:]] == [
        ["subscription", "7", "u6"],
        ["subscription", "8", "u1"],
        ["subscription", "9", ""],
        ["subscription", "10", "u7"],
        ["subscription", "11", "u8"],
        ["subscription", "12", "u9"],
        ["event", "5", ""],
    ]
    assert "literal is missing" in rows[1][3]
    assert "occurs twice" in rows[2][3]
    assert rows[7][3] == "2 fields instead of 4"
    assert "--refused FILE writes them all" in run("match", "subs.csv", "events.csv").err


@pytest.mark.parametrize("bad", ["subs.csv", "events.csv"])
@pytest.mark.parametrize("out", ["m.csv", "-"])
def test_strict_stops_and_writes_nothing(bad: str, out: str, run: Run) -> None:
    Path("m.csv").write_text("older")
    with open(bad, "a") as stream:
        stream.write("x\n")
    files = sorted(os.listdir())
    result = run("match", "subs.csv", "events.csv", "--strict", "--out", out, "--refused", "r.csv")
    assert (result.code, result.out) == (2, "")
    assert f"error: {bad}, row {7 if bad == 'subs.csv' else 5}" in result.err
    assert "instead of" in result.err
    assert Path("m.csv").read_text() == "older"
    assert sorted(os.listdir()) == files


def test_strict_stops_at_what_the_engine_refuses(run: Run) -> None:
    with open("subs.csv", "a") as stream:
        stream.write("u6,price <=\n")
    result = run("match", "subs.csv", "events.csv", "--strict")
    assert result.code == 2
    assert "subs.csv, row 7 (u6): a literal is missing" in result.err
    assert run("build", "subs.csv", "saved", "--strict").code == 2
    assert not Path("saved").exists()


def test_match_with_integer_ids(run: Run) -> None:
    Path("subs.csv").write_text("who,what\n7,price <= 580\n-8,price > 580\nx,true\n")
    arguments = ("--id-column", "who", "--expression-column", "what", "--integer-ids", "--quiet")
    result = run("match", "subs.csv", "events.csv", *arguments, "--out", "m.parquet")
    assert result.code == 3
    table = pq.read_table("m.parquet")
    assert str(table.schema.field("subscription").type) == "int64"
    assert table.to_pylist() == [{"event": 0, "subscription": 7}, {"event": 1, "subscription": -8}]


def test_match_with_words_for_null_and_text(run: Run) -> None:
    Path("subs.csv").write_text("id,expression\na,zip = '10001'\nb,n is null\nc,n > 1\n")
    Path("events.csv").write_text("zip,n\n10001,NA\n10002,5\n")
    plain = run("match", "subs.csv", "events.csv", "--quiet").out.split()
    assert plain == ["event,subscription"]
    result = run("match", "subs.csv", "events.csv", "--null", "NA", "--text", "zip", "--quiet")
    assert result.out.split() == ["event,subscription", "0,a", "0,b", "1,c"]
    Path("events.jsonl").write_text("{}\n")
    result = run("match", "subs.csv", "events.jsonl", "--null", "NA")
    assert result.code == 2
    assert "are for events in CSV" in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("match", "subs.csv", "events.csv", "--out", "m.txt"), "must end in one of"),
        (("match", "subs.csv", "events.csv", "--out", "x/m.csv"), "there is no folder"),
        (("match", "subs.csv", "events.csv", "--out", "events.csv"), "choose another"),
        (("match", "subs.csv", "events.csv", "--out", "./subs.csv"), "choose another"),
        (("match", "subs.csv", "events.csv", "--out", "a.csv", "--refused", "a.csv"), "another"),
        (("match", "subs.csv", "events.csv", "--refused", "-"), "cannot both be standard output"),
        (("match", "subs.csv", "events.csv", "--format", "parquet"), "name a file"),
        (("match", "subs.csv", "events.csv", "--index", "no"), "unknown index 'no'; there are:"),
        (("match", "subs.csv", "events.csv", "--refused", "r.parquet"), ".csv or .jsonl"),
        (("match", "sub.csv", "events.csv"), "sub.csv: there is no such file; did you mean 'subs"),
        (("match", "subs.csv", "event.csv"), "did you mean 'events.csv'?"),
        (("match", ".", "events.csv"), "no saved engine"),
        (("match", "subs.csv", "."), "is a folder"),
        (("match", "subs.csv", "events.csv", "--id-column", "no"), "no column 'no'"),
        (("check", "."), "is a folder"),
        (("check", "events.csv"), "no column 'id'; it has: flight, price"),
        (("build", "subs.csv", "events.csv"), "is a file"),
        (("build", "subs.csv", "."), "holds other files"),
        (("build", ".", "saved"), "is a folder"),
        (("explain", "price <", "{}"), "a literal is missing"),
        (("explain", "price < 5", "{"), "the event: not valid JSON"),
        (("explain", "price < 5", "[1]"), "the event:"),
        (("explain", "price < 5", '{"a": 1e999}'), "infinite"),
        (("explain", "price < 5", ""), "there is no event"),
        (("explain", "{}"), "give EXPRESSION and EVENT"),
        (("explain", "--id", "u1", "a = 1", "{}"), "go together"),
        (("explain", "--subscriptions", "subs.csv", "{}"), "go together"),
        (("explain", "--subscriptions", "subs.csv", "--id", "no", "{}"), "no subscription 'no'"),
        (("nonsense",), "invalid choice"),
        ((), "required"),
        (("match", "subs.csv"), "required"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_mistakes_of_users(arguments: tuple[str, ...], message: str, run: Run) -> None:
    files = sorted(os.listdir())
    result = run(*arguments)
    assert result.code == 2
    assert message in result.err
    assert "Traceback" not in result.err
    assert result.out == ""
    assert sorted(os.listdir()) == files


def test_debug_shows_where_an_error_arose(run: Run) -> None:
    result = run("match", "nowhere.csv", "events.csv", "--debug")
    assert result.code == 2
    assert "Traceback" in result.err
    assert "matchmill: error: nowhere.csv: there is no such file" in result.err


def test_a_failure_half_way_leaves_no_output(run: Run) -> None:
    Path("m.csv").write_text("older")
    pq.write_table(pa.table({"price": list(range(50_000))}), "e.parquet", row_group_size=10_000)
    damaged = bytearray(Path("e.parquet").read_bytes())
    middle = len(damaged) // 2
    damaged[middle : middle + 5000] = bytes(5000)
    Path("e.parquet").write_bytes(damaged)
    files = sorted(os.listdir())
    result = run("match", "subs.csv", "e.parquet", "--out", "m.csv")
    assert result.code == 2
    assert "damaged" in result.err
    assert Path("m.csv").read_text() == "older"
    assert sorted(os.listdir()) == files


def test_a_bug_is_called_a_bug(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(matchmill.cli.match, "load", fail)
    result = run("match", "subs.csv", "events.csv", "--out", "m.csv")
    assert result.code == 70
    assert "Traceback" in result.err
    assert "this is a bug" in result.err
    assert not Path("m.csv").exists()


def test_an_interruption_leaves_no_output(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(matchmill.cli.match, "load", interrupt)
    files = sorted(os.listdir())
    result = run("match", "subs.csv", "events.csv", "--out", "m.csv")
    assert result == (130, "", "matchmill: interrupted\n")
    assert sorted(os.listdir()) == files


# -- all formats against the oracle ---------------------------------------------------------------


def flat_events(seed: int, n_events: int) -> list[dict[str, Any]]:
    """Events that fit into typed columns, and no empty text, which CSV cannot hold."""
    _, events = cases(seed, 0, n_events, mixed=False)
    return [{k: None if v == "" else v for k, v in event.items()} for event in events]


def csv_events(path: Path, seed: int, n_events: int) -> list[dict[str, Any]]:
    scalars = [name for name, kind in HOMES.items() if not kind.startswith("list:")]
    events = [{k: e.get(k) for k in scalars} for e in flat_events(seed, n_events)]
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, quoting=csv.QUOTE_MINIMAL)
        writer.writerow(scalars)
        for event in events:
            writer.writerow(["" if v is None else _cell(v) for v in event.values()])
    return events


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def json_events(path: Path, seed: int, n_events: int) -> list[dict[str, Any]]:
    """Anything that JSON can say: mixed types, nested objects, lists; times are text there."""
    _, events = cases(seed, 0, n_events)
    lines = [json.dumps(event, default=lambda time: time.isoformat()) for event in events]
    path.write_text("\n".join(lines), encoding="utf-8")
    return [json.loads(line) for line in lines]


ARROW_TYPES = {
    "string": pa.string(),
    "address": pa.string(),
    "float": pa.float64(),
    "number": pa.float64(),
    "int": pa.int64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}


def parquet_events(path: Path, seed: int, n_events: int) -> list[dict[str, Any]]:
    fields = []
    for name, kind in HOMES.items():
        scalar = ARROW_TYPES[kind.removeprefix("list:")]
        fields.append(pa.field(name, pa.list_(scalar) if kind.startswith("list:") else scalar))
    events = [
        {k: _as_doubles(v) if HOMES[k].endswith("number") else v for k, v in event.items()}
        for event in flat_events(seed, n_events)
    ]
    pq.write_table(pa.Table.from_pylist(events, pa.schema(fields)), path, row_group_size=40)
    return events


def _as_doubles(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_doubles(element) for element in value]
    return None if value is None else float(value)


def write_subscriptions(path: Path, expressions: list[Expression]) -> None:
    pairs = [(f"s{i}", str(expression)) for i, expression in enumerate(expressions)]
    if path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([("id", "expression"), *pairs])
    elif path.suffix == ".jsonl":
        lines = [json.dumps({"id": i, "expression": e}) + "\n" for i, e in pairs]
        path.write_text("".join(lines), encoding="utf-8")
    else:
        rows = [{"id": i, "expression": e} for i, e in pairs]
        pq.write_table(pa.Table.from_pylist(rows), path)


def read_matches(path: Path) -> list[tuple[int, str]]:
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as stream:
            return [(int(event), name) for event, name in list(csv.reader(stream))[1:]]
    if path.suffix == ".parquet":
        rows = pq.read_table(path).to_pylist()
    else:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [(row["event"], row["subscription"]) for row in rows]


WRITE_EVENTS = {".csv": csv_events, ".jsonl": json_events, ".parquet": parquet_events}


@pytest.mark.parametrize("events_suffix", WRITE_EVENTS)
@pytest.mark.parametrize("subscriptions_suffix", WRITE_EVENTS)
def test_match_against_the_oracle(
    subscriptions_suffix: str, events_suffix: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matchmill.engine.match_many, "_MOST_ROWS", 30)
    seed = 100 * list(WRITE_EVENTS).index(subscriptions_suffix) + len(events_suffix)
    subscriptions, source = Path(f"s{subscriptions_suffix}"), Path(f"e{events_suffix}")
    expressions, _ = cases(seed, 60, 0, mixed=events_suffix == ".jsonl")
    write_subscriptions(subscriptions, expressions)
    events = WRITE_EVENTS[events_suffix](source, seed, 100)
    wanted = {
        (i, f"s{k}")
        for i, event in enumerate(events)
        for k, expression in enumerate(expressions)
        if evaluate(expression, event) is True
    }
    assert len(wanted) > 200
    for out in map(Path, ("m.csv", "m.jsonl", "m.parquet")):
        result = run("match", str(subscriptions), str(source), "--out", str(out))
        assert result.code == 0, result.err
        found = read_matches(out)
        assert len(found) == len(set(found))
        assert set(found) == wanted


def test_the_size_of_chunks_follows_the_matches() -> None:
    size = ChunkSize(1_000_000)
    assert size() == 4  # should every subscription match
    size.learn(4, 12)
    assert size() == 16
    for _ in range(10):
        size.learn(10, 20)
    assert size() == 8192
    size.learn(8192, 8192 * 40_000)
    assert size() == 100
    size.learn(1, 10**9)
    assert size() == 1
    assert ChunkSize(0)() == 8192


# -- build ----------------------------------------------------------------------------------------


def test_check_reads_every_file_of_a_folder(run: Run) -> None:
    assert run("build", "subs.csv", "saved").code == 0
    result = run("check", "saved")
    assert (result.code, result.out) == (0, "5 subscriptions; every file is whole\n")
    assert json.loads(run("check", "saved", "--format", "json").out) == {"n_subscriptions": 5}
    assert run("check", "saved", "--quiet").out == ""
    file = next(Path("saved").glob("data-*/text_data.npy"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    result = run("check", "saved")
    assert result.code == 2
    assert "text_data.npy is damaged" in result.err


def test_a_folder_that_is_being_written_to_can_be_read(run: Run) -> None:
    assert run("build", "subs.csv", "saved").code == 0
    with matchmill.Engine.open("saved") as engine:
        engine.unsubscribe_many(list(engine))
        engine.subscribe("new", "price > 0")
        assert run("check", "saved").out.startswith("1 subscriptions")
        assert run("match", "saved", "events.csv", "--quiet").out.splitlines()[1].endswith("new")
        assert run("explain", "--subscriptions", "saved", "--id", "new", '{"price": 1}').code == 0
        result = run("build", "subs.csv", "saved")
        assert result.code == 2
        assert "is open for writing by process" in result.err


def test_build_and_match(run: Run) -> None:
    result = run("build", "subs.csv", "saved")
    assert (result.code, result.out) == (0, "")
    assert "5 accepted" in result.err
    assert "saved in saved" in result.err
    result = run("match", "saved", "events.csv")
    assert result.code == 0
    assert result.out.splitlines()[1:] == MATCHES
    assert "subscriptions: 5 opened" in result.err
    Path("subs.csv").write_text("id,expression\nz,price > 580\nbad\n")
    assert run("build", "subs.csv", "saved", "--refused", "r.jsonl").code == 3
    assert run("match", "saved", "events.csv", "--index", "scan", "--quiet").out.split() == [
        "event,subscription",
        "1,z",
    ]
    refused = json.loads(Path("r.jsonl").read_text())
    assert refused == {
        "kind": "subscription",
        "row": 3,
        "id": "bad",
        "reason": "1 fields instead of 2",
    }


# -- check ----------------------------------------------------------------------------------------


def test_check_finds_nothing(run: Run) -> None:
    result = run("check", "subs.csv")
    assert result.code == 0
    assert result.out == "5 fine, 0 bad\n1 can never match: u3\n1 match every event: u4\n"
    assert run("check", "subs.csv", "--quiet").out == ""


def test_check_shows_the_place_of_a_mistake(run: Run) -> None:
    with open("subs.csv", "a") as stream:
        stream.write('u6,price <= and x = 1\nu1,price > 0\nu7,a,b\n"u\x1b[2J",prise\x07 =\n')
    result = run("check", "subs.csv")
    assert result.code == 1
    lines = result.out.splitlines()
    assert lines[0] == "subs.csv, row 7 (id u6):"
    place = lines.index("    price <= and x = 1")
    assert lines[place + 1].strip() == "^"
    assert "subs.csv, row 8 (id u1):" in lines
    assert "  the id 'u1' occurs twice: first in row 2" in lines
    assert "subs.csv, row 9 (id u7):" in lines
    assert "5 fine, 4 bad" in lines
    assert "1 with an id that occurs before: u1" in lines
    assert "\x1b" not in result.out
    assert "\x07" not in result.out


def test_check_agrees_with_the_engine(run: Run) -> None:
    lines = [
        '{"id": 1, "expression": "a = 1"}',
        '{"id": "x", "expression": "a = 1"}',
        '{"id": 2.5, "expression": "a = 1"}',
        '{"id": true, "expression": "a = 1"}',
        '{"id": 9223372036854775808, "expression": "a = 1"}',
        '{"id": 2, "expression": 5}',
        '{"id": 3, "expression": {"a": 1}}',
        '{"id": 4, "expression": {"a": [1]}}',
        "nonsense",
        '{"id": 1, "expression": "a = 2"}',
        '{"id": 5, "expression": "a = 1 and a = 2"}',
    ]
    Path("subs.jsonl").write_text("\n".join(lines))
    report = json.loads(run("check", "subs.jsonl", "--format", "json").out)
    assert run("match", "subs.jsonl", "events.csv", "--refused", "r.jsonl").code == 3
    refused = [json.loads(line) for line in Path("r.jsonl").read_text().splitlines()]
    assert [row["row"] for row in report["refused"]] == [row["row"] for row in refused]
    assert [row["row"] for row in refused] == [2, 3, 4, 5, 6, 7, 9, 10]
    assert {**report, "refused": None} == {
        "n_rows": 11,
        "n_accepted": 3,
        "refused": None,
        "duplicates": [1],
        "never": [5],
        "always": [],
    }


# -- explain --------------------------------------------------------------------------------------


def test_explain(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    expression = "price <= 580 and origin = 'JFK'"
    result = run("explain", expression, '{"price": 590, "origin": "JFK"}')
    assert result.code == 1
    assert result.out.splitlines()[0] == f"✗ {expression}"
    assert "10 too much" in result.out
    assert run("explain", expression, '{"price": 5, "origin": "JFK"}').code == 0
    assert run("explain", expression, "{}").code == 1
    monkeypatch.setattr("sys.stdin", io.StringIO('{\n "price": 5,\n "origin": "JFK"\n}\n'))
    result = run("explain", "--format", "json", expression, "-")
    assert result.code == 0
    assert json.loads(result.out)["truth"] is True


def test_explain_a_subscription(run: Run) -> None:
    of = ("explain", "--subscriptions")
    assert run(*of, "subs.csv", "--id", "u1", '{"price": 5}').code == 0
    assert run(*of, "subs.csv", "--id", "u5", '{"origin": "LGA"}').code == 1
    Path("subs.jsonl").write_text('{"id": 7, "expression": "price < 5"}\n{"id": 8}')
    assert run(*of, "subs.jsonl", "--id", "7", '{"price": 4}').code == 0
    assert "row 2: there is no 'expression'" in run(*of, "subs.jsonl", "--id", "8", "{}").err
    assert run("build", "subs.jsonl", "saved").code == 3
    assert run(*of, "saved", "--id", "7", '{"price": 4}').code == 0
    assert run(*of, "saved", "--id", "x", '{"price": 4}').code == 2


# -- help -----------------------------------------------------------------------------------------


def test_the_documentation_is_up_to_date() -> None:
    page = (REPOSITORY / "docs" / "CLI.md").read_text(encoding="utf-8")
    assert page == documentation(), "make docs/CLI.md anew; it says how"


@pytest.mark.parametrize("command", [(), ("match",), ("check",), ("explain",), ("build",)])
def test_help_ends_with_the_exit_codes(command: tuple[str, ...], run: Run) -> None:
    result = run(*command, "--help")
    assert (result.code, result.err) == (0, "")
    assert "exit codes:\n  0  " in result.out
    assert all(len(line) <= 88 for line in result.out.splitlines())
    assert not command or "examples:" in result.out


def test_examples_in_the_help_are_commands() -> None:
    """Every example parses; what they do is tested above."""
    import shlex

    examples = [
        line.strip().partition("| ")[2] or line.strip()
        for line in documentation().splitlines()
        if line.startswith("  ") and "matchmill " in line and not line.startswith("   ")
    ]
    assert len(examples) >= 8
    for example in examples:
        words = shlex.split(example.partition(" > ")[0])
        assert words[0] == "matchmill"
        build_parser().parse_args(words[1:])


# -- progress -------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_for_terminals_and_long_work(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with Progress(quiet=False) as progress:
        progress.stage("reading")
        progress.update(10)
        assert terminal.getvalue() == ""
        now = time.monotonic()
        monkeypatch.setattr(time, "monotonic", lambda: now + 5)
        progress.update(1234)
        progress.stage("matching")
        progress.update(5678)
    shown = terminal.getvalue()
    assert "matching" in shown
    assert "5,678" in shown
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Progress(quiet=False) as progress:
        progress.update(10)
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]


# -- real processes -------------------------------------------------------------------------------


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "matchmill", *arguments]


@pytest.mark.slow
def test_version_of_the_module_and_the_script() -> None:
    done = subprocess.run(command("--version"), capture_output=True, text=True, check=True)
    assert done.stdout.startswith("matchmill ")
    script = Path(sys.executable).with_name("matchmill")
    if script.exists():
        again = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
        assert again.stdout == done.stdout


@pytest.mark.slow
def test_match_in_a_process(run: Run) -> None:
    done = subprocess.run(
        command("match", "subs.csv", "events.csv"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:] == MATCHES
    missing = subprocess.run(
        command("match", "no.csv", "events.csv"), capture_output=True, text=True, check=False
    )
    assert missing.returncode == 2
    assert missing.stderr == "matchmill: error: no.csv: there is no such file\n"


@pytest.mark.slow
def test_the_reader_goes_away(run: Run) -> None:
    Path("subs.csv").write_text("id,expression\n" + "".join(f"u{i},true\n" for i in range(300)))
    Path("events.csv").write_text("x\n" + "1\n" * 2000)
    process = subprocess.Popen(
        command("match", "subs.csv", "events.csv"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"event,subscription\n"
    process.stdout.close()
    errors = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(60) == 141
    assert errors == ""


def open_when_read(fifo: str) -> int:
    """The writing end of a pipe, as soon as somebody reads it."""
    for _ in range(600):
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(fifo)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_no_output(number: signal.Signals, code: int, run: Run) -> None:
    """The events come from a pipe that nobody writes to, so the process waits."""
    os.mkfifo("events.jsonl")
    process = subprocess.Popen(
        command("match", "subs.csv", "events.jsonl", "--out", "m.csv"),
        stderr=subprocess.PIPE,
        text=True,
    )
    writer = open_when_read("events.jsonl")
    time.sleep(0.2)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    os.close(writer)
    assert process.returncode == code
    assert "Traceback" not in errors
    assert sorted(os.listdir()) == ["events.csv", "events.jsonl", "subs.csv"]


@pytest.mark.slow
def test_a_terminal_that_knows_no_check_marks(run: Run) -> None:
    done = subprocess.run(
        command("explain", "größe > 5", '{"größe": 6}'),
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"\\u2713 gr\\xf6\\xdfe > 5")
