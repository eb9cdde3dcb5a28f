"""Subscriptions from a file, one at a time; a row that cannot be read carries its problem."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import repeat
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from matchmill.errors import FileFormatError, did_you_mean
from matchmill.io.csv_rows import CsvRows
from matchmill.io.formats import (
    Source,
    check_file,
    encoding_problem,
    missing_column,
    parquet_input,
    plain_words,
    text_lines,
)
from matchmill.language.strict_json import JsonError, decode_json

__all__ = [
    "SubscriptionRow",
    "batch_rows",
    "checked_row",
    "read_json_line",
    "read_subscription_batches",
    "read_subscriptions",
]

_ROWS_AT_ONCE = 1 << 14
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)


class SubscriptionRow(NamedTuple):
    """One row: either what it says, or why it cannot be read; and its line in a text file."""

    id: object
    expression: object
    problem: str | None = None
    line: int | None = None  # from 1


def read_subscriptions(
    path: str | os.PathLike[str] | Source,
    *,
    subscription_id: str = "subscription_id",
    expression: str = "expression",
    integer_ids: bool = False,
    options: tuple[str, str] = ("subscription_id", "expression"),
    ignored_columns: list[str] | None = None,
) -> Iterator[SubscriptionRow]:
    """Read the rows of a file, with their lines if it is text.

    In CSV, ids are strings; with `integer_ids` they are integers. In JSON lines an expression is
    text or a JSON pattern (an object). `options` are how the caller's user names the columns, for
    messages. Columns that are not used are added to `ignored_columns`. Raises FileFormatError if
    the file as a whole cannot be read.
    """
    source = check_file(path)
    wanted = _Wanted((subscription_id, expression), options, ignored_columns)
    if source.format.kind == "csv":
        return _from_csv(source, wanted, integer_ids)
    if source.format.kind == "jsonl":
        return _from_json_lines(source, wanted)
    batches = _from_parquet(source, wanted)
    return itertools.chain.from_iterable(batch_rows(batch, wanted.names) for batch in batches)


def read_subscription_batches(
    source: Source, *, subscription_id: str, expression: str, ignored_columns: list[str]
) -> Iterator[pa.RecordBatch]:
    """Read the two columns of a Parquet file, as `read_subscriptions` reads its rows."""
    names = (subscription_id, expression)
    return _from_parquet(source, _Wanted(names, ("subscription_id", "expression"), ignored_columns))


class _Wanted(NamedTuple):
    """The columns of id and expression, and what the caller calls them."""

    names: tuple[str, str]
    options: tuple[str, str]
    ignored: list[str] | None

    def check(self, source: Source, columns: list[str], advice: str = "") -> None:
        """Raise FileFormatError unless both columns are there, once; note the others."""
        for name, option in zip(self.names, self.options, strict=True):
            if columns.count(name) != 1:
                raise missing_column(source.path, name, columns, option, advice, self.names)
        self.ignore(columns)

    def ignore(self, columns: Iterable[str]) -> None:
        if self.ignored is not None:
            known = {*self.names, *self.ignored}
            self.ignored.extend(name for name in columns if name not in known)


# -- CSV ------------------------------------------------------------------------------------------


def _from_csv(source: Source, wanted: _Wanted, integer_ids: bool) -> Iterator[SubscriptionRow]:
    with closing(CsvRows(source)) as rows:
        if not rows.header:
            return
        wanted.check(source, rows.header, _csv_advice(rows.header))
        id_place, expression_place = map(rows.header.index, wanted.names)
        for line, fields, problem in rows:
            if problem is not None:
                # An id in a row that is too long or too short may still be the right one.
                identifier = (fields[id_place] or None) if len(fields) > id_place else None
                yield SubscriptionRow(identifier, None, problem, line)
                continue
            identifier, expression = fields[id_place], fields[expression_place]
            yield _checked_csv(line, identifier, expression, integer_ids)


def _csv_advice(header: list[str]) -> str:
    if len(header) == 1:
        for separator, word in ((";", "semicolons"), ("|", "bars")):
            if separator in header[0]:
                return f" (it seems to be separated by {word}: use commas)"
        if "\t" in header[0]:
            return " (it seems to be separated by tabs: name it .tsv)"
    return ""


def _checked_csv(line: int, identifier: str, expression: str, integer_ids: bool) -> SubscriptionRow:
    problem = None
    value: str | int = identifier
    if not identifier:
        return SubscriptionRow(None, expression, "the id is missing", line)
    if not expression.strip():
        problem = "the expression is missing; `true` matches every event"
    elif not (identifier.isascii() and expression.isascii()):
        problem = encoding_problem(identifier + expression)
    if problem is None and integer_ids:
        if _INTEGER.fullmatch(identifier):
            value = int(identifier)
        else:
            problem = f"the id {identifier[:40]!r} is not an integer"
    return SubscriptionRow(value, expression, problem, line)


# -- JSON lines -----------------------------------------------------------------------------------


def _from_json_lines(source: Source, wanted: _Wanted) -> Iterator[SubscriptionRow]:
    is_first = True
    for number, line in enumerate(text_lines(source), 1):
        if not line.isspace():
            if is_first and line.lstrip()[0] == "[":
                raise FileFormatError(
                    f"{source.path} holds a JSON array; write one object per line, without brackets"
                    f" and commas between them: jq -c '.[]' {source.path.name}"
                )
            is_first = False
            yield read_json_line(number, line, wanted.names, wanted.ignore)


def read_json_line(
    number: int,
    line: str,
    names: tuple[str, str],
    ignore: Callable[[Iterable[str]], None] | None = None,
) -> SubscriptionRow:
    """Read one line of JSON lines; `ignore` gets the keys of its object."""
    problem = encoding_problem(line)
    if problem:
        return SubscriptionRow(None, None, problem, number)
    try:
        row = decode_json(line.rstrip("\r\n"))
    except JsonError as error:
        hint = "; each line holds one whole object" if line.strip() in ("{", "}") else ""
        problem = f"{error}{hint}"
    else:
        if ignore is not None and isinstance(row, dict):
            ignore(row)
        return _checked_object(number, row, names)
    return SubscriptionRow(None, None, problem, number)


def _checked_object(number: int, row: object, names: tuple[str, str]) -> SubscriptionRow:
    if not isinstance(row, dict):
        kind = {list: "an array", str: "a text", type(None): "null"}.get(type(row), "a number")
        problem = f"each line is an object with {names[0]!r} and {names[1]!r}, not {kind}"
        return SubscriptionRow(None, None, problem, number)
    identifier, expression = (row.get(name) for name in names)
    if identifier is None or expression is None:
        name = names[0] if identifier is None else names[1]
        has = ", ".join(list(row)[:20])
        hint = "" if name in row else f"; it has: {has}{did_you_mean(name, row)}"
        problem = f"there is no {name!r}{hint}" if name not in row else f"{name!r} is null"
        return SubscriptionRow(identifier, expression, problem, number)
    if isinstance(identifier, (dict, list)):
        return SubscriptionRow(None, expression, "an id is a string or an integer", number)
    return SubscriptionRow(identifier, expression, None, number)


# -- Parquet --------------------------------------------------------------------------------------


def _from_parquet(source: Source, wanted: _Wanted) -> Iterator[pa.RecordBatch]:
    names = wanted.names
    with plain_words(source.path), pq.ParquetFile(parquet_input(source)) as file:
        schema = file.schema_arrow
        wanted.check(source, schema.names)
        _check_type(source, schema.field(names[0]), "an id is a string or an integer", True)
        _check_type(source, schema.field(names[1]), "an expression is text", False)
        yield from file.iter_batches(_ROWS_AT_ONCE, columns=list(dict.fromkeys(names)))


def batch_rows(batch: pa.RecordBatch, names: tuple[str, str]) -> Iterator[SubscriptionRow]:
    """Return the rows of two columns of a record batch."""
    columns = (_python_values(batch.column(name)) for name in names)
    return itertools.starmap(checked_row, zip(*columns, strict=True))


def _check_type(source: Source, field: pa.Field, rule: str, integers: bool) -> None:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    text = ("string", "large_string", "string_view", "null")
    if str(kind) in text or (integers and pa.types.is_integer(kind)):
        return
    raise FileFormatError(
        f"{source.path}: the column {field.name!r} is of type {field.type}, but {rule};"
        " cast it when writing the file"
    )


class _NotUtf8(NamedTuple):
    byte: int


def _python_values(array: pa.Array) -> Iterator[Any]:
    if pa.types.is_null(array.type):
        return repeat(None, len(array))
    try:
        return iter(array.to_pylist())
    except UnicodeDecodeError:
        return map(_decoded, array.cast(pa.large_binary()).to_pylist())


def _decoded(value: bytes | None) -> str | _NotUtf8 | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError as error:
        return _NotUtf8(error.object[error.start])


def checked_row(identifier: Any, expression: Any) -> SubscriptionRow:
    """Return a row, with a problem if the id or the expression is missing."""
    for what, value in (("id", identifier), ("expression", expression)):
        if value is None or value == "":
            shown = None if what == "id" else identifier
            return SubscriptionRow(shown, None, f"the {what} is missing")
        if isinstance(value, _NotUtf8):
            problem = f"the {what} is not valid UTF-8: byte 0x{value.byte:02X}"
            return SubscriptionRow(None if what == "id" else identifier, None, problem)
    return SubscriptionRow(identifier, expression, None)
