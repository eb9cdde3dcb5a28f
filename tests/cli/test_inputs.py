"""Where files come from: standard input, patterns, folders, tabs, compression, nothing at all."""

from __future__ import annotations

import gzip
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

Run = Callable[..., Any]

TABS = "price\torigin\n580\tJFK\n900\tJFK, 2\n"
LINES = '{"price": 580, "origin": "JFK"}\n{"price": 900, "origin": "JFK, 2"}\n'
COMMAS = 'price,origin\n580,JFK\n900,"JFK, 2"\n'
HEAD = "event_id,subscription_id"
PAIRS = [HEAD, "0,u1", "0,u4", "0,u5", "1,u4"]


def zstd(text: str) -> bytes:
    return bytes(pa.compress(text.encode(), codec="zstd", asbytes=True))


CONTENTS = {
    "a.tsv": TABS.encode(),
    "a.tsv.gz": gzip.compress(TABS.encode()),
    "a.csv.zst": zstd(COMMAS),
    "a.jsonl.zst": zstd(LINES),
    "a.csv.gz": gzip.compress(COMMAS.encode()),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_tabs_and_compression(name: str, run: Run) -> None:
    Path(name).write_bytes(CONTENTS[name])
    assert run("match", "subs.csv", name, "--quiet").out.split() == PAIRS


PIPED = CONTENTS | {
    "tabs": TABS.encode(),
    "commas": COMMAS.encode(),
    "lines": LINES.encode(),
    "byte order mark": b"\xef\xbb\xbf" + TABS.encode(),
}


@pytest.mark.parametrize("name", PIPED)
def test_standard_input_says_what_it_is(
    name: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PIPED[name])))
    assert run("match", "subs.csv", "-", "--quiet").out.split() == PAIRS


def test_subscriptions_with_tabs(run: Run) -> None:
    Path("subs.tsv").write_text("subscription_id\texpression\nu1\torigin in ('JFK', 'EWR')\n")
    assert run("match", "subs.tsv", "events.csv", "--quiet").out.split() == [HEAD, "0,u1", "2,u1"]
    os.rename("subs.tsv", "tabs.csv")
    assert "separated by tabs: name it .tsv" in run("match", "tabs.csv", "events.csv").err


@pytest.mark.parametrize("name", ["none.csv", "none.tsv", "none.jsonl", "-"])
def test_nothing_is_no_error(name: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    if name != "-":
        Path(name).write_text("")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    result = run("match", "subs.csv", name, "--event-id", "flight")
    assert (result.code, result.out) == (0, HEAD + "\n")
    assert "events: 0 read, 0 rejected" in result.err
    assert "columns:" not in result.err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    result = run("match", name, "events.csv")
    assert (result.code, result.out) == (0, HEAD + "\n")
    assert "subscriptions: 0 accepted, 0 rejected" in result.err


def test_a_folder_of_files(run: Run) -> None:
    folder = Path("days/inner")
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"price": [1, 2]}), "days/part-0.parquet")
    pq.write_table(pa.table({"price": [3]}), folder / "part-1.parquet")
    Path("days/_SUCCESS").write_text("")
    Path("days/.part-0.parquet.crc").write_bytes(b"x")
    Path("days/notes.txt").write_text("not data")
    result = run("match", "subs.csv", "days", "--quiet")
    assert result.out.split() == [HEAD, "0,u1", "0,u4", "1,u1", "1,u4", "2,u1", "2,u4"]
    assert run("match", "subs.csv", "day?", "--quiet").out == result.out
    Path("all").mkdir()
    os.rename("subs.csv", "all/subs.csv")
    assert run("match", "all", "days", "--quiet").out == result.out
    assert run("check", "all").out.startswith("5 accepted, 0 rejected\n")


def test_folders_that_are_none(run: Run) -> None:
    Path("parts/day=2013-01-31").mkdir(parents=True)
    pq.write_table(pa.table({"price": [1]}), "parts/day=2013-01-31/part-0.parquet")
    Path("nothing").mkdir()
    assert "day=2013-01-31 holds values of a column" in run("match", "subs.csv", "parts").err
    assert "a folder without data" in run("match", "subs.csv", "nothing").err
    assert (
        "holds no saved engine: there is no manifest.json"
        in run("match", "nothing", "events.csv").err
    )


@pytest.mark.parametrize("name", ["m.csv.gz", "m.jsonl.zst", "m.tsv"])
def test_what_is_written_is_plain(name: str, run: Run) -> None:
    result = run("match", "subs.csv", "events.csv", "--out", name)
    assert (result.code, Path(name).exists()) == (2, False)
    assert "leave out" in result.err
    assert "leave out" in run("match", "subs.csv", "events.csv", "--rejected", name).err


def test_a_declared_type_of_no_column_is_heard(run: Run) -> None:
    result = run("match", "subs.csv", "events.csv", "--type", "prices=number")
    assert "--type prices=number: no file has such a column; did you mean 'price'?" in result.err
    Path("a.jsonl").write_text(LINES)
    for name, option in (("events.csv", "price=number"), ("a.jsonl", "prices=number")):
        assert "no file has" not in run("match", "subs.csv", name, "--type", option).err
