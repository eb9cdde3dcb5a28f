"""Events from a file, some thousands at a time.

JSON lines and Parquet say what type a value has. CSV does not, so the file is read twice: once to
find a type that fits every cell of a column, once for the values. The type is that of the whole
column, in the whole file:

    boolean     true, false (also True, TRUE, …)
    number      -1  0.5  1e6   integers stay exact; `007` is text, since a number has no such zeros
    date        2013-01-31
    timestamp   2013-01-31T10:00[:00[.000000]][Z | +01:00], `T` or a space; without an offset UTC;
                a date among them is its midnight
    text        everything else, and any column that is to be text

An empty cell is null, whether quoted or not; other words for null can be given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from functools import partial
from itertools import islice, repeat
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from matchmill.encoding.events.arrow import TableEvents
from matchmill.encoding.events.columns import EventColumns, Events, Wanted
from matchmill.encoding.events.read import read_events, read_json_lines
from matchmill.errors import EventError, FileFormatError
from matchmill.io.csv_rows import CsvRow, CsvRows
from matchmill.io.formats import (
    MAX_LINE,
    Source,
    check_file,
    encoding_problem,
    missing_column,
    open_bytes,
    plain_words,
)
from matchmill.language.values import EventValue
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = ["CsvColumns", "EventChunk", "event_columns", "infer_csv_columns", "read_event_chunks"]

_CHUNK_BYTES = 32 << 20
_PARQUET_ROWS = 16384

NRows: TypeAlias = Callable[[], int]


class EventChunk(NamedTuple):
    """Some events in a row: the number of the first, counted from 0, and the line of each.

    Lines count from 1; in Parquet they are rows."""

    first: int
    events: Events
    lines: np.ndarray


class CsvColumns(NamedTuple):
    """How to read a CSV file of events: the type of each column, and what stands for null."""

    types: dict[str, str]
    null_words: frozenset[str]


def read_event_chunks(
    path: str | os.PathLike[str],
    *,
    chunk_rows: int | Callable[[], int] = 65536,
    csv_columns: CsvColumns | None = None,
    settings: Settings = DEFAULT_SETTINGS,
) -> Iterator[EventChunk]:
    """The events of a file. A bad one is rejected, with its reason, by its chunk's `columns`.

    `chunk_rows` may be a function, which is asked before every chunk how many events it may hold.
    `csv_columns` is what `infer_csv_columns` returned for this file, if that is known already.
    Raises FileFormatError if the file as a whole is no good.
    """
    source = check_file(path)
    n_rows = chunk_rows if callable(chunk_rows) else repeat(chunk_rows).__next__
    if source.format.kind == "jsonl":
        return _json_chunks(source, n_rows, settings)
    if source.format.kind == "parquet":
        return _parquet_chunks(source, n_rows, settings)
    return _csv_chunks(source, n_rows, csv_columns or infer_csv_columns(path), settings)


def event_columns(path: str | os.PathLike[str]) -> list[str] | None:
    """The names of a file's columns; None for JSON lines, where every event has its own."""
    source = check_file(path)
    if source.format.kind == "jsonl":
        return None
    if source.format.kind == "parquet":
        with plain_words(source.path), pq.ParquetFile(source.path) as file:
            names: list[str] = file.schema_arrow.names
            return names
    with closing(CsvRows(source)) as rows:
        return rows.header


# -- JSON lines and Parquet -----------------------------------------------------------------------


def _json_chunks(source: Source, n_rows: NRows, settings: Settings) -> Iterator[EventChunk]:
    first = n_lines = 0
    with plain_words(source.path), closing(open_bytes(source)) as stream:
        while lines := list(islice(_some_lines(source, stream), n_rows())):
            events = read_json_lines(b"".join(lines), settings)
            if first == 0 and events.n_events:
                _check_no_array(source, lines)
            events.line_numbers = events.line_numbers + n_lines
            if events.n_events:
                yield EventChunk(first, events, events.line_numbers)
            first += events.n_events
            n_lines += len(lines)
    if first == 0:
        raise FileFormatError(f"{source.path} is empty: there is no line but blank ones")


def _some_lines(source: Source, stream: Any) -> Iterator[bytes]:
    n_bytes = 0
    while n_bytes < _CHUNK_BYTES and (line := stream.readline(MAX_LINE)):
        n_bytes += len(line)
        if len(line) == MAX_LINE:
            raise FileFormatError(
                f"{source.path}: a line is longer than {MAX_LINE:,} bytes;"
                " are there line feeds in the file?"
            )
        yield line


def _check_no_array(source: Source, lines: list[bytes]) -> None:
    start = b"".join(lines[:100]).removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"["):
        raise FileFormatError(
            f"{source.path} holds a JSON array; write one object a line, without brackets and"
            f" commas between them: jq -c '.[]' {source.path.name}"
        )


def _parquet_chunks(source: Source, n_rows: NRows, settings: Settings) -> Iterator[EventChunk]:
    first = 0
    with plain_words(source.path), pq.ParquetFile(source.path) as file:
        _check_names(source, file.schema_arrow.names)
        for batch in file.iter_batches(_PARQUET_ROWS):
            start = 0
            while start < batch.num_rows:
                some = batch.slice(start, n_rows())
                lines = np.arange(first + 1, first + some.num_rows + 1)
                yield EventChunk(first, read_events(some, settings), lines)
                start += some.num_rows
                first += some.num_rows


def _check_names(source: Source, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise missing_column(source.path, name, names, "")


# -- CSV: cells -----------------------------------------------------------------------------------


class _Cells(NamedTuple):
    """Rows as columns of texts; a bad row is null throughout."""

    columns: list[pa.Array]
    lines: np.ndarray
    problems: dict[int, str]


def _read_cells(rows: CsvRows, n_rows: NRows, null_words: frozenset[str]) -> Iterator[_Cells]:
    nulls = pa.array(sorted(null_words), pa.large_string())
    every_row = iter(rows)
    while some := list(islice(every_row, n_rows())):
        problems = {i: row.problem for i, row in enumerate(some) if row.problem is not None}
        columns = _transposed(rows.header, some, problems)
        absent = (pc.is_in(column, nulls) for column in columns)
        yield _Cells(
            [
                pc.if_else(is_absent, pa.scalar(None, pa.large_string()), column)
                for is_absent, column in zip(absent, columns, strict=True)
            ],
            np.fromiter((row.line for row in some), np.int64, len(some)),
            problems,
        )


def _transposed(names: list[str], rows: list[CsvRow], problems: dict[int, str]) -> list[pa.Array]:
    blank = [""] * len(names)
    fields = [row.fields if row.problem is None else blank for row in rows]
    try:
        return [pa.array(column, pa.large_string()) for column in zip(*fields, strict=True)]
    except UnicodeEncodeError:
        for i, cells in enumerate(fields):
            for name, cell in zip(names, cells, strict=True):
                if problem := encoding_problem(cell):
                    problems[i] = f"column {name!r}: {problem}"
                    fields[i] = blank
                    break
        return [pa.array(column, pa.large_string()) for column in zip(*fields, strict=True)]


# -- CSV: types -----------------------------------------------------------------------------------

_DIGITS = r"(?:0|[1-9][0-9]*)"
_YEAR = r"(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_DAY = _YEAR + r"-[0-9]{2}-[0-9]{2}"
_TIME = r"[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
_ZONE = r"(?:Z|[+-][0-9]{2}:?[0-9]{2})"
_INTEGER = f"^-?{_DIGITS}$"
_PATTERNS = {
    "boolean": "^(?:true|false|True|False|TRUE|FALSE)$",
    "number": rf"^-?(?:{_DIGITS}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$",
    "date": f"^{_DAY}$",
    "timestamp": f"^{_DAY}(?:{_TIME}{_ZONE}?)?$",
}


def _booleans(texts: pa.Array) -> pa.Array:
    return pc.equal(pc.ascii_lower(texts), "true")


def _numbers(texts: pa.Array) -> pa.Array | list[Any]:
    """Integers, doubles, or Python's own of both where doubles alone would not be exact."""
    is_integer = pc.match_substring_regex(texts, _INTEGER)
    if pc.all(is_integer).as_py() is not False:
        try:
            return pc.cast(texts, pa.int64())
        except pa.ArrowInvalid:  # beyond 64 bits: such an event is rejected, as in JSON
            pass
    is_long = pc.and_(is_integer, pc.greater(pc.utf8_length(texts), 15))
    if not pc.any(is_long).as_py():
        return pc.cast(texts, pa.float64())
    cells = zip(texts.to_pylist(), is_integer.to_pylist(), strict=True)
    return [None if t is None else (int(t[:400]) if whole else float(t)) for t, whole in cells]


def _dates(texts: pa.Array) -> pa.Array:
    return pc.cast(texts, pa.date32())


def _timestamps(texts: pa.Array) -> pa.Array:
    """Arrow wants a time and an offset in every value, or in none."""
    texts = pc.replace_substring_regex(texts, f"^({_DAY})$", r"\1T00:00")
    texts = pc.replace_substring_regex(texts, f"({_TIME})$", r"\1Z")
    is_fine = pc.any(pc.match_substring_regex(texts, r"\.[0-9]{7}")).as_py()
    return pc.cast(texts, pa.timestamp("ns" if is_fine else "us", "UTC"))


_CONVERT: dict[str, Callable[[pa.Array], pa.Array | list[Any]]] = {
    "boolean": _booleans,
    "number": _numbers,
    "date": _dates,
    "timestamp": _timestamps,
}


def _fits(texts: pa.Array, kind: str) -> bool:
    if pc.all(pc.match_substring_regex(texts, _PATTERNS[kind])).as_py() is False:
        return False
    try:
        _CONVERT[kind](texts)
    except pa.ArrowInvalid:  # 2013-02-30
        return False
    return True


def _joint_type(kind: str, texts: pa.Array) -> str:
    """The type of cells so far of one type (null: of none) and of these."""
    if kind == "text" or texts.null_count == len(texts):
        return kind
    # No text fits two types, but that dates are timestamps as well.
    possible = {"null": tuple(_PATTERNS), "date": ("date", "timestamp")}.get(kind, (kind,))
    return next((other for other in possible if _fits(texts, other)), "text")


def infer_csv_columns(
    path: str | os.PathLike[str],
    *,
    null_words: Collection[str] = (),
    text_columns: Collection[str] = (),
) -> CsvColumns:
    """The types of a CSV file's columns. `null_words` mean null, as an empty cell does."""
    source = check_file(path)
    if not source.path.is_file():
        raise FileFormatError(
            f"{path} is not a plain file; events in CSV are read twice, once for their types"
        )
    words = frozenset(null_words) | {""}
    with closing(CsvRows(source)) as rows:
        names = rows.header
        _check_names(source, names)
        for name in text_columns:
            if name not in names:
                raise missing_column(source.path, name, names, "text_columns")
        types = {name: "text" if name in text_columns else "null" for name in names}
        for cells in _read_cells(rows, repeat(8192).__next__, words):
            for name, texts in zip(names, cells.columns, strict=True):
                types[name] = _joint_type(types[name], texts)
    return CsvColumns(types, words)


# -- CSV: events ----------------------------------------------------------------------------------


class _CsvEvents(Events):
    """A table, some rows of which could not be read."""

    def __init__(self, table: TableEvents, problems: dict[int, str]) -> None:
        self._table = table
        self._problems = problems
        self.n_events = table.n_events

    def columns(self, wanted: Wanted = None) -> EventColumns:
        found = self._table.columns(wanted)
        return found._replace(rejected=dict(sorted({**found.rejected, **self._problems}.items())))

    def event(self, i: int) -> dict[str, EventValue]:
        self._check_index(i)
        if i in self._problems:
            raise EventError(self._problems[i])
        return self._table.event(i)


def _csv_chunks(
    source: Source, n_rows: NRows, how: CsvColumns, settings: Settings
) -> Iterator[EventChunk]:
    first = 0
    with closing(CsvRows(source)) as rows:
        names = rows.header
        if names != list(how.types):
            raise FileFormatError(f"{source.path} changed while it was read")
        for cells in _read_cells(rows, n_rows, how.null_words):
            columns = _typed_columns(source, cells, how.types)
            table = TableEvents(columns, len(cells.lines), settings)
            yield EventChunk(first, _CsvEvents(table, cells.problems), cells.lines)
            first += len(cells.lines)


def _typed_columns(
    source: Source, cells: _Cells, types: Mapping[str, str]
) -> list[tuple[str, pa.Array | list[Any]]]:
    columns: list[tuple[str, pa.Array | list[Any]]] = []
    for (name, kind), texts in zip(types.items(), cells.columns, strict=True):
        if name == "" or kind == "null":  # no expression can ask for a nameless attribute
            continue
        convert = _CONVERT.get(kind, partial(pc.cast, target_type=pa.large_string()))
        try:
            columns.append((name, convert(texts)))
        except pa.ArrowInvalid:
            raise FileFormatError(f"{source.path} changed while it was read") from None
    return columns
