"""Writing matches and rejected items. A file appears whole or not at all.

Rows go to a temporary file next to the target, which gets the name of the target at the end.
After a failure the temporary file is gone, and a file that was there before is unchanged.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, cast
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from matchmill.errors import FileFormatError
from matchmill.io.formats import Kind, format_of, plain_words
from matchmill.io.reports import Rejected

__all__ = ["STDOUT", "MatchWriter", "RejectedWriter", "replacing"]

STDOUT = "-"
_PAIRS = ("event_id", "subscription_id")
_LISTS = ("event_id", "subscription_ids")
_ROW_GROUP = 1 << 20


@contextmanager
def replacing(path: str | os.PathLike[str], *, hold_back: bool = False) -> Iterator[IO[bytes]]:
    """Provide a stream whose bytes become the file at the end.

    `-` is standard output, which gets them immediately, or at the end with `hold_back`.
    """
    if os.fspath(path) == STDOUT:
        with tempfile.TemporaryFile() if hold_back else nullcontext(sys.stdout.buffer) as stream:
            sys.stdout.flush()
            yield stream
            if hold_back:
                stream.seek(0)
                shutil.copyfileobj(stream, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        return
    with plain_words(Path(path)):
        target = Path(os.path.realpath(path))  # a link stays a link
        if target.is_dir():
            raise FileFormatError(f"{path} is a folder; give the name of a file")
        if not target.parent.is_dir():
            raise FileFormatError(f"{path}: there is no folder {target.parent}")
        is_special = target.exists() and not target.is_file()  # a pipe, a device
        temporary = target.with_name(f".{target.name}-{uuid4().hex[:12]}.part")
        stream = target.open("wb") if is_special else temporary.open("xb")
    try:
        with stream:
            yield stream
        if not is_special:
            with plain_words(Path(path)):
                if target.exists():
                    temporary.chmod(target.stat().st_mode & 0o7777)
                temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def _check_plain(path: str | os.PathLike[str]) -> None:
    """Raise for the name of a file that can be read, but is not written."""
    for suffix in (".gz", ".zst", ".tsv"):
        if os.fspath(path).lower().endswith(suffix):
            what = "separated by commas" if suffix == ".tsv" else "not compressed"
            raise FileFormatError(f"{path}: what is written is {what}; leave out {suffix}")


class MatchWriter:
    """Writes matches as CSV, JSON lines or Parquet, by suffix or `kind`.

    with MatchWriter("matches.parquet") as writer:
        writer.write(engine.match_many(events).to_arrow())

    With `per_event` a row is an event with the list of its subscriptions (in CSV a JSON array);
    else a row is a match, with further `columns` of the tables. The first table decides the types.
    Standard output (`-`) is CSV unless `kind` says otherwise; with `hold_back` it gets nothing
    until everything has been written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        kind: Kind | None = None,
        hold_back: bool = False,
        per_event: bool = False,
        columns: Sequence[str] = (),
    ) -> None:
        self._path = path
        self._columns = _LISTS if per_event else (*_PAIRS, *columns)
        if kind is None:
            kind = "csv" if os.fspath(path) == STDOUT else format_of(path).kind
        _check_plain(path)
        if kind == "parquet" and os.fspath(path) == STDOUT:
            raise FileFormatError("Parquet does not go to standard output; name a file")
        self._kind = kind
        self._hold_back = hold_back
        self._stack = ExitStack()
        self._schema: pa.Schema | None = None
        self._parquet: pq.ParquetWriter | None = None
        self._pending: list[pa.Table] = []  # pairs of the next row group

    def __enter__(self) -> MatchWriter:
        self._stream = self._stack.enter_context(replacing(self._path, hold_back=self._hold_back))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self._schema is None and error is None:
                none = pa.table({name: pa.array([], pa.int64()) for name in self._columns})
                self._start(self._typed_schema(none.schema))
            if self._parquet is not None:
                if error is None:
                    self._write_pending()
                self._parquet.close()
        except BaseException:
            self._stack.__exit__(*sys.exc_info())
            raise
        self._stack.__exit__(kind, error, traceback)

    def write(self, pairs: pa.Table) -> None:
        """Add a table that `Matches.to_arrow` returned."""
        pairs = pairs.select(list(self._columns))
        if self._schema is None:
            self._start(self._typed_schema(pairs.schema))
        assert self._schema is not None
        try:
            pairs = pairs.cast(self._schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise FileFormatError(
                f"{self._path}: the types of events or subscriptions changed: {error}"
            ) from error
        if self._parquet is not None:
            self._pending.append(pairs)
            if sum(map(len, self._pending)) >= _ROW_GROUP:
                self._write_pending()
        elif self._kind == "csv":
            _write_csv(pairs, self._stream)
        else:
            _write_json_lines(pairs, self._stream)

    def _typed_schema(self, schema: pa.Schema) -> pa.Schema:
        return pa.schema([pa.field(f.name, _plain_type(f.type)) for f in schema])

    def _write_pending(self) -> None:
        if self._pending and self._parquet is not None:
            self._parquet.write_table(pa.concat_tables(self._pending))
            self._pending = []

    def _start(self, schema: pa.Schema) -> None:
        self._schema = schema
        if self._kind == "parquet":
            self._parquet = pq.ParquetWriter(
                self._stream, schema, compression="zstd", store_schema=False
            )
        elif self._kind == "csv":
            self._stream.write(",".join(self._columns).encode() + b"\n")


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.large_list(_plain_type(kind.value_type))
    return pa.int64() if pa.types.is_integer(kind) else pa.large_string()


def _write_csv(pairs: pa.Table, stream: IO[bytes]) -> None:
    pairs = pa.table(
        {
            name: _json_texts(column) if pa.types.is_large_list(column.type) else column
            for name, column in zip(pairs.column_names, pairs.columns, strict=True)
        }
    )
    # Arrow quotes every text, or none and then refuses those that need it.
    special = (
        pc.any(pc.match_substring_regex(column, '[",\r\n]')).as_py()
        for column in pairs.columns
        if pa.types.is_large_string(column.type)
    )
    options = arrow_csv.WriteOptions(
        include_header=False, quoting_style="needed" if any(special) else "none"
    )
    buffer = pa.BufferOutputStream()
    arrow_csv.write_csv(pairs, buffer, options)
    stream.write(buffer.getvalue())


def _write_json_lines(pairs: pa.Table, stream: IO[bytes]) -> None:
    pieces: list[Any] = []
    for name, column in zip(pairs.column_names, pairs.columns, strict=True):
        begin = ", " if pieces else "{"
        pieces.append(pa.scalar(f'{begin}"{name}": ', pa.large_string()))
        pieces.append(_json_texts(column))
    lines = pc.binary_join_element_wise(
        *pieces,
        pa.scalar("}\n", pa.large_string()),
        pa.scalar("", pa.large_string()),
    )
    for chunk in lines.chunks:
        stream.write("".join(chunk.to_pylist()).encode())


def _json_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_integer(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_large_list(column.type):
        texts = [json.dumps(ids, ensure_ascii=False) for ids in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.large_string())])
    encoded = column.combine_chunks().dictionary_encode()
    texts = [json.dumps(text, ensure_ascii=False) for text in encoded.dictionary.to_pylist()]
    written = pa.array(texts, pa.large_string()).take(encoded.indices)
    return pa.chunked_array([written.fill_null("null")])


class RejectedWriter:
    """Writes what was rejected, with its reason, as CSV or JSON lines by suffix."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self._kind = "csv" if os.fspath(path) == STDOUT else format_of(path).kind
        if self._kind == "parquet":
            raise FileFormatError(f"{path}: the name must end in .csv or .jsonl")
        _check_plain(path)
        self._stack = ExitStack()

    def __enter__(self) -> RejectedWriter:
        stream = cast(Any, self._stack.enter_context(replacing(self._path)))
        self._text = io.TextIOWrapper(
            stream, "utf-8", errors="backslashreplace", newline="", write_through=True
        )
        self._csv = csv.writer(self._text, lineterminator="\n")
        if self._kind == "csv":
            self._csv.writerow(Rejected._fields)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._text.detach()  # flushes; the stream is closed by its owner
        self._stack.__exit__(kind, error, traceback)

    def write(self, rejected: Rejected) -> None:
        """Add one record."""
        if self._kind == "csv":
            self._csv.writerow("" if value is None else value for value in rejected)
            return
        line = rejected._replace(id=_json_id(rejected.id))._asdict()
        self._text.write(json.dumps(line, ensure_ascii=False) + "\n")


def _json_id(identifier: object) -> object:
    return identifier if isinstance(identifier, (str, int, type(None))) else str(identifier)
