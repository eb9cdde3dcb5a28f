"""Declared types of attributes: one reading in every form and door."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import matchmill as mm
from matchmill.encoding.events.read import read_events, read_json_lines
from matchmill.encoding.events.typed import typed_events
from matchmill.engine.match_many import rejected_events
from matchmill.io.event_files import EventChunk
from matchmill.language.attribute_types import typed_event, typed_value
from matchmill.language.coercion import coerced
from matchmill.language.evaluate import evaluate_flat
from matchmill.language.values import Opaque
from tests.support.event_forms import FORMS, random_condition, random_event

NOON = dt.datetime(2013, 1, 31, 12)
DAY = dt.date(2013, 1, 31)
TOKYO = dt.timezone(dt.timedelta(hours=9))


@pytest.mark.parametrize(
    ("kind", "given", "read"),
    [
        ("timestamp", "2013-01-31T12:00", NOON),
        ("timestamp", "2013-01-31", dt.datetime(2013, 1, 31)),
        ("timestamp", DAY, dt.datetime(2013, 1, 31)),
        ("timestamp", NOON, NOON),
        ("timestamp", "soon", None),
        ("timestamp", 1359633600, None),
        ("date", "2013-01-31", DAY),
        ("date", "2013-01-31T23:30-01:00", dt.date(2013, 2, 1)),
        ("date", dt.datetime(2013, 2, 1, 8, tzinfo=TOKYO), DAY),
        ("date", True, None),
        ("number", "7", 7),
        ("number", "007", 7),
        ("number", "-0.5", -0.5),
        ("number", "1e3", 1000.0),
        ("number", "9223372036854775807", 2**63 - 1),
        ("number", "9223372036854775808", 2.0**63),
        ("number", 7, 7),
        ("number", "1e999", None),
        ("number", "0x10", None),
        ("number", " 7", None),
        ("number", "١", None),
        ("number", True, None),
        ("text", "x", "x"),
        ("text", 7, "7"),
        ("text", 7.0, "7"),
        ("text", 0.5, "0.5"),
        ("text", True, "true"),
        ("text", DAY, "2013-01-31"),
        ("text", NOON, "2013-01-31T12:00:00"),
        ("text", Decimal("0.5"), "0.5"),
        ("text", Decimal("123456789012345678.01"), "123456789012345680"),
        ("boolean", "TRUE", True),
        ("boolean", 0, False),
        ("boolean", False, False),
        ("boolean", 2, None),
        ("boolean", "yes", None),
    ],
)
def test_values(kind: str, given: Any, read: Any) -> None:
    """One value by the definition, and in a column of a batch."""
    value = typed_value(given, kind)
    if read is None:
        assert isinstance(value, Opaque)
        assert value.problem == f"cannot be read as a {kind}"
    else:
        assert (value, type(value)) == (read, type(read))
    conditions = {
        dt.datetime: "x = timestamp '{}'", dt.date: "x = date '{}'", str: "x = '{}'", bool: "x = {}"
    }  # fmt: skip
    shown = str(read).lower() if type(read) is bool else read
    condition = conditions.get(type(read), "x = {}").format(shown)
    engine = mm.Engine({"same": condition} if read is not None else {}, types={"x": kind})
    engine.subscribe("any", "x is not null")
    wanted = {"any"} if read is None else {"any", "same"}
    assert engine.match({"x": given}) == wanted
    assert list(engine.match_many([{"x": given}] * 9)) == [wanted] * 9


def test_every_form_agrees() -> None:
    types = {
        "iso": "timestamp", "isos": "date", "s": "number", "i": "text", "b": "text", "n": "boolean",
        "d": "timestamp", "t": "date", "x.z": "number", "tags": "timestamp", "x.y": "text",
        "o.p": "text",
    }  # fmt: skip
    rng = Random(11)
    events = [random_event(rng) for _ in range(400)]
    expressions = {f"s{k}": mm.parse(random_condition(rng)) for k in range(80)}
    engine = mm.Engine(expressions, types=types)
    flats = [typed_event(event, types) for event in events]
    expected = [
        {id for id, one in expressions.items() if evaluate_flat(one, flat) is True}
        for flat in flats
    ]
    assert sum(map(len, expected)) > 1000
    for form, read in FORMS.items():
        assert list(engine.match_many(read(events))) == expected, form
    assert [engine.match(event) for event in events] == expected
    for k, event in enumerate(events[:20]):
        assert {id for id in engine if engine.explain(id, event).matched} == expected[k]


TS = "ts > timestamp '2013-01-01'"
ROWS = [{"ts": "2013-02-01", "code": "007"}, {"ts": "soon", "code": "7"}]


def test_files_and_frames(tmp_path: Path) -> None:
    lines = "\n".join(map(json.dumps, ROWS))
    (tmp_path / "e.jsonl").write_text(lines)
    (tmp_path / "e.csv").write_text("ts,code\n2013-02-01,7\nsoon,07\nNA,8\n")
    engine = mm.Engine(
        {"late": TS, "seven": "code = '7'"}, types={"ts": "timestamp", "code": "text"}
    )
    plain = mm.Engine({"late": TS, "seven": "code = '7'"})
    assert list(engine.match_many(ROWS)) == [{"late"}, {"seven"}]
    assert list(engine.match_many(tmp_path / "e.jsonl")) == [{"late"}, {"seven"}]
    from_csv = [{"late", "seven"}, set(), set()]
    assert list(engine.match_many(tmp_path / "e.csv")) == from_csv
    found = mm.read_events(tmp_path / "e.csv", types=engine.types, null_values=["NA"])
    assert list(plain.match_many(found)) == from_csv
    assert list(mm.match(plain, tmp_path / "e.csv", types=engine.types)) == from_csv
    assert list(mm.match({"late": TS}, ROWS, types={"ts": "timestamp"})) == [{"late"}, set()]
    batches = engine.match_batches(tmp_path / "e.csv", batch_size=1)
    assert [ids for matches in batches for ids in matches] == from_csv
    frames: list[Any] = [pd.DataFrame(ROWS), pl.DataFrame(ROWS), pa.Table.from_pylist(ROWS)]
    for frame in frames:
        assert list(engine.match_many(frame)) == [{"late"}, {"seven"}]
    engine.learn(ROWS)


def test_types_are_saved(tmp_path: Path) -> None:
    engine = mm.Engine({"late": TS}, types={"ts": "timestamp"})
    engine.save(tmp_path / "e.mill")
    with mm.Engine.open(tmp_path / "e.mill") as opened:
        assert opened.types == {"ts": "timestamp"}
        assert opened.match(ROWS[0]) == {"late"}
        opened.save()
    with mm.Engine.open(tmp_path / "e.mill", types={}, read_only=True) as opened:
        assert opened.match(ROWS[0]) == set()
    with mm.Engine.open(tmp_path / "new", create=True, types={"ts": "timestamp"}) as new:
        new.subscribe("late", TS)
    assert mm.Engine.open(tmp_path / "new", read_only=True).match(ROWS[0]) == {"late"}


def test_explanations_have_the_remedy() -> None:
    without, declared = mm.Engine({"late": TS}), mm.Engine({"late": TS}, types={"ts": "timestamp"})
    assert "declare the type timestamp" in str(without.explain("late", ROWS[0]))
    assert declared.explain("late", ROWS[0]).matched
    assert "cannot be read as a timestamp" in str(declared.explain("late", ROWS[1]))


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({"ts": "timestmap"}, "did you mean 'timestamp'"),
        ({"ts": 5}, "no type 5 of 'ts'"),
        ({5: "text"}, "names of attributes, not 5"),
        ([("ts", "text")], "types is a mapping"),
    ],
)
def test_wrong_types(types: Any, message: str) -> None:
    for call in (mm.Engine, lambda types: mm.read_events([], types=types)):
        with pytest.raises(mm.InputError, match=message):
            call(types=types)


def test_rejected_events_keep_their_places() -> None:
    events = read_json_lines(b'{"ts": 1}\n\n{"ts": }\n')
    chunk = EventChunk(0, typed_events(events, {"ts": "timestamp"}))
    (one,) = rejected_events(chunk.events.columns().rejected, chunk)
    assert (one.row, one.line) == (1, 3)


def test_operators_see_what_is_read_and_arrays_as_they_are() -> None:
    seen: list[Any] = []
    mm.operator(name="looks")(lambda event: seen.append((event["ts"], event["v"])) or True)
    engine = mm.Engine({"a": "looks()"}, types={"ts": "timestamp"})
    vector = np.array([1, 2])
    engine.match({"ts": "2013-02-01", "v": vector})
    engine.match_many([{"ts": "2013-02-01", "v": vector}] * 2)
    assert len(seen) == 3
    assert all(ts == dt.datetime(2013, 2, 1) and v is vector for ts, v in seen)


def test_bytes_and_nothing() -> None:
    assert list(mm.Engine(types={"x": "number"}).match_many([])) == []
    events = typed_events(read_events([{"x": b"7"}, {}]), {"x": "number"})
    (column,) = events.columns().columns
    assert (column.region.name, column.rows.tolist()) == ("OBJECT", [0])


# -- types that convert ---------------------------------------------------------------------------

CONVERTED = {"id": "number-or-text", "flag": "boolean-or-text", "logon": "hex"}
MIXED = {
    "id": [4624, "4624", "0x1210", 4624.0, "4625", "none", True, None, ["4624", "x"], "", "1e400"],
    "flag": [True, "true", "TRUE", "false", "maybe", 1, None, ["True"]],
    "logon": ["0x3e7", "3E7", 999, "xyz", "", None, ["0x3E7"], "0xffffffffffffffffff", True],
}


def converting_condition(rng: Random) -> str:
    literals = {
        "id": ["4624", "'4624'", "'0x1210'", "'none'", "5000", "true"],
        "flag": ["true", "'true'", "'False'", "'maybe'"],
        "logon": ["999", "'0x3e7'", "'3e7'", "'xyz'"],
    }
    name = rng.choice(list(literals))
    one, two = rng.choices(literals[name], k=2)
    subject = rng.choice([name, name, f"any({name})"])
    forms = [
        f"{subject} = {one}",
        f"{subject} != {one}",
        f"{subject} in ({one}, {two})",
        f"{subject} < {one}",
        f"{name} contains any ({one}, {two})",
        f"{name} is not null",
        f"{subject} like '4%'",
        f"({subject} = {one}) is not true",
        f"not {subject} = {two}",
    ]
    return rng.choice(forms)


def test_literals_and_values_are_read_alike() -> None:
    engine = mm.Engine(
        {"n": "id = '4624'", "m": "id = 4624", "h": "logon = '0x3E7'"}, types=CONVERTED
    )
    for value in (4624, "4624", "0x1210", "4624.0", "04624"):
        assert engine.match({"id": value}) == {"n", "m"}
    assert engine["n"].expression == "id = 4624"
    assert engine.match({"logon": 999, "id": "x4624"}) == {"h"}
    assert engine.match_expression("id = '4624'") == {"n", "m"}
    assert "none" in str(engine.explain("n", {"id": "none"}))


@pytest.mark.parametrize("form", ["dicts", "JSON lines", "Arrow", "single", "pandas"])
def test_conversion_in_every_form(form: str) -> None:
    rng = Random(form)
    texts = {i: converting_condition(rng) for i in range(150)}
    rows: list[dict[str, Any]] = [
        {name: rng.choice(values) for name, values in MIXED.items()} for _ in range(120)
    ]
    if form == "Arrow":  # columns of one type
        rows = [{n: v if isinstance(v, str) else None for n, v in row.items()} for row in rows]
    engine = mm.Engine(types=CONVERTED)
    assert not engine.subscribe_many(texts).rejected
    parsed = {i: coerced(mm.parse(text), CONVERTED) for i, text in texts.items()}
    flat = [typed_event(row, CONVERTED) for row in rows]
    wanted = [{i for i, e in parsed.items() if evaluate_flat(e, f) is True} for f in flat]
    events: Any = {
        "JSON lines": lambda: read_json_lines("\n".join(map(json.dumps, rows)).encode()),
        "Arrow": lambda: pa.Table.from_pylist(rows),
        "pandas": lambda: pd.DataFrame(rows).astype(object),
    }.get(form, lambda: rows)()
    found = [engine.match(row) for row in rows] if form == "single" else engine.match_many(events)
    assert list(found) == wanted


def test_bulk_loads_read_literals_so() -> None:
    engine = mm.Engine(types=CONVERTED)
    engine.subscribe_many({i: f"id = '{i}'" for i in range(9000)})
    assert engine.match({"id": 77}) == {77}
    assert list(engine.match_many([{"id": "8999"}, {"id": 5.0}])) == [{8999}, {5}]


def test_they_are_saved(tmp_path: Path) -> None:
    with mm.Engine.open(tmp_path / "e", create=True, types=CONVERTED) as engine:
        engine.subscribe("a", "id = '4624'")
    with mm.Engine.open(tmp_path / "e") as engine:
        engine.subscribe("b", "id in ('4624')")
        assert engine.match({"id": "4624"}) == {"a", "b"} == engine.match({"id": 4624})
