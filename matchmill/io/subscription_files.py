"""Subscriptions from a file, one at a time; a row that cannot be read carries its problem."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import closing
from itertools import repeat
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from matchmill.errors import FileFormatError, did_you_mean
from matchmill.io.csv_rows import CsvRows
from matchmill.io.formats import (
    Source,
    check_file,
    encoding_problem,
    missing_column,
    plain_words,
    text_lines,
)

__all__ = ["SubscriptionRow", "read_json_line", "read_subscriptions"]

_ROWS_AT_ONCE = 8192
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)


class SubscriptionRow(NamedTuple):
    """One row: either what it says, or why it cannot be read; and its line in a text file."""

    id: object
    expression: object
    problem: str | None = None
    line: int | None = None  # from 1


def read_subscriptions(
    path: str | os.PathLike[str],
    *,
    id_column: str = "id",
    expression_column: str = "expression",
    integer_ids: bool = False,
) -> Iterator[SubscriptionRow]:
    """Read the rows of a file, with their lines if it is text.

    In CSV, ids are strings; with `integer_ids` they are integers. In JSON lines an expression is
    text or a JSON pattern (an object). Raises FileFormatError if the file as a whole is no good.
    """
    source = check_file(path)
    names = (id_column, expression_column)
    if source.format.kind == "csv":
        return _from_csv(source, names, integer_ids)
    if source.format.kind == "jsonl":
        return _from_json_lines(source, names)
    return _from_parquet(source, names)


# -- CSV ------------------------------------------------------------------------------------------


def _from_csv(
    source: Source, names: tuple[str, str], integer_ids: bool
) -> Iterator[SubscriptionRow]:
    with closing(CsvRows(source)) as rows:
        id_place, expression_place = (
            _csv_place(source, rows.header, name, option)
            for name, option in zip(names, _OPTIONS, strict=True)
        )
        for line, fields, problem in rows:
            if problem is not None:
                # An id in a row that is too long or too short may still be the right one.
                identifier = (fields[id_place] or None) if len(fields) > id_place else None
                yield SubscriptionRow(identifier, None, problem, line)
                continue
            identifier, expression = fields[id_place], fields[expression_place]
            yield _checked_csv(line, identifier, expression, integer_ids)


_OPTIONS = ("id_column", "expression_column")


def _csv_place(source: Source, header: list[str], name: str, option: str) -> int:
    if header.count(name) == 1:
        return header.index(name)
    advice = ""
    for separator, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if len(header) == 1 and separator in header[0]:
            advice = f" (it seems to be separated by {word}: use commas)"
    raise missing_column(source.path, name, header, option, advice)


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


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    node = dict(pairs)
    if len(node) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key[:40]!r} occurs twice in one object")
            seen.add(key)
    return node


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_no_duplicates, parse_constant=_no_constant)


def _from_json_lines(source: Source, names: tuple[str, str]) -> Iterator[SubscriptionRow]:
    is_first = True
    for number, line in enumerate(text_lines(source), 1):
        if not line.isspace():
            if is_first and line.lstrip()[0] == "[":
                raise FileFormatError(
                    f"{source.path} holds a JSON array; write one object a line, without brackets"
                    f" and commas between them: jq -c '.[]' {source.path.name}"
                )
            is_first = False
            yield read_json_line(number, line, names)
    if is_first:
        raise FileFormatError(f"{source.path} is empty: there is no line but blank ones")


def read_json_line(number: int, line: str, names: tuple[str, str]) -> SubscriptionRow:
    """One line of JSON lines: what it says, or why it cannot be read."""
    problem = encoding_problem(line)
    if problem:
        return SubscriptionRow(None, None, problem, number)
    try:
        row = _DECODER.decode(line.rstrip("\r\n"))
    except json.JSONDecodeError as error:
        hint = "; each line holds one whole object" if line.strip() in ("{", "}") else ""
        what = error.msg.removesuffix(" at")
        problem = f"not valid JSON: {what} at column {error.pos + 1}{hint}"
    except ValueError as error:  # of our hooks, or an integer of thousands of digits
        problem = f"not valid JSON: {error}".partition("; use sys.")[0]
    except RecursionError:
        problem = "the JSON is nested too deep"
    else:
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


def _from_parquet(source: Source, names: tuple[str, str]) -> Iterator[SubscriptionRow]:
    with plain_words(source.path), pq.ParquetFile(source.path) as file:
        schema = file.schema_arrow
        for name, option in zip(names, _OPTIONS, strict=True):
            if schema.names.count(name) != 1:
                raise missing_column(source.path, name, schema.names, option)
        _check_type(source, schema.field(names[0]), "an id is a string or an integer", True)
        _check_type(source, schema.field(names[1]), "an expression is text", False)
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=list(dict.fromkeys(names))):
            columns = (_python_values(batch.column(name)) for name in names)
            for identifier, expression in zip(*columns, strict=True):
                yield _checked_cells(identifier, expression)


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


def _checked_cells(identifier: Any, expression: Any) -> SubscriptionRow:
    for what, value in (("id", identifier), ("expression", expression)):
        if value is None or value == "":
            shown = None if what == "id" else identifier
            return SubscriptionRow(shown, None, f"the {what} is missing")
        if isinstance(value, _NotUtf8):
            problem = f"the {what} is not valid UTF-8: byte 0x{value.byte:02X}"
            return SubscriptionRow(None if what == "id" else identifier, None, problem)
    return SubscriptionRow(identifier, expression, None)
