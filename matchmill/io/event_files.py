"""Events from a file, some thousands at a time.

JSON lines and Parquet say what type a value has. CSV does not, so it is read twice: once to find
the type of each column (`csv_types.py`), once for the values.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from itertools import islice, repeat
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from matchmill.encoding.events.arrow import TableEvents
from matchmill.encoding.events.columns import EventColumns, Events, Wanted
from matchmill.encoding.events.read import read_events, read_json_lines
from matchmill.encoding.events.typed import typed_events
from matchmill.errors import EventError, FileFormatError, warn_caller
from matchmill.io.csv_rows import CsvRow, CsvRows
from matchmill.io.csv_types import CsvColumns, TypeOfColumn, typed
from matchmill.io.formats import (
    MAX_LINE,
    Source,
    check_file,
    encoding_problem,
    missing_column,
    open_bytes,
    parquet_input,
    plain_words,
)
from matchmill.language.attribute_types import AttributeTypes
from matchmill.language.values import EventValue
from matchmill.settings import DEFAULT_SETTINGS, Settings

__all__ = ["EventChunk", "event_columns", "infer_csv_columns", "read_event_chunks"]

_CHUNK_BYTES = 32 << 20
_PARQUET_ROWS = 16384

NRows: TypeAlias = Callable[[], int]


class EventChunk(NamedTuple):
    """Some consecutive events of a source."""

    first: int  # the position of the first one, from 0
    events: Events
    lines: np.ndarray | None = None  # of a text file, from 1
    source: str | None = None  # the path of a file


def read_event_chunks(
    path: str | os.PathLike[str] | Source,
    *,
    chunk_rows: int | Callable[[], int] = 65536,
    csv_columns: CsvColumns | None = None,
    types: AttributeTypes | None = None,
    null_values: Collection[str] = (),
    settings: Settings = DEFAULT_SETTINGS,
) -> Iterator[EventChunk]:
    """Read the events of a file; `columns` of a chunk rejects bad ones, each with its reason.

    `chunk_rows` may be a function, which is called before every chunk and returns how many events
    it may hold. `csv_columns` is what `infer_csv_columns` returned for this file, if that is known
    already; `types` are those that attributes are declared to have. Raises FileFormatError if the
    file as a whole cannot be read.
    """
    source = check_file(path)
    n_rows = chunk_rows if callable(chunk_rows) else repeat(chunk_rows).__next__
    declared = types or {}
    if source.format.kind == "jsonl":
        chunks = _json_chunks(source, n_rows, settings)
    elif source.format.kind == "parquet":
        chunks = _parquet_chunks(source, n_rows, settings)
    else:
        odd: dict[str, str] = {}
        if csv_columns is None:
            csv_columns = infer_csv_columns(
                source, null_words=null_values, text_columns=_declared_columns(source, declared)
            )
            odd = {
                cell.column: f"{source.path}:{cell.line}: {cell}" for cell in csv_columns.odd[::-1]
            }
        chunks = _csv_chunks(source, n_rows, csv_columns, settings, odd)
    if not declared:
        return chunks
    return (
        chunk._replace(events=typed_events(chunk.events, declared, settings)) for chunk in chunks
    )


def _declared_columns(source: Source, declared: AttributeTypes) -> list[str]:
    """Return the columns of a file that have declared types, and so are read as text first."""
    if not declared or (source.data is None and not source.path.is_file()):
        return []
    return [name for name in event_columns(source) or () if name in declared]


def event_columns(path: str | os.PathLike[str] | Source) -> list[str] | None:
    """Return the names of a file's columns; None for JSON lines, and for a file without a line."""
    source = check_file(path)
    if source.format.kind == "jsonl":
        return None
    if source.format.kind == "parquet":
        with plain_words(source.path), pq.ParquetFile(parquet_input(source)) as file:
            names: list[str] = file.schema_arrow.names
            return names
    with closing(CsvRows(source)) as rows:
        return rows.header or None


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
                yield EventChunk(first, events, events.line_numbers, source.name)
            first += events.n_events
            n_lines += len(lines)


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
            f"{source.path} holds a JSON array; write one object per line, without brackets and"
            f" commas between them: jq -c '.[]' {source.path.name}"
        )


def _parquet_chunks(source: Source, n_rows: NRows, settings: Settings) -> Iterator[EventChunk]:
    first = 0
    with plain_words(source.path), pq.ParquetFile(parquet_input(source)) as file:
        _check_names(source, file.schema_arrow.names)
        for batch in file.iter_batches(_PARQUET_ROWS):
            start = 0
            while start < batch.num_rows:
                some = batch.slice(start, n_rows())
                yield EventChunk(first, read_events(some, settings), None, source.name)
                start += some.num_rows
                first += some.num_rows


def _check_names(source: Source, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise missing_column(source.path, name, names, "")


# -- CSV ------------------------------------------------------------------------------------------


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


def infer_csv_columns(
    path: str | os.PathLike[str] | Source,
    *,
    null_words: Collection[str] = (),
    text_columns: Collection[str] = (),
) -> CsvColumns:
    """Find the types of a CSV file's columns. `null_words` mean null, as an empty cell does."""
    source = check_file(path)
    if source.data is None and not source.path.is_file():
        raise FileFormatError(
            f"{path} is not a plain file; events in CSV are read twice, once for their types"
        )
    words = frozenset(null_words) | {""}
    with closing(CsvRows(source)) as rows:
        names = rows.header
        _check_names(source, names)
        for name in text_columns:
            if names and name not in names:
                raise missing_column(source.path, name, names, "text_columns")
        columns = [TypeOfColumn(name, "text" if name in text_columns else "null") for name in names]
        for cells in _read_cells(rows, repeat(8192).__next__, words):
            for column, texts in zip(columns, cells.columns, strict=True):
                column.add(texts, cells.lines)
    types = {column.name: column.kind for column in columns}
    odd = tuple(cell for column in columns for cell in column.odd_cells())
    return CsvColumns(types, words, odd)


class _CsvEvents(Events):
    """A table, some rows of which could not be read."""

    def __init__(
        self,
        table: TableEvents,
        problems: dict[int, str],
        names: list[str],
        odd: dict[str, str],  # column → why it is text, to warn of
    ) -> None:
        self._table = table
        self._problems = problems
        self._names = names
        self._odd = odd
        self.n_events = table.n_events

    def columns(self, wanted: Wanted = None) -> EventColumns:
        for name, message in self._odd.items():
            if wanted is not None and wanted(name):
                warn_caller(message)
        found = self._table.columns(wanted)
        return found._replace(rejected=dict(sorted({**found.rejected, **self._problems}.items())))

    def column_names(self) -> list[str]:
        return self._names  # also of columns without any value

    def event(self, i: int) -> dict[str, EventValue]:
        self._check_index(i)
        if i in self._problems:
            raise EventError(self._problems[i])
        return self._table.event(i)


def _csv_chunks(
    source: Source, n_rows: NRows, how: CsvColumns, settings: Settings, odd: dict[str, str]
) -> Iterator[EventChunk]:
    first = 0
    with closing(CsvRows(source)) as rows:
        names = rows.header
        if names != list(how.types):
            raise FileFormatError(f"{source.path} changed while it was read")
        for cells in _read_cells(rows, n_rows, how.null_words):
            columns = _typed_columns(source, cells, how.types)
            table = TableEvents(columns, len(cells.lines), settings)
            events = _CsvEvents(table, cells.problems, names, odd)
            yield EventChunk(first, events, cells.lines, source.name)
            first += len(cells.lines)


def _typed_columns(
    source: Source, cells: _Cells, types: Mapping[str, str]
) -> list[tuple[str, pa.Array | list[Any]]]:
    columns: list[tuple[str, pa.Array | list[Any]]] = []
    for (name, kind), texts in zip(types.items(), cells.columns, strict=True):
        if name == "" or kind == "null":  # no expression can ask for a nameless attribute
            continue
        try:
            columns.append((name, typed(texts, kind)))
        except pa.ArrowInvalid:
            raise FileFormatError(f"{source.path} changed while it was read") from None
    return columns
