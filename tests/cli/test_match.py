"""`matchmill match`: all forms of files against the oracle, and what goes wrong."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matchmill.cli.match
from matchmill.language.evaluate import evaluate
from matchmill.language.expression import Expression
from tests.support.generators import HOMES, cases

Run = Callable[..., Any]

HEAD = "event_id,subscription_id"
MATCHES = ["0,u1", "0,u2", "0,u4", "0,u5", "1,u4", "2,u2", "2,u4"]


def test_pairs_and_a_summary(run: Run) -> None:
    result = run("match", "subs.csv", "events.csv")
    assert result.code == 0
    assert result.out.splitlines() == [HEAD, *MATCHES]
    assert "5 accepted, 0 rejected, 1 can never match (u3), 1 match every event (u4)" in result.err
    assert "events: 3 read, 0 rejected" in result.err
    assert "columns: text flight, origin; number price; date day" in result.err
    assert "matches: 7\n" in result.err
    assert "per second" in result.err


def test_quietly_and_in_other_forms(run: Run) -> None:
    result = run("match", "subs.csv", "events.csv", "--quiet", "--format", "jsonl")
    assert result.err == ""
    assert result.out.splitlines()[0] == '{"event_id": 0, "subscription_id": "u1"}'
    assert len(result.out.splitlines()) == len(MATCHES)


def test_one_row_per_event(run: Run) -> None:
    Path("more.csv").write_text("price\n1000\n")
    Path("subs.csv").write_text("subscription_id,expression\nu1,price < 581\nu2,price < 600\n")
    result = run(
        "match", "subs.csv", "events.csv", "more.csv", "--per-event", "-o", "m.jsonl", "--quiet"
    )
    assert result == (0, "", "")
    rows = [json.loads(line) for line in Path("m.jsonl").read_text().splitlines()]
    assert [(row["event_id"], sorted(row["subscription_ids"])) for row in rows] == [
        (0, ["u1", "u2"]),
        (1, ["u2"]),
        (2, []),
        (3, []),
    ]


def test_several_files_and_patterns(run: Run) -> None:
    """Positions count through all files."""
    Path("more.csv").write_text("price\n5\n")
    Path("subs-1.csv").write_text("subscription_id,expression\na,price < 10\n")
    Path("subs-2.csv").write_text("subscription_id,expression\nb,price < 10\na,price < 20\n")
    result = run("match", "subs-*.csv", "events.csv", "more.csv")
    assert (result.code, result.out.split()) == (3, [HEAD, "3,a", "3,b"])
    assert "subs-2.csv:3: a: " in result.err
    assert run("match", "subs.csv", "m*e.csv", "--quiet").out.split() == [HEAD, "0,u1", "0,u4"]
    assert "no file has a name like x*.csv" in run("match", "x*.csv", "events.csv").err


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_events_of_standard_input(form: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"price": [580, 590]})
    if form == "csv":
        data = b"price\n580\n590\n"
    elif form == "jsonl":
        data = b'{"price": 580}\n{"price": 590}\n'
    else:
        buffer = io.BytesIO()
        pq.write_table(table, buffer)
        data = buffer.getvalue()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    result = run("match", "subs.csv", "-", "--quiet")
    assert (result.code, result.out.split()) == (0, [HEAD, "0,u1", "0,u4", "1,u4"])


def test_subscriptions_of_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"subscription_id,expression\nx,price = 580\ny,price =\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    result = run("match", "-", "events.csv")
    assert (result.code, result.out.split()) == (3, [HEAD, "0,x"])
    assert "-:3: y: " in result.err
    assert "only once" in run("match", "-", "-").err


def test_threads(run: Run) -> None:
    result = run("match", "subs.csv", "events.csv", "--threads", "2", "--quiet")
    assert result.out.splitlines()[1:] == MATCHES
    assert "--threads must be at least 1" in run("match", "subs.csv", "x", "--threads", "0").err


def test_names_of_events(run: Run) -> None:
    result = run("match", "subs.csv", "events.csv", "--event-id", "flight", "--out", "m.csv")
    assert (result.code, result.out) == (0, "")
    lines = Path("m.csv").read_text().splitlines()
    assert lines == [HEAD, *(f"A{int(m[0]) + 1}{m[1:]}" for m in MATCHES)]
    assert "matches: 7 in m.csv" in result.err
    result = run("match", "subs.csv", "events.csv", "--event-id", "Flight")
    assert result.code == 2
    assert "no column 'Flight'" in result.err
    assert "--event-id flight" in result.err


def test_events_without_a_name_are_rejected(run: Run) -> None:
    result = run("match", "subs.csv", "events.csv", "--event-id", "price", "--out", "m.jsonl")
    assert result.code == 3
    found = [json.loads(line) for line in Path("m.jsonl").read_text().splitlines()]
    assert {row["event_id"] for row in found} == {580, 581}
    assert "events.csv:4: there is no event id: 'price' is missing" in result.err


def test_bad_rows_and_events_are_rejected(run: Run) -> None:
    with open("subs.csv", "a") as stream:
        stream.write("u6,price <=\nu1,price > 0\n,x\nu7,a,b\nu8,a ==== 1\nu9,price like 5\n")
    with open("events.csv", "a") as stream:
        stream.write("A4,1\nA5,5,JFK,2013-02-01\n")
    result = run("match", "subs.csv", "events.csv", "--out", "m.csv", "--rejected", "rejected.csv")
    assert result.code == 3
    assert "5 accepted, 6 rejected" in result.err
    assert "events: 5 read, 1 rejected" in result.err
    assert "  subs.csv:7: u6: " in result.err
    assert "… and 2 more\n" in result.err
    assert Path("m.csv").read_text().splitlines()[1:] == [*MATCHES, "4,u1", "4,u4", "4,u5"]
    with open("rejected.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["kind", "row", "line", "source", "id", "reason"]
    assert [(row["kind"], row["row"], row["line"], row["id"]) for row in rows] == [
        ("subscription", "5", "7", "u6"),
        ("subscription", "6", "8", "u1"),
        ("subscription", "7", "9", ""),
        ("subscription", "8", "10", "u7"),
        ("subscription", "9", "11", "u8"),
        ("subscription", "10", "12", "u9"),
        ("event", "3", "5", ""),
    ]
    assert "literal is missing" in rows[0]["reason"]
    assert {row["source"] for row in rows} == {"subs.csv", "events.csv"}
    assert rows[6]["reason"] == "2 fields instead of 4"
    assert "--rejected FILE writes them all" in run("match", "subs.csv", "events.csv").err


@pytest.mark.parametrize("bad", ["subs.csv", "events.csv"])
@pytest.mark.parametrize("out", ["m.csv", "-"])
def test_strict_stops_and_writes_nothing(bad: str, out: str, run: Run) -> None:
    Path("m.csv").write_text("older")
    with open(bad, "a") as stream:
        stream.write("x\n")
    files = sorted(os.listdir())
    result = run("match", "subs.csv", "events.csv", "--strict", "--out", out, "--rejected", "r.csv")
    assert (result.code, result.out) == (2, "")
    assert f"error: {bad}:{7 if bad == 'subs.csv' else 5}: " in result.err
    assert "instead of" in result.err
    assert Path("m.csv").read_text() == "older"
    assert sorted(os.listdir()) == files


def test_strict_stops_at_what_the_engine_rejects(run: Run) -> None:
    with open("subs.csv", "a") as stream:
        stream.write("u6,price <=\n")
    result = run("match", "subs.csv", "events.csv", "--strict")
    assert result.code == 2
    assert "subs.csv:7: u6: a literal is missing" in result.err
    assert run("build", "subs.csv", "saved", "--strict").code == 2
    assert not Path("saved").exists()


def test_integer_ids_and_other_columns(run: Run) -> None:
    Path("subs.csv").write_text("who,what\n7,price <= 580\n-8,price > 580\nx,true\n")
    options = ("--subscription-id", "who", "--expression", "what", "--integer-ids", "--quiet")
    result = run("match", "subs.csv", "events.csv", *options, "--out", "m.parquet")
    assert result.code == 3
    table = pq.read_table("m.parquet")
    assert str(table.schema.field("subscription_id").type) == "int64"
    assert table.to_pylist() == [
        {"event_id": 0, "subscription_id": 7},
        {"event_id": 1, "subscription_id": -8},
    ]


def test_a_missing_column_names_the_option(run: Run) -> None:
    Path("subs.csv").write_text("id,rule\nu1,price <= 580\n")
    result = run("match", "subs.csv", "events.csv")
    assert result.code == 2
    assert "there is no column 'subscription_id'; it has: id, rule" in result.err
    assert "--subscription-id id" in result.err
    result = run("match", "subs.csv", "events.csv", "--subscription-id", "id")
    assert "--expression rule" in result.err


def test_words_for_null_and_columns_of_text(run: Run) -> None:
    rows = "a,zip = '10001'\nb,n is null\nc,n > 1\n"
    Path("subs.csv").write_text("subscription_id,expression\n" + rows)
    Path("events.csv").write_text("zip,n\n10001,NA\n10002,5\n")
    assert run("match", "subs.csv", "events.csv", "--quiet").out.split() == [HEAD]
    options = ("--null-value", "NA", "--type", "zip=text", "--quiet")
    result = run("match", "subs.csv", "events.csv", *options)
    assert result.out.split() == [HEAD, "0,a", "0,b", "1,c"]
    assert run("match", "subs.csv", "events.csv", "--type", "n=day").code == 2
    assert "no type 'day' of 'n'" in run("match", "subs.csv", "events.csv", "--type", "n=day").err
    Path("events.jsonl").write_text("{}\n")
    result = run("match", "subs.csv", "events.jsonl", "--null-value", "NA")
    assert result.code == 2
    assert "is for events in CSV" in result.err


def test_types_of_attributes(run: Run) -> None:
    Path("subs.csv").write_text("subscription_id,expression\na,ts > timestamp '2013-01-01'\n")
    Path("events.jsonl").write_text('{"ts": "2013-02-01"}\n{"ts": "2013-02-01T00:00Z"}\n')
    Path("events.csv").write_text("ts\n2013-02-01\nsoon\n")
    files = {"events.jsonl": (["0,a", "1,a"], ["1,a"]), "events.csv": (["0,a"], [])}
    for file, (typed, plain) in files.items():
        given = ("match", "subs.csv", file, "--quiet")
        assert run(*given).out.split() == [HEAD, *plain]
        assert run(*given, "--type", "ts=timestamp").out.split() == [HEAD, *typed]
    built = ("build", "subs.csv", "a.mill", "--type", "ts=timestamp", "--quiet")
    assert run(*built).code == 0
    assert run("match", "a.mill", "events.jsonl", "--quiet").out.split() == [HEAD, "0,a", "1,a"]


def test_settings(run: Run) -> None:
    result = run("match", "subs.csv", "events.csv", "--setting", "max_conditions=1")
    assert result.code == 3
    assert "subs.csv:3: u2: " in result.err
    result = run("match", "subs.csv", "events.csv", "--setting", "max_condition=1")
    assert (result.code, "did you mean 'max_conditions'?" in result.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("subs.csv", "events.csv", "--out", "m.txt"), "must end in one of"),
        (("subs.csv", "events.csv", "--out", "x/m.csv"), "there is no folder"),
        (("subs.csv", "events.csv", "--out", "events.csv"), "choose another"),
        (("subs.csv", "events.csv", "--out", "./subs.csv"), "choose another"),
        (("subs.csv", "events.csv", "--out", "a.csv", "--rejected", "a.csv"), "another"),
        (("subs.csv", "events.csv", "--rejected", "-"), "cannot both be standard output"),
        (("subs.csv", "events.csv", "--format", "parquet"), "name a file"),
        (("subs.csv", "events.csv", "--index", "no"), "unknown index 'no'"),
        (("subs.csv", "events.csv", "--rejected", "r.parquet"), ".csv or .jsonl"),
        (("sub.csv", "events.csv"), "sub.csv: there is no such file; did you mean 'subs"),
        (("subs.csv", "event.csv"), "did you mean 'events.csv'?"),
        (("subs.csv", "events.csv", "--subscription-id", "no"), "no column 'no'"),
        (("subs.csv",), "the following arguments are required: EVENTS"),
    ],
)
def test_mistakes_of_users(arguments: tuple[str, ...], message: str, run: Run) -> None:
    files = sorted(os.listdir())
    result = run("match", *arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert "Traceback" not in result.err
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


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [(ZeroDivisionError, 70, "this is a bug"), (KeyboardInterrupt, 130, "matchmill: interrupted")],
)
def test_bugs_and_interruptions_leave_no_output(
    error: type, code: int, message: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(matchmill.cli.match, "load", fail)
    files = sorted(os.listdir())
    result = run("match", "subs.csv", "events.csv", "--out", "m.csv")
    assert (result.code, message in result.err) == (code, True)
    assert ("Traceback" in result.err) == (code == 70)
    assert sorted(os.listdir()) == files


# -- all formats against the oracle ---------------------------------------------------------------


def flat_events(seed: int, n_events: int) -> list[dict[str, Any]]:
    """Make events that fit into typed columns, without empty text, which CSV cannot hold."""
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
    """Write all that JSON can hold: mixed types, nested objects, lists; times are text there."""
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
    rows = [
        {"subscription_id": f"s{i}", "expression": str(expression)}
        for i, expression in enumerate(expressions)
    ]
    if path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)


def read_matches(path: Path) -> list[tuple[int, str]]:
    if path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as stream:
            return [(int(event), name) for event, name in list(csv.reader(stream))[1:]]
    if path.suffix == ".parquet":
        rows = pq.read_table(path).to_pylist()
    else:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [(row["event_id"], row["subscription_id"]) for row in rows]


WRITE_EVENTS = {".csv": csv_events, ".jsonl": json_events, ".parquet": parquet_events}


@pytest.mark.parametrize("events_suffix", WRITE_EVENTS)
@pytest.mark.parametrize("subscriptions_suffix", WRITE_EVENTS)
def test_against_the_oracle(subscriptions_suffix: str, events_suffix: str, run: Run) -> None:
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
        result = run("match", subscriptions, source, "--out", out)
        assert result.code == 0, result.err
        found = read_matches(out)
        assert len(found) == len(set(found))
        assert set(found) == wanted


def test_cells_that_make_a_column_text_are_reported(run: Run) -> None:
    Path("odd.csv").write_text("delay,x\n" + "".join(f"{n},1\n" for n in range(16)) + "n/a,1\n")
    result = run("match", "subs.csv", "odd.csv")
    message = "odd.csv:18: 'n/a' makes delay a text column; most of its cells are numbers"
    assert f"{message}; --null-value n/a\n" in result.err
    assert "makes" not in run("match", "subs.csv", "odd.csv", "--null-value", "n/a").err


PATTERNS = """\
{"subscription_id": "null", "expression": {"a": [null]}}
{"subscription_id": "same", "expression": {"e": {"x": [1], "y": [2]}}}
{"subscription_id": "text", "expression": "a = 1"}
"""
NULLS = """\
{"a": null}
{"e": [{"x": 1}, {"y": 2}]}
{"e": [{"x": 1, "y": 2}]}
"""


def test_a_dialect(run: Run) -> None:
    Path("patterns.jsonl").write_text(PATTERNS)
    Path("nulls.jsonl").write_text(NULLS)
    option = ("--dialect", "eventbridge")
    error = run("match", "patterns.jsonl", "nulls.jsonl", "--dialect", "eventbrigde").err
    assert "argument --dialect: is one of matchmill, eventbridge" in error
    assert "did you mean 'eventbridge'" in error
    result = run("match", "patterns.jsonl", "nulls.jsonl", *option)
    assert result.code == 3
    assert "patterns.jsonl:3: text: not valid JSON" in result.err
    assert result.out.splitlines() == ["event_id,subscription_id", "0,null", "2,same"]
    checked = run("check", "patterns.jsonl", *option)
    assert (checked.code, "2 accepted, 1 rejected" in checked.out) == (1, True)
    assert run("build", "patterns.jsonl", "saved", *option).code == 3
    assert run("match", "saved", "nulls.jsonl").out == result.out
    assert run("subscribe", "saved", "none", '{"a": [{"exists": false}]}', *option).code == 0
    assert run("subscribe", "saved", "--file", "patterns.jsonl", "--replace", *option).code == 3
    assert "1,none" in run("match", "saved", "nulls.jsonl").out
    listed = run("list", "saved", "--format", "csv").out
    assert "eventbridge" in listed
    Path("listed.csv").write_text(listed)
    assert run("check", "listed.csv").code == 0
    pattern = '{"a": [null]}'
    assert run("explain", pattern, "{}").code == 0
    assert run("explain", pattern, "{}", *option).code == 1
    assert run("explain", pattern, '{"a": null}', *option).code == 0
    assert run("explain", "patterns.jsonl", "same", NULLS.splitlines()[1], *option).code == 1
    assert run("explain", "saved", "same", NULLS.splitlines()[2]).code == 0
    assert "1 of 3 events" in run("backtest", pattern, "nulls.jsonl", *option).out
