"""Files of subscriptions, events and matches: what is read, what is refused, what is written."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matchmill as mm
from matchmill.encoding.events.read import Events
from matchmill.errors import EventError, FileFormatError
from matchmill.io import csv_rows, formats
from matchmill.io.event_files import event_columns, infer_csv_columns, read_event_chunks
from matchmill.io.event_ids import EventIds
from matchmill.io.formats import format_of
from matchmill.io.reports import Rejected
from matchmill.io.subscription_files import SubscriptionRow, read_subscriptions
from matchmill.io.writers import MatchWriter, RejectedWriter

NAN = float("nan")


def write(folder: Path, name: str, content: bytes | str | pa.Table) -> Path:
    path = folder / name
    if isinstance(content, pa.Table):
        pq.write_table(content, path)
    else:
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def rows_of(path: Path, **options: Any) -> list[SubscriptionRow]:
    return list(read_subscriptions(path, **{"subscription_id": "id", **options}))


def events_of(path: Path, **options: Any) -> list[dict[str, Any] | str]:
    """Every event as a flat mapping, or why it is rejected."""
    found: list[dict[str, Any] | str] = []
    for chunk in read_event_chunks(path, **options):
        assert chunk.first == len(found)
        if path.suffix != ".parquet":
            assert len(chunk.lines) == chunk.events.n_events
        assert chunk.source == str(path)
        rejected = chunk.events.columns().rejected
        for i in range(chunk.events.n_events):
            found.append(event_or_reason(chunk.events, i))
            assert (i in rejected) == isinstance(found[-1], str)
            assert i not in rejected or rejected[i] == found[-1]
    return found


def event_or_reason(events: Events, i: int) -> dict[str, Any] | str:
    try:
        return dict(events.event(i))
    except EventError as error:
        return str(error)


# -- bad files ------------------------------------------------------------------------------------

TABLE = pa.table({"id": ["a", "b"], "expression": ["x = 1", "y = 2"]})
PARQUET = io.BytesIO()
pq.write_table(TABLE, PARQUET)
BYTES = PARQUET.getvalue()
DAMAGED = BYTES[:4] + bytes(b ^ 0xFF for b in BYTES[4:60]) + BYTES[60:]
CSV_ZST = pa.compress(b"id,expression\n" + os.urandom(5000), codec="zstd", asbytes=True)
CSV_GZ = gzip.compress(b"id,expression\n" + os.urandom(5000).hex().encode())

# name: (file name, content, what the message must hold); read as subscriptions and as events.
BAD_FILES: dict[str, tuple[str, bytes | str | pa.Table, str]] = {
    "empty parquet": ("a.parquet", b"", "is empty"),
    "unknown suffix": ("a.txt", "id,expression\n", "must end in one of .csv"),
    "no suffix": ("a", "id,expression\n", "must end in one of .csv"),
    "packed parquet": ("a.parquet.gz", BYTES, "must end in one of .csv"),
    "open quote": ("a.csv", 'id,expression\na,x = 1\nb,"y = 2\nc,z\n', "line 3: a double quote"),
    "open quote in the header": ("a.csv", 'id,"expression\na,x = 1\n', "line 1: a double quote"),
    "nul byte": ("a.csv", b"id,expression\na,x = 1\nb,\0\n", "line 3: a NUL byte"),
    "nul byte in the header": ("a.csv", b"id,expre\0ssion\n", "line 1: a NUL byte"),
    "carriage returns": ("a.csv", "id,expression\ra,x = 1\rb,y\r", "carriage return"),
    "text after a quote in the header": ("a.csv", '"id"x,expression\n', "closing double quote"),
    "latin-1 header": ("a.csv", "id,größe\n".encode("latin-1"), "not valid UTF-8"),
    "utf-16": ("a.csv", "id,expression\na,x = 1\n".encode("utf-16"), "UTF-16"),
    "utf-16, jsonl": ("a.jsonl", '{"id": 1}\n'.encode("utf-16"), "UTF-16"),
    "parquet named csv": ("a.csv", BYTES, "is Parquet"),
    "gzip named jsonl": ("a.jsonl", CSV_GZ, "add .gz"),
    "zstd named csv": ("a.csv", CSV_ZST, "add .zst"),
    "half a zstd file": ("a.csv.zst", CSV_ZST[:-9], "cut short"),
    "text named zst": ("a.csv.zst", b"id,expression\na,x = 1\n", "not compressed by zstd"),
    "spreadsheet named csv": ("a.csv", b"PK\x03\x04rest", "export it as CSV"),
    "json array": ("a.json", '[{"id": 1, "expression": "x = 1"}]', "jq -c"),
    "json array on many lines": ("a.json", '\n[\n{"id": 1},\n{"id": 2}\n]\n', "jq -c"),
    "text named parquet": ("a.parquet", "id,expression\na,x = 1\n", "not Parquet"),
    "half a parquet": ("a.parquet", BYTES[: len(BYTES) // 2], "cut short"),
    "parquet without its end": ("a.parquet", BYTES[:-8], "cut short"),
    "damaged parquet": ("a.parquet", DAMAGED, "damaged"),
    "column twice, csv": ("a.csv", "id,id,expression\na,b,x = 1\n", "occurs 2 times"),
}


@pytest.mark.parametrize("name", BAD_FILES)
@pytest.mark.parametrize("read", [rows_of, events_of], ids=["subscriptions", "events"])
def test_bad_files_are_refused(read: Callable[[Path], Any], name: str, tmp_path: Path) -> None:
    file, content, message = BAD_FILES[name]
    path = write(tmp_path, file, content)
    with pytest.raises(FileFormatError) as caught:
        read(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.tsv", "a.jsonl", "a.jsonl.zst"])
@pytest.mark.parametrize("content", ["", "\n\n"])
def test_a_file_without_a_line_holds_nothing(name: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / name
    data = content.encode()
    path.write_bytes(
        gzip.compress(data)
        if name.endswith(".gz")
        else pa.compress(data, codec="zstd", asbytes=True)
        if name.endswith(".zst")
        else data
    )
    assert rows_of(path) == []
    assert events_of(path) == []
    assert len(mm.match(path, path)) == 0


def test_a_column_twice_in_parquet(tmp_path: Path) -> None:
    table = pa.table([["a"], ["b"], ["x = 1"]], names=["id", "id", "expression"])
    path = write(tmp_path, "a.parquet", table)
    for read in (rows_of, events_of):
        with pytest.raises(FileFormatError, match="'id' occurs 2 times"):
            read(path)


@pytest.mark.parametrize("cut", [10, 1000, -4])
@pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz"])
def test_a_packed_file_cut_short(name: str, cut: int, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(CSV_GZ[:cut])
    for read in (rows_of, events_of):
        with pytest.raises(FileFormatError, match="cut short"):
            read(path)


def test_a_packed_file_that_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_text("id,expression\n")
    with pytest.raises(FileFormatError, match="not compressed by gzip although its name says so"):
        rows_of(path)


@pytest.mark.parametrize("read", [read_subscriptions, read_event_chunks, event_columns])
def test_paths_that_are_no_files(read: Callable[[Path], Any], tmp_path: Path) -> None:
    """Refused at the call, before the first row is asked for."""
    write(tmp_path, "alerts.csv", "id,expression\n")
    with pytest.raises(FileFormatError, match=r"no such file; did you mean 'alerts.csv'\?"):
        read(tmp_path / "Alert.csv")
    with pytest.raises(FileFormatError, match="nor a folder"):
        read(tmp_path / "nowhere" / "alerts.csv")
    with pytest.raises(
        FileFormatError, match=r"is a folder; give a file in it, such as alerts.csv"
    ):
        read(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "id,expression\n")
    path.chmod(0)
    with pytest.raises(FileFormatError, match="Permission denied"):
        rows_of(path)


def test_a_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matchmill.io.event_files as event_files

    for module in (formats, csv_rows, event_files):
        monkeypatch.setattr(module, "MAX_LINE", 1000)
    path = write(tmp_path, "a.jsonl", '{"id": "a", "expression": "' + "x" * 2000)
    for read in (rows_of, events_of):
        with pytest.raises(FileFormatError, match="line feeds in the file"):
            read(path)
    path = write(tmp_path, "a.csv", 'id,expression\na,"x\n' + "b,y\n" * 1000)
    for read in (rows_of, events_of):
        with pytest.raises(FileFormatError, match="line 2: a field in this row is longer"):
            read(path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("ID,expression", 'no column .id.; it has: ID, expression\nhint: .*subscription_id="ID"'),
        ("id,expresion", 'no column .expression.*\n.*with expression="expresion"'),
        ("name,query", 'has: name, query\nhint: name the right one with subscription_id="name"'),
        ("id;expression", "separated by semicolons: use commas"),
        ("id\texpression", "separated by tabs: name it .tsv"),
    ],
)
def test_missing_columns_in_csv(columns: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=message):
        rows_of(write(tmp_path, "a.csv", columns + "\n"))


def test_wrong_columns_in_parquet(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r'no column .id.*\n.*subscription_id="ids"'):
        rows_of(write(tmp_path, "a.parquet", pa.table({"ids": ["a"], "expression": ["x"]})))
    with pytest.raises(FileFormatError, match="type double, but an id is a string or an integer"):
        rows_of(write(tmp_path, "b.parquet", pa.table({"id": [1.0], "expression": ["x"]})))
    with pytest.raises(FileFormatError, match="type int64, but an expression is text"):
        rows_of(write(tmp_path, "c.parquet", pa.table({"id": [1], "expression": [1]})))


# -- subscriptions --------------------------------------------------------------------------------

GOOD = [("a", "x = 1"), ("b", "y in ('p', 'q')"), ("c", "z =\n'line'"), ("ü", "say = '\"hi\"'")]


def subscription_file(folder: Path, name: str, pairs: list[tuple[Any, Any]]) -> Path:
    if ".csv" in name.lower():
        text = io.StringIO()
        csv.writer(text).writerows([("id", "expression"), *pairs])
        return write(folder, name, text.getvalue())
    if ".json" in name or ".ndjson" in name:
        lines = (json.dumps({"id": i, "expression": e}, ensure_ascii=False) for i, e in pairs)
        return write(folder, name, "\n".join(lines))
    ids, expressions = zip(*pairs, strict=True)
    return write(folder, name, pa.table({"id": ids, "expression": expressions}))


@pytest.mark.parametrize(
    "name", ["a.csv", "a.CSV", "a.csv.gz", "a.jsonl", "a.json", "a.ndjson.gz", "a.parquet"]
)
def test_subscriptions_are_read(name: str, tmp_path: Path) -> None:
    rows = rows_of(subscription_file(tmp_path, name, GOOD))
    assert [(row.id, row.expression) for row in rows] == GOOD
    assert all(row.problem is None for row in rows)
    lines = [2, 3, 4, 6] if "csv" in name.lower() else [1, 2, 3, 4]
    assert [row.line for row in rows] == (lines if "parquet" not in name else [None] * 4)


def test_other_columns_and_integer_ids(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "n,who,what\n1,7,x = 1\n2,-8,y = 2\n3,1.5,z\n4,x,z\n")
    options = {"subscription_id": "who", "expression": "what"}
    assert [row.id for row in rows_of(path, **options)] == ["7", "-8", "1.5", "x"]
    rows = rows_of(path, **options, integer_ids=True)
    assert [row.id for row in rows] == [7, -8, "1.5", "x"]
    assert [row.problem for row in rows[:2]] == [None, None]
    assert rows[2].problem == "the id '1.5' is not an integer"


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_ids_keep_their_type(name: str, tmp_path: Path) -> None:
    path = subscription_file(tmp_path, name, [(2**53 + 1, "x = 1"), (-5, "y = 2")])
    assert [row.id for row in rows_of(path)] == [2**53 + 1, -5]


def test_other_types_of_parquet_columns(tmp_path: Path) -> None:
    ids = pa.array(["a", "b"]).dictionary_encode()
    expressions = pa.array(["x", None], pa.large_string())
    rows = rows_of(write(tmp_path, "a.parquet", pa.table({"id": ids, "expression": expressions})))
    assert [(row.id, row.problem) for row in rows] == [
        ("a", None),
        ("b", "the expression is missing"),
    ]
    nulls = pa.table({"id": pa.nulls(1), "expression": pa.array(["x"])})
    assert rows_of(write(tmp_path, "b.parquet", nulls))[0].problem == "the id is missing"


def test_json_patterns_are_kept(tmp_path: Path) -> None:
    pattern = {"origin": ["JFK"], "delay": [{"numeric": [">", 60]}]}
    (row,) = rows_of(subscription_file(tmp_path, "a.jsonl", [("a", pattern)]))
    assert row.expression == pattern


def test_a_header_alone_is_no_error(tmp_path: Path) -> None:
    assert rows_of(write(tmp_path, "a.csv", "id,expression\n")) == []
    empty = pa.table({"id": pa.array([], pa.string()), "expression": pa.array([], pa.string())})
    assert rows_of(write(tmp_path, "a.parquet", empty)) == []


def test_a_byte_order_mark_and_windows_line_ends(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "\ufeffid,expression\r\na,x = 1\r\n\r\nb,y = 2\r\n")
    assert rows_of(path) == [
        SubscriptionRow("a", "x = 1", None, 2),
        SubscriptionRow("b", "y = 2", None, 4),
    ]
    path = write(tmp_path, "a.jsonl", '\ufeff{"id": "a", "expression": "x = 1"}\r\n\r\n')
    assert rows_of(path) == [SubscriptionRow("a", "x = 1", None, 1)]


BAD_CSV_ROWS: dict[str, tuple[bytes, str]] = {
    "too many fields": (b"u,x in (1, 2)", "3 fields instead of 2; a field with commas stands"),
    "too few fields": (b"u", "1 fields instead of 2"),
    "no id": (b",x = 1", "the id is missing"),
    "no expression": (b"u,", "the expression is missing; `true` matches"),
    "only white space": (b"u,  ", "the expression is missing"),
    "not utf-8": (b"u,x = '\xff'", "byte 0xFF is not valid UTF-8"),
    "a surrogate in utf-8": (b"u\xed\xa0\x80,x = 1", "byte 0xED is not valid UTF-8"),
    "text after a quote": (b'u,"odd name" = 1', "text after a closing double quote;"),
    "a quote that the next row closes": (b'u,"x = 1\nv,"y = 2"', "this row goes on to line 4"),
    "a carriage return": (b"u,x\r = 1", "a carriage return without a line feed"),
}


@pytest.mark.parametrize("name", BAD_CSV_ROWS)
def test_a_bad_csv_row_is_set_aside(name: str, tmp_path: Path) -> None:
    text, problem = BAD_CSV_ROWS[name]
    path = write(tmp_path, "a.csv", b"id,expression\na,x = 1\n" + text + b"\nz,y = 2\n")
    first, bad, last = rows_of(path)
    assert first == SubscriptionRow("a", "x = 1", None, 2)
    assert (last.id, last.expression, last.problem) == ("z", "y = 2", None)
    assert bad.line == 3
    assert problem in str(bad.problem)


BAD_JSON_ROWS: dict[str, tuple[bytes, str]] = {
    "no json": (b"{'id': 1}", "not valid JSON: Expecting property name"),
    "cut short": (b'{"id": 1, "expression": "x', "not valid JSON: Unterminated string"),
    "two objects": (b'{"id": 1} {"id": 2}', "Extra data at column 11"),
    "over two lines": (b"{", "each line holds one whole object"),
    "an array": (b'["u", "x = 1"]', "not an array"),
    "a number": (b"5", "not a number"),
    "null": (b"null", "not null"),
    "no id": (b'{"Id": "u", "expression": "x"}', "there is no 'id'; it has: Id, expression; did"),
    "id is null": (b'{"id": null, "expression": "x"}', "'id' is null"),
    "no expression": (b'{"id": "u"}', "there is no 'expression'"),
    "id is an object": (b'{"id": {}, "expression": "x"}', "an id is a string or an integer"),
    "key twice": (b'{"id": "u", "expression": {"a": [1], "a": [2]}}', "'a' is given twice"),
    "nan": (b'{"id": "u", "expression": {"a": [NaN]}}', "NaN is not JSON"),
    "not utf-8": (b'{"id": "\xff", "expression": "x"}', "byte 0xFF is not valid UTF-8"),
    "nul": (b'{"id": "\0", "expression": "x"}', "not valid JSON: Invalid control character"),
    "too deep": (b'{"id": "u", "expression": ' + b"[" * 100_000, "nested too deep"),
    "many digits": (b'{"id": ' + b"1" * 5000 + b"}", "of 5000 digits is beyond 64 bits"),
}


@pytest.mark.parametrize("name", BAD_JSON_ROWS)
def test_a_bad_json_row_is_set_aside(name: str, tmp_path: Path) -> None:
    text, problem = BAD_JSON_ROWS[name]
    good = b'{"id": "a", "expression": "x = 1"}\n'
    first, bad, last = rows_of(write(tmp_path, "a.jsonl", good + text + b"\n" + good))
    assert first == SubscriptionRow("a", "x = 1", None, 1)
    assert last == SubscriptionRow("a", "x = 1", None, 3)
    assert bad.line == 2
    assert problem in str(bad.problem)


def test_a_bad_parquet_row_is_set_aside(tmp_path: Path) -> None:
    def column(values: list[bytes | None]) -> pa.Array:
        raw = pa.array(values, pa.binary())
        return pa.Array.from_buffers(pa.string(), len(raw), raw.buffers(), raw.null_count)

    ids = column([b"a", None, b"c\xff", b"d", b"", b"z"])
    expressions = column([b"x", b"x", b"x", b"\xc3(", b"x", b"y"])
    rows = rows_of(write(tmp_path, "a.parquet", pa.table({"id": ids, "expression": expressions})))
    assert [(i, row.problem) for i, row in enumerate(rows, 1)] == [
        (1, None),
        (2, "the id is missing"),
        (3, "the id is not valid UTF-8: byte 0xFF"),
        (4, "the expression is not valid UTF-8: byte 0xC3"),
        (5, "the id is missing"),
        (6, None),
    ]


def test_long_expressions_and_many_rows(tmp_path: Path) -> None:
    """Beyond the field size at which Python's CSV reader gives up, and beyond one batch."""
    limit = csv.field_size_limit()
    long = "x in (" + ", ".join(map(str, range(100_000))) + ")"
    pairs = [("long", long), *((f"u{i}", "x = 1") for i in range(3000)), ("end", long)]
    for name in ("a.csv", "a.jsonl", "a.parquet"):
        rows = rows_of(subscription_file(tmp_path, name, pairs))
        assert [(row.id, row.expression) for row in rows] == pairs
    assert csv.field_size_limit() == limit


def test_rows_come_as_they_are_read(tmp_path: Path) -> None:
    """What is wrong far below does not keep the rows above from coming."""
    text = "id,expression\n" + "a,x = 1\n" * 5000 + 'b,"open\n'
    rows = read_subscriptions(write(tmp_path, "a.csv", text), subscription_id="id")
    assert next(rows).id == "a"
    with pytest.raises(FileFormatError, match="line 5002"):
        list(rows)


# -- events ---------------------------------------------------------------------------------------


def column_file(folder: Path, cells: list[str]) -> Path:
    """A CSV file with a column x of these cells, and another one."""
    text = io.StringIO()
    csv.writer(text).writerows([("x", "y"), *((cell, "-") for cell in cells)])
    return write(folder, "column.csv", text.getvalue())


def column_of(folder: Path, cells: list[str], **options: Any) -> tuple[str, list[Any]]:
    """The type of a CSV column with these cells, and its values."""
    path = column_file(folder, cells)
    columns = infer_csv_columns(path, **options)
    values = events_of(path, csv_columns=columns)
    return columns.types["x"], [e if isinstance(e, str) else e.get("x") for e in values]


def utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)  # type: ignore[arg-type, misc]


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (["true", "False", "", "TRUE"], "boolean", [True, False, None, True]),
        (["true", "yes"], "text", ["true", "yes"]),
        (["1", "-2", "", "0"], "number", [1, -2, None, 0]),
        (["1", "2.5", "-.5", "5.", "1e3"], "number", [1.0, 2.5, -0.5, 5.0, 1000.0]),
        (["0", "007"], "text", ["0", "007"]),
        (["1", "+2"], "text", ["1", "+2"]),
        (["1", "0x10"], "text", ["1", "0x10"]),
        (["1", "1_000"], "text", ["1", "1_000"]),
        (["1", "NaN"], "text", ["1", "NaN"]),
        (["1", " 2"], "text", ["1", " 2"]),
        (["1", "٣"], "text", ["1", "٣"]),
        (["2013-01-31", "", "0001-01-01"], "date", [dt.date(2013, 1, 31), None, dt.date(1, 1, 1)]),
        (["2013-01-31", "2013-02-30"], "text", ["2013-01-31", "2013-02-30"]),
        (["2013-01-31", "0000-01-01"], "text", ["2013-01-31", "0000-01-01"]),
        (["2013-01-31", "31.1.2013"], "text", ["2013-01-31", "31.1.2013"]),
        (["2013-01-31 10:00"], "timestamp", [utc(2013, 1, 31, 10)]),
        (
            ["2013-01-31T10:00:00.25Z", "2013-01-31 10:00+01:00", "2013-01-31", ""],
            "timestamp",
            [utc(2013, 1, 31, 10, 0, 0, 250_000), utc(2013, 1, 31, 9), utc(2013, 1, 31), None],
        ),
        (["0001-01-01 00:00", "9999-12-31 23:59:59.999999"], "timestamp", [
            utc(1, 1, 1), utc(9999, 12, 31, 23, 59, 59, 999_999)]),
        (["2013-01-31 24:00"], "text", ["2013-01-31 24:00"]),
        (["2013-01-31 10:00 CET"], "text", ["2013-01-31 10:00 CET"]),
        (["10:00", "11:30:00"], "text", ["10:00", "11:30:00"]),
        (["", ""], "null", [None, None]),
        (["a", "", "b,c", 'say "hi"', "two\nlines", " "], "text",
         ["a", None, "b,c", 'say "hi"', "two\nlines", " "]),
    ],
)  # fmt: skip
def test_types_of_csv_columns(
    cells: list[str], kind: str, values: list[Any], tmp_path: Path
) -> None:
    found = column_of(tmp_path, cells)
    assert found == (kind, values)
    assert list(map(type, found[1])) == list(map(type, values))


def test_numbers_in_csv_stay_exact(tmp_path: Path) -> None:
    cells = ["9007199254740993", "0.5", "9223372036854775807", "-9223372036854775808", "1e400"]
    kind, values = column_of(tmp_path, [*cells, "9223372036854775808"])
    assert kind == "number"
    assert values[:4] == [2**53 + 1, 0.5, 2**63 - 1, -(2**63)]
    assert "infinite" in values[4].problem
    assert "beyond 64 bits" in values[5].problem
    _, (value, infinite) = column_of(tmp_path, ["0.5", "1e400"])
    assert value == 0.5
    assert "infinite" in infinite.problem
    _, (value, large) = column_of(tmp_path, ["1", "9" * 5000])
    assert value == 1
    assert "beyond 64 bits" in large.problem


def test_nanoseconds_in_csv(tmp_path: Path) -> None:
    kind, (value,) = column_of(tmp_path, ["2013-01-31 10:00:00.123456789"])
    assert kind == "timestamp"
    assert (value.microsecond, value.nanosecond) == (123456, 789)


@pytest.mark.parametrize(
    ("start", "end", "kind", "values"),
    [
        ("1", "x", "text", ["1", "x"]),
        ("x", "1", "text", ["x", "1"]),
        ("true", "1", "text", ["true", "1"]),
        ("1", "0.5", "number", [1, 0.5]),
        ("", "2", "number", [None, 2]),
        ("2013-01-31", "x", "text", ["2013-01-31", "x"]),
        ("2013-01-31", "2013-01-31 10:00", "timestamp", [utc(2013, 1, 31), utc(2013, 1, 31, 10)]),
        ("2013-01-31 10:00", "2013-01-31", "timestamp", [utc(2013, 1, 31, 10), utc(2013, 1, 31)]),
    ],
)
def test_a_type_holds_for_the_whole_file(
    start: str, end: str, kind: str, values: list[Any], tmp_path: Path
) -> None:
    """The first rows look like something else; more of them than are read at once."""
    path = column_file(tmp_path, [start] * 9000 + [end])
    assert infer_csv_columns(path).types["x"] == kind
    chunks = list(read_event_chunks(path, chunk_rows=1000))
    first, last = chunks[0].events, chunks[-1].events
    found = [first.event(0).get("x"), last.event(last.n_events - 1).get("x")]
    assert found == values
    assert list(map(type, found)) == list(map(type, values))


@pytest.mark.parametrize(
    ("cells", "odd"),
    [
        (["1", "n/a", "2", "", "n/a"], []),  # half of them
        (["1", "n/a", "2", "", "3"], [(3, "n/a", "number", True)]),
        (["n/a", "1", "2", "-", "3"], [(2, "n/a", "number", True), (5, "-", "number", True)]),
        (["1"] * 9000 + ["?", "?", "2"], [(9002, "?", "number", True)]),
        (["?"] + ["1"] * 9000, [(2, "?", "number", True)]),
        (["1"] * 9000 + ["a", "b", "c", "d"], []),  # simply text
        (["true", "no", "false"], [(3, "no", "boolean", True)]),
        (["2013-01-31", "never", "2013-01-31"], [(3, "never", "date", True)]),
        (["1", "2", "3A"], []),  # a code
        (["1", "2", "007"], []),
        (["1"] * 30 + ["007"], []),
        (["1"] * 30 + ["1,000"], [(32, "1,000", "number", False)]),
        (["1", "2"], []),
        (["a", "b", "c"], []),
        ([], []),
    ],
)
def test_odd_cells(cells: list[str], odd: list[Any], tmp_path: Path) -> None:
    found = infer_csv_columns(column_file(tmp_path, cells)).odd
    assert [(one.line, one.text, one.kind, one.is_word) for one in found] == odd
    assert infer_csv_columns(column_file(tmp_path, cells), text_columns=["x"]).odd == ()


def test_odd_cells_of_columns_that_are_asked_for_are_warned_of(tmp_path: Path) -> None:
    path = column_file(tmp_path, ["1", "n/a", "2"])
    message = r"column.csv:3: 'n/a' makes x a text column; most of its cells are numbers"
    with pytest.warns(UserWarning, match=message):
        mm.match({"u1": "x > 1"}, path)
    assert mm.match({"u1": "y > 1"}, path).n_events == 3


def test_words_for_null_and_text_by_choice(tmp_path: Path) -> None:
    assert column_of(tmp_path, ["1", "NA", "?"], null_words=["NA", "?"]) == (
        "number",
        [1, None, None],
    )
    assert column_of(tmp_path, ["1", ""], text_columns=["x"]) == ("text", ["1", None])
    with pytest.raises(FileFormatError, match=r"no column 'X'(?s:.*)with text_columns=.x."):
        column_of(tmp_path, ["1"], text_columns=["X"])


def test_bad_csv_events_are_rejected_in_their_place(tmp_path: Path) -> None:
    lines = [b"1,a", b"2", b"3,\xff", b"4,d", b"", b'5,"e"x', b"6,f,g", b"7,g"]
    path = write(tmp_path, "a.csv", b"n,t\n" + b"\n".join(lines))
    for chunk_rows in (1, 2, 3, 65536):
        found = events_of(path, chunk_rows=chunk_rows)
        assert [e if isinstance(e, dict) else e.partition(";")[0] for e in found] == [
            {"n": 1, "t": "a"},
            "1 fields instead of 2",
            "column 't': byte 0xFF is not valid UTF-8",
            {"n": 4, "t": "d"},
            "text after a closing double quote",
            "3 fields instead of 2",
            {"n": 7, "t": "g"},
        ]
    (chunk,) = read_event_chunks(path)
    assert chunk.lines.tolist() == [2, 3, 4, 5, 7, 8, 9]


def test_names_of_csv_columns(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", ',geo.lat,odd name\n0,1.5,"a"\n')
    assert events_of(path) == [{"geo.lat": 1.5, "odd name": "a"}]  # pandas' index has no name
    assert event_columns(path) == ["", "geo.lat", "odd name"]


def test_a_csv_file_that_changes_between_the_readings(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "x\n1\n")
    columns = infer_csv_columns(path)
    for text in ("x\none\n", "y\n1\n"):
        write(tmp_path, "a.csv", text)
        with pytest.raises(FileFormatError, match="changed while it was read"):
            events_of(path, csv_columns=columns)


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson.gz"])
@pytest.mark.parametrize("chunk_rows", [1, 2, 65536])
def test_json_events(name: str, chunk_rows: int, tmp_path: Path) -> None:
    lines = ['{"a": 1, "geo": {"lat": 0.5}}', "", '{"a": ', '{"tags": ["x", "y"]}', "[1]"]
    path = write(tmp_path, name, "\n".join(lines))
    first, second, third, fourth = events_of(path, chunk_rows=chunk_rows)
    assert first == {"a": 1, "geo.lat": 0.5}
    assert isinstance(second, str)
    assert second.startswith("not valid JSON")
    assert third == {"tags": ["x", "y"]}
    assert isinstance(fourth, str)
    assert fourth == "an event is a JSON object, not an array"
    chunks = list(read_event_chunks(path, chunk_rows=chunk_rows))
    assert [int(line) for chunk in chunks for line in chunk.lines] == [1, 3, 4, 5]
    assert event_columns(path) is None


@pytest.mark.parametrize("chunk_rows", [1, 2, 65536])
def test_parquet_events(chunk_rows: int, tmp_path: Path) -> None:
    table = pa.table({"n": [1, 2**53 + 1, None], "t": ["a", None, "c"], "f": [NAN, 0.5, 1.0]})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, row_group_size=2)
    assert events_of(path, chunk_rows=chunk_rows) == [
        {"n": 1, "t": "a"},
        {"n": 2**53 + 1, "f": 0.5},
        {"t": "c", "f": 1.0},
    ]
    chunks = list(read_event_chunks(path, chunk_rows=chunk_rows))
    assert [chunk.lines for chunk in chunks] == [None] * len(chunks)
    assert event_columns(path) == ["n", "t", "f"]


def test_events_from_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    os.mkfifo(path)
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(path.write_text, '{"a": 1}\n{"a": 2}\n')
        assert events_of(path) == [{"a": 1}, {"a": 2}]
        written.result()
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(FileFormatError, match="not a plain file; events in CSV are read twice"):
        events_of(tmp_path / "a.csv")


def test_files_without_events(tmp_path: Path) -> None:
    assert events_of(write(tmp_path, "a.csv", "x,y\n")) == []
    assert events_of(write(tmp_path, "a.parquet", pa.table({"x": pa.array([], "int64")}))) == []


# -- the names of events --------------------------------------------------------------------------


def ids_of(path: Path, attribute: str) -> Iterator[object]:
    ids = EventIds(attribute)
    for chunk in read_event_chunks(path, chunk_rows=2):
        values, problems = ids.read(chunk.events)
        for i, value in enumerate(values.to_pylist()):
            assert (value is None) == (i in problems)
            yield problems.get(i, value)


def test_names_of_events(tmp_path: Path) -> None:
    def names(*values: object) -> list[object]:
        lines = (json.dumps({"e": {"id": value}}) for value in values)
        return list(ids_of(write(tmp_path, "a.jsonl", "\n".join(lines)), "e.id"))

    assert names("a", "b", "c") == ["a", "b", "c"]
    assert names(1, 2**53 + 1, -3) == [1, 2**53 + 1, -3]
    assert names(2.0, 5) == [2, 5]
    missing = "there is no event id: 'e.id' is missing"
    assert names(None, "a", None) == [missing, "a", missing]
    texts = "the event id 'e.id' differs from those before it, which are texts"
    assert names("a", 1, 2) == ["a", texts, texts]
    whole = "the event id 'e.id' is not a whole number of 64 bits"
    assert names(1, 0.5, 1e300) == [1, whole, whole]
    assert names([1]) == ["an event id is a text or an integer, but 'e.id' is a list"]
    assert names(True)[0] == "an event id is a text or an integer, but 'e.id' is a boolean"


# -- writing --------------------------------------------------------------------------------------

PAIRS = [(0, "a"), (0, 'say "hi", you'), (3, "ü\nb"), (2**53 + 1, "a")]


def pairs_table(pairs: list[tuple[Any, Any]]) -> pa.Table:
    events, subscriptions = zip(*pairs, strict=True)
    return pa.table({"event_id": events, "subscription_id": subscriptions})


def read_pairs(path: Path) -> list[tuple[Any, Any]]:
    if path.suffix == ".parquet":
        rows = pq.read_table(path).to_pylist()
    elif path.suffix == ".csv":
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream, strict=True))
    else:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert all(list(row) == ["event_id", "subscription_id"] for row in rows)
    return [(row["event_id"], row["subscription_id"]) for row in rows]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_matches_are_written(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"matches{suffix}"
    with MatchWriter(path) as writer:
        writer.write(pairs_table(PAIRS[:1]))
        writer.write(pairs_table(PAIRS[:1]).slice(0, 0))
        writer.write(pairs_table(PAIRS[1:]))
    wanted = [(str(e), s) for e, s in PAIRS] if suffix == ".csv" else PAIRS
    assert read_pairs(path) == wanted
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_names_of_events_and_integer_ids_are_written(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"matches{suffix}"
    with MatchWriter(path) as writer:
        writer.write(pairs_table([("x", 1), ("y", 2)]))
    wanted = [("x", "1"), ("y", "2")] if suffix == ".csv" else [("x", 1), ("y", 2)]
    assert read_pairs(path) == wanted


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_no_matches_make_a_file_without_rows(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"matches{suffix}"
    with MatchWriter(path):
        pass
    assert read_pairs(path) == []
    if suffix == ".csv":
        assert path.read_text() == "event_id,subscription_id\n"


def test_row_groups_are_not_tiny(tmp_path: Path) -> None:
    path = tmp_path / "matches.parquet"
    with MatchWriter(path) as writer:
        for i in range(50):
            writer.write(pairs_table([(i, "a")]))
    assert pq.ParquetFile(path).num_row_groups == 1
    assert str(pq.read_schema(path).field("subscription_id").type) == "string"


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_what_was_there(
    suffix: str, error: type[BaseException], tmp_path: Path
) -> None:
    path = write(tmp_path, f"matches{suffix}", "older")

    def fail() -> None:
        with MatchWriter(path) as writer:
            writer.write(pairs_table(PAIRS))
            raise error("half-way")

    with pytest.raises(error, match="half-way"):
        fail()
    assert path.read_text() == "older"
    assert os.listdir(tmp_path) == [path.name]


def test_types_that_change_are_a_failure(tmp_path: Path) -> None:
    def mixed() -> None:
        with MatchWriter(tmp_path / "a.csv") as writer:
            writer.write(pairs_table([(1, "a")]))
            writer.write(pairs_table([("x", "a")]))

    with pytest.raises(FileFormatError, match="types of events or subscriptions changed"):
        mixed()
    assert os.listdir(tmp_path) == []


def test_links_and_permissions_stay(tmp_path: Path) -> None:
    target = write(tmp_path, "target.csv", "older")
    target.chmod(0o640)
    link = tmp_path / "link.csv"
    link.symlink_to(target)
    with MatchWriter(link) as writer:
        writer.write(pairs_table(PAIRS))
    assert link.is_symlink()
    assert len(read_pairs(target)) == len(PAIRS)
    assert target.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("matches.txt", "must end in one of"),
        ("matches.csv.gz", "leave out .gz"),
        ("nowhere/matches.csv", "there is no folder"),
        ("folder.csv", "is a folder"),
    ],
)
def test_places_where_matches_cannot_go(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(FileFormatError, match=message), MatchWriter(tmp_path / name):
        pass
    assert os.listdir(tmp_path) == ["folder.csv"]


def test_matches_go_to_a_device() -> None:
    with MatchWriter(os.devnull, kind="csv") as writer:
        writer.write(pairs_table(PAIRS))
    assert not os.path.isfile(os.devnull)


@pytest.mark.parametrize("hold_back", [False, True])
def test_matches_go_to_standard_output(hold_back: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with MatchWriter("-", hold_back=hold_back) as writer:
        writer.write(pairs_table([(0, "ü")]))
        if hold_back:
            assert capsys.readouterr().out == ""
    assert capsys.readouterr().out == "event_id,subscription_id\n0,ü\n"
    with MatchWriter("-", kind="jsonl", hold_back=hold_back) as writer:
        writer.write(pairs_table([(0, "ü")]))
    assert capsys.readouterr().out == '{"event_id": 0, "subscription_id": "ü"}\n'
    with pytest.raises(FileFormatError, match="does not go to standard output"):
        MatchWriter("-", kind="parquet")


def test_what_was_set_aside_is_written(tmp_path: Path) -> None:
    rows = [
        Rejected("subscription", 2, 4, "a.csv", "u\udcff", 'a "b"\nc'),
        Rejected("event", 7, None, None, None, "ü"),
        Rejected("event", 8, None, None, 5, ""),
    ]
    for name in ("rejected.csv", "rejected.jsonl"):
        with RejectedWriter(tmp_path / name) as writer:
            for row in rows:
                writer.write(row)
    with (tmp_path / "rejected.csv").open(encoding="utf-8", newline="") as stream:
        assert list(csv.reader(stream)) == [
            ["kind", "row", "line", "source", "id", "reason"],
            ["subscription", "2", "4", "a.csv", "u\\udcff", 'a "b"\nc'],
            ["event", "7", "", "", "", "ü"],
            ["event", "8", "", "", "5", ""],
        ]
    lines = (tmp_path / "rejected.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[1]) == rows[1]._asdict()
    with pytest.raises(FileFormatError, match=r"must end in .csv or .jsonl"):
        RejectedWriter(tmp_path / "rejected.parquet")


def test_formats() -> None:
    assert format_of("A.CSV.GZ") == ("csv", "gzip", ",")
    assert format_of("x.ndjson") == ("jsonl", None, ",")
    with pytest.raises(FileFormatError):
        format_of(".csv/alerts")


def test_a_folder_of_events(tmp_path: Path) -> None:
    inner = tmp_path / "days" / "inner"
    inner.mkdir(parents=True)
    write(tmp_path / "days", "a.parquet", pa.table({"x": [1]}))
    write(inner, "b.jsonl", '{"x": 2}\n{"x": 0}\n')
    write(tmp_path, "c.csv", "x\n3\n")
    engine = mm.Engine({"u1": "x > 0"})
    sources = [tmp_path / "days", str(tmp_path / "c.csv")]
    assert list(engine.match_many(tmp_path / "days")) == [{"u1"}, {"u1"}, set()]
    assert list(engine.match_many(sources)) == [{"u1"}, {"u1"}, set(), {"u1"}]
    assert len(mm.read_events(sources)) == 4


def test_parquet_in_memory_is_seen_by_its_first_bytes(tmp_path: Path) -> None:
    path = write(tmp_path, "a.parquet", pa.table({"x": [1, 2]}))
    assert len(mm.read_events(path.read_bytes())) == 2
    assert len(mm.read_events(io.BytesIO(path.read_bytes()))) == 2
